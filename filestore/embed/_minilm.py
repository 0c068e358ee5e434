"""all-MiniLM-L6-v2, which comes with the program, run by numpy alone.

Its file is written by `tests/minilm_file.py`. Its matrices are int8, widened once when it is
loaded; of the words, which are half of it, only those of a text are. One rule: the file is read
whole, and nothing in it is believed before its hash was seen: no damage gives other vectors, and a
file that changes later changes nothing here.

Texts are cut as BERT does: words, signs apart, and the longest known pieces of each. The ids are
those of the ``tokenizers`` library. Which character is a sign, a space or nothing is data that
comes with the vocabulary, so that no version of Python decides it.
"""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct

from filestore.core.errors import REINSTALL
from filestore.core.hashing import content_hash
from filestore.core.spelling import normalized
from filestore.embed import Choice, Embedder, ModelUnusable
from filestore.embed._local import LocalEmbedder, Window, on_all_cores, one_thread
from filestore.embed._model_folder import ModelFolder, own_record
from filestore.fs import disk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from filestore.embed._local import Forward

    Floats = NDArray[np.float32]
    Tensors = dict[str, NDArray[Any]]


FILE: Final = os.path.join(os.path.dirname(__file__), "minilm", "model.safetensors")
SHA256: Final = "120118a4aa1e706db4bd33ee244ccc95b092f3cc577d5499a4f47f3fa2a20dce"
"""Of the file; names the vectors."""
_XXH3_128: Final = "385a41848af2621869e634a80cd818af"
"""Of the file; seen each time it is loaded, which takes a tenth of the time of the other."""
_FOLDER: Final = ModelFolder(
    path=os.path.dirname(FILE),
    base="",
    dimension=384,
    pooling=("mean",),
    pools_prompt=True,
    dense=(),
    length=256,
    limit=None,
    lower_case=False,
    padding=0,
    query_prefix="",
    document_prefix="",
)
_TYPES: Final = {"F32": "<f4", "U32": "<u4", "I8": "i1"}
_LAYERS: Final = 6
_HEADS: Final = 12
_ERF: Final = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
_ERF_STEP: Final = 0.3275911
_GELU_ROWS: Final = 64
"""So much of a layer stays in the fast memory of a core."""
_SCORES: Final = 1 << 20
"""Numbers of attention at once, for the same reason."""


class MinilmEmbedder(LocalEmbedder):
    """The bundled model. Documents are embedded on all cores at low priority, a query is not."""

    _batch_windows = 1024
    _batch_tokens = 1024
    """About a quarter of a second: so long goes a thread on after Ctrl-C."""
    _each = staticmethod(on_all_cores)

    def __init__(self, choice: Choice, path: str = FILE) -> None:
        super().__init__(choice, _FOLDER, own_record(_FOLDER, SHA256, "int8"))
        self._path = path

    @cached_property
    def _tensors(self) -> Tensors:
        return read_tensors(self._path)

    def _tokenizer(self) -> WordPieces:
        words = self._tensors["vocabulary"].tobytes().decode().splitlines()
        return WordPieces(words, self._tensors["signs"].tolist())

    def _load(self) -> Forward:
        model = Model(self._tensors)

        def forward(batch: Sequence[Window]) -> Floats:
            with one_thread():
                return model.vectors([window.tokens for window in batch])

        return forward


def open_choice(choice: Choice) -> Embedder:
    """Open it; nothing is read yet."""
    return MinilmEmbedder(choice)


def read_tensors(path: str) -> Tensors:
    """What is in the file, where it was seen to be the very one: views of one copy in memory.

    Raises:
        ModelUnusable: It is not there, or has other bytes.
    """
    import numpy as np

    try:
        data = disk.read_path(path, follow_links=True)
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from error
    if content_hash(data).hex() != _XXH3_128:
        raise _unusable(path, "is damaged or of another version: its hash is not the one expected")
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, header in orjson.loads(data[8:start]).items():
        first, last = (start + offset for offset in header["data_offsets"])
        values = np.frombuffer(memoryview(data)[first:last], _TYPES[header["dtype"]])
        found[name] = values.reshape(header["shape"])
    return found


def _unusable(path: str, what: str) -> ModelUnusable:
    return ModelUnusable(f"the model {path} {what}", remedy=REINSTALL)


class _Dense(Struct, frozen=True):
    weights: Floats
    bias: Floats

    def __call__(self, rows: Floats) -> Floats:
        made: Floats = rows @ self.weights
        made += self.bias
        return made


class _Norm(Struct, frozen=True):
    weight: Floats
    bias: Floats

    def __call__(self, rows: Floats) -> Floats:
        """Each row, in place: mean 0, variance 1, weighed."""
        import numpy as np

        rows -= rows.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", rows, rows)[:, None] / np.float32(rows.shape[1])
        rows /= np.sqrt(variance + np.float32(1e-12))
        rows *= self.weight
        rows += self.bias
        return rows


class Model:
    """The layers; safe between threads."""

    def __init__(self, tensors: Tensors) -> None:
        import numpy as np

        def wide(name: str) -> Floats:
            scale = tensors[f"{name}.scale"][:, None]
            return np.multiply(tensors[name], scale, dtype=np.float32)

        def dense(name: str) -> _Dense:
            return _Dense(wide(name).T, tensors[f"{name}.bias"])

        def norm(name: str) -> _Norm:
            return _Norm(tensors[f"{name}.weight"], tensors[f"{name}.bias"])

        self._words = tensors["words"]
        self._scales = tensors["words.scale"]
        self._positions = wide("positions")
        self._norm = norm("norm")
        self._layers = [
            (
                dense(f"{place}.attention"),
                dense(f"{place}.attended"),
                norm(f"{place}.attended.norm"),
                dense(f"{place}.wider"),
                dense(f"{place}.narrower"),
                norm(f"{place}.narrower.norm"),
            )
            for place in range(_LAYERS)
        ]

    def vectors(self, texts: Sequence[Sequence[int]]) -> Floats:
        """The mean of each text's tokens: (n, 384), of any length.

        Args:
            texts: Tokens of each, special ones included; those of one length are together.
        """
        import numpy as np

        tokens = np.concatenate([np.asarray(text) for text in texts])
        rows = np.multiply(self._words[tokens], self._scales[tokens, None], dtype=np.float32)
        rows += np.concatenate([self._positions[: len(text)] for text in texts])
        rows = self._norm(rows)
        groups = [*_groups([len(text) for text in texts])]
        for attention, attended, first_norm, wider, narrower, second_norm in self._layers:
            seen = attended(_attend(attention(rows), groups))
            seen += rows
            rows = first_norm(seen)
            made = narrower(gelu(wider(rows)))
            made += rows
            rows = second_norm(made)
        return np.concatenate(
            [
                rows[start:end].reshape(-1, length, rows.shape[1]).mean(axis=1)
                for start, end, length in groups
            ]
        )


def _groups(lengths: Sequence[int]) -> list[tuple[int, int, int]]:
    """Where texts of one length begin and end among all tokens, and that length."""
    found: list[tuple[int, int, int]] = []
    start = 0
    for length, same in groupby(lengths):
        count = len([*same])
        most = max(1, _SCORES // (_HEADS * length * length))
        while count:
            end = start + min(count, most) * length
            found.append((start, end, length))
            count -= min(count, most)
            start = end
    return found


def _attend(three: Floats, groups: Sequence[tuple[int, int, int]]) -> Floats:
    """Each token's mean of the values of its text, weighed by how its query meets their keys."""
    import numpy as np

    size = three.shape[1] // 3
    found = np.empty((len(three), size), np.float32)
    for start, end, length in groups:
        split = three[start:end].reshape(-1, length, 3, _HEADS, size // _HEADS)
        query, key, value = split.transpose(2, 0, 3, 1, 4)
        weights = query @ key.swapaxes(2, 3)
        weights -= weights.max(axis=3, keepdims=True)
        np.exp(weights, out=weights)
        means = weights @ value
        means /= weights.sum(axis=3, keepdims=True)
        into = found[start:end].reshape(-1, length, _HEADS, size // _HEADS)
        into[:] = means.swapaxes(1, 2)
    return found


def gelu(rows: Floats) -> Floats:
    """Every number times the normal distribution up to it, in place.

    By formula 7.1.26 of Abramowitz and Stegun for the error function, within 1.5e-7. It gives the
    part of the distribution beyond a size: all of a negative number's, what a positive one lacks.
    """
    import numpy as np

    step = np.float32(_ERF_STEP / 2**0.5)
    factors = [np.float32(factor / 2) for factor in _ERF]
    for start in range(0, len(rows), _GELU_ROWS):
        some = rows[start : start + _GELU_ROWS]
        size = np.abs(some)
        near = size * step
        near += 1
        np.reciprocal(near, out=near)
        beyond = near * factors[0]
        for factor in factors[1:]:
            beyond += factor
            beyond *= near
        beyond *= size
        size *= size
        size *= np.float32(-0.5)
        beyond *= np.exp(size, out=size)
        np.maximum(some, 0, out=some)
        some -= beyond
    return rows


_SPECIAL: Final = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
"""Represents itself in a text, as the library has it."""
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
        found = []
        for text in texts:
            ids, word_ids = list[int](), list[int]()
            for number, word in enumerate(self._words(text)):
                pieces = self._pieces(word if len(word) <= _LONGEST_WORD else _UNKNOWN)
                ids += pieces
                word_ids += [number] * len(pieces)
            found.append(Pieces(ids, word_ids))
        return found

    def _words(self, text: str) -> list[str]:
        words: list[str] = []
        for place, part in enumerate(_SPECIAL.split(text)):
            if place % 2:
                words.append(part)
                continue
            plain = part.translate(self._signs)
            if not plain.isascii():
                # A sigma that ends a word is lower-cased as any other.
                plain = normalized("NFD", plain).replace("Σ", "σ").lower()
                plain = plain.translate(self._signs)  # the accents that came apart
            words += plain.lower().split()
        return words

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
