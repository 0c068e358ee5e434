"""Make a change again that 'filestore undo' took back: all of its files or none of them."""

import argparse
from typing import Any

from filestore.cli import _context, _diagnostics, _output
from filestore.safe_text import shown_path

EXAMPLE = "filestore redo"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="which one; without it what was undone last"
    )


def run(options: Any) -> int:
    """Redo; 1 where there is nothing to redo, 4 where files were edited since."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.redo(options.id, on_progress=on_progress)
    if options.json:
        paths = list(done.paths) if done else []
        _output.write_json(
            {
                "id": done.identifier if done else None,
                "what": done.what if done else "",
                "redone": paths,
                "undone": [],
                "embedded": done.embedded if done else 0,
                "reused": done.reused if done else 0,
            }
        )
    elif done is None:
        _output.line("nothing to redo")
    else:
        files = _output.count(len(done.paths), "file")
        _output.line(f"redone {done.identifier}: {shown_path(done.what)} ({files})")
    return _diagnostics.left_without(done.problem) if done else 1
