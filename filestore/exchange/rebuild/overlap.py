"""How much of the end of one text the start of the next repeats. Pure.

One rule: the time is linear in the length of the shorter text, whatever the texts hold, because
they come from strangers. A few searches for a short start find what prose repeats; texts that
repeat themselves go to a hash of every length at once, and what misleads that to the prefix
function (Knuth, Morris and Pratt 1977).
"""

from __future__ import annotations

import re
from array import array
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from numpy import uint64
    from numpy.typing import NDArray

_ANCHOR: Final = 32
"""Characters of the start that are searched for: few, since a search may cost their number."""
_CHECKED: Final = 12
"""Places that are compared before another way is taken."""
_BLOCK: Final = 32_768
_BASE: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_BASE, -1, 2**64)
_WORD: Final = re.compile(r"\S+")


def longest_overlap(first: str, second: str) -> int:
    """How many characters the longest end of one text has that is a start of another."""
    size = min(len(first), len(second))
    if not size:
        return 0
    tail, head = first[len(first) - size :], second[:size]
    if tail == head:
        return size
    for way in (_by_anchor, _by_hashes):
        found = way(tail, head)
        if found is not None:
            return found
    return _by_prefix_function(tail, head)


def shorter_overlap(first: str, length: int) -> int:
    """The next shorter one, of an overlap that is the end of the first text."""
    end = first[len(first) - length :]
    return longest_overlap(end[1:], end[:-1])


def folded_overlap(first: str, second: str) -> int:
    """How much of the second text repeats the end of the first, runs of white space being alike.

    Returns:
        Characters of the second text as it is; 0 where folding shows nothing new.
    """
    ended, begun = _folded(first), _folded(second).lstrip()
    if ended == first and begun == second:
        return 0
    length = longest_overlap(ended, begun)
    if ended.endswith(" "):
        length = max(length, longest_overlap(ended[:-1], begun))
    return _unfolded(second, begun[:length])


def _folded(text: str) -> str:
    words = " ".join(text.split())
    return f"{' ' * text[:1].isspace()}{words}{' ' * (bool(words) and text[-1:].isspace())}"


def _unfolded(text: str, start: str) -> int:
    """Where a start that was folded ends in the text itself."""
    words = start.split()
    if not words:
        return 0
    last = next(islice(_WORD.finditer(text), len(words) - 1, None))
    end = last.start() + len(words[-1])
    if start.endswith(" "):
        following = _WORD.search(text, end)
        end = following.start() if following else len(text)
    return end


def _by_anchor(tail: str, head: str) -> int | None:
    """Look where the tail has the start of the head; None where that is at too many places."""
    size = len(head)
    at, checked = tail.find(head[:_ANCHOR]) if size > _ANCHOR else -1, 0
    while at >= 0:
        if head.startswith(tail[at:]):
            return size - at
        checked += 1
        if checked == _CHECKED:
            return None
        at = tail.find(head[:_ANCHOR], at + 1)
    short = range(min(_ANCHOR, size), 0, -1)
    return next((length for length in short if tail.endswith(head[:length])), 0)


def _by_hashes(tail: str, head: str) -> int | None:
    """Compare polynomial hashes of every length; None where they were equal and the texts not."""
    import numpy as np

    ended, begun = _codes(tail)[::-1], _codes(head)
    ups, downs = _powers(_BASE), _powers(_INVERSE)
    candidates: list[int] = []
    sum_of_ends = sum_of_starts = np.zeros((), np.uint64)
    for start in range(0, len(head), _BLOCK):
        block = slice(start, min(start + _BLOCK, len(head)))
        size = block.stop - start
        up = ups[:size] * np.uint64(pow(_BASE, start, 2**64))
        down = downs[:size] * np.uint64(pow(_INVERSE, start, 2**64))
        ends = np.cumsum(ended[block] * up, dtype=np.uint64) + sum_of_ends
        starts = np.cumsum(begun[block] * down, dtype=np.uint64) + sum_of_starts
        sum_of_ends, sum_of_starts = ends[-1:], starts[-1:]
        equal = np.flatnonzero(ends == starts * up)[-_CHECKED:] + (start + 1)
        candidates = [*candidates, *equal.tolist()][-_CHECKED:]
    for length in reversed(candidates):
        if tail.endswith(head[:length]):
            return int(length)
    return 0 if len(candidates) < _CHECKED else None


def _codes(text: str) -> NDArray[uint64]:
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)


@cache
def _powers(base: int) -> NDArray[uint64]:
    """``base ** i`` modulo 2 ** 64, of each place in a block."""
    import numpy as np

    factors = np.full(_BLOCK, base, np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)


def _by_prefix_function(tail: str, head: str) -> int:
    """The proven way: slower, and as slow for every text."""
    borders = array("q", bytes(8 * len(head)))
    length = 0
    for place in range(1, len(head)):
        letter = head[place]
        while length and head[length] != letter:
            length = borders[length - 1]
        length += head[length] == letter
        borders[place] = length
    length = 0
    for letter in tail:  # as long as the head, so that only its last letter can end a whole match
        while length and head[length] != letter:
            length = borders[length - 1]
        length += head[length] == letter
    return length
