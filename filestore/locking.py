"""One writer at a time: an advisory lock on a file that is never removed and names its holder.

`flock` and not `lockf`: a POSIX record lock is lost when any descriptor of the file is closed.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from typing import Final

import orjson

from filestore.errors import FilestoreError

DEFAULT_WAIT_S: Final = 10.0
_STEP_S: Final = 0.05
_PATIENCE_S: Final = 1.0
"""Who waits longer is told for whom."""
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
) -> Iterator[None]:
    """Hold the store's one writer lock.

    Args:
        path: The lock file; made where it is missing, never removed.
        command: What the holder does, shown to others who wait.
        wait_s: How long to wait for another writer.
        on_wait: Told once who holds it, where that takes more than a moment.

    Raises:
        LockedError: It was still held after that time.
        NoLocksError: The file system does not support locks.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        _acquire(descriptor, path, wait_s, on_wait)
        _sign(descriptor, command)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: str, wait_s: float, on_wait: Callable[[str], None]) -> None:
    started = time.monotonic()
    deadline = started + wait_s
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _BUSY:
                raise NoLocksError(
                    f"the file system of {path} does not lock files: {error.strerror}",
                    remedy="put the sidecar on a local disk: name it for this store under "
                    "[sidecar] in filestore/settings.toml of your configuration folder",
                ) from error
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"another writer holds the store: {holder(path)}",
                    remedy="wait for it to end, or end it, then run the command again",
                ) from error
            if not told and time.monotonic() - started > _PATIENCE_S:
                on_wait(holder(path))
                told = True
            time.sleep(_STEP_S)
        else:
            return


def _sign(descriptor: int, command: str) -> None:
    import socket

    record = {"command": command, "host": socket.gethostname(), "pid": os.getpid()}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, orjson.dumps(record), 0)


def holder(path: str) -> str:
    """Who signed the lock last, in words; for messages only."""
    try:
        with open(path, "rb") as file:
            record = orjson.loads(file.read(4096))
        return f"{record['command']!r}, process {record['pid']} on {record['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "an unknown process"


def held(path: str) -> bool:
    """Whether some writer holds the lock now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
