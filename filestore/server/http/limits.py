"""Who may ask, and how much of a server one client may take; and what all of them took.

A page of another site can send requests to this machine, and a name of that site can be made to
lead here (DNS rebinding): a client without the token learns nothing of a store, and a token is in
no address, no log and no error. Slow clients and huge bodies cost others nothing: whatever waits
for a client ends.
"""

import asyncio
import contextlib
import hmac
import ipaddress
import os
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import h11
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from filestore.config.user_config import NAME, MachineError, Token, token_hash, tokens
from filestore.core.errors import FilestoreError, RefusedError
from filestore.server.http.answers import CompressedError, TooLargeError, TooSlowError, failure
from filestore.server.stores import Caller
from filestore.store.threads import BusyError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from filestore.server.stores import Stores

MOST_PORT: Final = 65_535
SHORTEST_TOKEN: Final = 16
"""Characters; a shorter one can be guessed."""
_OPEN: Final = ("/", "/health", "/docs", "/openapi.json")
"""What holds nothing of a store."""
_OPEN_BELOW: Final = "/page/"
_FORM: Final = re.compile(rb"multipart/form-data", re.IGNORECASE)
_LOCAL: Final = "localhost"
_HOST: Final = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z.]+))(?::([0-9]{1,5}))?")
"""An address of version 6, or a name or another address; and a port. Nothing besides."""
_NAMED: Final = re.compile(rb"([0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
_NAME_REMEDY: Final = (
    "use the address that 'filestore serve' printed; behind a proxy: filestore serve --name NAME"
)


class Gate:
    """Lets requests through to an application, or refuses them."""

    def __init__(
        self,
        app: "ASGIApp",
        *,
        token: str | None,
        is_local: bool,
        names: Collection[str] = (),
        configuration: str = "",
    ) -> None:
        """Guard an application.

        Args:
            app: What answers.
            token: What each request has to bear, if not a client's own; None for nothing.
            is_local: Whether only names of this machine are its own.
            names: By which it is reached as well, such as those of a proxy.
            configuration: The user's folder of settings, where tokens of clients are; "" for none.
        """
        self._configuration = configuration
        self._clients: Mapping[str, Token] = {}
        self._seen: object = None
        self._app = app
        self._token = None if token is None else token.encode()
        self._is_local = is_local
        self._names = {name.lower() for name in names}

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            caller = self._caller(scope)
            refused = self._refused(scope, caller)
            # What is open to all gets nothing of a store.
            scope["caller"] = caller or Caller(name="", writes=False, person=False)
            await (refused or self._app)(scope, receive, send)

    def _caller(self, scope: "Scope") -> Caller | None:
        """Whose token a request has; one in its address counts for nothing."""
        if self._token is None:
            # Anything on this machine asks.
            return Caller(name="", writes=True, person=False)
        given = _headers_of(scope).get(b"authorization", [])
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if scheme.lower() != b"bearer":
            return None
        # All are compared, so that the time says nothing of them.
        found = None
        if hmac.compare_digest(token, self._token):
            found = Caller(name="", writes=True, person=True)
        own = token_hash(token)
        for name, one in self._known().items():
            if hmac.compare_digest(own, one["hash"]):
                found = Caller(name=name, writes=one["writes"], person=one["person"])
        return found

    def _known(self) -> "Mapping[str, Token]":
        """The tokens of clients, as the user's file has them now; one that is broken has none."""
        if not self._configuration:
            return {}
        try:
            found = os.stat(os.path.join(self._configuration, NAME))
            seen = found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
            if seen != self._seen:
                self._clients, self._seen = {}, seen
                self._clients = tokens(self._configuration)
        except (OSError, MachineError):
            self._clients = {}
        return self._clients

    def _refused(self, scope: "Scope", caller: Caller | None) -> "ASGIApp | None":
        headers = _headers_of(scope)
        hosts, path = headers.get(b"host", []), scope["path"]
        if b"transfer-encoding" in headers and b"content-length" in headers:
            # A proxy in between that goes by the other one would see two requests in it.
            twice = FilestoreError("a request says its length in one way")
            refused = failure(twice, path, status=400)
            refused.headers["Connection"] = "close"
            return refused
        # A browser always names one; checks of health that speak HTTP/1.0 do not.
        is_unnamed = not hosts and scope["http_version"] == "1.0"
        if not is_unnamed and (len(hosts) != 1 or not self._is_own(hosts[0])):
            named = RefusedError("this server has another name", remedy=_NAME_REMEDY)
            return failure(named, path, status=421)
        for origin in headers.get(b"origin", []):
            scheme, _, place = origin.partition(b"://")
            is_asked = bool(hosts) and place.lower() == hosts[0].lower()
            if scheme not in (b"http", b"https") or not (is_asked or self._is_named(place)):
                other = RefusedError(
                    "pages of other sites may not ask this server", remedy=_NAME_REMEDY
                )
                return failure(other, path, status=403)
        if caller is not None or path in _OPEN or path.startswith(_OPEN_BELOW):
            return None
        error = FilestoreError(
            "this server asks for its token",
            remedy="send 'Authorization: Bearer TOKEN'; 'filestore token add NAME' makes a token",
        )
        refused = failure(error, path, status=401)
        refused.headers["WWW-Authenticate"] = "Bearer"
        return refused

    def _is_own(self, host: bytes) -> bool:
        return not self._is_local or is_of_this_machine(host) or self._is_named(host)

    def _is_named(self, host: bytes) -> bool:
        """Whether it is one of the names that were given, with any port."""
        found = _NAMED.fullmatch(host)
        is_port = found is not None and int(found[2] or 0) <= MOST_PORT
        return found is not None and is_port and found[1].decode().lower() in self._names


def _headers_of(scope: "Scope") -> dict[bytes, list[bytes]]:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def is_of_this_machine(host: bytes) -> bool:
    """Whether a Host header names the loopback device, with any port."""
    found = _HOST.fullmatch(host)
    if found is None or int(found[3] or 0) > MOST_PORT:
        return False
    version_6, name = (one.decode("ascii") if one else "" for one in found.group(1, 2))
    try:
        if version_6:
            return ipaddress.IPv6Address(version_6).is_loopback
        return name.lower() == _LOCAL or ipaddress.IPv4Address(name).is_loopback
    except ValueError:
        return False


MOST_JSON_BYTES: Final = 4 * 1024 * 1024
MOST_COLLECTION_BYTES: Final = 64 * 1024 * 1024
MOST_UPLOAD_BYTES: Final = 256 * 1024 * 1024
IDLE_S: Final = 75
"""So long a connection may wait for its next request: clients keep it as long."""
HEADERS_S: Final = 10.0
"""The headers of a request are there within: from the connection, then from their first byte."""
SILENCE_S: Final = 15.0
"""More of a body comes within, and what is sent is taken."""
WHOLE_BODY_S: Final = 600.0
"""All of it is there within."""
PASSED_OVER_S: Final = 2.0
MOST_PASSED_OVER_BYTES: Final = 64 * 1024 * 1024
"""So much of a body that is refused is read all the same."""
MOST_HELD_BYTES: Final = 512 * 1024 * 1024
"""Of all bodies together that are there at one time."""
MOST_HEADER_BYTES: Final = 32 * 1024
MOST_CONNECTIONS: Final = 512


class Limits:
    """Ends requests that are too large, or that stall."""

    def __init__(self, app: "ASGIApp", ending: asyncio.Event) -> None:
        """Guard an application.

        Args:
            app: What answers.
            ending: Set once the server is to end: listeners are disconnected then.
        """
        self._app = app
        self.ending = ending
        self.held_bytes = 0
        """Of the bodies of all requests that are being answered."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(receive, scope, self)
        reply = _Reply(send, body.pass_over)
        try:
            await self._app(scope, body.receive, reply.send)
            if self.ending.is_set():
                await reply.finish()
        except Exception:
            # A client that takes nothing: the connection ends without the rest.
            if not reply.is_late:
                raise
        finally:
            body.release()


class _Body:
    """The body of one request, as it comes."""

    def __init__(self, receive: "Receive", scope: "Scope", limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._taken = 0
        headers = _headers_of(scope)
        codings = {one.strip().lower() for one in headers.get(b"content-encoding", [])}
        self._is_compressed = bool(codings - {b"", b"identity"})
        self._only_listens = scope["method"] in ("GET", "HEAD")
        self._most = MOST_JSON_BYTES
        kinds = headers.get(b"content-type", [])
        if scope["path"] == "/rag/index":
            self._most = MOST_COLLECTION_BYTES
        elif scope["path"] == "/add" and any(_FORM.match(one) for one in kinds):
            self._most = MOST_UPLOAD_BYTES
        lengths = headers.get(b"content-length", [])
        self._seen = max(
            (int(one) for one in lengths if one.isdigit() and len(one) < 16), default=0
        )
        """As many bytes as there are at least."""
        self._read = 0
        self._left_s = WHOLE_BODY_S
        self._is_whole = False

    async def receive(self) -> "Message":
        """The next of it; once it is whole, the end of the connection or of the server.

        Raises:
            CompressedError: It would have to be unpacked.
            TooLargeError: It has too many bytes, or its client says so.
            TooSlowError: It does not come in time.
            BusyError: Others sent too much at the same time.
        """
        if self._is_whole:
            if not self._only_listens:
                return await self._receive()
            gone = asyncio.ensure_future(self._receive())
            ending = asyncio.ensure_future(self._limits.ending.wait())
            try:
                await asyncio.wait((gone, ending), return_when=asyncio.FIRST_COMPLETED)
                return gone.result() if gone.done() else {"type": "http.disconnect"}
            finally:
                gone.cancel()
                ending.cancel()
        self._require_room()
        if self._is_compressed:
            raise CompressedError(
                "the body is compressed: send it as it is, without Content-Encoding"
            )
        began_s = time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), min(SILENCE_S, self._left_s))
        except TimeoutError:
            raise TooSlowError("the request did not come in time: send it again") from None
        self._left_s -= time.monotonic() - began_s
        self._seen = max(self._seen, self._count(message))
        self._require_room()
        size_bytes = len(message.get("body", b""))
        self._taken += size_bytes
        self._limits.held_bytes += size_bytes
        if self._limits.held_bytes > MOST_HELD_BYTES:
            raise BusyError("too much is being sent at once: send it again later")
        self._is_whole = not message.get("more_body", False)
        return message

    def release(self) -> None:
        """Hold nothing of it any longer."""
        self._limits.held_bytes -= self._taken
        self._taken = 0

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
                f"a request has at most {self._most // 1024 // 1024} MB here: send less at once",
            )


class _Reply:
    """The answer to one request, as it goes."""

    def __init__(self, send: "Send", before: "Callable[[], Awaitable[None]]") -> None:
        """Take what is awaited before anything is sent."""
        self._send = send
        self._before = before
        self._is_begun = self._is_whole = self.is_late = False

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
        is_body = message["type"] == "http.response.body"
        self._is_whole = is_body and not message.get("more_body", False)

    async def finish(self) -> None:
        """End a stream properly, so that it does not look broken."""
        if self._is_begun and not self._is_whole:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})


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

    def on_response_complete(self) -> None:
        """Wait for the rest of headers that began to come while the last request was answered."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait()

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


class Metrics:
    """Counts the requests to an application, in the words of Prometheus.

    Paths and queries are no labels: all readers of the figures would see them, and they would
    grow without end.
    """

    def __init__(self, app: "ASGIApp", stores: "Stores") -> None:
        self._app = app
        self._stores = stores
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._requests = Counter(
            "filestore_requests",
            "Requests answered",
            ("route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "filestore_request_seconds",
            "Until the answer began",
            ("route",),
            registry=self._registry,
        )
        self._waiting = Gauge(
            "filestore_waiting",
            "Requests that wait for a store, or are being answered by it",
            ("store",),
            registry=self._registry,
        )

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()

        async def counted(message: "Message") -> None:
            if message["type"] == "http.response.start":
                # As it is written; never the path that was asked for.
                route = str(getattr(scope.get("route"), "path", "")) or "other"
                self._seconds.labels(route).observe(time.perf_counter() - started)
                self._requests.labels(route, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)

    def response(self) -> Response:
        """The figures as they are now."""
        for store in self._stores:
            self._waiting.labels(store.name).set(store.waiting)
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
