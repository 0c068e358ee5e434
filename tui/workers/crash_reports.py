"""Crash reports: what is kept of a bug of the inspector, to be sent to its developers.

One rule: nothing of a store is in one. It names where in the code it happened and what kind of
error it was; the messages of errors may quote a file, and are left out.
"""

import contextlib
import errno
import faulthandler
import os
import platform
import re
import signal
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from filestore import FilestoreError, __version__

MOST_REPORTS: Final = 10
"""Kept in one folder; the oldest go first."""
_MOST_FRAMES: Final = 60
_MOST_ERRORS: Final = 20
"""Of those that led to one another."""
_PREFIX: Final = "filestore-crash-"
_SUFFIX: Final = ".txt"
_ABOUT: Final = "The inspector failed. Messages of errors are left out: they may quote a file."
_TRACE_LINE: Final = re.compile(
    r'  File "|  error: |while that was handled:|Fatal Python error: |Current thread|Thread 0x'
)


class UnexpectedError(FilestoreError):
    """A fault of the inspector itself, as an error like others.

    Args:
        message: For a person; may quote a file.
        trace: Where it happened; see `trace_of`.
        remedy: The next thing to do.
        detail: The whole of it, for the person alone; may quote a file.
    """

    def __init__(self, message: str, *, trace: str, remedy: str = "", detail: str = "") -> None:
        super().__init__(message, remedy=remedy, detail=detail)
        self.trace = trace


class InspectorFailedError(FilestoreError):
    """An unexpected failure; the message names its report."""


def trace_of(error: BaseException) -> str:
    """Where an error and those that led to it happened, and of what kinds they are."""
    found = [
        "".join(traceback.format_tb(one.__traceback__, -_MOST_FRAMES)) + f"  error: {_kind(one)}\n"
        for one in _errors(error)
    ]
    return "\nwhile that was handled:\n".join(reversed(found[:_MOST_ERRORS]))


def _errors(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it came of, each once, the last one first."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        before = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        inner = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [*([before] if before is not None else []), *inner]


def _kind(error: BaseException) -> str:
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    if isinstance(error, OSError) and error.errno is not None:
        return f"{name} {errno.errorcode.get(error.errno, error.errno)}"
    return name


def trace_in(output: str) -> str:
    """The traceback in the last output of a process; "" for none."""
    lines = output.splitlines()
    return "\n".join(line for line in lines if _TRACE_LINE.match(line)).strip("\n")


def died(status: int, output: str) -> FilestoreError:
    """The unexpected end of a child process, as an error.

    Args:
        status: Its exit status, negative for a signal it died of.
        output: The end of what it wrote.
    """
    why = f"with status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"
    message = f"the worker process ended, {why}"
    remedy = "what was done until then stays, and the store is intact; try again"
    trace = trace_in(output)
    if trace:
        return UnexpectedError(message, trace=trace, remedy=remedy, detail=output)
    if status == -signal.SIGKILL:
        remedy = f"check whether memory ran out; {remedy}"
    return FilestoreError(message, remedy=remedy, detail=output)


class CrashReports:
    """The reports of one session. Its methods may be called in any thread."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Write nothing yet; the environment names the user's state folder."""
        self._environment = environment
        self._lock = threading.Lock()
        self._paths: dict[str, str] = {}
        self.failure: InspectorFailedError | None = None
        """Shown to the user at the end; None where nothing failed."""

    def keep(self, trace: str) -> str:
        """Write a report, once for each trace; returns its path, "" where none can be written."""
        with self._lock:
            if trace not in self._paths:
                state = self._environment.get("XDG_STATE_HOME")
                folder = os.path.join(state or os.path.expanduser("~/.local/state"), "filestore")
                path = _write(_report(trace), (folder, tempfile.gettempdir()))
                kind = trace.rpartition("  error: ")[2].strip().partition("\n")[0]
                where = f"the report is {path}" if path else "no report of it could be written"
                self._paths[trace] = path
                self.failure = InspectorFailedError(
                    f"the inspector failed: {kind}; {where}",
                    remedy="open it again; the store is not harmed. Please send the report: "
                    "it holds nothing of the store",
                )
            return self._paths[trace]

    def keep_error(self, error: BaseException) -> None:
        """Write a report of an uncaught error."""
        self.keep(trace_of(error))


def _report(trace: str) -> str:
    from textual import __version__ as textual_version

    versions = f"filestore {__version__}, textual {textual_version}, Python {sys.version}"
    terminal = " ".join(
        f"{name}={os.environ.get(name, '')!r}" for name in ("TERM", "TERM_PROGRAM", "COLORTERM")
    )
    head = (_ABOUT, time.strftime("%Y-%m-%dT%H:%M:%S%z"), versions, platform.platform(), terminal)
    return "\n".join((*head, "", trace))


def _write(report: str, folders: tuple[str, ...]) -> str:
    """Write into the first folder that takes it, for the user's eyes alone."""
    for folder in folders:
        with contextlib.suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            path = _written(report, folder)
            with contextlib.suppress(OSError):
                _drop_oldest(folder)
            return path
    return ""


def _written(report: str, folder: str) -> str:
    seconds, ns = divmod(time.time_ns(), 1_000_000_000)
    at = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    prefix = f"{_PREFIX}{at}.{ns:09}-"
    handle, path = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=_SUFFIX)
    try:
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report + "\n")
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    return path


def _drop_oldest(folder: str) -> None:
    """Leave the newest reports of this user; their names sort by time."""
    own = [
        entry.path
        for entry in os.scandir(folder)
        if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX) and _is_own(entry)
    ]
    for path in sorted(own)[:-MOST_REPORTS]:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _is_own(entry: "os.DirEntry[str]") -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()


def when_uncaught(
    *,
    in_thread: Callable[[BaseException], None],
    in_destructor: Callable[[BaseException], None],
) -> None:
    """Have this process hand over what ends a thread, and what is lost in a destructor.

    Python would print it as it is, with what it quotes, in the midst of the screen.
    """
    threading.excepthook = lambda lost: in_thread(lost.exc_value) if lost.exc_value else None
    sys.unraisablehook = lambda lost: in_destructor(lost.exc_value) if lost.exc_value else None


def report_uncaught() -> None:
    """In a child process: print uncaught errors as `trace_in` reads them, then exit."""
    # Python's fault handler reports crashes of native libraries.
    faulthandler.enable()
    when_uncaught(in_thread=_print_and_exit, in_destructor=_print)
    sys.excepthook = lambda _kind, error, _trace: _print(error)


def _print(error: BaseException) -> None:
    print(trace_of(error), end="", file=sys.stderr, flush=True)


def _print_and_exit(error: BaseException) -> None:
    _print(error)
    os._exit(1)
