"""The line that an editor is opened at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.views.context import line_in_sight, line_named, line_of_passage, line_of_query

TEXT = """---
questions: [Where does a river begin?]
---
# Rivers

A river *begins* at a
[spring](https://example.org/x), or in a lake.

A river ends in the sea.

A river *begins* at a glacier.
"""


@pytest.mark.parametrize(
    ("row", "share", "line"),
    [
        ("Rivers", 0.0, 4),
        ("A river begins at a spring, or in", 0.1, 6),
        ("or in a lake.", 0.3, 7),
        ("A river ends in the sea.", 0.6, 9),
        ("A river begins at a", 0.0, 6),
        ("A river begins at a", 1.0, 11),
        ("─────", 0.5, 0),
        ("", 0.5, 0),
        ("nothing like that", 0.5, 0),
    ],
)
def test_a_row_on_the_screen_is_found_in_the_file(row: str, share: float, line: int) -> None:
    """Marks of Markdown and other breaks of lines are no obstacle; the nearest place is meant."""
    assert line_in_sight(TEXT, row, share) == line


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("sea", 9),
        ("river glacier", 11),
        ('"ends in the sea"', 9),
        ("GLAC", 0),
        ("sea -river", 9),
        ("questions", 0),
        ("", 0),
    ],
)
def test_the_line_with_most_words_of_a_query_is_meant(query: str, line: int) -> None:
    """The first one of these, and never one of the frontmatter."""
    assert line_of_query(TEXT, query) == line


def test_a_finding_may_name_its_line() -> None:
    """The first number behind the word."""
    assert line_named("the conflict markers are in lines 2, 4 and 6") == 2
    assert line_named("unreadable: line 14, column 3") == 14
    assert line_named("3 lines differ") == 0


@given(st.text(), st.text(), st.floats(0, 1))
def test_any_text_has_its_lines(text: str, row: str, share: float) -> None:
    """A line is one of the file, or none."""
    for line in (line_in_sight(text, row, share), line_of_query(text, row)):
        assert 0 <= line <= text.count("\n") + 1


def test_a_passage_is_found_by_its_words() -> None:
    """What is read hides where links lead; words that only stand near each other are none."""
    text = "# The quay\n\nThe boat.\n\nThe [quay](quay.md) of [[Kiel|the town]].\n"
    assert line_of_passage(text, "The quay of the town.") == 5
    assert line_of_passage(text, "The boat.") == 3
    assert line_of_passage(text, "of no town") == 0
    assert line_of_passage(text, "") == 0
