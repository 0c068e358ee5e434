"""Telling that something changed, but not at every change."""

import threading
import time
from collections.abc import Callable


class Seldom:
    """Calls something once for all the times that it was wanted within a while."""

    def __init__(
        self,
        act: Callable[[], None],
        *,
        post: Callable[[Callable[[], None]], None],
        every_s: float,
    ) -> None:
        """Call nothing yet.

        Args:
            act: Called on the screen's thread.
            post: Has a function called there, from any thread.
            every_s: It is called once in so long, the last time after the last that it was wanted.
        """
        self._act = act
        self._post = post
        self._every_s = every_s
        self._last = -every_s
        self._is_wanted = False
        self._timer: threading.Timer | None = None
        self._ended = False

    def __call__(self) -> None:
        """Want it called; on the screen's thread."""
        if self._is_wanted or self._ended:
            return
        self._is_wanted = True
        left_s = self._last + self._every_s - time.monotonic()
        if left_s <= 0:
            self._post(self._due)
            return
        self._timer = threading.Timer(left_s, self._post, [self._due])
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Call nothing any more; no thread is left."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _due(self) -> None:
        self._is_wanted = False
        if not self._ended:
            self._last = time.monotonic()
            self._act()
