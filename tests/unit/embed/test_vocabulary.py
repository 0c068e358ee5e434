"""Which words are spelt as they should be."""

import pytest

from filestore.embed import vocabulary


@pytest.mark.parametrize("word", ["money", "Monkey", "Café", "committee", "receive"])
def test_a_word_is_one_piece(word: str) -> None:
    """In any case, with its accents."""
    assert vocabulary.holds(word)


@pytest.mark.parametrize("word", ["recieve", "comittee", "##ing", "ing\nthe", "", "[unused1]x"])
def test_a_mistake_is_not(word: str) -> None:
    """Nor a part of a word, nor two."""
    assert not vocabulary.holds(word)


def test_without_the_file_every_word_may_be_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read breaks no search."""
    monkeypatch.setattr(vocabulary, "_FILE", "/nowhere/model")
    vocabulary._words.cache_clear()
    assert not vocabulary.holds("money")
    vocabulary._words.cache_clear()
