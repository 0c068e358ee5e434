"""Many who ask a collection, or one who exchanges it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

from filestore.server.stores import BusyError

_PATIENCE_S: Final = 60.0


class Gate:
    """Lets in many, or one alone; who wants to be alone is not passed by others who come later."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._alone = 0
        """How many are alone, or wait to be."""

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Be one of many.

        Raises:
            BusyError: Somebody was alone for too long.
        """
        with self._changed:
            self._wait(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one.

        Raises:
            BusyError: The others took too long.
        """
        with self._changed:
            self._alone += 1
            try:
                self._wait(lambda: self._inside == 0)
            except BaseException:
                self._alone -= 1
                self._changed.notify_all()
                raise
            self._inside = -1
        try:
            yield
        finally:
            with self._changed:
                self._inside = 0
                self._alone -= 1
                self._changed.notify_all()

    def _wait(self, is_free: Callable[[], bool]) -> None:
        if not self._changed.wait_for(is_free, _PATIENCE_S):
            raise BusyError("the collection is being exchanged or asked", remedy="ask again later")
