"""The files most similar to a chunk file, to an original, or to the chunk that holds its line.

In place: to a document, or to the section of it that holds a line.

By the vectors that are stored, so no model is needed; every file is checked on disk.
"""

from typing import TYPE_CHECKING, Final

from filestore.cli import _context, _output
from filestore.core.safe_text import shown_path
from filestore.server.requests import Similar as Options

if TYPE_CHECKING:
    from filestore.browse.similar import Similar

EXAMPLE = "filestore similar handbook/lease.md:42 -k 5"
_LINES: Final = 2


def run(options: Options) -> int:
    """Show them, nearest first; 1 where nothing of what is found is still there."""
    _context.calculate_in_one_thread()
    with _context.open_store(options) as store:
        found = options.answer(store)
    _context.tell(options, found, _words)
    return 1 if found.hits and all(hit.freshness == "gone" for hit in found.hits) else 0


def _words(found: "Similar") -> None:
    for number, hit in enumerate(found.hits, start=1):
        line = f":{hit.line}" if hit.line else ""
        mark = "" if hit.freshness == "fresh" else f"  [{hit.freshness}]"
        _output.line(f"{number}. {shown_path(hit.path)}{line}{mark}", style="1")
        end = f"{_output.pages(hit.pages)}  (cosine {hit.score:.2f})"
        origin = shown_path(hit.source) if hit.source else "no source"
        place = " > ".join(hit.headings) or origin
        _output.line(f"   {_output.clipped(place, _output.WIDTH - 3 - len(end))}{end}", style="2")
        lines = [line.strip() for line in hit.text.splitlines()]
        told = [line for line in lines if line and not line.startswith(("#", "```"))]
        for line in told[:_LINES]:
            _output.line(f"   {_output.clipped(line, _output.WIDTH - 3)}")
    if not found.hits:
        _output.line("nothing similar found")
