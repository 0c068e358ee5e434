"""A service on loopback that takes requests and never gives the answer that was asked for.

with MisbehavingServer(cut) as server:
    ask(server.url)
assert server.heard  # every byte that came in
"""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Self

Behaviour = Callable[[socket.socket, threading.Event], None]
"""Answers one connection; the event is set when the test is over."""


class MisbehavingServer:
    """Answers every connection in one way."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.heard = bytearray()
        self._over = threading.Event()
        owner = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    owner.heard.extend(_request(self.request))
                    behaviour(self.request, owner._over)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _request(connection: socket.socket) -> bytes:
    """The head of a request, and as much of its body as came along."""
    heard = b""
    while b"\r\n\r\n" not in heard and (block := connection.recv(65_536)):
        heard += block
    return heard


def answer(status: int, body: str = "", *, headers: str = "") -> Behaviour:
    """A whole answer, and the end of the connection."""
    data = body.encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n{headers}Connection: close\r\n"

    def behave(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(head.encode() + b"\r\n" + data)

    return behave


def cut(connection: socket.socket, _: threading.Event) -> None:
    """The start of an answer, then the end of the connection."""
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"result": ')


def hang_up(connection: socket.socket, _: threading.Event) -> None:
    """No answer, and the end of the connection."""


def hang(connection: socket.socket, over: threading.Event) -> None:
    """No answer, and no end."""
    over.wait()


def drip(connection: socket.socket, over: threading.Event) -> None:
    """An answer that comes byte by byte, and never ends."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not over.wait(0.05):
        connection.sendall(b" ")


def drip_head(connection: socket.socket, over: threading.Event) -> None:
    """The same, before any answer begins."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while not over.wait(0.05):
        connection.sendall(b"x")


def noise(connection: socket.socket, _: threading.Event) -> None:
    """Something that is no HTTP."""
    connection.sendall(b"\x16\x03\x01 220 smtp ready \x1b[31m\r\n\r\n")
