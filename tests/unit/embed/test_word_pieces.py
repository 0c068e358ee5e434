"""Texts cut into word pieces, with a vocabulary small enough to be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.embed._minilm import WordPieces

LETTER, NOTHING, SPACE, SIGN = range(4)
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##want", "##wanted", "##ed", "want"),
    *("cafe", ",", "σας", "目", "录", "a", "b"),
]
SIGNS = [
    *((0, NOTHING), (9, SPACE), (11, NOTHING), (32, SPACE), (33, SIGN), (48, LETTER), (58, SIGN)),
    *((65, LETTER), (91, SIGN), (97, LETTER), (123, SIGN), (127, NOTHING), (160, SPACE)),
    *((161, LETTER), (0x300, NOTHING), (0x370, LETTER), (0x4E00, SIGN), (0xA000, LETTER)),
]
PIECES = WordPieces(VOCABULARY, SIGNS)


def cut(text: str) -> list[str]:
    """The pieces themselves."""
    return [VOCABULARY[token] for token in PIECES.encode([text])[0].ids]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \t\u00a0", []),
        ("Unwanted", ["un", "##wanted"]),
        ("wanted, unwant", ["want", "##ed", ",", "un", "##want"]),
        ("Café cafe\u0301 CAFE", ["cafe"] * 3),
        ("ca\x00fe", ["cafe"]),
        ("目录a", ["目", "录", "a"]),
        ("ΣΑΣ", ["[UNK]"]),  # the last sigma is lower-cased as any other, which is no known word
        ("unknown", ["[UNK]"]),
        ("##want", ["[UNK]", "[UNK]", "want"]),
        ("a[SEP]b [sep]", ["a", "[SEP]", "b", *["[UNK]"] * 3]),
        ("a" * 101, ["[UNK]"]),
        ("a" * 1_000_000, ["[UNK]"]),
    ],
)
def test_the_longest_known_pieces_of_each_word_are_taken(text: str, pieces: list[str]) -> None:
    """Case, accents and control characters do not matter; a sign is a word of its own."""
    assert cut(text) == pieces


@given(st.lists(st.text(), max_size=5))
def test_every_text_has_tokens_of_its_own(texts: list[str]) -> None:
    """Texts are cut alike alone and together, and words are numbered as they stand."""
    together = PIECES.encode(texts)
    assert together == [PIECES.encode([text])[0] for text in texts]
    for found in together:
        assert len(found.ids) == len(found.word_ids)
        assert list(found.word_ids) == sorted(found.word_ids)
        assert set(found.ids) <= set(range(len(VOCABULARY)))


def test_a_text_lies_between_two_special_tokens() -> None:
    """They are those of the vocabulary."""
    assert [VOCABULARY[token] for token in (*PIECES.before, *PIECES.after)] == ["[CLS]", "[SEP]"]
