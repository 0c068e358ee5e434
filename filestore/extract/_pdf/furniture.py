"""Running headers, footers and page numbers: which lines of a page are not part of its text.

One rule: a line goes only if it stands at the edge of its page, apart from the text, and the same
line stands in the same place of other pages, but for numbers. What merely repeats stays.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from filestore.extract._pdf.lines import Line, PageLines

_EDGE_LINES: Final = 3
_EDGE_SHARE: Final = 0.16  # of the height of the page, at the top and at the bottom
_APART: Final = 1.4  # font sizes between such a line and the text
_NUMBER_SHARE: Final = 0.22  # a bare page number may stand further in
_LONGEST: Final = 160  # characters
_NEIGHBOURS: Final = 4  # pages: left and right pages have headers of their own
_FEWEST: Final = 3  # pages, for a line to be a running one
_SLOT_POINTS: Final = 4.0  # lines that near each other stand in the same place
_SLOT_SHARE: Final = 0.5  # of the lines in a place are running ones: then all of them are
_LONE_NUMBER_SHARE: Final = 0.1  # of the height of the page

_ROMAN: Final = r"(?=[ivxlc])x{0,4}l?x{0,3}(?:ix|iv|v?i{0,3})"
_NUMBER: Final = re.compile(rf"(?<![^\W_])(?:[0-9]+|{_ROMAN})(?![^\W_])|[0-9]+", re.IGNORECASE)
_PAGE_NUMBER: Final = re.compile(
    rf"\W*(?:page|seite|p\.|s\.)?\s*(?:[0-9]{{1,5}}|{_ROMAN})\W*"
    r"(?:(?:of|von|/)\s*[0-9]{1,5})?\W*",
    re.IGNORECASE,
)


class _Edge(NamedTuple):
    """A line at the edge of a page."""

    page: int
    position: int
    """Among the lines of the page."""
    slot: tuple[bool, int]
    """Top or bottom, and how high."""
    key: str
    """The line without its numbers."""
    apart: bool
    """Whether there is space between it and the text."""


def without_furniture(pages: Sequence[PageLines]) -> list[PageLines]:
    """The pages without running headers, footers and page numbers.

    Args:
        pages: Every page of the document, so that repetition can be seen.

    Returns:
        The same pages; unchanged all of them, if nothing else stands there.
    """
    edges = [edge for number, page in enumerate(pages) for edge in _edges(number, page)]
    running = _running(edges)
    gone: defaultdict[int, set[int]] = defaultdict(set)
    for edge in edges:
        if edge in running or _is_lone_number(edge, pages[edge.page]):
            gone[edge.page].add(edge.position)
    kept = list(pages)
    for number, positions in gone.items():
        lines = enumerate(pages[number].lines)
        left = tuple(line for position, line in lines if position not in positions)
        kept[number] = replace(pages[number], lines=left)
    return kept if any(page.lines for page in kept) else list(pages)


def _edges(number: int, page: PageLines) -> list[_Edge]:
    """The outermost lines at the top and at the bottom of a page, inwards."""
    depths = [-line.bottom for line in page.lines]
    order = sorted(range(len(depths)), key=depths.__getitem__)
    found: list[_Edge] = []
    for top, outward in ((True, order), (False, order[::-1])):
        lines = [page.lines[position] for position in outward[: _EDGE_LINES + 1]]
        apart = _apart(lines)
        for place, line in enumerate(lines[: _edge_lines(lines, page.height, top=top)]):
            found.append(
                _Edge(
                    page=number,
                    position=outward[place],
                    slot=(top, round(line.bottom / _SLOT_POINTS)),
                    key=_NUMBER.sub("#", line.text).casefold(),
                    apart=place < apart,
                )
            )
    return found


def _edge_lines(outward: Sequence[Line], height: float, *, top: bool) -> int:
    """How many of the outermost lines are short and within the edge of the page."""
    for count, line in enumerate(outward[:_EDGE_LINES]):
        share = _NUMBER_SHARE if _PAGE_NUMBER.fullmatch(line.text[:_LONGEST]) else _EDGE_SHARE
        limit = height * ((1 - share) if top else share)
        outside = line.bottom > limit if top else line.bottom < limit
        if not outside or len(line.text) > _LONGEST:
            return count
    return min(_EDGE_LINES, len(outward))


def _apart(outward: Sequence[Line]) -> int:
    """How many of the outermost lines come before the innermost wide gap among them."""
    if len(outward) <= _EDGE_LINES:
        return len(outward)
    for count in range(_EDGE_LINES, 0, -1):
        line, inner = outward[count - 1], outward[count]
        if abs(inner.bottom - line.bottom) > _APART * max(line.size, inner.size):
            return count
    return 0


def _running(edges: Sequence[_Edge]) -> set[_Edge]:
    """The lines that recur in their place, and all others in a place where most lines do."""
    spread: defaultdict[tuple[tuple[bool, int], str], list[int]] = defaultdict(list)
    for edge in edges:
        for slot in [(edge.slot[0], edge.slot[1] + offset) for offset in (-1, 0, 1)]:
            spread[slot, edge.key].append(edge.page)
    recurring = {edge for edge in edges if edge.apart and _recurs(edge, spread)}
    taken = Counter(edge.slot for edge in recurring)
    lines = Counter(edge.slot for edge in edges)
    slots = {
        slot
        for slot, count in taken.items()
        if count >= _FEWEST and count >= _SLOT_SHARE * lines[slot]
    }
    return recurring | {edge for edge in edges if edge.apart and edge.slot in slots}


def _recurs(edge: _Edge, spread: Mapping[tuple[tuple[bool, int], str], Sequence[int]]) -> bool:
    pages = spread[edge.slot, edge.key]
    if len(pages) < _FEWEST or len(set(pages[: 2 * _EDGE_LINES * _FEWEST])) < _FEWEST:
        return False
    before = bisect_left(pages, edge.page) - 1
    after = bisect_right(pages, edge.page)
    return (before >= 0 and edge.page - pages[before] <= _NEIGHBOURS) or (
        after < len(pages) and pages[after] - edge.page <= _NEIGHBOURS
    )


def _is_lone_number(edge: _Edge, page: PageLines) -> bool:
    """Whether it is nothing but a page number at the very edge, even of a single page."""
    line = page.lines[edge.position]
    share = line.bottom / page.height if page.height > 0 else 0.5
    outermost = share < _LONE_NUMBER_SHARE or share > 1 - _LONE_NUMBER_SHARE
    return edge.apart and outermost and _PAGE_NUMBER.fullmatch(line.text) is not None
