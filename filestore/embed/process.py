"""An embedder that threads share, or one in a process of its own, one batch ahead.

What runs a model keeps buffers between two calls, and loads itself at the first one, so one thread
asks it at a time. A process is for embedders that keep one core busy; messages are texts as JSON
one way, raw float32 rows the other.
"""

import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from filestore.embed import Choice, Embedder, open_embedder
from filestore.fs.subprocess_worker import Child, parent_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OneAtATime(Embedder):
    """Another embedder, behind a lock."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.lexical = embedder.lexical
        self.single_threaded = embedder.single_threaded
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

    @property
    def max_tokens(self) -> int | None:
        """The other's."""
        with self._lock:
            return self._embedder.max_tokens

    @property
    def tokenizer(self) -> str:
        """The other's."""
        return self._embedder.tokenizer

    def count_tokens(self, text: str) -> int:
        """How many the other counts."""
        with self._lock:
            return self._embedder.count_tokens(text)

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Embed, once no other thread does; see `Embedder.embed_documents`."""
        with self._lock:
            return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> "NDArray[np.float32]":
        """Embed a question, once no other thread does; see `Embedder.embed_query`."""
        with self._lock:
            return self._embedder.embed_query(text)


class EmbeddingProcess:
    """Takes one batch at a time; `receive` waits for the batch that was sent.

    Raises from any method:
        OSError: The process is gone.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._dimension = embedder.dimension
        self._child = Child(__name__, embedder.name)

    def send(self, texts: Sequence[str]) -> None:
        """Start embedding texts; the batch before must have been received."""
        self._child.send(
            orjson.dumps([text.encode("utf-8", "replace").decode("utf-8") for text in texts])
        )

    def receive(self) -> "NDArray[np.float32]":
        """The vectors of the batch that was sent: (n, dimension) float32, rows of length 1."""
        import numpy

        data = self._child.receive()
        return numpy.frombuffer(data, dtype=numpy.float32).reshape(-1, self._dimension)

    def close(self) -> None:
        """End the process."""
        self._child.close()


def serve(name: str) -> None:
    """Embed every batch that comes in, until the input ends."""
    line = parent_line()
    embedder = open_embedder(Choice(name=name))
    for request in line:
        line.send(embedder.embed_documents(orjson.loads(request)).tobytes())


if __name__ == "__main__":
    try:
        serve(sys.argv[1])
    except (ConnectionError, KeyboardInterrupt):
        os._exit(1)
