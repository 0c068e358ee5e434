"""Commands that a server runs for the command line: what they write is kept, and sent whole.

One rule: what fails is not answered. The command then runs in its own process, and says there what
is wrong.
"""

import contextlib
import io
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct, field

from filestore.cli import _context, _parser
from filestore.cli._served import ASKED
from filestore.core.caller import answering
from filestore.server.socket import wire
from filestore.server.socket.requests import Reply, Request

if TYPE_CHECKING:
    from filestore.store import Store

_OWN: Final = ("at", "embed", "rerank", "rewrite")
"""Options of what takes long, or loads another model: each command does that by itself."""


def run_words(store: "Store", request: Request) -> Reply | None:
    """Run a command on an open store; None for what its own process has to do."""
    kept = _Kept(is_terminal=request.caller.columns > 0)
    before = _KEPT.set(kept)
    try:
        with answering(request.caller), _context.served(store):
            run, options = _parser.parse(request.words)
            is_answered = run.__module__.rpartition(".")[2] in ASKED
            if not is_answered or any(getattr(options, name, None) for name in _OWN):
                return None
            code = run(options)
    except (Exception, SystemExit):
        return None
    finally:
        _KEPT.reset(before)
    return Reply(code=code, parts=kept.parts)


class _Kept(Struct, kw_only=True):
    """What one command wrote, in its order."""

    is_terminal: bool
    parts: list[tuple[bytes, bytes]] = field(default_factory=list)
    """As it was written: where both streams go to one place, that tells what comes first."""


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)


class _Written:
    """One stream of a command."""

    def __init__(self, kept: _Kept, kind: bytes) -> None:
        self._kept = kept
        self._kind = kind
        self.buffer = self

    def write(self, text: str | bytes) -> int:
        """Keep what is written."""
        if isinstance(text, str):
            self._kept.parts.append((self._kind, text.encode("utf-8", "surrogatepass")))
        else:
            self._kept.parts.append((wire.BYTES, bytes(text)))
        return len(text)

    def flush(self) -> None:
        """Have it flushed there, too: bytes are, also where there are none."""
        if self._kind == wire.TEXT:
            self.write(b"")

    def isatty(self) -> bool:
        """Whether the command writes to a terminal; errors are kept, so no bar moves there."""
        return self._kept.is_terminal and self._kind == wire.TEXT

    def fileno(self) -> int:
        """There is none."""
        raise io.UnsupportedOperation("a command that is answered has no file")


class _Stream:
    """Standard output or error: of the command that this thread runs, else of the process."""

    def __init__(self, own: Any, kind: bytes) -> None:
        self._own = own
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        kept = _KEPT.get()
        return getattr(self._own if kept is None else _Written(kept, self._kind), name)


@contextlib.contextmanager
def streams() -> Iterator[None]:
    """Until the block ends each command that a thread runs has streams of its own."""
    own = sys.stdout, sys.stderr
    sys.stdout = cast("Any", _Stream(own[0], wire.TEXT))
    sys.stderr = cast("Any", _Stream(own[1], wire.ERRORS))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = own
