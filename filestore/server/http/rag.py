"""HTTP for a folder of collections, as services that keep one index a folder have it.

One rule: jobs are done in threads of their own, so that other routes do not wait for them. Errors
and the size of bodies are handled as for every other route.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from filestore.core.errors import FilestoreError, UsageError
from filestore.server.collection import (
    CollectionQuery,
    IndexRequest,
    check_name,
    checked_info,
    documents_in,
)
from filestore.server.http.answers import answer, json_object
from filestore.server.operations import decoded
from filestore.store.threads import BusyError, ReadOnlyError

if TYPE_CHECKING:
    from filestore.server.collections import Collections

T = TypeVar("T")
Values = dict[str, Any]
_READERS: Final = 8
_WRITERS: Final = 2
_MOST_WAITING: Final = {"read": 256, "write": 16}
"""Jobs that wait or are being done; one more is refused."""
_USUAL_K: Final = 5


class NoRouteError(FilestoreError, LookupError):
    """There is no such route."""


class Workers:
    """Threads for jobs that wait for a disk or a model; writers apart from readers."""

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


Asked = Callable[["Collections", Workers, Request], Awaitable[Values]]


def _of(kind: str, method: str) -> Asked:
    """Calls a method of `Collections` that takes the name of one alone, or none."""

    async def asked(collections: "Collections", workers: Workers, request: Request) -> Values:
        names = map(check_name, request.path_params.values())
        return await workers.do(kind, partial(getattr(collections, method), *names))

    return asked


async def _query(collections: "Collections", workers: Workers, request: Request) -> Values:
    name = check_name(request.path_params["name"])
    given = decoded(CollectionQuery, json_object(await request.body()), "/rag/NAME/query")
    k = _one(given.k, given.top_k, "k and top_k") or _USUAL_K
    return await workers.do(
        "read", lambda: collections.query(name, given.query, k=k, mode=given.mode)
    )


async def _index(collections: "Collections", workers: Workers, request: Request) -> Values:
    collections.require_writes()
    data = await request.body()

    def job() -> Values:
        given = decoded(IndexRequest, json_object(data), "/rag/index")
        return collections.index(
            check_name(_one(given.rag_name, given.name, "rag_name and name")),
            documents_in(given.documents),
            dataset_info=checked_info(given.dataset_info),
            overwrite=given.overwrite,
        )

    return await workers.do("write", job)


def _one(first: T, second: T, both: str) -> T:
    """What one of two keys of the same meaning says.

    Raises:
        UsageError: They differ.
    """
    if first is not None and second not in (None, first):
        raise UsageError(f"{both} differ", remedy="send one of them")
    return second if first is None else first


class CollectionRoute(Struct, frozen=True):
    """One route below `/rag`."""

    method: str
    path: str
    about: str
    answer: str
    """The shape of what it answers; see JSON.md."""
    asked: Asked
    given: type[Struct] | None = None
    """What its body holds."""
    changes: bool = False


COLLECTION_ROUTES: Final = (
    CollectionRoute("GET", "/rag/list", "List the collections", "RagList", _of("read", "listed")),
    CollectionRoute(
        "POST",
        "/rag/index",
        "Index documents as a collection, or replace it",
        "RagIndexed",
        _index,
        IndexRequest,
        changes=True,
    ),
    CollectionRoute(
        "POST",
        "/rag/{name}/query",
        "Find the documents that answer a question",
        "RagAnswer",
        _query,
        CollectionQuery,
    ),
    CollectionRoute(
        "GET",
        "/rag/{name}/index/status",
        "Show the state of a collection",
        "RagStatus",
        _of("read", "status"),
    ),
    CollectionRoute(
        "POST",
        "/rag/{name}/index/reload",
        "Load what changed on the disk",
        "RagReloaded",
        _of("write", "reload"),
        changes=True,
    ),
    CollectionRoute(
        "DELETE",
        "/rag/{name}",
        "Delete a collection with its folder",
        "RagDeleted",
        _of("write", "delete"),
        changes=True,
    ),
)


async def _nothing(collections: "Collections", workers: Workers, request: Request) -> Values:
    routes = "; ".join(f"{one.method} {one.path}" for one in COLLECTION_ROUTES)
    remedy = routes.replace("{name}", "NAME")
    raise NoRouteError("there is no such route below /rag", remedy=remedy)


def collection_routes(collections: "Collections | None") -> list[Route]:
    """The routes below `/rag`; None where no folder of collections was named."""
    workers = Workers()

    def route(path: str, asked: Asked, *methods: str, changes: bool = False) -> Route:
        async def respond(request: Request) -> Response:
            if collections is None:
                raise NoRouteError(
                    "no folder of collections is served",
                    remedy="start the server with --collections FOLDER",
                )
            if changes and not request.scope["caller"].writes:
                raise ReadOnlyError(
                    "this token may read only", remedy="filestore token add NAME --write"
                )
            return answer(await asked(collections, workers, request))

        return Route(path, respond, methods=methods)

    return [
        *(route(one.path, one.asked, one.method, changes=one.changes) for one in COLLECTION_ROUTES),
        # Anything else gets an error of the same form.
        *(
            route(path, _nothing, "GET", "POST", "PUT", "PATCH", "DELETE")
            for path in ("/rag", "/rag/{rest:path}")
        ),
    ]
