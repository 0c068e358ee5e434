"""One writer at a time: an advisory lock on a file that is never removed and names its holder.

`flock` and not `lockf`: a POSIX record lock is lost when any descriptor of the file is closed. Some
network file systems let everybody have the lock, or everybody on another machine: so a holder
proves that it cannot be had once more, and that the file still names it when it commits.
"""

import contextlib
import errno
import fcntl
import functools
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import Final

import orjson

from filestore.core.errors import FilestoreError
from filestore.fs import disk, part

DEFAULT_WAIT_S: Final = 10.0
_MOST_SIGNED_BYTES: Final = 4096
_STEP_S: Final = 0.05
_PATIENCE_S: Final = 1.0
"""After this, a waiting writer learns who holds the lock."""
_UNKNOWN: Final = "an unknown process"
_BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


class LockedError(FilestoreError, TimeoutError):
    """Another writer holds the store."""


class NoLocksError(FilestoreError, OSError):
    """The file system under the sidecar does not lock."""


@contextlib.contextmanager
def writer_lock(
    path: str,
    *,
    command: str,
    wait_s: float = DEFAULT_WAIT_S,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Iterator[Callable[[], None]]:
    """Hold the store's one writer lock; gives what raises where somebody else took it meanwhile.

    Args:
        path: The lock file; made where it is missing, never removed where it is our own file.
        command: What the holder does, shown to others who wait.
        wait_s: How long to wait for another writer.
        on_wait: Called once with the holder, where the wait is longer than a moment.

    Raises:
        NotAFileError: The lock is no file.
        LockedError: It was still held after that time.
        NoLocksError: The file system does not support locks, or lets several hold one.
    """
    import socket

    try:
        part.check(path)
    except part.NotAFileError:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise
        # A copy made of hard links; a holder of the other name gets an error as he commits.
        os.unlink(path)
    descriptor = part.open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        _acquire(descriptor, path, wait_s, on_wait)
        _require_alone(descriptor, path)
        # Who holds the lock; the token makes it unique.
        record = {
            "command": command,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "token": os.urandom(16).hex(),
        }
        signed = orjson.dumps(record)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, signed, 0)
        _require_signed(path, signed)
        yield functools.partial(_require_signed, path, signed)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: str, wait_s: float, on_wait: Callable[[str], None]) -> None:
    started = time.monotonic()
    deadline = started + wait_s
    notified = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _BUSY:
                raise _no_locks(path, error.strerror) from error
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"another writer holds the store: {holder(path)}"
                    "; wait for it to end, or end it, then run the command again",
                ) from error
            waited_s = time.monotonic() - started
            if not notified and waited_s > _PATIENCE_S:
                name = holder(path)
                # The next holder is about to write its name.
                if name != _UNKNOWN or waited_s > 2 * _PATIENCE_S:
                    on_wait(name)
                    notified = True
            time.sleep(_STEP_S)
        else:
            return


def _no_locks(path: str, reason: str | None) -> NoLocksError:
    return NoLocksError(
        f"the file system of {path} does not lock files: {reason}",
        remedy=part.LOCAL_SIDECAR,
    )


def _require_alone(descriptor: int, path: str) -> None:
    """Prove that the lock that is held cannot be had once more."""
    try:
        other = disk.open_regular(path)
    except FileNotFoundError:
        return
    try:
        if not os.path.sameopenfile(descriptor, other):
            return
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _BUSY:
            raise _no_locks(path, error.strerror) from error
    else:
        raise _no_locks(path, "it gave one lock to two processes at once")
    finally:
        os.close(other)
    # SQLite uses locks of another kind, and would wait for a holder that there is not.
    if reason := part.no_locks(os.path.dirname(path)):
        raise _no_locks(path, reason.strerror)


def _require_signed(path: str, signed: bytes) -> None:
    """Prove that no other process took the lock meanwhile.

    Raises:
        NoLocksError: Another process did.
    """
    # Opened again: only then does a network file system fetch what others wrote.
    with contextlib.suppress(FileNotFoundError):
        if disk.read_path(path, limit=_MOST_SIGNED_BYTES) != signed:
            raise _no_locks(path, f"{holder(path)} got the lock while this process held it")


def holder(path: str) -> str:
    """Who took the lock last, for messages only."""
    try:
        record = orjson.loads(disk.read_path(path, limit=_MOST_SIGNED_BYTES))
        return f"{record['command']!r}, process {record['pid']} on {record['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return _UNKNOWN


def require_locks(path: str) -> None:
    """See whether the lock can be taken, where its file is there.

    Raises:
        NoLocksError: The file system does not lock files.
    """
    try:
        descriptor = disk.open_regular(path)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _BUSY:
            raise _no_locks(path, error.strerror) from error
    finally:
        os.close(descriptor)


def held(path: str) -> bool:
    """Whether some writer holds the lock now."""
    try:
        descriptor = disk.open_regular(path)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        # Where nothing can be locked, no process holds a lock.
        return error.errno in _BUSY
    finally:
        os.close(descriptor)
    return False
