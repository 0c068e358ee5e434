"""Folders that an engine in this process has open: by one process at a time, shared within it.

Both engines refuse a second opening, of this process as well; so what is open here is handed out
again, and closed with its last user.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from filestore.core.safe_text import shown_path
from filestore.fs import part
from filestore.index._qdrant.points import damaged
from filestore.index.backend import WITHOUT, BackendUnreachable

_WAIT_S: Final = 2.0
"""For another process to let go: a command has a folder for less."""
_PAUSE_S: Final = 0.05


class OpenFolder(Struct):
    """A folder that is open; its engine is None once somebody closed it for all."""

    path: str
    engine: Any
    lock: int
    """The folder itself, locked: the engine's own lock comes after it looked at its files, and what
    a second process mends as it looks is what the first is writing."""
    users: int = 0

    def leave(self, close: Callable[[Any], None]) -> None:
        """Let go of it; the last one closes it."""
        self.users -= 1
        if self.users == 0:
            self.close(close)

    def close(self, close: Callable[[Any], None]) -> None:
        """Close it for all who share it."""
        engine, self.engine = self.engine, None
        if engine is not None:
            _open.pop(self.path, None)
            try:
                close(engine)
            finally:
                os.close(self.lock)


_open: dict[str, OpenFolder] = {}
"""By real path."""


def take(path: str, opened: Callable[[], Any]) -> OpenFolder:
    """A folder, as it is open here, or opened; another process is waited for a little.

    Raises:
        BackendUnreachable: Another process has it open.
    """
    key = os.path.realpath(path)
    if key not in _open:
        lock = _patiently(lambda: _locked(key))
        try:
            _open[key] = OpenFolder(key, _patiently(opened), lock=lock)
        except BaseException:
            os.close(lock)
            raise
    _open[key].users += 1
    return _open[key]


def _locked(path: str) -> int:
    """A descriptor of a folder that no other process has locked."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise busy(shown_path(path)) from None
    except OSError:
        # A file system without locks: the engine's own is what there is.
        return descriptor
    return descriptor


def _patiently(opened: Callable[[], Any]) -> Any:
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            return opened()
        except BackendUnreachable:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)


def is_there(path: str, address: str, *own: str) -> bool:
    """Whether there is such a folder.

    Args:
        path: Of the folder, with nothing in it but what the engine made.
        address: What it is called.
        own: Folders that the engine made as well, on the way to it.

    Raises:
        FolderDamaged: What the engine would open in it is not the user's own.
        BackendUnreachable: There can be none, or the disk does not tell.
    """
    try:
        for folder in own:
            part.check(folder, "folder")
        part.check_tree(path)
        os.listdir(path)
    except FileNotFoundError:
        return False
    except part.NotAFileError as error:
        raise damaged(address, error) from error
    except OSError as error:
        raise BackendUnreachable(
            f"cannot read the folder {address}: {error.strerror or error}",
            remedy=f"make it readable, or set another `path` under [backend_config]. {WITHOUT}",
        ) from None
    return True


def remove(path: str) -> None:
    """Delete a folder, if there is one; a kill leaves it whole under its name, or not there."""
    parent, name = os.path.split(path)
    old = f"{name}.old"
    with contextlib.suppress(FileNotFoundError), part.folder_of(parent) as around:
        part.remove(around, old)
        os.rename(name, old, src_dir_fd=around, dst_dir_fd=around)
        part.remove(around, old)


def busy(address: str) -> BackendUnreachable:
    """Say that another process has it."""
    return BackendUnreachable(
        f"another process has {address} open",
        remedy=f"end it, or wait for it, then try again; a Qdrant server takes several. {WITHOUT}",
    )
