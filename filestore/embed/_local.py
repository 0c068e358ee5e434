"""What embedders that run a model on this machine share; the runtimes differ in `Forward` alone.

Tokens, windows, batches, prefixes and normalising are the same for all of them, so that one
fingerprint is true of all. One rule: nothing heavy is loaded before the first text.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from filestore.embed._model_folder import (
    ModelFolder,
    Record,
    check_dimension,
    fingerprint,
    unusable,
)
from filestore.embed._windows import PROBE, Window, Windows
from filestore.embed.base import Choice, Embedder, ModelMissing, neutral_vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Forward = Callable[[NDArray[np.int64], NDArray[np.int64], int], NDArray[np.float32]]
    """Tokens, their mask (both (n, length)) and tokens before the text, to (n, dimension)."""

BATCH: Final = 8
"""Windows of about equal length that go through the model together; more is slower on a CPU."""
_BATCH_TOKENS: Final = 8192
"""Longer windows go in smaller batches: memory grows with the square of their length."""
_TEXTS: Final = 2048
"""Texts cut into tokens at once."""
_SHOWN: Final = 40


class LocalEmbedder(Embedder):
    """A transformer in a folder. Safe between threads once its runtime is."""

    def __init__(self, choice: Choice, folder: ModelFolder, record: Record) -> None:
        check_dimension(folder.path, record.dimension, choice.options)
        self._name = choice.name
        self._folder = folder
        self._fingerprint = fingerprint(folder, record)
        self._dimension = record.dimension
        self._lock = threading.Lock()
        self._windows: Windows | None = None
        self._forward: Forward | None = None

    @property
    def name(self) -> str:
        """As in the settings."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """Weights, dimension, pooling, precision, windows, prefixes; not the runtime."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """As the folder says; the model is held to it."""
        return self._dimension

    @property
    def tokenizer(self) -> str:
        """The rules of its tokenizer, by their hash: every copy of a model cuts alike."""
        return f"tokens-{self._texts().digest}"

    @property
    def max_tokens(self) -> int:
        """What fits into one window; a longer text is embedded as the mean of several."""
        return self._texts().room(self._folder.document_prefix)

    @property
    def lexical(self) -> bool:
        """False: it compares meaning."""
        return False

    def count_tokens(self, text: str) -> int:
        """By the model's own tokenizer, without special tokens."""
        return self._texts().count(text)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts that are to be found: ``(n, dimension) float32, rows of length 1``."""
        import numpy as np

        if texts:
            # Its vectors were seen to be as long as the folder says before there is room for many.
            self._model()
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS):
            some = texts[start : start + _TEXTS]
            vectors[start : start + len(some)] = self._embed(some, self._folder.document_prefix)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question: ``(dimension,) float32, of length 1``."""
        vector: NDArray[np.float32] = self._embed([text], self._folder.query_prefix)[0]
        return vector

    @abstractmethod
    def _load(self) -> Forward:
        """Load the model and what runs it."""

    def _texts(self) -> Windows:
        with self._lock:
            self._windows = self._windows or Windows(self._folder)
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
                        f"a library that runs {self._name} is installed and cannot be loaded:"
                        f" {error}",
                        remedy="install it again",
                    ) from error
                self._run(forward, texts.of([PROBE], ""))
                self._forward = forward
            return self._forward

    def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        import numpy as np

        model = self._model()
        windows = self._texts().of(texts, prefix)
        sums = np.zeros((len(texts), self._dimension), dtype=np.float64)
        neutral = neutral_vector(self._dimension)
        for batch in batches(windows):
            rows = self._rows(model, batch) if batch[0].tokens else [neutral] * len(batch)
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

        rows = self._run(model, batch).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def _run(self, model: Forward, batch: Sequence[Window]) -> NDArray[np.floating[Any]]:
        """What the model gives for some windows, seen to be numbers: (n, dimension), any length."""
        import numpy as np

        length = max(len(window.tokens) for window in batch)
        tokens = np.full((len(batch), length), self._folder.padding, dtype=np.int64)
        mask = np.zeros((len(batch), length), dtype=np.int64)
        for row, window in enumerate(batch):
            tokens[row, : len(window.tokens)] = window.tokens
            mask[row, : len(window.tokens)] = 1
        found: NDArray[Any] = model(tokens, mask, batch[0].prompt)
        expected = (len(batch), self._dimension)
        if found.shape != expected or not np.issubdtype(found.dtype, np.floating):
            raise unusable(
                self._folder.path,
                f"gives {found.shape} of {found.dtype} where {expected} of floats was expected",
            )
        return found


def batches(windows: Sequence[Window]) -> Iterator[list[Window]]:
    """Windows of about equal length together, so that little is filled up."""
    ordered = sorted(windows, key=lambda window: len(window.tokens))
    start = 0
    while start < len(ordered):
        batch = ordered[start : start + BATCH]
        while len(batch) > 1 and len(batch) * len(batch[-1].tokens) > _BATCH_TOKENS:
            batch.pop()
        # What has no tokens at all never reaches the model.
        if not batch[0].tokens and batch[-1].tokens:
            batch = [window for window in batch if not window.tokens]
        yield batch
        start += len(batch)
