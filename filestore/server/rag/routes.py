"""HTTP for a folder of collections, as services that keep one index a folder have it.

One rule: jobs are done in threads of their own, so that nobody else waits for them. What is refused
is told, and how large a body may be is judged, as for every other route.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from filestore.core.errors import FilestoreError, UsageError
from filestore.server.operations import decoded
from filestore.server.rag.collection import check_name
from filestore.server.rag.collections import Collections
from filestore.server.rag.documents import Index, Query, checked_info, documents_in
from filestore.server.refusals import answer, json_object
from filestore.server.stores import BusyError

T = TypeVar("T")
Values = dict[str, Any]
_READERS: Final = 8
_WRITERS: Final = 2
_MOST_WAITING: Final = {"read": 256, "write": 16}
"""Jobs that wait or are being done; one more is refused."""
_USUAL_K: Final = 5


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

        def done(_: object) -> None:
            with self._lock:
                self._waiting[kind] -= 1

        future.add_done_callback(done)
        # A client that goes away does not stop what was begun.
        return await asyncio.shield(asyncio.wrap_future(future))


def routes(collections: Collections | None) -> list[Route]:
    """The routes below `/rag`; None where no folder of collections was named."""
    workers = Workers()

    def route(path: str, asked: Asked, *methods: str) -> Route:
        async def tell(request: Request) -> Response:
            if collections is None:
                raise NoRouteError(
                    "no folder of collections is served",
                    remedy="start the server with --collections FOLDER",
                )
            return answer(await asked(collections, workers, request))

        return Route(path, tell, methods=methods)

    return [
        route("/rag/list", _of("read", Collections.listed), "GET"),
        route("/rag/index", _index, "POST"),
        route("/rag/{name}/query", _query, "POST"),
        route("/rag/{name}/index/status", _of("read", Collections.status), "GET"),
        route("/rag/{name}/index/reload", _of("write", Collections.reload), "POST"),
        route("/rag/{name}", _of("write", Collections.delete), "DELETE"),
        # Whatever else is asked gets an error of the same form.
        route("/rag", _nothing, *_METHODS),
        route("/rag/{rest:path}", _nothing, *_METHODS),
    ]


_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]
Asked = Callable[[Collections, Workers, Request], Awaitable[dict[str, Any]]]


def _of(kind: str, do: Callable[..., Values]) -> Asked:
    """What a collection is asked by its name alone, or all of them."""

    async def asked(collections: Collections, workers: Workers, request: Request) -> Values:
        names = map(check_name, request.path_params.values())
        return await workers.do(kind, partial(do, collections, *names))

    return asked


async def _query(collections: Collections, workers: Workers, request: Request) -> Values:
    name = check_name(request.path_params["name"])
    given = decoded(Query, json_object(await request.body()), "/rag/NAME/query")
    k = _one(given.k, given.top_k, "k and top_k") or _USUAL_K
    return await workers.do(
        "read", lambda: collections.query(name, given.query, k=k, mode=given.mode)
    )


async def _index(collections: Collections, workers: Workers, request: Request) -> Values:
    collections.require_writes()
    data = await request.body()

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
