"""Which texts belong under one summary: by how alike they are, not by how many there are. Pure.

One rule: a group hangs on the texts alone, not on the order in which they came or lie.

Average linkage over the nearest neighbours, merged best first (R. Sokal, C. Michener, "A
statistical method for evaluating systematic relationships", 1958): for rows of length 1 the mean
cosine between two groups is the product of their sums over the product of their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_CHILDREN: Final = 64
"""So many names fit the frontmatter of a summary, and a person's eye."""
SAMPLE: Final = 1_500
"""So many texts tell how alike texts of a store are."""
_NEIGHBOURS: Final = 32
_ROWS_AT_ONCE: Final = 512
_DIGITS: Final = 5
"""Cosines are compared to so many digits: the last bits differ from machine to machine."""
_LEAST: Final = 0.01
_DEFAULT: Final = 0.5
_FEWEST: Final = 3


class Threshold(Struct, frozen=True, kw_only=True):
    """The least mean cosine of texts under one summary, and where it comes from."""

    value: float
    texts: int
    """How many were looked at."""
    is_set: bool = False
    """Whether a person set it."""
    strangers: float = 0.0
    """As alike two texts are by chance: as far above the median of all pairs as the least alike
    hundredth of them is below it. What is above belongs together in some way."""
    nearest: float = 0.0
    """Half of the texts have another one that is more alike."""

    def __str__(self) -> str:
        if self.is_set:
            return f"threshold {self.value:.2f}, as set"
        if self.texts < _FEWEST:
            return f"threshold {self.value:.2f}: there are too few texts to choose by"
        return (
            f"threshold {self.value:.2f}: halfway between what any two texts share by chance"
            f" ({self.strangers:.2f}) and what nearest neighbours share ({self.nearest:.2f}),"
            f" of {self.texts:,} texts"
        )


def choose_threshold(vectors: NDArray[np.float32]) -> Threshold:
    """Between what any two texts share and what two neighbours share.

    Args:
        vectors: Of a sample of different texts, ``(n, dim) float32, rows of length 1``.
    """
    import numpy as np

    count = len(vectors)
    if count < _FEWEST:
        return Threshold(value=_DEFAULT, texts=count)
    cosines = vectors @ vectors.T
    pairs = cosines[np.triu_indices(count, 1)]
    median, least = map(float, np.quantile(pairs, (0.5, _LEAST)))
    np.fill_diagonal(cosines, -1.0)
    nearest = max(0.0, float(np.median(cosines.max(axis=1))))
    strangers = min(max(0.0, 2 * median - least), nearest)
    value = round((strangers + nearest) / 2, 2)
    return Threshold(value=value, texts=count, strangers=strangers, nearest=nearest)


class Merging:
    """Texts that belong together: groups that grow, each known by its smallest member."""

    def __init__(
        self, vectors: NDArray[np.float32], sizes: Sequence[int], *, threshold: float, window: int
    ) -> None:
        """Put every text in a group of its own.

        Args:
            vectors: ``(n, dim) float32, rows of length 1``; the same texts in the same order, which
                is not the order of arrival: sort them by their keys.
            sizes: Tokens of each.
            threshold: The least mean cosine between two groups that become one.
            window: The most tokens of a group.
        """
        import numpy as np

        self._sums = np.asarray(vectors, dtype=np.float64).copy()
        self._tokens = list(sizes)
        self._counts = [1] * len(sizes)
        self._parents = list(range(len(sizes)))
        self._is_there = [False] * len(sizes)
        self._vectors, self._threshold, self._window = vectors, threshold, window

    def groups(self, existing: Sequence[Sequence[int]] = ()) -> list[list[int]]:
        """Places in ascending order; what is alone is in none.

        Args:
            existing: Groups that are there already, and stay together.
        """
        for members in existing:
            for other in members[1:]:
                self._join(self._root(members[0]), self._root(other))
            self._is_there[self._root(members[0])] = True
        for first, second in _pairs(self._vectors, self._threshold):
            self._consider(first, second)
        found: dict[int, list[int]] = {}
        for place in range(len(self._parents)):
            found.setdefault(self._root(place), []).append(place)
        return [members for members in found.values() if len(members) > 1]

    def _root(self, place: int) -> int:
        while self._parents[place] != place:
            self._parents[place] = self._parents[self._parents[place]]
            place = self._parents[place]
        return place

    def _consider(self, first: int, second: int) -> None:
        """Make two groups one where they are alike and small enough."""
        one, other = self._root(first), self._root(second)
        if one == other:
            return
        count = self._counts[one] + self._counts[other]
        if self._is_there[one] and self._is_there[other]:
            return
        if count > MOST_CHILDREN or self._tokens[one] + self._tokens[other] > self._window:
            return
        product = float(self._sums[one] @ self._sums[other])
        mean = round(product / (self._counts[one] * self._counts[other]), _DIGITS)
        if mean >= self._threshold:
            self._join(one, other)

    def _join(self, one: int, other: int) -> None:
        if one == other:
            return
        one, other = min(one, other), max(one, other)
        self._parents[other] = one
        self._is_there[one] = self._is_there[one] or self._is_there[other]
        self._sums[one] += self._sums[other]
        self._counts[one] += self._counts[other]
        self._tokens[one] += self._tokens[other]


def _pairs(vectors: NDArray[np.float32], threshold: float) -> Iterator[tuple[int, int]]:
    """Pairs of neighbours that are alike enough, the most alike first, ties by place."""
    import numpy as np

    count = len(vectors)
    firsts, seconds, cosines = [], [], []
    for start in range(0, count, _ROWS_AT_ONCE):
        block = np.round(vectors[start : start + _ROWS_AT_ONCE] @ vectors.T, _DIGITS)
        rows = np.arange(len(block))
        block[rows, start + rows] = -2.0
        nearest = min(_NEIGHBOURS, count - 1)
        if nearest < 1:
            break
        # Among equals the first: which of them a partition picks is not said anywhere.
        order = np.argpartition(-block, nearest - 1, axis=1)[:, :nearest]
        found = np.take_along_axis(block, order, axis=1)
        alike = found >= threshold
        firsts.append(np.repeat(rows + start, nearest).reshape(len(block), nearest)[alike])
        seconds.append(order[alike])
        cosines.append(found[alike])
    if not firsts:
        return
    first, second, cosine = map(np.concatenate, (firsts, seconds, cosines))
    low, high = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((high, low, -cosine))
    before = (-1, -1)
    for place in order.tolist():
        pair = int(low[place]), int(high[place])
        if pair != before:
            yield pair
        before = pair
