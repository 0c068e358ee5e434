"""What the tests of reading documents share."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def new_folder(work_tree: Path) -> Callable[[], Path]:
    """Makes a new empty folder in one work tree at every call."""
    made = iter(range(1_000_000))

    def folder() -> Path:
        root = work_tree / str(next(made))
        root.mkdir()
        return root

    return folder
