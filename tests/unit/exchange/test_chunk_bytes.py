"""Texts and metadata of any kind into the bytes of a chunk file, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunks import chunk_file
from filestore.chunks.layout import TREE
from filestore.chunks.observation import INDEXED
from filestore.core.paths import ChunkPath
from filestore.exchange.incoming import UnusableChunkError, written

PATH = ChunkPath("r/chunk1.md")
KEYS = st.one_of(st.sampled_from(chunk_file.OUR_KEYS), st.text(max_size=10))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=15,
)


@given(text=st.text(min_size=1).filter(str.strip), metadata=st.dictionaries(KEYS, VALUES))
def test_whatever_comes_is_searched(text, metadata):
    """The text is taken whole; of the metadata what a file can hold, and the rest is named."""
    told = []
    look = written(PATH, text, metadata, TREE, told.append)
    chunk = chunk_file.parse(look.data)
    assert look.state == INDEXED
    assert chunk.body == text
    kept = chunk.frontmatter.keys()
    assert kept <= metadata.keys() | {"origin"}
    assert len(metadata.keys() - kept) == len(told)
    for key in kept & metadata.keys():
        assert chunk.frontmatter[key] == metadata[key] or key == "origin"


@pytest.mark.parametrize("text", ["", " \n\t", "a\ud800", "x" * (17 * 1024 * 1024)])
def test_texts_that_no_file_can_hold(text):
    """They are refused with a reason."""
    with pytest.raises(UnusableChunkError):
        written(PATH, text, {}, TREE, print)


def test_the_largest_goes_where_all_is_too_large():
    """The rest of the metadata stays."""
    told = []
    metadata = {"a": "x" * 30_000, "b": "y" * 40_000, "c": "z"}
    look = written(PATH, "Text.", metadata, TREE, told.append)
    assert chunk_file.parse(look.data).frontmatter.keys() == {"a", "c"}
    assert len(told) == 1
    assert told[0].startswith("'b': ")


def test_more_values_than_are_read():
    """A list that fits by its bytes, and has more items than a reader takes, goes alone."""
    told = []
    metadata = {"many": [[1]] * 9_000, "fine": 1}
    look = written(PATH, "Text.", metadata, TREE, told.append)
    assert chunk_file.parse(look.data).frontmatter == {"fine": 1}
    assert len(told) == 1


def test_very_many_keys():
    """What goes is found in one pass, not key by key."""
    told = []
    metadata = {f"key {n}": n for n in range(50_000)}
    look = written(PATH, "Text.", metadata, TREE, told.append)
    kept = chunk_file.parse(look.data).frontmatter
    assert len(kept) + len(told) == len(metadata)
    assert len(kept) > 500
