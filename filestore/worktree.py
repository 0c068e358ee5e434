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


def committed_paths(folder: str) -> set[str] | None:
    """The paths below a folder that git's HEAD has, relative to it.

    Returns:
        None where there is no git, no repository or no commit, or where HEAD has nothing below the
        folder: then git is no witness that files are meant to be gone.
    """
    import subprocess

    command = ["git", "-C", folder, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", "."]
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=_TIMEOUT_S, env=_quiet_environment()
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return {name for name in names if name} if done.returncode == 0 and done.stdout else None


def _quiet_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
