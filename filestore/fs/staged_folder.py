"""A folder of files that takes its name once it is whole: made beside it, synced, exchanged.

For files that belong together and mean nothing one by one; `staged_file` is for one. One rule: at
every moment the name has all the old files or all the new ones, where the system can exchange two
names in one call; elsewhere there is a moment without either.
"""

import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Collection, Iterator
from typing import Final

from filestore.core.hashing import content_hash
from filestore.fs import disk
from filestore.fs.staged_file import AlreadyWrittenError

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_EXCHANGE: Final = 2
"""`RENAME_EXCHANGE` of Linux."""
_ASIDE: Final = "-old"
"""What the old folder is called for a moment where two names cannot be exchanged."""
_NOT_THERE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})
_BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})


@contextlib.contextmanager
def staged_folder(path: str, names: Collection[str]) -> Iterator[str]:
    """A new folder that replaces the one at `path` when the block ends, with all that is in it.

    A block that raises leaves what was there.

    Args:
        path: Absolute. What is there has to be looked at before; it is deleted with the names.
        names: Of the files that such a folder has; another one is never deleted.

    Raises:
        AlreadyWrittenError: Another process is at it.
        WriteFailedError: The disk refused; the old folder is untouched.
    """
    parent, name = os.path.split(path)
    usual = os.path.join(parent, f"{disk.TEMPORARY_PREFIX}{content_hash(os.fsencode(name)).hex()}")
    with disk.disk_errors(path):
        _restore(f"{usual}{_ASIDE}", path, names)
        staging, handle = _made(usual, path, names)
        try:
            yield staging
            _sync(handle)
            if disk.is_folder(path):
                os.fchmod(handle, stat.S_IMODE(os.stat(path).st_mode))
            install(staging, path, aside=f"{usual}{_ASIDE}")
        finally:
            # Whatever has the name now: what was not to be, or what was replaced.
            with contextlib.suppress(OSError):
                _remove(staging, names)
            os.close(handle)
        disk.sync_path(parent)


def _restore(aside: str, path: str, names: Collection[str]) -> None:
    """Put back the old folder of a writer that was killed between its two steps."""
    if not disk.is_folder(aside):
        return
    if os.path.lexists(path):
        _remove(aside, names)
    else:
        os.rename(aside, path)


def _made(usual: str, path: str, names: Collection[str]) -> tuple[str, int]:
    """An empty folder beside the name, held; a writer that was killed may have left it."""
    for number in itertools.count():
        staging = f"{usual}-{number}" if number else usual
        handle = _held(staging, path)
        try:
            _clear(handle, names)
            if not os.listdir(handle):
                return staging, handle
        except BaseException:
            os.close(handle)
            raise
        # A file of another name is somebody's, and must not come along.
        os.close(handle)
    raise AssertionError


def _held(staging: str, path: str) -> int:
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(staging, 0o777)
        handle = os.open(staging, _FLAGS)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.lstat(staging), os.fstat(handle)):
                return handle
        except FileNotFoundError:
            pass  # Its writer gave it its name just now.
        except OSError as error:
            os.close(handle)
            if error.errno in _BUSY:
                raise AlreadyWrittenError(
                    f"another process is writing {path}", remedy="wait until it has ended"
                ) from error
            raise
        os.close(handle)


def _clear(handle: int, names: Collection[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=handle)


def _remove(path: str, names: Collection[str]) -> None:
    handle = os.open(path, _FLAGS)
    try:
        _clear(handle, names)
    finally:
        os.close(handle)
    os.rmdir(path)


def _sync(handle: int) -> None:
    """Bring every file of a folder to the disk, then their names."""
    for name in os.listdir(handle):
        descriptor = disk.open_regular(name, folder=handle)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    os.fsync(handle)


def install(staging: str, path: str, *, aside: str) -> None:
    """Let a new folder have a name, and the old one of that name, if any, the other.

    Args:
        staging: The new one, beside it.
        path: The name, absolute.
        aside: Of the old one for a moment, where two names cannot be exchanged.

    Raises:
        OSError: The disk refused, or another process is at it.
    """
    if not os.path.lexists(path):
        os.rename(staging, path)
        return
    if _exchanged(staging, path):
        return
    os.rename(path, aside)
    try:
        os.rename(staging, path)
    except OSError:
        os.rename(aside, path)
        raise
    os.rename(aside, staging)


def _exchanged(one: str, other: str) -> bool:
    """Exchange two names in one call; whether the system can."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    here = ctypes.c_int(-100)  # `AT_FDCWD`; the paths are absolute
    if call(here, os.fsencode(one), here, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_THERE:
        return False
    raise OSError(number, os.strerror(number), other)
