"""Work that is stopped, by Ctrl-C or a kill: all of a change is there then, or nothing of it.

`stopped_work.py` stops what is stopped; here a few of the moments run, more in the exhaustive run,
and as many as one likes with `python tests/system/stopped_work.py --call … --how … --moments …`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("stopped_work.py")


def stopped(*calls: str, how: tuple[str, ...], moments: int) -> dict[str, Any]:
    """What the program found, with nothing wrong."""
    words = ["--call", *calls, "--how", *how, "--moments", str(moments)]
    done = subprocess.run(
        [sys.executable, PROGRAM, *words],
        env=os.environ | {"PYTHONPATH": str(PROGRAM.parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    for one in found.values():
        assert sum(one["ends"].values()) == len(how) * moments
    return found


@pytest.mark.parametrize("moments", [3, pytest.param(7, marks=pytest.mark.exhaustive)])
def test_a_repair_that_is_stopped_is_taken_back(moments: int) -> None:
    """After a stop at any moment what was there before comes back, byte for byte; no child runs."""
    found = stopped("apply", how=("SIGINT", "SIGKILL"), moments=moments)["apply"]
    assert found["changes"]
    assert found["trees"]["before"] >= 1


@pytest.mark.parametrize("moments", [2, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_an_undo_that_is_stopped_is_completed(moments: int) -> None:
    """An undo or a redo that is stopped is completed by the next one, and can be turned back."""
    for found in stopped("undo", "redo", how=("SIGINT", "SIGKILL"), moments=moments).values():
        assert found["changes"]


def test_what_changes_no_file_is_stopped() -> None:
    """A plan, verification or sync that is stopped leaves every file, and the next one works."""
    for found in stopped("plan", "verify", "sync", how=("SIGINT",), moments=2).values():
        assert not found["changes"]
