"""The index of a store of ordinary size: FAISS, exact, ids through IndexIDMap2."""

import contextlib
from typing import TYPE_CHECKING, Any, Final

from filestore.index._faiss_file import FaissBacked, one_thread
from filestore.index.base import Where, best_first

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

_SPARE: Final = 8
"""Neighbours fetched beyond what was asked, so that ties at the end are seen."""


class FaissIndex(FaissBacked):
    """Flat inner product under an id map."""

    def __init__(self, dimension: int, *, loaded: Any = None) -> None:
        import faiss

        super().__init__(dimension, loaded or faiss.IndexIDMap2(faiss.IndexFlatIP(dimension)))

    def ids(self) -> "NDArray[int64]":
        """See the contract."""
        import faiss
        import numpy

        held: NDArray[int64] = faiss.vector_to_array(self._index.id_map).astype(numpy.int64)
        return numpy.sort(held)

    def holds(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See the contract."""
        import numpy

        self._check(ids, vectors)
        with contextlib.suppress(RuntimeError):  # FAISS's way of saying that it lacks one of them
            return numpy.asarray((self.vectors_of(ids) == vectors).all(axis=1))
        same = numpy.zeros(len(ids), dtype=numpy.bool_)
        for row, identifier in enumerate(ids.tolist()):
            try:
                same[row] = (self._index.reconstruct(identifier) == vectors[row]).all()
            except RuntimeError:  # FAISS's way of saying that it has no such id
                continue
        return same

    def vectors_of(self, ids: "NDArray[int64]") -> "NDArray[float32]":
        """The vectors of ids that are held: (n, dimension) float32.

        Raises:
            RuntimeError: One of them is not held.
        """
        import numpy

        held: NDArray[float32] = self._index.reconstruct_batch(numpy.ascontiguousarray(ids))
        return held

    def search(
        self,
        vector: "NDArray[float32]",
        count: int,
        *,
        allowed: "NDArray[int64] | None" = None,
        where: Where = (),
    ) -> list[tuple[int, float]]:
        """See the contract."""
        import faiss
        import numpy

        available = len(self) if allowed is None else min(len(self), len(allowed))
        if count < 1 or available == 0:
            return []
        parameters = None
        if allowed is not None:
            # The stubs describe the C++ signature, which takes no selector.
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))  # type: ignore[call-arg]
        fetched = min(available, count + _SPARE)
        while True:
            with one_thread():
                scores, ids = self._index.search(vector.reshape(1, -1), fetched, params=parameters)
            # FAISS fills up with the id -1, which may be held, and this score, which no hit has.
            found = scores[0] > numpy.finfo(numpy.float32).min
            hits = best_first(ids[0][found], scores[0][found])
            # The order among equals is ours only if none of them was left behind.
            if fetched >= available or len(hits) < fetched or hits[-1][1] < hits[count - 1][1]:
                return hits[:count]
            fetched = min(available, fetched * 4)
