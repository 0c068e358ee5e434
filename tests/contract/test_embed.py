"""What every embedder must keep. A new one is tested by being known."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.embed import Embedder, UnknownEmbedder, known_embedders, open_embedder

FEATURELESS = ["", " \n\t", "?!… — .,;", "\x00\x1b", "\ud800", "🙂"]
TEXTS = [
    "The catalog is rebuilt from the files.",
    "Der Katalog wird aus den Dateien neu aufgebaut.",
    "目录从文件重建。",
    *FEATURELESS,
]


@pytest.fixture(scope="module", params=known_embedders())
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return open_embedder(request.param)


def test_it_says_what_it_is(embedder: Embedder) -> None:
    """Name, fingerprint and dimension are there, and the name opens it again."""
    again = open_embedder(embedder.name)
    assert again.fingerprint == embedder.fingerprint != ""
    assert again.dimension == embedder.dimension > 0
    assert embedder.max_tokens is None or embedder.max_tokens > 0
    assert embedder.lexical in (True, False)


def test_documents_are_rows_of_length_one(embedder: Embedder) -> None:
    """Every text, featureless or not, gives a finite float32 row of length 1."""
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_documents_give_no_rows(embedder: Embedder) -> None:
    """An empty list is no error."""
    assert embedder.embed_documents([]).shape == (0, embedder.dimension)


def test_queries_are_of_length_one(embedder: Embedder) -> None:
    """A query gives one vector of the same space."""
    for text in TEXTS:
        vector = embedder.embed_query(text)
        assert vector.shape == (embedder.dimension,)
        assert vector.dtype == np.float32
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


def test_featureless_texts_share_one_vector(embedder: Embedder) -> None:
    """Texts with nothing in them all get the same vector."""
    vectors = embedder.embed_documents(["", " \n\t"])
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_neighbours_in_a_batch_do_not_matter(embedder: Embedder) -> None:
    """A text gets the same vector alone, among others, and a second time."""
    together = embedder.embed_documents(TEXTS)
    alone = np.concatenate([embedder.embed_documents([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_question_finds_its_text(embedder: Embedder) -> None:
    """A question in a text's own words lies nearest to that text."""
    texts = [
        "A writer holds the lock file until its transaction is over.",
        "Bananas ripen faster when they lie next to apples.",
        "The lighthouse was built of granite in 1882.",
    ]
    questions = [
        "Who holds the lock file?",
        "Why do bananas ripen?",
        "When was the lighthouse built?",
    ]
    vectors = embedder.embed_documents(texts)
    for place, question in enumerate(questions):
        assert int(np.argmax(vectors @ embedder.embed_query(question))) == place


@given(text=st.text(), more=st.text())
def test_tokens_are_counted_alike_and_grow(embedder: Embedder, text: str, more: str) -> None:
    """The count is never negative, the same each time, and no smaller with more text."""
    count = embedder.count_tokens(text)
    assert count == embedder.count_tokens(text) >= 0
    assert embedder.count_tokens(f"{text} {more}") >= count
    assert embedder.count_tokens("") == 0


def test_an_unknown_embedder_is_named_with_the_known_ones() -> None:
    """A name that is not there is refused, saying what was asked and what there is."""
    with pytest.raises(UnknownEmbedder, match="telepathy") as caught:
        open_embedder("telepathy")
    assert "builtin" in caught.value.message
    assert "builtin" in caught.value.remedy
    assert caught.value.exit_code == 3
    assert isinstance(caught.value, ValueError)


def test_the_family_imports_nothing_heavy() -> None:
    """Asking which embedders there are loads neither numpy nor an implementation."""
    program = (
        "import sys; from filestore.embed import known_embedders; known_embedders();"
        "sys.exit(bool({'numpy', 'filestore.embed._builtin'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
