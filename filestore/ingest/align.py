"""Decides which piece of a changed source takes the place of which piece already in the store.

Pure: pieces in, matches out. One rule: nothing is left out, and what is kept or replaced keeps its
order. Equal keys are found first, as a longest common subsequence (Hunt and Szymanski, 1977); what
lies between two of them is paired by the words it shares.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

MINIMUM_SIMILARITY: Final = 0.3
"""Share of common words from which a new piece counts as a changed version of an old one."""

FOLLOWED_SIMILARITY: Final = 0.5
"""Share from which a piece that is elsewhere counts as one that moved and changed."""
FOLLOWED_LEAD: Final = 0.2
"""By how much it must be more alike than any other, on both sides: a guess is no match."""

_FOLLOW_LIMIT: Final = 250_000  # pairs compared across the whole document
_CANDIDATE_LIMIT: Final = 500_000  # pairs of equal keys looked at; above it, only the likely ones
_COMPARISON_LIMIT: Final = 2_500  # pairs of texts compared in one stretch
_OPENING_WORDS: Final = 32  # of a new piece, by which its predecessor is looked for
# A Chinese or Japanese character counts as a word: white space separates none there.
_WORD: Final = re.compile(r"[^\W\u2e80-\u9fff]+|[\u2e80-\u9fff]")
_VISIBLE: Final = re.compile(r"\S")

_Pair = tuple[int, int]
_Phrase = tuple[str, str]


class KeyedText(Struct, frozen=True, kw_only=True):
    """A piece in the store, or of the source as it is now."""

    key: str
    """Origin hash of the text as it was generated."""
    text: str
    edited: bool = False
    """Whether a person changed it since; it is matched like any other."""


class Keep(Struct, frozen=True, kw_only=True):
    """The same generated text in both."""

    old: int
    new: int


class Replace(Struct, frozen=True, kw_only=True):
    """The new piece is a changed version of the old one and takes its place."""

    old: int
    new: int


class Insert(Struct, frozen=True, kw_only=True):
    """A new piece without a predecessor."""

    new: int
    after: int | None
    """The nearest kept or replaced old piece before it; None at the start."""


class Drop(Struct, frozen=True, kw_only=True):
    """An old piece the source no longer has."""

    old: int


Match: TypeAlias = Keep | Replace | Insert | Drop


def align(old: Sequence[KeyedText], new: Sequence[KeyedText]) -> list[Match]:
    """Matches every old and every new piece exactly once, in reading order.

    Args:
        old: The pieces in the store, in order.
        new: The pieces of the changed source, in order.

    Returns:
        Keeps and replacements ascend in both indices; between two of them, drops come before
        insertions.
    """
    old_keys = [piece.key for piece in old]
    new_keys = [piece.key for piece in new]
    # A longest common subsequence; of keys repeated thousands of times, a good one.
    shorter = min(len(old_keys), len(new_keys))
    head = next((at for at in range(shorter) if old_keys[at] != new_keys[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if old_keys[-1 - at] != new_keys[-1 - at]), rest)
    middle = _longest_chain(
        _candidates(old_keys[head : len(old_keys) - tail], new_keys[head : len(new_keys) - tail])
    )
    kept = [
        *((at, at) for at in range(head)),
        *((head + left, head + right) for left, right in middle),
        *((len(old_keys) - at, len(new_keys) - at) for at in range(tail, 0, -1)),
    ]
    comparison = _Comparison(
        old=_Texts(old), new=_Texts(new), moved=_moved(old_keys, new_keys, kept)
    )
    pairs: list[_Pair] = []
    for before, after in pairwise([(-1, -1), *kept, (len(old), len(new))]):
        old_range = range(before[0] + 1, after[0])
        new_range = range(before[1] + 1, after[1])
        pairs.extend(_similar(comparison, old_range, new_range))
        pairs.append(after)
    # The pairs with all that is between them; the last pair is the end of both sides.
    found: list[Match] = []
    last: int | None = None
    next_old = next_new = 0
    for left, right in pairs:
        found += [Drop(old=dropped) for dropped in range(next_old, left)]
        found += [Insert(new=inserted, after=last) for inserted in range(next_new, right)]
        if left < len(old_keys):
            same = old_keys[left] == new_keys[right]
            found.append(Keep(old=left, new=right) if same else Replace(old=left, new=right))
        last, next_old, next_new = left, left + 1, right + 1
    return found


def follow(old: Mapping[int, str], new: Mapping[int, str]) -> dict[int, int]:
    """Which texts without a match moved and changed a little, where there is no doubt.

    Args:
        old: Texts in the store that nothing took the place of, by their number.
        new: Texts of the source that took no place, by theirs.

    Returns:
        New number to old number.
    """
    if not old or not new or len(old) * len(new) > _FOLLOW_LIMIT:
        return {}
    before = {number: _word_set(text) for number, text in old.items()}
    after = {number: _word_set(text) for number, text in new.items()}
    scores = {(o, n): _jaccard(before[o], after[n]) for o in before for n in after}
    of_old = {o: sorted((scores[o, n] for n in after), reverse=True)[:2] for o in before}
    of_new = {n: sorted((scores[o, n] for o in before), reverse=True)[:2] for n in after}

    return {
        n: o
        for (o, n), score in scores.items()
        if score >= FOLLOWED_SIMILARITY and _leads(score, of_old[o]) and _leads(score, of_new[n])
    }


def _leads(score: float, best: Sequence[float]) -> bool:
    """Whether a score is clear of the next best."""
    return score == best[0] and (len(best) == 1 or score - best[1] >= FOLLOWED_LEAD)


# Equal keys


def _moved(
    old: Sequence[str], new: Sequence[str], kept: Iterable[_Pair]
) -> tuple[frozenset[int], frozenset[int]]:
    """Old and new pieces that have their key in common and are not kept."""
    pairs = list(kept)
    kept_old, kept_new = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    places: defaultdict[str, list[int]] = defaultdict(list)
    for position in reversed(range(len(old))):
        if position not in kept_old:
            places[old[position]].append(position)
    found = [
        (places[key].pop(), position)
        for position, key in enumerate(new)
        if position not in kept_new and places.get(key)
    ]
    return frozenset(pair[0] for pair in found), frozenset(pair[1] for pair in found)


def _candidates(old: Sequence[str], new: Sequence[str]) -> list[_Pair]:
    """Pairs of equal keys by old index, those of one old index by descending new index."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for position, key in enumerate(new):
        places[key].append(position)
    repeats = Counter(key for key in old if key in places)
    if sum(count * len(places[key]) for key, count in repeats.items()) <= _CANDIDATE_LIMIT:
        return [
            (position, place)
            for position, key in enumerate(old)
            if key in places
            for place in reversed(places[key])
        ]
    # A key with thousands of twins: the first is paired with the first, the second with the second.
    unused = {key: iter(positions) for key, positions in places.items()}
    paired = ((at, next(unused[key], None)) for at, key in enumerate(old) if key in unused)
    return [(position, place) for position, place in paired if place is not None]


def _longest_chain(candidates: Iterable[_Pair]) -> list[_Pair]:
    """The longest run of candidates that ascends in both indices."""
    ends: list[int] = []  # ends[n]: smallest new index that ends a chain of n + 1 pairs
    chains: list[tuple[_Pair, object]] = []  # the chain itself, linked backwards
    for pair in candidates:
        length = bisect_left(ends, pair[1])
        link = (pair, chains[length - 1] if length else None)
        if length == len(ends):
            ends.append(pair[1])
            chains.append(link)
        elif pair[1] < ends[length]:
            ends[length] = pair[1]
            chains[length] = link
    chain: list[_Pair] = []
    last: object = chains[-1] if chains else None
    while isinstance(last, tuple):
        pair, last = last
        chain.append(pair)
    return chain[::-1]


# Similar texts


def _words(text: str) -> list[str]:
    folded = text.casefold()
    return _WORD.findall(folded) or _VISIBLE.findall(folded)


def _word_set(text: str) -> frozenset[str]:
    return frozenset(_words(text))


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    common = len(first & second)
    total = len(first) + len(second) - common
    return common / total if total else 1.0


class _Texts:
    """The words of each piece; as a set, kept once asked for."""

    def __init__(self, pieces: Sequence[KeyedText]) -> None:
        self._pieces = pieces
        self._sets: dict[int, frozenset[str]] = {}

    def words(self, index: int) -> list[str]:
        return _words(self._pieces[index].text)

    def word_set(self, index: int) -> frozenset[str]:
        known = self._sets.get(index)
        if known is None:
            known = self._sets[index] = frozenset(self.words(index))
        return known


class _Comparison(Struct, frozen=True, kw_only=True):
    old: _Texts
    new: _Texts
    moved: tuple[frozenset[int], frozenset[int]]
    """Old and new pieces with the same key at places that cannot both keep their order."""

    def score(self, old: int, new: int) -> float:
        """Common words as a share of all (Jaccard), or 0 below the minimum.

        A piece that is elsewhere unchanged takes no other's place.
        """
        if old in self.moved[0] or new in self.moved[1]:
            return 0.0
        share = _jaccard(self.old.word_set(old), self.new.word_set(new))
        return share if share >= MINIMUM_SIMILARITY else 0.0


def _similar(comparison: _Comparison, old_range: range, new_range: range) -> list[_Pair]:
    """Pairs of similar texts in a stretch without equal keys, ascending in both indices."""
    if len(old_range) * len(new_range) <= _COMPARISON_LIMIT:
        return _best_pairing(comparison, old_range, new_range)
    # Anchors share word pairs that are at the start of one new piece only.
    homes: dict[_Phrase, int | None] = {}
    for index in new_range:
        for phrase in set(pairwise(comparison.new.words(index)[:_OPENING_WORDS])):
            homes[phrase] = None if phrase in homes else index
    chosen: list[_Pair] = []
    for index in old_range:
        phrases = pairwise(comparison.old.words(index))
        found = [home for phrase in phrases if (home := homes.get(phrase)) is not None]
        likeliest = max(sorted(set(found)), key=found.count, default=None)
        if likeliest is not None and comparison.score(index, likeliest):
            chosen.append((index, likeliest))
    anchors = _longest_chain(chosen)
    pairs: list[_Pair] = []
    start, stop = (old_range.start - 1, new_range.start - 1), (old_range.stop, new_range.stop)
    for before, after in pairwise([start, *anchors, stop]):
        between = range(before[0] + 1, after[0]), range(before[1] + 1, after[1])
        if len(between[0]) * len(between[1]) <= _COMPARISON_LIMIT:
            pairs.extend(_best_pairing(comparison, *between))
        else:
            by_position = zip(*between, strict=False)
            pairs.extend(pair for pair in by_position if comparison.score(*pair))
        pairs.append(after)
    return pairs[:-1]


def _best_pairing(comparison: _Comparison, old_range: range, new_range: range) -> list[_Pair]:
    """The pairing with the greatest sum of similarities, by dynamic programming."""
    if not old_range or not new_range:
        return []
    height, width = len(old_range), len(new_range)
    best = [[0.0] * (width + 1) for _ in range(height + 1)]
    paired: set[_Pair] = set()
    for row in reversed(range(height)):
        for column in reversed(range(width)):
            best[row][column] = max(best[row + 1][column], best[row][column + 1])
            score = comparison.score(old_range[row], new_range[column])
            if score and score + best[row + 1][column + 1] > best[row][column]:
                best[row][column] = score + best[row + 1][column + 1]
                paired.add((row, column))
    pairs: list[_Pair] = []
    row = column = 0
    while row < height and column < width:
        if (row, column) in paired:
            pairs.append((old_range[row], new_range[column]))
            row, column = row + 1, column + 1
        elif best[row + 1][column] >= best[row][column + 1]:
            row += 1
        else:
            column += 1
    return pairs
