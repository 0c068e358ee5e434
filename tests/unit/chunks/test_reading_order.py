"""What must hold of a text put together again from its chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunks import chunk_file
from filestore.chunks.reading_order import reconstruct

# Bodies that start with a dash line or a mark are chunkfile's concern, not that of joining.
BODIES = st.text("ab \n#é漢", min_size=1, max_size=12)


def chunk(body, **keys):
    """A chunk as generated from a body."""
    return chunk_file.parse(chunk_file.generate(body=body, **keys))


@st.composite
def overlapping(draw):
    """A text, and chunks of it that each repeat some of the end of the one before."""
    pieces = draw(st.lists(BODIES, min_size=1, max_size=6))
    chunks = [(chunk_file.chunk_name(1), chunk(pieces[0]))]
    for number, piece in enumerate(pieces[1:], start=2):
        before = chunks[-1][1].body
        overlap = draw(st.integers(0, len(before)))
        body = before[len(before) - overlap :] + piece
        chunks.append((chunk_file.chunk_name(number), chunk(body, overlap=overlap)))
    return "".join(pieces), chunks


@given(overlapping(), st.randoms())
def test_overlaps_are_taken_off_and_the_text_is_whole(case, random):
    """The text comes back exactly, in whatever order the files were listed."""
    text, chunks = case
    random.shuffle(chunks)
    found = reconstruct(chunks)
    assert (found.text, found.chunks, found.warnings) == (text, len(chunks), ())


@given(st.lists(BODIES, max_size=6))
def test_without_overlap_bodies_follow_each_other(bodies):
    """Nothing is put between chunks, and no chunks make an empty text."""
    files = [(chunk_file.chunk_name(n), chunk(body)) for n, body in enumerate(bodies, start=1)]
    assert reconstruct(files).text == "".join(bodies)


def test_an_overlap_that_does_not_hold_is_kept_and_told():
    """Text is rather repeated than lost where the neighbour was changed."""
    found = reconstruct([("chunk1.md", chunk("one ")), ("chunk2.md", chunk("two", overlap=2))])
    assert found.text == "one two"
    (warning,) = found.warnings
    assert "chunk2.md" in warning
    assert "the first 2 characters do not repeat" in warning


def test_a_first_chunk_with_an_overlap_loses_nothing():
    """There is nothing before the first chunk that its start could repeat."""
    found = reconstruct([("chunk1.md", chunk("text", overlap=3))])
    assert found.text == "text"
    assert len(found.warnings) == 1


def test_an_edit_by_hand_is_part_of_the_text_and_told():
    """What a person wrote is what the resource says now."""
    data = chunk_file.generate(body="generated\n").replace(b"generated\n", b"written\n")
    found = reconstruct([("chunk1.md", chunk_file.parse(data))])
    assert found.text == "written\n"
    assert found.warnings == ("chunk1.md: edited by hand",)


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["chunk10.md", "chunk2.md", "chunk1.md"], ["chunk1.md", "chunk2.md", "chunk10.md"]),
        (["own.md", "chunk2.md", "chunk1-abcd.md"], ["chunk1-abcd.md", "chunk2.md", "own.md"]),
    ],
)
def test_numbers_in_names_give_the_order(names, order):
    """The tenth chunk follows the second, and a file without a number comes last."""
    found = reconstruct([(f"r/{name}", chunk(f"<{name}>")) for name in names])
    assert found.text == "".join(f"<{name}>" for name in order)


def test_order_keys_place_a_file_between_numbered_ones():
    """An inserted file stands where its key says."""
    files = [("r/chunk1.md", chunk("a")), ("r/chunk2.md", chunk("c"))]
    inserted = ("r/chunk1-abcd.md", chunk("b", order="a1i"))
    assert reconstruct([*files, inserted]).text == "abc"
