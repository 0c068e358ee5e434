"""The index of a store of ordinary size: FAISS, exact, ids through IndexIDMap2.

And what every index of FAISS needs: its file, its changes, its threads. FAISS keeps no checksum and
loads a damaged file in silence, or hangs: `read` must only be given a file whose hash was checked.
"""

import contextlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from filestore.fs import part
from filestore.fs.disk import pass_hidden_limits
from filestore.fs.path_names import in_utf8
from filestore.index import HeldIndex, IndexDamagedError, Where, best_first

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

_SPARE: Final = 8
"""Neighbours fetched beyond what was asked, so that ties at the end are seen."""
_HEADER: Final = struct.Struct("<4siqqq?i")
"""Of every index in a file: kind, dimension, count, two numbers for nothing, trained, metric."""


class FaissBacked(HeldIndex):
    """What all indexes of FAISS do alike."""

    def __init__(self, dimension: int, index: Any) -> None:
        super().__init__(dimension)
        self._index = index

    def write(self, path: str) -> None:
        """Write the index to a new file and sync it.

        Raises:
            OSError: The disk refused.
        """
        import faiss

        try:
            # What FAISS itself cannot write at the end of a file, it only prints.
            writer: Any = vars(faiss)["PyCallbackIOWriter"]
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with open(part.open_file(path, flags, mode=0o644), "wb") as file:
                faiss.write_index(self._index, writer(file.write))
                file.flush()
                os.fsync(file.fileno())
        except RuntimeError as error:
            pass_hidden_limits(error)
            raise OSError(f"FAISS cannot write {path}: {error}") from error

    def serialized(self) -> bytes:
        """The bytes that `write` puts into a file."""
        import faiss

        return bytes(faiss.serialize_index(self._index).data)

    def __len__(self) -> int:
        return int(self._index.ntotal)

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


@contextmanager
def one_thread() -> Iterator[None]:
    """Search for a single query on this thread alone; FAISS has as many as before afterwards.

    It waits for memory, not for the processor, so that more threads win next to nothing, and on a
    machine with other work they spin until the last of them had its turn: 54 ms instead of 1.3
    among 10,000 vectors.
    """
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def read(path: str, *, mapped: bool = False) -> Any:
    """The index in a file that `write` made and whose hash was checked.

    Args:
        path: Where it is.
        mapped: Leave the vectors in the file, which then costs nothing to open; such an index
            cannot be changed.

    Raises:
        IndexDamagedError: It is no such file.
    """
    import faiss

    # The stubs do not know the flag.
    flags = faiss.IO_FLAG_MMAP_IFC if mapped else 0  # type: ignore[attr-defined,unused-ignore]
    try:
        with in_utf8(path) as spelled:
            return faiss.read_index(spelled, flags)
    except (RuntimeError, MemoryError) as error:
        pass_hidden_limits(error)
        raise damaged(path, "FAISS cannot read it", str(error)) from error


def flat_parts(data: bytes) -> "tuple[NDArray[int64], NDArray[float32]] | None":
    """Ids and vectors in bytes that `serialized` gave of an exact index; None in any others.

    Read without FAISS: the writer of a file wrote the hash of it as well, so a hash that is right
    says nothing of what FAISS would do with the bytes.
    """
    import numpy

    if len(data) < 2 * _HEADER.size + 8:
        return None
    outer, dimension, count, *_ = _HEADER.unpack_from(data)
    inner, of_inner, in_inner, *_ = _HEADER.unpack_from(data, _HEADER.size)
    if (outer, inner) != (b"IxM2", b"IxFI") or (of_inner, in_inner) != (dimension, count):
        return None
    start = 2 * _HEADER.size + 8
    end = start + 4 * count * dimension
    if count < 0 or dimension < 1 or len(data) != end + 8 + 8 * count:
        return None
    numbers = int.from_bytes(data[start - 8 : start], "little")
    if numbers != count * dimension or int.from_bytes(data[end : end + 8], "little") != count:
        return None
    vectors = numpy.frombuffer(data, "<f4", count * dimension, start).reshape(count, dimension)
    ids = numpy.frombuffer(data, "<i8", count, end + 8)
    return ids.astype(numpy.int64), vectors.astype(numpy.float32)


def damaged(path: str, message: str, detail: str = "") -> IndexDamagedError:
    """Say what is wrong with a file."""
    return IndexDamagedError(
        f"{os.path.basename(path)}: {message}", remedy="filestore sync", detail=detail
    )


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
