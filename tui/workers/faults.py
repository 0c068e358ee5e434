"""What ends the inspector: faults of its own, and from outside a closed terminal and signals.

Textual goes on reading what will never come, and leaves the terminal as it is when a signal ends
it. One rule: the inspector never outlives its terminal, and never leaves it unusable; and a trace
shows no value of a variable and no message of an error, which may quote a file.
"""

import errno
import faulthandler
import os
import re
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from threading import Thread
from typing import Any, Final

from filestore import FilestoreError
from filestore.browse import safe_text

_MOST_FRAMES: Final = 60
_MOST_ERRORS: Final = 20
"""Of errors that led to one another."""
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
    """A session in which something unexpected happened.

    Args:
        trace: Of the first of it: what follows may have come of that.
    """

    def __init__(self, trace: str) -> None:
        kind = trace.rpartition("  error: ")[2].strip().partition("\n")[0]
        super().__init__(
            f"the inspector failed: {kind}",
            remedy="open it again; the store is not harmed. The lines above quote nothing of"
            " it: report them",
        )
        self.trace = safe_text(trace.strip("\n")) + "\n"


def trace_of(error: BaseException) -> str:
    """Where an error and its causes happened, and of what kinds they are."""
    found: list[str] = []
    waiting, seen = [error], set[int]()
    while waiting and len(found) < _MOST_ERRORS:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        kind = type(one)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        if isinstance(one, OSError) and one.errno is not None:
            name += f" {errno.errorcode.get(one.errno, one.errno)}"
        frames = traceback.format_tb(one.__traceback__, -_MOST_FRAMES)
        found.append("".join(frames) + f"  error: {name}\n")
        before = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        waiting += [before] if before is not None else []
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
    # The last one first.
    return "\nwhile that was handled:\n".join(reversed(found))


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


def when_uncaught(
    *, in_thread: Callable[[BaseException], None], in_destructor: Callable[[BaseException], None]
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


ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)
"""What ends the inspector; the keys of the last two are keys while it has the terminal."""
ENDED_WITHIN_S: Final = 2.0
"""How long it may take to end by itself."""


def when_ended(leave: Callable[[int], None], force: Callable[[int, bool], None]) -> None:
    """Call back, in a thread of its own, once the terminal is gone or a signal came.

    Args:
        leave: Called with a signal: the inspector is to end.
        force: Called with a signal, and whether the terminal is gone: the inspector has to end now.
            Called again where it returns.
    """
    keys = sys.__stdin__.fileno() if sys.__stdin__ else 0
    came, sent = os.pipe()
    os.set_blocking(sent, False)
    # Python's own handlers wait for the main thread, which may hang.
    signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
    for number in ENDING:
        signal.signal(number, _noted)
    waiting = select.poll()
    waiting.register(keys, 0)
    waiting.register(came, select.POLLIN)

    def wait() -> None:
        ended, until = 0, 0.0
        while True:
            left = max(0.0, until - time.monotonic()) * 1000 if ended else None
            ready = [file for file, _ in waiting.poll(left)]
            # Without an event of its own, the terminal is reported only once it is gone.
            if keys in ready:
                force(signal.SIGHUP, True)
            # Another program that has the terminal has the signals of its keys, too.
            numbers = os.read(came, 64) if came in ready else b""
            numbers = bytes(one for one in numbers if signal.getsignal(one) is _noted)
            if numbers and not ended:
                ended, until = numbers[0], time.monotonic() + ENDED_WITHIN_S
                leave(ended)
            elif ended and time.monotonic() >= until:
                until += ENDED_WITHIN_S
                force(ended, False)

    Thread(target=wait, name="hangup", daemon=True).start()


def _noted(*_: Any) -> None:
    """Do nothing here: the thread has the signal already."""
