"""The messages between the screen and its child processes, pickled.

Only our own processes are at the ends of the line. One rule: an error of the store arrives as what
it was, whatever its constructor takes.
"""

import importlib
import io
import pickle
import traceback
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from filestore import FilestoreError, Finding, Progress
from tui.workers.faults import UnexpectedError, trace_of
from tui.workers.tasks import Job

_PROTOCOL: Final = 5
_REPORT: Final = "please report it with the full error (key E)"


class Begin(Struct, frozen=True, kw_only=True):
    """To the child: do this."""

    number: int
    """Counts the jobs of a child, so that a stop finds the one that it is meant for."""
    job: Job


class Interrupt(Struct, frozen=True, kw_only=True):
    """To the child: stop that."""

    number: int


class Update(Struct, frozen=True, kw_only=True):
    """From the child: how far it is, and what it found since its last message."""

    progress: Progress | None = None
    findings: tuple[Finding, ...] = ()


class Done(Struct, frozen=True, kw_only=True):
    """From the child: it is done."""

    value: Any


class Failed(Struct, frozen=True, kw_only=True):
    """From the child: it went wrong."""

    error: FilestoreError


class Stopped(Struct, frozen=True, kw_only=True):
    """From the child: it was stopped."""


End = Done | Failed | Stopped
Message = Update | End


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Errors are rebuilt from their fields: pickle would call their constructors."""
        if not isinstance(value, FilestoreError):
            return NotImplemented
        kind = type(value)
        fields = {name: field for name, field in vars(value).items() if name != "__notes__"}
        return _rebuilt, (kind.__module__, kind.__qualname__, value.args, fields)


def _rebuilt(module: str, name: str, args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    kind: Any = importlib.import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


def pack(value: Any) -> bytes:
    """A value as bytes for another process of ours."""
    packed = io.BytesIO()
    _Pickler(packed, _PROTOCOL).dump(value)
    return packed.getvalue()


def unpack(packed: bytes) -> Any:
    """The inverse of `pack`."""
    return pickle.loads(packed)


def as_error(error: Exception) -> FilestoreError:
    """Any error as a `FilestoreError`."""
    if isinstance(error, FilestoreError):
        return error
    message = f"unexpected: {type(error).__name__}: {error}"
    remedy = f"'filestore verify' shows whether the store is damaged; else {_REPORT}"
    detail = "".join(traceback.format_exception(error))
    if isinstance(error, OSError | MemoryError):
        # The machine's fault, not ours.
        return FilestoreError(message, remedy=remedy, detail=detail)
    return UnexpectedError(message, trace=trace_of(error), remedy=remedy, detail=detail)


def attempt(question: Callable[[], Any]) -> Done | Failed:
    """The answer to a question, or what went wrong."""
    try:
        return Done(value=question())
    except Exception as error:  # the top of a worker: whatever it is, it is reported
        return Failed(error=as_error(error))
