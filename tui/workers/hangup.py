"""What ends the inspector from outside: a closed terminal, and signals.

Textual goes on reading what will never come, and leaves the terminal as it is when a signal ends
it. One rule: the inspector never outlives its terminal, and never leaves it unusable.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import Any, Final

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
            # Without an event of its own, the terminal is told of only once it is gone.
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
