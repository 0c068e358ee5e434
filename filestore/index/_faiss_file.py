"""What every index of FAISS needs: its file, its changes, its threads.

FAISS keeps no checksum and loads a damaged file in silence, or hangs: `read` must only be given a
file whose hash was checked.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from filestore.fs import part
from filestore.fs.disk import pass_hidden_limits
from filestore.fs.utf8_path import in_utf8
from filestore.index.base import IndexDamagedError, VectorIndex

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray


_HEADER: Final = struct.Struct("<4siqqq?i")
"""Of every index in a file: kind, dimension, count, two numbers for nothing, trained, metric."""


class FaissBacked(VectorIndex):
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

    Read without FAISS: whoever wrote a file wrote the hash of it as well, so a hash that is right
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
