"""Cuts a block that is over the budget where a reader minds least, and verifies every part."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final

from filestore.chunking._measure import Measure, Span, Unit

_EVENNESS: Final = 1.1  # slack over equal parts, so that natural cuts are found
_WORD_LIMIT: Final = 40
_FILL: Final = 0.95  # of a limit, as characters only estimate tokens
_WINDOW: Final = 32_768  # the splitting library is superlinear in what it is given at once

VISIBLE: Final = re.compile(r"\S")
LINE_END: Final = re.compile(r"\n")
_SENTENCE_END: Final = re.compile(r"[.!?][\"')\]»”’]*\s|[。！？]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

Limits = tuple[int, int]
"""Most tokens of the first part, and of every other."""
Cut = Callable[[Measure, Span, Limits], list[Span]]


def cut_unit(measure: Measure, unit: Unit, *, first: int) -> list[Unit]:
    """A block in parts: the first of at most ``first`` tokens, the others filling a piece each."""
    room = measure.room(unit.titles)
    span = (unit.start, unit.end)
    marks = unit.marks
    if unit.kind == "lines":
        ends = LINE_END.finditer(measure.text, unit.start, unit.end)
        marks = tuple(line_end.end() for line_end in ends)
    cut_between = cut_markdown if unit.kind == "nested" else cut_text
    if marks:
        spans = cut_at_marks(measure, span, marks, (first, room), cut_between=cut_between)
    else:
        spans = cut_between(measure, span, (first, room))
    return [
        replace(
            unit,
            start=start,
            end=end,
            tokens=measure.spaced_tokens(start, end),
            kind=unit.kind if start == unit.start or unit.kind != "heading" else "prose",
            marks=(),
            final=True,
        )
        for start, end in spans
    ]


def _even_share(tokens: int, first: int, room: int) -> int:
    """Tokens of the first part, so that the parts come out even and none is a crumb."""
    parts = 1 + math.ceil(max(tokens - _FILL * first, 0) / (_FILL * room))
    return max(min(first, int(tokens / parts * _EVENNESS)), 1)


def cut_at_marks(
    measure: Measure,
    span: Span,
    marks: Sequence[int],
    limits: Limits,
    *,
    cut_between: Cut,
) -> list[Span]:
    """Cuts into even parts at marks, and what lies between two and is over its limit.

    Args:
        measure: The text and how to count it.
        span: What to cut.
        marks: Where a cut does least harm, ascending.
        limits: Most tokens of the first part, and of every other.
        cut_between: Cuts the text between two marks.
    """
    (start, end), (first, room) = span, limits
    marks = [*tidy_cuts(measure.text, start, end, marks), end]
    tokens = measure.spaced_tokens(start, end)
    shares = (_even_share(tokens, first, room), _even_share(tokens, room, room))
    width = (end - start) / max(tokens, 1)
    spans: list[Span] = []
    index = 0
    while start < end:
        share = shares[1 if spans else 0]
        fitting = _fitting(measure, start, marks, index, share, share * width)
        stop = marks[max(fitting - 1, index)]
        if fitting > index:
            spans.append((start, stop))
        else:
            rest = (room if spans else first, room)
            spans.extend(cut_between(measure, (start, stop), rest))
        start, index = stop, max(fitting, index + 1)
    return spans


def _fitting(
    measure: Measure, start: int, marks: Sequence[int], index: int, limit: int, reach: float
) -> int:
    """How many marks, counted from the first of all, can be reached within the limit.

    ``reach`` is how far the limit goes by the average, in characters: near there the search starts.
    """

    def fits(candidate: int) -> bool:
        return measure.spaced_tokens(start, marks[candidate]) <= limit

    guess = max(bisect_left(marks, start + reach), index + 1) - 1
    low, high, step = index, len(marks), 1
    if fits(guess):
        low = guess + 1
        while low < high and fits(min(low + step, high) - 1):
            low = min(low + step, high)
            step *= 2
        high = min(low + step - 1, high)
    else:
        high = guess
        while low < high and not fits(max(high - step, low)):
            high = max(high - step, low)
            step *= 2
        low = max(high - step + 1, low)
    return bisect_left(range(high), True, lo=low, key=lambda candidate: not fits(candidate))


def _cut_naturally(
    measure: Measure, span: Span, limits: Limits, *, is_markdown: bool
) -> list[Span]:
    """Cuts running text where it reads best, and again where a part still has too many tokens."""
    first, room = limits
    done: list[Span] = []
    pending = [span]
    while pending:
        start, end = pending.pop()
        tokens = measure.spaced_tokens(start, end)
        limit = room if done else first
        if tokens <= limit:
            done.append((start, end))
            continue
        share = _even_share(tokens, limit, room)
        capacity = int(_FILL * len(measure.text[start:end].strip()) * share / tokens)
        cuts = _natural_cuts(measure.text, (start, end), capacity, is_markdown=is_markdown)
        cuts = cuts or _middle_cut(measure.text, start, end)
        if not cuts:
            done.append((start, end))
            continue
        # The first part may be the small one; what follows it is cut into even parts by itself.
        kept = cuts if limit == room else cuts[:1]
        pending.extend(reversed(spans_between(start, end, kept)))
    return done


cut_text: Final[Cut] = partial(_cut_naturally, is_markdown=False)
cut_markdown: Final[Cut] = partial(_cut_naturally, is_markdown=True)


def windows(text: str, span: Span, marks: Sequence[int] = ()) -> list[Span]:
    """A stretch in parts small enough for the splitting library, cut at marks, lines or words."""
    cuts: list[int] = []
    start, end = span
    while end - start > _WINDOW:
        half, stop = start + _WINDOW // 2, start + _WINDOW
        mark = marks[bisect_right(marks, stop) - 1] if marks else -1
        found = (mark, text.rfind("\n", half, stop) + 1, text.rfind(" ", half, stop) + 1)
        start = next((cut for cut in found if cut > half), stop)
        cuts.append(start)
    return spans_between(*span, tidy_cuts(text, *span, cuts))


def _off_word(text: str, cut: int) -> int:
    """The cut, or the white space shortly before it where it would fall inside a word."""
    if text[cut - 1].isspace() or text[cut].isspace():
        return cut
    before = max(text.rfind(space, cut - _WORD_LIMIT, cut) for space in " \n")
    return before + 1 or cut


def _middle_cut(text: str, start: int, end: int) -> list[int]:
    """The last resort, where nothing but single characters is left to tell apart."""
    stretch = text[start:end]
    visible = len(stretch.strip())
    middle = start + len(stretch) - len(stretch.lstrip()) + visible // 2
    return tidy_cuts(text, start, end, [middle]) if visible > 1 else []


def _natural_cuts(text: str, span: Span, capacity: int, *, is_markdown: bool) -> list[int]:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    stretch = text[span[0] : span[1]]
    visible = stretch.strip()
    if capacity < 1 or len(visible) <= capacity:
        return []
    start = span[0] + len(stretch) - len(stretch.lstrip())
    # The library takes UTF-8 only; a stand-in of the same length keeps the offsets.
    visible = _SURROGATE.sub("\ufffd", visible)
    splitter = MarkdownSplitter if is_markdown else TextSplitter
    if not is_markdown and _is_wrapped_prose(visible):
        visible = visible.replace("\n", " ")
    chunks = splitter(capacity, trim=False).chunk_indices(visible)
    cuts = [_off_word(text, start + offset) for offset, _ in chunks[1:]]
    return tidy_cuts(text, span[0], span[1], cuts)


def _is_wrapped_prose(stretch: str) -> bool:
    """Whether sentences run over line ends, so that a line end is no good place to cut."""
    ends = _SENTENCE_END.findall(stretch)
    lines = stretch.count("\n") + 1
    at_line_ends = sum(end.endswith("\n") for end in ends)
    is_prose = len(stretch) >= 40 * lines and len(ends) * 400 >= len(stretch)
    return is_prose and at_line_ends * 2 < lines


def tidy_cuts(text: str, start: int, end: int, cuts: Iterable[int]) -> list[int]:
    """Moves cuts so that no part is only white space and each starts at a line's indentation.

    White space at a cut goes to the part before, but what follows its last line end to the part
    after. Cuts must ascend.
    """
    tidy: list[int] = []
    done = start
    for cut in cuts:
        if cut <= done:
            continue
        visible = VISIBLE.search(text, cut, end)
        if visible is None:
            break
        left = cut
        while left > done and text[left - 1].isspace():
            left -= 1
        if left > start:
            line_end = text.rfind("\n", left, visible.start())
            tidy.append(line_end + 1 if line_end >= 0 else visible.start())
        done = visible.start()
    return tidy


def spans_between(start: int, end: int, cuts: Sequence[int]) -> list[Span]:
    return list(pairwise([start, *cuts, end]))
