"""What must hold of digests: texts are normalised first, bytes never are."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.hashing import (
    content_hash,
    embedding_key,
    normalize_text,
    origin_hash,
    revision_of,
    short_origin,
    source_hash,
    vector_id,
)

TEXTS = st.text()
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
LINES = st.lists(st.text(st.characters(exclude_characters="\r\n\ufeff", exclude_categories=["Cs"])))


@given(LINES, st.integers(0, 3), st.booleans())
def test_line_ends_and_byte_order_mark_do_not_count(lines, final, mark):
    """Windows line ends, a byte-order mark and final line ends leave every text hash as it is."""
    plain = "\n".join(lines)
    other = "\ufeff" * mark + "\r\n".join(lines) + "\r\n" * final
    assert embedding_key(other) == embedding_key(plain)
    assert origin_hash(other) == origin_hash(plain)


@given(LINES)
def test_a_normalized_text_is_its_own_normal_form(lines):
    """Normalising a second time changes nothing, and only final line ends are lost."""
    once = normalize_text("\r\n".join(lines))
    assert normalize_text(once) == once == "\n".join(lines).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        ("a\n\n", "a"),
        ("\ufeffa", "a"),
        ("\na", "\na"),
        ("a \n", "a "),
        ("a\rb", "a\rb"),
        ("a\ufeffb", "a\ufeffb"),
        ("\r\n\r\n", ""),
    ],
)
def test_only_line_ends_and_the_mark_are_normalized(text, normal):
    """Leading line ends, spaces and a lone CR belong to the text."""
    assert normalize_text(text) == normal


@pytest.mark.parametrize("pair", [("a b", "a  b"), ("a", "A"), ("a", " a"), ("é", "e\u0301")])
def test_texts_that_read_differently_have_different_keys(pair):
    """White space, case and composition count."""
    one, other = pair
    assert embedding_key(one) != embedding_key(other)


def test_the_hash_of_bytes_sees_every_byte():
    """A byte-order mark or a line end changes the hash of a file."""
    assert len({content_hash(data) for data in (b"a", b"a\n", b"a\r\n", b"\xef\xbb\xbfa")}) == 4
    assert content_hash(memoryview(b"a")) == content_hash(bytearray(b"a")) == content_hash(b"a")


def test_committed_hashes_can_be_checked_with_any_tool():
    """What stands in a record or a chunk file is SHA-256 as every other program computes it."""
    assert source_hash(b"a\r\n") == "sha256:" + hashlib.sha256(b"a\r\n").hexdigest()
    assert origin_hash("é\n") == hashlib.sha256("é".encode()).hexdigest()[:16]


def test_an_origin_of_before_is_read_as_the_short_one():
    """All 64 digits say the same as the first 16; whatever else stands there is left."""
    long = "sha256:" + hashlib.sha256("é".encode()).hexdigest()
    assert short_origin(long) == short_origin(origin_hash("é")) == origin_hash("é")
    for other in ("", long[:-1], long + "0", long.upper(), "sha256:", "abc"):
        assert short_origin(other) == other


@given(st.binary(min_size=32, max_size=32))
def test_a_vector_id_is_the_start_of_the_key_and_fits_faiss(key):
    """An id has 63 bits, is never negative, and is told by the first bytes of its key."""
    found = vector_id(key)
    assert 0 <= found < 2**63
    assert f"{found:063b}" == "".join(f"{byte:08b}" for byte in key[:8])[:63]


@given(TEXTS | st.just("\ud800"))
def test_every_text_has_a_key_of_32_bytes(text):
    """Even a lone surrogate, which is no UTF-8, has a key."""
    assert len(embedding_key(text)) == 32


@given(NAMES, NAMES, st.binary())
def test_a_revision_is_of_one_file(first, second, data):
    """Two files with one content have two; a name that is not UTF-8 has one as well."""
    assert (revision_of(first, data) == revision_of(second, data)) == (first == second)
    assert revision_of(f"{first}\udcff", data) != revision_of(first, data + b"!")
    assert len(revision_of(first, data)) == 16
