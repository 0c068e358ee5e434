"""Show one chunk: its frontmatter, its text, and what the store knows of it.

In place: one document, or with a line the section that holds it, its tags, sections and links.
"""

from collections.abc import Callable
from typing import Any, Final

from filestore.chunks.frontmatter import value_text
from filestore.cli import _context, _output
from filestore.core.safe_text import shown_path
from filestore.server.requests import Show as Options

EXAMPLE = "filestore show chunked/glossary.md/chunk1.md"


def _section(item: dict[str, Any]) -> str:
    place = (
        f"line {item['line']}" if item["line"] else f"page {item['page']}" if item["page"] else ""
    )
    return "  ".join(filter(None, (place, " > ".join(item["headings"]))))


_LISTS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "sections": _section,
    "links": lambda item: (
        (f"line {item['line']} -> " if item["line"] else "-> ") + shown_path(item["target"])
    ),
    "backlinks": lambda item: (
        shown_path(item["path"]) + (f":{item['line']}" if item["line"] else "")
    ),
}
"""What a document in place has many of, a line each."""


def run(options: Options) -> int:
    """Show the file as it is on disk."""
    with _context.open_store(options) as store:
        shown = options.answer(store)
    if options.json:
        _output.write_json(shown.to_dict())
        return 0
    _output.line(shown_path(shown.path), style="1")
    known = {key: value for key, value in shown.record.items() if key not in _LISTS}
    for key, value in {**shown.frontmatter, **known}.items():
        if value not in (None, [], {}):
            _output.line(f"{key}: {value_text(value)}", style="2")
    for key, tell in _LISTS.items():
        for item in shown.record.get(key, ()):
            _output.line(f"{key.removesuffix('s')}: {tell(item)}", style="2")
    _output.line()
    _output.line(shown.body.rstrip("\n"))
    return 0
