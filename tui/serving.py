"""The inspector in a browser: a process of it for every page that is opened, by textual-serve.

One rule: only this machine, and only pages that this server gave, may speak to it; and the page
needs nothing from anywhere else.
"""

import asyncio
import logging
import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from filestore import FilestoreError

if TYPE_CHECKING:
    from aiohttp.web import Application, Request, StreamResponse, WebSocketResponse

HOST: Final = "127.0.0.1"
_PAGE: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browser_page")


class ServerMissingError(FilestoreError, ImportError):
    """What serves the inspector is not installed."""


def serve(arguments: Sequence[str], *, port: int, title: str) -> int:
    """Serve the inspector until it is interrupted.

    Args:
        arguments: Of `filestore tui`, for every page that is opened.
        port: On the loopback device; nobody else reaches it.
        title: Of the page.

    Raises:
        ServerMissingError: textual-serve is not installed.
        FilestoreError: The port is taken.
    """
    command = shlex.join([sys.executable, "-m", "tui", *arguments])
    server = make_server(command, port=port, title=title)
    try:
        server.serve()
    except (OSError, OverflowError) as error:
        raise FilestoreError(
            f"port {port} cannot be used: {getattr(error, 'strerror', '') or error}",
            remedy="filestore tui --serve --port NUMBER",
        ) from error
    return 0


def make_server(command: str, *, port: int, title: str) -> Any:
    """A server of textual-serve that answers its own pages only.

    Args:
        command: What is run for every page that is opened.
        port: On the loopback device.
        title: Of the page.

    Raises:
        ServerMissingError: textual-serve is not installed.
    """
    try:
        from textual_serve.server import Server
    except ImportError as error:
        raise ServerMissingError(
            "the inspector cannot be served: textual-serve is not installed",
            remedy="pip install 'filestore[serve]'",
        ) from error

    sockets: set[asyncio.Task[Any]] = set()

    class LocalServer(Server):
        """One that keeps other pages out, says little, and ends at once."""

        def initialize_logging(self) -> None:
            """Say no more than what goes wrong."""
            logging.basicConfig(level=logging.WARNING, format="%(message)s")

        async def on_startup(self, app: "Application") -> None:
            """Say where the page is."""
            print(f"{self.title}: {self.public_url} (Ctrl-C ends it)", file=sys.stderr, flush=True)

        async def on_shutdown(self, app: "Application") -> None:
            """Answer no page any more."""
            # A socket is answered as long as its page is open, and aiohttp waits for all answers.
            for answering in list(sockets):
                answering.cancel()

        async def handle_websocket(self, request: "Request") -> "WebSocketResponse":
            """Answer a page until it is closed."""
            answering = asyncio.current_task()
            assert answering is not None
            sockets.add(answering)
            try:
                return await super().handle_websocket(request)
            finally:
                sockets.discard(answering)

        async def _make_app(self) -> "Application":
            app = await super()._make_app()
            app.middlewares.append(_own_pages_only())
            app.on_response_prepare.append(_say_what_is_allowed)
            return app

    # Its own page has its font from elsewhere.
    return LocalServer(command, host=HOST, port=port, title=title, templates_path=_PAGE)


def is_own_page(origin: str | None, host: str | None) -> bool:
    """Whether a request comes from a page of this server, or from no page at all.

    A page of somebody else may open a socket to this machine from a person's browser; what keeps
    it out is only that browsers name where the page is from.
    """
    try:
        address = urlsplit(f"//{host or ''}").hostname
        page = None if origin is None else urlsplit(origin).netloc
    except ValueError:
        return False
    return address in (HOST, "localhost") and page in (None, host)


def _own_pages_only() -> Any:
    from aiohttp import web

    @web.middleware
    async def check(
        request: "Request", handler: "Callable[[Request], Awaitable[StreamResponse]]"
    ) -> "StreamResponse":
        """Answer pages of this server."""
        if not is_own_page(request.headers.get("Origin"), request.headers.get("Host")):
            raise web.HTTPForbidden(text="only pages of this server may speak to it")
        return await handler(request)

    return check


async def _say_what_is_allowed(request: "Request", response: "StreamResponse") -> None:
    """Tell the browser to ask nobody else for anything, and to show the page in no other one."""
    host = request.headers.get("Host", "")
    own = "'self' 'unsafe-inline'"
    if is_own_page(None, host):
        response.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {own}; style-src {own}; font-src 'self' data:; "
            f"img-src 'self' data: blob:; connect-src 'self' ws://{host} wss://{host}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["Referrer-Policy"] = "no-referrer"
