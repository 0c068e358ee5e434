"""The socket in a sidecar, and the commands of this user that a server answers there.

At most one server has the socket, and it is this user's alone. One rule: what lies in a
folder that others can write to is believed only after its owner was asked for; the system says who
is at the other end. Another: a command is answered whole or not at all; it runs by itself wherever
it gets no answer, so whatever is doubtful here ends with a closed connection.
"""

import contextlib
import fcntl
import os
import select
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.core.caller import Caller
from filestore.core.errors import FilestoreError
from filestore.fs.disk import Closing
from filestore.server import wire

if TYPE_CHECKING:
    from filestore.server.stores import ServedStore
    from filestore.store import Store

_BACKLOG: Final = 64
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of a peer."""
_MOST_CONNECTIONS: Final = 64
_REQUEST_S: Final = 2.0
_ANSWER_S: Final = 10.0
"""So long a command may take to read its answer."""
_BEAT_S: Final = 0.05
_LOOK_S: Final = 2.0
"""So often it is seen to that the sockets are still there, or have become free."""


class OwnedSocket(Struct, frozen=True, kw_only=True):
    """Where one store's commands ask."""

    listener: socket.socket
    folder: int
    """The sidecar, open and locked for as long as this server has the socket."""
    path: str
    identity: tuple[int, int]
    """Of the socket file."""

    @property
    def is_there(self) -> bool:
        """Whether commands still find it."""
        try:
            seen = os.lstat(self.path)
        except OSError:
            return False
        return (seen.st_dev, seen.st_ino) == self.identity

    def close(self) -> None:
        """Leave it to the next server."""
        self.listener.close()
        with contextlib.suppress(OSError):
            seen = os.stat(wire.NAME, dir_fd=self.folder, follow_symlinks=False)
            if (seen.st_dev, seen.st_ino) == self.identity:
                os.unlink(wire.NAME, dir_fd=self.folder)
        os.close(self.folder)


def own_socket(sidecar: str) -> OwnedSocket | None:
    """Listen in a sidecar; None where another server does, or where no socket can be."""
    if not sys.platform.startswith("linux"):
        # No way is known there to bind below an open folder, which long paths need.
        return None
    try:
        folder = os.open(sidecar, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        seen = os.fstat(folder)
        if seen.st_uid != os.geteuid() or seen.st_mode & stat.S_IWOTH:
            raise PermissionError(f"{sidecar} is not this user's alone")
        # Held by the process: a server that dies leaves the socket to the next one.
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _bound(folder, os.path.join(sidecar, wire.NAME))
    except OSError:
        os.close(folder)
        return None


def is_served(sidecar: str) -> bool:
    """Whether a server listens to the commands of a store."""
    try:
        folder = os.open(sidecar, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(wire.SILENT_S)
            connection.connect(f"/proc/self/fd/{folder}/{wire.NAME}")
            return True
    except OSError:
        return False
    finally:
        os.close(folder)


def _bound(folder: int, path: str) -> OwnedSocket:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(wire.NAME, dir_fd=folder)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux makes the file with the mode of the socket: there is no moment with another one.
        os.fchmod(listener.fileno(), 0o600)
        # A path of any length: the system takes 107 bytes.
        listener.bind(f"/proc/self/fd/{folder}/{wire.NAME}")
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        seen = os.stat(wire.NAME, dir_fd=folder, follow_symlinks=False)
    except OSError:
        listener.close()
        raise
    identity = seen.st_dev, seen.st_ino
    return OwnedSocket(listener=listener, folder=folder, path=path, identity=identity)


class BadRequestError(FilestoreError, ValueError):
    """What came is no request."""


class Request(Struct, frozen=True, kw_only=True):
    """What a command wants to have run."""

    surroundings: bytes
    caller: Caller
    words: tuple[str, ...]


class Reply(Struct, frozen=True, kw_only=True):
    """What a command wrote, in its order, and its exit code."""

    code: int
    parts: Sequence[tuple[bytes, bytes]]

    def framed(self) -> bytes:
        """As it is sent; "declined" where it is larger than a command would take."""
        data = wire.written(list(self.parts))
        if len(data) > wire.MOST_ANSWER_BYTES or not 0 <= self.code <= 0xFF:
            return wire.DECLINED
        length = len(data).to_bytes(wire.LENGTH_BYTES, "big")
        return wire.ANSWERED + bytes([self.code]) + length + data


def received(connection: socket.socket, *, within_s: float) -> Request:
    """Read one request.

    Raises:
        BadRequestError: It is none, or too large.
        OSError: It does not come in time, or the client went away.
    """
    until = time.monotonic() + within_s
    head = _exactly(connection, len(wire.MAGIC) + wire.LENGTH_BYTES, until)
    length = int.from_bytes(head[-wire.LENGTH_BYTES :], "big")
    if not head.startswith(wire.MAGIC) or length > wire.MOST_REQUEST_BYTES:
        raise BadRequestError("no request of this version")
    fields = _exactly(connection, length, until).split(b"\0")
    if len(fields) < 6:
        raise BadRequestError("a request has five fields and words")
    surroundings, folder, columns, store, colors, *words = fields
    if not folder.startswith(b"/") or not columns.isdigit() or len(columns) > 5:
        raise BadRequestError("no folder, or no number of columns")
    caller = Caller(
        folder=os.fsdecode(folder),
        columns=int(columns),
        store=os.fsdecode(store),
        colors=os.fsdecode(colors),
    )
    return Request(surroundings=surroundings, caller=caller, words=tuple(map(os.fsdecode, words)))


def _exactly(connection: socket.socket, size: int, until: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        connection.settimeout(max(0.001, until - time.monotonic()))
        # What was announced is not believed: memory grows with what comes.
        chunk = connection.recv(min(size - len(data), 65_536))
        if not chunk:
            raise ConnectionResetError("the connection ended within a request")
        if time.monotonic() > until:
            raise TimeoutError("the request did not come in time")
        data += chunk
    return bytes(data)


RunWords = Callable[["Store", Request], Reply | None]
"""Runs a command on an open store; None for what only the command's own process can say."""


class Listener(Closing):
    """Answers the commands of this user on some stores until it is closed. A context manager.

    A thread takes connections, and one answers each of them. Where another server answers for a
    store, or no socket can be, that store is left out, and own_socket once it is free.
    """

    def __init__(self, stores: "Iterable[ServedStore]", run_words: RunWords) -> None:
        """Begin to listen.

        Args:
            stores: The stores that are served.
            run_words: Runs a command, in any thread.
        """
        self._stores = list(stores)
        self._run_words = run_words
        self._surroundings = wire.surroundings()
        self._places: dict[int, tuple[OwnedSocket, ServedStore]] = {}
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

    def close(self) -> None:
        """Take no more commands; waiting ones run by themselves, and one that runs ends first."""
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
        """Listen where no server does: a sidecar may have been made anew, another server ended."""
        for descriptor, (place, _) in list(self._places.items()):
            if not place.is_there:
                del self._places[descriptor]
                place.close()
        listened = {id(served) for _, served in self._places.values()}
        for served in self._stores:
            if id(served) not in listened and (free := own_socket(served.places.sidecar)):
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
            # Who went away, sends no valid request, or asks a store that cannot open gets nothing.
            with contextlib.suppress(OSError, FilestoreError):
                data = connection.getsockopt(
                    socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
                )
                if _CREDENTIALS.unpack(data)[1] != os.geteuid():
                    return
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
                    if not future.cancel():
                        # It writes to streams of its own for as long as this listens.
                        wait([future])
                    raise
                reply = None if future.cancelled() or future.exception() else future.result()
                connection.sendall(wire.DECLINED if reply is None else reply.framed())
        finally:
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        with self._lock:
            del self._open[connection]
        connection.close()
        self._free.release()
