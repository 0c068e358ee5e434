"""List the resources of the store, or the chunks of one in reading order.

In place: the documents, those of a folder, or the sections of one with their lines.
"""

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
        part = "section" if store.places.is_in_place else "chunk"
        first = "sync" if store.places.is_in_place else "add PATH…"
        named = options.resource
        listed = store.resources() if named is None else store.documents(named)
        items = store.chunks(named) if listed is None else listed
    if options.json:
        _output.write_json(make("ls RESOURCE" if listed is None else "ls", {"items": items}))
        return 0
    for item in items:
        _output.line(_chunk(item) if listed is None else _resource(item, part))
    if not items:
        _output.line(f"nothing yet: filestore {first}")
    return 0


def _resource(item: dict[str, Any], part: str) -> str:
    name = shown_path(item["resource"]) or "(no resource)"
    source = f"  from {shown_path(item['source'])}" if item["source"] else ""
    return f"{name}  {_output.count(item['chunks'], part)}{source}"


def _chunk(item: dict[str, Any]) -> str:
    notes = [word for word in ("edited" if item["edited"] else "", item["withheld"] or "") if word]
    line = f":{item['line']}" if item.get("line") else ""
    page = f"  p. {item['page']}" if item.get("page") else ""
    trail = " > ".join(item.get("headings", ()))
    place = f"{shown_path(item['path'])}{line}{page}" + (f"  {trail}" if trail else "")
    return place + (f"  [{', '.join(notes)}]" if notes else "")
