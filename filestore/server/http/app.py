"""The application: every route of a server, behind its gate and its limits."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from filestore._version import __version__
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.safe_text import brief, listed
from filestore.server.agents.server import HttpDoor
from filestore.server.http import description, uploads
from filestore.server.http.events import Events
from filestore.server.http.limits import Gate, Limits, Metrics
from filestore.server.operations import ROUTES, Operation
from filestore.server.page import routes as page_routes
from filestore.server.rag.routes import routes as collection_routes
from filestore.server.refusals import (
    EVENT_STREAM,
    JSON,
    UNUSABLE,
    TooLargeError,
    TooSlowError,
    answer,
    body_of,
    json_object,
    status_of,
)
from filestore.server.stores import Stores

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.types import ASGIApp

    from filestore.server.rag.collections import Collections

_FIELDS: Final = tuple(description.UPLOAD["properties"])
"""Of the form that uploads documents."""
_LOG: Final = logging.getLogger("filestore.server")


class Parts(Struct, frozen=True, kw_only=True):
    """What an application is made of."""

    stores: "Stores"
    token: str | None
    is_local: bool
    """Whether it only answers by names of this machine."""
    collections: "Collections | None" = None
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the server is to end."""


def make_app(parts: Parts) -> "ASGIApp":
    """The application, from the outside in: gate, limits, figures, routes."""
    stores = parts.stores
    events = {store.name: Events(store) for store in stores}
    agents = HttpDoor(stores)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with agents.running():
            yield
        for one in events.values():
            one.close()

    async def served(_: Request) -> Response:
        listed = [{"name": one.name, "writes": one.access.writes} for one in stores]
        return answer({"stores": listed})

    async def listen(request: Request) -> Response:
        store = stores.named(request.query_params.get("store", ""))
        if request.method == "HEAD":
            # Whoever asks for no body waits for no end of it.
            return Response(media_type=EVENT_STREAM)
        return events[store.name].response()

    app = Starlette(
        routes=[
            Route("/health", _health),
            Route("/stores", served),
            Route("/events", listen),
            Route("/openapi.json", _openapi),
            Route("/docs", _docs),
            Route("/metrics", lambda _: metrics.response()),
            *(_route(stores, one) for one in ROUTES.values()),
            *page_routes(),
            *agents.routes(),
            *collection_routes(parts.collections),
        ],
        lifespan=lifespan,
        exception_handlers={
            HTTPException: _refused,
            FilestoreError: _told,
            ClientDisconnect: _gone,
            Exception: _fault,
        },
    )
    metrics = Metrics(app, stores)
    return Gate(Limits(metrics, parts.ending), token=parts.token, is_local=parts.is_local)


async def _refused(request: Request, error: Exception) -> Response:
    """What Starlette refuses, as everything else is refused."""
    assert isinstance(error, HTTPException)
    told = FilestoreError(error.detail, remedy="see /docs")
    response = answer(body_of(told, request.url.path), status=error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, FilestoreError)
    response = answer(body_of(error, request.url.path), status=status_of(error))
    if response.status_code == 503:
        response.headers["Retry-After"] = "1"
    if isinstance(error, (TooLargeError, TooSlowError)):
        # What the client goes on to send is not read.
        response.headers["Connection"] = "close"
    return response


async def _gone(_: Request, __: Exception) -> Response:
    """Nobody reads it."""
    return Response(status_code=400)


async def _fault(request: Request, error: Exception) -> Response:
    """What nobody foresaw: that it happened, and not what was asked or found."""
    # The traceback goes to the person who runs the server.
    _LOG.error("a request could not be answered", exc_info=error)
    fault = FilestoreError(
        "this request could not be answered: a fault of filestore",
        remedy="the output of 'filestore serve' says more",
    )
    return answer(body_of(fault, request.url.path), status=500)


async def _health(_: Request) -> Response:
    return answer({"status": "ok", "version": __version__})


async def _openapi(_: Request) -> Response:
    return answer(description.openapi())


async def _docs(_: Request) -> Response:
    policy = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    return HTMLResponse(description.page(), headers={"Content-Security-Policy": policy})


def _add(stores: "Stores") -> Callable[[Request], Awaitable[Response]]:
    """Documents by their path, or by what they hold."""
    operation = ROUTES["add"]

    async def add(request: Request) -> Response:
        if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            given = await given_in(request, operation)
            return _report(await operation.ask(stores.named(named_in(given)), given))
        require_no_query(request)
        try:
            async with request.form(max_files=uploads.MOST_FILES, max_fields=10) as form:
                for name in form:
                    if name not in _FIELDS:
                        known = ", ".join(_FIELDS)
                        raise UsageError(
                            f"unknown field {brief(name)}", remedy=f"the form has: {known}"
                        )
                if _text(form, "replace") not in ("", "true", "false"):
                    raise UsageError("replace: expected true or false")
                given_files = [one for one in form.getlist("file") if not isinstance(one, str)]
                if len(given_files) < len(form.getlist("file")):
                    raise UsageError(
                        "file: expected a document with a name", remedy="send a filename with it"
                    )
                store = stores.named(_text(form, "store"))
                store.require_writes()
                into, replace = _text(form, "into"), _text(form, "replace") == "true"
                documents = [
                    uploads.Upload(name=one.filename or "", data=await one.read())
                    for one in given_files
                ]
        except (HTTPException, MultiPartException) as error:
            raise UsageError("the form cannot be read", detail=str(error)) from error
        if not documents:
            raise UsageError("no document was sent", remedy="send it as a field 'file' of the form")
        added = await store.write(
            lambda opened: uploads.take(opened, documents, into=into, replace=replace)
        )
        store.tell(operation.route, added)
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


def _route(stores: Stores, operation: Operation) -> Route:
    """POST with JSON, and GET where nothing is changed."""

    async def ask(request: Request) -> Response:
        given = await given_in(request, operation)
        store = stores.named(named_in(given))
        return answer(await operation.ask(store, given))

    return Route(
        f"/{operation.route}",
        _add(stores) if operation is ROUTES["add"] else ask,
        methods=["POST"] if operation.writes else ["GET", "POST"],
    )


def named_in(given: dict[str, Any]) -> str:
    """The store that a request names, taken out of it; "" for none.

    Raises:
        UsageError: It is no name.
    """
    name = given.pop("store", "") or ""
    if not isinstance(name, str) or len(name) > 255:
        raise UsageError("store: the name of a store is a text")
    return name


async def given_in(request: Request, operation: Operation) -> dict[str, Any]:
    """What a client gives: the JSON of its body, or the query of the address.

    Raises:
        UsageError: It is no JSON object.
    """
    if request.method in ("GET", "HEAD"):
        given: dict[str, Any] = {}
        known = operation.schema["properties"]
        for name in request.query_params:
            values = request.query_params.getlist(name)
            is_list = known.get(name, {}).get("type") == "array"
            if len(values) > 1 and not is_list:
                raise UsageError(f"{brief(name)} is there twice", remedy="send it once")
            given[name] = values if len(values) > 1 else values[0]
        return given
    require_no_query(request)
    data = await request.body()
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if data and kind != JSON:
        raise UsageError(f"expected {JSON}", remedy=f"send Content-Type: {JSON}")
    return json_object(data or b"{}")


def require_no_query(request: Request) -> None:
    """Refuse words in an address whose body says everything: nobody would heed them.

    Raises:
        UsageError: There are some.
    """
    if request.query_params:
        names = listed(map(brief, request.query_params))
        raise UsageError(
            f"{request.method} takes no values in the address, found {names}",
            remedy="send them in the body",
        )
