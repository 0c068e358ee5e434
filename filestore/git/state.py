"""Where git keeps what it knows of a folder. Looks at files alone, and starts nothing."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from filestore.fs import part

POINTER_BYTES: Final = 4096
FILES: Final = ("HEAD", "commondir", "index")
"""What git reads from the folder of a work tree's state, whatever it is asked."""
SHARED_FILES: Final = ("packed-refs", "shallow")
SHARED_FOLDERS: Final = ("objects", "objects/info", "objects/pack", "refs")
"""The same from the folder that linked work trees share: these with what lies below, the objects
themselves left out, of which there may be many."""
SETTINGS_FILES: Final = ("config", "config.worktree")
"""Read as well where the settings of a repository are asked for."""


def work_tree(folder: str) -> str | None:
    """The git work tree around a folder; None without git."""
    while True:
        state = state_folder(folder) if os.path.exists(os.path.join(folder, ".git")) else None
        # Git, too, takes nothing else of that name for its own.
        if state is not None and os.path.lexists(os.path.join(state, "HEAD")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def state_folder(tree: str) -> str | None:
    """The folder in which git keeps the state of a work tree."""
    path = os.path.join(tree, ".git")
    if os.path.isdir(path):
        return path
    # A linked work tree or a submodule: the file says where the folder is.
    word, _, target = read_start(path, POINTER_BYTES).partition(b": ")
    named = os.fsdecode(target.strip())
    return os.path.join(tree, named) if word == b"gitdir" and "\0" not in named else None


def common_folder(state: str) -> str:
    """The folder that a linked work tree shares with the others: all but its HEAD and its index."""
    shared = read_start(os.path.join(state, "commondir"), POINTER_BYTES).strip()
    return os.path.realpath(os.path.join(state, os.fsdecode(shared.partition(b"\0")[0])))


def require_files(state: str, *, settings: bool = False, objects: bool = False) -> None:
    """Refuse what git would wait for, or read without end: a pipe in the place of a file, say.

    Args:
        state: The folder in which git keeps the state of a work tree.
        settings: Whether the settings are to be read.
        objects: Whether each object is looked at, too.

    Raises:
        NotAFileError: There is such a thing.
    """
    common = common_folder(state)
    own = (*FILES, *(SETTINGS_FILES if settings else ()))
    shared = (*SHARED_FILES, *(SETTINGS_FILES if settings else ()))
    places = [os.path.join(state, name) for name in own]
    places += [os.path.join(common, name) for name in shared]
    for name in SHARED_FOLDERS:
        folder = os.path.join(common, name)
        _require(folder, stat.S_IFDIR)
        if name != "objects" or objects:
            places += _no_files_below(folder)
    for path in places:
        _require(path, stat.S_IFREG)


def _require(path: str, kind: int) -> None:
    try:
        found = stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        # Git says itself what it cannot look at.
        return
    if found != kind:
        what = part.KINDS.get(found, "something unknown")
        raise part.not_a_file(path, f"is {what}, not {part.KINDS[kind]}")


def _no_files_below(folder: str) -> Iterator[str]:
    """What is neither a file nor a folder, at any depth."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _no_files_below(entry.path)
            elif not entry.is_file() and not entry.is_dir():
                yield entry.path


def read_start(path: str, most: int) -> bytes:
    """The first bytes of a regular file; none of anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(handle, most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(handle)
