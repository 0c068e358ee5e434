"""What every test of the inspector begins with."""

from collections.abc import Iterator

import pytest

from .processes import EARLIER, children


@pytest.fixture(autouse=True)
def _own_processes() -> Iterator[None]:
    """Leave out what was running before."""
    EARLIER.clear()
    EARLIER.update(children())
    yield
    EARLIER.clear()
