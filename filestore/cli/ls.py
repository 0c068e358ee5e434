"""List the resources of the store, or the chunks of one in reading order.

In place: the documents, those of a folder, or the sections of one with their lines.
"""

from filestore.browse.records import ChunkFile, Resources
from filestore.cli import _context, _output
from filestore.core.safe_text import shown_path
from filestore.server.requests import Ls as Options

EXAMPLE = "filestore ls field-guide"


def run(options: Options) -> int:
    """List."""
    with _context.open_store(options) as store:
        part = "section" if store.places.is_in_place else "chunk"
        first = "sync" if store.places.is_in_place else "add PATH…"
        found = options.answer(store)
    if options.json:
        _output.write_json(found.to_dict())
        return 0
    for item in found.items if isinstance(found, Resources) else ():
        name = shown_path(item["resource"]) or "(no resource)"
        source = f"  from {shown_path(item['source'])}" if item["source"] else ""
        _output.line(f"{name}  {_output.count(item['chunks'], part)}{source}")
    for item in () if isinstance(found, Resources) else found.items:
        _output.line(_chunk(item))
    if not found.items:
        _output.line(f"nothing yet: filestore {first}")
    return 0


def _chunk(item: ChunkFile) -> str:
    notes = [word for word in ("edited" if item["edited"] else "", item["withheld"] or "") if word]
    line = f":{item['line']}" if item.get("line") else ""
    page = f"  p. {item['page']}" if item.get("page") else ""
    trail = " > ".join(item.get("headings", ()))
    place = f"{shown_path(item['path'])}{line}{page}" + (f"  {trail}" if trail else "")
    return place + (f"  [{', '.join(notes)}]" if notes else "")
