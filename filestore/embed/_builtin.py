"""The embedder that needs no model and no download: hashed words and character n-grams.

It is lexical. It finds words, parts of words, inflections and spelling variants, in any script; it
does not know that a car is an automobile. Case and accents do not count; scripts written without
spaces are compared by characters and pairs of characters.

How: every word is a sparse signed sum of hashed features (the word itself and its n-grams of 3 to 5
characters, word boundaries included; Weinberger et al. 2009, "Feature Hashing for Large Scale
Multitask Learning"; the n-grams after Bojanowski et al. 2017, "Enriching Word Vectors with Subword
Information"), scaled so that short words, which are mostly function words, count less. A text is
the sum of its words' rows, a repeated word counting sub-linearly.

One rule: the same text gives the same bits on every machine. Rows and weights are small whole
numbers, so every partial sum in float32 stays below 2**24 and is exact in whatever order a BLAS
adds; the norm is summed from whole numbers below 2**53 in float64; what is left are single
divisions and square roots, which IEEE 754 rounds in one way. (Characters that Unicode added later
than the Python in use are folded once it knows them.) Change nothing here that moves a bit without
raising `VERSION`.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from math import isqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from xxhash import xxh3_64_intdigest

from filestore.core.spelling import UNSPACED, normalized
from filestore.embed import Choice, Embedder, neutral_vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


VERSION: Final = 1
"""Raised whenever a bit of some vector changes."""
DIMENSION: Final = 384
_BATCH_TEXTS: Final = 512
_HASH_SEED: Final = 0x66696C65

_NGRAM_SIZES: Final = (3, 4, 5)
_NGRAM_REACH: Final = 40
"""Characters of one word that give n-grams; a longer run is data, and its start tells it apart."""

# Lengths of the rows, tuned on question-to-paragraph search in English, German and Chinese.
_ROW_LENGTHS: Final = (0, 3, 4, 7, 13, 21, 26, 29, 32)
"""By the number of characters; the last one for every longer word."""
_NUMBER_ROW_LENGTH: Final = 26
_CHARACTER_ROW_LENGTH: Final = 32
_PAIR_ROW_LENGTH: Final = 20

_COUNT_WEIGHTS: Final = (0, 4, 7, 8, 10, 10, 11, 12, 12, 13, 13, 14, 14, 14, 15, 15, 15, 15, 16)
"""4 (1 + ln n), rounded, by how often a word occurs in a text; the last one for every more."""

_BLOCK_WORDS: Final = 4096
"""Words summed at once: 4096 * 16 * 32 < 2**24, so that float32 is exact."""
_BATCH_WORDS: Final = 16_384
_NEW_ROWS: Final = 512
_KNOWN_ROWS: Final = 100_000
"""Rows kept: 38 MB, and their words about as much again at the worst."""
_SUM_LIMIT: Final = 2.0**21
"""Sums saturate here: 384 squares of this stay below 2**53."""

_BOUNDARY: Final = "\x00"
_ASCII_WORDS: Final = bytes(
    ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256)
)
# Two milliseconds to compile, and asked of no text in ASCII: `re` compiles and keeps them then.
_MARKS: Final = "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]+"
_UNSEGMENTED: Final = f"[{UNSPACED}]+"
# Indic vowel signs are marks, not letters, to `\w`, yet belong to the word.
_WORD: Final = r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+"


class _Block(NamedTuple):
    """Distinct words of one text, and how often each occurs in it."""

    text: int
    words: Sequence[str]
    counts: Sequence[int]


class WordRows:
    """The rows of the words met lately; forgets all of them when it is full.

    Words follow Zipf's law: the ones that matter are back after a few texts.
    """

    def __init__(self) -> None:
        import numpy as np

        self._numbers = _Numbers()
        self._filled = 0
        # Memory is taken page by page as rows are written, not here.
        self._matrix = np.zeros((_KNOWN_ROWS, DIMENSION), dtype=np.int8)

    def add_to(self, sums: NDArray[np.float64], blocks: Sequence[_Block]) -> None:
        """Add each block's weighted rows to the sum of its text."""
        import numpy as np

        numbers = self._numbers_of(blocks)
        counts = np.fromiter(chain.from_iterable(block.counts for block in blocks), dtype=np.intp)
        weights = np.array(_COUNT_WEIGHTS, dtype=np.float32)[
            np.minimum(counts, len(_COUNT_WEIGHTS) - 1)
        ]
        start = 0
        for block in blocks:
            end = start + len(block.words)
            sums[block.text] += weights[start:end] @ self._matrix[numbers[start:end]].astype(
                np.float32
            )
            start = end

    def _numbers_of(self, blocks: Sequence[_Block]) -> NDArray[np.intp]:
        import numpy as np

        if len(self._numbers) + _BATCH_WORDS > _KNOWN_ROWS:
            self._numbers.clear()
            self._filled = 0
        words = chain.from_iterable(block.words for block in blocks)
        numbers = np.fromiter(map(self._numbers.__getitem__, words), dtype=np.intp)
        # Compute the rows of all words that were numbered since the last time.
        new = list(islice(reversed(self._numbers), len(self._numbers) - self._filled))[::-1]
        for start in range(0, len(new), _NEW_ROWS):
            some = new[start : start + _NEW_ROWS]
            hashes: list[int] = []
            weights: list[int] = []
            sizes: list[int] = []
            for word in some:
                features = _features(word)
                hashes.extend(features)
                weights.append(max(1, isqrt((len(features) - 1) * 4 // 9)))
                weights.extend([1] * (len(features) - 1))
                sizes.append(len(features))
            rows = np.repeat(np.arange(len(some)), sizes)
            values = np.array(hashes, dtype=np.uint64)
            signs = 1.0 - 2.0 * (values >> np.uint64(63)).astype(np.float64)
            places = rows * DIMENSION + (values % np.uint64(DIMENSION)).astype(np.intp)
            sums = np.bincount(places, signs * np.array(weights), minlength=len(some) * DIMENSION)
            unscaled = sums.astype(np.float64, copy=False).reshape(len(some), DIMENSION)
            lengths = [_row_length(word) for word in some]
            # Opposite signs in one place may cancel a short word whole: it then counts nothing.
            norms = np.sqrt(np.maximum(1.0, (unscaled * unscaled).sum(axis=1)))
            factors = np.array(lengths, dtype=np.float64) / norms
            scaled: NDArray[np.int8] = np.rint(unscaled * factors[:, np.newaxis]).astype(np.int8)
            self._matrix[self._filled : self._filled + len(some)] = scaled
            self._filled += len(some)
        return numbers


class _Numbers(dict[str, int]):
    """Gives each new word the next number."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def batches(blocks: Iterable[_Block]) -> Iterator[list[_Block]]:
    """Blocks in groups of at most `_BATCH_WORDS` words."""
    batch: list[_Block] = []
    size = 0
    for block in blocks:
        if size + len(block.words) > _BATCH_WORDS:
            yield batch
            batch, size = [], 0
        batch.append(block)
        size += len(block.words)
    if batch:
        yield batch


def blocks_of(texts: Sequence[str]) -> Iterator[_Block]:
    for number, text in enumerate(texts):
        counted = Counter(_words(text))
        if len(counted) <= _BLOCK_WORDS:
            yield _Block(number, list(counted), list(counted.values()))
            continue
        words = iter(counted.items())
        while some := list(islice(words, _BLOCK_WORDS)):
            yield _Block(number, [word for word, _ in some], [count for _, count in some])


def _words(text: str) -> list[str]:
    """The folded words of a text, in order; characters and pairs where no spaces are written."""
    if text.isascii():
        return text.encode("ascii").translate(_ASCII_WORDS).decode("ascii").split()
    bare = re.sub(_MARKS, "", normalized("NFKD", text).casefold())
    folded = normalized("NFC", bare)
    if not re.search(_UNSEGMENTED, folded):
        return re.findall(_WORD, folded)
    words: list[str] = re.findall(_WORD, re.sub(_UNSEGMENTED, " ", folded))
    for run in re.findall(_UNSEGMENTED, folded):
        words.extend(run)
        words.extend(map("".join, pairwise(run)))
    return words


def _features(word: str) -> list[int]:
    """The hash of the whole word, then those of its n-grams."""
    hashes = [xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"), _HASH_SEED)]
    if not word.isascii() and re.match(_UNSEGMENTED, word):
        return hashes
    bounded = f"{_BOUNDARY}{word[:_NGRAM_REACH]}{_BOUNDARY}"
    if word.isascii():
        data = bounded.encode("ascii")
        grams = [data[i : i + n] for n in _NGRAM_SIZES for i in range(len(data) - n + 1)]
    else:
        grams = [
            bounded[i : i + n].encode("utf-8", "surrogatepass")
            for n in _NGRAM_SIZES
            for i in range(len(bounded) - n + 1)
        ]
    hashes.extend([xxh3_64_intdigest(gram, _HASH_SEED) for gram in grams])
    return hashes


def _row_length(word: str) -> int:
    if not word.isascii() and re.match(_UNSEGMENTED, word):
        return _CHARACTER_ROW_LENGTH if len(word) == 1 else _PAIR_ROW_LENGTH
    if word.isdigit():
        return _NUMBER_ROW_LENGTH
    return _ROW_LENGTHS[min(len(word), len(_ROW_LENGTHS) - 1)]


def unit_rows(sums: NDArray[np.float64]) -> NDArray[np.float32]:
    """Rows of length 1; the neutral vector for a sum of zero."""
    import numpy as np

    clipped = np.clip(sums, -_SUM_LIMIT, _SUM_LIMIT)
    squares = np.einsum("ij,ij->i", clipped, clipped)
    empty = squares == 0.0
    squares[empty] = 1.0
    units: NDArray[np.float32] = (clipped / np.sqrt(squares)[:, np.newaxis]).astype(np.float32)
    units[empty] = neutral_vector(DIMENSION)
    return units


class BuiltinEmbedder(Embedder):
    """Hashed words and character n-grams: lexical, nothing to download, safe between threads."""

    name = "builtin"
    fingerprint = f"builtin/{VERSION}:{DIMENSION}"
    dimension = DIMENSION
    lexical = True

    def __init__(self) -> None:
        # Made on first use: opening an embedder, to ask for its name, loads no numpy.
        self._rows: WordRows | None = None
        self._lock = threading.Lock()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts: ``(n, 384) float32, rows of length 1``."""
        import numpy as np

        vectors = np.empty((len(texts), DIMENSION), dtype=np.float32)
        for start in range(0, len(texts), _BATCH_TEXTS):
            some = texts[start : start + _BATCH_TEXTS]
            sums = np.zeros((len(some), DIMENSION), dtype=np.float64)
            for batch in batches(blocks_of(some)):
                with self._lock:
                    self._rows = self._rows or WordRows()
                    self._rows.add_to(sums, batch)
            vectors[start : start + len(some)] = unit_rows(sums)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question as a document would be: ``(384,) float32, of length 1``."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


def open_choice(_: Choice) -> Embedder:
    """Open it; there is nothing to choose."""
    return BuiltinEmbedder()
