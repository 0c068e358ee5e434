"""The page in a browser: its files, which ask the routes of HTTP for everything else."""

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Asked for again each time: after an upgrade no old script meets a new server.
    "Cache-Control": "no-cache",
}
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FIRST: Final = "index.html"

Answer = Callable[[Request], Awaitable[Response]]


def routes() -> list[Route]:
    """The page at `/`, what it loads below `/page/`; none of them tells anything of a store."""
    contents = page_files()
    found = [Route("/", _served(_FIRST, contents.pop(_FIRST)))]
    return found + [Route(f"/page/{name}", _served(name, data)) for name, data in contents.items()]


def page_files() -> dict[str, bytes]:
    """Every file of the page by its name."""
    folder = resources.files(__package__).joinpath("files")
    return {
        one.name: one.read_bytes()
        for one in sorted(folder.iterdir(), key=lambda one: one.name)
        if _suffix(one.name) in _TYPES
    }


def _served(name: str, data: bytes) -> Answer:
    kind = _TYPES[_suffix(name)]

    async def answer(_: Request) -> Response:
        return Response(data, 200, HEADERS, kind)

    return answer


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
