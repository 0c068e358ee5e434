"""Putting bytes on disk and taking them off it: safe reads, atomic writes, the file system's clock.

Holds no knowledge of what the bytes mean. One rule: below a root, everything is reached by
directory handle and no symbolic link is followed.
"""

import contextlib
import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from typing import Final

from filestore.errors import FilestoreError

TEMPORARY_PREFIX: Final = ".filestore-tmp-"
PERMISSION_ERRORS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY
_ATTEMPTS: Final = 3
_CLOCK_STEP_S: Final = 0.001
_COARSEST_TICK_S: Final = 2.1
_MOST: Final = 2**63 - 1


class UnstableFileError(FilestoreError, OSError):
    """A file kept changing while it was read."""


class NotAFileError(FilestoreError, OSError):
    """Something that is not a regular file stands where one was expected."""


class WriteFailedError(FilestoreError, OSError):
    """The disk refused a write; what was there before is still there."""


def open_folder(root: int, path: str) -> int:
    """Open a folder below a directory handle, one component at a time.

    Args:
        root: A directory handle.
        path: Forward-slash path relative to it; empty for the root itself.

    Returns:
        A new directory handle, to be closed by the caller.

    Raises:
        OSError: A component is missing, unreadable, or a symbolic link.
    """
    handle = os.open(".", _FOLDER_FLAGS, dir_fd=root)
    for component in filter(None, path.split("/")):
        if component in (".", ".."):
            os.close(handle)
            raise PermissionError(errno.EACCES, "the path leaves its folder", path)
        try:
            following = os.open(component, _FOLDER_FLAGS, dir_fd=handle)
        except BaseException:
            os.close(handle)
            raise
        # Outside the block: whoever is interrupted in closing must not close it once more.
        os.close(handle)
        handle = following
    return handle


@contextlib.contextmanager
def folder(root: int, path: str) -> Iterator[int]:
    """`open_folder` as a context."""
    handle = open_folder(root, path)
    try:
        yield handle
    finally:
        os.close(handle)


def read_at(handle: int, name: str, *, limit: int | None = None) -> tuple[bytes, os.stat_result]:
    """Read one regular file whole, with the stat that belongs to exactly these bytes.

    Args:
        handle: The directory handle of its folder.
        name: The file's name in that folder.
        limit: Read no more than this many bytes; None reads everything.

    Raises:
        UnstableFileError: It changed during each of three attempts.
        NotAFileError: It is a device, pipe, socket or folder.
        OSError: It cannot be read.
    """
    for _ in range(_ATTEMPTS):
        descriptor = os.open(name, _READ_FLAGS, dir_fd=handle)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise NotAFileError(f"{name} is not a regular file")
            data = _read_all(descriptor, before.st_size if limit is None else limit)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if stat_values(before) == stat_values(after):
            return data, after
    raise UnstableFileError(
        f"{name} changed while it was read, {_ATTEMPTS} times", remedy="try again when it is quiet"
    )


def _read_all(descriptor: int, size: int) -> bytes:
    data = os.read(descriptor, size)
    if len(data) == size:
        return data
    blocks = [data]
    missing = size - len(data)
    while data and missing > 0:
        data = os.read(descriptor, missing)
        missing -= len(data)
        blocks.append(data)
    return b"".join(blocks)


def read_below(root: int, path: str) -> tuple[bytes, os.stat_result]:
    """`read_at` for a path of several components below a directory handle."""
    parent, _, name = path.rpartition("/")
    with folder(root, parent) as handle:
        return read_at(handle, name)


def stat_values(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """What identifies a file's state: size, mtime_ns, ctime_ns, inode and mode, as int64.

    A stamp beyond the year 2262 is the last one that fits, an inode keeps its 64 bits.
    """
    return (
        status.st_size,
        max(-_MOST, min(status.st_mtime_ns, _MOST)),
        max(-_MOST, min(status.st_ctime_ns, _MOST)),
        status.st_ino if status.st_ino <= _MOST else status.st_ino - 2**64,
        status.st_mode,
    )


def write_at(handle: int, name: str, data: bytes) -> None:
    """Replace or make one file atomically: temporary file, sync, rename. The folder is not synced.

    An existing file keeps its mode.

    Raises:
        WriteFailedError: The disk refused; the old file is untouched.
    """
    temporary = ""
    try:
        temporary = _stage(handle, name, data)
        os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=handle)
        raise write_failed(name, error) from error


def _stage(handle: int, name: str, data: bytes) -> str:
    """Write and sync a temporary file that may take a name's place."""
    temporary = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    try:
        there = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
        if stat.S_ISDIR(there):
            raise IsADirectoryError(errno.EISDIR, "a folder stands in its place", name)
        mode = stat.S_IMODE(there)
    except FileNotFoundError:
        mode = None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666, dir_fd=handle)
    try:
        if mode is not None:
            os.fchmod(descriptor, mode)
        write_all(descriptor, data)
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=handle)
        raise
    finally:
        os.close(descriptor)
    return temporary


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of some bytes, however few a call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_path(path: str, data: bytes) -> None:
    """`write_at` for an ordinary path, with its folder synced."""
    parent, name = os.path.split(path)
    handle = os.open(parent or ".", os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        write_at(handle, name, data)
        os.fsync(handle)
    finally:
        os.close(handle)


def write_failed(name: str, error: OSError) -> WriteFailedError:
    """Say what a failed write means and what to do about it."""
    if error.errno in FULL_ERRORS:
        remedy = "free some space, then run the command again"
    elif error.errno in PERMISSION_ERRORS:
        remedy = "make the folder writable, or work on a copy of the store"
    else:
        remedy = "check the disk, then run the command again"
    reason = error.strerror or str(error)
    return WriteFailedError(f"cannot write {name}: {reason}", remedy=remedy, detail=str(error))


def sync_folders(root: int, paths: Iterable[str]) -> None:
    """Make renames and deletions in these folders durable. A folder that is gone is passed over."""
    for path in sorted(set(paths)):
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            folder(root, path) as handle,
        ):
            os.fsync(handle)


def sync_path(path: str) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class FileSystemClock:
    """The clock that stamps files in a folder, read from a probe file there.

    A wall clock will not do: stamps run behind or ahead of it, and are coarser.
    """

    def __init__(self, probe_path: str) -> None:
        self._path = probe_path

    def now_ns(self) -> int:
        """The stamp a file would get if it were written now.

        Raises:
            WriteFailedError: The probe cannot be written.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.pwrite(descriptor, b"t", 0)
                return os.fstat(descriptor).st_mtime_ns
            finally:
                os.close(descriptor)
        except OSError as error:
            raise write_failed(self._path, error) from error

    def wait_past(self, stamp_ns: int) -> int:
        """Wait until the clock has moved past a stamp, and return its reading.

        Waits no longer than the coarsest tick known (2 s): a stamp in the future is not waited for,
        and the caller sees a reading that is not later than it.
        """
        deadline = time.monotonic() + _COARSEST_TICK_S
        while True:
            now_ns = self.now_ns()
            too_far = stamp_ns - now_ns > _COARSEST_TICK_S * 1e9
            if now_ns > stamp_ns or too_far or time.monotonic() > deadline:
                return now_ns
            time.sleep(_CLOCK_STEP_S)


def is_full(path: str) -> bool:
    """Whether the file system of a path has no room left."""
    try:
        return os.statvfs(path).f_bavail == 0
    except OSError:
        return False


@contextlib.contextmanager
def disk_errors(path: str) -> Iterator[None]:
    """Turn a disk that refuses, as SQLite or a library tells it, into `WriteFailedError`."""
    try:
        yield
    except FilestoreError:
        raise
    except sqlite3.OperationalError as error:
        # SQLite calls a full disk an I/O error where it only wanted shared memory.
        number = errno.ENOSPC if "full" in str(error) or is_full(path) else errno.EIO
        if "readonly" in str(error) or "unable to open" in str(error):
            number = errno.EROFS
        reason = OSError(number, os.strerror(number) if number != errno.EIO else str(error))
        raise write_failed(path, reason) from error
    except OSError as error:
        raise write_failed(path, error) from error
