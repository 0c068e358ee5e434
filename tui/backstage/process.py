"""A child process of the screen: a module of ours, started afresh, spoken to over a socket.

It is in a session of its own, so that neither Ctrl-C nor a prompt for a password reaches the
terminal that the screen is drawn on; it ends when its end of the line does. Knows no jobs.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tui.backstage.crossing import pack, unpack

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_TAIL_BYTES: Final = 4_000


class ChildProcess:
    """One running child.

    Raises from `send` and `receive`:
        OSError: The child is gone.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        """Start ``python -m module arguments… handle``."""
        # Takes a while to load, and a session without long work needs none of it.
        from multiprocessing.connection import Connection

        ours, theirs = socket.socketpair()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._complaints,
                stderr=self._complaints,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            self._complaints.close()
            raise
        finally:
            theirs.close()
        self.line: Connection[Any, Any] = Connection(ours.detach())
        """Becomes readable when the child says something, or ends."""

    @property
    def pid(self) -> int:
        """Of the process, and of the group of those that it starts."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs, whoever else may still hold its end of the line."""
        return self._process.poll() is None

    def send(self, message: Any) -> None:
        """Say something to it."""
        self.line.send_bytes(pack(message))

    def receive(self) -> Any:
        """The next thing that it says."""
        try:
            return unpack(self.line.recv_bytes())
        except EOFError as error:
            raise ConnectionAbortedError("the child process ended") from error

    def end(self, *, within_s: float) -> int:
        """Let it end: its line is closed; one that takes longer is killed.

        Returns:
            Its exit status, negative for a signal it died of.
        """
        with contextlib.suppress(OSError):
            self.line.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return self.kill()

    def terminate(self) -> None:
        """Ask it, less politely, to end."""
        self._process.terminate()

    def kill(self) -> int:
        """End it at once, with what it started; see `end`."""
        with contextlib.suppress(OSError):
            self.line.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        status = self._process.wait()
        self._complaints.close()
        return status

    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        size = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, size - _TAIL_BYTES))
        return self._complaints.read().decode("utf-8", "replace").strip()


def own_line(arguments: Sequence[str]) -> "Connection[Any, Any]":
    """In a child: its end of the line, from its arguments."""
    from multiprocessing.connection import Connection

    handle = int(arguments[-1])
    os.set_inheritable(handle, False)
    return Connection(handle)
