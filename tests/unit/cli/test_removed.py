"""What was removed says what to use instead."""

from pathlib import Path

import pytest

from filestore.cli._parser import REMOVED, parse
from filestore.core.errors import UsageError

CHANGELOG = Path(__file__).resolve().parents[3] / "CHANGELOG.md"


@pytest.mark.parametrize("key", REMOVED)
def test_what_was_removed_is_named(key: str) -> None:
    """By the command and in the changelog."""
    with pytest.raises(UsageError, match=f"'{key}' was removed") as caught:
        parse(key.split())
    assert caught.value.remedy == REMOVED[key]
    assert f"`filestore {key}`" in CHANGELOG.read_text()
