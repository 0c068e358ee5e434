"""Messages of agents: a broken one is refused under its own id, so that nobody waits for an answer.

The SDK drops such a message on standard input, and over HTTP answers it without an id. One rule:
what is refused here the SDK never sees, and all else it sees as it came.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import mcp_types as types
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from filestore.core.decoding import refuse_twice

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_REQUEST: Final = 4 * 1024 * 1024
"""Bytes."""
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_ID: Final = re.compile(rb'[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*"|[^ \t\r\n,}\]]+)', re.DOTALL)
_NO_ID: Final = "null"
_MESSAGE: Final = (
    "expected jsonrpc '2.0', a method, an id that is a whole number or a text, and an object as"
    " params, if any"
)


def refusals(data: bytes) -> list[str]:
    """The answers to a message that is broken; none for one that is whole.

    Args:
        data: As it came, with its line end or without.
    """
    if len(data) > LARGEST_REQUEST:
        return _refused(data, types.INVALID_REQUEST, f"it has more than {LARGEST_REQUEST:,} bytes")
    if data.lstrip().startswith(b"["):
        return _refused(data, types.INVALID_REQUEST, "send one message at a time, not a list")
    try:
        message = types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if first["type"] == "json_invalid":
            return _refused(data, types.PARSE_ERROR, first["msg"])
        return _refused(data, types.INVALID_REQUEST, _MESSAGE)
    try:
        refuse_twice(data)
    except ValueError as error:
        return _refused(data, types.INVALID_REQUEST, str(error))
    # With an id that is none it would be taken for one that wants no answer.
    if isinstance(message, types.JSONRPCNotification) and any(_ids(data)):
        return _refused(data, types.INVALID_REQUEST, _MESSAGE)
    return []


def _refused(data: bytes, code: int, why: str) -> list[str]:
    """An error for each request of a message, or one without an id."""
    error = json.dumps({"code": code, "message": f"this message cannot be read: {why}"})
    found = dict.fromkeys(one for one in _ids(data) if one != _NO_ID) or [_NO_ID]
    return [f'{{"jsonrpc": "2.0", "id": {one}, "error": {error}}}' for one in found]


def _ids(data: bytes) -> Iterator[str]:
    """The ids of a message, or of a list of them, as they are written; also of what is no JSON."""
    depth, wanted = 0, 2 if data.lstrip().startswith(b"[") else 1
    for token in _TOKEN.finditer(data):
        if token[0] in b"{[":
            depth += 1
        elif token[0] in b"}]":
            depth -= 1
        elif depth == wanted and token[0] == b'"id"' and (value := _ID.match(data, token.end())):
            yield _sound(value[1])


def _sound(value: bytes) -> str:
    """An id that may stand in an answer; null for what is none."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return _NO_ID
    is_number = type(found) in (int, float) and math.isfinite(found)
    return value.decode() if is_number or isinstance(found, str) else _NO_ID


class Judged:
    """An application of the protocol that is asked nothing broken."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if refused := refusals(body):
            said = refused[0] if len(refused) == 1 else f"[{', '.join(refused)}]"
            await Response(said, 400, media_type="application/json")(scope, receive, send)
            return
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> "Message":
            return parts.pop() if parts else await receive()

        await self._app(scope, received, send)
