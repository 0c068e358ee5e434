"""Texts into the tokens a model takes, and long texts into windows whose mean stands for the text.

A model takes so many tokens; what is longer is not cut off but read in windows of about equal
length. One rule: how a text is cut depends on the text, the tokenizer and the length alone, so that
every runtime embeds the same tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import Struct

from filestore.embed._model_folder import TOKENIZER, ModelFolder, clipped, unusable
from filestore.fs import disk

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_RULES: Final = ("added_tokens", "normalizer", "pre_tokenizer", "model")
"""What in a tokenizer's file decides how a text is cut."""
PROBE: Final = "a"
"""The shortest text; a tokenizer that makes no token of it is not understood."""
_PANIC: Final = "PanicException"
"""What the library ends with where it did not expect a fault in the file; no `Exception`."""
_LEAST_WINDOW: Final = 8
"""Tokens of text that a window must have room for beside a prefix."""


class Window(Struct, frozen=True, kw_only=True):
    """What the model is given at once."""

    text: int
    """The place of its text among those asked for."""
    tokens: tuple[int, ...]
    """Special ones and the prefix's included."""
    prompt: int
    """How many of them come before the text itself where there is a prefix, else 0."""
    weight: int
    """Tokens of the text in it; 1 for a text that has none."""


class Windows:
    """A model's tokenizer, with whatever cutting and padding its file asks for switched off."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder
        from tokenizers import Tokenizer

        with _tokenizer_errors(folder.path):
            tokenizer = Tokenizer.from_file(folder.file(TOKENIZER))
            tokenizer.no_truncation()
            tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._before, self._after = _special_tokens(self._tokenizer, folder.path)

    @cached_property
    def digest(self) -> str:
        """12 hexadecimal digits of what decides how a text is cut; not of where it is cut off."""
        with _tokenizer_errors(self._folder.path):
            path = self._folder.file(TOKENIZER)
            rules = orjson.loads(disk.read_path(path, follow_links=True))
            decisive = {key: rules.get(key) for key in _RULES}
            data = orjson.dumps(decisive, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(data).hexdigest()[:12]

    def count(self, text: str) -> int:
        """How many tokens a text has, without special ones; 0 for an empty text."""
        return len(self._encode([text])[0].ids) if text else 0

    def room(self, prefix: str) -> int:
        """How many tokens of a text fit into one window.

        Raises:
            ModelUnusable: Hardly any beside the prefix.
        """
        taken = len(self._before) + len(self._after) + self.count(prefix)
        room = self._folder.length - taken
        if room < _LEAST_WINDOW:
            raise unusable(
                self._folder.path,
                f"takes {self._folder.length} tokens, of which special ones and the prefix"
                f" {clipped(prefix)!r} take {taken}",
            )
        limit = self._folder.limit
        return room if limit is None else min(room, limit)

    def of(self, texts: Sequence[str], prefix: str) -> list[Window]:
        """The windows of some texts, in their order.

        A text of nothing but white space counts as empty.
        """
        room = self.room(prefix)
        whole = [prefix + text if text.strip() else prefix for text in texts]
        windows: list[Window] = []
        for place, encoding in enumerate(self._encode(whole)):
            tokens = encoding.ids
            length = len(self._prepared(prefix).rstrip())
            taken = sum(1 for start, _ in encoding.offsets if start < length) if prefix else 0
            head = (*self._before, *tokens[:taken])
            words = encoding.word_ids if len(tokens) - taken > room else ()
            windows += [
                Window(
                    text=place,
                    tokens=(*head, *tokens[taken + start : taken + end], *self._after),
                    prompt=len(head) if prefix else 0,
                    weight=max(end - start, 1),
                )
                for start, end in spans(len(tokens) - taken, room, words[taken:])
            ]
        return windows

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        prepared = [self._prepared(text) for text in texts]
        with _tokenizer_errors(self._folder.path):
            return self._tokenizer.encode_batch(prepared, add_special_tokens=False)

    def _prepared(self, text: str) -> str:
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # lone surrogates are no text
        return text.lower() if self._folder.lower_case else text


def spans(count: int, room: int, words: Sequence[int | None]) -> list[tuple[int, int]]:
    """Cut so many tokens into runs of about equal length, between words where it can be.

    Args:
        count: How many tokens there are.
        room: The most that a run may have.
        words: The word each token belongs to; only looked at where `count` is above `room`.

    Returns:
        Start and end of each run, one after the other; one empty run for no tokens.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while count - start > room:
        runs = -(-(count - start) // room)
        end = start + -(-(count - start) // runs)
        end = _between_words(words, start, end)
        found.append((start, end))
        start = end
    return [*found, (start, count)]


def _between_words(words: Sequence[int | None], start: int, end: int) -> int:
    """The last place up to `end` where a word begins; `end` itself where that is far back."""
    for place in range(end, start + (end - start) // 2, -1):
        if words[place] is None or words[place] != words[place - 1]:
            return place
    return end


@contextmanager
def _tokenizer_errors(path: str) -> Iterator[None]:
    """What the tokenizer's library raises, in one sentence."""
    try:
        yield
    except BaseException as error:  # the library raises nothing narrower
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        raise unusable(path, f"has a {TOKENIZER} that cannot be used", detail=str(error)) from error


def _special_tokens(tokenizer: Tokenizer, path: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokenizer puts before and after a text."""
    with _tokenizer_errors(path):
        bare = tokenizer.encode(PROBE, add_special_tokens=False).ids
        full = tokenizer.encode(PROBE, add_special_tokens=True).ids
    for place in range(len(full) - len(bare) + 1):
        if bare and full[place : place + len(bare)] == bare:
            return tuple(full[:place]), tuple(full[place + len(bare) :])
    raise unusable(path, "has a tokenizer that changes a text in a way that is not supported")
