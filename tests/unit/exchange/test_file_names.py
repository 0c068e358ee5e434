"""What must hold of the names of files that are written for a person."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.config.layout import folded_path
from filestore.exchange.file_names import FileNames
from filestore.verify.names import why_unportable

NAMES = st.text(max_size=300) | st.text("aA./\\:é\u0301 \x00\n*con", max_size=12)


@given(st.lists(NAMES, max_size=12))
def test_names_are_safe_and_differ(wanted: list[str]) -> None:
    """Each is one name that all file systems hold, and none confuses two of them."""
    names = FileNames()
    found = [names.take(name, ".md") for name in wanted]
    assert not any("/" in name or name.startswith(".") for name in found)
    assert [why_unportable(name) for name in found] == [""] * len(found)
    assert len({folded_path(name) for name in found}) == len(found)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("report.pdf", "report.pdf.md"),
        ("../../etc/passwd", "etc-passwd.md"),
        ("a/b", "a-b.md"),
        ("..", "unnamed.md"),
        ("", "unnamed.md"),
        ("con", "_con.md"),
        (".hidden", "hidden.md"),
        ("was: what?", "was- what.md"),
    ],
)
def test_a_name_is_as_near_as_can_be(wanted: str, found: str) -> None:
    """What a person would expect."""
    assert FileNames().take(wanted, ".md") == found


def test_the_same_folder_keeps_its_name() -> None:
    """And another one that a file system confuses with it gets another."""
    names = FileNames()
    assert [names.folder(name) for name in ("Docs", "docs", "Docs")] == ["Docs", "docs (2)", "Docs"]
