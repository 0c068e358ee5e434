"""What is kept of a document says what was extracted, and nothing else is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunking import Section
from filestore.chunks import chunk_file, kept
from filestore.chunks.kept import (
    DocumentDamagedError,
    Extracted,
    decode,
    encode,
    file_hash_of,
    is_document,
)
from filestore.chunks.observation import INDEXED, Observation, kept_hash
from filestore.core.hashing import content_hash

FILE_HASH = content_hash(b"the file")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
NUMBER = st.integers(0, 2**31)
SECTIONS = st.builds(
    Section,
    start=NUMBER,
    end=NUMBER,
    headings=st.lists(TEXT, max_size=3).map(tuple),
    line=NUMBER,
    end_line=NUMBER,
    page=NUMBER,
)
DOCUMENTS = st.builds(
    Extracted,
    text=TEXT,
    syntax=st.sampled_from(["text", "markdown", "code"]),
    extractor=TEXT,
    chunker=TEXT,
    sections=st.lists(SECTIONS, max_size=4).map(tuple),
    heading=TEXT,
    title=TEXT,
    metadata=st.dictionaries(TEXT, TEXT | NUMBER | st.lists(TEXT, max_size=2), max_size=3),
    pairs=st.lists(st.tuples(TEXT, TEXT).map(list), max_size=3),
    pages=st.lists(st.tuples(NUMBER, NUMBER).map(list), max_size=3),
    outline=st.lists(st.tuples(NUMBER, NUMBER, TEXT).map(list), max_size=3),
)


def simple() -> Extracted:
    """A document of two sections."""
    text = "# One\n\nfirst\n\n# Two\n\nsecond\n"
    cut = text.index("# Two")
    sections = (
        Section(start=0, end=cut, headings=("One",), line=1, end_line=3, page=0),
        Section(start=cut, end=len(text), headings=("Two",), line=5, end_line=7, page=0),
    )
    return Extracted(
        text=text, syntax="markdown", extractor="markdown/1", chunker="c", sections=sections
    )


@given(DOCUMENTS)
def test_what_is_kept_comes_back(document):
    """Every text, number and name is what it was."""
    data = encode(document, FILE_HASH)
    assert decode(data) == document
    assert file_hash_of(data) == kept_hash(data) == FILE_HASH


@given(DOCUMENTS)
def test_a_document_that_was_just_read_is_what_comes_back(document):
    """An observation says the same before and after it was kept."""
    just_read, read_again = observed(), observed()
    kept.keep(just_read, document)
    kept.fill(read_again, just_read.data)
    assert just_read == read_again


def observed() -> Observation:
    """A file whose bytes are known."""
    return Observation(path="a.md", values=(0, 0, 0, 0, 0), state=INDEXED, file_hash=FILE_HASH)


@given(st.data())
def test_a_flipped_bit_is_never_believed(data):
    """Whatever bit changed, nothing is read from it, or it is taken for a chunk file's bytes."""
    whole = bytearray(encode(simple(), FILE_HASH))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    changed = bytes(whole)
    if is_document(changed) and file_hash_is_checked(changed):
        with pytest.raises(DocumentDamagedError):
            decode(changed)
        assert kept_hash(changed) == b""
    else:
        # The hash of the file is held against the row's by whoever reads it.
        assert kept_hash(changed) != FILE_HASH


def file_hash_is_checked(data: bytes) -> bool:
    """Whether the change lies in what the checksum covers, or in the checksum."""
    whole = encode(simple(), FILE_HASH)
    first = next(place for place in range(len(whole)) if whole[place] != data[place])
    return first >= whole.index(FILE_HASH) + len(FILE_HASH)


@given(st.binary(max_size=200))
def test_no_bytes_of_a_stranger_do_harm(data):
    """Bytes with a right checksum that mean nothing are refused, not a crash."""
    whole = encode(simple(), FILE_HASH)
    head = whole[: whole.index(FILE_HASH) + len(FILE_HASH)]
    with pytest.raises(DocumentDamagedError):
        decode(head + content_hash(data) + data)


def test_each_section_is_embedded_with_its_headings():
    """The texts of a document are those of its sections, in order."""
    chunk = kept.read(encode(simple(), FILE_HASH))
    assert chunk_file.texts(chunk) == (
        "One\n\n# One\n\nfirst\n\n",
        "Two\n\n# Two\n\nsecond\n",
    )


def test_the_bytes_of_a_chunk_file_are_no_document():
    """A catalog of chunk files reads as ever."""
    data = chunk_file.generate(body="words\n")
    assert not is_document(data)
    assert kept.read(data) == chunk_file.parse(data)
    assert kept_hash(data) == content_hash(data)


def test_a_passage_is_on_its_own_page():
    """Pages of a stretch of text say where in it each begins."""
    text = "first page. second page. third page."
    starts = [(0, 1), (text.index("second"), 2), (text.index("third"), 3)]
    whole = Extracted(
        text=text,
        syntax="text",
        extractor="pdf/1",
        chunker="c",
        sections=(Section(start=0, end=len(text), headings=(), line=0, end_line=0, page=1),),
        pages=starts,
    )
    chunk = kept.read(encode(whole, FILE_HASH))
    assert chunk.pages_between(0, len(text)) == tuple(starts)
    assert chunk.pages_between(3, 20) == ((0, 1), (text.index("second") - 3, 2))
    assert chunk.pages_between(text.index("third"), len(text)) == ((0, 3),)
