"""The line that the words of a finding name."""

from tui.views.context import line_named


def test_a_finding_names_its_line() -> None:
    """The first number behind the word."""
    assert line_named("the conflict markers are in lines 2, 4 and 6") == 2
    assert line_named("unreadable: line 14, column 3") == 14
    assert line_named("3 lines differ") == 0
