"""Places in a file: what names which part of a text, and what is given of it at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse.spans import FileText, NoLineError, Range, readings
from filestore.core.errors import UsageError
from filestore.core.safe_text import safe_text
from tests.advice import advised

TEXT = FileText(
    text="---\ntags: x\n---\n# One\n\nFirst.\n\n## Two\n\nSecond.\n\n# Three\n\nThird.",
    start=16,
    passages=[(16, 31), (31, 47), (47, 63)],
    name="a.md",
)


def shown(text: FileText, place: str = "", most: int | None = None) -> str:
    """The text of a place."""
    wanted = Range.parse(place) if place else None
    (start, end), _, _ = text.shown(wanted, most)
    return text.text[start:end]


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("", TEXT.body),
        ("6", "# One\n\nFirst.\n\n"),
        ("1", "# One\n\nFirst.\n\n"),
        ("6-6", "First.\n"),
        ("1-3", "---\ntags: x\n---\n"),
        ("13-", "\nThird."),
        ("13-99", "\nThird."),
        ("14+2-", "ird."),
        ("14+2-14", "ird."),
        ("#One", "# One\n\nFirst.\n\n## Two\n\nSecond.\n\n"),
        ("#two", "## Two\n\nSecond.\n\n"),
        ("#One > Two", "## Two\n\nSecond.\n\n"),
    ],
)
def test_what_a_place_names(place: str, found: str) -> None:
    """A line alone its passage, lines as they are, a section with what is below it."""
    assert shown(TEXT, place) == found


@pytest.mark.parametrize("place", ["15", "15-20", "99999", str(10**30), "p1", "#Four", "#"])
def test_what_is_not_there_is_an_error_that_says_what_is(place: str) -> None:
    """With a way out."""
    with pytest.raises((NoLineError, UsageError)) as error:
        shown(TEXT, place)
    assert advised(error.value) or ": name " in error.value.message


@pytest.mark.parametrize("place", ["0", "0-5", "40-10", "p0", "p3-2", "x", "-3", "1-2-3", "1:2"])
def test_what_is_no_place_is_wrong_usage(place: str) -> None:
    """With the form that was meant, where that can be told."""
    with pytest.raises(UsageError) as error:
        shown(TEXT, place)
    assert advised(error.value)
    if place == "40-10":
        assert error.value.remedy == "10-40"


def test_pages_are_named_by_their_numbers() -> None:
    """Several, too; a page without text is none."""
    paged = FileText(text="one\ntwo\nfive\n", pages=[(0, 1), (4, 2), (8, 5)], name="a.pdf")
    assert shown(paged, "p2") == "two\n"
    assert shown(paged, "p2-5") == shown(paged, "p2-p9") == "two\nfive\n"
    with pytest.raises(NoLineError, match="no page 3"):
        shown(paged, "p3")
    _, lines, left = paged.shown(Range.parse("p2"), None)
    assert lines == (2, 2)
    assert left is not None
    assert (left.before, left.after, left.next) == (1, 1, "a.pdf:p5")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("a.md:10", ("a.md", ":10")),
        ("a.md:10-40", ("a.md", ":10-40")),
        ("a.md:10-", ("a.md", ":10-")),
        ("a: b.pdf:p2-4", ("a: b.pdf", ":p2-4")),
        ("a.md:5+900-7", ("a.md", ":5+900-7")),
        ("c#.md#A heading: x", ("c#.md", "#A heading: x")),
        (":1:2:3", (":1:2", ":3")),
    ],
)
def test_what_may_be_a_path_and_what_a_place(text: str, last: tuple[str, str]) -> None:
    """The whole text comes first: a file may be called so."""
    found = list(readings(text))
    assert found[0] == (text, None)
    assert last in [(name, str(place)) for name, place in found]


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    """And each reading is a beginning of it, with a place that is written as it was."""
    for name, place in readings(text):
        assert f"{name}{place or ''}" == text.replace("-p", "-") or place is not None
        assert text.startswith(name)


LINES = st.lists(st.text("ab \t\x1b\u202eé`", max_size=60), max_size=30).map("\n".join)


@given(LINES, st.integers(1, 200))
def test_a_text_is_read_to_its_end_by_what_is_named_next(text: str, most: int) -> None:
    """Nothing is left out and nothing comes twice, however little is given at once."""
    whole, place, pieces = FileText(text=text, name="a.md"), "", []
    for _ in range(len(text) + 2):
        wanted = Range.parse(place) if place else None
        (start, end), _, left = whole.shown(wanted, most)
        pieces.append(whole.text[start:end])
        assert len(safe_text(pieces[-1])) <= max(most, 16)
        if left is None or left.next is None:
            break
        place = left.next.removeprefix("a.md:")
    assert text.startswith("".join(pieces))
    assert not text[len("".join(pieces)) :].strip()


def test_a_long_line_goes_on_where_it_was_cut() -> None:
    """At a blank, if there is one; the lines of a range end where it ends."""
    text = FileText(text=f"first\n{'word ' * 100}\nlast\n", name="a.md")
    (start, end), lines, left = text.shown(Range.parse("2-2"), 103)
    assert text.text[start:end] == "word " * 20
    assert lines == (2, 2)
    assert left is not None
    assert (left.before, left.after, left.next) == (1, 2, "a.md:2+100-2")
