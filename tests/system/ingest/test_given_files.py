"""What a person names on the command line is not read without end."""

import os
from pathlib import Path
from typing import Any

import pytest

from filestore.fs import disk


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file that costs its maker nothing."""
    path = tmp_path / "endless"
    path.touch()
    os.truncate(path, disk.MOST_GIVEN_BYTES + 1)
    return path


def test_more_than_is_taken_is_refused(workspace: Any, endless: Path) -> None:
    """The command ends, with the limit in its message."""
    workspace.sync()
    done = workspace("evaluate", endless, code=3)
    assert f"{endless} has more than {disk.MOST_GIVEN_BYTES:,} bytes" in done.stderr
    assert "; name a smaller file" in done.stderr
