"""One collection that is asked: who asks it now, the threads that hold it open."""

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import brief
from filestore.fs import disk
from filestore.fs.lock import writer_lock
from filestore.server.rag import folder
from filestore.server.stores import BusyError
from filestore.store import Store
from filestore.store.threads import StoreThreads

T = TypeVar("T")
_WAIT_S: Final = 30.0
"""So long one who writes waits for another."""
_NO_ROOM: Final = disk.FULL_ERRORS | {errno.EFBIG}


@contextlib.contextmanager
def _where_it_can_be_held() -> Iterator[None]:
    """Go on without a lock that nobody can have, or whose holder finds no room to say his name.

    What is there is deleted: that mends the one, and makes room for the other.
    """
    try:
        yield
    except disk.NotAFileError:
        pass
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise


class UnknownCollectionError(FilestoreError, KeyError):
    """There is no collection of this name."""

    def __str__(self) -> str:
        return self.message


class NotIndexedError(FilestoreError):
    """What lies there is not yet a store."""


class ServedCollection:
    """One collection, asked from any thread; used by `Collections` alone."""

    def __init__(self, name: str, path: str, *, configuration: str, readers: int) -> None:
        self.name = name
        self.path = path
        self.users = 0
        """How many calls are about it; counted by whoever hands it out."""
        self.asked_at = 0.0
        self._configuration = configuration
        self._readers = readers
        self._gate = Gate()
        self._writer = threading.Lock()
        self._opening = threading.Lock()
        self._threads: StoreThreads | None = None

    @property
    def is_open(self) -> bool:
        """Whether threads hold it."""
        return self._threads is not None

    def call(self, job: Callable[[Store], T]) -> T:
        """What a function makes of the store, which is not exchanged before it has done so.

        Raises:
            UnknownCollectionError: There is none.
            NotIndexedError: It is in the old layout.
            BusyError: It was being exchanged for too long.
        """
        with self._gate.shared():
            self.asked_at = time.monotonic()
            self.require()
            with self._opening:
                if self._threads is None:
                    self._threads = StoreThreads(
                        self.path, configuration=self._configuration, most=self._readers
                    )
                threads = self._threads
            return threads.call(job)

    def require(self) -> None:
        """Refuse where there is no store.

        Raises:
            UnknownCollectionError: There is none.
            NotIndexedError: It is in the old layout.
        """
        kind = folder.kind_of(self.path)
        if kind == "":
            raise UnknownCollectionError(
                f"there is no collection {brief(self.name)}",
                remedy="GET /rag/list has those that there are; POST /rag/index makes one",
            )
        if kind == "faiss-json":
            raise NotIndexedError(
                f"{brief(self.name)} is a folder of FAISS + JSON, and not yet a store",
                remedy=f"POST /rag/{self.name}/index/reload makes it one; its files stay",
            )

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one of this process who writes.

        Raises:
            BusyError: Another one took too long.
        """
        if not self._writer.acquire(timeout=_WAIT_S):
            raise BusyError(
                f"{brief(self.name)} is being written", remedy="ask again once it has been"
            )
        try:
            yield
        finally:
            self._writer.release()

    @contextlib.contextmanager
    def exchanging(self) -> Iterator[None]:
        """Be alone with it while it is closed, and for other processes the one who writes it.

        Raises:
            BusyError: Somebody asked for too long.
            LockedError: Another process writes it.
        """
        with contextlib.ExitStack() as stack:
            sidecar = os.path.join(self.path, ".sidecar")
            if os.path.isdir(sidecar) and not os.path.islink(sidecar):
                with _where_it_can_be_held():
                    lock = os.path.join(sidecar, "lock")
                    stack.enter_context(writer_lock(lock, command="serve", wait_s=_WAIT_S))
            stack.enter_context(self._gate.alone())
            # Before the files have another name: SQLite finds those of a database by its path.
            self._close()
            yield

    def close(self) -> None:
        """Let go of its files; the next one who asks has them opened."""
        with self._gate.alone():
            self._close()

    def _close(self) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.close()


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
