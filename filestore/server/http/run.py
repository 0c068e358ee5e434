"""The process that serves: its address, its token, its end.

One rule: without options a server is for this machine alone and asks for a token; anything else
has to be confirmed.
"""

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import uvicorn
from msgspec import Struct

from filestore.config.user_config import make_private, read_private
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.safe_text import brief
from filestore.server.http import limits
from filestore.server.http.limits import MOST_PORT, SHORTEST_TOKEN

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from filestore.server.http.app import AppParts

TOKEN_FILE: Final = os.path.join("filestore", "server-token")
"""Below the folder of the user's settings."""
_GRACE_S: Final = 10
"""So long requests may take once the server is to end."""
_BACKLOG: Final = 128
_NAME: Final = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._-]{0,251}[0-9A-Za-z])?")
_NO_SIGNS: Final = {chr(code) for code in (*range(33), 127)}
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


class Address(Struct, frozen=True, kw_only=True):
    """Where a server listens."""

    host: str
    port: int
    """0 for any that is free."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def require_confirmed(address: Address, *, token: bool, insecure: bool) -> None:
    """Refuse what opens a store to others, where that is not confirmed.

    Raises:
        RefusedError: It is not.
    """
    if insecure:
        return
    if not address.is_local:
        raise RefusedError(
            f"on {address.host} others could reach the store, and nothing that is sent is"
            " encrypted",
            remedy="better: a reverse proxy with TLS and --name, see docs/server.md, or ssh -L;"
            " to confirm: --insecure",
        )
    if not token:
        raise RefusedError(
            "without a token every user of this machine can ask the server; add --insecure to"
            " confirm",
        )


def require_names(names: Sequence[str]) -> None:
    """Refuse what a Host header never has as a name.

    Raises:
        UsageError: One is no name.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--name: {brief(name)} is not a host name",
                remedy="filestore serve --name notes.example.org",
            )


def token_of(configuration: str, given: str | None) -> tuple[str, str]:
    """The token, and the file that has it.

    Args:
        configuration: The user's folder of settings.
        given: What the user gave; None for the token of the file, which is made once.

    Raises:
        UsageError: What was given can be guessed, or is in no header.
    """
    path = os.path.join(configuration, TOKEN_FILE)
    if given is not None:
        if len(given) < SHORTEST_TOKEN or not given.isascii() or set(given) & _NO_SIGNS:
            raise UsageError(
                f"a token has at least {SHORTEST_TOKEN} characters of ASCII, and no blanks"
                ": leave --token out: the server makes one",
            )
        return given, ""
    known = read_private(path, _is_token)
    if known is None:
        known = make_private(path, f"{secrets.token_urlsafe(32)}\n".encode(), _is_token)
    if known is None:
        raise FilestoreError(
            f"the token cannot be kept in {path}: set FILESTORE_TOKEN to one of your own"
        )
    return known.decode().strip(), path


def _is_token(data: bytes) -> bool:
    words = data.split()
    return len(words) == 1 and len(words[0]) >= SHORTEST_TOKEN and words[0].isascii()


def listening(address: Address) -> socket.socket:
    """A socket at an address.

    Raises:
        FilestoreError: It cannot be used.
    """
    try:
        if not 0 <= address.port <= MOST_PORT:
            raise ValueError(f"a port is a number from 0 to {MOST_PORT}")
        family, _, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # It takes a port at once that a server left a moment ago, and IPv6 alone where it is that.
        return socket.create_server(place, family=family, backlog=_BACKLOG)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or str(error)
        raise FilestoreError(
            # Python adds the address again.
            f"{address.host} port {address.port} cannot be used: {reason.partition(' (while ')[0]}",
            remedy="'filestore serve --port 0' takes any that is free",
        ) from error


def url_of(opened: socket.socket) -> str:
    """The address of a socket, for a browser."""
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def serve(
    app: "ASGIApp", parts: "AppParts", opened: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serve until the process gets a signal to end; pending requests are answered first.

    Args:
        app: What answers.
        parts: What it is made of.
        opened: Where it listens; closed at the end.
        on_ready: Called once requests are answered.
    """
    config = uvicorn.Config(
        app,
        http=limits.ClosesSilent,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.MOST_CONNECTIONS,
        h11_max_incomplete_event_size=limits.MOST_HEADER_BYTES,
        timeout_keep_alive=limits.IDLE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    # Threads take memory from few places, or what each has freed stays its own: by GNU's manual
    # of `mallopt`; other C libraries have no such thing.
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
    # It would log each broken request, and each fault a second time.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    def ready() -> None:
        on_ready()
        for store in parts.stores:
            store.warm_up()

    server = _Server(config, ready, parts.ending)
    with contextlib.closing(opened):
        server.run(sockets=[opened])


class _Server(uvicorn.Server):
    """Says when it is ready, and when it is to end."""

    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[], None], ending: asyncio.Event
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let go of who listens for what never ends; wait for the others."""
        self._ending.set()
        await super().shutdown(sockets)
