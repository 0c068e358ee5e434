"""A folder with all that is below it, which takes its name once it is whole.

For a tree, as a store is; `staged_folder` is for a folder of known files. One rule: at every moment
the name has all of the old tree or all of the new one, where the system can exchange two names in
one call; elsewhere there is a moment without either, and `collect` puts the old one back after it.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from filestore.fs import disk
from filestore.fs.staged_folder import install

_STAGING: Final = f"{disk.TEMPORARY_PREFIX}tree-"
_ASIDE: Final = f"{disk.TEMPORARY_PREFIX}aside-"
"""With its name: the old tree for a moment where two names cannot be exchanged."""
LONGEST_NAME_BYTES: Final = 255 - len(_ASIDE)
_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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
        staging, handle = _made(parent)
        try:
            yield staging
            with swap():
                _install(staging, path)
                disk.sync_path(parent)
        finally:
            # Whatever has the name now: what was not to be, or what was replaced.
            shutil.rmtree(staging, ignore_errors=True)
            os.close(handle)


def remove(path: str) -> None:
    """Delete a tree, whose name is gone at once.

    Raises:
        FileNotFoundError: There is none.
        WriteFailedError: The disk refused; `collect` deletes what is left.
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


def collect(parent: str) -> None:
    """Delete what writers left in a folder that were killed, and put back what they moved aside."""
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
        elif name.startswith(_STAGING):
            handle = _held(path)
            if handle is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(handle)


def _made(parent: str) -> tuple[str, int]:
    """An empty folder, held, so that nobody takes it for one that was left."""
    while True:
        staging = os.path.join(parent, f"{_STAGING}{os.urandom(8).hex()}")
        os.mkdir(staging)
        handle = _held(staging)
        if handle is not None:
            return staging, handle


def _held(path: str) -> int | None:
    """A handle of a folder that nobody else holds; None where somebody does, or it went."""
    try:
        handle = os.open(path, _FLAGS)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.lstat(path), os.fstat(handle)):
            return handle
    os.close(handle)
    return None


def _install(staging: str, path: str) -> None:
    parent, name = os.path.split(path)
    while True:
        try:
            return install(staging, path, aside=os.path.join(parent, f"{_ASIDE}{name}"))
        except FileNotFoundError:
            # Deleted between two calls, by another process.
            if not os.path.lexists(staging):
                raise
        except OSError as error:
            # Made between two calls.
            if error.errno not in _TAKEN:
                raise
