"""What changes in a store, for every client that listens: server-sent events.

One thread watches a store while somebody listens; what this server does to the store is told as
`filestore watch --json` tells what it does. One rule: a client that does not read is let go, and
never slows the others.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import orjson
from starlette.responses import StreamingResponse

from filestore.server.refusals import EVENT_STREAM
from filestore.store import watch

if TYPE_CHECKING:
    from filestore.server.stores import ServedStore

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
        store.listeners.append(self._wrote)

    def response(self) -> StreamingResponse:
        """The stream of one client; it ends with the connection, or with the server."""
        return StreamingResponse(
            self._stream(),
            media_type=EVENT_STREAM,
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    async def _stream(self) -> AsyncIterator[bytes]:
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
                yield b"data: " + orjson.dumps(event.to_dict()) + b"\n\n"
                if event is _FULL:
                    return
        finally:
            self._queues.discard(queue)
            if not self._queues:
                self.close()

    def publish(self, event: watch.Line) -> None:
        """Tell every listener; from the event loop."""
        for queue in list(self._queues):
            if queue.full():
                # It hears no more, and says so at the end of what it has not read yet.
                queue.get_nowait()
                queue.put_nowait(_FULL)
                self._queues.discard(queue)
            else:
                queue.put_nowait(event)

    def _wrote(self, operation: str, answer: dict[str, Any]) -> None:
        for line in lines_of(operation, answer):
            self.publish(line)

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread = None

    def _watch(self, loop: asyncio.AbstractEventLoop, stop: threading.Event) -> None:
        places = self._store.places
        notices = watch.changes(places.root, tree=places.tree, catalog=places.catalog, stop=stop)
        for notice in notices:
            if notice is not None and not stop.is_set():
                # A loop that ended just now has nobody who listens.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self.publish, event_of(notice))


def event_of(notice: watch.Notice) -> watch.Line:
    """What a client is told of a notice."""
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
    """What clients are told of an operation of this server."""
    found = []
    if operation in ("add", "remove", "update"):
        line = watch.updated_line(answer)
        found += [line] if line.updated or line.conflicts or line.failed else []
    if operation in ("sync", "update"):
        found.append(watch.synced_line(answer))
    return found
