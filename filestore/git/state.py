"""Where git keeps what it knows of a folder. Looks at files alone, and starts nothing."""

import os
import stat
from typing import Final

_POINTER_BYTES: Final = 4096


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
    word, _, target = read_start(path, _POINTER_BYTES).partition(b": ")
    named = os.fsdecode(target.strip())
    return os.path.join(tree, named) if word == b"gitdir" and "\0" not in named else None


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
