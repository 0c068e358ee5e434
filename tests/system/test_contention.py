"""Many writers and readers at once; a short run of what ``contention.py`` does for longer."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("contention.py")


def test_crowd() -> None:
    """No acknowledged edit is lost and no reader sees half of one, however many there are."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), "--seconds", "4"],
        cwd=SCRIPT.parents[2],
        env={"PYTHONPATH": str(SCRIPT.parents[2]), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
