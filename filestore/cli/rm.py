"""Remove resources with their chunks and vectors; the files are kept under .undo/."""

import argparse
from typing import Any

from filestore.cli import _context, _output
from filestore.core.schema import make

EXAMPLE = "filestore rm notes.md"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("resources", nargs="+", metavar="RESOURCE", help="a name that 'ls' shows")


def run(options: Any) -> int:
    """Remove all that are named, or none; one undo brings them back."""
    with _context.open_store(options) as store:
        removed = store.remove(*options.resources)
    if options.json:
        _output.write_json(make("rm", {"removed": removed}))
        return 0
    for one in removed:
        files = _output.count(len(one.paths), "file")
        _output.line(f"removed {one.resource} ({files}, kept as .undo/{one.undo})")
    return 0
