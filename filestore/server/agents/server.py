"""The MCP server of some stores, by the official SDK: over standard input and output, or HTTP.

One rule: standard output belongs to the protocol. Before anything is opened it leads to standard
error for all but the protocol, also for what libraries print and for child processes.
"""

import asyncio
import json
import math
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, cast

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared._stream_protocols import WriteStream
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from msgspec import Struct
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from filestore._version import __version__
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.safe_text import safe_text
from filestore.core.schema import refuse_twice
from filestore.server.agents import tools
from filestore.server.agents.instructions import instructions
from filestore.server.agents.wording import text_of_error
from filestore.server.stores import Caller, caller_name, of_machine

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from filestore.server.stores import Stores

Context: TypeAlias = ServerRequestContext[Any]

_READS_NO_MORE: Final = (BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError)


def make_server(stores: "Stores") -> Server[Any]:
    """The server, not running; the stores stay the caller's."""

    async def list_tools(context: Context, __: types.PaginatedRequestParams | None) -> Any:
        return types.ListToolsResult(tools=tools.offered(stores, _caller(context, stores)))

    async def call_tool(context: Context, asked: types.CallToolRequestParams) -> Any:
        return await tools.call(stores, asked.name, asked.arguments, _caller(context, stores))

    async def list_resources(_: Context, asked: types.PaginatedRequestParams | None) -> Any:
        with _as_protocol_errors():
            found, more = await tools.listed_resources(stores, asked.cursor if asked else None)
        return types.ListResourcesResult(resources=found, next_cursor=more)

    async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> Any:
        made = tools.resource_templates(stores)
        return types.ListResourceTemplatesResult(resource_templates=made)

    async def read_resource(_: Context, asked: types.ReadResourceRequestParams) -> Any:
        with _as_protocol_errors():
            return await tools.read_resource(stores, asked.uri)

    return Server(
        "filestore",
        version=__version__,
        title=safe_text(f"filestore: {', '.join(stores.names)}", keep_newlines=False),
        instructions=instructions(stores),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _caller(context: Context, stores: "Stores") -> Caller:
    """Who asks: an agent, always a program, also where it has the token of a person."""
    params = context.session.client_params
    name = caller_name(params.client_info.name) if params is not None else ""
    scope = {} if context.request is None else context.request.scope
    may_write = any(store.access.writes for store in stores)
    known: Caller = scope.get("caller", Caller(name="", writes=may_write, person=False))
    return Caller(name=known.name or name, writes=known.writes and may_write, person=False)


@contextmanager
def _as_protocol_errors() -> Iterator[None]:
    """Say what failed as the protocol has it, and nothing else of this process."""
    try:
        yield
    except FilestoreError as error:
        known = isinstance(error, LookupError | UsageError)
        code = types.INVALID_PARAMS if known else types.INTERNAL_ERROR
        raise MCPError(code, text_of_error(error)) from None
    except Exception as error:
        message = text_of_error(of_machine(error))
        raise MCPError(types.INTERNAL_ERROR, message) from None


def run_stdio(opened: "Callable[[], Stores]") -> int:
    """Serve the parent process until it closes our input; the exit code.

    Args:
        opened: Opens the stores, once nothing that is printed can reach the protocol.

    Raises:
        FilestoreError: One cannot be opened.
    """
    try:
        return int(anyio.run(_run_stdio, opened))
    except BaseExceptionGroup as errors:
        # Each task of the transport says in its own way that a program reads no more.
        _, error = errors.split(_READS_NO_MORE)
        if error is None:
            raise BrokenPipeError from None
        found: BaseException = error
        while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
            found = found.exceptions[0]
        if isinstance(found, FilestoreError):
            raise found from None
        raise


async def _run_stdio(opened: "Callable[[], Stores]") -> int:
    answers, answered = anyio.create_memory_object_stream[SessionMessage]()
    # Standard input is for the protocol alone: other readers find it empty.
    own, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    # A thread may read it until the process ends.
    pending = _Pending()
    asked: Any = _asked(os.fdopen(own, "rb", closefd=False), answers, pending)
    async with stdio_server(stdin=asked) as (incoming, outgoing):
        with opened() as stores, _ended_by_readers(stores):
            server = make_server(stores)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_leave_at_signal, stores)
                async with anyio.create_task_group() as passing, answers:
                    passing.start_soon(_pass_on, answered, outgoing, stores, pending)
                    await server.run(incoming, answers, server.create_initialization_options())
                tasks.cancel_scope.cancel()
    return 0


@contextmanager
def _ended_by_readers(stores: "Stores") -> Iterator[None]:
    """End the process where no program reads its answers any longer.

    By itself it would wait until its input, in which another thread reads, has one more line.
    """
    try:
        yield
    except (BaseExceptionGroup, *_READS_NO_MORE, anyio.get_cancelled_exc_class()) as error:
        # What reads and writes for the protocol cancels all else when it fails.
        gone = (*_READS_NO_MORE, anyio.get_cancelled_exc_class())
        if isinstance(error, BaseExceptionGroup) and error.split(gone)[1] is not None:
            raise
        stores.close()
        os._exit(0)


class _Pending:
    """The requests that are not answered yet, by their ids."""

    def __init__(self) -> None:
        self._ids: Counter[str | int] = Counter()
        self._changed = anyio.Event()

    def asked(self, message: Any) -> None:
        """Take note of a request, or that one is cancelled, which need not be answered."""
        if isinstance(message, types.JSONRPCRequest):
            self._ids[message.id] += 1
        elif message.method == "notifications/cancelled":
            self.answered((message.params or {}).get("requestId"))

    def answered(self, number: Any) -> None:
        """Take note of an answer; of what is no id nothing is noted."""
        if not isinstance(number, str | int):
            return
        if self._ids[number] > 1:
            self._ids[number] -= 1
        else:
            del self._ids[number]
        self._changed.set()

    async def wait(self) -> None:
        """Wait until all of them are answered."""
        while self._ids:
            self._changed = anyio.Event()
            await self._changed.wait()


async def _asked(
    lines: BinaryIO, answers: ObjectSendStream[SessionMessage], pending: _Pending
) -> AsyncIterator[str]:
    """The messages that come; broken ones are answered here, and all others before the end."""
    async for line in anyio.wrap_file(lines):
        refused = refusals(line) if line.strip() else []
        for text in refused:
            await answers.send(SessionMessage(cast("Any", _RawAnswer(text))))
        if line.strip() and not refused:
            pending.asked(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
            yield line.decode()
    # The SDK cancels what it is asked once its input ends.
    await pending.wait()


class _RawAnswer(Struct, frozen=True):
    """An answer as it is written, with an id that the SDK would not take."""

    text: str

    def model_dump_json(self, **_: Any) -> str:
        """What the SDK sends."""
        return self.text


async def _pass_on(
    answered: ObjectReceiveStream[SessionMessage],
    outgoing: WriteStream[SessionMessage],
    stores: "Stores",
    pending: _Pending,
) -> None:
    """Send what is answered; behind the first answer, which no program is to wait for, warm up."""
    is_cold = True
    async with answered, outgoing:
        async for answer in answered:
            await outgoing.send(answer)
            pending.answered(getattr(answer.message, "id", None))
            if is_cold:
                is_cold = False
                for store in stores:
                    store.warm_up()


async def _leave_at_signal(stores: "Stores") -> None:
    """End the process at a signal, once what is being written is done.

    By itself it would wait until its input, in which another thread reads, has one more line.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            await anyio.to_thread.run_sync(stores.close)
            os._exit(128 + number)


class HttpDoor:
    """The same server over streamable HTTP, as part of an application.

    No session is kept, so nothing is left of a client that went away.
    """

    def __init__(self, stores: "Stores") -> None:
        """Make the routes of some stores; nothing runs yet, and who may ask is judged outside."""
        self._stores = stores
        self._server = make_server(stores)
        self._manager = StreamableHTTPSessionManager(
            app=self._server,
            stateless=True,
            json_response=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=LARGEST_REQUEST,
        )

    def routes(self, path: str = "/mcp") -> list[Route]:
        """The one address of the protocol, with a slash or without: a redirect may be lost."""
        door = Judged(StreamableHTTPASGIApp(self._manager), self._renew)
        return [Route(one, endpoint=door) for one in (path, f"{path}/")]

    async def _renew(self) -> None:
        """Have the instructions say what the stores hold now: the server runs for weeks."""
        self._server.instructions = await asyncio.to_thread(instructions, self._stores)

    def running(self) -> AbstractAsyncContextManager[None]:
        """While requests are answered: within the lifespan of the application, once."""
        return self._manager.run()


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
    """An id that an answer may hold; null for an invalid one."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return _NO_ID
    is_number = type(found) in (int, float) and math.isfinite(found)
    return value.decode() if is_number or isinstance(found, str) else _NO_ID


class Judged:
    """An application of the protocol that is asked nothing broken."""

    def __init__(self, app: "ASGIApp", greeted: Callable[[], Awaitable[None]]) -> None:
        """Judge for an application; `greeted` is awaited before it reads what greets a client."""
        self._app = app
        self._greeted = greeted

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if refused := refusals(body):
            text = refused[0] if len(refused) == 1 else f"[{', '.join(refused)}]"
            await Response(text, 400, media_type="application/json")(scope, receive, send)
            return
        if json.loads(body).get("method") in ("initialize", "server/discover"):
            await self._greeted()
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> "Message":
            return parts.pop() if parts else await receive()

        await self._app(scope, received, send)
