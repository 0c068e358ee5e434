"""A store for callers in any thread: a few threads of its own hold it open, each its own.

A store belongs to the thread that opened it, and frameworks call from whichever thread is free. One
rule: a store is opened, asked and closed in one thread.
"""

import os
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import filestore
from filestore import Store, UsageError

MOST_THREADS: Final = 4
"""So many calls are answered at once; each holds the index in memory."""

T = TypeVar("T")
Open = Callable[[], Store]


@dataclass(slots=True)
class _Work:
    """What the threads share with whoever gives them jobs, and not with its owner."""

    pid: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    jobs: "queue.SimpleQueue[tuple[Future[Any], Callable[[Store], Any]] | None]" = field(
        default_factory=queue.SimpleQueue
    )
    threads: list[threading.Thread] = field(default_factory=list)
    undone: int = 0
    """How many jobs wait or are being done."""


class StoreThreads:
    """One store, asked from any thread. A context manager.

    As many threads as are needed at once are started, at most `most`. They end with `close`, with
    this object, or with the program, and close their stores then.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        configuration: str | os.PathLike[str] | None = None,
        most: int = MOST_THREADS,
    ) -> None:
        """Open the store that a folder is, holds or lies in.

        Raises:
            NoStoreError: There is none.
        """
        place = os.path.abspath(os.fsdecode(path))

        def opened() -> Store:
            return filestore.open(place, configuration=configuration)

        self._open: Open = opened
        self._most = most
        self._is_closed = False
        self._begin()
        self.root: str = self.call(lambda store: store.root)
        """The folder with `filestore.toml`."""

    def _begin(self) -> None:
        self._work = _Work()
        # Also when the program ends: a thread that is cut off in the middle may crash it.
        self._end = weakref.finalize(self, _stop, self._work)

    def call(self, job: Callable[[Store], T]) -> T:
        """What a function makes of the store, in a thread that has it open.

        Raises:
            UsageError: It was closed.
        """
        if self._is_closed:
            raise UsageError(f"the store in {self.root} was closed", remedy="open it again")
        if self._work.pid != os.getpid():
            # The threads did not come along into a forked child.
            self._end.detach()
            self._begin()
        future: Future[T] = Future()
        work = self._work
        with work.lock:
            work.undone += 1
            if work.undone > len(work.threads) and len(work.threads) < self._most:
                thread = threading.Thread(
                    target=_serve, args=(self._open, work), name="filestore", daemon=True
                )
                work.threads.append(thread)
                thread.start()
        work.jobs.put((future, job))
        return future.result()

    def close(self) -> None:
        """Wait for what is being done, and close every store."""
        self._is_closed = True
        self._end()

    def __enter__(self) -> "StoreThreads":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(opened: Open, work: _Work) -> None:
    """Do jobs with a store until there are no more."""
    store: Store | None = None
    try:
        while (given := work.jobs.get()) is not None:
            future, job = given
            try:
                store = store or opened()
                result = job(store)
            except BaseException as error:  # the caller's, whatever it is
                with work.lock:
                    work.undone -= 1
                future.set_exception(error)
            else:
                with work.lock:
                    work.undone -= 1
                future.set_result(result)
            # What it was given lives no longer than the caller has it.
            del given, future, job
            result = None
    finally:
        if store is not None:
            store.close()


def _stop(work: _Work) -> None:
    for _ in work.threads:
        work.jobs.put(None)
    for thread in work.threads:
        if thread is not threading.current_thread():
            thread.join()
