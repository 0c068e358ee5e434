"""Where a passage of a chunk stands in the text of its document."""

from filestore.core.paths import StorePath
from filestore.search.place import Chunk, find


def placed(text: str, body: str, wanted: str, *headings: str) -> str | None:
    """What stands at the place that is found, with the five characters before it."""
    chunk = Chunk(
        path=StorePath("chunked/a.md"),
        body=body,
        body_line=1,
        source="a.md",
        resource="a.md",
        headings=headings,
        pages=(),
        edited=False,
    )
    start = body.index(wanted)
    span = find(text, chunk, (start, start + len(wanted)))
    return None if span is None else text[max(0, span[0] - 5) : span[1]]


def test_the_whole_body_tells_which_of_two_alike_is_meant() -> None:
    """A sentence that stands in two chunks is that of its own."""
    text = "One\nsame.\nTwo\nsame.\n"
    assert placed(text, "One\nsame.\n", "same.") == "One\nsame."
    assert placed(text, "\nTwo\nsame.\n", "same.") == "\nTwo\nsame."


def test_the_heading_above_tells_where_the_bodies_are_alike() -> None:
    """The first one is taken where it tells nothing."""
    text = "# A\n\nsame.\n\n# B\n\nsame. \n"
    assert placed(text, "same.\n", "same.", "T", "B") == "# B\n\nsame."
    assert placed(text, "same.\n", "same.", "T", "C") == "# A\n\nsame."


def test_white_space_may_differ() -> None:
    """A list taken out of its indentation, a line end of another system."""
    assert (
        placed("- x\n  - one\n    two\n", "- one\n  two", "- one\n  two") == " x\n  - one\n    two"
    )
    assert placed("a\none two\n", "one\r\ntwo\r\n", "one\r\ntwo") == "a\none two"


def test_what_stands_nowhere_is_not_found() -> None:
    """No place is better than a wrong one."""
    assert placed("other words\n", "one two\n", "one two") is None


def test_texts_that_repeat_themselves_without_end() -> None:
    """What looks for a place in them ends at once: no step of it is taken for each other one."""
    text = "a " * 1_000_000
    assert placed(text, "a  " * 80 + "b", "a  " * 80 + "b") is None
    found = placed(text + "b\n", "a  " * 80 + "b", "a  " * 80 + "b")
    assert found is not None
    assert found.endswith("a a b")
