"""Remove resources with their chunks and vectors; the files are kept under .undo/."""

import argparse
from typing import Any

from filestore.cli import _context, _output

EXAMPLE = "filestore rm notes.md"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("resources", nargs="+", metavar="RESOURCE", help="a name that 'ls' shows")


def run(options: Any) -> int:
    """Remove each resource, once all names are known to be right."""
    with _context.open_store(options) as store:
        names = [store.find_resource(name) for name in options.resources]
        removed = [store.remove(name) for name in dict.fromkeys(names)]
    if options.json:
        _output.write_json(
            {
                "removed": [
                    {
                        "resource": one.resource,
                        "files": [f"chunked/{path}" for path in one.paths],
                        "undo": one.undo,
                    }
                    for one in removed
                ]
            }
        )
        return 0
    for one in removed:
        files = _output.count(len(one.paths), "file")
        _output.line(f"removed {one.resource} ({files}, kept as .undo/{one.undo})")
    return 0
