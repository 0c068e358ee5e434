"""The protocol of child processes: a module of ours, started fresh, with a socket to its parent.

Started fresh and not forked: a child inherits no lock, no thread and no database, and ends when its
line does. A message is its length, eight bytes, and that many bytes; what the bytes mean is up to
both ends. One rule: only a child that reads nothing foreign may send pickles.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Final

from filestore.fs.programs import start_python

_LENGTH: Final = struct.Struct("<Q")
_PIECE: Final = 1 << 20
_TAIL_BYTES: Final = 4_000


class Line:
    """One end of the socket between a child and its parent.

    One thread may send while another receives.

    Raises from any method:
        OSError: The other end is gone.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        """The handle, readable once a message comes or the other end is gone."""
        return self._end.fileno()

    def send(self, *parts: bytes) -> None:
        """Send one message of several parts."""
        self._end.sendall(_LENGTH.pack(sum(map(len, parts))))
        for part in parts:
            self._end.sendall(part)

    def receive(self, timeout_s: float | None = None) -> bytes:
        """The next message.

        Raises:
            TimeoutError: It did not come in time; the line is of no use any more.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        return self._read(length, deadline)

    def _read(self, size: int, deadline: float | None) -> bytes:
        waiting = select.poll()
        waiting.register(self, select.POLLIN)
        parts: list[bytes] = []
        while size:
            left_ms = None if deadline is None else max(0, deadline - time.monotonic()) * 1000
            if not waiting.poll(left_ms):
                raise TimeoutError("no answer in time")
            part = self._end.recv(min(size, _PIECE))
            if not part:
                raise ConnectionAbortedError("the other process ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def __iter__(self) -> Iterator[bytes]:
        """Every message until the other end is gone."""
        with contextlib.suppress(ConnectionError):
            while True:
                yield self.receive()

    def close(self) -> None:
        """Close this end."""
        self._end.close()


class Child(Line):
    """A running child, and the parent's end of its line."""

    def __init__(self, module: str, *arguments: str, own_session: bool = False) -> None:
        """Start ``python -P -m module arguments… handle``.

        Args:
            module: Calls `parent_line` and answers until that ends.
            arguments: Its other arguments.
            own_session: Keeps Ctrl-C and password prompts away from the terminal, lets `kill` end
                what the child started as well, and keeps what it wrote for `last_output`; else
                what it writes is dropped.
        """
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        self._own_session = own_session
        self._output = tempfile.TemporaryFile() if own_session else None  # noqa: SIM115 - `kill`
        output = self._output or subprocess.DEVNULL
        try:
            self._process = start_python(
                module,
                *arguments,
                str(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
                start_new_session=own_session,
            )
        except BaseException:
            ours.close()
            if self._output is not None:
                self._output.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """Of the process; in a session of its own, of its process group as well."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs, whoever else may still hold its end of the line."""
        return self._process.poll() is None

    def wait(self, within_s: float | None = None) -> None:
        """Return once it ended by itself, or that took longer."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self._process.terminate()

    def close(self, within_s: float | None = None) -> None:
        """Close its line so that it ends; kill it if that takes longer."""
        super().close()
        self.wait(within_s)
        self.kill()

    def kill(self) -> int:
        """End it at once; returns its exit status, negative for a signal it died of."""
        super().close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._own_session:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._process.kill()
        status = self._process.wait()
        if self._output is not None:
            self._output.close()
        return status

    def last_output(self) -> str:
        """The end of what a child in a session of its own wrote to standard output and error."""
        if self._output is None:
            return ""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TAIL_BYTES))
        return self._output.read().decode("utf-8", "replace").strip()


def parent_line() -> Line:
    """In a child: its end of the line, the last of its arguments."""
    handle = int(sys.argv[-1])
    os.set_inheritable(handle, False)
    return Line(socket.socket(fileno=handle))
