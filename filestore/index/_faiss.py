"""The default index: FAISS, exact, ids through IndexIDMap2.

FAISS keeps no checksum and loads a damaged file in silence, or hangs: `read` must only be given a
file whose hash was checked.
"""

import os
from typing import TYPE_CHECKING, Any, Final

from filestore.errors import FilestoreError
from filestore.index.base import VectorIndex, best_first

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

_SPARE: Final = 8
"""Neighbours fetched beyond what was asked, so that ties at the end are seen."""


class IndexDamagedError(FilestoreError):
    """A FAISS file does not hold what it should."""


class FaissIndex(VectorIndex):
    """Flat inner product under an id map."""

    def __init__(self, dimension: int, *, loaded: Any = None) -> None:
        import faiss

        super().__init__(dimension)
        self._index: Any = loaded or faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))

    @classmethod
    def read(cls, path: str, dimension: int) -> "FaissIndex":
        """Load a file that `write` made and whose hash was checked.

        Raises:
            IndexDamagedError: It is no such file.
        """
        import faiss

        try:
            loaded = faiss.read_index(path)
        except (RuntimeError, MemoryError) as error:
            raise _damaged(path, "FAISS cannot read it", str(error)) from error
        if not isinstance(loaded, faiss.IndexIDMap2) or loaded.d != dimension:
            found = f"{type(loaded).__name__} of dimension {loaded.d}"
            raise _damaged(path, f"expected IndexIDMap2 of dimension {dimension}, found {found}")
        return cls(dimension, loaded=loaded)

    def write(self, path: str) -> None:
        """Write the index to a new file and sync it.

        Raises:
            OSError: The disk refused.
        """
        import faiss

        try:
            faiss.write_index(self._index, path)
        except RuntimeError as error:
            raise OSError(f"FAISS cannot write {path}: {error}") from error
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def ids(self) -> "NDArray[int64]":
        """See the contract."""
        import faiss
        import numpy

        held: NDArray[int64] = faiss.vector_to_array(self._index.id_map).astype(numpy.int64)
        return numpy.sort(held)

    def vectors(self, ids: "NDArray[int64]") -> "NDArray[float32]":
        """See the contract."""
        import numpy

        try:
            rows = [self._index.reconstruct(identifier) for identifier in ids.tolist()]
        except RuntimeError as error:
            raise KeyError(str(error)) from error
        return numpy.array(rows, dtype=numpy.float32).reshape(len(rows), self.dimension)

    def add(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> None:
        """See the contract."""
        self._check(ids, vectors)
        if not len(ids):
            return
        if len(self):
            self.remove(ids)
        self._index.add_with_ids(vectors, ids)

    def remove(self, ids: "NDArray[int64]") -> int:
        """See the contract."""
        import numpy

        return int(self._index.remove_ids(numpy.ascontiguousarray(ids))) if len(ids) else 0

    def search(
        self, vector: "NDArray[float32]", count: int, *, allowed: "NDArray[int64] | None" = None
    ) -> list[tuple[int, float]]:
        """See the contract."""
        import faiss

        available = len(self) if allowed is None else min(len(self), len(allowed))
        if count < 1 or available == 0:
            return []
        parameters = None
        if allowed is not None:
            # The stubs describe the C++ signature, which takes no selector.
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))  # type: ignore[call-arg]
        fetched = min(available, count + _SPARE)
        while True:
            scores, ids = self._index.search(vector.reshape(1, -1), fetched, params=parameters)
            found = ids[0] >= 0
            hits = best_first(ids[0][found], scores[0][found])
            # The order among equals is ours only if none of them was left behind.
            if fetched >= available or len(hits) < fetched or hits[-1][1] < hits[count - 1][1]:
                return hits[:count]
            fetched = min(available, fetched * 4)


def _damaged(path: str, message: str, detail: str = "") -> IndexDamagedError:
    return IndexDamagedError(
        f"{os.path.basename(path)}: {message}", remedy="filestore sync", detail=detail
    )
