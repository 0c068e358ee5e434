"""A store for callers in any thread: a few threads of its own hold it open, each its own.

A store belongs to the thread that opened it, and frameworks and servers call from whichever thread
is free. One rule: a store is opened, asked and closed in one thread. They share one model, which
one of them asks at a time, and open the store again once its settings or its index are others.
"""

import os
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct, field

from filestore.config import settings, user_config
from filestore.core.caller import leads
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.fs.disk import Closing
from filestore.fulltext import STAMP_NAME
from filestore.store import Store
from filestore.store.look import TreeLook

if TYPE_CHECKING:
    from filestore.fs.watched_tree import WatchedTree

T = TypeVar("T")
Open = Callable[[], Store]
Stamp = tuple[tuple[int, ...] | None, ...]
_ALLOWED: Final = 2


class BusyError(FilestoreError):
    """Too much waits already; the same may be asked again."""


class ReadOnlyError(RefusedError):
    """The store is served to be read."""


class _SharedWork(Struct):
    """What the threads share with callers, and not with their owner."""

    pid: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    jobs: "queue.SimpleQueue[tuple[Future[Any], Callable[[Store], Any]] | None]" = field(
        default_factory=queue.SimpleQueue
    )
    threads: list[threading.Thread] = field(default_factory=list)
    undone: int = 0
    """How many jobs wait or are being done."""
    first: Store | None = None
    """The one whose model all of them ask."""
    look: TreeLook = field(default_factory=TreeLook)
    """The look at the files that all of them share."""
    watched: "WatchedTree | None" = None
    """The walk of the tree that all of them ask."""
    allowed: tuple[int, ...] | None = None
    """The stats of the user's file of what a model may reach, as it was then."""


class StoreThreads(Closing):
    """One store, asked from any thread. A context manager.

    As many threads as are needed at once are started, at most `most`. They end with `close`, with
    this object, or with the program, and close their stores then.
    """

    MOST: Final = 4
    """Calls that are answered at once; each holds the index in memory."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        configuration: str | os.PathLike[str] | None = None,
        most: int = MOST,
        watched: "WatchedTree | None" = None,
        for_programs: bool = False,
    ) -> None:
        """Open the store that a folder is, holds or lies in.

        Args:
            path: The folder.
            configuration: The folder of the user's settings; None for the usual one.
            most: Calls that are answered at once.
            watched: See `Store.watch_tree`.
            for_programs: See `Store`.

        Raises:
            NoStoreError: There is none.
        """
        # Once: a link that is changed later leads no thread to another store.
        place = leads(os.fsdecode(path))
        self._open: Open = partial(
            Store.open, place, configuration=configuration, for_programs=for_programs
        )
        self._most = most
        self._watched = watched
        self._is_closed = False
        self._begin()
        self.root: str = self.call(lambda store: store.root)
        """The folder with `filestore.toml`."""

    def _begin(self) -> None:
        self._work = _SharedWork(watched=self._watched)
        # Also when the program ends: a thread that is cut off in the middle may crash it.
        self._end = weakref.finalize(self, _stop, self._work)

    def call(self, job: Callable[[Store], T]) -> T:
        """What a function makes of the store, in a thread that has it open.

        Raises:
            UsageError: It was closed.
        """
        return self.submit(job).result()

    def submit(self, job: Callable[[Store], T]) -> "Future[T]":
        """The same, to be waited for; a job that is cancelled before it begins is not done.

        Raises:
            UsageError: It was closed.
        """
        if self._is_closed:
            raise UsageError(f"the store in {self.root} was closed: open it again")
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
        return future

    @property
    def waiting(self) -> int:
        """How many jobs wait or are being done."""
        return self._work.undone

    def close(self) -> None:
        """Wait for what is being done, and close every store."""
        self._is_closed = True
        self._end()


def _serve(opened: Open, work: _SharedWork) -> None:
    """Do jobs with a store until there are no more."""
    held = _ThreadStore(opened, work)
    try:
        while (given := work.jobs.get()) is not None:
            future, job = given
            result, failure = None, None
            try:
                if future.set_running_or_notify_cancel():
                    result = job(held.store())
            except BaseException as error:  # the caller's, whatever it is
                failure = error
            with work.lock:
                work.undone -= 1
            if failure is not None:
                future.set_exception(failure)
            elif not future.cancelled():
                future.set_result(result)
            # What it was given lives no longer than the caller has it.
            del given, future, job, result, failure
    finally:
        held.close()


class _ThreadStore:
    """The store of one thread, open."""

    def __init__(self, opened: Open, work: _SharedWork) -> None:
        self._opened = opened
        self._work = work
        self._store: Store | None = None
        self._stamp: Stamp = ()

    def store(self) -> Store:
        """The store as it is now, opened again where it is another one."""
        if self._store is not None and (
            _stamp(self._store) != self._stamp or self._store.is_model_outdated
        ):
            self.close()
        if self._store is None:
            self._store = store = self._open()
            work = self._work
            with work.lock:
                allowed = self._stamp[_ALLOWED]
                first = work.first if work.allowed == allowed else None
                if first is None or not store.share_model(first):
                    store.model.take_turns()
                    # What is not here now may be for the next one.
                    work.first = store if store.model.problem is None else None
                    work.allowed = allowed
            store.share_look(work.look)
            if work.watched is not None:
                store.watch_tree(work.watched)
        return self._store

    def _open(self) -> Store:
        """Open what the stamp tells: one that is younger would hide what changed before it."""
        store = self._opened()
        while (now := _stamp(store)) != self._stamp:
            self._stamp = now
            store.close()
            store = self._opened()
        return store

    def close(self) -> None:
        """Let go of every file."""
        if self._store is not None:
            self._store.close()
        self._store = None


def _stamp(store: Store) -> Stamp:
    """Tells whether another store, other settings or another index are where they were."""
    places = store.places
    return (
        _identity(store.root),
        _identity(places.settings, is_content=True),
        # What the user allows, and where models are.
        _identity(os.path.join(places.configuration, user_config.NAME), is_content=True),
        # Where the user has the sidecar.
        _identity(os.path.join(places.configuration, settings.USERS), is_content=True),
        _identity(places.sidecar),
        # With its content: a copy may be written over it, which SQLite does not notice.
        _identity(places.catalog, is_content=True),
        _identity(places.embeddings, is_content=True),
        # So may one over an index that was opened while it was ahead of its catalog.
        _identity(os.path.join(places.fulltext, STAMP_NAME), is_content=True),
    )


def _identity(path: str, *, is_content: bool = False) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    # Who writes a file may set one time of it, not the other.
    content = (status.st_size, status.st_mtime_ns, status.st_ctime_ns) if is_content else ()
    return status.st_dev, status.st_ino, *content


def _stop(work: _SharedWork) -> None:
    for _ in work.threads:
        work.jobs.put(None)
    for thread in work.threads:
        if thread is not threading.current_thread():
            thread.join()
