"""Bring resources up to date with their originals, then sync; hand edits are merged.

What was made from originals that are gone stays; --remove-gone removes it, but for hand edits.
"""

import argparse
from typing import Any

from filestore.cli import _context, _diagnostics, _updated

EXAMPLE = "filestore update handbook --plan"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "resources", nargs="*", metavar="RESOURCE", help="only these (default: all)"
    )
    parser.add_argument(
        "--plan", action="store_true", help="only show what changed among the originals"
    )
    parser.add_argument(
        "--remove-gone",
        action="store_true",
        help="remove what was made from originals that are gone; what was edited by hand stays",
    )
    parser.add_argument("--no-embed", action="store_true", help="do not embed new texts now")


def run(options: Any) -> int:
    """Update; 1 where something is left that needs a person."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        if options.plan:
            planned = store.plan_update(*options.resources, remove_gone=options.remove_gone)
        else:
            report = store.update(
                *options.resources,
                remove_gone=options.remove_gone,
                embed=not options.no_embed,
                on_progress=on_progress,
            )
    if options.plan:
        return _updated.show(planned, as_json=options.json)
    return _updated.tell(report, as_json=options.json)
