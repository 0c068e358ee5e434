"""What a collection may be called."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import RefusedError, UsageError
from filestore.server.collection import check_alike, check_name


@pytest.mark.parametrize(
    "name", ["a", "notes 2024", "Gebäude", "知識", "a.b", "a..b", "x" * 200, "~", "%2e"]
)
def test_usual_names_are_taken(name: str) -> None:
    """Blanks, dots and other scripts among them."""
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        None, 3, "", " ", ".", "..", ".git", "-rf", "a/b", "/a", "../a", "a\\b", "a\0b", "a\nb",
        "a\x1b[2J", "a\u202eb", "a\u2028", "\ud800", " a", "a ", "x" * 256, "知" * 90,
    ],
)  # fmt: skip
def test_names_that_could_leave_or_deceive_are_refused(name: object) -> None:
    """Each with its reason."""
    with pytest.raises(UsageError):
        check_name(name)


@given(st.text())
def test_a_name_is_one_folder_below(name: str) -> None:
    """Or refused."""
    try:
        check_name(name)
    except UsageError:
        return
    place = os.path.normpath(os.path.join("/root", name))
    assert os.path.dirname(place) == "/root"
    assert os.path.basename(place) == name


@pytest.mark.parametrize(("one", "other"), [("Kb", "kb"), ("caf\u00e9", "cafe\u0301"), ("ss", "ß")])
def test_names_that_some_disks_take_for_one_are_refused(one: str, other: str) -> None:
    """But not the same one again."""
    with pytest.raises(RefusedError):
        check_alike(one, [other])
    check_alike(one, [one])
