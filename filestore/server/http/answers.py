"""Answers of HTTP: JSON as the command line prints it, errors with what to do."""

from typing import Any, Final

import orjson
from starlette.responses import Response

from filestore.core.errors import FilestoreError
from filestore.server import refusals

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def answer(value: Any, *, status: int = 200) -> Response:
    """A value as JSON: data whatever it holds, for whoever asked alone, and kept nowhere."""
    return Response(orjson.dumps(value), status, dict(_HEADERS), JSON)


def refusal(error: FilestoreError, path: str = "") -> Response:
    """What was not done, and why, in the words of the route that was asked."""
    response = answer(refusals.body_of(error, path), status=refusals.status_of(error))
    if response.status_code == 503:
        response.headers["Retry-After"] = "1"
    return response
