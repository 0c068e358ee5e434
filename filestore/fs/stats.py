"""The stats of files as they are remembered: five numbers each, packed folder by folder. Pure."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

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
