"""Order on PDF pages whose file draws them row by row: columns, blocks side by side, line numbers.

One rule: a row is parted only where a gap goes through the rows around it too and both sides read
on downwards; what may be a table stays as it is. Nothing here knows a PDF library.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.extract._pdf.lines import Line, PageLines

GAP: Final = 1.1
"""In font sizes: wider than the space between two words, also of justified text."""

_FEWEST_ROWS: Final = 5
_FEWEST_SIDE: Final = 2
_WIDE_GAP: Final = 3.0  # font sizes, between blocks of which some lines stand alone
_LONG_PIECE: Final = 16  # characters
_READS_ON: Final = 0.25  # of the lines of a column
_NUMERIC: Final = 0.35  # of the words
_MOST_GUTTERS: Final = 40
_MOST_ROWS: Final = 400
_DEEPEST: Final = 3  # columns, less one
_SAME_ROW: Final = 0.5  # of the font size
_FEWEST_NUMBERS: Final = 6
_STEPS: Final = (1, 5)
_NUMBERED: Final = 0.6  # of the lines, where each has a number


class _Row(Struct, frozen=True):
    """A line and its words."""

    line: Line
    words: tuple[Line, ...]

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """From where to where there is nothing."""
        return [
            (one.right, other.left)
            for one, other in pairwise(self.words)
            if other.left - one.right > GAP * max(self.line.size, 1.0)
        ]

    def sides(self, gutter: int) -> tuple[tuple[Line, ...], tuple[Line, ...]] | None:
        """The words left and right of a place; None where something goes through it."""
        left = tuple(word for word in self.words if word.right <= gutter)
        right = tuple(word for word in self.words if word.left >= gutter)
        if len(left) + len(right) < len(self.words):
            return None
        if left and right and right[0].left - left[-1].right <= GAP * max(self.line.size, 1.0):
            return None
        return left, right


def in_columns(page: PageLines, words: Sequence[Line]) -> PageLines:
    """The page with its columns one after the other.

    Args:
        page: As it was read, with its tables.
        words: Its words, each as a line of its own.
    """
    lines: list[Line] = []
    run: list[_Row] = []
    for line in without_numbers(page.lines, words):
        own = _words_of(line, words) if not line.table and line.turn == "none" else ()
        follows = not run or line.bottom < run[-1].line.bottom + _SAME_ROW * line.size
        if not own or not follows or len(run) >= _MOST_ROWS:
            lines += _ordered(run, 0)
            run = []
        if own:
            run.append(_Row(line, own))
        else:
            lines.append(line)
    return replace(page, lines=(*lines, *_ordered(run, 0)))


def _words_of(line: Line, words: Sequence[Line]) -> tuple[Line, ...]:
    """The words of a line, unless they are not just what it says."""
    own = tuple(
        word
        for word in words
        if abs(word.bottom - line.bottom) < _SAME_ROW * max(line.size, 1.0)
        and line.left - 1 <= word.left
        and word.right <= line.right + 1
    )
    found = "".join(word.text + "-" * word.hyphen for word in own)
    whole = line.text + "-" * line.hyphen
    return own if found == whole.replace(" ", "") else ()


def _ordered(rows: Sequence[_Row], depth: int) -> Iterator[Line]:
    """The lines of some rows, those of a left column before those of a right one."""
    best: tuple[int, int, int, int] | None = None
    if depth < _DEEPEST:
        middles = sorted({round((one + other) / 2) for row in rows for one, other in row.gaps})
        for gutter in middles[:: max(1, len(middles) // _MOST_GUTTERS)]:
            for start, end in _bands(rows, gutter):
                both = sum(all(row.sides(gutter) or ()) for row in rows[start:end])
                if (best is None or both > best[0]) and _are_columns(rows[start:end], gutter):
                    best = both, start, end, gutter
    if best is None:
        yield from (row.line for row in rows)
        return
    _, start, end, gutter = best
    yield from _ordered(rows[:start], depth)
    for side in (0, 1):
        parts = [(row, (row.sides(gutter) or ((), ()))[side]) for row in rows[start:end]]
        yield from _ordered([_part(row, words) for row, words in parts if words], depth + 1)
    yield from _ordered(rows[end:], depth)


def _bands(rows: Sequence[_Row], gutter: int) -> Iterator[tuple[int, int]]:
    """Runs of rows that nothing goes through at a place, from the first to the last with a gap."""
    start: int | None = None
    end = 0
    for number, row in enumerate(rows):
        sides = row.sides(gutter)
        if sides is None:
            if start is not None:
                yield start, end
            start = None
        elif all(sides):
            start = number if start is None else start
            end = number + 1
        elif start is not None:
            end = number + 1
    if start is not None:
        yield start, end


def _are_columns(rows: Sequence[_Row], gutter: int) -> bool:
    """Whether both sides read on downwards, or are blocks whose lines do not go together."""
    sides = [row.sides(gutter) or ((), ()) for row in rows]
    both = [side for side in sides if all(side)]
    lefts, rights = ([side[n] for side in sides if side[n]] for n in (0, 1))
    if len(both) >= _FEWEST_ROWS and all(map(_reads_on, (lefts, rights))):
        return True
    size = max(median(row.line.size for row in rows), 1.0)
    return (
        len(both) >= _FEWEST_SIDE
        and len(lefts) > len(both) < len(rights)
        and all(right[0].left - left[-1].right > _WIDE_GAP * size for left, right in both)
        and sum(map(_is_number, (word for side in rights for word in side)))
        <= _NUMERIC * sum(map(len, rights))
    )


def _reads_on(column: Sequence[Sequence[Line]]) -> bool:
    texts = [" ".join(word.text for word in words) for words in column]
    words = [word for some in column for word in some]
    going_on = sum(
        not other[0].isupper() and other[0].isalpha() and one[-1] not in ".:;!?"
        for one, other in pairwise(texts)
    )
    return (
        median(map(len, texts)) >= _LONG_PIECE
        and going_on >= _READS_ON * (len(texts) - 1)
        and sum(map(_is_number, words)) <= _NUMERIC * len(words)
    )


def _is_number(word: Line) -> bool:
    return any(map(str.isdigit, word.text))


def _part(row: _Row, words: tuple[Line, ...]) -> _Row:
    """The row with some of its words."""
    text = " ".join(word.text + "-" * word.hyphen for word in words[:-1])
    line = replace(
        row.line,
        text=f"{text} {words[-1].text}".strip(),
        left=words[0].left,
        right=words[-1].right,
        hyphen=words[-1].hyphen,
    )
    return _Row(line, words)


def may_number_lines(lines: Sequence[Line]) -> bool:
    """Whether the lines of a page may be counted in its margin."""
    return sum(line.text.partition(" ")[0].isdecimal() for line in lines) >= _FEWEST_NUMBERS


def without_numbers(lines: Sequence[Line], words: Sequence[Line]) -> list[Line]:
    """The lines without the numbers that count them in the margin."""
    counted: list[tuple[int, Line, tuple[Line, ...]]] = []
    for place, line in enumerate(lines):
        if line.text.partition(" ")[0].isdecimal() and not line.table:
            counted.append((place, line, _words_of(line, words)))
    texts = [line for line in lines if not line.text.isdecimal()]
    numbers = [int(own[0].text) for _, _, own in counted if own]
    steps = {other - one for one, other in pairwise(numbers)}
    if len(numbers) < _FEWEST_NUMBERS or len(steps) != 1 or not steps <= set(_STEPS):
        return list(lines)
    starts = [own[1].left if len(own) > 1 else line.left for _, line, own in counted if own]
    begins = [line.left for line in texts if not line.text.partition(" ")[0].isdecimal()]
    begins += [start for start, (_, _, own) in zip(starts, counted, strict=False) if len(own) > 1]
    edge = min(begins, default=0.0)
    outside = all(own[0].right + GAP / 2 * line.size < edge for _, line, own in counted if own)
    if not outside or (steps == {1} and len(numbers) < _NUMBERED * len(texts)):
        return list(lines)
    kept: list[Line | None] = list(lines)
    for place, line, own in counted:
        if own:
            kept[place] = _part(_Row(line, own), own[1:]).line if own[1:] else None
    return [line for line in kept if line is not None]
