"""Where lines stood in the version before, and whether they said the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.past.sections import Span, before, below_heading

TEXT = ["# A", "", "one", "", "# B", "", "two", "three", "", "# C", "", "four", ""]
B = Span(start=4, end=9)
_LINES = st.lists(st.sampled_from(["# A", "# B", "one", "two", "three", ""]), max_size=12)


def edited(old: str, new: str) -> list[str]:
    """The text before, in which something else stood."""
    return "\n".join(TEXT).replace(new, old).split("\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("one\nmore", "one"),
        ("", "# A\n\none\n\n"),
        ("4\n5\n6", "four"),
        ("# C\n\nfour\n\n# B\n\ntwo\nthree\n", "# B\n\ntwo\nthree\n\n# C\n\nfour\n"),
        ("two  \nthree\t", "two\nthree"),
        ("\n\n\n# B\n\n\n", "\n# B\n\n"),
    ],
)
def test_what_changed_elsewhere_is_no_change(old, new):
    """Lines move, and blanks come and go; what the section says is the same."""
    found, same = before(edited(old, new), TEXT, B)
    assert same
    assert found is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2", "two"),
        ("# Bee", "# B"),
        ("two\nand a half\nthree", "two\nthree"),
        ("two\nthree\nand more", "two\nthree"),
        ("two", "two\nthree"),
        ("three", "two\nthree"),
    ],
)
def test_what_changed_inside_is_one(old, new):
    """Lines that were other, that were there, or were not there yet; at its edges, too."""
    found, same = before(edited(old, new), TEXT, B)
    assert not same
    assert found is not None
    assert "# A" not in edited(old, new)[found.start : found.end]
    assert "# C" not in edited(old, new)[found.start : found.end]


def test_a_new_section() -> None:
    """There was nothing of it before."""
    assert before(edited("", "# B\n\ntwo\nthree\n\n"), TEXT, B) == (None, False)
    assert before([], TEXT, B) == (None, False)


def test_a_large_change_ends() -> None:
    """Two texts of many lines without one in common are compared as one change."""
    old = [f"old {number}" for number in range(30_000)]
    new = [f"new {number}" for number in range(30_000)]
    assert before(old, new, Span(start=5, end=9)) == (Span(start=0, end=30_000), False)


@given(_LINES)
def test_a_text_is_as_it_was(lines):
    """Of the same text every part is the same, where it says anything."""
    for start in range(len(lines)):
        for end in range(start + 1, len(lines) + 1):
            if any(line.strip() for line in lines[start:end]):
                found, same = before(lines, lines, Span(start=start, end=end))
                assert same
                assert found is not None
                words = " ".join(lines[found.start : found.end]).split()
                assert words == " ".join(lines[start:end]).split()


@given(_LINES, _LINES, st.integers(0, 12), st.integers(0, 12))
def test_it_stays_within_the_text(old, new, start, end):
    """Whatever the texts are."""
    start, end = min(start, end, len(new)), min(max(start, end), len(new))
    found, same = before(old, new, Span(start=start, end=end))
    if found is None:
        assert not same
    else:
        assert 0 <= found.start < found.end <= len(old)


@pytest.mark.parametrize(("at", "start", "end"), [(0, 0, 4), (3, 0, 4), (4, 4, 9), (8, 4, 9)])
def test_below_a_heading(at, start, end):
    """From the heading above a line to the next one."""
    whole = Span(start=0, end=len(TEXT))
    assert below_heading(TEXT, whole, at) == Span(start=start, end=end)
    assert below_heading(TEXT, Span(start=5, end=9), 6) == Span(start=5, end=9)
    assert below_heading(["#no", "    # no", "# yes"], Span(start=0, end=3), 1).end == 2
