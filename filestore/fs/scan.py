"""The walk over a tree: names and stats of every entry, packed per folder, no file opened.

Knows nothing of chunks or the catalog; what of a folder belongs to the tree, `TreeRules` say where
not all does. One rule: a tree that did not change packs to the same bytes, so that comparing
100,000 files is comparing one pair of blobs a folder.

The stat cache follows git's racy rule (its documentation, "racy-git"): a stat is worth remembering
only if the file was read strictly later than both of its stamps, on the file system's own clock.
"""

import errno
import math
import os
import stat
import time
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from filestore.core.errors import FilestoreError
from filestore.core.paths import TOP, ChunkPath, folder_of, inside, is_below
from filestore.fs.disk import pass_limits, stat_values
from filestore.fs.part import FOLDER_FLAGS
from filestore.fs.programs import MOST_BLOCKS, shared
from filestore.fs.stats import (
    NO_ENTRIES,
    STAT_BYTES,
    STAT_FIELDS,
    BulkStat,
    PackedFolder,
    open_bulk_stat,
    pack_names,
    unpack_names,
)

MAX_DEPTH: Final = 64
HORIZON_NS: Final = 3_000_000_000
"""A stamp further in the future than this is not waited for."""

_TYPE_BITS: Final = 0o170000
_FOLDER_BITS: Final = stat.S_IFDIR
_MANY: Final = 64
"""With fewer entries a second process, or another way to ask, costs more than it brings."""


class TreeScan(Struct):
    """What one walk saw."""

    folders: dict[ChunkPath, PackedFolder] = field(default_factory=dict)
    """Folder path to its entries; empty folders are left out."""
    problems: dict[ChunkPath, str] = field(default_factory=dict)
    """Path of what could not be listed or statted, to the reason. Nothing below it is known."""
    skipped: dict[ChunkPath, str] = field(default_factory=dict)
    """What rules left out although a person might expect it, to the reason."""
    ignored: int = 0
    """How many files and folders ignore rules left out; a folder counts as one."""
    other: int = 0
    """How many files were passed over for their format."""


class TreeRulesError(FilestoreError):
    """The rules of a folder are there and cannot be followed, so nothing in it is known."""


class SlowScanError(FilestoreError, TimeoutError):
    """A walk takes longer than it may."""

    seen = 0
    """How many files it saw."""


class RulesChoice(Struct, frozen=True, kw_only=True):
    """What rules say of some entries of a folder."""

    left_out: Sequence[int] = ()
    """Places among their names, ascending."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Name to reason, of what a person might expect; "" is the folder."""
    ignored: int = 0
    other: int = 0


class TreeRules(Protocol):
    """What of a tree belongs to it: asked once for each folder that is walked."""

    def enter(self, handle: int, path: ChunkPath, names: Sequence[str]) -> "FolderRules | str":
        """The rules inside a folder of the one these are for, or the tree's top itself.

        Args:
            handle: Its directory handle.
            path: Its path.
            names: All that is in it, sorted.

        Returns:
            The rules; a string where nothing in it belongs to the tree: the reason for a
            person, "" for none.

        Raises:
            TreeRulesError: They cannot be followed.
        """


class TopRules(TreeRules, Protocol):
    """The rules of a whole tree, which can tell where they are written."""

    @property
    def marks(self) -> Collection[str]:
        """Names that say something about the folder they are in, or about what is below it."""

    def at(self, root: str) -> "TopRules":
        """The same for a folder in the place of the tree."""

    def outside(self, marked: Iterable[ChunkPath]) -> Iterator[str]:
        """Paths of files and folders that say something, and that no walk lists.

        Args:
            marked: Folders of the tree that have one of the `marks`.
        """


class FolderRules(TreeRules, Protocol):
    """The rules inside one folder."""

    def choose(self, names: Sequence[str], folders: Sequence[int]) -> RulesChoice:
        """Which of some entries belong to the tree.

        Args:
            names: Sorted; a part of the folder's names, where several processes walk.
            folders: Places of the folders among them.
        """


class FolderScan(Struct, frozen=True, kw_only=True):
    """What one folder adds to a walk."""

    listed: PackedFolder
    """All that is in it: folders, too, and what rules leave out."""
    packed: PackedFolder = NO_ENTRIES
    """What of it belongs to the tree and is no folder."""
    entered: tuple[str, ...] = ()
    """The folders in it that are walked."""
    choice: RulesChoice = field(default_factory=RulesChoice)


class Observer(Protocol):
    """Follows a walk from folder to folder."""

    def entering(self, handle: int, path: ChunkPath) -> None:
        """Called before a folder is listed."""

    def seen(
        self, path: ChunkPath, folder: FolderScan, rules: FolderRules | None, linked: Sequence[str]
    ) -> None:
        """Called with what is in a folder, before those in it are entered.

        Args:
            path: The folder's.
            folder: What is in it.
            rules: Those inside it.
            linked: What of it has several names.
        """

    def kept_out(self, path: ChunkPath, reason: str) -> None:
        """Called where rules keep a walk out of a folder that was listed."""

    def locked(self, path: ChunkPath, reason: str) -> None:
        """Called where the permissions of a folder, or its depth, keep a walk out of it."""


class Differences(Struct, frozen=True, kw_only=True):
    """Paths whose stat says that they may differ from what was recorded."""

    added: tuple[ChunkPath, ...]
    changed: tuple[ChunkPath, ...]
    gone: tuple[ChunkPath, ...]


def scan_tree(
    root: str,
    *,
    processes: int = 1,
    recorded: Mapping[ChunkPath, PackedFolder] | None = None,
    rules: TreeRules | None = None,
    until_s: float = math.inf,
) -> TreeScan:
    """Walk a folder: names and stats of all that is in it, following no symbolic link.

    Args:
        root: The folder.
        processes: 2 lets a forked child walk part of it; only for a process without threads.
        recorded: What is expected: a child need not send what it found just so.
        rules: What of it belongs to the tree; None for everything.
        until_s: No folder is begun after this moment of the monotonic clock by one process.

    Raises:
        OSError: The root itself cannot be listed.
        SlowScanError: That moment came.
    """
    handle = os.open(root, FOLDER_FLAGS)
    try:
        names = sorted(os.listdir(handle))
        tree = TreeScan()
        is_entered, inner = _enter_rules(tree, rules, handle, TOP, names)
        if not is_entered:
            return tree
        if len(names) < _MANY:
            return Walk(until_s=until_s).of(handle, names, inner)
        bulk = open_bulk_stat(handle)
        if processes < 2:
            return Walk(bulk, until_s=until_s).of(handle, names, inner)
        return _walk_shared(handle, names, bulk, processes, recorded or {}, inner)
    finally:
        os.close(handle)


def _enter_rules(
    tree: TreeScan,
    rules: TreeRules | None,
    handle: int,
    path: ChunkPath,
    names: Sequence[str],
) -> tuple[bool, FolderRules | None]:
    """Whether a folder is walked, and its rules; why it is not goes into the tree."""
    if rules is None:
        return True, None
    try:
        inner = rules.enter(handle, path, names)
    except TreeRulesError as error:
        tree.problems[path] = error.message
        return False, None
    if not isinstance(inner, str):
        return True, inner
    if inner:
        tree.skipped[path] = inner
    return False, None


class Walk:
    """One walk: what it saw so far, and how it asks for stats."""

    def __init__(
        self,
        bulk: BulkStat | None = None,
        observer: Observer | None = None,
        until_s: float = math.inf,
    ) -> None:
        """Begin one; see `open_bulk_stat`, and `scan_tree`."""
        self.tree = TreeScan()
        self._until_s = until_s
        self._bulk = bulk
        self._observer = observer

    def of(self, handle: int, names: list[str], rules: FolderRules | None) -> TreeScan:
        """The tree below some names of the top."""
        self._folder(handle, TOP, names, 0, rules)
        return self.tree

    def of_all(self, handle: int, rules: TreeRules | None) -> TreeScan:
        """The tree below the top."""
        self._list(handle, TOP, 0, rules)
        return self.tree

    def _folder(
        self,
        handle: int,
        path: ChunkPath,
        names: list[str],
        depth: int,
        rules: FolderRules | None,
    ) -> None:
        listed, linked = self.stats(handle, path, names)
        folder = choose(listed, rules)
        tree, choice = self.tree, folder.choice
        if folder.packed.stats:
            tree.folders[path] = folder.packed
        tree.skipped |= {inside(path, name): reason for name, reason in choice.skipped.items()}
        tree.ignored += choice.ignored
        tree.other += choice.other
        if self._observer is not None:
            self._observer.seen(path, folder, rules, linked)
        for name in folder.entered:
            self.enter(handle, inside(path, name), depth + 1, rules)

    def stats(
        self, handle: int, path: ChunkPath, names: list[str]
    ) -> tuple[PackedFolder, Sequence[str]]:
        """Those of some names that are there, with their stats; and which have several names."""
        if self._bulk is None and len(names) >= _MANY:
            # A small tree does not pay for what a large folder in it repays.
            self._bulk = open_bulk_stat(handle)
        linked: list[int] | None = None if self._observer is None else []
        packed = pack_names(names)
        entries = self._bulk(handle, packed.split(b"\0"), linked) if self._bulk and names else None
        if entries is None:
            linked = []
            names, entries = self._one_by_one(handle, path, names, linked)
            packed = pack_names(names)
        return PackedFolder(packed, entries.tobytes()), [names[place] for place in linked or ()]

    def _one_by_one(
        self, handle: int, path: ChunkPath, names: list[str], linked: list[int]
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
                self.tree.problems[inside(path, name)] = error.strerror or str(error)
                continue
            if seen.st_nlink > 1:
                linked.append(len(found))
            found.append(name)
            entries.extend(stat_values(seen))
        return found, entries

    def enter(self, parent: int, path: ChunkPath, depth: int, rules: FolderRules | None) -> None:
        """Walk a folder in another one.

        Args:
            parent: The other's directory handle.
            path: Its path.
            depth: How many folders it lies below the top.
            rules: Those inside the other one.
        """
        problems = self.tree.problems
        if depth > MAX_DEPTH:
            self._locked(path, f"nested deeper than {MAX_DEPTH} folders")
            return
        try:
            handle = os.open(path.rpartition("/")[2], FOLDER_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as error:
            pass_limits(error)
            if error.errno == errno.EACCES:
                self._locked(path, str(error.strerror))
                return
            swapped = error.errno in (errno.ELOOP, errno.ENOTDIR)
            problems[path] = "it changed during the scan" if swapped else str(error.strerror)
            return
        try:
            self._list(handle, path, depth, rules)
        finally:
            os.close(handle)

    def _locked(self, path: ChunkPath, reason: str) -> None:
        self.tree.problems[path] = reason
        if self._observer is not None:
            self._observer.locked(path, reason)

    def _list(self, handle: int, path: ChunkPath, depth: int, rules: TreeRules | None) -> None:
        if time.monotonic() > self._until_s:
            error = SlowScanError("the walk took too long")
            error.seen = sum(map(len, (one.stats for one in self.tree.folders.values())))
            error.seen //= STAT_BYTES
            raise error
        if self._observer is not None:
            self._observer.entering(handle, path)
        try:
            names = sorted(os.listdir(handle))
        except OSError as error:
            if not depth:
                raise
            pass_limits(error)
            self.tree.problems[path] = error.strerror or str(error)
            return
        is_entered, inner = _enter_rules(self.tree, rules, handle, path, names)
        if is_entered:
            self._folder(handle, path, names, depth, inner)
        elif self._observer is not None:
            self._observer.kept_out(path, self.tree.skipped.get(path, ""))


def choose(listed: PackedFolder, rules: FolderRules | None) -> FolderScan:
    """What of a folder belongs to the tree; pure.

    Args:
        listed: All that is in it.
        rules: Those inside it; None where all of it belongs to the tree.
    """
    modes = array("q", listed.stats)[STAT_FIELDS - 1 :: STAT_FIELDS]
    folders: list[int] = []
    if any(_is_folder(mode) for mode in set(modes)):
        folders = [place for place, mode in enumerate(modes) if _is_folder(mode)]
    if rules is None and not folders:
        return FolderScan(listed=listed, packed=listed)
    names = unpack_names(listed.names)
    choice = RulesChoice() if rules is None else rules.choose(names, folders)
    entered, away = folders, folders
    if choice.left_out:
        left_out = set(choice.left_out)
        entered = [place for place in folders if place not in left_out]
        away = sorted(left_out.union(entered))
    packed = listed
    if away:
        # In runs of what stays.
        runs = list(zip((0, *(place + 1 for place in away)), (*away, len(names)), strict=True))
        kept = [name for start, end in runs for name in names[start:end]]
        stats = (listed.stats[STAT_BYTES * start : STAT_BYTES * end] for start, end in runs)
        packed = PackedFolder(pack_names(kept), b"".join(stats))
    return FolderScan(
        listed=listed,
        packed=packed,
        entered=tuple(names[place] for place in entered),
        choice=choice,
    )


def _is_folder(mode: int) -> bool:
    return mode & _TYPE_BITS == _FOLDER_BITS


def _walk_shared(
    handle: int,
    names: list[str],
    bulk: BulkStat | None,
    processes: int,
    recorded: Mapping[ChunkPath, PackedFolder],
    rules: FolderRules | None,
) -> TreeScan:
    size = -(-len(names) // MOST_BLOCKS)
    blocks = [names[start : start + size] for start in range(0, len(names), size)]

    def walk(number: int) -> _Piece:
        piece = Walk(bulk).of(handle, blocks[number], rules)
        # A block has but its part of the top.
        as_recorded = [
            path for path, packed in piece.folders.items() if path and packed == recorded.get(path)
        ]
        for path in as_recorded:
            del piece.folders[path]
        folders = {path: (packed.names, packed.stats) for path, packed in piece.folders.items()}
        notes = (piece.problems, piece.skipped, piece.ignored, piece.other)
        return folders, as_recorded, notes

    with shared(len(blocks), walk, processes=processes) as results:
        return _merged(results(), recorded)


_Notes = tuple[dict[ChunkPath, str], dict[ChunkPath, str], int, int]
_Piece = tuple[dict[ChunkPath, tuple[bytes, bytes]], list[ChunkPath], _Notes]
"""Folders of a block of the top, those that are as recorded; its problems and what is
reported of what was left out."""


def _merged(pieces: Sequence[_Piece], recorded: Mapping[ChunkPath, PackedFolder]) -> TreeScan:
    """One tree of the pieces of its top, in their order."""
    tree = TreeScan()
    # Blocks are contiguous and in order, so joining their part of the top keeps the order.
    tops = [folders.pop(TOP) for folders, _, _ in pieces if TOP in folders]
    if tops:
        names = b"\0".join(names for names, _ in tops)
        tree.folders[TOP] = PackedFolder(names, b"".join(stats for _, stats in tops))
    for folders, as_recorded, (problems, skipped, ignored, other) in pieces:
        tree.folders |= {path: PackedFolder(*packed) for path, packed in folders.items()}
        tree.folders |= {path: recorded[path] for path in as_recorded}
        tree.problems |= problems
        tree.skipped |= skipped
        tree.ignored += ignored
        tree.other += other
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
        is_as_long = known is not None and len(packed.stats) == len(known.stats)
        if known is not None and is_as_long and packed.names == known.names:
            # Block by block, as most have the stats that they had.
            names, block = unpack_names(packed.names), _MANY * STAT_BYTES
            for start in range(0, len(packed.stats), block):
                if packed.stats[start : start + block] == known.stats[start : start + block]:
                    continue
                for at in range(start, min(start + block, len(packed.stats)), STAT_BYTES):
                    if packed.stats[at : at + STAT_BYTES] != known.stats[at : at + STAT_BYTES]:
                        changed.append(inside(path, names[at // STAT_BYTES]))
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
