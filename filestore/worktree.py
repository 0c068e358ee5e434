"""What git knows of the folder a store lies in. Asks git, changes nothing, and works without it."""

import os
from typing import Final

_TIMEOUT_S: Final = 30


def work_tree(root: str) -> str:
    """The folder whose files may be referenced in place: the git work tree around the store.

    Without git it is the folder that the store lies in.
    """
    folder = root
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return os.path.dirname(root)
        folder = parent


def deleted_paths(folder: str) -> set[str]:
    """The paths below a folder that some commit has and git's HEAD does not, relative to it.

    They went on purpose: by a commit, a merge, or a change of branch. Empty where there is no git.
    """
    ever = _git(folder, "log", "--all", "--format=", "--name-only", "--relative", "-z", "--", ".")
    head = _git(folder, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", ".")
    return ever - head


def _git(folder: str, *words: str) -> set[str]:
    """The names that a git command prints; none where it fails."""
    import subprocess

    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
            env=_quiet_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return set()
    if done.returncode != 0:
        return set()
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return {name.strip("\n") for name in names} - {""}


def _quiet_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
