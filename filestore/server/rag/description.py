"""The routes of collections as OpenAPI describes them."""

from typing import Any, Final

from msgspec import Struct

from filestore.server import schemas
from filestore.server.decoding import schema_of
from filestore.server.rag.documents import Index, Query

_JSON: Final = "application/json"
_NAME: Final = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


def paths() -> dict[str, Any]:
    """Every route by its path."""
    named = "/rag/{name}"
    found: dict[str, Any] = {
        "/rag/list": {"get": _route("List the collections", "RagList")},
        "/rag/index": {
            "post": _route("Index documents as a collection, or replace it", "RagIndexed", Index)
        },
        f"{named}/query": {
            "post": _route("Find the documents that answer a question", "RagAnswer", Query),
        },
        f"{named}/index/status": {
            "get": _route("How a collection stands", "RagStatus"),
        },
        f"{named}/index/reload": {
            "post": _route("Take up what changed on the disk", "RagReloaded"),
        },
        named: {
            "delete": _route("Delete a collection with its folder", "RagDeleted"),
        },
    }
    for path, methods in found.items():
        if path.startswith(named):
            for route in methods.values():
                route["parameters"] = [_NAME]
    return found


def _route(about: str, answer: str, given: type[Struct] | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": about,
        "responses": {
            "200": _content(answer, "done"),
            "default": _content("RagFailure", "what was not done, and what to do"),
        },
    }
    if given is not None:
        told["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema_of(given)}}}
    return told


def _content(shape: str, about: str) -> dict[str, Any]:
    return {"description": about, "content": {_JSON: {"schema": schemas.reference(shape)}}}
