"""The built-in embedder: exactness, folding, scripts, tokens."""

import hashlib
import random
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.embed import _builtin
from filestore.embed._builtin import BuiltinEmbedder

WORDS = [f"{stem}{ending}" for stem in ("cat", "index", "größe", "7") for ending in ("", "s", "42")]


def similarity(one: str, other: str) -> float:
    vectors = BuiltinEmbedder().embed_documents([one, other])
    return float(vectors[0] @ vectors[1])


def test_vectors_are_pinned_to_the_bit() -> None:
    """The bits of these vectors never change while the fingerprint says version 1."""
    texts = ["Files win.", "naïve Größe 1882", "索引は索引 ไทย", "हिन्दी العربية", "a " * 99, ""]
    embedder = BuiltinEmbedder()
    digest = hashlib.sha256(embedder.embed_documents(texts).astype("<f4").tobytes()).hexdigest()
    assert embedder.fingerprint == "builtin/1:384"
    assert digest == "a16c9ddf3466317f6b04250ea410f7551d1eb47122a2bb1da4957d78b6eb3743"


def test_the_same_bits_whatever_was_embedded_before() -> None:
    """Batches, order and a full store of rows leave every bit as it is."""
    texts = [" ".join(random.Random(i).choices(WORDS, k=30)) for i in range(700)]
    warm = BuiltinEmbedder()
    first = warm.embed_documents(texts)
    backwards = warm.embed_documents(texts[::-1])[::-1]
    alone = np.stack([BuiltinEmbedder().embed_query(text) for text in texts[:5]])
    np.testing.assert_array_equal(first, backwards)
    np.testing.assert_array_equal(first[:5], alone)


def test_the_same_bits_after_the_rows_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder that must forget its rows gives what one that need not gives."""
    texts = [" ".join(f"word{i}x{j}" for j in range(40)) for i in range(60)]
    expected = BuiltinEmbedder().embed_documents(texts)
    monkeypatch.setattr(_builtin, "_KNOWN_ROWS", 300)
    monkeypatch.setattr(_builtin, "_BATCH_WORDS", 100)
    monkeypatch.setattr(_builtin, "_BLOCK_WORDS", 16)
    np.testing.assert_array_equal(BuiltinEmbedder().embed_documents(texts), expected)


def test_a_text_of_many_words_is_summed_exactly() -> None:
    """A text of 30,000 distinct words is of length 1 and the same in any order of its words."""
    words = [f"w{i}" for i in range(30_000)]
    shuffled = random.Random(1).sample(words, len(words))
    one, other = BuiltinEmbedder().embed_documents([" ".join(words), " ".join(shuffled)])
    np.testing.assert_array_equal(one, other)
    assert abs(float(np.linalg.norm(one)) - 1) < 1e-5


def test_featureless_text_has_equal_entries() -> None:
    """A text without words gets the vector whose entries are all the same."""
    np.testing.assert_array_equal(
        BuiltinEmbedder().embed_query("…!?"), np.full(384, 1 / sqrt(384), dtype=np.float32)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Naïve Café", "naive cafe"),
        ("STRASSE", "straße"),
        ("file_name", "File Name"),
        ("ｆｕｌｌ width", "full width"),
        ("ﬁnd", "find"),
        ("“quoted” – text", "quoted text"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_case_accents_and_forms_do_not_count(one: str, other: str) -> None:
    """Texts that differ in case, accents, compatibility forms or punctuation are one."""
    assert similarity(one, other) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("embedding", "embeddings", "catalogues"),
        ("reconstruct", "reconstruction", "vocabulary"),
        ("Dateisystem", "Dateisysteme", "Apfelkuchen"),
        ("東京都の人口", "東京の人口は", "大阪城の歴史"),
        ("ประเทศไทย", "ไทย", "ภูเขา"),
        ("हिन्दी भाषा", "हिन्दी", "पर्वत"),
    ],
)
def test_parts_of_words_are_found(text: str, near: str, far: str) -> None:
    """An inflected or longer form lies nearer than an unrelated word, in several scripts."""
    assert similarity(text, near) > similarity(text, far) + 0.2


def test_short_words_count_less() -> None:
    """A shared long word brings texts nearer than several shared short ones."""
    query = "what is the fingerprint"
    assert similarity(query, "a fingerprint") > similarity(query, "what is the time")


def test_repetition_counts_sublinearly() -> None:
    """Saying a word ten times does not drown the other word."""
    assert similarity("catalog " * 10 + "tantivy", "tantivy") > 0.25


@given(st.text())
def test_any_text_has_a_vector_of_length_one(text: str) -> None:
    """No text is refused, and none gives a vector that is not finite."""
    vector = BuiltinEmbedder().embed_query(text)
    assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5
