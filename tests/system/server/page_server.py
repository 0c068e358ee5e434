"""The page over HTTP on the loopback device: the routes of stores behind a token, with uvicorn."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from filestore.server import page
from filestore.server.http.routes import routes
from filestore.server.stores import Stores

TOKEN = "a-token-that-is-long-enough-0123456789"
WAIT_S = 30.0


class Guard:
    """Lets whoever has the token through, and everybody to the page's own files."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and not self.may(scope):
            refused = JSONResponse({"error": "no token", "detail": "", "remedy": ""}, 401)
            await refused(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def may(self, scope: Scope) -> bool:
        """Whether a request is let through."""
        bears = dict(scope["headers"]).get(b"authorization") == f"Bearer {TOKEN}".encode()
        return bears or scope["path"] == "/" or scope["path"].startswith("/page/")


def app_of(stores: Stores) -> ASGIApp:
    """The page and what it asks."""

    async def names(_: Request) -> Response:
        return JSONResponse({"stores": [{"name": name} for name in stores.names]})

    return Guard(Starlette(routes=[Route("/stores", names), *routes(stores), *page.routes()]))


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    server: uvicorn.Server
    port: int

    @property
    def address(self) -> str:
        """Of the page, without the token."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def opened(self) -> str:
        """Of the page, as the server prints it."""
        return f"{self.address}#token={TOKEN}"

    def stop(self) -> None:
        """Have it end."""
        self.server.should_exit = True


@contextlib.contextmanager
def served(stores: Stores) -> Iterator[Served]:
    """Serve stores until the context ends."""
    config = uvicorn.Config(
        app_of(stores), host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until_s = time.monotonic() + WAIT_S
    while not server.started:
        assert thread.is_alive(), "the server does not start"
        assert time.monotonic() < until_s, "the server does not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(server, port)
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
