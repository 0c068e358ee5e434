"""What is this about, what is in here: of the store, a resource, a file, or a question.

Summaries from the top down, the documents, and the headings of one. Where there are no summaries,
titles and headings tell.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from filestore.cli import _context, _output
from filestore.core.safe_text import safe_text, shown_path
from filestore.server.requests import About as Options

if TYPE_CHECKING:
    from filestore.browse.overview import Overview, OverviewNode

EXAMPLE = "filestore about field-guide --depth 3"
_INDENT = "   "
_LISTED = 20


def run(options: Options) -> int:
    """Tell; 1 where there is nothing that answers."""
    with _context.open_store(options) as store:
        found = options.answer(store)
    _context.tell(options, found, _words)
    return 0 if found.nodes or found.documents or found.outline else 1


def _words(found: "Overview") -> None:
    if found.about != "query":
        counts = [_output.count(found.chunks, "chunk")]
        if found.about == "store":
            counts.insert(0, _output.count(found.resources, "resource"))
        if found.summaries:
            stale = f" ({found.stale:,} outdated)" if found.stale else ""
            made = "1 summary" if found.summaries == 1 else f"{found.summaries:,} summaries"
            counts.append(f"{made}{stale}")
        name = shown_path(found.name) or "this store"
        _output.line(f"{name}: {', '.join(counts)}", style="1")
    _nodes(found.nodes[:_LISTED], 0)
    _more(len(found.nodes), "name a resource; --json has all")
    if found.about in ("store", "query"):
        for one in found.documents[:_LISTED]:
            title = f"  {_line(one.title)}" if one.title else ""
            name = shown_path(one.resource) or "(no resource)"
            _output.line(f"{name}{title}  {_output.count(one.chunks, 'part')}")
        _more(len(found.documents), "'filestore ls' lists all")
    for entry in found.outline[:_LISTED]:
        _output.line(f"{_INDENT * entry.depth}{_line(entry.title)}", style="2")
    _more(len(found.outline), "--json has all")
    if not (found.nodes or found.documents or found.outline):
        _output.line("nothing found" if found.about == "query" else "nothing yet")


def _nodes(nodes: "Sequence[OverviewNode]", depth: int) -> None:
    for node in nodes:
        state = "" if node.freshness == "fresh" else f"  [{node.freshness}]"
        children = f"  ({_output.count(node.children, 'part')})" if node.children else ""
        _output.line(f"{_INDENT * depth}{_line(node.title)}{state}{children}", style="1")
        _output.line(f"{_INDENT * (depth + 1)}{_line(node.text)}")
        _output.line(f"{_INDENT * (depth + 1)}{shown_path(node.path)}", style="2")
        _nodes(node.below, depth + 1)


def _more(number: int, way: str) -> None:
    if number > _LISTED:
        _output.line(f"… and {number - _LISTED:,} more: {way}")


def _line(text: str) -> str:
    return safe_text(text, keep_newlines=False)
