"""The choice of an index for a store's vectors: exact, or trained and tuned where that wins.

Reads the vectors from wherever they are kept, in blocks, and says what it made. A large store has
vectors in lists around trained centres, 8 bits a number. A search looks into the lists nearest to
the query (`probes` of them), takes more candidates than asked, and scores these again with the
embeddings as they were stored. So a score is exact, and what can go wrong is only that a neighbour
lies in a list that was not looked into.

How many lists are looked into is tuned, and nothing is assumed of the data: neighbours found are
compared with exact ones of the same vectors. Work is counted, not timed: the same vectors get the
same index on a busy machine.
"""

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from filestore.index import Description, HeldIndex, VectorsOf, VectorSource, Where, best_first
from filestore.index.faiss_index import FaissBacked, FaissIndex, one_thread

if TYPE_CHECKING:
    from numpy import bool_, float32, int64, intp, uint8
    from numpy.typing import NDArray


SPARE: Final = 32
"""Candidates beyond what was asked, at least: 8 bits may order near ones wrongly."""
_MOST_CANDIDATES: Final = 4096
"""How many equal scores are ordered by id; more would be slow to score again."""
_CALIBRATED_COUNT: Final = 10
"""The number of neighbours for which `probes` is measured; more lie in more lists."""
_ROUNDS: Final = 8
"""Of the clustering; further ones move centres hardly."""
_SEED: Final = 20_240_229
_CENTRE_TOLERANCE: Final = 1e-4
"""Two centres so nearly as close to a vector are one as good as the other: sums of 32-bit floats
depend on how many vectors are assigned at once."""
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
"""Added to a vector of length 1: the cosine to it is then about 0.95, 0.75 and 0.6, as of
a repetition, a good and a vague question."""
_MIXED_IN: Final = 0.75
_KINDS: Final = len(_NOISE) + 1
ASKED: Final = 58
"""Neighbours that a search by words and vectors together asks for."""
_CANDIDATE: Final = 200
"""What scoring a candidate again costs, in vectors compared: it is fetched out of SQLite."""
_QUERY_SEED: Final = 7


def candidates_for(count: int) -> int:
    """How many candidates are scored again to find some neighbours."""
    return count + max(SPARE, count)


class _Places(NamedTuple):
    """Where each id is, by ascending id."""

    ids: "NDArray[int64]"
    lists: "NDArray[int64]"
    rows: "NDArray[int64]"
    """Within the list."""
    codes: "list[NDArray[uint8]]"
    """Of each list: (rows, code size)."""

    def find(self, ids: "NDArray[int64]") -> "tuple[NDArray[intp], NDArray[bool_]]":
        """Where ids are here, anywhere for unknown ones, and which are known."""
        import numpy

        at = numpy.minimum(numpy.searchsorted(self.ids, ids), len(self.ids) - 1)
        return at, self.ids[at] == ids


class ApproximateIndex(FaissBacked):
    """Inverted lists of vectors cut to 8 bits a number, for inner product."""

    has_lists = True

    def __init__(self, loaded: Any, vectors_of: "VectorsOf") -> None:
        """Use a trained FAISS index.

        Args:
            loaded: A trained `IndexIVFScalarQuantizer` as `train` makes it.
            vectors_of: Gives the embeddings with which candidates are scored again.
        """
        super().__init__(loaded.d, loaded)
        self._vectors_of = vectors_of
        self._places: _Places | None = None

    @classmethod
    def train(
        cls, sample: "NDArray[float32]", lists: int, vectors_of: "VectorsOf"
    ) -> "ApproximateIndex":
        """An empty index whose centres and number ranges fit a sample; same sample, same index.

        Args:
            sample: (n, dimension) float32, rows of length 1; at least as many as lists.
            lists: How many centres to find.
            vectors_of: See the constructor.
        """
        import faiss

        dimension = sample.shape[1]
        kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        centres = faiss.IndexFlatIP(dimension)
        # Without residuals a code depends on the vector alone, so that it can be checked.
        index: Any = faiss.IndexIVFScalarQuantizer(centres, dimension, lists, kind, metric, False)
        index.cp.niter, index.cp.seed, index.cp.spherical = _ROUNDS, _SEED, True
        index.cp.min_points_per_centroid = 1
        index.cp.max_points_per_centroid = max(1, -(-len(sample) // lists))
        index.train(sample)
        index.nprobe = lists
        return cls(index, vectors_of)

    @property
    def lists(self) -> int:
        """How many lists there are."""
        return int(self._index.nlist)

    @property
    def probes(self) -> int:
        """How many lists a search for ten neighbours looks into."""
        return int(self._index.nprobe)

    @probes.setter
    def probes(self, probes: int) -> None:
        self._index.nprobe = probes

    def ids(self) -> "NDArray[int64]":
        """See the contract."""
        return self._located().ids

    def holds(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See the contract. A vector must also be in the list of its centre, or none finds it."""
        import numpy

        held = self.holds_codes(ids, vectors)
        places = self._located()
        if not len(ids) or not len(places.ids):
            return held
        at, present = places.find(ids)
        closeness = vectors @ self._index.quantizer.reconstruct_n(0, self.lists).T
        own = closeness[numpy.arange(len(ids)), places.lists[at]]
        well: NDArray[bool_] = own >= closeness.max(axis=1) - _CENTRE_TOLERANCE
        return held & (well | ~present)

    def holds_codes(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See the contract."""
        import numpy

        self._check(ids, vectors)
        places = self._located()
        if not len(ids) or not len(places.ids):
            return numpy.zeros(len(ids), dtype=numpy.bool_)
        at, present = places.find(ids)
        held = [
            places.codes[number][row]
            for number, row in zip(places.lists[at].tolist(), places.rows[at].tolist(), strict=True)
        ]
        expected = self._index.sq.compute_codes(numpy.ascontiguousarray(vectors))
        # Joined as bytes: to gather that many rows one by one costs numpy far more.
        codes = numpy.frombuffer(b"".join(held), numpy.uint8).reshape(expected.shape)
        same: NDArray[bool_] = (codes == expected).all(axis=1)
        same &= present
        return same

    def _located(self) -> _Places:
        import faiss
        import numpy

        if self._places is not None:
            return self._places
        lists = self._index.invlists
        sizes = [lists.list_size(number) for number in range(self.lists)]
        ids = [
            faiss.rev_swig_ptr(lists.get_ids(number), size) if size else ()
            for number, size in enumerate(sizes)
        ]
        codes = [
            faiss.rev_swig_ptr(lists.get_codes(number), size * lists.code_size).reshape(size, -1)
            if size
            else numpy.empty((0, lists.code_size), dtype=numpy.uint8)
            for number, size in enumerate(sizes)
        ]
        held = numpy.concatenate([numpy.asarray(some, dtype=numpy.int64) for some in ids])
        rows = numpy.concatenate([numpy.arange(size, dtype=numpy.int64) for size in sizes])
        order = numpy.argsort(held, kind="stable")
        owners = numpy.repeat(numpy.arange(self.lists, dtype=numpy.int64), sizes)
        self._places = _Places(held[order], owners[order], rows[order], codes)
        return self._places

    def add(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """See the contract."""
        self._places = None
        super().add(ids, vectors)

    def remove(self, ids: "NDArray[int64]") -> int:
        """See the contract."""
        self._places = None
        return super().remove(ids)

    def search(
        self,
        vector: "NDArray[float32]",
        count: int,
        *,
        allowed: "NDArray[int64] | None" = None,
        where: Where = (),
    ) -> list[tuple[int, float]]:
        """See the contract."""
        available = len(self) if allowed is None else min(len(self), len(allowed))
        if count < 1 or available == 0:
            return []
        candidates = self._candidates(vector, count, available, allowed)
        # Candidates by exact inner product; where an embedding is lost its estimate is kept.
        import numpy

        ids = numpy.array([identifier for identifier, _ in candidates], dtype=numpy.int64)
        scores = numpy.array([score for _, score in candidates], dtype=numpy.float32)
        vectors, found = self._vectors_of(ids)
        if found.any():
            # Row by row, so that equal vectors score equally wherever they are.
            scores[found] = numpy.einsum("ij,j->i", vectors[found], vector)
        return best_first(ids, scores)[:count]

    def _candidates(
        self,
        vector: "NDArray[float32]",
        count: int,
        available: int,
        allowed: "NDArray[int64] | None",
    ) -> list[tuple[int, float]]:
        """Ids and estimated scores, best first, enough to find `count` among them."""
        fetched = min(available, candidates_for(count))
        probes = self._probes_for(count, available)
        while True:
            with one_thread():
                ids, scores = self.estimates(
                    vector.reshape(1, -1), fetched, probes=probes, allowed=allowed
                )
            found = ids[0] >= 0
            hits = best_first(ids[0][found], scores[0][found])
            if len(hits) < fetched and probes < self.lists:
                probes = min(self.lists, probes * 4)
                continue
            whole = len(hits) < fetched or fetched >= min(available, _MOST_CANDIDATES)
            # The order among equals is ours only if none of them was left behind.
            if whole or hits[-1][1] < hits[count - 1][1]:
                return hits
            fetched = min(available, fetched * 4)

    def _probes_for(self, count: int, available: int) -> int:
        """More lists for more neighbours, and for neighbours that few lists have."""
        more = max(1.0, count / _CALIBRATED_COUNT) ** 0.5 * len(self) / available
        return int(min(self.lists, round(self.probes * more)))

    def list_ranks(self, queries: "NDArray[float32]", ids: "NDArray[int64]") -> "NDArray[int64]":
        """How many lists are looked into before the ones that hold some ids.

        Args:
            queries: (n, dimension) float32.
            ids: (n, k) int64, some of each query.

        Returns:
            (n, k) int64; the number of lists for ids that are not held.
        """
        import numpy

        places = self._located()
        if not len(places.ids):
            return numpy.full(ids.shape, self.lists, dtype=numpy.int64)
        at, present = places.find(ids)
        closeness = queries @ self._index.quantizer.reconstruct_n(0, self.lists).T
        own = numpy.take_along_axis(closeness, places.lists[at], axis=1)
        closer = (closeness[:, None, :] > own[:, :, None]).sum(axis=2, dtype=numpy.int64)
        return numpy.where(present, closer, self.lists)

    def codes_compared(self, queries: "NDArray[float32]", count: int) -> float:
        """How many codes a search for that many neighbours is compared with, on average.

        Args:
            queries: (n, dimension) float32.
            count: The number of neighbours.
        """
        import numpy

        lists = self._index.invlists
        sizes = numpy.array([lists.list_size(number) for number in range(self.lists)])
        probes = self._probes_for(count, len(self)) if len(self) else self.lists
        _, nearest = self._index.quantizer.search(numpy.ascontiguousarray(queries), probes)
        return float(sizes[nearest].sum(axis=1).mean())

    def estimates(
        self,
        vectors: "NDArray[float32]",
        count: int,
        *,
        probes: int,
        allowed: "NDArray[int64] | None" = None,
    ) -> "tuple[NDArray[int64], NDArray[float32]]":
        """What the shortened vectors say: ids, -1 where there is none, and scores; (n, count)."""
        import faiss

        # The stubs describe the C++ signature, which takes nothing.
        selector = None if allowed is None else faiss.IDSelectorBatch(allowed)
        parameters = faiss.SearchParametersIVF(nprobe=probes, sel=selector)  # type: ignore[call-arg]
        scores, ids = self._index.search(vectors, count, params=parameters)
        return ids, scores


def lists_for(count: int) -> int:
    """How many lists for that many vectors."""
    return max(1, round(_LISTS_PER_ROOT * math.sqrt(count)))


def sample_size(count: int) -> int:
    """How many of some vectors to train with."""
    return min(count, _SAMPLE_PER_LIST * lists_for(count))


def queries_near(vectors: "NDArray[float32]") -> "NDArray[float32]":
    """Made-up queries kind by kind: near, far, farther, and between two vectors.

    Args:
        vectors: (n, dimension) float32, rows of length 1.

    Returns:
        (4n, dimension) float32, rows of length 1; the same for the same vectors.
    """
    import numpy

    generator = numpy.random.default_rng(_QUERY_SEED)
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


_OUTGROWN: Final = 2
"""Trained again when the vectors are several times as many, or as few, as at training."""
_STILL: Final = 1.5
"""Lists that there are may cost several times what new ones may, so that an index does not turn
back and forth."""


class Limits(Struct, frozen=True, kw_only=True):
    """Where lists begin to win over comparing all vectors."""

    exact_up_to: int = 50_000
    """Vectors that are compared one and all in some milliseconds: lists are not tried."""
    work: float = 0.5
    """The share of comparing all vectors that a search with lists may cost."""


class Built(Struct, frozen=True, kw_only=True):
    """An index to be written, and what it is."""

    index: FaissIndex | ApproximateIndex
    description: Description


class Grown(Struct, frozen=True, kw_only=True):
    """An index that was updated without training."""

    index: HeldIndex
    trained_on: int


def build(
    source: VectorSource,
    *,
    grown: Grown | None = None,
    tried: Description | None = None,
    limits: Limits | None = None,
) -> Built:
    """Make the index of some vectors.

    Args:
        source: The vectors.
        grown: An index that holds just these vectors, used if it still serves them well.
        tried: The exact index that there is of such vectors: lists are not tried again before it is
            outgrown.
        limits: Where lists begin to win; None for the usual ones.
    """
    limits = limits or Limits()
    if len(source) <= limits.exact_up_to:
        return _exact(source)
    if tried is not None and is_current(len(source), tried.trained_on or 0):
        return _exact(source, tried)
    built, most = None, limits.work
    if grown is not None and is_current(len(source), grown.trained_on):
        built, most = _renewed(source, grown), limits.work * _STILL
    if built is None or built.description.work is None:
        built, most = _trained(source), limits.work
    if built is None:
        return _exact(source)
    work = built.description.work
    return built if work is not None and work <= most else _exact(source, built.description)


def is_current(count: int, trained_on: int) -> bool:
    """Whether lists made for that many vectors fit the number there is now."""
    return trained_on / _OUTGROWN <= count <= trained_on * _OUTGROWN


def _exact(source: VectorSource, tried: Description | None = None) -> Built:
    """All vectors, and what was measured of lists where these were tried."""
    index = FaissIndex(source.dimension)
    for ids, vectors in source.blocks():
        index.add(ids, vectors)
    measured = tried or Description(kind="exact", vectors=0)
    return Built(index=index, description=replace(measured, kind="exact", vectors=len(index)))


def _trained(source: VectorSource) -> Built | None:
    """An index with new lists; None where there is nothing to train with."""
    sample = source.sample(sample_size(len(source)))
    lists = min(lists_for(len(source)), len(sample))
    if lists == 0:
        return None
    index = ApproximateIndex.train(sample, lists, source.vectors_of)
    del sample
    judge = Judge(queries_near(source.sample(QUERIES_A_KIND)))
    for ids, vectors in source.blocks():
        index.add(ids, vectors)
        judge.take(ids, vectors)
    return _tuned(index, judge, len(index))


def _renewed(source: VectorSource, grown: Grown) -> Built | None:
    """The grown index, tuned again, with the rows replaced whose embedding is another now."""
    index, stale = grown.index, []
    if not isinstance(index, ApproximateIndex):
        return None
    judge = Judge(queries_near(source.sample(QUERIES_A_KIND)))
    for ids, vectors in source.blocks():
        judge.take(ids, vectors)
        differs = ~index.holds_codes(ids, vectors)
        if differs.any():
            stale.append((ids[differs], vectors[differs]))
    for ids, vectors in stale:
        index.add(ids, vectors)
    return _tuned(index, judge, grown.trained_on)


def _tuned(index: ApproximateIndex, judge: Judge, trained_on: int) -> Built:
    """The index tuned, and what was measured; its work is None where it does not find enough."""
    recall = tune(index, judge)
    description = Description(
        kind="approximate",
        vectors=len(index),
        lists=index.lists,
        probes=index.probes,
        recall=None if recall is None else round(recall, 4),
        trained_on=trained_on,
        work=None if recall is None else round(work(index, judge.queries), 3),
    )
    return Built(index=index, description=description)
