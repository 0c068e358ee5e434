"""Who may ask: a token, and a host and an origin that are ours.

A page of another site can send requests to this machine, and a name of that site can be made to
lead here (DNS rebinding). One rule: whoever cannot say the token learns nothing of a store, and a
token is in no address, no log and no error.
"""

import hmac
import ipaddress
import re
from typing import TYPE_CHECKING, Final

from filestore.core.errors import FilestoreError, RefusedError
from filestore.server.refusals import answer, body_of

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

MOST_PORT: Final = 65_535
SHORTEST_TOKEN: Final = 16
"""Characters; a shorter one can be guessed."""
_OPEN: Final = ("/", "/health", "/docs", "/openapi.json")
"""What holds nothing of a store."""
_OPEN_BELOW: Final = "/page/"
_LOCAL: Final = "localhost"
_HOST: Final = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z.]+))(?::([0-9]{1,5}))?")
"""An address of version 6, or a name or another address; and a port. Nothing besides."""


class Gate:
    """Lets requests through to an application, or refuses them."""

    def __init__(self, app: "ASGIApp", *, token: str | None, is_local: bool) -> None:
        """Guard an application.

        Args:
            app: What answers.
            token: What each request has to bear; None for nothing.
            is_local: Whether only names of this machine are its own.
        """
        self._app = app
        self._token = None if token is None else token.encode()
        self._is_local = is_local

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refused(scope)
            await (refused or self._app)(scope, receive, send)

    def _refused(self, scope: "Scope") -> "ASGIApp | None":
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts, path = headers.get(b"host", []), scope["path"]
        if b"transfer-encoding" in headers and b"content-length" in headers:
            # A proxy in between that goes by the other one would see two requests in it.
            told = _told(400, FilestoreError("a request says its length in one way"), path)
            told.headers["Connection"] = "close"
            return told
        if len(hosts) != 1 or (self._is_local and not is_of_this_machine(hosts[0])):
            named = RefusedError("this server has another name", remedy="use its address")
            return _told(421, named, path)
        for origin in headers.get(b"origin", []):
            scheme, _, place = origin.partition(b"://")
            if scheme not in (b"http", b"https") or place.lower() != hosts[0].lower():
                return _told(
                    403, RefusedError("pages of other sites may not ask this server"), path
                )
        if self._token is None or path in _OPEN or path.startswith(_OPEN_BELOW):
            return None
        given = headers.get(b"authorization", [])
        if len(given) == 1 and hmac.compare_digest(given[0], b"Bearer " + self._token):
            return None
        error = FilestoreError(
            "this server asks for its token",
            remedy="send the header 'Authorization: Bearer TOKEN'; 'filestore serve' says"
            " where the token is",
        )
        refused = _told(401, error, path)
        refused.headers["WWW-Authenticate"] = "Bearer"
        return refused


def _told(status: int, error: FilestoreError, path: str) -> "Response":
    return answer(body_of(error, path), status=status)


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
