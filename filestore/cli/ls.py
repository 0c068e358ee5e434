"""List the resources of the store, or the chunks of one in reading order."""

import argparse
from typing import Any

from filestore.cli import _context, _output
from filestore.core.safe_text import shown_path
from filestore.core.schema import make

EXAMPLE = "filestore ls field-guide"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("resource", nargs="?", metavar="RESOURCE")


def run(options: Any) -> int:
    """List."""
    with _context.open_store(options) as store:
        named = options.resource is not None
        items = store.chunks(options.resource) if named else store.resources()
    if options.json:
        _output.write_json(make("ls RESOURCE" if named else "ls", {"items": items}))
        return 0
    for item in items:
        _output.line(_chunk(item) if named else _resource(item))
    if not items:
        _output.line("nothing yet: filestore add PATH…")
    return 0


def _resource(item: dict[str, Any]) -> str:
    name = shown_path(item["resource"]) or "(no resource)"
    source = f"  from {shown_path(item['source'])}" if item["source"] else ""
    return f"{name}  {_output.count(item['chunks'], 'chunk')}{source}"


def _chunk(item: dict[str, Any]) -> str:
    notes = [word for word in ("edited" if item["edited"] else "", item["withheld"] or "") if word]
    return shown_path(item["path"]) + (f"  [{', '.join(notes)}]" if notes else "")
