"""A proxy on loopback that lets some bytes through and then cuts, or keeps silent."""

import contextlib
import socket
import threading
from typing import Self


class CuttingProxy:
    """In front of a port, for one connection after another."""

    def __init__(self, port: int, *, most: int | None = None, silent: bool = False) -> None:
        """Listen.

        Args:
            port: Where the bytes go.
            most: So many pass, in both directions together; None for all.
            silent: Pass nothing more and leave the connection open, rather than cut it.
        """
        self._target = port
        self._most = most
        self._silent = silent
        self._lock = threading.Lock()
        self._opened: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.passed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._opened += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                with self._lock:
                    left = len(data) if self._most is None else self._most - self.passed
                    self.passed += len(data[: max(0, left)])
                    target.sendall(data[: max(0, left)])
                if left < len(data):
                    if not self._silent:
                        self._cut()
                    return
            target.shutdown(socket.SHUT_WR)

    def _cut(self) -> None:
        for one in self._opened:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
