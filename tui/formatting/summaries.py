"""Lines for summaries: rows of their tree, what one was made from. Pure.

One rule: what is out of date says so with a sign and a word, never by colour alone.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from filestore.browse import shown_path
from tui.formatting.findings import SEVERITY, place_of
from tui.formatting.lines import Line, Role, Span, arrow, count, cut, line, span

if TYPE_CHECKING:
    from filestore.browse import (
        About,
        Family,
        StorePath,
        SummarisedResource,
        Tree,
        TreeNode,
    )

MOST_LISTED: Final = 40
"""Children of one summary that are listed among its facts; the rest is counted."""
NO_TREE: Final = "no summary was made from it"
_STALE: Final[tuple[str, Role]] = (f"{SEVERITY['W'][0]} stale", SEVERITY["W"][2])
_STATES: Final[Mapping[str, tuple[str, Role]]] = {
    "fresh": ("", "text"),
    "changed": ("~ changed", "warning"),
    "gone": ("x gone", "error"),
}
"""A sign, a word and a role for a child; a fresh one needs none."""
_DEEPEST: Final = 12
"""Levels that are drawn with an indent of their own."""


# Rows of the tree


def resource_row(row: "SummarisedResource", *, is_open: bool, ascii_only: bool = False) -> Line:
    """A resource above the roots of its tree."""
    stale = (Span(f"  {SEVERITY['W'][0]} {row.stale:,} stale", "warning"),) if row.stale else ()
    return (
        Span(arrow(is_open=is_open, ascii_only=ascii_only), "quiet"),
        span(shown_path(row.resource) or "(no resource)", "title"),
        Span(f"  {counted(row.summaries)}", "quiet"),
        *stale,
    )


def node_row(
    node: "TreeNode",
    title: str,
    tree: "Tree",
    *,
    depth: int,
    above: str = "",
    is_open: bool = False,
    is_circle: bool = False,
    ascii_only: bool = False,
) -> Line:
    """A summary, or a text, below what was made from it.

    Args:
        node: What the tree says of it.
        title: What it is called; "" where that is not known.
        tree: Of the store.
        depth: How many rows stand above it.
        above: The title of the summary above it.
        is_open: Whether what it was made from stands below it.
        is_circle: Whether it is one of those above it, and so is not opened again.
        ascii_only: Whether the screen shows no more than ASCII.
    """
    sign = "  "
    if node.children and not is_circle:
        sign = arrow(is_open=is_open, ascii_only=ascii_only)
    parts = [Span(f"{'  ' * min(depth, _DEEPEST)}{sign}", "quiet"), *state_spans(node)]
    if is_circle:
        parts.append(Span("o is above already  ", "warning"))
    if node.is_summary:
        parts.append(Span(f"L{node.level} ", "quiet"))
    named = short_title(title, above) or place_of(node.path, tree)
    parts.append(span(named, "title" if node.is_summary else "text"))
    if node.is_summary:
        parts.append(Span(f"  {_made_from(node.children)}", "quiet"))
    elif title:
        parts.append(span(f"  {place_of(node.path, tree)}", "quiet"))
    return tuple(parts)


def state_spans(node: "TreeNode") -> list[Span]:
    """What is the matter with a node, before its name: a narrow screen cuts the end of a row."""
    words, role = _STATES[node.state]
    found = [Span(f"{words}  ", role)] if words else []
    if node.why:
        found.append(Span(f"{_STALE[0]}  ", _STALE[1]))
    return found


def short_title(title: str, above: str) -> str:
    """A title without what the one above begins with, too."""
    shared = above.partition(": ")[0]
    return title.removeprefix(f"{shared}: ") if shared else title


def _made_from(children: int) -> str:
    return "1 child" if children == 1 else f"{children:,} children"


def counted(number: int) -> str:
    """A number of summaries."""
    return "1 summary" if number == 1 else f"{number:,} summaries"


def count_lines(*, resources: int, summaries: int, stale: int) -> list[Line]:
    """Below the tree: how much there is of it, and what is to be done."""
    lines = [line(f"{counted(summaries)} of {count(resources, 'resource')}", "quiet")]
    if stale:
        sign = Span(f"{SEVERITY['W'][0]} {stale:,} stale  ", "warning")
        lines.append((sign, Span("R ", "key"), Span("refreshes them", "quiet")))
    return lines


def found_line(summaries: int, filtered: str) -> Line:
    """Below the tree: how many summaries the filter leaves."""
    return (
        span(f"{counted(summaries)} for ", "quiet"),
        span(cut(filtered, 40), "match"),
        Span("  escape shows all", "quiet"),
    )


def nothing_lines() -> list[Line]:
    """In place of a tree where there is none."""
    return [
        line("No summaries yet.", "title"),
        (),
        (Span("M ", "key"), Span("makes some of the resource under the cursor.", "quiet")),
        (Span("S ", "key"), Span("returns to the files.", "quiet")),
    ]


# Of one file


def family_lines(family: "Family | None") -> list[Line]:
    """Above the list of what is above and below a file."""
    if family is None:
        return [line(NO_TREE, "quiet")]
    node = family.node
    what = f"level {node.level} · made from {_made_from(node.children)}" if node.is_summary else ""
    lines: list[Line] = [(Span("Tree", "title"), Span(f"  {what or 'a text'}", "quiet"))]
    if node.why:
        lines.append((Span(f"{_STALE[0]}: ", _STALE[1]), span(node.why)))
    return lines


def family_rows(family: "Family", tree: "Tree") -> "list[tuple[StorePath, Line]]":
    """The summaries above a file, the highest first, itself, and its children."""
    above = [*reversed(family.above)]
    rows: list[tuple[StorePath, Line]] = []
    own = family.titles.get(family.path, "")
    for node in above:
        title = family.titles.get(node.path, "")
        rows.append((node.path, (Span("^ ", "note"), *node_row(node, title, tree, depth=0)[1:])))
    mark = (Span("* ", "mark"), *node_row(family.node, own, tree, depth=0)[1:])
    rows.append((family.path, mark))
    for node in family.children:
        title = family.titles.get(node.path, "")
        row = node_row(node, title, tree, depth=0, above=own)
        rows.append((node.path, (Span("  - ", "quiet"), *row[1:])))
    return rows


def question_lines(about: "About") -> list[Line]:
    """The questions that a file answers, each with who wrote it."""
    own = set(about.own_questions)
    lines: list[Line] = []
    for number, question in enumerate(about.questions, start=1):
        found = [Span(f"{number:>3}. ", "quiet"), span(question)]
        if question in own:
            found.append(Span("  a person's own", "note"))
        elif about.questions_stale:
            found.append(Span(f"  generated, {_STALE[0]}: its text changed", "warning"))
        else:
            found.append(Span("  generated", "quiet"))
        lines.append(tuple(found))
    return lines


def relations(about: "About", family: "Family | None") -> list[tuple[str, list[Line]]]:
    """What a file was made from, and what was made from it, each part with its title."""
    if family is None:
        named = [line(f"  {shown_path(child.path)}") for child in about.children[:MOST_LISTED]]
        return [("Made from", named + _more(about.children))]
    return [
        (title, [_named(node, family) for node in nodes[:MOST_LISTED]] + _more(nodes))
        for title, nodes in (
            ("Made from", family.children),
            ("Summaries made from it", family.above),
        )
    ]


def _named(node: "TreeNode", family: "Family") -> Line:
    title = family.titles.get(node.path, "")
    about = (span(f"  {cut(title, 60)}", "quiet"),) if title else ()
    return (Span("  "), *state_spans(node), span(shown_path(node.path)), *about)


def _more(all_of_them: Sequence[object]) -> list[Line]:
    hidden = len(all_of_them) - MOST_LISTED
    return [line(f"  … {hidden:,} more", "quiet")] if hidden > 0 else []
