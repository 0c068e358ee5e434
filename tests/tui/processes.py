"""The processes that a test started, as the system has them."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
EARLIER: Final[set[int]] = set()
"""What was there before the test: whatever other tests left behind is none of its own."""


def start(program: str, *words: str) -> "subprocess.Popen[str]":
    """Start a Python program over this checkout; what it prints is read from its stdout."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
    )


def children(pid: int | None = None) -> list[int]:
    """The processes that a process started, in any of its threads, and that are still there.

    Of the one that runs the tests, those that were there before the test are left out.
    """
    tasks = Path(f"/proc/{os.getpid() if pid is None else pid}/task")
    found = []
    for thread in tasks.iterdir():
        # Whoever was started by a thread that ends meanwhile is found with another one.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in (thread / "children").read_text().split()]
    return [child for child in found if child not in EARLIER]


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
