"""Answers of HTTP: JSON, errors with their status, and the stream of what changes in a store.

One thread watches a store while a client listens; what this server does to the store is in the
stream as `filestore watch --json` prints what it does. One rule: a client that does not read is
disconnected, and never slows the others.
"""

import asyncio
import contextlib
import threading
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct
from starlette.responses import Response, StreamingResponse

from filestore.catalog import CatalogMissingError
from filestore.config.layout import NoStoreError
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.schema import Failure, JsonObject, UnfitError, converted, json_of
from filestore.fs.disk import WriteFailedError
from filestore.fs.lock import LockedError
from filestore.server.client_words import for_clients
from filestore.server.operations import ROUTES
from filestore.store import watch
from filestore.store.threads import BusyError, ReadOnlyError

if TYPE_CHECKING:
    from filestore.server.stores import Caller, ServedStore


class TooLargeError(FilestoreError):
    """A body has more bytes than a request may have."""


class TooSlowError(FilestoreError):
    """A body does not come in time."""


class CompressedError(FilestoreError):
    """A body comes in a coding that is not unpacked: a small one could become a huge one."""


_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (TooSlowError, 408),
    (TooLargeError, 413),
    (CompressedError, 415),
    (ReadOnlyError, 403),
    (BusyError, 503),
    (LockedError, 503),
    (NoStoreError, 503),
    (CatalogMissingError, 503),
    (WriteFailedError, 507),
    (RefusedError, 409),
    (UsageError, 400),
    (LookupError, 404),
    (FileNotFoundError, 404),
)
"""The first that fits; what fits none cannot be done as asked."""
UNUSABLE: Final = 422
JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_COLLECTIONS: Final = "/rag"
"""Below it, clients of other services expect the words of those."""


class RagFailure(JsonObject, Struct, frozen=True):
    """What a route below /rag answers that fails."""

    error: str
    """What happened."""
    details: str
    """Technical detail, or empty."""
    action: str
    """What to do next."""


def answer(value: Any, *, status: int = 200) -> Response:
    """A value as JSON: data whatever it holds, for this client alone, cached nowhere."""
    return Response(orjson.dumps(value), status, dict(_HEADERS), JSON)


def failure(error: FilestoreError, path: str, *, status: int | None = None) -> Response:
    """An error, in the words of the route that was asked; by itself with the status of its kind."""
    if status is None:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), UNUSABLE)
    message, remedy = (for_clients(one, ROUTES) for one in (error.message, error.remedy))
    if path == _COLLECTIONS or path.startswith(f"{_COLLECTIONS}/"):
        action = remedy or "change the request, and send it again"
        return answer(RagFailure(message, error.detail, action).to_dict(), status=status)
    worded = FilestoreError(message, remedy=remedy, detail=error.detail)
    return answer(Failure.of(worded).to_dict(), status=status)


def json_object(data: bytes) -> dict[str, Any]:
    """The object that a client sends.

    Raises:
        UsageError: It is none.
    """
    try:
        return converted(json_of(data.removeprefix(BOM_UTF8)), dict[str, Any], "the body")
    except orjson.JSONDecodeError as error:
        raise UsageError(f"the body is no JSON: {error}; send a JSON object") from error
    except UnfitError as error:
        raise UsageError(f"{error}; send a JSON object") from error


MOST_WAITING: Final = 100
"""Events that a client may leave unread."""
HEARTBEAT_S: Final = 15.0
"""So often a comment is sent, by which a client that is gone is noticed."""
MOST_PATHS: Final = 1_000
_FULL: Final = watch.Line(event="lagging", detail="events were not read in time: look again")


class Events:
    """The listeners of one store."""

    def __init__(self, store: "ServedStore") -> None:
        self._store = store
        self._queues: set[asyncio.Queue[watch.Line]] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        store.listeners.append(lambda *change: self.publish(*lines_of(*change)))

    def response(self, caller: "Caller") -> StreamingResponse:
        """The stream of one client; it ends with the connection, or with the server."""
        return StreamingResponse(
            self._stream(caller),
            media_type=EVENT_STREAM,
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    async def _stream(self, caller: "Caller") -> AsyncIterator[bytes]:
        queue: asyncio.Queue[watch.Line] = asyncio.Queue(MOST_WAITING)
        self._queues.add(queue)
        if self._thread is None:
            watched = self._loop, self._stop = asyncio.get_running_loop(), threading.Event()
            self._thread = threading.Thread(
                target=self._watch, args=watched, name="filestore-events", daemon=True
            )
            self._thread.start()
        try:
            yield b": listening\n\n"
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), HEARTBEAT_S)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                # A program does not learn the names of what is closed to it.
                is_whole = caller.person or not await self._store.read(lambda store: store.hides)
                shown = event if is_whole else watch.Line(event=event.event)
                yield b"data: " + orjson.dumps(shown.to_dict()) + b"\n\n"
                if event is _FULL:
                    return
        finally:
            self._queues.discard(queue)
            if not self._queues:
                self.close()

    def publish(self, *events: watch.Line) -> None:
        """Send events to every listener; from the event loop."""
        for queue, event in product(list(self._queues), events):
            if queue not in self._queues:
                continue
            if queue.full():
                # It hears no more, and says so at the end of what it has not read yet.
                queue.get_nowait()
                queue.put_nowait(_FULL)
                self._queues.discard(queue)
            else:
                queue.put_nowait(event)

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread = None

    def _watch(self, loop: asyncio.AbstractEventLoop, stop: threading.Event) -> None:
        places = self._store.places
        notices = watch.changes(places.root, tree=places.tree, catalog=places.catalog, stop=stop)
        for notice in notices:
            if notice is not None and not stop.is_set():
                # A loop that ended just now has no listeners.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self.publish, event_of(notice))


def event_of(notice: watch.Notice) -> watch.Line:
    """The event for a notice."""
    match notice:
        case watch.Ready():
            return watch.Line(event="ready")
        case watch.Changed(paths=paths):
            if paths is None or len(paths) > MOST_PATHS:
                return watch.Line(event="changed")
            return watch.Line(event="changed", paths=sorted(paths))
        case watch.CatalogChanged():
            return watch.Line(event="catalog")
        case watch.Unavailable(reason=reason):
            return watch.Line(event="blind", detail=reason)


def lines_of(operation: str, answer: dict[str, Any]) -> list[watch.Line]:
    """The events for an operation of this server."""
    found = []
    if operation in ("add", "remove", "update"):
        line = watch.updated_line(answer)
        found += [line] if line.updated or line.conflicts or line.failed else []
    if operation in ("sync", "update"):
        found.append(watch.synced_line(answer))
    return found
