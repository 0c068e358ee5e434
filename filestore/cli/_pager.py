"""Shows what is longer than a screen through a pager, on a terminal alone.

One rule: a pager that is missing, fails or is left early costs nothing. What it does not show is
printed, and the exit code of the command stays.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys

from filestore.core.colors import DUMB
from filestore.server import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` takes longer to load than the help that is shown.
    from collections.abc import Iterator, Sequence
    from typing import Final

_LESS: Final = "FRX"
"""Options of less: it ends by itself on one screen, shows colours, and leaves what it showed."""
_OFF: Final = frozenset(("--no-pager", "--no-input"))


def is_wanted(words: Sequence[str]) -> bool:
    """Whether the words of a command line leave a pager its place."""
    return _OFF.isdisjoint(words[: words.index("--")] if "--" in words else words)


def show(text: str, *, wanted: bool = True) -> None:
    """Write a text to standard output, through a pager where that is wanted and it is long."""
    sys.stdout.flush()
    if not (wanted and _is_long(text) and _is_shown(text)):
        sys.stdout.write(text)


@contextlib.contextmanager
def collected(*, wanted: bool) -> Iterator[None]:
    """Until the block ends keep what is written to standard output, to be shown as a whole.

    Args:
        wanted: Whether; else it is written at once, as it is where standard output is no terminal.
    """
    own = sys.stdout
    if not (wanted and own.isatty()):
        yield
        return
    kept = _Kept(own.encoding)
    sys.stdout = kept
    try:
        yield
    except BaseException:
        own.write(kept.getvalue())
        raise
    else:
        sys.stdout = own
        show(kept.getvalue())
    finally:
        sys.stdout = own


class _Kept(io.StringIO):
    """A terminal, to what asks whether it is one."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1


def _is_long(text: str) -> bool:
    """Whether standard output is a terminal on which a text takes more than the screen."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "") in DUMB:
        return False
    try:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines
    except (OSError, ValueError):
        return False
    columns = wire.columns()
    needed = 0
    for line in text.split("\n"):
        needed += 1 + max(0, len(line) - 1) // columns
        if needed > rows > 0:
            return True
    return False


def _is_shown(text: str) -> bool:
    """Show a text through the pager; whether there is one, and it did."""
    import shlex

    from filestore.cli._terminal import preferred
    from filestore.core.errors import FilestoreError
    from filestore.fs.programs import run_program

    try:
        command = shlex.split(preferred("pager"))
        if not command or command == ["cat"]:
            return False
        data = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        variables = {} if "LESS" in os.environ else {"LESS": _LESS}
        return run_program(command, input=data, variables=variables).returncode <= 0
    except (OSError, ValueError, FilestoreError):
        return False
