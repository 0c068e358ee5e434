"""An embedder in a process of its own, one batch ahead, for embedders that keep one core busy.

Messages are texts as JSON one way, raw float32 rows the other.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from filestore.embed import Choice, Embedder, open_embedder
from filestore.fs.subprocess_worker import Child, parent_line

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


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

    def receive(self) -> "NDArray[float32]":
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
