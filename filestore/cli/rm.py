"""Remove resources with their chunks and vectors; the files are kept under .undo/."""

from typing import Final

from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import shown_path
from filestore.ingest.remove import RemovedResources
from filestore.server.requests import Remove as Options

EXAMPLE = "filestore rm notes.md"
_COMES_BACK: Final = """\
'filestore update' adds {name} again, as each child of its folder was added:
  to keep it out, name it in the .filestoreignore of that folder"""


def run(options: Options) -> int:
    """Remove all that are named, or none; one undo brings them back."""
    with _context.open_store(options) as store:
        sources = {one["resource"]: one["source"] for one in store.resources()}
        removed = store.remove(*options.resources)
        new = {one.path for one in store.status().findings if one.code == "source-untracked"}
    if options.json:
        _output.write_json(RemovedResources(removed).to_dict())
        return 0
    for one in removed:
        files = _output.count(len(one.paths), "file")
        _output.line(f"removed {one.resource} ({files}, kept as .undo/{one.undo})")
        if sources.get(one.resource) in new:
            _diagnostics.say(_COMES_BACK.format(name=shown_path(one.resource)))
    return 0
