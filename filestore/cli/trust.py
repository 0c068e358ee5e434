"""Let a store reach what it names outside itself: a service that embeds, originals elsewhere."""

import argparse
from typing import Any

from filestore.cli import _context, _output

EXAMPLE = "filestore trust"

_SHOWN = 10
"""Originals that are named; the rest is counted."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("--revoke", action="store_true", help="take back what was allowed")


def run(options: Any) -> int:
    """Trust what settings and records name now, and say what that allows."""
    with _context.open_store(options) as store:
        reaches, root = store.reaches(), store.root
        if options.revoke:
            store.distrust()
        else:
            store.trust()
    if options.json:
        _output.write_json(
            {
                "root": root,
                "reaches": list(reaches.names),
                "sources": list(reaches.sources),
                "trusted": not options.revoke,
            }
        )
    elif not reaches.names:
        _output.line("nothing to trust: this store reaches nothing outside it")
    elif options.revoke:
        _output.line(f"{', '.join(reaches.names)}: no longer allowed for {root}")
    else:
        _words(root, reaches.service, reaches.sources)
    return 0


def _words(root: str, service: str | None, sources: tuple[str, ...]) -> None:
    if service is not None:
        _output.line(f"the texts of {root} may be sent to {service}")
    if sources:
        number = _output.count(len(sources), "original")
        _output.line(f"{number} outside the work tree of {root} may be read:")
        for source in sources[:_SHOWN]:
            _output.line(f"    {source}")
        if len(sources) > _SHOWN:
            _output.line(f"    … and {len(sources) - _SHOWN} more")
