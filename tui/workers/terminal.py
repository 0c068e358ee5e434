"""Copying a text, through the terminal and by a program of the desktop.

Through the terminal it works over ssh, too; no terminal confirms it, so both ways are used where
both exist. Textual's `copy_to_clipboard` knows neither multiplexers nor limits. One rule: the user
sees which way was used.
"""

import base64
import contextlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from filestore.browse import find_program, run_program

_ESCAPE: Final = "\x1b"
MOST_BYTES: Final = 100_000
"""Of a text for the terminal; many take no more, and some show what they did not take."""
PATIENCE_S: Final = 1.0
_SCREEN_PART: Final = 700
"""GNU screen forwards no more than 768 bytes at once."""

Run = Callable[[Sequence[str], bytes], bool]


def sequences(text: str, environment: Mapping[str, str]) -> str:
    """What is written to a terminal so that it copies a text, "" for one that is too long.

    In a multiplexer the outer terminal gets it as well; see tmux(1), "allow-passthrough".
    """
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > MOST_BYTES:
        return ""
    plain = f"{_ESCAPE}]52;c;{base64.b64encode(data).decode('ascii')}\a"
    if environment.get("TMUX"):
        inner = plain.replace(_ESCAPE, 2 * _ESCAPE)
        return f"{plain}{_ESCAPE}Ptmux;{inner}{_ESCAPE}\\"
    if environment.get("STY"):
        return "".join(
            f"{_ESCAPE}P{plain[first : first + _SCREEN_PART]}{_ESCAPE}\\"
            for first in range(0, len(plain), _SCREEN_PART)
        )
    return plain


def programs(
    environment: Mapping[str, str], which: Callable[[str], str | None] = find_program
) -> Iterator[tuple[str, ...]]:
    """The commands that take a text from standard input here, best first."""
    known = (
        ("WAYLAND_DISPLAY", ("wl-copy",)),
        ("DISPLAY", ("xclip", "-selection", "clipboard")),
        ("DISPLAY", ("xsel", "--clipboard", "--input")),
        ("", ("pbcopy",)),
    )
    for variable, command in known:
        if (not variable or environment.get(variable)) and which(command[0]):
            yield command


def copy(
    text: str,
    *,
    write: Callable[[str], None] | None,
    environment: Mapping[str, str],
    which: Callable[[str], str | None] = find_program,
    run: Run | None = None,
) -> str:
    """Copy a text.

    Args:
        text: Anything.
        write: Writes to the terminal; None where there is none.
        environment: The variables that show what is available.
        which: Finds a program.
        run: Runs a command with an input; whether it succeeded.

    Returns:
        How it was copied; if it was not, what to do.
    """
    ways, run = [], run or _run
    data = text.encode("utf-8", "surrogateescape")
    program = next((one[0] for one in programs(environment, which) if run(one, data)), "")
    if program:
        ways.append(f"copied by {program}")
    sequence = sequences(text, environment)
    if write is not None and sequence:
        write(sequence)
        ways.append("sent to the terminal, which does not confirm it")
    if ways:
        return " and ".join(ways)
    size = f"too long for the terminal ({len(text):,} characters), and " if not sequence else ""
    return f"not copied: {size}neither wl-copy, xclip, xsel nor pbcopy works here; save it instead"


def _run(command: Sequence[str], data: bytes) -> bool:
    """Run a command; a program that stays to serve the text inherits no open file of ours."""
    with (
        tempfile.TemporaryFile() as given,
        contextlib.suppress(OSError, subprocess.SubprocessError),
    ):
        given.write(data)
        given.seek(0)
        done = run_program(
            command,
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )
        return done.returncode == 0
    return False
