"""The two ways to write where a file of a store lies, and the only place that converts them. Pure.

Both are relative and separated by "/", on every system; bytes that are not UTF-8 are surrogates.
One rule: nothing else puts `chunked/` before a path or takes it off, so that mypy finds a path of
one kind where the other is meant.
"""

from collections.abc import Iterable
from typing import Final, NewType

ChunkPath = NewType("ChunkPath", str)
"""Relative to `chunked/`; "" is the folder itself."""
StorePath = NewType("StorePath", str)
"""Relative to the store root."""

CHUNKED: Final = StorePath("chunked")
"""The folder of the chunk files."""
TOP: Final = ChunkPath("")
"""The same folder."""
NO_PATH: Final = StorePath("")


def store_path(path: ChunkPath) -> StorePath:
    """A path below `chunked/` as the contract shows it: relative to the store root."""
    return StorePath(f"{CHUNKED}/{path}" if path else CHUNKED)


def is_chunked(path: str) -> bool:
    """Whether a path, relative to the store root, lies below `chunked/`; the folder does not."""
    return path.startswith(f"{CHUNKED}/")


def chunk_path(path: StorePath) -> ChunkPath:
    """The inverse of `store_path`; a path that is not `chunked` or below it stays as it is."""
    return ChunkPath("" if path == CHUNKED else path.removeprefix(f"{CHUNKED}/"))


def chunk_paths(paths: Iterable[StorePath]) -> list[ChunkPath]:
    """Those of some paths that lie below `chunked/`, as paths below it."""
    return [chunk_path(path) for path in paths if is_chunked(path)]


def inside(folder: ChunkPath, name: str) -> ChunkPath:
    """The path of an entry of a folder."""
    return ChunkPath(f"{folder}/{name}" if folder else name)


def folder_of(path: ChunkPath) -> ChunkPath:
    """The folder that an entry lies in."""
    return ChunkPath(path.rpartition("/")[0])


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies below it: the one rule of containment.

    Compares texts, case and all, and asks no disk. Whoever must know where a path leads gives
    `os.path.realpath` of both, or a symbolic link in either is taken for what it is called.
    """
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def has_plain_names(path: str) -> bool:
    """Whether a relative path that a stranger may have written names something inside its folder.

    Every part of it has to be a name, so that it leads out neither at once nor on the way.
    """
    return "\0" not in path and {"", ".", ".."}.isdisjoint(path.split("/"))
