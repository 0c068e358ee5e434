"""Every command on a terminal, over a store that is full of terminal payloads."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("terminal_payloads.py")


def test_no_payload_reaches_the_terminal() -> None:
    """No byte that could steer a terminal or hide in it comes out of any command, nor an error."""
    command = [sys.executable, "-W", "ignore", PROGRAM, "--every", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| tui |" in done.stdout
