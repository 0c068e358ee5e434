"""The stats of files as they are remembered: five numbers each, packed folder by folder.

`os.stat` makes an object of some twenty values for each file, of which a walk keeps five. For a
`BulkStat` the C library writes those of many names of one folder into one buffer, and the five
columns are cut out of it. Two rules: the system call is the one that `os.lstat` makes, one for
every name; and wherever anything is out of the ordinary the answer is None, so that the caller asks
name by name.
"""

import os
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Final

from msgspec import Struct

from filestore.core.paths import ChunkPath, folder_of

STAT_FIELDS: Final = 5
STAT_BYTES: Final = 8 * STAT_FIELDS
NEVER_CLEAN: Final = bytes(STAT_BYTES)
"""The stat entry that no file has: inode 0. It makes the next scan read the file again."""


class PackedFolder(Struct, frozen=True):
    """The entries of one folder that are not folders, by name."""

    names: bytes
    """UTF-8 (surrogateescape) names in code point order, separated by NUL."""
    stats: bytes
    """Five little-endian int64 an entry: size, mtime_ns, ctime_ns, inode, mode."""

    def entries(self) -> dict[str, bytes]:
        """Name to packed stat."""
        names = unpack_names(self.names)
        stats = self.stats
        return {
            name: stats[at : at + STAT_BYTES]
            for name, at in zip(names, range(0, len(stats), STAT_BYTES), strict=True)
        }


NO_ENTRIES: Final = PackedFolder(b"", b"")


def pack_names(names: Sequence[str]) -> bytes:
    """Names as they are stored in a `PackedFolder`."""
    return "\0".join(names).encode("utf-8", "surrogateescape")


def unpack_names(packed: bytes) -> list[str]:
    """The inverse of `pack_names`."""
    return packed.decode("utf-8", "surrogateescape").split("\0") if packed else []


def pack_folder(entries: Mapping[str, bytes]) -> PackedFolder:
    """A folder from name to packed stat."""
    names = sorted(entries)
    return PackedFolder(pack_names(names), b"".join(entries[name] for name in names))


def pack_stat(values: Sequence[int]) -> bytes:
    """One stat entry from size, mtime_ns, ctime_ns, inode and mode."""
    return array("q", values).tobytes()


def unpack_stat(entry: bytes) -> tuple[int, int, int, int, int]:
    """Size, mtime_ns, ctime_ns, inode and mode of one stat entry."""
    size, mtime_ns, ctime_ns, inode, mode = array("q", entry)
    return size, mtime_ns, ctime_ns, inode, mode


def stat_entry(values: Sequence[int], read_from_ns: int) -> bytes:
    """The entry worth remembering for a file that was read.

    Args:
        values: Size, mtime_ns, ctime_ns, inode and mode, of exactly the bytes that were read.
        read_from_ns: A reading of the file system's clock taken before the read began.

    Returns:
        The packed stat if a later write must change it, else `NEVER_CLEAN`.
    """
    _, mtime_ns, ctime_ns, _, _ = values
    if max(mtime_ns, ctime_ns) < read_from_ns:
        return pack_stat(values)
    return NEVER_CLEAN


class StatEntries:
    """Entries of remembered folders, each unpacked once."""

    def __init__(self, folders: Mapping[ChunkPath, PackedFolder]) -> None:
        self._folders = folders
        self._unpacked: dict[ChunkPath, dict[str, bytes]] = {}

    def entry(self, path: ChunkPath) -> bytes | None:
        """That of a file; None where there is none."""
        folder, name = folder_of(path), path.rpartition("/")[2]
        if folder not in self._unpacked:
            packed = self._folders.get(folder)
            self._unpacked[folder] = packed.entries() if packed else {}
        return self._unpacked[folder].get(name)

    def mtime_ns(self, path: ChunkPath) -> int:
        """When a file was last written; 0 where that is not known."""
        entry = self.entry(path)
        return unpack_stat(entry)[1] if entry else 0


BulkStat = Callable[..., "array[int] | None"]
"""Directory handle and names to size, mtime_ns, ctime_ns, inode and mode of each, in one array of
int64; None where that fails for one of them. `linked`, a list, is given the places of the
names of files that have several."""

_LAYOUTS: Final = {"x86_64": (18, 6, 4), "aarch64": (16, 4, 5)}
"""By machine: the int64 of Linux's `struct stat`, and at which of its int32 the mode and the count
of links are."""
_INODE: Final = 1
_SIZE: Final = 6
_MTIME: Final = 11
_CTIME: Final = 13
"""Which int64 of it; of a stamp the seconds, which the nanoseconds follow."""
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_AT_ONCE: Final = 1024
_NANOSECONDS: Final = 10**9
_LAST_SECOND: Final = 2**63 // _NANOSECONDS - 1


def open_bulk_stat(handle: int) -> BulkStat | None:
    """A bulk stat for this machine; None where there is none to be relied on.

    Args:
        handle: Any directory handle, on which the layout is tried out.
    """
    layout = _LAYOUTS.get(os.uname().machine)
    platform = (sys.platform, sys.byteorder, sys.maxsize)
    if layout is None or platform != ("linux", "little", 2**63 - 1):
        return None
    bulk = _bulk_stat(*layout)
    if bulk is None:
        return None
    seen = os.lstat(".", dir_fd=handle)
    expected = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode)
    found = bulk(handle, [b"."])
    return bulk if found is not None and tuple(found) == expected else None


def _bulk_stat(words: int, mode_at: int, links_at: int) -> BulkStat | None:
    try:
        import ctypes
    except ImportError:
        return None
    # The interpreter's own process; it lets go of the lock of other threads during the call.
    lstat = getattr(ctypes.CDLL(None), "fstatat", None)
    if lstat is None:
        return None
    buffer = array("q", bytes(8 * words * _AT_ONCE))
    start, _ = buffer.buffer_info()
    slots = [ctypes.c_void_p(start + 8 * words * number) for number in range(_AT_ONCE)]

    def read(
        handle: int, names: Sequence[bytes], linked: list[int] | None = None
    ) -> "array[int] | None":
        found = array("q")
        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]
            if any(map(lstat, repeat(handle), some, slots, repeat(_AT_SYMLINK_NOFOLLOW))):
                return None
            seen = buffer[: words * len(some)]
            entries = _entries(seen, words, mode_at)
            if entries is None:
                return None
            found += entries
            if linked is not None:
                links = array("I", seen.tobytes())[links_at :: 2 * words]
                linked += (first + place for place, count in enumerate(links) if count > 1)
        return found

    return read


def _entries(seen: "array[int]", words: int, mode_at: int) -> "array[int] | None":
    """The five columns of some `struct stat`; None where a stamp is beyond 64 bits."""
    mtimes, ctimes = _stamps(seen, _MTIME, words), _stamps(seen, _CTIME, words)
    if mtimes is None or ctimes is None:
        return None
    entries = array("q", bytes(8 * STAT_FIELDS * len(mtimes)))
    entries[0::STAT_FIELDS] = seen[_SIZE::words]
    entries[1::STAT_FIELDS] = mtimes
    entries[2::STAT_FIELDS] = ctimes
    entries[3::STAT_FIELDS] = seen[_INODE::words]
    entries[4::STAT_FIELDS] = array("q", array("I", seen.tobytes())[mode_at :: 2 * words])
    return entries


def _stamps(seen: "array[int]", at: int, words: int) -> "array[int] | None":
    """Seconds and nanoseconds as nanoseconds.

    All at once, in one long integer: as no product is longer than 64 bits, none reaches its
    neighbour.
    """
    seconds = seen[at::words]
    if min(seconds) < 0 or max(seconds) > _LAST_SECOND:
        return None
    total = int.from_bytes(seconds.tobytes(), "little") * _NANOSECONDS
    total += int.from_bytes(seen[at + 1 :: words].tobytes(), "little")
    return array("q", total.to_bytes(8 * len(seconds), "little"))
