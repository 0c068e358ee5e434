"""Redo a change that 'filestore undo' undid: all of its files or none of them."""

import argparse
from typing import Any

from filestore.cli import _context, _diagnostics, _output

EXAMPLE = "filestore redo"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="the change (default: the one undone last)"
    )


def run(options: Any) -> int:
    """Redo; 1 where there is nothing to redo, 4 where files were edited since."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.redo(options.id, on_progress=on_progress)
    _output.turned(done, word="redone", as_json=options.json)
    return _diagnostics.left_without(done.problem) if done else 1
