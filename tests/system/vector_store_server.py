"""A service with OpenAI's `/vector_stores` on loopback, that can be told to behave badly.

It answers page by page, as that service does, and behaves by turns as `embedding_server` says.

    with VectorStoreServer({"file-1": StoredFile(name="a.pdf", chunks=("one", "two"))}) as server:
        run("reconstruct", "--from", "openai:vs_1", "--endpoint", server.endpoint)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.system.embedding_server import Behaviour, EmbeddingServer, Handler, Request

STORE = "vs_1"
NOT_FOUND = {"error": {"message": "No such thing", "type": "invalid_request_error"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of the vector store."""

    name: str | None
    """None where the service does not know the file any more."""
    chunks: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What its entry says besides."""


class VectorStoreServer(EmbeddingServer):
    """The service; behaves well until told otherwise."""

    is_read = True

    def __init__(self, files: Mapping[str, StoredFile], *, page: int = 100) -> None:
        super().__init__()
        self.files = dict(files)
        self.page = page
        """At most so many files are on a page, whatever is asked for."""
        self.behave(well)

    def paths(self) -> list[str]:
        """What was asked for."""
        return [request.path for request in self.requests]


def well(handler: Handler, request: Request) -> None:
    """As it should."""
    code, answer = answer_to(handler, request)
    handler.reply_json(answer, code)


def answer_to(handler: Handler, request: Request) -> tuple[int, Any]:
    """What a good service answers."""
    server = handler.server.owner
    assert isinstance(server, VectorStoreServer)
    url = urlsplit(request.path)
    query = {key: values[-1] for key, values in parse_qs(url.query).items()}
    if url.path == f"/v1/vector_stores/{STORE}/files":
        return 200, listing(server, query)
    if match := re.fullmatch(rf"/v1/vector_stores/{STORE}/files/([^/]+)/content", url.path):
        if match[1] in server.files:
            return 200, content(server.files[match[1]].chunks)
    elif match := re.fullmatch(r"/v1/files/([^/]+)", url.path):
        file = server.files.get(match[1])
        if file is not None and file.name is not None:
            return 200, {"id": match[1], "object": "file", "filename": file.name}
    return 404, NOT_FOUND


def listing(server: VectorStoreServer, query: Mapping[str, str]) -> dict[str, Any]:
    """One page of the files."""
    known = list(server.files)
    start = known.index(query["after"]) + 1 if "after" in query else 0
    size = min(int(query.get("limit", "20")), server.page)
    found = known[start : start + size]
    data = [
        {"id": one, "object": "vector_store.file", "status": "completed"} | server.files[one].fields
        for one in found
    ]
    return {
        "object": "list",
        "data": data,
        "first_id": found[0] if found else None,
        "last_id": found[-1] if found else None,
        "has_more": start + size < len(known),
    }


def content(chunks: tuple[str, ...]) -> dict[str, Any]:
    """The chunks of a file."""
    return {
        "object": "vector_store.file_content.page",
        "data": [{"type": "text", "text": chunk} for chunk in chunks],
        "has_more": False,
        "next_page": None,
    }


def only(part: str, behaviour: Behaviour) -> Behaviour:
    """Well, but for paths with this part."""

    def behave(handler: Handler, request: Request) -> None:
        (behaviour if part in request.path else well)(handler, request)

    return behave
