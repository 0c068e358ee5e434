"""Folders opened by handle, one name at a time, so that no link in their path is followed."""

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Final

from filestore.fs.part import FOLDER_FLAGS

DEEPEST: Final = 64
"""So many folders around another one can be named as `..` at most."""


class Climbing(int):
    """A directory handle from which paths may begin with some `..`."""

    above: int = 0
    """How many."""


def open_folder(root: int, path: str) -> int:
    """Open a folder below a directory handle, one component at a time.

    Args:
        root: A directory handle.
        path: Forward-slash path relative to it; empty for the root itself. It may begin with as
            many `..` as the handle climbs.

    Returns:
        A new directory handle, to be closed by the caller.

    Raises:
        OSError: A component is missing, unreadable, or a symbolic link.
    """
    handle = os.open(".", FOLDER_FLAGS, dir_fd=root)
    climbs = root.above if isinstance(root, Climbing) else 0
    for component in filter(None, path.split("/")):
        climbs = climbs - 1 if component == ".." else min(climbs, 0)
        if component == "." or (component == ".." and climbs < 0):
            os.close(handle)
            raise PermissionError(errno.EACCES, "the path leaves its folder", path)
        try:
            following = os.open(component, FOLDER_FLAGS, dir_fd=handle)
        except BaseException:
            os.close(handle)
            raise
        # Outside the block: a close that is interrupted must not be repeated.
        os.close(handle)
        handle = following
    return handle


@contextlib.contextmanager
def folder_at(path: str, *, above: int = 0) -> Iterator[int]:
    """A directory handle of a folder, as a context; a symbolic link is followed.

    Args:
        path: Of the folder.
        above: How many folders around it may be named as well, as `..`.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    climbing = Climbing(handle)
    climbing.above = above
    try:
        yield climbing
    finally:
        os.close(handle)


@contextlib.contextmanager
def folder(root: int, path: str) -> Iterator[int]:
    """`open_folder` as a context."""
    handle = open_folder(root, path)
    try:
        yield handle
    finally:
        os.close(handle)
