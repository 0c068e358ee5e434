"""A program on a terminal of its own, typed at and timed: what a person has to wait for."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from typing import Final, Self

_ESCAPES: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|.)")
_MOVE: Final = re.compile(rb"\x1b\[(\d+);\d+H")
_KIB: Final = 1024


class Screen:
    """A program on a pty. Times are seconds of the monotonic clock."""

    def __init__(
        self, command: Sequence[str], *, columns: int = 120, rows: int = 40, **environment: str
    ) -> None:
        """Start the program."""
        self.shown = b""
        self.started_s = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            values = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execvpe(command[0], list(command), {**values, **environment})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def type(self, keys: bytes) -> float:
        """Press keys; returns when."""
        at = time.perf_counter()
        os.write(self._terminal, keys)
        return at

    def read(self, timeout_s: float) -> bytes:
        """What comes within a time, as soon as anything does."""
        ready, _, _ = select.select([self._terminal], [], [], timeout_s)
        if not ready:
            return b""
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:
            return b""
        self.shown = (self.shown + data)[-(1 << 20) :]
        return data

    def until(self, words: str, timeout_s: float = 30.0) -> float:
        """Read until words are on the screen; returns when they came.

        Raises:
            TimeoutError: They did not come.
        """
        seen = b""
        deadline = time.perf_counter() + timeout_s
        while time.perf_counter() < deadline:
            seen += self.read(deadline - time.perf_counter())
            if words.encode() in _ESCAPES.sub(b"", seen):
                return time.perf_counter()
        raise TimeoutError(f"{words!r} did not come; the end of what did: {self.plain()[-800:]}")

    def settled(self, quiet_s: float, timeout_s: float = 5.0) -> float:
        """Read until nothing is drawn below the head for a time; returns when the last of it came.

        The head is left out: it says how far the work is, and never rests while any is done.
        """
        now = last = time.perf_counter()
        deadline = now + timeout_s
        while now < min(last + quiet_s, deadline):
            data = self.read(min(last + quiet_s, deadline) - now)
            now = time.perf_counter()
            if _is_below_head(data):
                last = now
        return last

    def answer(self, keys: bytes, *, quiet_s: float = 0.25) -> tuple[float, float]:
        """Press a key; returns the seconds to the first byte of the answer, and to the last.

        Raises:
            TimeoutError: There was no answer.
        """
        at = self.type(keys)
        while not _is_below_head(self.read(1.0)):
            if time.perf_counter() > at + 5.0:
                raise TimeoutError(f"no answer to {keys!r}: {self.plain()[-800:]}")
        first = time.perf_counter()
        return first - at, self.settled(quiet_s) - at

    def plain(self) -> str:
        """What was shown, without what steers the terminal."""
        return _ESCAPES.sub(b"", self.shown).decode(errors="replace")

    def memory(self) -> tuple[int, int]:
        """Resident bytes of the program's own process, now and at most."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            values = dict(line.split(":", 1) for line in file if ":" in line)
        return tuple(int(values[key].split()[0]) * _KIB for key in ("VmRSS", "VmHWM"))  # type: ignore[return-value]

    def memory_of_all(self) -> tuple[int, int]:
        """Bytes of the program and all processes it started, shared pages in parts; how many."""
        waiting, total, count = [self.pid], 0, 0
        while waiting:
            pid = waiting.pop()
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    waiting += map(int, file.read().split())
            count += 1
        return total * _KIB, count

    def processor_s(self) -> float:
        """Processor time of the program's own process so far, all threads."""
        tasks = f"/proc/{self.pid}/task"
        total_ns = 0
        for name in os.listdir(tasks):
            with open(f"{tasks}/{name}/schedstat", encoding="ascii") as file:
                total_ns += int(file.read().split()[0])
        return total_ns / 1e9

    def end(self, keys: bytes = b"q", timeout_s: float = 10.0) -> int:
        """Have the program end; returns its exit code."""
        if self.pid == 0:
            return 0
        self.type(keys)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
        os.close(self._terminal)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)


def _is_below_head(data: bytes) -> bool:
    """Whether anything is drawn below the first line of the screen."""
    return any(int(row) > 1 for row in _MOVE.findall(data))


def empty_app() -> list[str]:
    """The command of a Textual app that shows one word and nothing else."""
    program = (
        "from textual.app import App\n"
        "from textual.widgets import Static\n"
        "class Empty(App):\n"
        "    def compose(self):\n"
        "        yield Static('EMPTYAPP')\n"
        "    def key_q(self):\n"
        "        self.exit()\n"
        "Empty().run()\n"
    )
    return [sys.executable, "-c", program]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share of all is at most, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def heartbeat(path: str) -> dict[str, float]:
    """What the program wrote of its own loop: lag in milliseconds."""
    with open(path, encoding="ascii") as file:
        found: dict[str, float] = json.loads(file.read())
    return found
