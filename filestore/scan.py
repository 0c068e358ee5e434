"""The walk over `chunked/`: names and stats of every entry, packed per folder, no file opened.

Knows nothing of chunks or the catalog. One rule: a tree that did not change packs to the same
bytes, so that comparing 100,000 files is comparing one pair of blobs a folder.

The stat cache follows git's racy rule (its documentation, "racy-git"): a stat is worth remembering
only if the file was read strictly later than both of its stamps, on the file system's own clock.
"""

import errno
import os
import stat
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

STAT_FIELDS: Final = 5
STAT_BYTES: Final = 8 * STAT_FIELDS
NEVER_CLEAN: Final = bytes(STAT_BYTES)
"""The stat entry that no file has: inode 0. It makes the next scan read the file again."""
MAX_DEPTH: Final = 64

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY
_TYPE_BITS: Final = 0o170000
_FOLDER_BITS: Final = stat.S_IFDIR
_HEADER: Final = struct.Struct("<III")
_PARALLEL_FROM: Final = 64
"""With fewer entries at the top a second process costs more than it brings."""


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

    folders: dict[str, PackedFolder] = field(default_factory=dict)
    """Folder path (forward slashes, "" for the top) to its entries; empty folders are left out."""
    problems: dict[str, str] = field(default_factory=dict)
    """Path of what could not be listed or statted, to the reason. Nothing below it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Paths whose stat says that they may differ from what was recorded."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]


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


def scan_tree(root: str, *, processes: int = 1) -> TreeScan:
    """Walk a folder: names and stats of all that is in it, following no symbolic link.

    Args:
        root: The folder.
        processes: 2 lets a forked child walk half of it; only for a process without threads.

    Raises:
        OSError: The root itself cannot be listed.
    """
    handle = os.open(root, _FOLDER_FLAGS)
    try:
        names = sorted(os.listdir(handle))
        tree = TreeScan()
        if processes < 2 or len(names) < _PARALLEL_FROM:
            _walk(handle, "", names, tree, 0)
        else:
            _walk_in_halves(handle, names, tree)
        return tree
    finally:
        os.close(handle)


def _walk(handle: int, path: str, names: list[str], tree: TreeScan, depth: int) -> None:
    packed = array("q")
    files: list[str] = []
    folders: list[str] = []
    # This loop is the cost of `status`: a name looked up here is looked up 100,000 times.
    lstat, note_name, note_stat = os.stat, files.append, packed.extend
    for name in names:
        try:
            seen = lstat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as error:
            tree.problems[_join(path, name)] = error.strerror or str(error)
            continue
        mode = seen.st_mode
        if mode & _TYPE_BITS == _FOLDER_BITS:
            folders.append(name)
            continue
        note_name(name)
        note_stat((seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, mode))
    if files:
        tree.folders[path] = PackedFolder(pack_names(files), packed.tobytes())
    for name in folders:
        _enter(handle, _join(path, name), name, tree, depth + 1)


def _enter(parent: int, path: str, name: str, tree: TreeScan, depth: int) -> None:
    if depth > MAX_DEPTH:
        tree.problems[path] = f"nested deeper than {MAX_DEPTH} folders"
        return
    try:
        handle = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return
    except OSError as error:
        swapped = error.errno in (errno.ELOOP, errno.ENOTDIR)
        tree.problems[path] = "it changed during the scan" if swapped else str(error.strerror)
        return
    try:
        names = sorted(os.listdir(handle))
    except OSError as error:
        tree.problems[path] = error.strerror or str(error)
    else:
        _walk(handle, path, names, tree, depth)
    finally:
        os.close(handle)


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _walk_in_halves(handle: int, names: list[str], tree: TreeScan) -> None:
    middle = len(names) // 2
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _run_child(handle, names[middle:], reader, writer)
    os.close(writer)
    try:
        _walk(handle, "", names[:middle], tree, 0)
        with os.fdopen(reader, "rb") as stream:
            sent = stream.read()
    finally:
        _, status = os.waitpid(child, 0)
    if status == 0:
        _merge(tree, sent)
    else:
        _walk(handle, "", names[middle:], second := TreeScan(), 0)
        _merge_trees(tree, second)


def _run_child(handle: int, names: list[str], reader: int, writer: int) -> None:
    code = 1
    try:
        os.close(reader)
        half = TreeScan()
        _walk(handle, "", names, half, 0)
        with os.fdopen(writer, "wb") as stream:
            stream.write(_serialize(half))
        code = 0
    finally:
        os._exit(code)


def _serialize(tree: TreeScan) -> bytes:
    parts: list[bytes] = []
    for path, packed in tree.folders.items():
        name = path.encode("utf-8", "surrogateescape")
        parts += [_HEADER.pack(len(name), len(packed.names), len(packed.stats))]
        parts += [name, packed.names, packed.stats]
    for path, reason in tree.problems.items():
        name, words = path.encode("utf-8", "surrogateescape"), reason.encode()
        parts += [_HEADER.pack(len(name), len(words), 1), name, words, b"!"]
    return b"".join(parts)


def _parse(data: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    at = 0
    while at < len(data):
        lengths = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        fields = []
        for length in lengths:
            fields.append(data[at : at + length])
            at += length
        yield fields[0].decode("utf-8", "surrogateescape"), fields[1], fields[2]


def _merge(tree: TreeScan, data: bytes) -> None:
    second = TreeScan()
    for path, names, stats in _parse(data):
        if stats == b"!":
            second.problems[path] = names.decode()
        else:
            second.folders[path] = PackedFolder(names, stats)
    _merge_trees(tree, second)


def _merge_trees(tree: TreeScan, second: TreeScan) -> None:
    top, other = tree.folders.get(""), second.folders.pop("", None)
    tree.folders |= second.folders
    tree.problems |= second.problems
    if other is not None:
        # Both halves of the top are contiguous and in order, so joining them keeps the order.
        joined = (
            other
            if top is None
            else PackedFolder(top.names + b"\0" + other.names, top.stats + other.stats)
        )
        tree.folders[""] = joined


def latest_stamp(seen: TreeScan, paths: Sequence[str], horizon_ns: int) -> int:
    """The newest mtime or ctime in the folders of some paths that is not beyond a horizon.

    A stamp far in the future cannot be waited for, so it does not count.
    """
    latest = 0
    for folder in {path.rpartition("/")[0] for path in paths}:
        if folder in seen.folders:
            fields = array("q", seen.folders[folder].stats)
            stamps = fields[1::STAT_FIELDS] + fields[2::STAT_FIELDS]
            latest = max(latest, max(filter(horizon_ns.__gt__, stamps), default=0))
    return latest


def differences(seen: TreeScan, recorded: Mapping[str, PackedFolder]) -> Differences:
    """Compare a walk with what was recorded, folder by folder; pure.

    What lies below a problem of the walk is unknown, so it is neither changed nor gone.
    """
    added: list[str] = []
    changed: list[str] = []
    gone: list[str] = []
    for path, packed in seen.folders.items():
        known = recorded.get(path)
        if packed == known:
            continue
        now = packed.entries()
        before = {} if known is None else known.entries()
        added += (_join(path, name) for name in now.keys() - before.keys())
        gone += (_join(path, name) for name in before.keys() - now.keys())
        changed += (
            _join(path, name) for name, entry in now.items() if before.get(name, entry) != entry
        )
    for path in recorded.keys() - seen.folders.keys():
        gone += (_join(path, name) for name in unpack_names(recorded[path].names))
    return Differences(
        added=tuple(sorted(added)),
        changed=tuple(sorted(changed)),
        gone=tuple(sorted(path for path in gone if not _unknown(path, seen.problems))),
    )


def _unknown(path: str, problems: Mapping[str, str]) -> bool:
    return "" in problems or any(
        path == problem or path.startswith(f"{problem}/") for problem in problems
    )
