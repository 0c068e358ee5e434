"""Child processes that run a module of ours, started fresh and spoken to in framed messages.

Started fresh and not forked: they inherit no lock, no thread and no database, and end when their
input does. A message is its length, eight bytes, and that many bytes.
"""

import contextlib
import os
import select
import struct
import subprocess
import sys
import time
from typing import IO, Final

_LENGTH: Final = struct.Struct("<Q")
_PIECE: Final = 1 << 20


class Child:
    """A running child; one request at a time.

    Raises from any method:
        OSError: The child is gone.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        """Start ``python -m module``; what it would say on standard error is dropped."""
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def send(self, *parts: bytes) -> None:
        """Send one message of several parts; the answer to the one before was received."""
        write_message(self._stream(self._process.stdin), *parts)

    def receive(self, timeout_s: float | None = None) -> bytes:
        """The child's next message.

        Raises:
            TimeoutError: It did not come in time; the child is of no use any more.
        """
        stream = self._stream(self._process.stdout)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        (length,) = _LENGTH.unpack(_read_by(stream, _LENGTH.size, deadline))
        return _read_by(stream, length, deadline)

    @staticmethod
    def _stream(stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None
        return stream

    def kill(self) -> int:
        """End the child at once; returns its exit status, negative for a signal it died of."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self.close()
        return self._process.returncode

    def close(self) -> int:
        """Let the child end: its input is over; returns its exit status."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return self._process.wait()


def _read_by(stream: IO[bytes], size: int, deadline: float | None) -> bytes:
    """Read so many bytes past the stream's own buffer, which is never filled."""
    handle = stream.fileno()
    waiting = select.poll()
    waiting.register(handle, select.POLLIN | select.POLLHUP)
    parts: list[bytes] = []
    while size:
        left_ms = None if deadline is None else max(0, deadline - time.monotonic()) * 1000
        if not waiting.poll(left_ms):
            raise TimeoutError("no answer in time")
        part = os.read(handle, min(size, _PIECE))
        if not part:
            raise ConnectionAbortedError("the child process ended")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_message(stream: IO[bytes], *parts: bytes) -> None:
    """Write one message."""
    stream.write(_LENGTH.pack(sum(map(len, parts))))
    for part in parts:
        stream.write(part)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes | None:
    """The next message, as the child reads it; None where the input is over."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """In a child: where requests come in and answers go; what libraries print goes elsewhere."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers
