"""Where git keeps what it knows of a folder. Looks at files alone, and starts nothing."""

import os
import stat
from typing import Final

_POINTER_BYTES: Final = 4096


def work_tree(folder: str) -> str | None:
    """The git work tree around a folder; None without git."""
    while True:
        if os.path.exists(path := os.path.join(folder, ".git")) and _is_git(path):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_git(path: str) -> bool:
    """Whether what is called so is what git makes, a folder or a file that names one."""
    if os.path.isdir(path):
        return os.path.lexists(os.path.join(path, "HEAD"))
    return read_start(path, _POINTER_BYTES).startswith(b"gitdir: ")


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
