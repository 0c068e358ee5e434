"""A store made, kept open, and read: the reading thread, and the questions that wait for it.

One rule: urgent questions go first, and of a group only the newest is asked.
"""

import contextlib
import heapq
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from filestore import FilestoreError, Store, UsageError
from filestore.browse import InspectedStore, copy_example
from tui.workers.tasks import Done, Failed, attempt

_Identity = tuple[tuple[int, ...], ...]


class StoreCache:
    """Opens a store when it is first needed, and again once its files were replaced.

    An open store does not see a rebuilt catalog or edited settings.
    """

    def __init__(self, open_store: Callable[[], InspectedStore]) -> None:
        self._open_store = open_store
        self._store: InspectedStore | None = None
        self._seen: _Identity = ()

    def get(self) -> InspectedStore:
        """The store as it is now."""
        if self._store is not None and _identity(self._store) != self._seen:
            self.close()
        if self._store is None:
            store = self._open_store()
            self._store, self._seen = store, _identity(store)
        return self._store

    def close(self) -> None:
        """Close it, in the thread that opened it."""
        store, self._store = self._store, None
        if store is not None:
            # After a failure, an error of closing adds nothing.
            with contextlib.suppress(Exception):
                store.close()


def make_store(folder: str, *, configuration: str, example: bool) -> str:
    """Make an empty store, or a copy of the example, in a folder.

    Args:
        folder: Where the store's own folder is made.
        configuration: The user's configuration folder.
        example: Whether it is to be a copy of the example.

    Returns:
        The root of the store.

    Takes some tenths of a second: for a thread, never for the screen's own.

    Raises:
        FilestoreError: It cannot be made there; nothing is overwritten.
    """
    root = os.path.join(os.path.abspath(folder), "example_index" if example else "file_index")
    if example:
        copy_example(root)
    else:
        Store.create(root, layout="tree", configuration=configuration).close()
    return root


def _identity(store: InspectedStore) -> _Identity:
    """The identity of the catalog and of the settings, not their content."""
    found = []
    for path, fields in (
        (store.places.catalog, ("st_dev", "st_ino")),
        (store.places.settings, ("st_dev", "st_ino", "st_size", "st_mtime_ns")),
    ):
        try:
            status = os.stat(path)
        except OSError:
            found.append(())
        else:
            found.append(tuple(getattr(status, name) for name in fields))
    return tuple(found)


_ENDED_WITHIN_S: Final = 10.0
_KEEPS_STORE: Final = (KeyError, UsageError)
"""Nothing found, or a wrong question; the store is intact."""


class _Question(Struct, kw_only=True, eq=False):
    rank: tuple[bool, int]
    """Whether it can wait, and how many were asked before."""
    put: Callable[[InspectedStore], Any]
    then: Callable[[Any], None]
    failed: Callable[[FilestoreError], None]
    group: str

    def __lt__(self, other: "_Question") -> bool:
        return self.rank < other.rank


class StoreReader:
    """One thread with a store of its own. Its methods are called on the screen's thread."""

    def __init__(
        self,
        open_store: Callable[[], InspectedStore],
        *,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        """Start nothing yet.

        Args:
            open_store: Opens the store, in the thread.
            post: Calls a function on the screen's thread.
        """
        self._kept = StoreCache(open_store)
        self._post = post
        self._changed = threading.Condition()
        self._waiting: list[_Question] = []
        self._newest: dict[str, _Question] = {}
        self._asked = 0
        self._is_to_close = False
        self._ended = False
        self._thread: threading.Thread | None = None

    def ask(
        self,
        question: Callable[[InspectedStore], Any],
        then: Callable[[Any], None],
        *,
        failed: Callable[[FilestoreError], None],
        group: str,
        urgent: bool,
    ) -> None:
        """Ask a question; see `TaskManager.read`."""
        with self._changed:
            self._asked += 1
            asked = _Question(
                rank=(not urgent, self._asked),
                put=question,
                then=then,
                failed=failed,
                group=group,
            )
            if group:
                self._newest[group] = asked
            heapq.heappush(self._waiting, asked)
            self._changed.notify()
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._answer, name="reading", daemon=True)
            self._thread.start()

    def close_store(self) -> None:
        """Close the store; the next question opens it again."""
        with self._changed:
            self._is_to_close = True
            self._changed.notify()

    def end(self) -> None:
        """Close the store, once the question under way is answered."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._newest.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_ENDED_WITHIN_S)

    def _answer(self) -> None:
        try:
            while not self._ended:
                with self._changed:
                    while not (self._waiting or self._is_to_close or self._ended):
                        self._changed.wait()
                    is_to_close, self._is_to_close = self._is_to_close, False
                    question = heapq.heappop(self._waiting) if self._waiting else None
                if is_to_close:
                    self._kept.close()
                if question is not None and self._is_wanted(question):
                    self._put(question)
        finally:
            self._kept.close()

    def _is_wanted(self, question: _Question) -> bool:
        return not question.group or self._newest.get(question.group) is question

    def _put(self, question: _Question) -> None:
        answer = attempt(lambda: question.put(self._kept.get()))
        if isinstance(answer, Failed) and not isinstance(answer.error, _KEEPS_STORE):
            self._kept.close()

        def arrive() -> None:
            if self._ended or not self._is_wanted(question):
                return
            self._newest.pop(question.group, None)
            if isinstance(answer, Done):
                question.then(answer.value)
            else:
                question.failed(answer.error)

        self._post(arrive)
