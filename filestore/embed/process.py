"""An embedder in a process of its own, one batch ahead, for embedders that keep one core busy.

A fresh process and not a fork: it inherits no lock and no database, and ends when its input does.
Messages are a length and that many bytes: texts as JSON one way, raw float32 rows the other.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Final

import orjson

from filestore.embed import Embedder, open_embedder

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

_LENGTH: Final = struct.Struct("<Q")


class EmbeddingProcess:
    """Takes one batch at a time; `receive` waits for the batch that was sent.

    Raises from any method:
        OSError: The process is gone.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._dimension = embedder.dimension
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, embedder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def send(self, texts: Sequence[str]) -> None:
        """Start embedding texts; the batch before must have been received."""
        assert self._process.stdin is not None
        _write(self._process.stdin, orjson.dumps([_encodable(text) for text in texts]))

    def receive(self) -> "NDArray[float32]":
        """The vectors of the batch that was sent: (n, dimension) float32, rows of length 1."""
        import numpy

        assert self._process.stdout is not None
        data = _read(self._process.stdout)
        if data is None:
            raise ConnectionAbortedError("the embedding process ended")
        return numpy.frombuffer(data, dtype=numpy.float32).reshape(-1, self._dimension)

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue
        self._process.wait()


def _encodable(text: str) -> str:
    """JSON holds no lone surrogates; the builtin embedder sees the same in their place."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def serve(name: str, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Embed every batch that comes in, until the input ends."""
    embedder = open_embedder(name)
    while (request := _read(requests)) is not None:
        _write(answers, embedder.embed_documents(orjson.loads(request)).tobytes())


if __name__ == "__main__":
    try:
        serve(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)
