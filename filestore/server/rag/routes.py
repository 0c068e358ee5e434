"""HTTP for a folder of collections, as services that keep one index a folder have it.

One rule: whatever is asked, the answer is JSON, and an error says what, the details, and what to
do. Jobs are done in threads of their own, so that nobody else waits for them.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from filestore.core.errors import FilestoreError, UsageError
from filestore.core.schema import plain
from filestore.fs import disk
from filestore.server import refusals
from filestore.server.decoding import decoded, json_object
from filestore.server.rag.collections import Collections, NoSpaceError
from filestore.server.rag.documents import Index, Query, checked_info, documents_in
from filestore.server.rag.folder import check_name
from filestore.server.stores import BusyError

T = TypeVar("T")
Values = dict[str, Any]
MOST_BODY_BYTES: Final = 64 * 1024 * 1024
"""Of the documents of one collection; more are refused before they are read."""
_MOST_ASKED_BYTES: Final = 1024 * 1024
"""Of any other request."""
_READERS: Final = 8
_WRITERS: Final = 2
_MOST_WAITING: Final = {"read": 256, "write": 16}
"""Jobs that wait or are being done; one more is refused."""
_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NoSpaceError, 507),
    (disk.WriteFailedError, 507),
)
_USUAL_K: Final = 5
_JSON: Final = "application/json"


class NoRouteError(FilestoreError, LookupError):
    """There is no such route."""

    def __str__(self) -> str:
        return self.message


class Workers:
    """Threads for jobs that wait for a disk or a model; those that write apart from the others."""

    def __init__(self) -> None:
        self._pools = {
            "read": ThreadPoolExecutor(_READERS, thread_name_prefix="rag-read"),
            "write": ThreadPoolExecutor(_WRITERS, thread_name_prefix="rag-write"),
        }
        self._waiting = dict.fromkeys(self._pools, 0)
        self._lock = threading.Lock()

    async def do(self, kind: str, job: Callable[[], T]) -> T:
        """What a function gives.

        Raises:
            BusyError: Too many wait.
        """
        with self._lock:
            if self._waiting[kind] >= _MOST_WAITING[kind]:
                raise BusyError("too many requests wait", remedy="ask again later")
            self._waiting[kind] += 1
        future = self._pools[kind].submit(job)
        future.add_done_callback(lambda _: self._done(kind))
        # A client that goes away does not stop what was begun.
        return await asyncio.shield(asyncio.wrap_future(future))

    def _done(self, kind: str) -> None:
        with self._lock:
            self._waiting[kind] -= 1


def routes(collections: Collections | None) -> list[Route]:
    """The routes below `/rag`; None where no folder of collections was named."""
    door = _Door(collections)
    return [
        Route("/rag/list", door.told(_list), methods=["GET"]),
        Route("/rag/index", door.told(_index), methods=["POST"]),
        Route("/rag/{name}/query", door.told(_query), methods=["POST"]),
        Route(
            "/rag/{name}/index/status", door.told(_of("read", Collections.status)), methods=["GET"]
        ),
        Route(
            "/rag/{name}/index/reload",
            door.told(_of("write", Collections.reload)),
            methods=["POST"],
        ),
        Route("/rag/{name}", door.told(_of("write", Collections.delete)), methods=["DELETE"]),
        # Whatever else is asked gets an error of the same form.
        Route("/rag", door.told(_nothing), methods=_METHODS),
        Route("/rag/{rest:path}", door.told(_nothing), methods=_METHODS),
    ]


_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]
Asked = Callable[[Collections, Workers, Request], Awaitable[dict[str, Any]]]


class _Door:
    """Lets a function answer a request."""

    def __init__(self, collections: Collections | None) -> None:
        self._collections = collections
        self._workers = Workers()

    def told(self, asked: Asked) -> Callable[[Request], Awaitable[Response]]:
        async def tell(request: Request) -> Response:
            try:
                if self._collections is None:
                    raise NoRouteError(
                        "no folder of collections is served",
                        remedy="start the server with --collections FOLDER",
                    )
                return _answer(await asked(self._collections, self._workers, request))
            except FilestoreError as error:
                return _refusal(error)

        return tell


def _answer(value: dict[str, Any], status: int = 200) -> Response:
    # JSON has no NaN: orjson writes null for it.
    data = orjson.dumps(plain(value), option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    return Response(data, status, {"X-Content-Type-Options": "nosniff"}, _JSON)


def _refusal(error: FilestoreError) -> Response:
    fits = (status for kind, status in _STATUS if isinstance(error, kind))
    status = next(fits, refusals.status_of(error))
    response = _answer(refusals.body_of(error, "/rag"), status)
    if status == 503:
        response.headers["Retry-After"] = "1"
    if isinstance(error, (refusals.TooLargeError, refusals.TooSlowError)):
        # What the client goes on to send is not read.
        response.headers["Connection"] = "close"
    return response


async def _list(collections: Collections, workers: Workers, request: Request) -> Values:
    return await workers.do("read", collections.listed)


def _of(kind: str, do: Callable[[Collections, str], Values]) -> Asked:
    """What a collection is asked by its name alone."""

    async def asked(collections: Collections, workers: Workers, request: Request) -> Values:
        name = _named(request)
        return await workers.do(kind, lambda: do(collections, name))

    return asked


async def _query(collections: Collections, workers: Workers, request: Request) -> Values:
    name = _named(request)
    body = await _body(request, _MOST_ASKED_BYTES)
    given = decoded(Query, json_object(body), "/rag/NAME/query")
    k = _one(given.k, given.top_k, "k and top_k") or _USUAL_K
    return await workers.do(
        "read", lambda: collections.query(name, given.query, k=k, mode=given.mode)
    )


async def _index(collections: Collections, workers: Workers, request: Request) -> Values:
    collections.require_writes()
    data = await _body(request, MOST_BODY_BYTES)

    def job() -> Values:
        given = decoded(Index, json_object(data), "/rag/index")
        return collections.index(
            check_name(_one(given.rag_name, given.name, "rag_name and name")),
            documents_in(given.documents),
            dataset_info=checked_info(given.dataset_info),
            overwrite=given.overwrite,
        )

    return await workers.do("write", job)


async def _nothing(collections: Collections, workers: Workers, request: Request) -> Values:
    raise NoRouteError(
        "there is no such route below /rag",
        remedy="GET /rag/list; POST /rag/index; POST /rag/NAME/query; GET /rag/NAME/index/status;"
        " POST /rag/NAME/index/reload; DELETE /rag/NAME",
    )


def _one(first: T, second: T, both: str) -> T:
    """What one of two keys of the same meaning says.

    Raises:
        UsageError: They differ.
    """
    if first is not None and second not in (None, first):
        raise UsageError(f"{both} differ", remedy="send one of them")
    return second if first is None else first


def _named(request: Request) -> str:
    return check_name(request.path_params["name"])


async def _body(request: Request, most: int) -> bytes:
    """What a client sends, no more of it than may be.

    Raises:
        TooLargeError: It is more.
    """
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > most:
            raise refusals.TooLargeError(
                f"the request has more than {most:,} bytes",
                remedy="send fewer documents, or add them with filestore add",
            )
    return bytes(data)
