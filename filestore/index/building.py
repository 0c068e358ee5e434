"""The choice of an index for a store's vectors: exact, or trained and tuned where that wins.

Reads the vectors from wherever they are kept, in blocks, and says what it made.
"""

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from filestore.index.base import Description, HeldIndex, VectorSource

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

    from filestore.index._approximate import ApproximateIndex, Judge
    from filestore.index._faiss import FaissIndex

    Block: TypeAlias = tuple[NDArray[int64], NDArray[float32]]

_OUTGROWN: Final = 2
"""Trained again when the vectors are so many times as many, or as few, as at training."""
_STILL: Final = 1.5
"""Lists that there are may cost so many times what new ones may, so that an index does not turn
back and forth."""


class Limits(Struct, frozen=True, kw_only=True):
    """Where lists begin to win over comparing all vectors."""

    exact_up_to: int = 50_000
    """Vectors that are compared one and all in some milliseconds: lists are not tried."""
    work: float = 0.5
    """The share of comparing all vectors that a search with lists may cost."""


class Built(Struct, frozen=True, kw_only=True):
    """An index to be written, and what it is."""

    index: "FaissIndex | ApproximateIndex"
    description: Description


class Grown(Struct, frozen=True, kw_only=True):
    """An index that was updated without training."""

    index: "HeldIndex"
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
    """Whether lists made for so many vectors fit the number there is now."""
    return trained_on / _OUTGROWN <= count <= trained_on * _OUTGROWN


def _exact(source: VectorSource, tried: Description | None = None) -> Built:
    """All vectors, and what was measured of lists where these were tried."""
    from filestore.index._faiss import FaissIndex

    index = FaissIndex(source.dimension)
    for ids, vectors in source.blocks():
        index.add(ids, vectors)
    measured = tried or Description(kind="exact", vectors=0)
    return Built(index=index, description=replace(measured, kind="exact", vectors=len(index)))


def _trained(source: VectorSource) -> Built | None:
    """An index with new lists; None where there is nothing to train with."""
    from filestore.index import _approximate
    from filestore.index._approximate import ApproximateIndex

    sample = source.sample(_approximate.sample_size(len(source)))
    lists = min(_approximate.lists_for(len(source)), len(sample))
    if lists == 0:
        return None
    index = ApproximateIndex.train(sample, lists, source.vectors_of)
    del sample
    judge = _judge(source)
    for ids, vectors in source.blocks():
        index.add(ids, vectors)
        judge.take(ids, vectors)
    return _tuned(index, judge, len(index))


def _renewed(source: VectorSource, grown: Grown) -> Built | None:
    """The grown index, tuned again, with the rows replaced whose embedding is another now."""
    from filestore.index._approximate import ApproximateIndex

    index, judge, stale = grown.index, _judge(source), []
    if not isinstance(index, ApproximateIndex):
        return None
    for ids, vectors in source.blocks():
        judge.take(ids, vectors)
        differs = ~index.holds_codes(ids, vectors)
        if differs.any():
            stale.append((ids[differs], vectors[differs]))
    for ids, vectors in stale:
        index.add(ids, vectors)
    return _tuned(index, judge, grown.trained_on)


def _judge(source: VectorSource) -> "Judge":
    from filestore.index import _approximate

    return _approximate.Judge(_approximate.queries_near(source.sample(_approximate.QUERIES_A_KIND)))


def _tuned(index: "ApproximateIndex", judge: "Judge", trained_on: int) -> Built:
    """The index tuned, and what was measured; its work is None where it does not find enough."""
    from filestore.index import _approximate

    recall = _approximate.tune(index, judge)
    description = Description(
        kind="approximate",
        vectors=len(index),
        lists=index.lists,
        probes=index.probes,
        recall=None if recall is None else round(recall, 4),
        trained_on=trained_on,
        work=None if recall is None else round(_approximate.work(index, judge.queries), 3),
    )
    return Built(index=index, description=description)
