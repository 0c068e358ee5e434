"""BERT's way to cut a text into tokens: words, signs apart, and the longest known pieces of each.

The ids are those of the ``tokenizers`` library. One rule: which character is a sign, a space or
nothing is data that comes with the vocabulary, so that no version of Python decides it.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from filestore.core.spelling import normalized

_SPECIAL: Final = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
"""Stands for itself in a text, as the library has it."""
_UNKNOWN: Final = "[UNK]"
_LONGEST_WORD: Final = 100
_WORDS_KEPT: Final = 1 << 16


class Pieces(Struct, frozen=True):
    """The tokens of a text."""

    ids: Sequence[int]
    word_ids: Sequence[int]
    offsets: tuple[tuple[int, int], ...] = ()
    """None: no prefix is put before a text."""


class WordPieces:
    """A tokenizer of one vocabulary, in lower case and without accents."""

    def __init__(self, vocabulary: Sequence[str], signs: Sequence[tuple[int, int]]) -> None:
        """Take the words by their ids, and where in Unicode which kind of character begins."""
        self._ids = {word: place for place, word in enumerate(vocabulary)}
        self._longest = max(map(len, vocabulary))
        self._signs = _Signs(signs)
        self._pieces = lru_cache(_WORDS_KEPT)(self._cut)
        self.before: tuple[int, ...] = (self._ids["[CLS]"],)
        self.after: tuple[int, ...] = (self._ids["[SEP]"],)
        self.unknown: int | None = self._ids[_UNKNOWN]

    def encode(self, texts: Sequence[str]) -> list[Pieces]:
        """The tokens of some texts, without special ones around them."""
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> Pieces:
        ids: list[int] = []
        word_ids: list[int] = []
        for number, word in enumerate(self._words(text)):
            pieces = self._pieces(word if len(word) <= _LONGEST_WORD else _UNKNOWN)
            ids += pieces
            word_ids += [number] * len(pieces)
        return Pieces(ids, word_ids)

    def _words(self, text: str) -> list[str]:
        words: list[str] = []
        for place, part in enumerate(_SPECIAL.split(text)):
            words += [part] if place % 2 else self._plain_words(part)
        return words

    def _plain_words(self, text: str) -> list[str]:
        text = text.translate(self._signs)
        if not text.isascii():
            # A sigma that ends a word is lower-cased as any other.
            text = normalized("NFD", text).replace("Σ", "σ").lower()
            text = text.translate(self._signs)  # the accents that came apart
        return text.lower().split()

    def _cut(self, word: str) -> tuple[int, ...]:
        """The longest piece that begins the word, then of what is left; unknown if any is."""
        if word in self._ids and not word.startswith("##"):
            return (self._ids[word],)
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                piece = self._ids.get(mark + word[start:end])
                if piece is not None:
                    break
            else:
                return (self._ids[_UNKNOWN],)
            found.append(piece)
            start = end
        return tuple(found)


class _Signs(dict[int, str | None]):
    """What `str.translate` puts in the place of a character, found when it is first met."""

    def __init__(self, begins: Sequence[tuple[int, int]]) -> None:
        self._begins = [begin for begin, _ in begins]
        self._kinds = [kind for _, kind in begins]

    def __missing__(self, code: int) -> str | None:
        sign = chr(code)
        kind = self._kinds[bisect(self._begins, code) - 1]
        self[code] = (sign, None, " ", f" {sign} ")[kind]
        return self[code]
