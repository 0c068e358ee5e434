"""Long texts cut into windows, and windows put into batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.embed._local import BATCH, Window, Windows, batches, spans
from filestore.embed._minilm import _FOLDER, WordPieces

LETTER, SPACE, SIGN = 0, 2, 3
WORDS = WordPieces(
    ["[UNK]", "[CLS]", "[SEP]", "bridge", "b", "##r", "##ü", "##c", "##k", "##e", "м", "##о", "桥"],
    [(0, LETTER), (32, SPACE), (33, LETTER), (0x4E00, SIGN), (0xA000, LETTER)],
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bridge bridge", 1.0),  # words of its own
        ("мо", 1 / 3),  # letter by letter
        ("桥桥", 1.0),  # a sign is a word there
        ("桥龍", 0.5),  # of which it knows one
        ("мост bridge", 0.5),
        ("ขอบคุณ", 0.0),
        (" ", 1.0),
    ],
)
def test_fluency_is_few_tokens_and_known_ones(text: str, expected: float) -> None:
    """A language that a vocabulary was not made for falls apart, or is unknown."""
    assert Windows(_FOLDER, WORDS).fluency(text) == pytest.approx(expected)


@given(words=st.lists(st.integers(0, 9)), room=st.integers(1, 20))
def test_windows_hold_every_token_once(words: list[int], room: int) -> None:
    """Windows follow each other without gap or overlap, and none is longer than the model takes."""
    found = spans(len(words), room, words)
    assert [place for start, end in found for place in range(start, end)] == [*range(len(words))]
    assert all(end - start <= room for start, end in found)
    assert all(end > start for start, end in found) or not words


@given(count=st.integers(0, 500), room=st.integers(1, 50))
def test_windows_are_of_about_equal_length(count: int, room: int) -> None:
    """Where every token is a word of its own, windows are few and differ by one token at most."""
    found = spans(count, room, [*range(count)])
    assert len(found) == max(1, -(-count // room))
    lengths = [end - start for start, end in found]
    assert max(lengths) - min(lengths) <= 1


def test_a_word_is_not_torn_where_another_cut_is_near() -> None:
    """A window ends before a word that would not fit whole."""
    words = [0, 0, 1, 2, 2, 2, 3, 3]
    assert spans(8, 5, words) == [(0, 3), (3, 8)]


def test_a_word_longer_than_a_window_is_torn() -> None:
    """A run of characters without any boundary is cut all the same."""
    assert spans(10, 4, [0] * 10) == [(0, 4), (4, 7), (7, 10)]


@given(lengths=st.lists(st.integers(0, 9000), max_size=40))
def test_every_window_is_in_one_batch(lengths: list[int]) -> None:
    """No window is lost or sent twice, and none without tokens goes with one that has some."""
    windows = [
        Window(text=place, tokens=(1,) * length, prompt=0, weight=1)
        for place, length in enumerate(lengths)
    ]
    found = [*batches(windows)]
    texts = [window.text for batch in found for window in batch]
    assert sorted(texts) == [*range(len(lengths))]
    for batch in found:
        assert 1 <= len(batch) <= BATCH
        assert len({bool(window.tokens) for window in batch}) == 1


@given(st.lists(st.integers(1, 512), min_size=1, max_size=60))
def test_batches_fill_up_little(lengths: list[int]) -> None:
    """Windows of like length go together: no window of a batch is longer than one of a later."""
    windows = [Window(text=0, tokens=(1,) * length, prompt=0, weight=1) for length in lengths]
    longest = [max(len(window.tokens) for window in batch) for batch in batches(windows)]
    shortest = [min(len(window.tokens) for window in batch) for batch in batches(windows)]
    assert all(here <= there for here, there in zip(longest, shortest[1:], strict=False))
