"""The passage of a text that is shown of a hit."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.fulltext import Marker, parse_query
from filestore.search import passage
from filestore.search.passage import MOST_CHARACTERS, Passage

NOTE = """# File explorer

The explorer lists every note of a vault, folder by folder, as they lie on the disk.

## Rename a note

Press F2 on a note to rename it. Links to the note are updated at once.
The old name stays in the history.

```
mv old.md new.md
```

1. Open the menu.
2. Choose a colour for the folder.
"""


def best(query: str, text: str) -> Passage:
    marker = Marker(parse_query(query))
    found = passage.best(text, marker.marks(text), marker.weights)
    assert found is not None
    return found


def marked(found: Passage) -> list[str]:
    return [found.text[start:end] for start, end in found.marks]


def test_the_lines_that_match_are_shown_not_the_beginning() -> None:
    """What was asked for stands in the passage, and is marked in it."""
    found = best("renaming links", NOTE)
    assert found.text.startswith("Press F2 on a note to rename it. Links")
    assert marked(found) == ["rename", "Links"]
    assert best("colour of folders", NOTE).text == "2. Choose a colour for the folder."


def test_a_heading_is_shown_only_where_nothing_below_it_matches() -> None:
    """It stands beside the passage as it is, so the text below it is worth more."""
    assert best("rename", NOTE).text.startswith("Press F2")
    assert best("explorer", NOTE).text.startswith("The explorer lists")
    alone = best("overview", "## Overview\n\nNothing else is said of it.\n")
    assert alone.text == "## Overview\n\nNothing else is said of it."


def test_words_that_tell_little_decide_nothing_and_are_not_marked() -> None:
    """Of a question it is the words of meaning that count."""
    text = "It is what it is, and it is in the way of the thing.\n\nFrost damages sensors.\n"
    found = best("what is it that damages the sensors in frost", text)
    assert found.text == "Frost damages sensors."
    assert marked(found) == ["Frost", "damages", "sensors"]


def test_a_phrase_is_found_as_one() -> None:
    """Its words elsewhere are not what was asked for."""
    text = "The house has a boat.\n\nThe boat house is red.\n"
    found = best('"boat house"', text)
    assert (found.text, marked(found)) == ("The boat house is red.", ["boat house"])


def test_scripts_without_spaces() -> None:
    """Their sentences end without a blank, and pairs of characters match."""
    text = "春が来た。" * 30 + "東京は日本の首都です。" + "夏が来た。" * 30
    found = best("首都", text)
    assert found.text.startswith("東京は日本の首都です。")
    assert marked(found) == ["首都"]


def test_the_beginning_of_a_text_leaves_its_headings_out() -> None:
    """Where nothing matches, the first sentences are shown."""
    assert passage.opening(NOTE).text.startswith("The explorer lists")
    assert passage.opening("# Only\n").text == "# Only"
    assert passage.opening(" \n\n").text == ""


def test_a_line_without_end_is_cut() -> None:
    """Minified text shows what surrounds the match, and no more than a passage holds."""
    text = "x" * 5_000 + " needle " + "y" * 5_000
    found = best("needle", text)
    assert "needle" in found.text
    assert len(found.text) <= MOST_CHARACTERS


WORDS = st.sampled_from(
    ["boat", "Häuser", "東京都", "sail. ", "\n", "\n\n", "# ", "```\n", " ", "e\u0301", "x" * 300]
)


@given(
    st.lists(WORDS, max_size=40).map("".join),
    st.sampled_from(["boat sail", "東京", '"boat sail"', "Haus hä*"]),
)
def test_a_passage_is_a_slice_with_its_marks_inside(text: str, query: str) -> None:
    """Whatever a text is, the passage stands in it where it says, and is not too long."""
    marker = Marker(parse_query(query))
    marks = marker.marks(text)
    found = passage.best(text, marks, marker.weights) or passage.opening(text)
    assert text[found.start : found.end] == found.text
    assert len(found.text) <= MOST_CHARACTERS
    assert found.text == found.text.strip()
    ends = [0, *(place for span in found.marks for place in span), len(found.text)]
    assert ends == sorted(ends)
    units = passage.units_of(text)
    assert all(one.end <= other.start for one, other in pairwise(units))


SECTIONS = "# A\n\nin a\n\n## B\n\nin b\n\n```\n# no heading\n```\n\nstill b\n\n## C ##\n\nin c\n"


def test_the_headings_above_a_passage() -> None:
    """Those of the chunk, and those inside it; what is code is none."""

    def section(wanted: str, *headings: str, text: str = SECTIONS) -> tuple[str, ...]:
        return passage.section_at(text, text.index(wanted), headings)

    assert section("in a", "A") == ("A",)
    assert section("still b", "A") == ("A", "B")
    assert section("in c", "Book", "A") == ("Book", "A", "C")
    assert section("## B", "A") == ("A", "B")
    # A chunk that begins in one section and goes on in the next.
    assert section("rest", "T", "A", text="rest\n\n## B\n\nnext\n") == ("T", "A")
    assert section("next", "T", "A", text="rest\n\n## B\n\nnext\n") == ("T", "B")
    assert section("x", text="x") == ()


def test_words_of_grammar_alone_are_no_match() -> None:
    """A text that was found for its meaning begins where it begins, not where it says "the"."""
    text = "Frost came early.\n\nIt was in the north, on the quay.\n"
    marker = Marker(parse_query("where is the harbour"))
    assert passage.best(text, marker.marks(text), marker.weights) is None
    only = Marker(parse_query("in the"))
    assert passage.best(text, only.marks(text), only.weights) is not None


@pytest.mark.parametrize(
    "text",
    [
        "# a" + "#" * 150_000 + "b needle\n",
        "# needle\n\n" * 15_000,
        "needle.)))" * 15_000,
        "." + " " * 150_000 + "needle",
        "needle\n\n" * 15_000,
        "aB" * 70_000 + " needle",
        "```" + "a" * 150_000 + " needle",
        "é" + "\u0301" * 150_000 + " needle",
    ],
)
def test_texts_made_to_take_long(text: str) -> None:
    """A passage of them is found like that of any other."""
    found = best("needle", text)
    assert "needle" in found.text
    passage.section_at(text, found.start, ("A",))
