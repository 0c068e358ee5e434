"""Merging rankings of the same items into one: pure, without any notion of what an item is.

Scores of different rankings (BM25, cosine) cannot be compared as they are; how far an item stands
out from the crowd of its own ranking can. One rule: the result depends on the scores and weights
alone, never on the order in which rankings or items are given; equal scores are ordered by item.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

DEPTH: Final = 50
"""How many items of a ranking, at least, should be given: the last of them stands for the crowd."""

_LEADERS: Final = 10
"""So many of the first may be what was sought; the crowd is measured on those behind them."""
_FEWEST: Final = 20
"""A shorter ranking has no crowd to measure."""
_CLEAR: Final = 10.0
"""The evidence for the best item where there is no crowd: about that of a plain hit where there is
one, and more than twice that of the best of fifty by chance (ln 50)."""
_MOST: Final = 50.0
"""The most evidence there is: beyond it a crowd of equals makes any difference look immense."""
_WHOLE_SHARE: Final = 0.4
"""Of the evidence for a part of something: so much is that of the whole.

Over the tuning halves of forty sets of questions it is worth .008 of nDCG@10: none .6976, .3 .7037,
.4 .7057, .5 .7054. The BM25 of whole documents in its place is worth .003."""
MOST_PARTS: Final = 10
"""So many parts of a whole count, the best of them: what is long need not be about one thing."""
_RANK_CONSTANT: Final = 60


class _Sortable(Hashable, Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=_Sortable)


class Ranking(Struct, Generic[K], frozen=True, kw_only=True):
    """The items that one way of searching found."""

    scored: Sequence[tuple[K, float]]
    """Items and scores, larger is better; of an item that occurs twice the better score."""
    weight: float = 1.0
    """The say of the ranking, not negative; with 0 it is left out."""
    floor: float | None = None
    """The score of whatever a ranking shorter than `DEPTH` does not list; None where it lists
    everything there is, so that its own last item is the floor."""
    clear: float = 1.0
    """How clearly its best item answers, 0 to 1; it counts where there is no crowd to measure."""


class Part(Struct, frozen=True, kw_only=True):
    """What one ranking says about an item."""

    rank: int
    """From 1; equal scores share the better place."""
    score: float
    """As the ranking gave it."""
    evidence: float
    """How far the item stands out, 0 to 50. Of a crowd, one in e is expected above 1, one in e²
    above 2, and so on. Of a part of a whole, what the others of its parts add is in it."""
    points: float
    """What this adds to the fused score."""


class Fused(Struct, Generic[K], frozen=True, kw_only=True):
    """One item of a merged ranking, and why it stands where it stands."""

    item: K
    score: float
    """The sum of the points; comparable within one fusion only."""
    parts: Mapping[str, Part]
    """By the name of each ranking that found the item."""


def fuse(
    rankings: Mapping[str, Ranking[K]], wholes: Mapping[K, tuple[Hashable, int]] | None = None
) -> list[Fused[K]]:
    """Merge rankings by how far items stand out in each, best first.

    The scores of what does not answer a query fall off exponentially near the top (Manmatha, Rath
    and Feng, "Modeling Score Distributions for Combining the Outputs of Search Engines", SIGIR
    2001; for any tail: Pickands, "Statistical Inference Using Extreme Order Statistics", 1975). The
    scores behind the first few give the scale of that fall, and the distance to the last of the
    first `DEPTH`, divided by the scale, is the evidence for an item: the logarithm of how unlikely
    its score is by chance. A ranking that knows nothing has no item that stands out, and so little
    to say about this query, whatever it has to say about others.

    An item gets, from every ranking, ``weight * (evidence + 1 / (60 + rank))``. The second term
    only keeps the order of what does not stand out; it is the whole of reciprocal rank fusion
    (Cormack, Clarke and Büttcher, SIGIR 2009), which therefore remains where nothing does.

    Where an item is a part of a whole, a share of its evidence is the mean of that of the best
    parts of the whole, of which those that a ranking does not list have none.

    Args:
        rankings: By name.
        wholes: Of an item that is a part, what it is a part of, and how many parts that has, of
            which more than `MOST_PARTS` count as so many.

    Raises:
        ValueError: A weight is negative or not finite, or a score is not finite.
    """
    parts: dict[K, dict[str, Part]] = {}
    for name, ranking in sorted(rankings.items()):
        if not 0 <= ranking.weight < math.inf:
            raise ValueError(f"the weight of {name!r} must be 0 or more, found {ranking.weight}")
        if not all(math.isfinite(score) for _, score in ranking.scored):
            raise ValueError(f"a score of {name!r} is not finite")
        if ranking.weight > 0:
            for item, part in _parts(ranking, wholes or {}):
                parts.setdefault(item, {})[name] = part
    fused = [
        # fsum rounds once, so that mirrored places tie exactly whatever the number of rankings.
        Fused(item=item, score=math.fsum(part.points for part in found.values()), parts=found)
        for item, found in parts.items()
    ]
    fused.sort(key=lambda one: one.item)
    fused.sort(key=lambda one: one.score, reverse=True)
    return fused


def _parts(ranking: Ranking[K], wholes: Mapping[K, tuple[Hashable, int]]) -> list[tuple[K, Part]]:
    best: dict[K, float] = {}
    for item, score in ranking.scored:
        best[item] = max(score, best.get(item, score))
    scored = sorted(best.items(), key=lambda pair: pair[1], reverse=True)
    threshold, scale = _crowd([score for _, score in scored], ranking.floor, ranking.clear)
    stands_out = [max(0.0, score - threshold) / scale if scale > 0 else 0.0 for _, score in scored]
    together: dict[Hashable, list[float]] = {}
    for (item, _), own in zip(scored, stands_out, strict=True):
        if item in wholes:
            together.setdefault(wholes[item][0], []).append(own)
    found: list[tuple[K, Part]] = []
    rank, before = 1, math.inf
    for place, ((item, score), evidence) in enumerate(zip(scored, stands_out, strict=True), 1):
        if score < before:
            rank, before = place, score
        if item in wholes:
            whole, count = wholes[item]
            count = min(count, MOST_PARTS)
            mean = math.fsum(together[whole][:count]) / count
            evidence = (1 - _WHOLE_SHARE) * evidence + _WHOLE_SHARE * mean
        points = ranking.weight * (evidence + 1 / (_RANK_CONSTANT + rank))
        found.append((item, Part(rank=rank, score=score, evidence=evidence, points=points)))
    return found


def _crowd(scores: Sequence[float], floor: float | None, clear: float) -> tuple[float, float]:
    """The score where evidence begins, and how much more of it makes one unit of evidence."""
    if not scores:
        return 0.0, 0.0
    top = scores[:DEPTH]
    is_cut = floor is None or len(scores) >= DEPTH
    threshold = top[-1] if is_cut or floor is None else min(floor, top[-1])
    height = top[0] - threshold
    if not is_cut or len(top) < _FEWEST:
        return threshold, height / (_CLEAR * clear) if clear > 0 else 0.0
    behind = top[_LEADERS:]
    # The mean excess is the maximum-likelihood scale of an exponential tail.
    return threshold, max(math.fsum(behind) / len(behind) - threshold, height / _MOST)
