"""The embedder that needs no model and no download: `_lexical` computes its vectors.

It is lexical. It finds words, parts of words, inflections and spelling variants, in any script; it
does not know that a car is an automobile.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from filestore.embed.base import Choice, Embedder

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray

    from filestore.embed._lexical import WordRows

VERSION: Final = 1
"""Raised whenever a bit of some vector changes."""
DIMENSION: Final = 384
_BATCH_TEXTS: Final = 512


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
            for batch in _lexical().batches(_lexical().blocks_of(some)):
                with self._lock:
                    self._rows = self._rows or _lexical().WordRows()
                    self._rows.add_to(sums, batch)
            vectors[start : start + len(some)] = _lexical().unit_rows(sums)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question as a document would be: ``(384,) float32, of length 1``."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


def open_choice(_: Choice) -> Embedder:
    """Open it; there is nothing to choose."""
    return BuiltinEmbedder()


def _lexical() -> ModuleType:
    """Loaded on first use: its patterns take milliseconds that asking for a name need not pay."""
    from filestore.embed import _lexical

    return _lexical
