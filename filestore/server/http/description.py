"""What the server can be asked, for programs (OpenAPI) and for people (a page without script)."""

import json
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from msgspec import Struct

from filestore._version import __version__
from filestore.server import refusals
from filestore.server.operations import ROUTES, Operation, schema_of
from filestore.server.rag.documents import Index, Query
from filestore.server.refusals import EVENT_STREAM, JSON

_STORE: Final = {
    "type": "string",
    "maxLength": 255,
    "description": "the store's name; not needed where one is served",
}
_STYLE: Final = "/page/style.css"


def openapi() -> dict[str, Any]:
    """The description of every route that answers with JSON, as OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "filestore", "version": __version__},
        "security": [{"token": []}],
        "paths": {f"/{name}": {"post": _described(one)} for name, one in ROUTES.items()}
        | {
            "/health": {"get": _plain("Whether the server answers", {"security": []})},
            "/stores": {"get": _plain("The stores that are served")},
            "/events": {"get": _events()},
            "/metrics": {"get": _plain("Figures for Prometheus")},
        }
        | collection_paths(),
        "components": {
            "schemas": refusals.components(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _plain(about: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"summary": about, "responses": {"200": {"description": "done"}}} | (more or {})


_LISTEN: Final = (
    "What changes, as server-sent events: what this server does as 'filestore watch --json' prints"
    " it, what others do as changed and catalog"
)


def _events() -> dict[str, Any]:
    stream = {EVENT_STREAM: {"schema": refusals.reference("Line")}}
    store = {"name": "store", "in": "query", "schema": _STORE}
    return {
        "summary": _LISTEN,
        "parameters": [store],
        "responses": {"200": {"description": "each event is one such object", "content": stream}},
    }


def _described(operation: Operation) -> dict[str, Any]:
    schema = operation.schema
    named = {"properties": {"store": _STORE, **schema["properties"]}}
    content: dict[str, Any] = {JSON: {"schema": schema | named}}
    if operation.name == "add":
        content["multipart/form-data"] = {"schema": UPLOAD}
    return {
        "operationId": operation.route,
        "summary": operation.sentence,
        "requestBody": {"required": bool(schema["required"]), "content": content},
        "responses": _answers(operation.answer, "Failure"),
    }


def _answers(shape: str, failure: str) -> dict[str, Any]:
    told = (("200", "done", shape), ("default", "what was not done, and what to do", failure))
    return {
        status: {"description": about, "content": {JSON: {"schema": refusals.reference(name)}}}
        for status, about, name in told
    }


_NAME: Final = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


def collection_paths() -> dict[str, Any]:
    """Every route of the collections by its path."""
    named = "/rag/{name}"
    found: dict[str, Any] = {
        "/rag/list": {"get": _collection("List the collections", "RagList")},
        "/rag/index": {
            "post": _collection(
                "Index documents as a collection, or replace it", "RagIndexed", Index
            )
        },
        f"{named}/query": {
            "post": _collection("Find the documents that answer a question", "RagAnswer", Query)
        },
        f"{named}/index/status": {"get": _collection("How a collection stands", "RagStatus")},
        f"{named}/index/reload": {
            "post": _collection("Take up what changed on the disk", "RagReloaded")
        },
        named: {"delete": _collection("Delete a collection with its folder", "RagDeleted")},
    }
    for path, methods in found.items():
        if path.startswith(named):
            for route in methods.values():
                route["parameters"] = [_NAME]
    return found


def _collection(about: str, answer: str, given: type[Struct] | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"summary": about, "responses": _answers(answer, "RagFailure")}
    if given is not None:
        told["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": schema_of(given)}},
        }
    return told


UPLOAD: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "store": _STORE,
        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "into": {"type": "string", "description": "one resource of all files, by this name"},
        "replace": {"type": "boolean", "description": "whether documents of the names go"},
    },
    "required": ["file"],
    "additionalProperties": False,
}


def page() -> str:
    """The same as HTML."""
    return "".join(_lines())


def _lines() -> Iterator[str]:
    yield "<!doctype html><html lang=en><meta charset=utf-8><title>filestore: routes</title>"
    yield '<meta name=viewport content="width=device-width">'
    yield f'<link rel=stylesheet href="{_STYLE}"><main><h1>Routes</h1>'
    yield "<p>Each takes JSON by POST, those that change nothing also a query by GET, and answers"
    yield " with the JSON of the command line. The header <code>Authorization: Bearer TOKEN</code>"
    yield ' goes with it. For programs: <a href="/openapi.json">openapi.json</a>.'
    for route, operation in ROUTES.items():
        yield f"<h2>/{escape(route)}</h2><p>{escape(operation.sentence)}."
        if operation.writes:
            yield " Needs <code>--write</code>."
        yield "<dl>"
        for name, schema in operation.schema["properties"].items():
            needed = " (needed)" if name in operation.schema["required"] else ""
            yield f"<dt><code>{escape(name)}</code>{needed}<dd>{escape(_words(schema))}"
        yield "</dl>"
    yield f"<h2>/events</h2><p>{escape(_LISTEN)}; the query <code>store</code> names the store."
    yield "<h2>/rag</h2><p>Collections: indexes of documents by name, with"
    yield " <code>--collections</code>.<dl>"
    for path, routes in collection_paths().items():
        for method, route in routes.items():
            about = escape(route["summary"])
            yield f"<dt><code>{method.upper()} {escape(path)}</code><dd>{about}"
    yield "</dl></main></html>"


def _words(schema: Any) -> str:
    words: str = schema.get("description", "")
    if "enum" in schema:
        words += f"; one of {', '.join(map(str, schema['enum']))}"
    elif "type" in schema:
        words += f"; {schema['type']}"
    return words + (f"; default {json.dumps(schema['default'])}" if "default" in schema else "")
