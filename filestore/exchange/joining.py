"""Chunks of one document into its text, where neighbours repeat each other. Pure.

How much they repeat is given, or found out once for a whole collection, and checked at every pair.
Two rules: text is rather repeated than lost: what may be chance is no overlap; and the time is
linear in the length of the shorter text, whatever the texts hold, because they come from strangers.
A few searches for a short start find what prose repeats; texts that repeat themselves go to a hash
of every length at once, and what misleads that to the prefix function (Knuth, Morris and Pratt
1977).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.core.errors import UsageError
from filestore.core.schema import JsonObject

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
_ANY_WORD: Final = re.compile(r"\S+")


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
    # Where the start that was folded ends in the text itself.
    start = begun[:length]
    words = start.split()
    if not words:
        return 0
    last = next(islice(_ANY_WORD.finditer(second), len(words) - 1, None))
    end = last.start() + len(words[-1])
    if start.endswith(" "):
        following = _ANY_WORD.search(second, end)
        end = following.start() if following else len(second)
    return end


def _folded(text: str) -> str:
    words = " ".join(text.split())
    return f"{' ' * text[:1].isspace()}{words}{' ' * (bool(words) and text[-1:].isspace())}"


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


EXACT: Final = "exact"
NORMALIZED: Final = "normalized"
NONE: Final = "none"
CHARACTERS: Final = "characters"
WORDS: Final = "words"
TOKENS: Final = "tokens"

_SURE: Final = 4
"""Characters that two neighbours do not share by chance, mostly."""
_SURE_AGAINST: Final = 16
"""The same where no other neighbours share any."""
_EVIDENCE: Final = 6
"""Characters that a few pairs must repeat together."""
_PAIRS: Final = 64
"""Of the first document: what they have in common, the others have, too."""
_ENOUGH: Final = 4
"""Pairs without an overlap, before a collection is taken to have none."""
_NEARLY_ALL: Final = 0.95
"""Of the pairs: a chunk may be missing."""
_BORDERS: Final = 16
"""Overlaps of one pair that are tried, from the longest on."""
_TOKEN_CHARACTERS: Final = 48
"""More characters than tokens have, but for long runs of white space."""
_AMOUNT: Final = re.compile(r"(\d{1,9}) ?(characters?|c|words?|w|tokens?|t)?")


class Overlap(JsonObject, Struct, frozen=True, kw_only=True):
    """What the start of one chunk repeats of the chunk before."""

    overlap_chars: int
    """How many characters of its start were left out."""
    confidence: str
    """`exact`; `normalized`: alike but for white space; `none`."""
    method: str
    """`recorded` in the chunk; `told` by `--overlap` or the service; `calibrated` on the first
    document; `longest` there is; `folded` white space; `none`."""


class Strategy(Struct, frozen=True, kw_only=True):
    """How much the chunks of a collection repeat, as far as it is known."""

    amounts: tuple[tuple[str, int], ...] = ()
    """Unit and number, tried in this order: ``("words", 20)``."""
    method: str = "calibrated"
    """Or ``told``."""
    sure: int = _SURE
    """Shorter overlaps that are no such amount are chance."""
    most: int | None = None
    """Longer ones are; None for no limit."""
    pairs: int = 0
    """From how many it was found."""

    @property
    def label(self) -> str:
        """In words."""
        named = " or ".join(f"{number:,} {unit}" for unit, number in self.amounts)
        if named:
            return named
        if self.most is None:
            return "none found"
        return f"at least {self.sure:,} and at most {self.most:,} characters"


class Joined(Struct, frozen=True, kw_only=True):
    """A text put together."""

    text: str
    chunks: int
    """Also those without a text."""
    overlaps: tuple[Overlap, ...]
    """Of each chunk with the one before; chunks without a text have none."""
    warnings: tuple[str, ...] = ()


def count(overlaps: Iterable[Overlap], confidence: str) -> int:
    """How many are as sure as that."""
    return sum(one.confidence == confidence for one in overlaps)


def parse_overlap(amount: str) -> Strategy:
    """What a person says: ``200``, ``200 characters``, ``50 words``, ``400 tokens``.

    Raises:
        UsageError: It is none of these.
    """
    match = _AMOUNT.fullmatch(amount.strip().lower())
    if match is None:
        raise UsageError(
            f"no overlap: {amount!r}; write 200, '50 words', '400 tokens', or 0 for none"
        )
    number, unit = int(match[1]), (match[2] or "c")[0]
    if unit == "t" and number:
        return tokens(number)
    kind = WORDS if unit == "w" and number else CHARACTERS
    return Strategy(amounts=((kind, number),), method="told")


def tokens(number: int) -> Strategy:
    """An overlap in tokens of a model that is not here: only a range of characters is known."""
    if not number:
        return Strategy(amounts=((CHARACTERS, 0),), method="told")
    return Strategy(sure=max(1, number // 4), most=number * _TOKEN_CHARACTERS, method="told")


def calibrate(chunks: Sequence[str]) -> Strategy:
    """What the neighbours among the chunks of one document have in common.

    The largest number of characters or of words that at least three of four pairs repeat, if
    that is more than chance; else a range, if nearly all repeat something, or half of them what is
    more than chance; else that overlaps are not to be expected. Numbers up to half a chunk go
    before larger ones, since texts that repeat themselves fit many.
    """
    pairs = list(pairwise(filter(None, chunks)))[:_PAIRS]
    if not pairs:
        return Strategy()
    lengths = [longest_overlap(*pair) for pair in pairs]
    fitting, amounts = _common_amounts(pairs, lengths)
    # Nearly all pairs may share so little that single ones might by chance, but not all.
    sharing = [place for place, length in enumerate(lengths) if length]
    signs = [_signs(pairs[place][1], lengths[place]) for place in sharing]
    all_share = (
        len(pairs) >= _ENOUGH
        and len(sharing) >= _NEARLY_ALL * len(pairs)
        and 2 * sum(map(bool, signs)) >= len(pairs)
        and sum(signs) >= _EVIDENCE
    )
    if amounts and (fitting >= _NEARLY_ALL or not all_share):
        return Strategy(amounts=amounts, pairs=len(pairs))
    if all_share:
        least = min(filter(None, lengths))
        return Strategy(sure=least, most=2 * max(lengths), pairs=len(pairs))
    shared = [length for length in lengths if length >= _SURE]
    if 2 * len(shared) >= len(pairs):
        least = max(_SURE, min(shared) // 2)
        return Strategy(sure=least, most=2 * max(shared), pairs=len(pairs))
    sure = _SURE_AGAINST if len(pairs) >= _ENOUGH else _SURE
    return Strategy(sure=sure, pairs=len(pairs))


def join(chunks: Iterable[str], strategy: Strategy) -> Joined:
    """Put the chunks of one document together.

    Where none is given and nothing is repeated, a newline goes between, unless one is there.
    """
    texts: list[str] = []
    overlaps: list[Overlap] = []
    before, number = "", 0
    for chunk in chunks:
        number += 1
        if not chunk:
            continue
        start = 0
        if before:
            overlap = overlap_of(before, chunk, strategy)
            if overlap.confidence == NONE and "\n" not in (before[-1], chunk[0]):
                texts.append("\n")
            overlaps.append(overlap)
            start = overlap.overlap_chars
        texts.append(chunk[start:])
        before = chunk
    return Joined(text="".join(texts), chunks=number, overlaps=tuple(overlaps))


def overlap_of(first: str, second: str, strategy: Strategy) -> Overlap:
    """What the second text repeats of the first."""
    for unit, amount in strategy.amounts:
        for length in _lengths(second, unit, amount):
            if first.endswith(second[:length]):
                return Overlap(overlap_chars=length, confidence=EXACT, method=strategy.method)
    most = min(strategy.most or len(second), len(second))
    ended, begun = first[max(0, len(first) - most) :], second[:most]
    length = longest_overlap(ended, begun)
    if length >= strategy.sure or _is_large(length, first, second):
        return Overlap(overlap_chars=length, confidence=EXACT, method="longest")
    # Folded, an overlap may have more white space on either side.
    length = folded_overlap(first[max(0, len(first) - 2 * most) :], second[: 2 * most])
    if length >= strategy.sure:
        return Overlap(overlap_chars=length, confidence=NORMALIZED, method="folded")
    return Overlap(overlap_chars=0, confidence=NONE, method="none")


def _is_large(length: int, first: str, second: str) -> bool:
    """Whether an overlap is so much of short texts that it is none by chance."""
    return length > 1 and 5 * length >= min(len(first), len(second))


def _common_amounts(
    pairs: Sequence[tuple[str, str]], lengths: Sequence[int]
) -> tuple[float, tuple[tuple[str, int], ...]]:
    """The best number of each unit that most pairs repeat, and the share of pairs that do."""
    found: dict[str, tuple[tuple[float, bool, int], int]] = {}
    for unit, amount in dict.fromkeys(_candidates(pairs, lengths)):
        repeated = [_repeated(pairs, place, unit, amount) for place in range(len(pairs))]
        fitting = [place for place, length in enumerate(repeated) if length]
        total = sum(repeated)
        signs = sum(_signs(pairs[place][1], repeated[place]) for place in fitting)
        is_evidence = signs >= _EVIDENCE
        if len(fitting) == 1:
            is_evidence = signs >= _SURE or _is_large(signs, *pairs[fitting[0]])
        if 4 * len(fitting) < 3 * len(pairs) or not is_evidence:
            continue
        small = 2 * total <= sum(min(map(len, pairs[place])) for place in fitting)
        rank = (len(fitting) / len(pairs), small, amount if small else -amount)
        if unit not in found or rank > found[unit][0]:
            found[unit] = rank, amount
    best = max((rank[0] for rank, _ in found.values()), default=0.0)
    amounts = ((unit, amount) for unit, (rank, amount) in found.items() if rank[0] == best)
    return best, tuple(amounts)


def _signs(text: str, length: int) -> int:
    """How many characters of what a text repeats are no white space, if few.

    A text that is cut within an empty line has a line end on both sides, and repeats none.
    """
    return len("".join(text[: min(length, _SURE_AGAINST)].split()))


def _candidates(
    pairs: Sequence[tuple[str, str]], lengths: Sequence[int]
) -> Iterator[tuple[str, int]]:
    """Numbers that one of a few pairs repeats: the least, one of the lower, one of the middle."""
    ordered = sorted(range(len(pairs)), key=lengths.__getitem__)
    for place in {ordered[len(ordered) * part // 4] for part in range(3)}:
        first, second = pairs[place]
        length = lengths[place]
        for _ in range(_BORDERS):
            if not length:
                break
            yield CHARACTERS, length
            if length == len(second) or any(map(str.isspace, second[length - 1 : length + 1])):
                yield WORDS, len(second[:length].split())
            length = shorter_overlap(first, length)


def _repeated(pairs: Sequence[tuple[str, str]], place: int, unit: str, amount: int) -> int:
    """How many characters one pair repeats, if it repeats that much; else 0.

    Only the last chunk may be repeated whole: every other goes on after what it repeats.
    """
    first, second = pairs[place]
    for length in _lengths(second, unit, amount):
        if length == len(second) and place < len(pairs) - 1:
            continue
        if first.endswith(second[:length]):
            return length
    return 0


def _lengths(text: str, unit: str, amount: int) -> tuple[int, ...]:
    """How many characters so much of the start of a text may be."""
    if unit == CHARACTERS:
        return (min(amount, len(text)),)
    words = re.compile(rf"(?:\s*+\S++){{{amount}}}").match(text) if amount else None
    if words is None:
        return (len(text),)
    following = re.compile(r"\s*").match(text, words.end())
    ends = words.end(), following.end() if following else words.end()
    return tuple(dict.fromkeys(ends))
