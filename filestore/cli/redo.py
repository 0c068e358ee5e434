"""Redo a change that 'filestore undo' undid: all of its files or none of them."""

from typing import Annotated

from filestore.cli import _context, _diagnostics, _output
from filestore.server.options import CommonOptions, argument

EXAMPLE = "filestore redo"


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    id: Annotated[str | None, argument("ID")] = None
    """the change (default: the one undone last)"""


def run(options: Options) -> int:
    """Redo; 1 where there is nothing to redo, 4 where files were edited since."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.redo(options.id, on_progress=on_progress)
    _output.turned(done, word="redone", as_json=options.json)
    return _diagnostics.left_without(done.problem) if done else 1
