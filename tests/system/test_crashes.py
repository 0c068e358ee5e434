"""Writers that die or are refused by the disk; a sample of what ``crashes.py`` does in full."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.crashes import SCENARIOS

SCRIPT = Path(__file__).with_name("crashes.py")
CHECKOUT = SCRIPT.parents[2]

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def assert_survives(*words: str, script: Path = SCRIPT) -> None:
    """One experiment, in a process of its own, finds nothing wrong."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), *words],
        cwd=CHECKOUT,
        env={"PYTHONPATH": str(CHECKOUT), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1_200,
    )
    if "strace cannot watch" in done.stderr:
        pytest.skip("strace may not watch processes here")
    assert done.returncode == 0, done.stdout + done.stderr


def only(commands: list[str]) -> list[str]:
    """The options that choose commands."""
    return [word for command in commands for word in ("--only", command)]


SOME = pytest.mark.parametrize(
    "commands",
    [
        pytest.param(list(SCENARIOS)[::3], id="some"),
        pytest.param(list(SCENARIOS), id="all", marks=pytest.mark.exhaustive),
    ],
)


@SOME
def test_killed_at_random(commands: list[str]) -> None:
    """Whatever a killed command had done, repeating it makes the store as it should be."""
    assert_survives("random", *only(commands), "--cycles", "6", "--seed", "3")


@needs_strace
@pytest.mark.parametrize("command", list(SCENARIOS))
def test_killed_before_a_call(command: str) -> None:
    """A kill before any call that changes the disk costs no byte of truth and no answer.

    Each eighty-third call; `crashes.py everywhere --step 1` takes every one.
    """
    assert_survives("everywhere", "--only", command, "--step", "83")


@needs_strace
@SOME
def test_killed_twice(commands: list[str]) -> None:
    """A kill in the recovery from a kill is recovered from like the first."""
    assert_survives("pairs", *only(commands), "--count", "2", "--seed", "5")


@needs_strace
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EROFS", "EACCES"])
def test_refused_by_the_disk(error: str) -> None:
    """A call that fails once is said or made do without, never tried on the same pages again."""
    assert_survives("errors", "--only", "repair", "--error", error, "--step", "61")
