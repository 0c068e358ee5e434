"""What goes over the wire as JSON: bodies, their shapes, answers, and errors with their status."""

from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from msgspec import Struct
from starlette.responses import Response

from filestore.catalog import CatalogMissingError
from filestore.config.layout import NoStoreError
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.schema import Failure, JsonObject, UnfitError, converted, json_of
from filestore.fs.disk import WriteFailedError
from filestore.fs.lock import LockedError
from filestore.server.stores import BusyError, ReadOnlyError


class TooLargeError(FilestoreError):
    """A body has more bytes than a request may have."""


class TooSlowError(FilestoreError):
    """A body does not come in time."""


class CompressedError(FilestoreError):
    """A body comes in a coding that is not unpacked: a small one could become a huge one."""


_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (TooSlowError, 408),
    (TooLargeError, 413),
    (CompressedError, 415),
    (ReadOnlyError, 403),
    (BusyError, 503),
    (LockedError, 503),
    (NoStoreError, 503),
    (CatalogMissingError, 503),
    (WriteFailedError, 507),
    (RefusedError, 409),
    (UsageError, 400),
    (LookupError, 404),
    (FileNotFoundError, 404),
)
"""The first that fits; what fits none cannot be done as asked."""
UNUSABLE: Final = 422
JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_COMPONENTS: Final = "#/components/schemas/"
_COLLECTIONS: Final = "/rag"
"""Below it, clients of other services expect the words of those."""


class RagFailure(JsonObject, Struct, frozen=True):
    """What a route below /rag answers that fails."""

    error: str
    """What happened."""
    details: str
    """Technical detail, or empty."""
    action: str
    """What to do next."""


def answer(value: Any, *, status: int = 200) -> Response:
    """A value as JSON: data whatever it holds, for whoever asked alone, and kept nowhere."""
    return Response(orjson.dumps(value), status, dict(_HEADERS), JSON)


def status_of(error: FilestoreError) -> int:
    """The status of HTTP for an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), UNUSABLE)


def body_of(error: FilestoreError, path: str = "") -> dict[str, Any]:
    """What a client is told of an error, in the words of the route that was asked."""
    if path == _COLLECTIONS or path.startswith(f"{_COLLECTIONS}/"):
        action = error.remedy or "change the request, and send it again"
        return RagFailure(error.message, error.detail, action).to_dict()
    return Failure.of(error).to_dict()


def json_object(data: bytes) -> dict[str, Any]:
    """The object that a client sends.

    Raises:
        UsageError: It is none.
    """
    try:
        return converted(json_of(data), dict[str, Any], "the body")
    except orjson.JSONDecodeError as error:
        raise UsageError(f"the body is no JSON: {error}", remedy="send a JSON object") from error
    except UnfitError as error:
        raise UsageError(str(error), remedy="send a JSON object") from error


@cache
def definitions(place: str = "#/$defs/") -> dict[str, Any]:
    """Every shape by its name; others in it are references to where they lie."""
    data = files("filestore.server").joinpath("schema.json").read_bytes()
    found: dict[str, Any] = orjson.loads(data.replace(b"#/$defs/", place.encode()))["$defs"]
    return found


def components() -> dict[str, Any]:
    """The same for OpenAPI, with references to its components."""
    return definitions(_COMPONENTS)


def reference(name: str) -> dict[str, str]:
    """What stands for a shape in OpenAPI."""
    return {"$ref": f"{_COMPONENTS}{name}"}
