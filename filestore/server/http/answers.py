"""Answers of HTTP: JSON as the command line prints it, errors with what to do."""

from typing import Any

import orjson
from starlette.responses import Response

from filestore.core.errors import FilestoreError
from filestore.server import refusals

JSON = "application/json"


def answer(value: Any, *, status: int = 200) -> Response:
    """A value as JSON; texts of a store are data whatever they hold, and no browser guesses."""
    return Response(orjson.dumps(value), status, {"X-Content-Type-Options": "nosniff"}, JSON)


def refusal(error: FilestoreError, path: str = "") -> Response:
    """What was not done, and why, in the words of the route that was asked."""
    response = answer(refusals.body_of(error, path), status=refusals.status_of(error))
    if response.status_code == 503:
        response.headers["Retry-After"] = "1"
    return response
