"""FAISS indexes to and from files.

FAISS keeps no checksum and loads a damaged file in silence, or hangs: `read` must only be given a
file whose hash was checked.
"""

import os
from typing import Any

from filestore.errors import FilestoreError


class IndexDamagedError(FilestoreError):
    """A FAISS file does not hold what it should."""


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
        raise damaged(path, "FAISS cannot read it", str(error)) from error


def write(index: Any, path: str) -> None:
    """Write an index to a new file and sync it.

    Raises:
        OSError: The disk refused.
    """
    import faiss

    try:
        faiss.write_index(index, path)
    except RuntimeError as error:
        raise OSError(f"FAISS cannot write {path}: {error}") from error
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def damaged(path: str, message: str, detail: str = "") -> IndexDamagedError:
    """Say what is wrong with a file."""
    return IndexDamagedError(
        f"{os.path.basename(path)}: {message}", remedy="filestore sync", detail=detail
    )
