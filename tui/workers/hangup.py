"""Hang-ups: a terminal that is closed.

Textual goes on reading what will never come, as fast as it can. One rule: the inspector
never outlives its terminal.
"""

import select
import sys
from collections.abc import Callable
from threading import Thread


def when_hung_up(leave: Callable[[], None]) -> None:
    """Call back once the terminal is gone, however that came about.

    Args:
        leave: Called in a thread of its own.
    """
    keys = select.poll()
    keys.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)

    def wait() -> None:
        """Poll for no event: only a hang-up ends that."""
        keys.poll()
        leave()

    Thread(target=wait, name="hangup", daemon=True).start()
