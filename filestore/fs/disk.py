"""Putting bytes on disk and taking them off it: safe reads, atomic writes, the file system's clock.

Holds no knowledge of what the bytes mean. One rule: below a root, everything is reached by
directory handle and no symbolic link is followed.
"""

import contextlib
import errno
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from typing import IO, Final, Self

from xxhash import xxh3_128

from filestore.core.errors import FilestoreError
from filestore.fs import part
from filestore.fs.part import DEEPEST as DEEPEST
from filestore.fs.part import KINDS as KINDS
from filestore.fs.part import NotAFileError as NotAFileError
from filestore.fs.part import folder as folder
from filestore.fs.part import folder_at as folder_at
from filestore.fs.part import not_a_file
from filestore.fs.part import open_folder as open_folder

TEMPORARY_PREFIX: Final = ".filestore-tmp-"
PERMISSION_ERRORS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
LIMIT_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What the machine refuses this process at the moment; says nothing of what was asked for."""
_SQLITE_FILES: Final = 8
"""A database, its log, the index of that, their folder: twice as many as SQLite opens at once."""

MOST_BYTES: Final = 256 * 1024 * 1024
"""No file is read whole that has more: a sparse one costs its maker nothing."""

MOST_GIVEN_BYTES: Final = 64 * 1024 * 1024
"""No more is taken of what a person names on the command line, which may be a pipe without end."""

READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_HANDED_OVER: Final = re.compile(r"/dev/stdin|/(?:dev|proc/(?:self|[0-9]+))/fd/[0-9]+")
"""A descriptor that is open already, as a path."""
_NO_FILE: Final = frozenset({errno.ENXIO, errno.EISDIR})
"""How opening a socket, a pipe without a reader, or a folder fails."""
_BLOCK: Final = 1024 * 1024
_ATTEMPTS: Final = 3
_CLOCK_STEP_S: Final = 0.001
_COARSEST_TICK_S: Final = 2.1
_MOST: Final = 2**63 - 1
_ABANDONED_S: Final = 24 * 3600


class UnstableFileError(FilestoreError, OSError):
    """A file kept changing while it was read."""


class FileTooLargeError(FilestoreError, OSError):
    """A file has more bytes than are read of its kind."""


class WriteFailedError(FilestoreError, OSError):
    """The disk refused a write; what was there before is still there."""


class LimitReachedError(FilestoreError):
    """The machine gives this process no more open files, or no more memory.

    No OSError: it says nothing of a file, and must not be handled as if it did.
    """


def pass_limits(error: BaseException) -> None:
    """Raise what says nothing of the file that was asked for; do nothing for any other error.

    Raises:
        LimitReachedError: No more files can be opened, or there is no more memory.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        remedy = "close other programs, or raise the limit that 'ulimit -v' shows; then try again"
        raise LimitReachedError(
            "there is not enough memory left", remedy=remedy, detail=str(error)
        ) from error
    if isinstance(error, OSError) and error.errno in LIMIT_ERRORS:
        raise too_few_files(str(error)) from error


def pass_hidden_limits(error: BaseException) -> None:
    """The same for a library that does not tell why it could not open a file."""
    pass_limits(error)
    handles: list[int] = []
    try:
        for _ in range(_SQLITE_FILES):
            handles.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as reason:
        if reason.errno in LIMIT_ERRORS:
            raise too_few_files(str(error)) from error
    finally:
        for handle in handles:
            os.close(handle)


def too_few_files(detail: str = "") -> LimitReachedError:
    """Say that no more files can be opened, and how many may be."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return LimitReachedError(
        f"no more files can be opened: the limit of this process is {soft:,}",
        remedy="close other programs, or raise it with 'ulimit -n 1024'; then try again",
        detail=detail,
    )


class Closing:
    """What holds files open until it is closed. A context manager."""

    __slots__ = ()

    def close(self) -> None:
        """Let go of every file."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_regular(path: str, *, folder: int | None = None, follow_links: bool = False) -> int:
    """Open a regular file to be read, and never wait for anything else in its place.

    Args:
        path: Where it is expected.
        folder: A directory handle that the path is relative to; None for an ordinary path.
        follow_links: Whether its last step may be a symbolic link, as in a user's own folders.

    Returns:
        A descriptor, to be closed by the caller.

    Raises:
        NotAFileError: It is a device, pipe, socket or folder.
        OSError: It cannot be opened, or is a link that is not followed.
    """
    flags = READ_FLAGS
    if follow_links:
        # A link may lead to a device, and some devices act as soon as they are opened.
        check_regular(path, folder=folder, follow_links=True)
        flags &= ~os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_FILE:
            check_regular(path, folder=folder)
        raise
    try:
        _require_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_given(path: str) -> int:
    """Open what a person names to be read: a regular file, or what a shell hands over, ``<(…)``.

    A pipe in the place of a file is not waited for, because it may have no writer.

    Returns:
        A descriptor, to be closed by the caller.

    Raises:
        NotAFileError: It is a device, pipe, socket or folder.
        OSError: It cannot be opened.
    """
    if _HANDED_OVER.fullmatch(path):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        return open_regular(path, follow_links=True)
    except NotAFileError as error:
        raise NotAFileError(f"{error.message}; name a file, or write - < PIPE") from error


def check_regular(path: str, *, folder: int | None = None, follow_links: bool = False) -> None:
    """Refuse what is no regular file, for a library that opens it by its path.

    Args:
        path: Where it is expected; nothing there is fine.
        folder: A directory handle that the path is relative to; None for an ordinary path.
        follow_links: Whether its last step may be a symbolic link.

    Raises:
        NotAFileError: It is a device, pipe, socket or folder, or a link that is not followed.
        OSError: It cannot be looked at.
    """
    with contextlib.suppress(FileNotFoundError):
        _require_regular(path, os.stat(path, dir_fd=folder, follow_symlinks=follow_links))


def _require_regular(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        found = KINDS.get(stat.S_IFMT(status.st_mode), "something unknown")
        raise not_a_file(path, f"is {found}, not a regular file")


def file_hash(path: str) -> bytes:
    """The xxh3_128 digest of a whole file of the sidecar: 16 bytes, read block by block.

    Raises:
        NotAFileError: It is no regular file.
        OSError: The file cannot be read.
    """
    descriptor = open_regular(path)
    try:
        hashed = xxh3_128()
        while block := os.read(descriptor, _BLOCK):
            hashed.update(block)
        return hashed.digest()
    finally:
        os.close(descriptor)


def read_path(path: str, *, limit: int = MOST_BYTES, follow_links: bool = False) -> bytes:
    """Read one regular file whole, up to a limit.

    Raises:
        FileTooLargeError: It has more.
        NotAFileError: It is a device, pipe, socket or folder.
        OSError: It cannot be read.
    """
    descriptor = open_regular(path, follow_links=follow_links)
    try:
        size = os.fstat(descriptor).st_size
        # A file may grow, and one of the system's own has no size.
        data = _read_all(descriptor, limit + 1) if size <= limit else b""
    finally:
        os.close(descriptor)
    if size > limit or len(data) > limit:
        raise _too_large(path, max(size, len(data)), limit)
    return data


def read_given(file: IO[bytes], name: str) -> bytes:
    """Read what a person gave, from a pipe as well, up to a limit.

    Raises:
        FileTooLargeError: It has more.
        OSError: It cannot be read.
    """
    data = file.read(MOST_GIVEN_BYTES + 1)
    if len(data) > MOST_GIVEN_BYTES:
        raise FileTooLargeError(
            f"{name} has more than {MOST_GIVEN_BYTES:,} bytes, the limit; name a smaller file",
        )
    return data


def _too_large(path: str, size: int, limit: int) -> FileTooLargeError:
    return FileTooLargeError(
        f"{path} has {size:,} bytes; the limit is {limit:,}",
        remedy=f"replace {path} with a smaller file, or remove it",
    )


def read_at(
    handle: int, name: str, *, limit: int | None = None, most: int = MOST_BYTES
) -> tuple[bytes, os.stat_result]:
    """Read one regular file whole, with the stat that belongs to exactly these bytes.

    Args:
        handle: The directory handle of its folder.
        name: The file's name in that folder.
        limit: Read no more than this many bytes; None reads everything.
        most: Where everything is read, refuse a file with more bytes.

    Raises:
        UnstableFileError: It changed during each of three attempts.
        FileTooLargeError: It has more bytes than are read.
        NotAFileError: It is a device, pipe, socket or folder.
        OSError: It cannot be read.
    """
    for _ in range(_ATTEMPTS):
        descriptor = open_regular(name, folder=handle)
        try:
            before = os.fstat(descriptor)
            if limit is None and before.st_size > most:
                raise _too_large(name, before.st_size, most)
            data = _read_all(descriptor, before.st_size if limit is None else limit)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if stat_values(before) == stat_values(after):
            return data, after
    raise UnstableFileError(
        f"{name} kept changing in {_ATTEMPTS} attempts to read it; try again later"
    )


def _read_all(descriptor: int, size: int) -> bytes:
    """Up to `size` bytes; room is made only for as many as a block has more than were found."""
    data = os.read(descriptor, min(size, _BLOCK))
    if len(data) == size:
        return data
    blocks = [data]
    missing = size - len(data)
    while data and missing > 0:
        data = os.read(descriptor, min(missing, _BLOCK))
        missing -= len(data)
        blocks.append(data)
    return b"".join(blocks)


def read_below(
    root: int, path: str, *, limit: int | None = None, most: int = MOST_BYTES
) -> tuple[bytes, os.stat_result]:
    """`read_at` for a path of several components below a directory handle."""
    parent, _, name = path.rpartition("/")
    with folder(root, parent) as handle:
        return read_at(handle, name, limit=limit, most=most)


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
        mode = None
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
            if stat.S_ISDIR(there):
                raise IsADirectoryError(errno.EISDIR, "a folder is in its place", name)
            mode = stat.S_IMODE(there)
        temporary = stage(handle, data, mode)
        os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=handle)
        raise write_failed(name, error) from error


def stage(handle: int, data: bytes, mode: int | None = None, mtime_ns: int | None = None) -> str:
    """Write and sync a file under a temporary name in a folder: that name.

    Args:
        handle: The folder's directory handle.
        data: What it is to hold.
        mode: Its permissions; None: as the process's mask has it.
        mtime_ns: When it was written; None: now.

    Raises:
        OSError: The disk refused; nothing is left of it.
    """
    temporary = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # Private first: a text that only its owner may read is not shown for a moment.
    descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=handle)
    try:
        write_all(descriptor, data)
        if mode is not None:
            os.fchmod(descriptor, mode)
        if mtime_ns is not None:
            # Not every file system has every date, and the bytes matter more.
            with contextlib.suppress(OSError):
                os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=handle)
        raise
    finally:
        os.close(descriptor)
    return temporary


def remove_staged(handle: int) -> None:
    """Remove what a dead writer staged in a folder: the caller is the only writer."""
    for name in os.listdir(handle):
        if name.startswith(TEMPORARY_PREFIX):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=handle)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of some bytes, however few a call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_path(path: str, data: bytes) -> None:
    """`write_at` for an ordinary path, with its folder synced."""
    parent, name = os.path.split(path)
    with folder_at(parent or ".") as handle:
        write_at(handle, name, data)
        os.fsync(handle)


def write_own(path: str, data: bytes) -> None:
    """`write_path` for a folder of the user's that no lock guards: also clears it.

    Temporary files that are a day old are removed: their writer is dead.

    Raises:
        WriteFailedError: The disk refused; the old file is untouched.
    """
    write_path(path, data)
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(path)) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY_PREFIX):
                age_s = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if age_s > _ABANDONED_S:
                    os.unlink(entry.path)


def link_or_copy(source: str, target: str) -> None:
    """Give a file that is never written again a second name, or copy it where that cannot be.

    Raises:
        OSError: It is gone, or there is no room for a copy.
    """
    import shutil

    try:
        os.link(source, target)
    except OSError:
        # Some file systems have no hard links, and none lead to another one.
        shutil.copyfile(source, target)


def write_failed(name: str, error: OSError) -> WriteFailedError:
    """Say what a failed write means and what to do about it.

    Raises:
        LimitReachedError: It says nothing about the disk.
    """
    pass_limits(error)
    place, reason, remedy = part.explained(name, error)
    return WriteFailedError(f"cannot write {place}: {reason}", remedy=remedy, detail=str(error))


def is_folder(path: str) -> bool:
    """Whether a folder itself is there, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def sync_folders(root: int, paths: Iterable[str]) -> None:
    """Make renames and deletions in these folders durable. A folder that is gone is passed over."""
    for path in sorted(set(paths)):
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            folder(root, path) as handle,
        ):
            os.fsync(handle)


def make_folders(path: str, mode: int = 0o777) -> None:
    """Make a folder, and those around it that are missing, and make their names durable.

    What is synced in a folder whose own name never came to the disk is lost with it.

    Raises:
        OSError: The disk refused, or a file is in the way.
    """
    missing = []
    around = os.path.abspath(path)
    while not os.path.lexists(around):
        missing.append(around)
        around = os.path.dirname(around)
    os.makedirs(path, mode=mode, exist_ok=True)
    for made in reversed(missing):
        # A folder that may be written but not read cannot be opened to be synced.
        with contextlib.suppress(PermissionError):
            sync_path(os.path.dirname(made))


def sync_path(path: str) -> None:
    """Make the names in a folder durable."""
    with folder_at(path) as handle:
        os.fsync(handle)


class FileSystemClock:
    """The clock that stamps files in a folder, read from a probe file there.

    A wall clock will not do: stamps run behind or ahead of it, and are coarser.
    """

    def __init__(self, probe_path: str) -> None:
        self._path = probe_path

    def now_ns(self) -> int:
        """The stamp a file would get if it were written now.

        Raises:
            NotAFileError: The probe is no file.
            WriteFailedError: The probe cannot be written.
        """
        try:
            descriptor = part.open_file(self._path, os.O_WRONLY | os.O_CREAT)
            try:
                os.pwrite(descriptor, b"t", 0)
                return os.fstat(descriptor).st_mtime_ns
            finally:
                os.close(descriptor)
        except NotAFileError:
            raise
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


@contextlib.contextmanager
def disk_errors(path: str) -> Iterator[None]:
    """Turn a disk that refuses, as SQLite or a library tells it, into `WriteFailedError`."""
    try:
        yield
    except FilestoreError:
        raise
    except sqlite3.OperationalError as error:
        pass_hidden_limits(error)
        raise write_failed(path, part.of_sqlite(path, error)) from error
    except OSError as error:
        raise write_failed(path, error) from error
    except MemoryError as error:
        pass_limits(error)
        raise
