"""Watching: what changes below the store outside of the inspector, told on the screen's thread."""

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from tui.backstage.notices import Blind, FilesChanged, Ready, StoreChanged, Watched
from tui.backstage.process import ChildProcess

MODULE: Final = "tui.backstage.watcher"
_CATALOG: Final = os.path.join(".sidecar", "catalog.sqlite")


def _nothing() -> None:
    """Take no notice."""


def _ignore(_: str) -> None:
    """Take no notice."""


class Watching:
    """A process that watches, and the thread that listens to it, until `end`."""

    def __init__(
        self,
        root: str,
        post: Callable[[Callable[[], None]], None],
        changed: Callable[[frozenset[str] | None], None],
        store_changed: Callable[[], None] = _nothing,
        *,
        catalog: str = "",
        ready: Callable[[], None] = _nothing,
        blind: Callable[[str], None] = _ignore,
    ) -> None:
        """Begin to watch. All callbacks are called on the screen's thread.

        Args:
            root: The store's.
            post: Has a function called on the screen's thread; waits for nothing.
            changed: Told the paths, relative to the root, of files and folders below `chunked/` and
                `source/`, and of the settings; None where too many changed to name them.
            store_changed: Called when the catalog has other content.
            catalog: Where it lies; in the root's own sidecar where that is not said.
            ready: Called once from when on nothing is missed; a large tree takes seconds.
            blind: Told why the system does not tell of changes, which then arrive late or not.
        """
        self._watched = Watched(
            root=os.path.abspath(root),
            catalog=os.path.abspath(catalog or os.path.join(root, _CATALOG)),
        )
        self._post = post
        self._changed = changed
        self._store_changed = store_changed
        self._ready = ready
        self._blind = blind
        self._lock = threading.Lock()
        self._ended = False
        self._child: ChildProcess | None = None
        self._thread = threading.Thread(target=self._listen, name="watching", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Watch no more; returns when neither the process nor the thread is left."""
        with self._lock:
            self._ended = True
            if self._child is not None:
                self._child.terminate()
        self._thread.join()

    def _listen(self) -> None:
        try:
            child = self._start()
            while child is not None:
                self._take(child.receive())
        except Exception as error:  # the top of a thread: whatever it is, it is told
            if not self._ended:
                self._take(Blind(reason=str(error)))
        finally:
            if self._child is not None:
                self._child.kill()

    def _start(self) -> ChildProcess | None:
        with self._lock:
            if self._ended:
                return None
            self._child = ChildProcess(MODULE)
        self._child.send(self._watched)
        return self._child

    def _take(self, notice: Any) -> None:
        """Tell what happened, unless nobody wants to know any more by then."""

        def tell() -> None:
            if self._ended:
                return
            if isinstance(notice, FilesChanged):
                self._changed(notice.paths)
            elif isinstance(notice, StoreChanged):
                self._store_changed()
            elif isinstance(notice, Ready):
                self._ready()
            elif isinstance(notice, Blind):
                self._blind(notice.reason)

        self._post(tell)
