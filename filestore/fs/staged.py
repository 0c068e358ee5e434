"""What is large takes its name once it is whole: a file, or a folder with all that is below it.

For what is written piece by piece; `disk.write_path` is for what is in memory. Written next to its
place, synced, and renamed or exchanged. Rules: at every moment the name has all that is old or all
that is new, where the system can exchange two names in one call; elsewhere there is a moment
without either, and the next writer of the folder around it puts the old one back after it. What a
killed writer left is used again, or deleted by the next one. Where a person names the place
(`check_target`), what this program did not write is not replaced, nor a link followed.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Final

from filestore.core.caller import absolute
from filestore.core.errors import RefusedError, on_error
from filestore.core.hashing import content_hash
from filestore.core.safe_text import shown_path
from filestore.fs import disk
from filestore.fs.part import FOLDER_FLAGS

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})
_EXCHANGE: Final = 2
"""`RENAME_EXCHANGE` of Linux."""
_NOT_THERE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})
_TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY})
_STAGING: Final = f"{disk.TEMPORARY_PREFIX}tree-"
_ASIDE: Final = f"{disk.TEMPORARY_PREFIX}aside-"
"""With its name: the old folder for a moment where two names cannot be exchanged."""
LONGEST_NAME_BYTES: Final = 255 - len(_ASIDE)


class AlreadyWrittenError(RefusedError):
    """Another process is writing the same file."""


@contextlib.contextmanager
def staged_file(path: str) -> Iterator[int]:
    """A descriptor, to be read and written, of a file that replaces `path` when the block ends.

    A block that raises leaves what was there. An existing file keeps its mode.

    Raises:
        AlreadyWrittenError: Another process is at it.
        WriteFailedError: The disk refused; the old file is untouched.
    """
    parent, name = os.path.split(absolute(path))
    temporary = f"{disk.TEMPORARY_PREFIX}{content_hash(os.fsencode(name)).hex()}"
    with disk.disk_errors(path), disk.folder_at(parent) as folder:
        mode = None
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        descriptor = _locked(folder, temporary, path)
        try:
            os.ftruncate(descriptor, 0)
            yield descriptor
            os.fsync(descriptor)
            if mode is not None:
                # Last: what a killed writer left must stay writable.
                os.fchmod(descriptor, mode)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(descriptor)
        os.fsync(folder)


def _locked(folder: int, temporary: str, path: str) -> int:
    """Open the temporary file, and hold it."""
    while True:
        disk.check_regular(temporary, folder=folder)
        descriptor = os.open(temporary, _FLAGS, 0o666, dir_fd=folder)
        with on_error(os.close, descriptor):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                # Where nothing can be locked, the one who renames last wins, with a whole file.
                if error.errno in _BUSY:
                    raise AlreadyWrittenError(
                        f"another process is writing {path}: wait until it has ended"
                    ) from error
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(temporary, dir_fd=folder, follow_symlinks=False)
                if os.path.samestat(there, os.fstat(descriptor)):
                    return descriptor
        # Its writer gave it its name just now.
        os.close(descriptor)


@contextlib.contextmanager
def staged_folder(
    path: str,
    *,
    names: Collection[str] | None = None,
    swap: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> Iterator[str]:
    """A new folder that replaces the one at `path` when the block ends, and all that is below it.

    A block that raises leaves what was there. An existing folder keeps its mode. Where two
    processes are at one name, the last counts.

    Args:
        path: Absolute; its name has at most `LONGEST_NAME_BYTES`. What is there is deleted.
        names: Of the files that such a folder has: others stay in it. None: nothing stays.
        swap: Entered for the moment in which the two are exchanged; what it raises stops that.

    Raises:
        WriteFailedError: The disk refused; the old folder is untouched.
    """
    parent = os.path.dirname(path)
    with disk.disk_errors(path):
        handle = None
        while handle is None:
            staging = os.path.join(parent, f"{_STAGING}{os.urandom(8).hex()}")
            os.mkdir(staging)
            # Held, so that no process takes it for one that was left.
            handle = _held(staging)
        try:
            yield staging
            with swap():
                if disk.is_folder(path):
                    os.fchmod(handle, stat.S_IMODE(os.stat(path).st_mode))
                os.fsync(handle)
                if names is not None and disk.is_folder(path):
                    # A second name of each, so that no kill leaves them in what is deleted alone.
                    for name in set(os.listdir(path)).difference(names):
                        with contextlib.suppress(OSError):
                            os.link(os.path.join(path, name), os.path.join(staging, name))
                _install(staging, path)
                if names is not None and disk.is_folder(staging):
                    for name in set(os.listdir(staging)).difference(names):
                        os.rename(os.path.join(staging, name), os.path.join(path, name))
                disk.sync_path(parent)
        finally:
            # Whatever has the name now: what was not to be, or what was replaced.
            shutil.rmtree(staging, ignore_errors=True)
            os.close(handle)


def remove_folder(path: str) -> None:
    """Delete a folder with all that is below it; its name is gone at once.

    Raises:
        FileNotFoundError: There is none.
        WriteFailedError: The disk refused; `collect_folders` deletes what is left.
    """
    parent = os.path.dirname(path)
    gone = os.path.join(parent, f"{_STAGING}{os.urandom(8).hex()}")
    try:
        os.rename(path, gone)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise disk.write_failed(path, error) from error
    handle = _held(gone)
    try:
        with disk.disk_errors(path):
            disk.sync_path(parent)
            # Another process may collect it just now.
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(gone)
            disk.sync_path(parent)
    finally:
        if handle is not None:
            os.close(handle)


def collect_folders(parent: str) -> None:
    """Delete what killed writers left in a folder, and put back what they moved aside."""
    with os.scandir(parent) as entries:
        names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    for name in names:
        path = os.path.join(parent, name)
        if name.startswith(_ASIDE):
            usual = os.path.join(parent, name.removeprefix(_ASIDE))
            with contextlib.suppress(OSError):
                if not os.path.lexists(usual):
                    os.rename(path, usual)
            shutil.rmtree(path, ignore_errors=True)
        elif name.startswith(_STAGING) and (handle := _held(path)) is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)


def _held(path: str) -> int | None:
    """A handle of a folder, locked; None where another process has it locked, or it went."""
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


def _install(staging: str, path: str) -> None:
    """Let a new folder have a name, and the old one of that name, if any, the other."""
    parent, name = os.path.split(path)
    aside = os.path.join(parent, f"{_ASIDE}{name}")
    while True:
        try:
            if not os.path.lexists(path):
                os.rename(staging, path)
            elif not _exchanged(staging, path):
                os.rename(path, aside)
                with on_error(os.rename, aside, path):
                    os.rename(staging, path)
                os.rename(aside, staging)
            return
        except FileNotFoundError:
            # Deleted between two calls, by another process.
            if not os.path.lexists(staging):
                raise
        except OSError as error:
            # Made between two calls.
            if error.errno not in _TAKEN:
                raise


def _exchanged(one: str, other: str) -> bool:
    """Exchange two names in one call; whether the system can."""
    import ctypes

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


HEAD_BYTES: Final = 65 * 1024
"""Of what is there; every form shows in them what it is."""
ANOTHER: Final = "name another file, or remove that one"


class TargetRefused(RefusedError):
    """Something would be written where other things have their place."""


def check_target(
    path: str, is_own: Callable[[bytes], bool], *, found: str, remedy: str = ANOTHER
) -> None:
    """Let no file be replaced that a person may want to keep; nothing there is fine.

    Args:
        path: As it was named.
        is_own: Whether a file that begins so may be replaced.
        found: What any other file is, as "it is no pack".
        remedy: What to do then.

    Raises:
        TargetRefused: It may not, or is no regular file.
    """
    try:
        descriptor = disk.open_regular(path)
        with open(descriptor, "rb", buffering=0) as file:
            if is_own(file.read(HEAD_BYTES)):
                return
    except FileNotFoundError:
        return
    except disk.NotAFileError as error:
        found = error.message.removeprefix(f"{path} ")
    except OSError as error:
        disk.pass_limits(error)
        is_link = error.errno == errno.ELOOP and os.path.islink(path)
        found = "it is a symbolic link" if is_link else error.strerror or str(error)
    raise TargetRefused(f"{shown_path(path)} is not overwritten: {found}", remedy=remedy)
