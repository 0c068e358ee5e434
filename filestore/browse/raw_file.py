"""One file as it is on disk now, for a person to look at: its bytes, or why there are none to show.

Reads; never raises for what stands there. One rule: no link is followed, nothing but a regular file
is opened, and no more is read than a chunk file may have.
"""

import os
import stat
import time
from typing import Final

from msgspec import Struct

from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.chunks.observe import describe_unread
from filestore.fs import disk

_TEXT_START: Final = 8192
"""A file with a NUL in so many first bytes is no text, as git has it."""


class Present(Struct, frozen=True, kw_only=True):
    """What stands at a path."""

    data: bytes | None = None
    """None where nothing is read; `problem` says why."""
    size_bytes: int = 0
    mtime_ns: int = 0
    problem: str = ""
    is_gone: bool = False

    @property
    def is_text(self) -> bool:
        """Whether there are bytes that a person can read."""
        return self.data is not None and b"\0" not in self.data[:_TEXT_START]

    @property
    def text(self) -> str:
        """The bytes as text, those that are no UTF-8 by their numbers."""
        return (self.data or b"").decode("utf-8", "backslashreplace")


GONE: Final = Present(problem="there is no file", is_gone=True)


def look(root: str, path: str) -> Present:
    """Look at a file.

    Args:
        root: A folder; a link to one is followed.
        path: Relative to it, with forward slashes.
    """
    try:
        parent, _, name = path.rpartition("/")
        with disk.folder_at(root) as handle, disk.folder(handle, parent) as folder:
            return _look_at(folder, name or ".")
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    except (OSError, ValueError) as error:
        return Present(problem=getattr(error, "strerror", None) or str(error))


def _look_at(folder: int, name: str) -> Present:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    size, stamp = status.st_size, status.st_mtime_ns
    problem = _why_unread(folder, name, status)
    if problem:
        return Present(size_bytes=size, mtime_ns=stamp, problem=problem)
    try:
        data, status = disk.read_at(folder, name, limit=MAX_CHUNK_BYTES)
    except OSError as error:
        reason, is_gone = error.strerror or str(error), isinstance(error, FileNotFoundError)
        return Present(size_bytes=size, mtime_ns=stamp, problem=reason, is_gone=is_gone)
    return Present(data=data, size_bytes=status.st_size, mtime_ns=status.st_mtime_ns)


def _why_unread(folder: int, name: str, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(os.fsencode(name), dir_fd=folder)
        return describe_unread("symlink", name, status.st_mode, status.st_size, target)
    if not stat.S_ISREG(status.st_mode):
        return describe_unread("special-file", name, status.st_mode, status.st_size)
    if status.st_size > MAX_CHUNK_BYTES:
        return f"{status.st_size:,} bytes, too many to be read here"
    return ""


def moment(stamp_ns: int) -> str:
    """A stamp of a file in words, local time; "" for one that no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp_ns // 1_000_000_000))
    except (OverflowError, OSError, ValueError):
        return ""
