"""What changes in some folders, told by the system: inotify, on the file systems that report all.

Knows nothing of what the folders hold. One rule: a change whose system call has returned is told by
the next `changes`, or `LostEventsError` is raised; where that cannot be promised no folder is
watched. Not told: what is written through a mapping of a file until that ends, and what another
name of a file (a hard link in another folder) was used for.
"""

import errno
import fcntl
import os
import sys
from typing import Final

from msgspec import Struct, field

from filestore.core.errors import FilestoreError
from filestore.core.packages import install_line
from filestore.core.paths import TOP, ChunkPath, folder_of

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
        """Begin with none.

        Raises:
            UnwatchableError: This system has no such service, or has it for no more programs.
        """
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
            # A mapping of a file that ends is told as the end of writing.
            flags.MODIFY | flags.ATTRIB | flags.CLOSE_WRITE | flags.MOVED_FROM | flags.MOVED_TO
            | flags.CREATE | flags.DELETE | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
        )  # fmt: skip
        self._paths: dict[int, ChunkPath] = {}
        self._watches: dict[ChunkPath, int] = {}
        self._devices: set[int] = set()
        self._mounts = _mounts()

    def add(self, handle: int, path: ChunkPath) -> None:
        """Tell from now on what changes in a folder.

        Args:
            handle: Its directory handle.
            path: Under which name it is told.

        Raises:
            UnwatchableError: Its file system does not report every change, or there is no room.
            LostEventsError: The same folder is watched under another name: it was moved just now.
        """
        device = os.fstat(handle).st_dev
        if device not in self._devices:
            _require_reporting(handle, path)
            self._devices.add(device)
        if _ignores_case(handle):
            raise UnwatchableError(f"{path or 'the folder'} ignores case: events tell other names")
        try:
            # By its handle, so that it is the very folder that is listed.
            watch = self._inotify.add_watch(f"/proc/self/fd/{handle}", self._mask)
        except OSError as error:
            raise _no_room(error, "max_user_watches") from error
        if self._paths.setdefault(watch, path) != path:
            raise LostEventsError("a folder is in two places of the tree")
        self._watches[path] = watch

    def drop(self, path: ChunkPath) -> None:
        """Tell no more of a folder."""
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
        """How many folders are watched."""
        return len(self._watches)

    def close(self) -> None:
        """Let go of all of them."""
        self._inotify.close()


def _require_reporting(handle: int, path: ChunkPath) -> None:
    import ctypes

    # The type of the file system, as `statfs` tells it.
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    is_unknown = ctypes.CDLL(None, use_errno=True).fstatfs(handle, buffer)
    kind = 0 if is_unknown else int.from_bytes(buffer.raw[:4], sys.byteorder)
    if kind not in _REPORTING:
        where = f"the file system of {path}" if path else "the file system"
        raise UnwatchableError(f"{where} (type {kind:#x}) may change without telling")


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
            f"too much is watched on this system already: fs.inotify.{limit} is used up",
            remedy=f"sysctl fs.inotify.{limit}=1000000",
        )
    return UnwatchableError(f"folders cannot be watched here: {error.strerror or error}")
