"""Some of the fuzzed frontmatters, and the bombs; `frontmatter_fuzz.py` tries 200,000 inputs."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).with_name("frontmatter_fuzz.py")


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("frontmatter_fuzz", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["frontmatter_fuzz"] = module
    spec.loader.exec_module(module)
    return module


fuzz = _loaded()


@pytest.mark.parametrize("name", fuzz.bombs())
def test_a_bomb_is_read_or_refused(name: str) -> None:
    """A file made to break a reader is read alike by both, or refused with an error of ours."""
    fuzz.check(fuzz.bombs()[name])


def test_there_are_a_hundred_bombs() -> None:
    """The bombs made by hand are at least a hundred."""
    assert len(fuzz.bombs()) >= 100


def test_fuzzed_frontmatter_is_read_or_refused() -> None:
    """Thousands of made and mutated files: none ends otherwise than read or refused."""
    # Time is measured by hand: another's work on the machine must not fail it.
    command = [sys.executable, PROGRAM, "--count", "3000", "--limit-ms", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3,000 inputs" in done.stdout
