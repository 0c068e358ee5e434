"""Lines for what a search found: the row of a hit, and all that is known of one. Pure.

One rule: a hit is named by its document and the place in it, as the command line prints it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from filestore.browse import shown_path
from tui.formatting.lines import Line, Role, Span, cut, line, span

if TYPE_CHECKING:
    from filestore import Hit

_MOST_DOCUMENT: Final = 30
"""Characters of a document in a row; the end of a path tells most."""
_MOST_PASSAGE: Final = 200
_BLANKS: Final = re.compile(r"\s+")
_FRESHNESS: Final[dict[str, tuple[str, Role]]] = {
    "outdated": ("its original changed or went", "warning"),
    "edited": ("edited since it was indexed", "warning"),
    "gone": ("the file is gone", "error"),
}


def hit_row(number: int, hit: "Hit", *, is_changed: bool = False) -> Line:
    """One hit: its score, its document and place, whether it is fresh, and what answers.

    Args:
        number: Its rank.
        hit: As it was found.
        is_changed: Whether its file was found to have changed, or gone, since.
    """
    parts: list[Span] = [
        Span(f"{number:>3} ", "quiet"),
        Span(f"{hit.score:>5.2f} ", "note"),
        span(_end_of(shown_path(hit.document or hit.path)), "title"),
        Span(_place(hit), "quiet"),
    ]
    if is_changed:
        parts.append(Span("  changed since this answer", "warning"))
    elif hit.freshness in _FRESHNESS:
        words, role = _FRESHNESS[hit.freshness]
        parts.append(span(f"  {words}", role))
    return (*parts, Span("  "), *_passage(hit))


def _place(hit: "Hit") -> str:
    if hit.line is not None:
        return f":{hit.line}"
    pages = (hit.page,) if hit.page is not None else hit.pages
    return f" p. {pages[0]}" if pages else ""


def _end_of(path: str) -> str:
    """The end of a path, whole names where one fits."""
    if len(path) <= _MOST_DOCUMENT:
        return path
    kept = ""
    for name in reversed(path.split("/")):
        longer = f"{name}/{kept}" if kept else name
        if len(longer) > _MOST_DOCUMENT - 2:
            break
        kept = longer
    return f"…/{kept}" if kept else f"…{path[1 - _MOST_DOCUMENT :]}"


def _passage(hit: "Hit") -> Iterator[Span]:
    """What answers, on one line, the words that were searched for as such."""
    text = hit.excerpt or hit.text[:_MOST_PASSAGE]
    at = 0
    for start, end in hit.marks:
        if at <= start < end <= _MOST_PASSAGE:
            yield _words(text[at:start], "quiet")
            yield _words(text[start:end], "match")
            at = end
    yield _words(text[at:_MOST_PASSAGE], "quiet")


def _words(text: str, role: Role) -> Span:
    return span(_BLANKS.sub(" ", text), role)


def hit_lines(hit: "Hit | None") -> list[Line]:
    """Below the hits: where the one under the cursor stands, and what its score is made of."""
    if hit is None:
        return []
    name = f"{shown_path(hit.document or hit.path)}{_place(hit)}"
    lines: list[Line] = [line(name, "title")]
    above = hit.section or hit.headings
    if above:
        lines.append(line(cut(" > ".join(above), 200), "quiet"))
    parts = [_why(retriever, why) for retriever, why in hit.why.items()]
    if hit.reason:
        lines.append(line(cut(hit.reason, 200), "quiet"))
    if hit.copies:
        copies = ", ".join(map(shown_path, hit.copies))
        lines.append(line(cut(f"{_copies(len(hit.copies))}: {copies}", 200), "quiet"))
    score: Sequence[Span] = (Span(f"score {hit.score:.2f}", "note"),)
    return [*lines, (*score, span(f"  {' + '.join(parts)}" if parts else "", "quiet"))]


def _copies(number: int) -> str:
    return "1 copy" if number == 1 else f"{number} copies"


def _why(retriever: str, why: Mapping[str, float]) -> str:
    points = f" {why['points']:.2f}" if "points" in why else ""
    rank = f"#{why['rank']:.0f}" if "rank" in why else ""
    score = f" {why['score']:.2f}" if "score" in why else ""
    return f"{retriever}{points} ({rank}{score})"
