"""What git knows of the folder a store lies in. Asks git, changes nothing, and works without it."""

import os
from collections.abc import Iterator
from typing import Final

from filestore.errors import RefusedError

_TIMEOUT_S: Final = 30
_OPERATIONS: Final = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
"""What lies in git's folder while it is in the middle of something; the first one tells."""


class GitBusyError(RefusedError):
    """Git is in the middle of an operation, which decides what the files are to be."""


def work_tree(root: str) -> str:
    """The folder whose files may be referenced in place: the git work tree around the store.

    Without git it is the folder that the store lies in.
    """
    return git_work_tree(root) or os.path.dirname(root)


def git_work_tree(folder: str) -> str | None:
    """The git work tree around a folder; None without git."""
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def git_folder(folder: str) -> str | None:
    """The folder in which git keeps the state of the work tree around a folder; None without."""
    tree = git_work_tree(os.path.abspath(folder))
    if tree is None:
        return None
    path = os.path.join(tree, ".git")
    try:
        with open(path, "rb") as file:
            word, _, target = file.read(4096).partition(b": ")
    except OSError:
        return path
    # A linked work tree or a submodule: the file says where the folder is.
    return os.path.join(tree, os.fsdecode(target.strip())) if word == b"gitdir" else None


def operation(folder: str) -> str:
    """What git is in the middle of around a folder, such as ``merge``; "" for nothing."""
    state = git_folder(folder)
    if state is None:
        return ""
    for name, word in _OPERATIONS.items():
        if os.path.exists(os.path.join(state, name)):
            return word
    return ""


def refuse_during_operation(folder: str) -> None:
    """Let no truth file be written while git decides what the files are to be.

    Raises:
        GitBusyError: A merge, rebase or the like is under way.
    """
    word = operation(folder)
    if word:
        last = "git bisect reset" if word == "bisect" else f"git {word} --abort"
        raise GitBusyError(
            f"a git {word} is under way: no chunk file is written until it is over",
            remedy=f"finish it, or take it back with '{last}'; then run the command again",
        )


def unmerged(folder: str) -> set[str]:
    """The paths below a folder that git's index holds unmerged, relative to it."""
    listed = _names(folder, "ls-files", "-z", "--unmerged", "--", ".")
    return {entry.partition("\t")[2] for entry in listed}


def blob(folder: str, path: str, revision: str = "HEAD") -> bytes | None:
    """What git has of a path, relative to the folder; None where it has nothing.

    Args:
        folder: A folder of the work tree.
        path: Relative to it.
        revision: A commit; "" for the index.
    """
    return _git(folder, "cat-file", "blob", f"{revision}:./{path}")


def last_commit(folder: str, path: str) -> tuple[int, bytes] | None:
    """When the newest commit that HEAD has of a path was made, in seconds, and its bytes."""
    data = blob(folder, path)
    stamp = _git(folder, "log", "-1", "--format=%ct", "--", path)
    if data is None or not stamp or not stamp.strip().isdigit():
        return None
    return int(stamp), data


def head_time(folder: str) -> int | None:
    """When HEAD was committed, in seconds; None without git, or where nothing is committed."""
    stamp = _git(folder, "log", "-1", "--format=%ct", "HEAD")
    return int(stamp) if stamp and stamp.strip().isdigit() else None


def blob_names(folder: str) -> dict[str, str]:
    """Each path below a folder that HEAD has, relative to it, to the name of its blob."""
    found: dict[str, str] = {}
    for entry in _names(folder, "ls-tree", "-r", "-z", "HEAD", "--", "."):
        words, _, path = entry.partition("\t")
        found[path] = words.rpartition(" ")[2]
    return found


def named_blob(folder: str, name: str) -> bytes | None:
    """What git has under the name of a blob; None where it has nothing."""
    return _git(folder, "cat-file", "blob", name)


def blob_name(data: bytes, like: str) -> str:
    """The name that git gives to bytes, by the hash that made another name."""
    import hashlib

    digest = hashlib.new("sha256" if len(like) == 64 else "sha1", usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()


def history(folder: str, path: str, most: int = 50) -> Iterator[bytes]:
    """What a path held in earlier commits, newest first, each content once.

    Args:
        folder: A folder of the work tree.
        path: Relative to it; followed through renames that git recognises.
        most: So many commits are looked at.
    """
    words = ("log", f"-{most}", "--format=", "--raw", "--no-abbrev", "-z", "--follow", "--", path)
    seen: set[str] = set()
    for entry in (_git(folder, *words) or b"").split(b"\0"):
        fields = entry.decode("ascii", "replace").lstrip("\n").split(" ")
        if len(fields) != 5 or not fields[0].startswith(":"):
            continue
        for name in (fields[3], fields[2]):
            if name in seen or not name.strip("0"):
                continue
            seen.add(name)
            data = _git(folder, "cat-file", "blob", name)
            if data is not None:
                yield data


def deleted_paths(folder: str) -> set[str]:
    """The paths below a folder that some commit has and git's HEAD does not, relative to it.

    They went on purpose: by a commit, a merge, or a change of branch. Empty where there is no git.
    """
    ever = _names(folder, "log", "--all", "--format=", "--name-only", "--relative", "-z", "--", ".")
    head = _names(folder, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", ".")
    return ever - head


def _names(folder: str, *words: str) -> set[str]:
    """The names that a git command prints; none where it fails."""
    names = (_git(folder, *words) or b"").decode("utf-8", "surrogateescape").split("\0")
    return {name.strip("\n") for name in names} - {""}


def _git(folder: str, *words: str) -> bytes | None:
    """What a git command prints; None where it fails or there is no git."""
    import subprocess

    try:
        done = subprocess.run(
            ["git", "-C", folder, "-c", "core.fsmonitor=false", *words],
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
            env=quiet_environment(),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def quiet_environment() -> dict[str, str]:
    """The environment in which git answers about the folder it is asked about, and changes nothing.

    A hook runs with variables that point elsewhere; a clone's settings must not start a program.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return kept | quiet | {"GIT_LITERAL_PATHSPECS": "1"}
