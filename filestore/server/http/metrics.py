"""What a server counts, in the words of Prometheus: requests, seconds, jobs that wait.

Paths and queries are no labels: they would be told to whoever reads the figures, and grow without
end.
"""

import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from filestore.server.stores import Stores


class Metrics:
    """Counts the requests to an application."""

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
                route = _route(scope)
                self._seconds.labels(route).observe(time.perf_counter() - started)
                self._requests.labels(route, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)

    def response(self) -> Response:
        """The figures as they are now."""
        for store in self._stores:
            self._waiting.labels(store.name).set(store.waiting)
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


def _route(scope: "Scope") -> str:
    """The route that answered, as it is written; never the path that was asked for."""
    route = scope.get("route")
    return str(getattr(route, "path", "")) or "other"
