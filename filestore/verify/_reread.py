"""Every catalogued file read again: which ones do not hash to what was recorded.

One rule: bytes that have the recorded hash are the recorded bytes, whenever they were read and
whatever the stats say. Every other file is only named here, and looked at by whoever asks.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Final

from xxhash import xxh3_128, xxh3_128_digest

from filestore.core.paths import ChunkPath
from filestore.fs import disk
from filestore.fs.fork_pool import MOST_BLOCKS, shared

Recorded = tuple[bytes, bytes]
"""Path below the root as it is on disk, and the xxh3_128 of the bytes that were recorded."""

_AT_ONCE: Final = 512
"""Files of one folder that are read with its handle open."""
_READ: Final = 1 << 16
"""Nearly every file is read in one call, and its size need not be asked first."""


@contextlib.contextmanager
def differing(
    root: str,
    files: Iterable[Recorded],
    *,
    most_bytes: int,
    processes: int,
    on_share: Callable[[float], None],
    on_unlike: Callable[[Sequence[ChunkPath]], None] = lambda _: None,
) -> Iterator[Callable[[], list[ChunkPath]]]:
    """Begin to read files and hold them against their hashes.

    Args:
        root: The folder that the paths are relative to.
        files: What is to be read; neighbours of one folder together.
        most_bytes: The largest file that is read; of a larger one nothing was recorded.
        processes: 2 lets a forked child read while this process does something else; only for a
            process without threads.
        on_share: Called with the share that was begun, by this process alone.
        on_unlike: Called with the paths of a block that differ, where this process read it.

    Yields:
        What reads on, and gives the paths of all that differ or cannot be read, in order.
    """
    pieces = list(_pieces(files))
    if not pieces or not os.access(root, os.R_OK | os.X_OK):
        yield lambda: [ChunkPath(os.fsdecode(path)) for _, some in pieces for path, _ in some]
        return
    size = -(-len(pieces) // MOST_BLOCKS)
    blocks = [pieces[start : start + size] for start in range(0, len(pieces), size)]
    own = os.getpid()

    def read(number: int) -> list[ChunkPath]:
        """The paths of one block that differ."""
        if os.getpid() == own:
            on_share(number / len(blocks))
        unlike = (_unlike(tree, folder, some, most_bytes) for folder, some in blocks[number])
        paths = [ChunkPath(os.fsdecode(path)) for path in chain.from_iterable(unlike)]
        if paths and os.getpid() == own:
            on_unlike(paths)
        return paths

    with (
        _opened(root) as tree,
        shared(len(blocks), read, processes=processes) as results,
    ):
        yield lambda: list(chain.from_iterable(results()))


@contextlib.contextmanager
def _opened(root: str) -> Iterator[int]:
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _pieces(files: Iterable[Recorded]) -> Iterator[tuple[bytes, list[Recorded]]]:
    for folder, some in groupby(files, key=lambda file: file[0].rpartition(b"/")[0]):
        while piece := list(islice(some, _AT_ONCE)):
            yield folder, piece


def _unlike(root: int, folder: bytes, files: Sequence[Recorded], most_bytes: int) -> list[bytes]:
    try:
        with disk.folder(root, os.fsdecode(folder)) as handle:
            start = len(folder) + 1 if folder else 0
            return [
                path for path, known in files if _hash(handle, path[start:], most_bytes) != known
            ]
    except OSError:
        return [path for path, _ in files]


def _hash(handle: int, name: bytes, most_bytes: int) -> bytes:
    """The hash of what can be read under a name without waiting for anybody; empty for nothing.

    What stands there is not asked: what is no regular file does not hold what was recorded.
    """
    try:
        descriptor = os.open(name, disk.READ_FLAGS, dir_fd=handle)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, _READ)
        return (
            xxh3_128_digest(data) if len(data) < _READ else _hash_on(descriptor, data, most_bytes)
        )
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _hash_on(descriptor: int, data: bytes, most_bytes: int) -> bytes:
    """The hash of a file that goes on; empty for one that is larger than what is read."""
    hashed, left = xxh3_128(data), most_bytes - len(data)
    while left >= 0 and (data := os.read(descriptor, 16 * _READ)):
        hashed.update(data)
        left -= len(data)
    return hashed.digest() if left >= 0 else b""
