"""The processes that a test started, as the system has them."""

import contextlib
import os
from pathlib import Path


def children(pid: int | None = None) -> list[int]:
    """The processes that a process started, in any of its threads, and that are still there."""
    tasks = Path(f"/proc/{os.getpid() if pid is None else pid}/task")
    found = []
    for thread in tasks.iterdir():
        # Whoever was started by a thread that ends meanwhile is found with another one.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
