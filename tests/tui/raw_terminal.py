"""The inspector on a raw pty: typed at, resized, and every byte that it wrote kept."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
COLUMNS, ROWS = 150, 45
QUIET_S: Final = 0.08
SETTLED_S: Final = 0.3
ESCAPE_S: Final = 0.5
LONGEST_S: Final = 120.0
KNOWN: Final = re.compile(
    rb"\x1b\[\?(?:7|25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"  # what a mode is
    rb"|\x1b\[\?(?:2026|2048)\$p"  # and whether there is one
    rb"|\x1b\[>\d+u|\x1b\[<u"  # keys
    rb"|\x1b\[\d+;\d+H"  # places
    rb"|\x1b\[(?:\d+(?:;\d+)*)?m"  # colours
    rb"|\x1b\]22;[a-z-]*\x07"  # the shape of the mouse
    rb"|\x1b\]52;c;[A-Za-z0-9+/=]*\x07"  # what the person copied
)
"""Every sequence that Textual and the inspector themselves send."""


_DRAWN: Final = re.compile(rb"\x1b\[\d+;\d+H")


class Screen:
    """The inspector on a raw terminal, and all that it wrote there."""

    def __init__(
        self,
        folder: str,
        *options: str,
        home: Path,
        size: tuple[int, int] = (COLUMNS, ROWS),
        modules: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            folder: Where.
            options: Of the command.
            home: Where its state is kept.
            size: Columns and rows.
            modules: A folder in which Python looks for modules first.
            variables: More of its environment.
        """
        looked_in = [modules, CHECKOUT] if modules is not None else [CHECKOUT]
        kept = ("PATH", "HOME", "XDG_CONFIG_HOME")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "XDG_STATE_HOME": str(home / "state"),
            "EDITOR": "true",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(str, looked_in)),
            **(variables or {}),
        }
        self.output = bytearray()
        self.terminal, theirs = pty.openpty()
        self._set_size(*size)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "filestore", "tui", *options],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, and tell who runs on it."""
        self._set_size(columns, rows)
        # The system tells only those whose controlling terminal it is.
        self.process.send_signal(signal.SIGWINCH)

    def _set_size(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)

    def send(self, sent: bytes) -> None:
        """Have the terminal send bytes, whatever they are."""
        os.write(self.terminal, sent)

    def see(self, *, until: str = "", quiet_s: float = QUIET_S) -> str:
        """Read until some words came, and then until nothing comes any more; the words of it."""
        begin, deadline = len(self.output), time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            if select.select([self.terminal], [], [], quiet_s)[0]:
                try:
                    self.output += os.read(self.terminal, 1 << 16)
                except OSError:
                    break
            elif until in words_of(self.output[begin:]) or self.process.poll() is not None:
                break
        seen = words_of(self.output[begin:])
        assert until in seen, f"{until!r} never came:\n{seen[-9000:]}"
        return seen

    def press(self, *keys: str, until: str = "") -> str:
        """Press keys, one after the other; returns the words that came."""
        seen = ""
        for at, key in enumerate(keys):
            os.write(self.terminal, KEYS.get(key, key).encode())
            # Too soon after an escape, the next key would be one key with it.
            quiet_s = ESCAPE_S if key == "esc" else QUIET_S
            seen += self.see(until=until if at == len(keys) - 1 else "", quiet_s=quiet_s)
        return seen

    def calm(self) -> None:
        """Leave whatever is being typed, searched or read."""
        self.press("esc", "esc", "esc")

    def command(self, words: str, *, until: str = "") -> str:
        """Type a command line; what is typed before the line is there would be keys."""
        self.calm()
        self.press(":", until="a vector id")
        return self.press(words) + self.press("enter", until=until)

    def paste(self, text: bytes) -> str:
        """Have the terminal paste a text, as it was copied elsewhere."""
        os.write(self.terminal, b"\x1b[200~" + text + b"\x1b[201~")
        return self.see(quiet_s=SETTLED_S)

    def until_it_draws(self) -> None:
        """Read until a first place on the screen was drawn."""
        while not _DRAWN.search(self.output):
            assert select.select([self.terminal], [], [], LONGEST_S)[0], "nothing is drawn"
            self.output += os.read(self.terminal, 1 << 16)

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Read until something holds, or the inspector has ended."""
        deadline = time.monotonic() + LONGEST_S
        while not condition() and self.process.poll() is None:
            assert time.monotonic() < deadline, "it never came about"
            self.see(quiet_s=0.02)

    def ended(self) -> int:
        """Read until the inspector has ended, which it was told to; the exit code."""
        deadline = time.monotonic() + LONGEST_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "the inspector does not end"
            if select.select([self.terminal], [], [], QUIET_S)[0]:
                with contextlib.suppress(OSError):
                    self.output += os.read(self.terminal, 1 << 16)
        return self.process.returncode

    def end(self) -> int:
        """Quit; the exit code."""
        os.write(self.terminal, KEYS["^q"].encode())
        with contextlib.suppress(AssertionError):
            self.see(until="\x00never")
        return self.process.wait(timeout=LONGEST_S)


KEYS: Final = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "down": "\x1b[B",
    "page": "\x1b[6~",
    "end": "\x1b[F",
    "home": "\x1b[H",
    "space": " ",
    "^p": "\x10",
    "^q": "\x11",
    "f1": "\x1bOP",
}


def words_of(output: bytes | bytearray) -> str:
    """What was written, without the sequences that are known."""
    return KNOWN.sub(b"", bytes(output)).decode("utf-8", "surrogateescape")
