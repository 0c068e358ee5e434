"""Where a stretch of a text stood in an earlier version of it, and whether it said the same. Pure.

As `git log -L` goes: by lines. One rule: it ends, whatever the texts are: what is too much to be
compared line by line counts as one change.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_MOST_LINES: Final = 2_000
"""So many lines that differ are laid beside each other; that takes the square of their number."""


class Span(Struct, frozen=True, kw_only=True):
    """Lines of a text, from 0."""

    start: int
    end: int


def below_heading(lines: Sequence[str], span: Span, at: int) -> Span:
    """The part of some lines that stands below the same heading as one of them.

    Args:
        lines: Of a Markdown text, those of code left blank.
        span: That part of them which is looked at.
        at: The line that is meant.
    """
    headings = [line for line in range(span.start, span.end) if _HEADING.match(lines[line])]
    above = [line for line in headings if line <= at]
    below = [line for line in headings if line > at]
    return Span(start=above[-1] if above else span.start, end=below[0] if below else span.end)


def before(old: Sequence[str], new: Sequence[str], span: Span) -> tuple[Span | None, bool]:
    """Where lines stood in the version before; None where nothing of them did. Whether all is same.

    Args:
        old: The lines of the version before.
        new: Those of the one after.
        span: In the latter.
    """
    found = _as_it_is(old, new, span)
    if found is not None:
        return found, True
    start, end, touched = len(old), 0, False
    for tag, i1, i2, j1, j2 in _opcodes(old, new):
        if tag == "equal":
            first, last = max(j1, span.start), min(j2, span.end)
            if first < last:
                start, end = min(start, i1 + first - j1), max(end, i1 + last - j1)
            continue
        is_inside = j1 < span.end and j2 > span.start
        if tag == "delete":
            is_end = j1 == span.end and not _begins_section(old[i1:i2])
            is_inside = span.start < j1 < span.end or is_end
        if is_inside:
            touched = True
            if i1 < i2:
                start, end = min(start, i1), max(end, i2)
    if start >= end or not any(line.strip() for line in old[start:end]):
        return None, False
    is_same = not touched or _words(old[start:end]) == _words(new[span.start : span.end])
    return Span(start=start, end=end), is_same


def _as_it_is(old: Sequence[str], new: Sequence[str], span: Span) -> Span | None:
    """The same lines, wherever they stood; what follows must be no more of them."""
    block = list(new[span.start : span.end])
    while block and not block[-1].strip():
        block.pop()
    size = len(block)
    if not size:
        return None
    following = _next_words(new, span.end)
    places = [
        place
        for place, line in enumerate(old[: len(old) - size + 1])
        if line == block[0] and list(old[place : place + size]) == block
    ]
    fitting = []
    for place in places:
        after = _next_words(old, place + size)
        if after in (None, following) or after.startswith("#"):
            fitting.append(place)
    if not fitting:
        return None
    start = min(fitting, key=lambda place: abs(place - span.start))
    return Span(start=start, end=start + size)


def _next_words(lines: Sequence[str], place: int) -> str | None:
    return next((lines[at] for at in range(place, len(lines)) if lines[at].strip()), None)


def _begins_section(lines: Sequence[str]) -> bool:
    return (_next_words(lines, 0) or "").startswith("#")


def _words(lines: Sequence[str]) -> list[str]:
    return " ".join(lines).split()


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """What differs, as `difflib` says it; lines that are the same at both ends are passed first."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    yield "equal", 0, head, 0, head
    if max(map(len, middle)) > _MOST_LINES:
        yield "replace", head, len(old) - tail, head, len(new) - tail
    else:
        matcher = difflib.SequenceMatcher(None, *middle, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield tag, head + i1, head + i2, head + j1, head + j2
    yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)
