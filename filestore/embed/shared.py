"""An embedder that threads share.

What runs a model keeps buffers between two calls, and loads itself at the first one, so one thread
asks it at a time.
"""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from filestore.embed import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OneAtATime(Embedder):
    """Another embedder, behind a lock."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.lexical = embedder.lexical
        self.least_batch = embedder.least_batch
        self._embedder = embedder
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """The other's."""
        with self._lock:
            return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        """The other's."""
        with self._lock:
            return self._embedder.dimension

    @property
    def is_known(self) -> bool:
        """The other's."""
        return self._embedder.is_known

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Embed, once no other thread does; see `Embedder.embed_documents`."""
        with self._lock:
            return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> "NDArray[np.float32]":
        """Embed a question, once no other thread does; see `Embedder.embed_query`."""
        with self._lock:
            return self._embedder.embed_query(text)

    def fluency(self, text: str) -> float:
        """The other's, once no other thread embeds."""
        with self._lock:
            return self._embedder.fluency(text)
