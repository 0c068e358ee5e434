"""How much of a server one client may take: bytes, and seconds in which nothing comes or goes.

Slow clients and huge bodies cost others nothing. One rule: whatever waits for a client ends.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from filestore.server.refusals import TooLargeError, TooSlowError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_JSON_BYTES: Final = 4 * 1024 * 1024
MOST_COLLECTION_BYTES: Final = 64 * 1024 * 1024
MOST_UPLOAD_BYTES: Final = 256 * 1024 * 1024
HEADERS_S: Final = 10.0
"""The headers of a request are there within."""
SILENCE_S: Final = 15.0
"""More of a body comes within, and what is sent is taken."""
WHOLE_BODY_S: Final = 600.0
"""All of it is there within."""
PASSED_OVER_S: Final = 2.0
MOST_PASSED_OVER_BYTES: Final = 64 * 1024 * 1024
"""So much of a body that is refused is read all the same."""
MOST_HEADER_BYTES: Final = 32 * 1024
MOST_CONNECTIONS: Final = 512


class Limits:
    """Ends requests that are too large, or that stand still."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(receive, scope)
        reply = _Reply(send, body.pass_over)
        try:
            await self._app(scope, body.receive, reply.send)
        except Exception:
            # A client that takes nothing: the connection ends without the rest.
            if not reply.is_late:
                raise


def _most(scope: "Scope") -> int:
    path = scope["path"]
    if path == "/rag/index":
        return MOST_COLLECTION_BYTES
    is_upload = path == "/add" and any(
        name.lower() == b"content-type" and value.lower().startswith(b"multipart/form-data")
        for name, value in scope["headers"]
    )
    return MOST_UPLOAD_BYTES if is_upload else MOST_JSON_BYTES


class _Body:
    """The body of one request, as it comes."""

    def __init__(self, receive: "Receive", scope: "Scope") -> None:
        self._receive = receive
        self._most = _most(scope)
        told = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
        self._seen = max((int(one) for one in told if one.isdigit() and len(one) < 16), default=0)
        """As many bytes as there are at least."""
        self._read = 0
        self._left_s = WHOLE_BODY_S
        self._is_whole = False

    async def receive(self) -> "Message":
        """The next of it; once it is whole, the end of the connection, whenever that comes.

        Raises:
            TooLargeError: It has too many bytes, or its client says so.
            TooSlowError: It does not come in time.
        """
        if self._is_whole:
            return await self._receive()
        self._require_room()
        began_s = time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), min(SILENCE_S, self._left_s))
        except TimeoutError:
            raise TooSlowError("the request did not come in time", remedy="send it again") from None
        self._left_s -= time.monotonic() - began_s
        self._seen = max(self._seen, self._count(message))
        self._require_room()
        self._is_whole = not message.get("more_body", False)
        return message

    async def pass_over(self) -> None:
        """Read on for a moment where the body is refused.

        A connection that is closed before its client has sent all that it is about to loses the
        answer on the way.
        """
        if self._seen <= self._most:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PASSED_OVER_S):
                while self._read < MOST_PASSED_OVER_BYTES:
                    message = await self._receive()
                    if not message.get("more_body", False):
                        return
                    self._count(message)

    def _count(self, message: "Message") -> int:
        self._read += len(message.get("body", b""))
        return self._read

    def _require_room(self) -> None:
        if self._seen > self._most:
            raise TooLargeError(
                f"a request has at most {self._most // 1024 // 1024} MB here",
                remedy="send less at once",
            )


class _Reply:
    """The answer to one request, as it goes."""

    def __init__(self, send: "Send", before: "Callable[[], Awaitable[None]]") -> None:
        """Take what is awaited before anything is sent."""
        self._send = send
        self._before = before
        self._is_begun = self.is_late = False

    async def send(self, message: "Message") -> None:
        """Send the next of it, to a client that takes it."""
        if not self._is_begun:
            self._is_begun = True
            await self._before()
        try:
            await asyncio.wait_for(self._send(message), SILENCE_S)
        except TimeoutError:
            self.is_late = True
            raise


class ClosesSilent(H11Protocol):
    """Closes a connection whose next request does not come in time, however little comes of it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._silent: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait while headers are expected, and not once they are there."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()

    def _wait(self) -> None:
        if self._silent is None:
            self._silent = self.loop.call_later(HEADERS_S, self._close)

    def _stop_waiting(self) -> None:
        if self._silent is not None:
            self._silent.cancel()
            self._silent = None

    def _close(self) -> None:
        self._silent = None
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and self.conn.their_state is h11.IDLE and self.transport is not None:
            self.transport.close()
