"""A command on a terminal of its own, and every byte that it writes there."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[1]


class Shown(Struct, frozen=True):
    """What came of it."""

    code: int
    text: str


def on_terminal(
    folder: Path,
    *words: str,
    size: tuple[int, int] = (24, 80),
    keys: Sequence[tuple[str, bytes]] = (),
    within_s: float = 120.0,
    program: Sequence[str] = (sys.executable, "-m", "filestore"),
    **variables: str,
) -> Shown:
    """Run a command with all three streams on a terminal.

    Args:
        folder: The working folder.
        words: Of the command line.
        size: Rows and columns.
        keys: What is typed as soon as a text has come, in this order.
        within_s: Seconds, after which it fails.
        program: What runs, with its path.
        variables: Of the environment, besides those of this process.
    """
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **variables}
    command = [*program, *words]
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.execve(command[0], command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    seen, typed, until = b"", 0, time.monotonic() + within_s
    while time.monotonic() < until:
        if typed < len(keys) and keys[typed][0].encode() in seen:
            os.write(terminal, keys[typed][1])
            typed += 1
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # nobody has the other end any more
            break
        if not part:
            break
        seen += part
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError(f"not ended within {within_s} s: {seen!r}")
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert typed == len(keys), seen
    return Shown(code, seen.decode("utf-8", "replace").replace("\r\n", "\n"))
