"""Which chunk holds a line of a document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse.original import row_at

TEXT = "# One\n\nFirst words.\n\n# Two\n\nSecond words.\n\n# Three\n\nThird words.\n"
BODIES = ("# One\n\nFirst words.\n\n", "# Two\n\nSecond words.\n\n", "# Three\n\nThird words.\n")


@pytest.mark.parametrize(
    ("line", "place"), [(1, 0), (3, 0), (4, 0), (5, 1), (8, 1), (9, 2), (11, 2)]
)
def test_a_line_is_in_the_chunk_that_has_it(line, place):
    """A blank line between two chunks belongs to the first."""
    assert row_at(TEXT, BODIES, line) == place


def test_a_line_before_all_chunks_belongs_to_the_first():
    """Frontmatter is in no chunk, and stands before them."""
    assert row_at(f"---\ntags: x\n---\n{TEXT}", BODIES, 2) == 0


@pytest.mark.parametrize(("line", "place"), [(3, 0), (6, None), (10, 2)])
def test_a_chunk_that_is_not_in_the_text_leaves_its_lines_to_nobody(line, place):
    """Where a text changed since, the lines between its neighbours could be anybody's."""
    assert row_at(TEXT, (BODIES[0], "# Two\n\nOther words.\n", BODIES[2]), line) == place


def test_nothing_of_a_converted_text_is_found():
    """A document whose chunks are another text altogether has no lines."""
    assert row_at("<h1>One</h1>\n", ("# One\n",), 1) is None


def test_equal_chunks_are_told_apart_by_their_order():
    """The second of two equal texts is the one further down."""
    assert [row_at("same\n\nsame\n", ("same\n\n", "same\n"), line) for line in (1, 3)] == [0, 1]


def test_a_short_chunk_is_not_found_inside_the_one_before():
    """A text that also stands within another chunk is found where it follows that."""
    bodies = ("one two\n\n", "two\n\n", "three\n")
    assert [row_at("one two\n\ntwo\n\nthree\n", bodies, line) for line in (1, 3, 5)] == [0, 1, 2]


def test_chunks_may_overlap():
    """A chunk that begins with the end of the one before is found all the same."""
    bodies = ("one\ntwo\n", "two\nthree\n")
    assert [row_at("one\ntwo\nthree\n", bodies, line) for line in (1, 2, 3)] == [0, 0, 1]


@given(st.lists(st.text("ab \n", min_size=1).filter(str.strip), min_size=1, max_size=6), st.data())
def test_every_line_of_a_cut_text_has_its_chunk(pieces, data):
    """Pieces that are put together again own each line with something on it."""
    text = "".join(f"{piece.strip()}\n\n" for piece in pieces)
    lines = text.split("\n")
    line = data.draw(st.sampled_from([n for n, one in enumerate(lines, 1) if one.strip()]))
    place = row_at(text, [f"{piece.strip()}\n\n" for piece in pieces], line)
    assert place is not None
    assert lines[line - 1].strip() in pieces[place]
