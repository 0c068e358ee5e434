"""The links of a chunk file or an original, and those to it, each with the line it stands in.

A link of yours from one chunk file to another is marked where it leads nowhere; a link that came
with an original leads to another original, and is marked where that was never added.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import shown_path
from filestore.server.requests import Links as Options

if TYPE_CHECKING:
    from filestore.browse.links import Link, Links

EXAMPLE = "filestore links chunked/glossary.md/chunk1.md"


def run(options: Options) -> int:
    """Show them; 1 where one of its own leads nowhere."""
    with _context.open_store(options) as store:
        found = options.answer(store)
        is_in_place = store.places.is_in_place

    def words(found: "Links") -> None:
        _list("links from", options.path, found.outgoing)
        _list("links to", options.path, found.incoming)
        if found.broken and not is_in_place:
            _diagnostics.say("'filestore repair --plan' shows which of them can be repaired")

    _context.tell(options, found, words)
    return 1 if found.broken else 0


def _list(head: str, path: str, found: "Sequence[Link]") -> None:
    _output.line(f"{head} {shown_path(path)} ({len(found):,})", style="1")
    for link in found:
        edited = "" if link.freshness == "fresh" else f"  [{link.freshness}]"
        state = "" if link.state == "there" else f"  [{link.state}]"
        if link.moved_to is not None:
            state = f"  [moved to {shown_path(link.moved_to)}]"
        line = "" if link.line is None else f":{link.line}"
        place = f"{shown_path(link.path)}{line}{edited}"
        _output.line(f"   {place} -> {shown_path(link.target)}{state}")
