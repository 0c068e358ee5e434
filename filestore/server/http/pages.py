"""What the server can be asked, for programs (OpenAPI) and for people (a page without script)."""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from filestore._version import __version__
from filestore.server.http.answers import EVENT_STREAM, JSON
from filestore.server.operations import ROUTES, definitions, schema_of

if TYPE_CHECKING:
    from filestore.server.http.rag import CollectionRoute

_STORE: Final = {
    "type": "string",
    "maxLength": 255,
    "description": "the store's name; not needed where one is served",
}
_STORES: Final = {
    "anyOf": [_STORE, {"type": "array", "items": _STORE}],
    "description": "the store's name, or a list of names; not needed where one is served",
}
_STYLE: Final = "/page/style.css"


def openapi(collections: "Sequence[CollectionRoute]") -> dict[str, Any]:
    """The description of every route that answers with JSON, as OpenAPI 3.1."""
    asked = {}
    for route, operation in ROUTES.items():
        store = _STORES if operation.name == "search" else _STORE
        named = {"properties": {"store": store, **operation.schema["properties"]}}
        forms: dict[str, Any] = {JSON: {"schema": operation.schema | named}}
        if operation.name == "add":
            forms["multipart/form-data"] = {"schema": UPLOAD}
        asked[f"/{route}"] = {
            "post": {
                "operationId": route,
                "summary": operation.sentence,
                "requestBody": {"required": bool(operation.schema["required"]), "content": forms},
                "responses": _answers(operation.answer, "Failure"),
            }
        }
    listened = {EVENT_STREAM: {"schema": reference("Line")}}
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    below_rag: dict[str, Any] = {}
    for one in collections:
        responses = _answers(one.answer, "RagFailure")
        described: dict[str, Any] = {"summary": one.about, "responses": responses}
        if "{name}" in one.path:
            described["parameters"] = [name]
        if one.given is not None:
            content = {JSON: {"schema": schema_of(one.given)}}
            described["requestBody"] = {"required": True, "content": content}
        below_rag.setdefault(one.path, {})[one.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "filestore", "version": __version__},
        "security": [{"token": []}],
        "paths": asked
        | {
            "/health": {"get": _plain("Whether the server answers", {"security": []})},
            "/stores": {"get": _plain("The stores that are served")},
            "/events": {
                "get": {
                    "summary": _LISTEN,
                    "parameters": [{"name": "store", "in": "query", "schema": _STORE}],
                    "responses": {
                        "200": {"description": "each event is one such object", "content": listened}
                    },
                }
            },
            "/metrics": {"get": _plain("Figures for Prometheus")},
        }
        | below_rag,
        "components": {
            "schemas": definitions(_COMPONENTS),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _plain(about: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"summary": about, "responses": {"200": {"description": "done"}}} | (more or {})


_LISTEN: Final = (
    "What changes, as server-sent events: what this server does as 'filestore watch --json' prints"
    " it, what others do as changed and catalog"
)


def _answers(shape: str, failure: str) -> dict[str, Any]:
    # Of a list of stores the answer is another one.
    shapes = [shape, "MergedAnswer"] if shape == "Answer" else [shape]
    found = {"anyOf": [*map(reference, shapes)]} if shapes[1:] else reference(shape)
    answers = (
        ("200", "done", found),
        ("default", "what was not done, and what to do", reference(failure)),
    )
    return {
        status: {"description": about, "content": {JSON: {"schema": schema}}}
        for status, about, schema in answers
    }


UPLOAD: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "store": _STORE,
        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "into": {"type": "string", "description": "one document of all files, by this name"},
        "replace": {"type": "boolean", "description": "whether documents of the names go"},
    },
    "required": ["file"],
    "additionalProperties": False,
}


def page(collections: "Sequence[CollectionRoute]") -> Iterator[str]:
    """The same as HTML, in pieces."""
    yield "<!doctype html><html lang=en><meta charset=utf-8><title>filestore: routes</title>"
    yield '<meta name=viewport content="width=device-width">'
    yield f'<link rel=stylesheet href="{_STYLE}"><main><h1>Routes</h1>'
    yield "<p>Each takes JSON by POST, where it changes nothing also a query by GET, and answers"
    yield " with the JSON of the command line. The header <code>Authorization: Bearer TOKEN</code>"
    yield ' goes with it. For programs: <a href="/openapi.json">openapi.json</a>.'
    for route, operation in ROUTES.items():
        yield f"<h2>/{escape(route)}</h2><p>{escape(operation.sentence)}."
        if operation.writes:
            yield " Needs <code>--write</code>."
        if operation.name == "search":
            yield " Takes a list of stores as <code>store</code>."
        yield "<dl>"
        for name, schema in operation.schema["properties"].items():
            needed = " (needed)" if name in operation.schema["required"] else ""
            words = schema.get("description", "")
            if "enum" in schema:
                words += f"; one of {', '.join(map(str, schema['enum']))}"
            elif "type" in schema:
                words += f"; {schema['type']}"
            if "default" in schema:
                words += f"; default {json.dumps(schema['default'])}"
            yield f"<dt><code>{escape(name)}</code>{needed}<dd>{escape(words)}"
        yield "</dl>"
    yield f"<h2>/events</h2><p>{escape(_LISTEN)}; the query <code>store</code> names the store."
    yield "<h2>/rag</h2><p>Collections: indexes of documents by name, with"
    yield " <code>--collections</code>.<dl>"
    for one in collections:
        yield f"<dt><code>{one.method} {escape(one.path)}</code><dd>{escape(one.about)}"
    yield "</dl></main></html>"


_COMPONENTS: Final = "#/components/schemas/"


def reference(name: str) -> dict[str, str]:
    """The reference to a shape in OpenAPI."""
    return {"$ref": f"{_COMPONENTS}{name}"}


_PAGE_HEADERS: Final = {
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
_PAGE_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FIRST_PAGE: Final = "index.html"

_PageAnswer = Callable[[Request], Awaitable[Response]]


def page_routes() -> list[Route]:
    """The page at `/`, what it loads below `/page/`; none of them tells anything of a store."""
    contents = page_files()
    found = [Route("/", _page_file(_FIRST_PAGE, contents.pop(_FIRST_PAGE)))]
    return found + [
        Route(f"/page/{name}", _page_file(name, data)) for name, data in contents.items()
    ]


def page_files() -> dict[str, bytes]:
    """Every file of the page by its name."""
    folder = resources.files("filestore.server").joinpath("page", "files")
    return {
        one.name: one.read_bytes()
        for one in sorted(folder.iterdir(), key=lambda one: one.name)
        if _suffix(one.name) in _PAGE_TYPES
    }


def _page_file(name: str, data: bytes) -> _PageAnswer:
    kind = _PAGE_TYPES[_suffix(name)]

    async def answer(_: Request) -> Response:
        return Response(data, 200, _PAGE_HEADERS, kind)

    return answer


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
