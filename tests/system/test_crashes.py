"""Writers that die or are refused by the disk; a sample of what ``crashes.py`` does in full."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("crashes.py")
CHECKOUT = SCRIPT.parents[2]

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def assert_survives(*words: str) -> None:
    """One experiment, in a process of its own, finds nothing wrong."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), *words],
        cwd=CHECKOUT,
        env={"PYTHONPATH": str(CHECKOUT), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if "strace cannot watch" in done.stderr:
        pytest.skip("strace may not watch processes here")
    assert done.returncode == 0, done.stdout + done.stderr


def test_killed_at_random() -> None:
    """Whatever a killed command had done, repeating it makes the store as it should be."""
    assert_survives("random", "--cycles", "16", "--seed", "3")


@needs_strace
@pytest.mark.parametrize("command", ["sync", "add", "repair", "undo"])
def test_killed_before_a_call(command: str) -> None:
    """A kill before any call that changes the disk costs no byte of truth and no answer."""
    assert_survives("everywhere", "--only", command, "--step", "41")


@needs_strace
def test_killed_twice() -> None:
    """A kill in the recovery from a kill is recovered from like the first."""
    assert_survives("pairs", "--count", "4", "--seed", "5")


@needs_strace
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EROFS", "EACCES"])
def test_refused_by_the_disk(error: str) -> None:
    """A call that fails once is said or made do without, never tried on the same pages again."""
    assert_survives("errors", "--only", "repair", "--error", error, "--step", "61")
