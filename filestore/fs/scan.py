"""The walk over `chunked/`: names and stats of every entry, packed per folder, no file opened.

Knows nothing of chunks or the catalog. One rule: a tree that did not change packs to the same
bytes, so that comparing 100,000 files is comparing one pair of blobs a folder.

The stat cache follows git's racy rule (its documentation, "racy-git"): a stat is worth remembering
only if the file was read strictly later than both of its stamps, on the file system's own clock.
"""

import errno
import os
import stat
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from filestore.core.paths import TOP, ChunkPath, folder_of, inside, is_below
from filestore.fs.bulk_stat import STAT_FIELDS, BulkStat, open_bulk_stat
from filestore.fs.disk import pass_limits, stat_values
from filestore.fs.fork_pool import MOST_BLOCKS, shared

STAT_BYTES: Final = 8 * STAT_FIELDS
NEVER_CLEAN: Final = bytes(STAT_BYTES)
"""The stat entry that no file has: inode 0. It makes the next scan read the file again."""
MAX_DEPTH: Final = 64
HORIZON_NS: Final = 3_000_000_000
"""A stamp further in the future than this is not waited for."""

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY
_TYPE_BITS: Final = 0o170000
_FOLDER_BITS: Final = stat.S_IFDIR
_MANY: Final = 64
"""With fewer entries a second process, or another way to ask, costs more than it brings."""


@dataclass(frozen=True, slots=True)
class PackedFolder:
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


@dataclass(slots=True)
class TreeScan:
    """What one walk saw."""

    folders: dict[ChunkPath, PackedFolder] = field(default_factory=dict)
    """Folder path to its entries; empty folders are left out."""
    problems: dict[ChunkPath, str] = field(default_factory=dict)
    """Path of what could not be listed or statted, to the reason. Nothing below it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Paths whose stat says that they may differ from what was recorded."""

    added: tuple[ChunkPath, ...]
    changed: tuple[ChunkPath, ...]
    gone: tuple[ChunkPath, ...]


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


def scan_tree(
    root: str, *, processes: int = 1, recorded: Mapping[ChunkPath, PackedFolder] | None = None
) -> TreeScan:
    """Walk a folder: names and stats of all that is in it, following no symbolic link.

    Args:
        root: The folder.
        processes: 2 lets a forked child walk part of it; only for a process without threads.
        recorded: What is expected: a child need not send what it found just so.

    Raises:
        OSError: The root itself cannot be listed.
    """
    handle = os.open(root, _FOLDER_FLAGS)
    try:
        names = sorted(os.listdir(handle))
        if len(names) < _MANY:
            return _Walk().of(handle, names)
        bulk = open_bulk_stat(handle)
        if processes < 2:
            return _Walk(bulk).of(handle, names)
        return _walk_shared(handle, names, bulk, processes, recorded or {})
    finally:
        os.close(handle)


class _Walk:
    """One walk: what it saw so far, and how it asks for stats."""

    def __init__(self, bulk: BulkStat | None = None) -> None:
        self._tree = TreeScan()
        self._bulk = bulk

    def of(self, handle: int, names: list[str]) -> TreeScan:
        """The tree below some names of the top."""
        self._folder(handle, TOP, names, 0)
        return self._tree

    def _folder(self, handle: int, path: ChunkPath, names: list[str], depth: int) -> None:
        if self._bulk is None and len(names) >= _MANY:
            # A small tree does not pay for what a large folder in it repays.
            self._bulk = open_bulk_stat(handle)
        packed = pack_names(names)
        entries = self._bulk(handle, packed.split(b"\0")) if self._bulk and names else None
        if entries is None:
            names, entries = self._one_by_one(handle, path, names)
            packed = pack_names(names)
        stats, modes = entries.tobytes(), entries[STAT_FIELDS - 1 :: STAT_FIELDS]
        folders: list[str] = []
        if any(mode & _TYPE_BITS == _FOLDER_BITS for mode in set(modes)):
            folders = [name for name, mode in zip(names, modes, strict=True) if _is_folder(mode)]
            packed, stats = _without_folders(names, modes, stats)
        if stats:
            self._tree.folders[path] = PackedFolder(packed, stats)
        for name in folders:
            self._enter(handle, inside(path, name), name, depth + 1)

    def _one_by_one(
        self, handle: int, path: ChunkPath, names: list[str]
    ) -> "tuple[list[str], array[int]]":
        found: list[str] = []
        entries = array("q")
        for name in names:
            try:
                seen = os.lstat(name, dir_fd=handle)
            except FileNotFoundError:
                continue
            except OSError as error:
                pass_limits(error)
                self._tree.problems[inside(path, name)] = error.strerror or str(error)
                continue
            found.append(name)
            entries.extend(stat_values(seen))
        return found, entries

    def _enter(self, parent: int, path: ChunkPath, name: str, depth: int) -> None:
        problems = self._tree.problems
        if depth > MAX_DEPTH:
            problems[path] = f"nested deeper than {MAX_DEPTH} folders"
            return
        try:
            handle = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as error:
            pass_limits(error)
            swapped = error.errno in (errno.ELOOP, errno.ENOTDIR)
            problems[path] = "it changed during the scan" if swapped else str(error.strerror)
            return
        try:
            names = sorted(os.listdir(handle))
        except OSError as error:
            pass_limits(error)
            problems[path] = error.strerror or str(error)
        else:
            self._folder(handle, path, names, depth)
        finally:
            os.close(handle)


def _is_folder(mode: int) -> bool:
    return mode & _TYPE_BITS == _FOLDER_BITS


def _without_folders(names: list[str], modes: "array[int]", stats: bytes) -> tuple[bytes, bytes]:
    kept = [place for place, mode in enumerate(modes) if not _is_folder(mode)]
    entries = (stats[STAT_BYTES * place : STAT_BYTES * (place + 1)] for place in kept)
    return pack_names([names[place] for place in kept]), b"".join(entries)


def _walk_shared(
    handle: int,
    names: list[str],
    bulk: BulkStat | None,
    processes: int,
    recorded: Mapping[ChunkPath, PackedFolder],
) -> TreeScan:
    size = -(-len(names) // MOST_BLOCKS)
    blocks = [names[start : start + size] for start in range(0, len(names), size)]

    def walk(number: int) -> _Piece:
        piece = _Walk(bulk).of(handle, blocks[number])
        # A block has but its part of the top.
        as_recorded = [
            path for path, packed in piece.folders.items() if path and packed == recorded.get(path)
        ]
        for path in as_recorded:
            del piece.folders[path]
        folders = {path: (packed.names, packed.stats) for path, packed in piece.folders.items()}
        return folders, as_recorded, piece.problems

    with shared(len(blocks), walk, processes=processes) as results:
        return _merged(results(), recorded)


_Piece = tuple[dict[ChunkPath, tuple[bytes, bytes]], list[ChunkPath], dict[ChunkPath, str]]
"""Folders of a block of the top, those of it that are as recorded, and its problems."""


def _merged(pieces: Sequence[_Piece], recorded: Mapping[ChunkPath, PackedFolder]) -> TreeScan:
    """One tree of the pieces of its top, in their order."""
    tree = TreeScan()
    # Blocks are contiguous and in order, so joining their part of the top keeps the order.
    tops = [folders.pop(TOP) for folders, _, _ in pieces if TOP in folders]
    if tops:
        names = b"\0".join(names for names, _ in tops)
        tree.folders[TOP] = PackedFolder(names, b"".join(stats for _, stats in tops))
    for folders, as_recorded, problems in pieces:
        tree.folders |= {path: PackedFolder(*packed) for path, packed in folders.items()}
        tree.folders |= {path: recorded[path] for path in as_recorded}
        tree.problems |= problems
    return tree


def latest_stamp(seen: TreeScan, paths: Sequence[ChunkPath], horizon_ns: int) -> int:
    """The newest mtime or ctime in the folders of some paths that is not beyond a horizon.

    A stamp far in the future cannot be waited for, so it does not count.
    """
    latest = 0
    for folder in {folder_of(path) for path in paths}:
        if folder in seen.folders:
            fields = array("q", seen.folders[folder].stats)
            stamps = fields[1::STAT_FIELDS] + fields[2::STAT_FIELDS]
            latest = max(latest, max(filter(horizon_ns.__gt__, stamps), default=0))
    return latest


def differences(seen: TreeScan, recorded: Mapping[ChunkPath, PackedFolder]) -> Differences:
    """Compare a walk with what was recorded, folder by folder; pure.

    What lies below a problem of the walk is unknown, so it is neither changed nor gone.
    """
    added: list[ChunkPath] = []
    changed: list[ChunkPath] = []
    gone: list[ChunkPath] = []
    for path, packed in seen.folders.items():
        known = recorded.get(path)
        if packed is known or packed == known:
            continue
        now = packed.entries()
        before = {} if known is None else known.entries()
        added += (inside(path, name) for name in now.keys() - before.keys())
        gone += (inside(path, name) for name in before.keys() - now.keys())
        changed += (
            inside(path, name) for name, entry in now.items() if before.get(name, entry) != entry
        )
    for path in recorded.keys() - seen.folders.keys():
        gone += (inside(path, name) for name in unpack_names(recorded[path].names))
    return Differences(
        added=tuple(sorted(added)),
        changed=tuple(sorted(changed)),
        gone=tuple(sorted(path for path in gone if not is_unknown(path, seen.problems))),
    )


def is_unknown(path: ChunkPath, problems: Iterable[ChunkPath]) -> bool:
    """Whether a path is, or lies below, what could not be looked at."""
    return any(not problem or is_below(path, problem) for problem in problems)
