"""Some of the damaged indexes; `form_fuzz.py` tries 10,000."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("form_fuzz.py")


def fuzzed(count: int) -> None:
    """Damage so many times: nothing comes of it but an error of ours, or what is sound."""
    command = [sys.executable, str(PROGRAM), "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    assert f"{count:,} damages" in done.stdout


def test_damaged_indexes_are_refused_or_sound() -> None:
    """Hundreds, each in another way."""
    fuzzed(300)


@pytest.mark.exhaustive
def test_thousands_of_damaged_indexes_are_refused_or_sound() -> None:
    """As many as a person would never try."""
    fuzzed(3_000)
