"""The end of whoever types: a terminal that is closed, a server that is gone.

Textual goes on reading what will never come, as fast as it can. One rule: nobody outlives their
terminal.
"""

import select
import sys
from collections.abc import Callable
from threading import Thread


def when_hung_up(leave: Callable[[], None]) -> None:
    """Have something done once nobody can type any more, however that came about.

    Args:
        leave: Called in a thread of its own.
    """
    keys = select.poll()
    keys.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)
    Thread(target=_wait, args=(keys, leave), name="hangup", daemon=True).start()


def _wait(keys: "select.poll", leave: Callable[[], None]) -> None:
    keys.poll()
    leave()
