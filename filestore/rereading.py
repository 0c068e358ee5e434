"""Every catalogued file read again: which ones do not hash to what was recorded.

One rule: bytes that have the recorded hash are the recorded bytes, whenever they were read and
whatever the stats say. Every other file is only named here, and looked at by whoever asks.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Final

from xxhash import xxh3_128_digest

from filestore import fileio
from filestore.sharing import MOST_BLOCKS, shared

Recorded = tuple[bytes, bytes]
"""Path below the root as it is on disk, and the xxh3_128 of the bytes that were recorded."""

_AT_ONCE: Final = 512
"""Files of one folder that are read with its handle open."""
_READ: Final = 1 << 16
"""Nearly every file is read in one call, and its size need not be asked first."""
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@contextlib.contextmanager
def differing(
    root: str,
    files: Iterable[Recorded],
    *,
    processes: int,
    on_share: Callable[[float], None],
    on_unlike: Callable[[Sequence[str]], None] = lambda _: None,
) -> Iterator[Callable[[], list[str]]]:
    """Begin to read files and hold them against their hashes.

    Args:
        root: The folder that the paths are relative to.
        files: What is to be read; neighbours of one folder together.
        processes: 2 lets a forked child read while this process does something else; only for a
            process without threads.
        on_share: Told which share has been begun, by this process alone.
        on_unlike: Told which paths of a block differ, where any do and this process read it.

    Yields:
        What reads on, and gives the paths of all that differ or cannot be read, in order.
    """
    pieces = list(_pieces(files))
    if not pieces:
        yield list
        return
    size = -(-len(pieces) // MOST_BLOCKS)
    blocks = [pieces[start : start + size] for start in range(0, len(pieces), size)]
    own = os.getpid()

    def read(number: int) -> list[str]:
        """The paths of one block that differ."""
        if os.getpid() == own:
            on_share(number / len(blocks))
        unlike = (_unlike(tree, folder, some) for folder, some in blocks[number])
        paths = [os.fsdecode(path) for path in chain.from_iterable(unlike)]
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


def _unlike(root: int, folder: bytes, files: Sequence[Recorded]) -> list[bytes]:
    try:
        with fileio.folder(root, os.fsdecode(folder)) as handle:
            start = len(folder) + 1 if folder else 0
            return [path for path, known in files if _hash(handle, path[start:]) != known]
    except OSError:
        return [path for path, _ in files]


def _hash(handle: int, name: bytes) -> bytes:
    """The hash of what can be read under a name without waiting for anybody; empty for nothing."""
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=handle)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, _READ)
        if len(data) == _READ:
            data += b"".join(iter(lambda: os.read(descriptor, 16 * _READ), b""))
        return xxh3_128_digest(data)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
