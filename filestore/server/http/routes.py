"""The routes of a store: each operation of the table, under its name."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from filestore.core.errors import UsageError
from filestore.core.safe_text import brief, listed
from filestore.server.decoding import json_object
from filestore.server.http.answers import JSON, answer
from filestore.server.operations import ROUTES, Operation
from filestore.server.stores import Stores


def routes(stores: Stores) -> list[Route]:
    """A route for each operation: POST with JSON, and GET where nothing is changed."""
    return [
        Route(f"/{name}", _asked(stores, one), methods=["POST"] if one.writes else ["GET", "POST"])
        for name, one in ROUTES.items()
    ]


def _asked(stores: Stores, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    async def ask(request: Request) -> Response:
        given = await given_in(request, operation)
        store = stores.named(named_in(given))
        return answer(await operation.ask(store, given))

    return ask


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
        return _from_query(request, operation)
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


def _from_query(request: Request, operation: Operation) -> dict[str, Any]:
    given: dict[str, Any] = {}
    known = operation.schema["properties"]
    for name in request.query_params:
        values = request.query_params.getlist(name)
        is_list = known.get(name, {}).get("type") == "array"
        if len(values) > 1 and not is_list:
            raise UsageError(f"{brief(name)} is there twice", remedy="send it once")
        given[name] = values if len(values) > 1 else values[0]
    return given
