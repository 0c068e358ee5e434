"""The server of textual-serve, as one that answers its own pages only.

Loaded only to serve: textual-serve is an optional dependency.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import WSCloseCode, WSMsgType, web
from textual_serve.server import Server

from tui.app.page_rules import MOST_PAGES, is_own_page, page_message
from tui.formatting.lines import one_line

if TYPE_CHECKING:
    from aiohttp.web import Application, Request, StreamResponse, WebSocketResponse
    from textual_serve.app_service import AppService

HOST: Final = "127.0.0.1"
_REASON: Final = 120
"""As long as a reason may be, in bytes, where a socket is closed."""
_PAGE: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browser_page")


class _OneLine(logging.Formatter):
    """Logs errors as one line; input of strangers is made safe, and gets no traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of a terminal."""
        return one_line(record.getMessage())


class LocalServer(Server):
    """A server that keeps other pages out, logs little, and stops at once."""

    def __init__(self, command: str, *, port: int, title: str) -> None:
        """Prepare to serve.

        Args:
            command: What is run for every page that is opened.
            port: On the loopback device.
            title: Of the page.
        """
        # Its own page has its font from elsewhere.
        super().__init__(command, host=HOST, port=port, title=title, templates_path=_PAGE)
        self._sockets: set[asyncio.Task[Any]] = set()

    def initialize_logging(self) -> None:
        """Log errors only."""
        handler = logging.StreamHandler()
        handler.setFormatter(_OneLine())
        logging.basicConfig(level=logging.WARNING, handlers=[handler])

    async def on_startup(self, app: "Application") -> None:
        """Log nothing: the port is not open yet."""

    def serve(self, debug: bool = False) -> None:
        """Answer until it is interrupted."""
        self.initialize_logging()
        web.run_app(self._make_app(), host=HOST, port=self.port, print=self._say_where)

    def _say_where(self, _: str) -> None:
        """Print the address, once the server listens."""
        print(f"{self.title}: {self.public_url} (Ctrl-C ends it)", file=sys.stderr, flush=True)

    async def on_shutdown(self, app: "Application") -> None:
        """Answer no page any more."""
        # A socket is answered as long as its page is open, and aiohttp waits for all answers.
        for answering in list(self._sockets):
            answering.cancel()

    async def handle_websocket(self, request: "Request") -> "WebSocketResponse":
        """Answer a page until it is closed."""
        if not web.WebSocketResponse().can_prepare(request):
            raise web.HTTPBadRequest(text="a page opens a websocket here")
        if len(self._sockets) >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(
                text=f"{MOST_PAGES} pages are open: close one, and open this one again"
            )
        answering = asyncio.current_task()
        assert answering is not None
        self._sockets.add(answering)
        try:
            return await super().handle_websocket(request)
        finally:
            self._sockets.discard(answering)

    async def _process_messages(
        self, websocket: "WebSocketResponse", app_service: "AppService"
    ) -> None:
        """Forward a page's messages; close a page that sends others."""
        async for message in websocket:
            try:
                if message.type is not WSMsgType.TEXT:
                    raise ValueError(f"a page sends text, not {message.type}")
                kind, value = page_message(message.data)
            except ValueError as error:
                await websocket.close(
                    code=WSCloseCode.POLICY_VIOLATION, message=str(error).encode()[:_REASON]
                )
                return
            if kind == "stdin":
                await app_service.send_bytes(value)
            elif kind == "resize":
                await app_service.set_terminal_size(*value)
            elif kind == "ping":
                await websocket.send_json(["pong", value])
            elif kind == "blur":
                await app_service.blur()
            elif kind == "focus":
                await app_service.focus()

    async def _make_app(self) -> "Application":
        app = await super()._make_app()
        app.middlewares.append(_own_pages_only())
        app.on_response_prepare.append(_say_what_is_allowed)
        return app


def _own_pages_only() -> Any:
    @web.middleware
    async def check(
        request: "Request", handler: "Callable[[Request], Awaitable[StreamResponse]]"
    ) -> "StreamResponse":
        """Answer pages of this server."""
        origins, hosts = (request.headers.getall(name, []) for name in ("Origin", "Host"))
        is_clear = len(origins) <= 1 and len(hosts) == 1
        if not is_clear or not is_own_page(origins[0] if origins else None, hosts[0]):
            raise web.HTTPForbidden(text="only pages of this server may connect")
        try:
            return await handler(request)
        except OSError as error:
            # A path that no file can have.
            raise web.HTTPNotFound from error

    return check


async def _say_what_is_allowed(request: "Request", response: "StreamResponse") -> None:
    """Forbid the browser other origins, and framing."""
    host = request.headers.get("Host", "")
    own = "'self' 'unsafe-inline'"
    if is_own_page(None, host):
        response.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {own}; style-src {own}; font-src 'self' data:; "
            f"img-src 'self' data: blob:; connect-src 'self' ws://{host} wss://{host}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Referrer-Policy"] = "no-referrer"
