"""Answers commands of the command line, for as long as the server runs.

One rule: a command is answered whole or not at all. It runs by itself wherever it gets no answer,
so whatever is doubtful here ends with a closed connection.
"""

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import wait
from typing import TYPE_CHECKING, Final

from filestore.server.socket import wire
from filestore.server.socket.place import Place, is_own_user, taken
from filestore.server.socket.requests import BadRequestError, Reply, Request, received
from filestore.server.stores import BusyError

if TYPE_CHECKING:
    from filestore.server.stores import ServedStore
    from filestore.store import Store

RunWords = Callable[["Store", Request], Reply | None]
"""Runs a command on an open store; None for what only the command's own process can say."""

_MOST_CONNECTIONS: Final = 64
_REQUEST_S: Final = 2.0
_ANSWER_S: Final = 10.0
"""So long a command may take to read its answer."""
_BEAT_S: Final = 0.05
_LOOK_S: Final = 2.0
"""So often it is seen to that the sockets are still there, or have become free."""


class Listener:
    """A thread that takes connections, and one for each of them. A context manager."""

    def __init__(self, stores: "Iterable[ServedStore]", run_words: RunWords) -> None:
        """Begin to listen; see `listen`."""
        self._stores = list(stores)
        self._run_words = run_words
        self._surroundings = wire.surroundings()
        self._places: dict[int, tuple[Place, ServedStore]] = {}
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._open: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_closing = False
        self._woken, self._wake = os.pipe()
        self._look()
        self._thread = threading.Thread(target=self._accept, name="socket", daemon=True)
        self._thread.start()

    @property
    def sidecars(self) -> list[str]:
        """Where commands are answered."""
        return [os.path.dirname(place.path) for place, _ in self._places.values()]

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take no more commands, and leave those that wait to themselves."""
        with self._lock:
            if self._is_closing:
                return
            self._is_closing = True
        os.write(self._wake, b"!")
        self._thread.join()
        for place, _ in self._places.values():
            place.close()
        with self._lock:
            rest = dict(self._open)
        for connection, thread in rest.items():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()
        os.close(self._woken)
        os.close(self._wake)

    def _look(self) -> None:
        """Listen wherever nobody does: a sidecar may have been made anew, another server ended."""
        for descriptor, (place, _) in list(self._places.items()):
            if not place.is_there:
                del self._places[descriptor]
                place.close()
        listened = {id(served) for _, served in self._places.values()}
        for served in self._stores:
            if id(served) not in listened and (free := taken(served.places.sidecar)):
                self._places[free.listener.fileno()] = (free, served)

    def _accept(self) -> None:
        looked = time.monotonic()
        until_closed = select.poll()
        until_closed.register(self._woken, select.POLLIN)
        while not self._is_closing:
            if time.monotonic() - looked >= _LOOK_S:
                self._look()
                looked = time.monotonic()
            waiting = select.poll()
            for descriptor in (self._woken, *self._places):
                waiting.register(descriptor, select.POLLIN)
            ready = [one for one, _ in waiting.poll(_LOOK_S * 1000) if one in self._places]
            for descriptor in ready:
                place, served = self._places[descriptor]
                try:
                    self._begin(place.listener.accept()[0], served)
                except OSError:
                    # Where no file is left to open, that is tried again, but not all the time.
                    until_closed.poll(_BEAT_S * 1000)

    def _begin(self, connection: socket.socket, served: "ServedStore") -> None:
        if not self._free.acquire(blocking=False):
            connection.close()
            return
        thread = threading.Thread(
            target=self._serve, args=(connection, served), name="command", daemon=True
        )
        with self._lock:
            self._open[connection] = thread
        try:
            thread.start()
        except RuntimeError:
            # The system has no thread left for it.
            self._end(connection)

    def _serve(self, connection: socket.socket, served: "ServedStore") -> None:
        try:
            # Whoever went away, or says what no command says, gets nothing.
            with contextlib.suppress(OSError, BadRequestError, BusyError):
                if is_own_user(connection):
                    self._answer(connection, served)
        finally:
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        with self._lock:
            del self._open[connection]
        connection.close()
        self._free.release()

    def _answer(self, connection: socket.socket, served: "ServedStore") -> None:
        request = received(connection, within_s=_REQUEST_S)
        connection.settimeout(_ANSWER_S)
        if request.surroundings != self._surroundings:
            connection.sendall(wire.DECLINED)
            return
        future = served.submit(lambda store: self._run_words(store, request))
        try:
            while not wait([future], timeout=_BEAT_S).done:
                connection.sendall(wire.BEAT)
        except OSError:
            future.cancel()
            raise
        reply = None if future.cancelled() or future.exception() else future.result()
        connection.sendall(wire.DECLINED if reply is None else reply.framed())


def listen(stores: "Iterable[ServedStore]", run_words: RunWords) -> Listener:
    """Answer the commands of this user on some stores, until it is closed.

    Where another server answers for a store, or no socket can be, that store is left out, and
    taken once it is free.

    Args:
        stores: Those that are served.
        run_words: Runs a command, in any thread.
    """
    return Listener(stores, run_words)
