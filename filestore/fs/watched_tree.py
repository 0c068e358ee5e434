"""A walk that is kept: what `scan_tree` would see now, found by looking only where events point.

For a process that is asked again and again. Rules: a folder is watched before it is listed, so that
there is no gap; whatever happens to the watch ends in a whole walk, never in an old answer; and
everything is looked at again each `RESCAN_S`, for what no system reports: what is written through a
mapping of a file until that ends, and what another name of a file (a hard link in another folder)
was used for. Events come by inotify, on the file systems that report all of them: a change whose
system call has returned is reported by the next `changes`, or `LostEventsError` is raised.
"""

import errno
import fcntl
import os
import stat
import sys
import threading
import time
import weakref
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from filestore.core.errors import FilestoreError, install_line
from filestore.core.paths import TOP, ChunkPath, folder_of, inside
from filestore.fs import disk, part, scan
from filestore.fs.scan import FolderRules, FolderScan, TopRules, TreeScan, Walk
from filestore.fs.stats import (
    STAT_BYTES,
    PackedFolder,
    open_bulk_stat,
    pack_folder,
    pack_names,
    unpack_names,
    unpack_stat,
)

_REPORTING: Final = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0xF2F52010: "f2fs",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
}
"""File systems that only this machine writes, and only through themselves, by `statfs`. On all
others, such as NFS, FUSE or overlays, files change without an event; or, as on FAT, under any
spelling of their name."""
_GET_FLAGS: Final = 0x80086601
_CASEFOLD_FLAG: Final = 0x40000000
"""`FS_IOC_GETFLAGS` of Linux on 64 bits, and what it says of a folder that ignores case."""
_STATFS_BYTES: Final = 512
_MOUNTS: Final = "/proc/self/mountinfo"


class UnwatchableError(FilestoreError):
    """The system does not report every change of a folder."""


class LostEventsError(FilestoreError):
    """Changes may have been missed: whatever is known of the folders counts no longer."""


class FolderChanges(Struct, frozen=True, kw_only=True):
    """What changed since the last time."""

    names: dict[ChunkPath, set[str]] = field(default_factory=dict)
    """By watched folder the names in it of what was written, made, moved or removed."""
    folders: set[ChunkPath] = field(default_factory=set)
    """Folders among them: nothing that is known of what is below counts any longer."""


class FolderWatches:
    """The watches of one tree. For one thread at a time."""

    def __init__(self) -> None:
        """Raises `UnwatchableError` where the system has no such service, or no more of it."""
        if not sys.platform.startswith("linux") or sys.maxsize != 2**63 - 1:
            raise UnwatchableError("this system has no inotify")
        try:
            from inotify_simple import INotify, flags
        except ImportError as error:
            raise UnwatchableError(
                "the package inotify_simple is not installed",
                remedy=install_line("watched tree"),
            ) from error
        try:
            self._inotify: INotify = INotify(nonblocking=True)
        except OSError as error:
            raise _no_room(error, "max_user_instances") from error
        self._flags = flags
        self._mask = (
            # A mapping of a file that ends is reported as the end of writing.
            flags.MODIFY | flags.ATTRIB | flags.CLOSE_WRITE | flags.MOVED_FROM | flags.MOVED_TO
            | flags.CREATE | flags.DELETE | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
        )  # fmt: skip
        self._paths: dict[int, ChunkPath] = {}
        self._watches: dict[ChunkPath, int] = {}
        self._devices: set[int] = set()
        self._mounts = _mounts()

    def add(self, handle: int, path: ChunkPath) -> None:
        """Report from now on what changes in a folder, under the name of this path.

        Raises:
            UnwatchableError: Its file system does not report every change, or there is no room.
            LostEventsError: The same folder is watched under another name: it was moved just now.
        """
        device = os.fstat(handle).st_dev
        if device not in self._devices:
            _require_reporting(handle, path)
            self._devices.add(device)
        if _ignores_case(handle):
            raise UnwatchableError(f"{path or 'the folder'} ignores case, so events name others")
        try:
            # By its handle, so that it is the very folder that is listed.
            watch = self._inotify.add_watch(f"/proc/self/fd/{handle}", self._mask)
        except OSError as error:
            raise _no_room(error, "max_user_watches") from error
        if self._paths.setdefault(watch, path) != path:
            raise LostEventsError("a folder is in two places of the tree")
        self._watches[path] = watch

    def drop(self, path: ChunkPath) -> None:
        watch = self._watches.pop(path, None)
        if watch is not None and self._paths.pop(watch, None) is not None:
            try:
                self._inotify.rm_watch(watch)
            except OSError as error:
                # A folder that is gone has taken its watch along.
                if error.errno != errno.EINVAL:
                    raise

    def changes(self) -> FolderChanges:
        """What changed since the last time; never waits.

        Raises:
            LostEventsError: Not all of it is known.
        """
        if _mounts() != self._mounts:
            raise LostEventsError("a file system was mounted or unmounted")
        flags, found = self._flags, FolderChanges()
        gone = flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED
        try:
            events = self._inotify.read(timeout=0)
        except OSError as error:
            raise LostEventsError(f"changes cannot be read: {error.strerror or error}") from error
        for watch, mask, _, name in events:
            if mask & flags.Q_OVERFLOW:
                raise LostEventsError("more changed at once than the system reports")
            path = self._paths.get(watch)
            if path is None:
                continue
            if mask & flags.UNMOUNT or (path == TOP and (mask & gone or not name)):
                raise LostEventsError("the folder was moved, removed or given other permissions")
            if mask & gone:
                found.folders.add(path)
                path, _, name = folder_of(path), None, path.rpartition("/")[2]
            elif name and mask & flags.ISDIR:
                found.folders.add(ChunkPath(f"{path}/{name}" if path else name))
            if name:
                found.names.setdefault(path, set()).add(name)
        return found

    @property
    def count(self) -> int:
        return len(self._watches)

    def close(self) -> None:
        self._inotify.close()


def _require_reporting(handle: int, path: ChunkPath) -> None:
    import ctypes

    # The type of the file system, as `statfs` tells it.
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    is_unknown = ctypes.CDLL(None, use_errno=True).fstatfs(handle, buffer)
    kind = 0 if is_unknown else int.from_bytes(buffer.raw[:4], sys.byteorder)
    if kind not in _REPORTING:
        where = f"the file system of {path}" if path else "the file system"
        raise UnwatchableError(f"{where} (type {kind:#x}) may change without notice")


def _ignores_case(handle: int) -> bool:
    try:
        flags = fcntl.ioctl(handle, _GET_FLAGS, bytes(8))
    except OSError:
        # A file system without such flags.
        return False
    return bool(int.from_bytes(flags[:4], sys.byteorder) & _CASEFOLD_FLAG)


def _mounts() -> bytes:
    try:
        with open(_MOUNTS, "rb") as file:
            return file.read()
    except OSError as error:
        raise UnwatchableError(f"{_MOUNTS} cannot be read: {error.strerror}") from error


def _no_room(error: OSError, limit: str) -> UnwatchableError:
    if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENOMEM):
        return UnwatchableError(
            f"this system already watches too much: fs.inotify.{limit} is used up",
            remedy=f"sysctl fs.inotify.{limit}=1000000",
        )
    return UnwatchableError(f"folders cannot be watched here: {error.strerror or error}")


RESCAN_S: Final = 60.0
"""So often everything is looked at again, in the background."""
_IDLE_S: Final = 1800.0
"""After this time without a question nothing is kept."""
_RETRY_S: Final = 10.0
"""Where nothing can be watched, that is tried again after so long."""
_MOST_LINKED: Final = 1_000
"""With more files that have other names, looking at each of them costs as much as a walk."""
_MANY: Final = 64
"""With more changed names a folder is packed anew."""
_SETTLED_NS: Final = 2_000_000_000
"""A file with younger stamps may be written once more without another stamp."""


class WatchedScan(Struct, frozen=True, kw_only=True):
    """What `scan_tree` would have given."""

    tree: TreeScan
    """Never changed; parts of it are shared with other scans."""
    unwatched: str = ""
    """Why the whole tree was walked; "" where the watch reported what to look at."""


class WatchedTree:
    """The scans of one tree, for any thread. Nothing is held before the first one."""

    def __init__(self, *, rescan_s: float = RESCAN_S) -> None:
        """Begin with nothing known.

        Args:
            rescan_s: After so long everything is looked at again; 0 for every time.
        """
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._rescan_s = rescan_s
        self._kept: _Kept | None = None
        self._why_not = ""
        self._retry_at_s = 0.0
        self._asked_s = 0.0
        self._is_closed = threading.Event()
        self._refresher: threading.Thread | None = None

    def scan(self, root: str, rules: TopRules | None = None) -> WatchedScan:
        """What `scan_tree` would give for a folder now.

        Raises:
            OSError: The folder cannot be listed.
        """
        if os.getpid() != self._pid:
            # Events go to one process only, and a lock may be held for ever here.
            return _walked(root, rules, "the process was forked")
        with self._lock:
            self._asked_s = time.monotonic()
            if self._is_closed.is_set():
                return _walked(root, rules, "the watch was closed")
            if time.monotonic() < self._retry_at_s:
                return _walked(root, rules, self._why_not)
            try:
                return self._scanned(root, rules)
            except (UnwatchableError, LostEventsError) as error:
                self._forget()
                self._why_not = error.message
                self._retry_at_s = time.monotonic() + _RETRY_S
                return _walked(root, rules, error.message)
            except BaseException:
                self._forget()
                raise

    def _scanned(self, root: str, rules: TopRules | None) -> WatchedScan:
        reason = "the tree was not watched until now"
        if self._kept is not None:
            try:
                return WatchedScan(tree=self._kept.tree_now(root, rules, 2 * self._rescan_s))
            except LostEventsError as error:
                reason = error.message
        marked = self._kept.marked if self._kept is not None else (TOP,)
        self._forget()
        self._kept = _Kept(root, rules, marked)
        tree = self._kept.walk()
        if self._refresher is None and self._rescan_s:
            self._refresher = threading.Thread(
                target=_refresh_often,
                args=(weakref.ref(self), self._is_closed, self._rescan_s),
                name="filestore-rescan",
                daemon=True,
            )
            self._refresher.start()
        return WatchedScan(tree=tree, unwatched=reason)

    def refresh(self) -> bool:
        """Look at everything again, while others go on asking; whether to do so once more."""
        with self._lock:
            kept, marked = self._kept, set(self._kept.marked if self._kept else ())
            if kept is None or time.monotonic() - self._asked_s > _IDLE_S:
                self._forget()
                self._refresher = None
                return False
        fresh = None
        try:
            fresh = _Kept(kept.root, kept.rules, marked)
            fresh.walk()
        except (FilestoreError, OSError):
            # The next question, once the old walk is too old, gives the reason.
            old = fresh
        else:
            with self._lock:
                is_same = self._kept is kept and not self._is_closed.is_set()
                old, self._kept = (kept, fresh) if is_same else (fresh, self._kept)
        if old is not None:
            old.watches.close()
        return True

    @property
    def folders(self) -> int:
        """How many folders are watched."""
        return self._kept.watches.count if self._kept is not None else 0

    def close(self) -> None:
        """Let go of every watch; later scans walk."""
        if os.getpid() != self._pid:
            return
        self._is_closed.set()
        with self._lock:
            self._forget()
            refresher, self._refresher = self._refresher, None
        if refresher is not None:
            refresher.join()

    def _forget(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.watches.close()


def _refresh_often(
    tree: "weakref.ref[WatchedTree]", is_closed: threading.Event, every_s: float
) -> None:
    """Refresh a tree until it is closed, gone, or not asked."""
    while not is_closed.wait(every_s):
        watched = tree()
        if watched is None or not watched.refresh():
            return
        del watched


def _walked(root: str, rules: TopRules | None, reason: str) -> WatchedScan:
    return WatchedScan(tree=scan.scan_tree(root, rules=rules), unwatched=reason)


class _Folder(Struct):
    """What is known of one folder that is watched."""

    scan: FolderScan | None = None
    """None where rules or permissions keep a walk out of it."""
    rules: FolderRules | None = None
    kept_out: str = ""
    """The reason that a person sees, if rules do."""
    locked: str = ""
    """Why it cannot be entered; that it can is reported as a change of the folder around it."""
    linked: set[str] = field(default_factory=set)
    """The files in it that have other names, too, whose changes are not reported here."""


Stamp = tuple[int, ...] | None


class _Kept:
    """One tree from its first walk until it is forgotten; an `Observer` of its walks."""

    def __init__(self, root: str, rules: TopRules | None, marked: Iterable[ChunkPath]) -> None:
        """Begin with nothing.

        Args:
            root: The folder.
            rules: What of it belongs to the tree.
            marked: The folders of it that had marks of the rules, as far as they are known.
        """
        self.watches = FolderWatches()
        self.marked = set(marked)
        self.root, self.rules = root, rules
        self._top: os.stat_result | None = None
        self._folders: dict[ChunkPath, _Folder] = {}
        self._linked: set[ChunkPath] = set()
        self._tree = TreeScan()
        self._stamps: dict[str, Stamp] = {}
        self._are_rules_sure = True
        self._is_walked = False
        self._begun_s = time.monotonic()

    def walk(self) -> TreeScan:
        """All of the tree, watched from now on.

        Raises:
            OSError: The top cannot be listed.
            UnwatchableError, LostEventsError: It cannot be watched.
        """
        before, begun_ns = self._outside(), time.time_ns()
        with part.folder_of(self.root) as handle:
            self._top = os.fstat(handle)
            walk = Walk(open_bulk_stat(handle), self)
            walk.of_all(handle, self.rules)
        self._require_whole(walk.tree)
        self._is_walked = True
        self._stamps = now = self._outside()
        # A file that is read while it changes, twice in one tick of the clock, shows no trace.
        self._are_rules_sure = before == now and all(
            stamp is None or stamp[0] < begun_ns - _SETTLED_NS for stamp in now.values()
        )
        self._tree = self._assembled()
        return self._tree

    def tree_now(self, root: str, rules: TopRules | None, rescan_s: float) -> TreeScan:
        """The tree as it is now.

        Raises:
            OSError: The top cannot be listed.
            UnwatchableError, LostEventsError: It has to be walked.
        """
        if (root, rules) != (self.root, self.rules):
            raise LostEventsError("the store or its rules changed")
        if time.monotonic() - self._begun_s > rescan_s:
            raise LostEventsError(f"everything is checked again every {rescan_s:g} s")
        with part.folder_of(root) as handle:
            if self._top is None or not os.path.samestat(os.fstat(handle), self._top):
                raise LostEventsError("another folder is in its place")
            changes = self.watches.changes()
            if not self._are_rules_sure or self._outside() != self._stamps:
                raise LostEventsError("the ignore rules changed")
            for path in changes.folders:
                self._drop(path)
            names = {path: has for path, has in changes.names.items() if path in self._folders}
            for path in self._linked:
                names.setdefault(path, set()).update(self._folders[path].linked)
            if names:
                self._look_at(handle, names)
        return self._tree

    def _outside(self) -> dict[str, Stamp]:
        """The stamps of what says something of the tree and lies outside of it."""
        if self.rules is None:
            return {}
        return {path: _stamp(path) for path in self.rules.outside(sorted(self.marked))}

    def _look_at(self, handle: int, names: Mapping[ChunkPath, set[str]]) -> None:
        """Update some names of known folders."""
        if self.rules is not None:
            marks = self.rules.marks
            if not all(has.isdisjoint(marks) for has in names.values()):
                raise LostEventsError("the ignore rules changed")
        walk, is_changed = Walk(observer=self), False
        try:
            for path in sorted(names):
                is_changed |= self._look_into(handle, walk, path, names[path])
        except OSError as error:
            raise LostEventsError(f"a folder cannot be opened: {error.strerror}") from error
        self._require_whole(walk.tree)
        if is_changed:
            self._tree = self._assembled()

    def _look_into(self, top: int, walk: Walk, path: ChunkPath, names: set[str]) -> bool:
        known = self._folders.get(path)
        if known is None or known.scan is None:
            return False
        with disk.folder(top, path) as handle:
            found, linked = walk.stats(handle, path, sorted(names))
            listed = _replaced(known.scan.listed, names, found.entries())
            now = scan.choose(listed, known.rules)
            gone = set(known.scan.entered) - set(now.entered)
            new = [name for name in now.entered if inside(path, name) not in self._folders]
            if not (gone or new) and listed is known.scan.listed:
                return False
            known.scan = now
            self._link(path, known, (known.linked - names).union(linked))
            for name in gone:
                self._drop(inside(path, name))
            depth = path.count("/") + 2 if path else 1
            for name in new:
                walk.enter(handle, inside(path, name), depth, known.rules)
        return True

    def _drop(self, path: ChunkPath) -> None:
        """Forget a folder with all that is below it."""
        known = self._folders.pop(path, None)
        self.watches.drop(path)
        self.marked.discard(path)
        self._linked.discard(path)
        if known is not None and known.scan is not None:
            for name in known.scan.entered:
                self._drop(inside(path, name))

    def entering(self, handle: int, path: ChunkPath) -> None:
        self.watches.add(handle, path)

    def seen(
        self, path: ChunkPath, folder: FolderScan, rules: FolderRules | None, linked: Sequence[str]
    ) -> None:
        self._folders[path] = known = _Folder(scan=folder, rules=rules)
        if self.rules is not None and not set(self.rules.marks).isdisjoint(
            unpack_names(folder.listed.names)
        ):
            self.marked.add(path)
        if linked:
            self._link(path, known, linked)

    def kept_out(self, path: ChunkPath, reason: str) -> None:
        self._folders[path] = _Folder(kept_out=reason)

    def locked(self, path: ChunkPath, reason: str) -> None:
        self._folders[path] = _Folder(locked=reason)

    def _require_whole(self, tree: TreeScan) -> None:
        """Refuse to keep a walk that missed something of which nothing tells when it is there."""
        for path, reason in tree.problems.items():
            if path not in self._folders or not self._folders[path].locked:
                raise UnwatchableError(f"{path or 'the folder'} cannot be read: {reason}")

    def _link(self, path: ChunkPath, known: _Folder, names: Collection[str]) -> None:
        """Note which names of a folder are not the only ones of their files."""
        # Folders have several names, too.
        entries = known.scan.listed.entries() if names and known.scan is not None else {}
        files = {one for one in names if one in entries}
        files = {one for one in files if not stat.S_ISDIR(unpack_stat(entries[one])[-1])}
        before, known.linked = known.linked, files
        if self._is_walked and not known.linked <= before:
            # Its stamps are others now under its first name, of which no event comes.
            raise LostEventsError("a file got a second name")
        (self._linked.add if known.linked else self._linked.discard)(path)
        if sum(len(self._folders[one].linked) for one in self._linked) > _MOST_LINKED:
            raise UnwatchableError("too many files have more than one name (hard links)")

    def _assembled(self) -> TreeScan:
        tree = TreeScan()
        for path, known in self._folders.items():
            if known.scan is None:
                tree.skipped |= {path: known.kept_out} if known.kept_out else {}
                tree.problems |= {path: known.locked} if known.locked else {}
                continue
            if known.scan.packed.stats:
                tree.folders[path] = known.scan.packed
            choice = known.scan.choice
            for name, reason in choice.skipped.items():
                tree.skipped[inside(path, name)] = reason
            tree.ignored += choice.ignored
            tree.other += choice.other
        return tree


def _replaced(
    listed: PackedFolder, names: Collection[str], found: Mapping[str, bytes]
) -> PackedFolder:
    """A folder in which some names are what was found under them; itself where they were."""
    if len(names) > _MANY:
        entries = listed.entries()
        for name in names:
            entries.pop(name, None)
        now = pack_folder({**entries, **found})
        return listed if now == listed else now
    held, stats, size = unpack_names(listed.names), bytearray(listed.stats), STAT_BYTES
    is_same = True
    for name in names:
        place = bisect_left(held, name)
        is_held, entry = held[place : place + 1] == [name], found.get(name, b"")
        stats[size * place : size * (place + is_held)] = entry
        if is_held != bool(entry):
            held[place : place + is_held] = [name] * bool(entry)
            is_same = False
    now = PackedFolder(listed.names if is_same else pack_names(held), bytes(stats))
    return listed if now == listed else now


def _stamp(path: str) -> Stamp:
    """Tells whether a file is another one, or a folder in its place; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        # What is done inside is nothing to us.
        return status.st_dev, status.st_ino
    link = os.path.islink(path)
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, link
