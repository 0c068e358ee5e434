"""A folder of files that takes its name once it is whole: made beside it, synced, exchanged.

`staged_folder` is for files that belong together and mean nothing one by one, `staged_tree` for all
that is below a folder, `staged_file` for one file. One rule: at every moment the name has all the
old files or all the new ones, where the system can exchange two names in one call; elsewhere there
is a moment without either; the next writer, or `collect_trees`, puts the old ones back after it.
"""

import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Final

from filestore.core.errors import on_error
from filestore.core.hashing import content_hash
from filestore.fs import disk
from filestore.fs.part import FOLDER_FLAGS
from filestore.fs.staged_file import AlreadyWrittenError

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
        aside = f"{usual}{_ASIDE}"
        # A writer was killed between its two steps.
        if disk.is_folder(aside):
            if os.path.lexists(path):
                _remove(aside, names)
            else:
                os.rename(aside, path)
        staging, handle = _made(usual, path, names)
        try:
            yield staging
            for file in os.listdir(handle):
                descriptor = disk.open_regular(file, folder=handle)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            os.fsync(handle)
            if disk.is_folder(path):
                os.fchmod(handle, stat.S_IMODE(os.stat(path).st_mode))
            install(staging, path, aside=aside)
        finally:
            # Whatever has the name now: what was not to be, or what was replaced.
            with contextlib.suppress(OSError):
                _remove(staging, names)
            os.close(handle)
        disk.sync_path(parent)


def _made(usual: str, path: str, names: Collection[str]) -> tuple[str, int]:
    """An empty folder beside the name, held; a writer that was killed may have left it."""
    for number in itertools.count():
        staging = f"{usual}-{number}" if number else usual
        handle = _held(staging, path)
        with on_error(os.close, handle):
            _clear(handle, names)
            if not os.listdir(handle):
                return staging, handle
        # A file of another name is somebody's, and must not come along.
        os.close(handle)
    raise AssertionError


def _held(staging: str, path: str) -> int:
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(staging, 0o777)
        handle = os.open(staging, FOLDER_FLAGS)
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
    handle = os.open(path, FOLDER_FLAGS)
    try:
        _clear(handle, names)
    finally:
        os.close(handle)
    os.rmdir(path)


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


_STAGING: Final = f"{disk.TEMPORARY_PREFIX}tree-"
_ASIDE_TREE: Final = f"{disk.TEMPORARY_PREFIX}aside-"
"""With its name: the old tree for a moment where two names cannot be exchanged."""
LONGEST_NAME_BYTES: Final = 255 - len(_ASIDE_TREE)
_TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY})


@contextlib.contextmanager
def staged_tree(
    path: str, *, swap: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext
) -> Iterator[str]:
    """A new folder that replaces the one at `path` when the block ends, and all that is below it.

    A block that raises leaves what was there. Where two processes are at one name, the last counts.

    Args:
        path: Absolute; its name has at most `LONGEST_NAME_BYTES`. What is there is deleted.
        swap: Entered for the moment in which the two are exchanged; what it raises stops that.

    Raises:
        WriteFailedError: The disk refused; the old folder is untouched.
    """
    parent = os.path.dirname(path)
    with disk.disk_errors(path):
        staging, handle = _made_tree(parent)
        try:
            yield staging
            with swap():
                _install_tree(staging, path)
                disk.sync_path(parent)
        finally:
            # Whatever has the name now: what was not to be, or what was replaced.
            shutil.rmtree(staging, ignore_errors=True)
            os.close(handle)


def remove_tree(path: str) -> None:
    """Delete a tree, whose name is gone at once.

    Raises:
        FileNotFoundError: There is none.
        WriteFailedError: The disk refused; `collect_trees` deletes what is left.
    """
    parent = os.path.dirname(path)
    gone = os.path.join(parent, f"{_STAGING}{os.urandom(8).hex()}")
    try:
        os.rename(path, gone)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise disk.write_failed(path, error) from error
    handle = _held_tree(gone)
    try:
        with disk.disk_errors(path):
            disk.sync_path(parent)
            # Another process may collect_trees it just now.
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(gone)
            disk.sync_path(parent)
    finally:
        if handle is not None:
            os.close(handle)


def collect_trees(parent: str) -> None:
    """Delete what writers left in a folder that were killed, and put back what they moved aside."""
    with os.scandir(parent) as entries:
        names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    for name in names:
        path = os.path.join(parent, name)
        if name.startswith(_ASIDE_TREE):
            usual = os.path.join(parent, name.removeprefix(_ASIDE_TREE))
            with contextlib.suppress(OSError):
                if not os.path.lexists(usual):
                    os.rename(path, usual)
            shutil.rmtree(path, ignore_errors=True)
        elif name.startswith(_STAGING):
            handle = _held_tree(path)
            if handle is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(handle)


def _made_tree(parent: str) -> tuple[str, int]:
    """An empty folder, held, so that nobody takes it for one that was left."""
    while True:
        staging = os.path.join(parent, f"{_STAGING}{os.urandom(8).hex()}")
        os.mkdir(staging)
        handle = _held_tree(staging)
        if handle is not None:
            return staging, handle


def _held_tree(path: str) -> int | None:
    """A handle of a folder that nobody else holds; None where somebody does, or it went."""
    try:
        handle = os.open(path, FOLDER_FLAGS)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.lstat(path), os.fstat(handle)):
            return handle
    os.close(handle)
    return None


def _install_tree(staging: str, path: str) -> None:
    parent, name = os.path.split(path)
    while True:
        try:
            return install(staging, path, aside=os.path.join(parent, f"{_ASIDE_TREE}{name}"))
        except FileNotFoundError:
            # Deleted between two calls, by another process.
            if not os.path.lexists(staging):
                raise
        except OSError as error:
            # Made between two calls.
            if error.errno not in _TAKEN:
                raise
