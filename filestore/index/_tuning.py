"""How an approximate index is trained, how many of its lists are looked into, what that costs.

Nothing is assumed of the data: neighbours found are held against exact ones of the same vectors.
Work is counted, not timed: the same vectors get the same index on a busy machine.
"""

import math
from typing import TYPE_CHECKING, Final

from filestore.index._approximate import SPARE, ApproximateIndex, candidates_for

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

NEIGHBOURS: Final = 10
AIM: Final = 0.99
"""Recall on made-up queries; that real ones get 0.98 takes a margin."""
QUERIES_A_KIND: Final = 128
_LISTS_PER_ROOT: Final = 2.0
"""Lists by the square root of the number of vectors: about as much work to choose lists as to look
into some of them, and training stays cheap."""
_SAMPLE_PER_LIST: Final = 32
_FEWEST_PROBES: Final = 4
_STEP: Final = 1.2
_NOISE: Final = (0.33, 0.88, 1.33)
"""Of length, beside a vector of length 1: the cosine to it is then about 0.95, 0.75 and 0.6, as of
a repetition, a good and a vague question."""
_MIXED_IN: Final = 0.75
_KINDS: Final = len(_NOISE) + 1
ASKED: Final = 58
"""Neighbours that a search by words and vectors together asks for."""
_CANDIDATE: Final = 200
"""What scoring a candidate again costs, in vectors compared: it is fetched out of SQLite."""
_SEED: Final = 7


def lists_for(count: int) -> int:
    """How many lists for so many vectors."""
    return max(1, round(_LISTS_PER_ROOT * math.sqrt(count)))


def sample_size(count: int) -> int:
    """How many of so many vectors to train with."""
    return min(count, _SAMPLE_PER_LIST * lists_for(count))


def queries_near(vectors: "NDArray[float32]") -> "NDArray[float32]":
    """Made-up queries kind by kind: near, far, farther, and between two vectors.

    Args:
        vectors: (n, dimension) float32, rows of length 1.

    Returns:
        (4n, dimension) float32, rows of length 1; the same for the same vectors.
    """
    import numpy

    generator = numpy.random.default_rng(_SEED)
    noise = generator.standard_normal(vectors.shape, dtype=numpy.float32)
    noise /= numpy.linalg.norm(noise, axis=1, keepdims=True)
    kinds = [vectors + strength * noise for strength in _NOISE]
    kinds.append(vectors + _MIXED_IN * numpy.roll(vectors, 1, axis=0))
    queries: NDArray[float32] = numpy.concatenate(kinds)
    lengths = numpy.linalg.norm(queries, axis=1, keepdims=True)
    queries /= numpy.maximum(lengths, numpy.finfo(numpy.float32).tiny)
    return queries


class Judge:
    """The exact nearest neighbours of some queries among vectors that pass in blocks."""

    def __init__(self, queries: "NDArray[float32]") -> None:
        import numpy

        self.queries = queries
        self._ids: NDArray[int64] = numpy.empty((len(queries), 0), dtype=numpy.int64)
        self._scores: NDArray[float32] = numpy.empty((len(queries), 0), dtype=numpy.float32)

    def take(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """See another block: (n,) int64 and (n, dimension) float32."""
        import faiss
        import numpy

        if not len(ids):
            return
        best = min(NEIGHBOURS, len(ids))
        scores, rows = faiss.knn(self.queries, vectors, best, metric=faiss.METRIC_INNER_PRODUCT)
        all_scores = numpy.concatenate([self._scores, scores], axis=1)
        all_ids = numpy.concatenate([self._ids, ids[rows]], axis=1)
        order = numpy.argsort(-all_scores, axis=1, kind="stable")[:, :NEIGHBOURS]
        self._scores = numpy.take_along_axis(all_scores, order, axis=1)
        self._ids = numpy.take_along_axis(all_ids, order, axis=1)

    def nearest(self) -> "NDArray[int64]":
        """The ids of the nearest so far, best first: (queries, up to ten)."""
        return self._ids

    def recall(self, index: ApproximateIndex, probes: int) -> float:
        """The share of the exact neighbours an index finds, of the kind of queries it finds worst.

        Candidates are scored again exactly, so a neighbour among them is a neighbour found.
        """
        import numpy

        candidates, _ = index.estimates(self.queries, NEIGHBOURS + SPARE, probes=probes)
        found = (self._ids[:, :, None] == candidates[:, None, :]).any(axis=2).mean(axis=1)
        return float(numpy.mean(found.reshape(_KINDS, -1), axis=1).min())


def tune(index: ApproximateIndex, judge: Judge) -> float | None:
    """Set the fewest probes with which an index finds what it should.

    Returns:
        The recall with them; None where not even all lists give it.
    """
    import numpy

    ranks = index.list_ranks(judge.queries, judge.nearest()).reshape(_KINDS, -1)
    last = math.ceil(AIM * ranks.shape[1]) - 1
    probes = int(numpy.sort(ranks, axis=1)[:, last].max()) + 1
    probes = min(max(probes, _FEWEST_PROBES), index.lists)
    # The lists are the right ones here; what 8 bits blur shows only in a search.
    while (recall := judge.recall(index, probes)) < AIM:
        if probes == index.lists:
            return None
        probes = min(index.lists, math.ceil(probes * _STEP))
    index.probes = probes
    return recall


def work(index: ApproximateIndex, queries: "NDArray[float32]") -> float:
    """What a search of a tuned index costs, as a share of comparing all its vectors.

    Args:
        index: With its probes set.
        queries: (n, dimension) float32.

    Returns:
        Centres and codes compared and candidates scored again, in vectors compared, by the number
        of vectors; the mean over the queries. A code counts as a vector: how much less it costs
        depends on the processor.
    """
    candidates = min(len(index), candidates_for(ASKED))
    compared = index.lists + index.codes_compared(queries, ASKED) + _CANDIDATE * candidates
    return compared / max(1, len(index))
