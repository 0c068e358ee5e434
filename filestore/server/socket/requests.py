"""A command's request and what it is answered: values, and how they are read from a connection."""

import os
import socket
import time
from collections.abc import Sequence

from msgspec import Struct

from filestore.core.caller import Caller
from filestore.core.errors import FilestoreError
from filestore.server.socket import wire


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
        OSError: It does not come in time, or whoever asks went away.
    """
    until = time.monotonic() + within_s
    head = _exactly(connection, len(wire.MAGIC) + wire.LENGTH_BYTES, until)
    length = int.from_bytes(head[-wire.LENGTH_BYTES :], "big")
    if not head.startswith(wire.MAGIC) or length > wire.MOST_REQUEST_BYTES:
        raise BadRequestError("no request of this version")
    return _parsed(_exactly(connection, length, until))


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


def _parsed(data: bytes) -> Request:
    fields = data.split(b"\0")
    if len(fields) < 6:
        raise BadRequestError("a request has five fields and words")
    surroundings, folder, columns, store, no_color, *words = fields
    if not folder.startswith(b"/") or not columns.isdigit() or len(columns) > 5:
        raise BadRequestError("no folder, or no number of columns")
    caller = Caller(
        folder=os.fsdecode(folder),
        columns=int(columns),
        store=os.fsdecode(store),
        no_color=os.fsdecode(no_color),
    )
    return Request(surroundings=surroundings, caller=caller, words=tuple(map(os.fsdecode, words)))
