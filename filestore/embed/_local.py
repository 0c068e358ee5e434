"""What embedders that run a model on this machine share.

The runtimes differ in `Forward` and in their `Tokenizer` alone. Windows, batches, prefixes and
normalising are the same for all of them, so that one fingerprint is true of all. One rule: nothing
heavy is loaded before the first text.

A model takes a limited number of tokens; what is longer is not cut off but read in windows of about
equal length, whose mean represents the text. Another rule: how a text is cut depends on the text,
the tokenizer and the length alone, so that every runtime embeds the same tokens.

What numpy computes runs on every core at low priority. It holds no lock while it computes, so
threads are as fast as processes, and start at once. Its linear algebra stays in the thread that
asks for it: threads of its own wait by spinning, which on a busy machine takes twice the processor
time, and for one query ten times.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec import Struct

from filestore.core.spelling import UNSPACED
from filestore.embed import Choice, Embedder, ModelMissing, neutral_vector
from filestore.embed._model_folder import (
    TOKENIZER,
    ModelFolder,
    Record,
    check_dimension,
    clipped,
    fingerprint,
    unusable,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Forward = Callable[[Sequence["Window"]], NDArray[np.float32]]
    """Some windows, all with tokens or all without, to (n, dimension)."""


BATCH: Final = 8
"""Windows of about equal length that go through a model together; more is slower on a CPU."""
_BATCH_TOKENS: Final = 8192
"""Longer windows go in smaller batches: memory grows with the square of their length."""
_TEXTS: Final = 2048
"""Texts cut into tokens at once."""
_SHOWN: Final = 40
_UNKNOWN: Final = ("[UNK]", "<unk>")
"""What represents unknown words in vocabularies of word pieces, and of others."""
_FLUENT: Final = 3
"""Characters of a token of a language that a vocabulary was made for, at least: MiniLM's has 4.6 in
English, 3.0 in German, 1.2 in Russian. A character of a script without spaces counts as 3."""

PROBE: Final = "a"
"""The shortest text; a tokenizer that makes no token of it is not understood."""
_PANIC: Final = "PanicException"
"""What the library ends with where it did not expect a fault in the file; no `Exception`."""
_LEAST_WINDOW: Final = 8
"""Tokens of text that a window must have room for besides a prefix."""


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


class Tokens(Protocol):
    """The tokens of a text, without special ones."""

    @property
    def ids(self) -> Sequence[int]: ...
    @property
    def word_ids(self) -> Sequence[int | None]:
        """The word that each is of."""

    @property
    def offsets(self) -> Sequence[tuple[int, int]]:
        """Where each begins and ends in the text; only looked at where there is a prefix."""


class Tokenizer(Protocol):
    """What cuts texts into the tokens of a model."""

    before: tuple[int, ...]
    """What comes before each text."""
    after: tuple[int, ...]
    unknown: int | None
    """What represents a word that the vocabulary cannot make; None where it can make all."""

    def encode(self, texts: Sequence[str]) -> Sequence[Tokens]:
        """Cut texts that are Unicode: none has a lone surrogate."""


class LibraryTokenizer:
    """That of a folder, with whatever cutting and padding its file asks for switched off."""

    def __init__(self, folder: ModelFolder) -> None:
        from tokenizers import Tokenizer

        self._path = folder.path
        with _tokenizer_errors(self._path):
            self._tokenizer = Tokenizer.from_file(folder.file(TOKENIZER))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            unknown = map(self._tokenizer.token_to_id, _UNKNOWN)
            self.unknown = next((one for one in unknown if one is not None), None)
            bare = self._tokenizer.encode(PROBE, add_special_tokens=False).ids
            full = self._tokenizer.encode(PROBE, add_special_tokens=True).ids
        for place in range(len(full) - len(bare) + 1):
            if bare and full[place : place + len(bare)] == bare:
                self.before, self.after = tuple(full[:place]), tuple(full[place + len(bare) :])
                return
        raise unusable(self._path, "has a tokenizer that changes text in an unsupported way")

    def encode(self, texts: Sequence[str]) -> Sequence[Tokens]:
        """Cut texts, by the library."""
        with _tokenizer_errors(self._path):
            found: Sequence[Tokens] = self._tokenizer.encode_batch(
                list(texts), add_special_tokens=False
            )
        return found


class Windows:
    """What a model's tokenizer makes of texts, no run of tokens longer than the model takes."""

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer) -> None:
        self._folder = folder
        self._tokenizer = tokenizer

    def room(self, prefix: str) -> int:
        """How many tokens of a text fit into one window.

        Raises:
            ModelUnusable: Hardly any besides the prefix.
        """
        special = (*self._tokenizer.before, *self._tokenizer.after)
        taken = len(special) + len(self._encode([prefix])[0].ids)
        room = self._folder.length - taken
        if room < _LEAST_WINDOW:
            raise unusable(
                self._folder.path,
                f"takes {self._folder.length} tokens; special ones and the prefix"
                f" {clipped(prefix)!r} use {taken} of them",
            )
        limit = self._folder.limit
        return room if limit is None else min(room, limit)

    def of(self, texts: Sequence[str], prefix: str) -> list[Window]:
        """The windows of some texts, in their order.

        A text of nothing but white space counts as empty.
        """
        room, after = self.room(prefix), self._tokenizer.after
        whole = [prefix + text if text.strip() else prefix for text in texts]
        windows: list[Window] = []
        for place, encoding in enumerate(self._encode(whole)):
            tokens = encoding.ids
            length = len(self._prepared(prefix).rstrip())
            taken = sum(1 for start, _ in encoding.offsets if start < length) if prefix else 0
            head = (*self._tokenizer.before, *tokens[:taken])
            words = encoding.word_ids if len(tokens) - taken > room else ()
            windows += [
                Window(
                    text=place,
                    tokens=(*head, *tokens[taken + start : taken + end], *after),
                    prompt=len(head) if prefix else 0,
                    weight=max(end - start, 1),
                )
                for start, end in spans(len(tokens) - taken, room, words[taken:])
            ]
        return windows

    def fluency(self, text: str) -> float:
        """How well the vocabulary fits a text, 0 to 1: into how few tokens, and known ones."""
        ids = self._encode([text])[0].ids
        if not ids:
            return 1.0
        wide = len(re.findall(f"[{UNSPACED}]", text))
        length = len(text) + (_FLUENT - 1) * wide
        known = len(ids) - ids.count(self._tokenizer.unknown)
        return min(1.0, length / len(ids) / _FLUENT) * known / len(ids)

    def _encode(self, texts: Sequence[str]) -> Sequence[Tokens]:
        return self._tokenizer.encode([self._prepared(text) for text in texts])

    def _prepared(self, text: str) -> str:
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # lone surrogates are no text
        return text.lower() if self._folder.lower_case else text


def spans(count: int, room: int, words: Sequence[int | None]) -> list[tuple[int, int]]:
    """Cut tokens into runs of about equal length, between words where it can be.

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
        # The last place up to there where a word begins, unless that is far back.
        nearest = range(end, start + (end - start) // 2, -1)
        begins = (at for at in nearest if words[at] is None or words[at] != words[at - 1])
        end = next(begins, end)
        found.append((start, end))
        start = end
    return [*found, (start, count)]


@contextmanager
def _tokenizer_errors(path: str) -> Iterator[None]:
    """What the tokenizer's library raises, in one sentence."""
    try:
        yield
    except BaseException as error:  # the library raises nothing narrower
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        raise unusable(path, f"has a {TOKENIZER} that cannot be used", detail=str(error)) from error


class LocalEmbedder(Embedder):
    """A transformer in a folder. Safe between threads once its runtime is."""

    _batch_windows: int = BATCH
    _batch_tokens: int = _BATCH_TOKENS
    _each: Callable[..., Iterable[NDArray[np.float64]]] = map
    """Runs the model over batches of documents; most runtimes use all cores for one batch."""

    def __init__(self, choice: Choice, folder: ModelFolder, record: Record) -> None:
        check_dimension(folder.path, record.dimension, choice.options)
        self.name = choice.name
        self._folder = folder
        self._fingerprint = fingerprint(folder, record)
        self._dimension = record.dimension
        self._lock = threading.Lock()
        self._windows: Windows | None = None
        self._forward: Forward | None = None

    @property
    def fingerprint(self) -> str:
        """Weights, dimension, pooling, precision, windows, prefixes; not the runtime."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """As the folder says; the model is held to it."""
        return self._dimension

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts that are to be found: ``(n, dimension) float32, rows of length 1``."""
        import numpy as np

        if texts:
            # Its vectors were seen to be as long as the folder says before there is room for many.
            self._model()
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        prefix = self._folder.document_prefix
        for start in range(0, len(texts), _TEXTS):
            some = texts[start : start + _TEXTS]
            vectors[start : start + len(some)] = self._embed(some, prefix, self._each)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question: ``(dimension,) float32, of length 1``."""
        vector: NDArray[np.float32] = self._embed([text], self._folder.query_prefix, map)[0]
        return vector

    def fluency(self, text: str) -> float:
        """How well its vocabulary fits a text, 0 to 1."""
        return self._texts().fluency(text)

    @abstractmethod
    def _load(self) -> Forward:
        """Load the model and what runs it."""

    def _tokenizer(self) -> Tokenizer:
        return LibraryTokenizer(self._folder)

    def _texts(self) -> Windows:
        with self._lock:
            self._windows = self._windows or Windows(self._folder, self._tokenizer())
            return self._windows

    def _model(self) -> Forward:
        texts = self._texts()
        with self._lock:
            if self._forward is None:
                for prefix in (self._folder.document_prefix, self._folder.query_prefix):
                    texts.room(prefix)
                try:
                    forward = self._load()
                except ImportError as error:
                    raise ModelMissing(
                        f"a library that runs {self.name} is installed but cannot be loaded:"
                        f" {error}"
                        "; install it again",
                    ) from error
                self._run(forward, texts.of([PROBE], ""))
                self._forward = forward
            return self._forward

    def _embed(
        self,
        texts: Sequence[str],
        prefix: str,
        each: Callable[..., Iterable[NDArray[np.float64]]],
    ) -> NDArray[np.float32]:
        import numpy as np

        model = self._model()
        windows = self._texts().of(texts, prefix)
        sums = np.zeros((len(texts), self._dimension), dtype=np.float64)
        found = [*batches(windows, self._batch_windows, self._batch_tokens)]
        for batch, rows in zip(found, each(partial(self._rows, model), found), strict=True):
            for window, row in zip(batch, rows, strict=True):
                sums[window.text] += window.weight * row
        lengths = np.linalg.norm(sums, axis=1)
        # A NaN is not above zero either.
        for place in np.flatnonzero(~((lengths > 0) & np.isfinite(lengths))):
            start = texts[int(place)][:_SHOWN]
            raise unusable(
                self._folder.path,
                f"gives no vector (NaN or zero) for the text that begins {start!r}",
            )
        unit: NDArray[np.float32] = (sums / lengths[:, None]).astype(np.float32)
        return unit

    def _rows(self, model: Forward, batch: Sequence[Window]) -> NDArray[np.float64]:
        """What the model gives for some windows: (n, dimension), rows of length 1, or NaN."""
        import numpy as np

        if not batch[0].tokens:
            return np.tile(neutral_vector(self._dimension).astype(np.float64), (len(batch), 1))
        rows = self._run(model, batch).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def _run(self, model: Forward, batch: Sequence[Window]) -> NDArray[np.floating[Any]]:
        """What the model gives for some windows, seen to be numbers: (n, dimension), any length."""
        import numpy as np

        found: NDArray[Any] = model(batch)
        expected = (len(batch), self._dimension)
        if found.shape != expected or not np.issubdtype(found.dtype, np.floating):
            raise unusable(
                self._folder.path,
                f"gives {found.shape} of {found.dtype} where {expected} of floats was expected",
            )
        return found


def padded(batch: Sequence[Window], padding: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tokens of some windows, filled up to one length, and their mask: (n, length)."""
    import numpy as np

    length = max(len(window.tokens) for window in batch)
    tokens = np.full((len(batch), length), padding, dtype=np.int64)
    mask = np.zeros((len(batch), length), dtype=np.int64)
    for row, window in enumerate(batch):
        tokens[row, : len(window.tokens)] = window.tokens
        mask[row, : len(window.tokens)] = 1
    return tokens, mask


def batches(
    windows: Sequence[Window], most: int = BATCH, most_tokens: int = _BATCH_TOKENS
) -> Iterator[list[Window]]:
    """Windows of about equal length together, so that little is filled up."""
    ordered = sorted(windows, key=lambda window: len(window.tokens))
    start = 0
    while start < len(ordered):
        batch = ordered[start : start + most]
        while len(batch) > 1 and len(batch) * len(batch[-1].tokens) > most_tokens:
            batch.pop()
        # What has no tokens at all never reaches the model.
        if not batch[0].tokens and batch[-1].tokens:
            batch = [window for window in batch if not window.tokens]
        yield batch
        start += len(batch)


Given = TypeVar("Given")
Made = TypeVar("Made")

_NICENESS: Final = 10
_BLAS: Final = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
"""How the libraries that numpy is built with spell a function."""

_lock = threading.Lock()
_threads_before: list[int] = []
"""The library's threads at each entry into `one_thread` that is not left yet."""


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_all_cores(work: Callable[[Given], Made], items: Sequence[Given]) -> Iterable[Made]:
    """What `work` makes of each item, in their order.

    The thread that asks only waits, so Ctrl-C ends it at once; the others end with the item that
    they have, and do not keep the program from ending.
    """
    waiting = iter(range(len(items)))
    made: dict[int, Made] = {}
    done: SimpleQueue[tuple[int, Made] | BaseException] = SimpleQueue()
    stopped = threading.Event()

    def run() -> None:
        if sys.platform == "linux":
            thread = threading.get_native_id()
            with suppress(OSError):
                lower = os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS
                os.setpriority(os.PRIO_PROCESS, thread, lower)
        try:
            while not stopped.is_set() and (place := next(waiting, None)) is not None:
                done.put((place, work(items[place])))
        except BaseException as error:  # raised where it was asked for
            done.put(error)

    try:
        for place in range(min(cores(), len(items))):
            try:
                threading.Thread(target=run, daemon=True).start()
            except RuntimeError:  # the system gives no more
                if place == 0:
                    return list(map(work, items))
                break
        while len(made) < len(items):
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            made[found[0]] = found[1]
    finally:
        stopped.set()
    return [made[place] for place in range(len(items))]


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep numpy's linear algebra in the thread that asks for it, where its library can."""
    count, limit = _library()
    with _lock:
        _threads_before.append(count())
        limit(1)
    try:
        yield
    finally:
        with _lock:
            before = _threads_before.pop()
            if not _threads_before:
                limit(before)


@cache
def _library() -> tuple[Callable[[], int], Callable[[int], Any]]:
    """Functions that ask and tell how many threads it takes; idle ones where it has none."""
    core = import_module("numpy._core._multiarray_umath")
    library = ctypes.CDLL(core.__file__)  # with all that it is linked to
    for name in _BLAS:
        with suppress(AttributeError):
            return (
                getattr(library, name.format("get_num_threads")),
                getattr(library, name.format("set_num_threads")),
            )
    return (lambda: 1), (lambda _: None)
