"""Merging rankings of the same items into one: pure, without any notion of what an item is.

One rule: the result depends on the rankings and weights alone, never on the order in which the legs
are given; equal scores are ordered by item.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

RANK_CONSTANT: Final = 60
"""The constant of the paper: how little the very first places stand out."""


class _Sortable(Hashable, Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=_Sortable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused(Generic[K]):
    """One item of a merged ranking, and why it stands where it stands."""

    item: K
    score: float
    """Comparable within one fusion only."""
    ranks: Mapping[str, int]
    """The place in each leg that found it, from 1."""


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[K]],
    *,
    weights: Mapping[str, float],
    constant: int = RANK_CONSTANT,
) -> list[Fused[K]]:
    """Merge rankings by the weighted sum of ``1 / (constant + rank)``, best first.

    Only ranks count, so legs whose scores cannot be compared (BM25, cosine) may be merged.
    Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009.

    Args:
        rankings: The items of each leg, best first; of an item that occurs twice the better place.
        weights: How much each leg counts, not negative; a leg of weight 0 is left out.
        constant: Larger values flatten the difference between places.

    Raises:
        ValueError: A leg has no weight or a negative one, or the constant is negative.
    """
    if constant < 0:
        raise ValueError(f"the constant of a fusion must not be negative, found {constant}")
    _check_weights(rankings, weights)
    legs = {leg: _ranks(items) for leg, items in rankings.items() if weights[leg] > 0}
    return _merge(legs, lambda leg, rank: weights[leg] / (constant + rank))


def _check_weights(legs: Mapping[str, object], weights: Mapping[str, float]) -> None:
    for leg in legs:
        if not 0 <= weights.get(leg, math.nan) < math.inf:
            raise ValueError(
                f"the weight of {leg!r} must be 0 or more, found {weights.get(leg, 'none')}"
            )


def _ranks(items: Sequence[K]) -> dict[K, int]:
    ranks: dict[K, int] = {}
    for rank, item in enumerate(items, start=1):
        ranks.setdefault(item, rank)
    return ranks


def _merge(
    legs: Mapping[str, Mapping[K, int]], contribution: Callable[[str, int], float]
) -> list[Fused[K]]:
    """Sum what each leg contributes to each item; other ways to fuse differ in this function."""
    ranks: dict[K, dict[str, int]] = {}
    for leg, places in sorted(legs.items()):
        for item, rank in places.items():
            ranks.setdefault(item, {})[leg] = rank
    fused = [
        # fsum rounds once, so that mirrored places tie exactly whatever the number of legs.
        Fused(item=item, score=math.fsum(map(contribution, found, found.values())), ranks=found)
        for item, found in ranks.items()
    ]
    fused.sort(key=lambda one: one.item)
    fused.sort(key=lambda one: one.score, reverse=True)
    return fused
