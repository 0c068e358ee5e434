"""Files with the same text, or nearly, in groups, each file with its diff to the first.

Near are texts whose vectors have a cosine of --above or more; what is near to any file of a group
belongs to it. In place the texts are the sections of documents. Short texts are near to many
others, and so are headers, footers and forms.
"""

from typing import TYPE_CHECKING, Annotated, Final

from filestore.chunks.observation import DOCUMENT
from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import shown_path
from filestore.server.options import CommonOptions, option

if TYPE_CHECKING:
    from filestore.browse.duplicates import DuplicateGroup, Duplicates

EXAMPLE = "filestore duplicates --above 0.98"
_SHOWN: Final = 10
"""Files printed of one group."""
_LINES: Final = 20
"""Lines printed of one diff."""


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    above: Annotated[float, option("C")] = 0.95
    """the least cosine, above 0 and at most 1"""


def run(options: Options) -> int:
    """Show the groups; 1 where there is none."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        found = store.duplicates(above=options.above, on_progress=on_progress)
    _context.tell(options, found, _words)
    return 0 if found.groups else 1


def _words(found: "Duplicates") -> None:
    for number, group in enumerate(found.groups, start=1):
        _group(number, group)
    if not found.groups:
        _output.line("no duplicates found")
        return
    files = sum(len(group.files) for group in found.groups)
    same = sum(group.same for group in found.groups)
    groups = _output.count(len(found.groups), "group")
    counted = f"{_output.count(files, _kind(found.groups[0]))} in {groups}"
    _output.line(f"{counted}: {same:,} the same, {len(found.groups) - same:,} nearly")


def _kind(group: "DuplicateGroup") -> str:
    return "section" if group.files[0].kind == DOCUMENT else "file"


def _group(number: int, group: "DuplicateGroup") -> None:
    what = "the same text" if group.same else "nearly the same text"
    counted = _output.count(len(group.files), _kind(group))
    _output.line(f"{number}. {counted} with {what}", style="1")
    for place, file in enumerate(group.files[:_SHOWN]):
        mark = "" if file.freshness == "fresh" else f"  [{file.freshness}]"
        line = f":{file.line}" if file.line else ""
        near = "" if not place or file.score == 1 else f"  (cosine {file.score:.2f})"
        _output.line(f"   {shown_path(file.path)}{line}{mark}{near}")
        # The head of a diff says which files it compares, and so does the list.
        lines = file.diff.split("\n")[2:]
        for line in lines[:_LINES]:
            _output.line(f"      {line}", style="2")
        if len(lines) > _LINES or file.cut:
            _output.line("      … --json has more of it", style="2")
    _output.say_rest(group.files, _SHOWN, indent="   ")
