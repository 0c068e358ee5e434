"""The routes of collections as OpenAPI describes them."""

from collections.abc import Mapping
from typing import Any, Final

from filestore.search.query import MODES
from filestore.server import schemas
from filestore.server.operations import LONGEST_QUERY, MOST_HITS
from filestore.server.rag.documents import LONGEST_ID, MOST_DOCUMENTS

_JSON: Final = "application/json"
_NAME: Final = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_TEXT: Final = {"type": "string"}
_K: Final = {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": 5}
_DOCUMENT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": _TEXT,
        "content": _TEXT | {"description": "the same as text"},
        "id": {"type": ["string", "integer"], "maxLength": LONGEST_ID},
        "metadata": {"type": "object"},
    },
    "additionalProperties": False,
}
_INDEX: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "rag_name": _TEXT,
        "name": _TEXT | {"description": "the same as rag_name"},
        "documents": {
            "type": "array",
            "items": {"anyOf": [_TEXT, _DOCUMENT]},
            "minItems": 1,
            "maxItems": MOST_DOCUMENTS,
        },
        "dataset_info": {"type": "object"},
        "overwrite": {
            "type": "boolean",
            "default": False,
            "description": "whether what a person changed in the old documents may go, too",
        },
    },
    "required": ["documents"],
    "additionalProperties": False,
}
_QUERY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": _TEXT | {"minLength": 1, "maxLength": LONGEST_QUERY},
        "k": _K,
        "top_k": _K | {"description": "the same as k"},
        "mode": {"enum": list(MODES), "default": "hybrid"},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def paths() -> dict[str, Any]:
    """Every route by its path."""
    named = "/rag/{name}"
    found: dict[str, Any] = {
        "/rag/list": {"get": _route("List the collections", "RagList")},
        "/rag/index": {
            "post": _route("Index documents as a collection, or replace it", "RagIndexed", _INDEX)
        },
        f"{named}/query": {
            "post": _route("Find the documents that answer a question", "RagAnswer", _QUERY),
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


def _route(about: str, answer: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": about,
        "responses": {
            "200": _content(answer, "done"),
            "default": _content("RagFailure", "what was not done, and what to do"),
        },
    }
    if given is not None:
        told["requestBody"] = {"required": True, "content": {_JSON: {"schema": given}}}
    return told


def _content(shape: str, about: str) -> dict[str, Any]:
    return {"description": about, "content": {_JSON: {"schema": schemas.reference(shape)}}}
