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
from filestore.core.spelling import did_you_mean
from filestore.fs import disk
from filestore.search.query import MODES, Mode
from filestore.server import refusals
from filestore.server.operations import LONGEST_QUERY, MOST_HITS
from filestore.server.rag.collections import Collections, NoSpaceError
from filestore.server.rag.documents import documents_in, info_in
from filestore.server.rag.names import check_name
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
        Route("/rag/{name}/index/status", door.told(_status), methods=["GET"]),
        Route("/rag/{name}/index/reload", door.told(_reload), methods=["POST"]),
        Route("/rag/{name}", door.told(_delete), methods=["DELETE"]),
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


async def _status(collections: Collections, workers: Workers, request: Request) -> Values:
    name = _named(request)
    return await workers.do("read", lambda: collections.status(name))


async def _query(collections: Collections, workers: Workers, request: Request) -> Values:
    name = _named(request)
    given = _object(await _body(request, _MOST_ASKED_BYTES))
    _check_keys(given, ("query", "k", "top_k", "mode"))
    query, k, mode = _query_in(given), _k_in(given), _mode_in(given)
    return await workers.do("read", lambda: collections.query(name, query, k=k, mode=mode))


async def _index(collections: Collections, workers: Workers, request: Request) -> Values:
    collections.require_writes()
    data = await _body(request, MOST_BODY_BYTES)

    def job() -> Values:
        given = _object(data)
        _check_keys(given, ("rag_name", "name", "documents", "dataset_info", "overwrite"))
        names = [given[key] for key in ("rag_name", "name") if given.get(key) is not None]
        if len(set(map(str, names))) > 1:
            raise UsageError("rag_name and name differ", remedy="send one of them")
        overwrite = given.get("overwrite", False)
        if not isinstance(overwrite, bool):
            raise UsageError("overwrite: expected true or false", remedy="leave it out")
        return collections.index(
            check_name(names[0] if names else None),
            documents_in(given.get("documents")),
            dataset_info=info_in(given.get("dataset_info")),
            overwrite=overwrite,
        )

    return await workers.do("write", job)


async def _reload(collections: Collections, workers: Workers, request: Request) -> Values:
    name = _named(request)
    return await workers.do("write", lambda: collections.reload(name))


async def _delete(collections: Collections, workers: Workers, request: Request) -> Values:
    name = _named(request)
    return await workers.do("write", lambda: collections.delete(name))


async def _nothing(collections: Collections, workers: Workers, request: Request) -> Values:
    raise NoRouteError(
        "there is no such route below /rag",
        remedy="GET /rag/list; POST /rag/index; POST /rag/NAME/query; GET /rag/NAME/index/status;"
        " POST /rag/NAME/index/reload; DELETE /rag/NAME",
    )


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


def _object(data: bytes) -> Values:
    try:
        given = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UsageError(
            "the body is no JSON", detail=str(error), remedy="send a JSON object"
        ) from error
    if not isinstance(given, dict):
        raise UsageError("the body is no JSON object", remedy="send a JSON object")
    return given


def _check_keys(given: Values, known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(
                f"unknown key {key[:80]!r}{did_you_mean(key[:80], known)}",
                remedy=f"send no others than {', '.join(known)}",
            )


def _query_in(given: Values) -> str:
    query = given.get("query")
    if not isinstance(query, str) or not query.strip() or len(query) > LONGEST_QUERY:
        raise UsageError(
            f"query: expected a text of 1 to {LONGEST_QUERY:,} characters",
            remedy='send "query": "TEXT"',
        )
    return query


def _k_in(given: Values) -> int:
    found = [given[key] for key in ("k", "top_k") if given.get(key) is not None]
    k = found[0] if found else _USUAL_K
    if isinstance(k, float) and k.is_integer():
        # JSON has one kind of number.
        k = int(k)
    if any(one != k for one in found) or type(k) is not int or not 1 <= k <= MOST_HITS:
        raise UsageError(
            f"k: expected a whole number from 1 to {MOST_HITS:,}", remedy='send "k": 5'
        )
    return k


def _mode_in(given: Values) -> Mode:
    mode: Mode = given.get("mode", "hybrid")
    if mode not in MODES:
        raise UsageError(
            f"mode: expected one of {', '.join(MODES)}", remedy='send "mode": "hybrid"'
        )
    return mode
