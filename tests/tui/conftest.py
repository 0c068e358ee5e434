"""What every test of the inspector begins with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import EARLIER, children
from .repairing import Case


@pytest.fixture(autouse=True)
def _own_processes() -> Iterator[None]:
    """Leave out what was running before."""
    EARLIER.clear()
    EARLIER.update(children())
    yield
    EARLIER.clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of four chunk files, to be looked at only, or copied."""
    folder = tmp_path_factory.mktemp("made")
    Case.make(folder)
    return folder


@pytest.fixture
def case(tmp_path: Path, made: Path) -> Case:
    """A copy of it."""
    return Case(tmp_path / "case", made)
