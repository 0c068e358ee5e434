"""What every index of FAISS needs: its file, its changes, its threads.

FAISS keeps no checksum and loads a damaged file in silence, or hangs: `read` must only be given a
file whose hash was checked.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from filestore.core.errors import FilestoreError
from filestore.fs.disk import pass_hidden_limits
from filestore.index.base import VectorIndex

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray


class IndexDamagedError(FilestoreError):
    """A FAISS file does not hold what it should."""


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
            with open(path, "wb") as file:
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
        return faiss.read_index(path, flags)
    except (RuntimeError, MemoryError) as error:
        pass_hidden_limits(error)
        raise damaged(path, "FAISS cannot read it", str(error)) from error


def parse(path: str, data: bytes) -> Any:
    """The index in bytes that `serialized` gave and whose hash was checked.

    Args:
        path: Where they come from, for the message.
        data: All of the file.

    Raises:
        IndexDamagedError: They are none.
    """
    import faiss
    import numpy

    try:
        return faiss.deserialize_index(numpy.frombuffer(data, numpy.uint8))
    except (RuntimeError, MemoryError) as error:
        pass_hidden_limits(error)
        raise damaged(path, "FAISS cannot read it", str(error)) from error


def damaged(path: str, message: str, detail: str = "") -> IndexDamagedError:
    """Say what is wrong with a file."""
    return IndexDamagedError(
        f"{os.path.basename(path)}: {message}", remedy="filestore sync", detail=detail
    )
