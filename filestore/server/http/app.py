"""The application: every route of a server, behind its gate and its limits.

One rule of documents that are uploaded: what could not be added leaves nothing behind, and a
document that is there is replaced only where that is asked for.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from filestore._version import __version__
from filestore.core.errors import (
    FilestoreError,
    RefusedError,
    UsageError,
    extra_line,
    missing_packages,
    on_error,
)
from filestore.core.paths import is_below
from filestore.core.safe_text import brief, listed, shown_path
from filestore.fs import disk
from filestore.fs.database import remove
from filestore.history.permission import require_name
from filestore.server.http import pages
from filestore.server.http.answers import (
    EVENT_STREAM,
    JSON,
    UNUSABLE,
    Events,
    TooLargeError,
    TooSlowError,
    answer,
    failure,
    json_object,
)
from filestore.server.http.limits import Gate, Limits, Metrics
from filestore.server.http.rag import COLLECTION_ROUTES, collection_routes
from filestore.server.operations import ROUTES, Operation
from filestore.server.stores import store_names
from filestore.sidecar.refusals import refuse_useless
from filestore.verify.names import why_no_name, why_unportable

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.types import ASGIApp

    from filestore.server.collections import Collections
    from filestore.server.stores import Caller, Stores
    from filestore.store import Store


_FIELDS: Final = tuple(pages.UPLOAD["properties"])
"""Of the form that uploads documents."""
_LOG: Final = logging.getLogger("filestore.server")


class AppParts(Struct, frozen=True, kw_only=True):
    """What an application is made of."""

    stores: "Stores"
    token: str | None
    is_local: bool
    """Whether it only answers by names of this machine, and by its own."""
    names: Collection[str] = ()
    """Its own, such as that of a proxy in front of it."""
    configuration: str = ""
    """The user's folder of settings, where tokens of clients are; "" for none."""
    collections: "Collections | None" = None
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the server is to end."""


def make_app(parts: AppParts) -> "ASGIApp":
    """The application, from the outside in: gate, limits, figures, routes."""
    stores = parts.stores
    events = {store.name: Events(store) for store in stores}
    routes, running = _agents(stores)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with running:
            yield
        for one in events.values():
            one.close()

    async def health(_: Request) -> Response:
        return answer({"status": "ok", "version": __version__})

    async def served(request: Request) -> Response:
        may_write = caller_of(request).writes
        listed = [{"name": one.name, "writes": one.access.writes and may_write} for one in stores]
        return answer({"stores": listed})

    async def listen(request: Request) -> Response:
        store = stores.named(request.query_params.get("store", ""))
        if request.method == "HEAD":
            # A client that asks for no body does not wait for its end.
            return Response(media_type=EVENT_STREAM)
        return events[store.name].response(caller_of(request))

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/stores", served),
            Route("/events", listen),
            Route("/openapi.json", lambda _: answer(pages.openapi(COLLECTION_ROUTES))),
            Route("/docs", _docs),
            Route("/metrics", lambda _: metrics.response()),
            *(_route(stores, one) for one in ROUTES.values()),
            *pages.page_routes(),
            *routes,
            *collection_routes(parts.collections),
        ],
        lifespan=lifespan,
        exception_handlers={
            HTTPException: _failed,
            FilestoreError: _failed,
            ClientDisconnect: lambda _, __: Response(status_code=400),
            Exception: _failed,
        },
    )
    metrics = Metrics(app, stores)
    # A redirect would name a whole address, without the TLS of a proxy.
    app.router.redirect_slashes = False
    return Gate(
        Limits(metrics, parts.ending),
        token=parts.token,
        is_local=parts.is_local,
        names=parts.names,
        configuration=parts.configuration,
    )


def _agents(
    stores: "Stores",
) -> tuple[list[Route], contextlib.AbstractAsyncContextManager[None]]:
    """The routes of MCP, and what runs while they are answered."""
    if not missing_packages("mcp"):
        from filestore.server.agents.server import HttpDoor

        door = HttpDoor(stores)
        return door.routes(), door.running()

    async def missing(request: Request) -> Response:
        error = FilestoreError("this server answers no agents", remedy=extra_line("server"))
        return failure(error, request.url.path, status=501)

    methods = ["GET", "POST", "DELETE"]
    routes = [Route(path, missing, methods=methods) for path in ("/mcp", "/mcp/")]
    return routes, contextlib.nullcontext()


async def _docs(_: Request) -> Response:
    policy = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    text = "".join(pages.page(COLLECTION_ROUTES))
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})


async def _failed(request: Request, error: Exception) -> Response:
    """Every error in one form; of an unexpected one nothing that was asked or found."""
    if isinstance(error, HTTPException):
        # What Starlette refuses.
        problem = FilestoreError(f"{error.detail}; see /docs")
        response = failure(problem, request.url.path, status=error.status_code)
        response.headers.update(error.headers or {})
        return response
    if not isinstance(error, FilestoreError):
        # The traceback goes to the person who runs the server.
        _LOG.error("a request could not be answered", exc_info=error)
        fault = FilestoreError(
            "this request could not be answered: a fault of filestore",
            remedy="the output of 'filestore serve' says more",
        )
        return failure(fault, request.url.path, status=500)
    response = failure(error, request.url.path)
    if response.status_code == 503:
        response.headers["Retry-After"] = "1"
    if isinstance(error, (TooLargeError, TooSlowError)):
        # What the client goes on to send is not read.
        response.headers["Connection"] = "close"
    return response


def _add(stores: "Stores") -> Callable[[Request], Awaitable[Response]]:
    """Documents by their path, or by what they hold."""
    operation = ROUTES["add"]

    async def add(request: Request) -> Response:
        if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            given = await given_in(request, operation)
            named = store_names(given.pop("store", ""))
            added = await stores.named(named).ask(operation, given, caller_of(request))
            return _report(added)
        require_no_query(request)
        try:
            async with request.form(max_files=_MOST_FILES, max_fields=10) as form:
                for name in form:
                    if name not in _FIELDS:
                        known = ", ".join(_FIELDS)
                        raise UsageError(f"unknown field {brief(name)}: the form has: {known}")
                if _text(form, "replace") not in ("", "true", "false"):
                    raise UsageError("replace: expected true or false")
                given_files = [one for one in form.getlist("file") if not isinstance(one, str)]
                if len(given_files) < len(form.getlist("file")):
                    raise UsageError(
                        "file: expected a document with a name; send a filename with it"
                    )
                store = stores.named(_text(form, "store"))
                store.require_writes(caller_of(request))
                into, replace = _text(form, "into"), _text(form, "replace") == "true"
                documents = [
                    Upload(name=one.filename or "", data=await one.read()) for one in given_files
                ]
        except (HTTPException, MultiPartException) as error:
            raise UsageError("the form cannot be read", detail=str(error)) from error
        if not documents:
            raise UsageError("no document was sent: send it as a field 'file' of the form")
        added = await store.write(
            lambda opened: take_uploads(opened, documents, into=into, replace=replace),
            caller_of(request),
        )
        store.report_change(operation.route, added)
        return _report(added)

    return add


def _report(added: dict[str, Any]) -> Response:
    """What was added; where nothing could be, that is no success."""
    is_done = not added["failed"] or any(added[kind] for kind in ("added", "updated", "unchanged"))
    return answer(added, status=200 if is_done else UNUSABLE)


def _text(form: "FormData", name: str) -> str:
    value = form.get(name, "")
    if not isinstance(value, str) or len(value) > 255:
        raise UsageError(f"{name}: expected a short text")
    return value


def _route(stores: "Stores", operation: Operation) -> Route:
    """POST with JSON, and GET where nothing is changed."""

    async def ask(request: Request) -> Response:
        given = await given_in(request, operation)
        named = store_names(given.pop("store", ""), several=operation.name == "search")
        if isinstance(named, list):
            return answer(await stores.search(named, operation, given, caller_of(request)))
        store = stores.named(named)
        return answer(await store.ask(operation, given, caller_of(request)))

    return Route(
        f"/{operation.route}",
        _add(stores) if operation is ROUTES["add"] else ask,
        methods=["POST"] if operation.writes else ["GET", "POST"],
    )


def caller_of(request: Request) -> "Caller":
    """Who asks, as the gate found."""
    caller: Caller = request.scope["caller"]
    return caller


async def given_in(request: Request, operation: Operation) -> dict[str, Any]:
    """What a client gives: the JSON of its body, or the query of the address.

    Raises:
        UsageError: It is no JSON object.
    """
    if request.method in ("GET", "HEAD"):
        given: dict[str, Any] = {}
        known = operation.schema["properties"]
        lists = {name for name, one in known.items() if one.get("type") == "array"}
        lists |= {"store"} if operation.name == "search" else set()
        for name in request.query_params:
            values = request.query_params.getlist(name)
            if len(values) > 1 and name not in lists:
                raise UsageError(f"{brief(name)} appears twice: send it once")
            given[name] = values if len(values) > 1 else values[0]
        return given
    require_no_query(request)
    data = await request.body()
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if data and kind != JSON:
        raise UsageError(f"expected {JSON}: send Content-Type: {JSON}")
    return json_object(data or b"{}")


def require_no_query(request: Request) -> None:
    """Reject query parameters of a request whose body has everything.

    Raises:
        UsageError: There are some.
    """
    if request.query_params:
        names = listed(map(brief, request.query_params))
        raise UsageError(
            f"{request.method} takes no values in the address, found {names}"
            ": send them in the body",
        )


_MOST_FILES: Final = 1_000
"""In one request."""


class Upload(Struct, frozen=True, kw_only=True):
    """One document as it came."""

    name: str
    data: bytes


class DocumentThereError(RefusedError):
    """A document of this name is there, and holds something else."""


def take_uploads(
    store: "Store", uploads: Sequence[Upload], *, into: str, replace: bool
) -> dict[str, Any]:
    """Write documents and add them: each a resource, or all of them one.

    Args:
        store: Open, to be written.
        uploads: The documents.
        into: The name of the one resource that they are; "" for one each.
        replace: Whether documents of the same names go.

    Raises:
        UsageError: A name cannot be used, or two documents have the same.
        DocumentThereError: One is there, and holds something else.
        FilestoreError: What `Store.add` raises.
    """
    refuse_useless(store.places, "add")
    names = [one.name for one in uploads]
    for name in (*names, *([into] if into else [])):
        if reason := why_no_name(name) or why_unportable(name):
            raise UsageError(f"{brief(name)} is not a name for a document: {reason}; rename it")
    folded = {name.casefold() for name in names}
    if len(folded) < len(names):
        raise UsageError("two documents have the same name: rename one of them")
    folder = os.path.join(store.places.source, into) if into else store.places.source
    if not is_below(os.path.realpath(folder), os.path.realpath(store.root)):
        raise RefusedError(
            "the folder of originals leads out of the store: have it inside the store"
        )
    if (door := store.places.door) is not None:
        for name in names:
            require_name(store.places, door, "/".join(filter(None, ("source", into, name))))
    _require_free_names(folder, names)
    written = _Written(folder, uploads, replace=replace)
    with on_error(written.put_back, names):
        written.write()
        paths = [folder] if into else [os.path.join(folder, name) for name in names]
        report = store.add(*paths, into=into or None)
    failed = {os.path.basename(one.source) for one in report.failed}
    written.put_back([name for name in names if name in failed or (into and into in failed)])
    return report.to_dict()


def _require_free_names(folder: str, names: Sequence[str]) -> None:
    """Refuse names that something else has: a file where a folder is to be, or the other way.

    Raises:
        DocumentThereError: One is taken.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise DocumentThereError(
            f"{shown_path(os.path.basename(folder))} is a document, and no folder of several"
            ": choose another name with into",
        )
    for name in names:
        path = os.path.join(folder, name)
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
            raise DocumentThereError(
                f"{shown_path(name)} already exists, and is not a plain file"
                ": upload it under another name",
            )


class _Written:
    """Documents in the folder of originals, and what was there before."""

    def __init__(self, folder: str, uploads: Sequence[Upload], *, replace: bool) -> None:
        self._folder = folder
        self._uploads = {one.name: one.data for one in uploads}
        self._replace = replace
        self._before: dict[str, bytes | None] = {}

    def write(self) -> None:
        """Write all of them.

        Raises:
            DocumentThereError: One is there, and holds something else.
            WriteFailedError: The disk refused.
        """
        there: dict[str, bytes] = {}
        for name in self._uploads:
            with contextlib.suppress(FileNotFoundError):
                there[name] = disk.read_path(os.path.join(self._folder, name))
        others = [name for name, data in there.items() if data != self._uploads[name]]
        if others and not self._replace:
            raise DocumentThereError(
                f"{shown_path(others[0])} is there already, with another content"
                ": upload it under another name, or send replace=true",
            )
        try:
            disk.make_folders(self._folder)
            for name, data in self._uploads.items():
                if there.get(name) != data:
                    self._before[name] = there.get(name)
                    disk.write_path(os.path.join(self._folder, name), data)
        except OSError as error:
            raise disk.write_failed(self._folder, error) from error

    def put_back(self, names: Sequence[str]) -> None:
        """Have it as it was, of documents that could not be added."""
        for name in names:
            if name not in self._before:
                continue
            path, before = os.path.join(self._folder, name), self._before.pop(name)
            if before is None:
                remove(path)
            else:
                disk.write_path(path, before)
        with contextlib.suppress(OSError):
            # A folder that was made for them; one that holds others stays.
            os.rmdir(self._folder)
