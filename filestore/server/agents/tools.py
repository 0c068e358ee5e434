"""The tools that agents call: some of what may be asked of a store; what writes only if allowed.

One rule: a call that fails says what failed and what helps, as a result that agents can read; never
how the program came there.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import mcp_types as types
import orjson

from filestore.browse.file import UnknownPathError
from filestore.core.errors import FilestoreError, UsageError
from filestore.server import refusals
from filestore.server.agents.wording import text_of, text_of_error
from filestore.server.operations import TOOLS, Operation
from filestore.server.stores import Stores

_LOG: Final = logging.getLogger(__name__)
_WITH_LINES: Final = re.compile(r"(?P<path>.+\.[a-z]+):(?P<line>[0-9]{1,9})(-[0-9]{1,9})?", re.S)
_QUOTED: Final = re.compile(r'\A"(?:[^"\\]|\\.)*"(?=\Z|:[0-9]|\s)')
"""A name as `wording` writes one that has blanks in it."""
_DESTROYING: Final = frozenset(["edit_note"])
"""Those that take away what was there; the rest adds, or repairs what can be derived again."""


def offered(stores: Stores) -> list[types.Tool]:
    """The tools for some stores; those that write only where all may be written."""
    names = stores.names
    return [_tool(operation, names) for operation in _operations(stores)]


def _operations(stores: Stores) -> Iterator[Operation]:
    may_write = any(store.access.writes for store in stores)
    return (one for one in TOOLS.values() if may_write or not one.writes)


def _tool(operation: Operation, names: list[str]) -> types.Tool:
    hints = types.ToolAnnotations(
        title=operation.name.replace("_", " ").capitalize(),
        read_only_hint=not operation.writes,
        destructive_hint=operation.name in _DESTROYING,
        idempotent_hint=not operation.writes or operation.name == "sync",
        open_world_hint=False,
    )
    schema = dict(operation.schema)
    if len(names) > 1:
        which = {"enum": names, "description": "which store"}
        schema["properties"] = {"store": which, **schema["properties"]}
        schema["required"] = ["store", *schema["required"]]
    return types.Tool(
        name=operation.name,
        title=hints.title,
        description=operation.sentence,
        input_schema=schema,
        output_schema=_output(operation.answer),
        annotations=hints,
    )


def _output(shape: str) -> dict[str, Any]:
    """The shape of an answer with those that it is made of, without what their keys mean."""
    found: dict[str, Any] = {}
    waiting = [shape]
    while waiting:
        name = waiting.pop()
        if name not in found:
            schema = refusals.definitions()[name]
            properties = {
                key: {word: value for word, value in one.items() if word != "description"}
                for key, one in schema["properties"].items()
            }
            found[name] = {
                "type": "object",
                "properties": properties,
                "required": schema["required"],
            }
            waiting += re.findall(r"#/\$defs/(\w+)", str(properties))
    return {**found[shape], "$defs": found} if len(found) > 1 else found[shape]


async def call(stores: Stores, name: str, given: Any) -> types.CallToolResult:
    """What a tool answers; a call that cannot be done says so in its result."""
    try:
        operation = _named(stores, name)
        if not isinstance(given, Mapping | None):
            raise UsageError("arguments are an object", remedy=f"see the parameters of {name}")
        values = dict(given or {})
        which = values.pop("store", None) if len(stores) > 1 else None
        if which is not None and not isinstance(which, str):
            raise UsageError("store: the name of a store is a text")
        store = stores.named(which)
        answer = await operation.ask(store, _as_meant(name, values, store.places.tree.has_sections))
    except UnknownPathError as error:
        error.remedy = "take the path of a hit of search, as it stands there"
        return failed(error)
    except FilestoreError as error:
        return failed(error)
    except Exception as error:
        return failed(of_machine(error))
    said = types.TextContent(type="text", text=text_of(name, answer, store.root))
    return types.CallToolResult(content=[said], structured_content=answer)


def _as_meant(name: str, values: dict[str, Any], has_sections: bool) -> dict[str, Any]:
    """What is asked, with a path as an agent takes it out of a text: quotes, lines and all."""
    path = values.get("path")
    if isinstance(path, str):
        path = _QUOTED.sub(_unquoted, path)
        values = {**values, "path": path}
    found = _WITH_LINES.fullmatch(path) if isinstance(path, str) else None
    if found is None:
        return values
    is_whole = name == "edit_note" or (name == "show" and not has_sections)
    return {**values, "path": found["path"] if is_whole else f"{found['path']}:{found['line']}"}


def _unquoted(found: re.Match[str]) -> str:
    try:
        return str(orjson.loads(found[0]))
    except orjson.JSONDecodeError:
        return found[0]


def _named(stores: Stores, name: str) -> Operation:
    found = {one.name: one for one in _operations(stores)}
    if name in found:
        return found[name]
    if name in TOOLS:
        raise UsageError(f"{name} changes the store", remedy="start the server with --write")
    raise UsageError("there is no such tool", remedy=f"call one of: {', '.join(found)}")


def failed(error: FilestoreError) -> types.CallToolResult:
    """An error as the result of a tool."""
    said = types.TextContent(type="text", text=text_of_error(refusals.body_of(error)))
    return types.CallToolResult(content=[said], is_error=True)


def of_machine(error: Exception) -> FilestoreError:
    """What the machine refused, or we did wrong, without saying where on it."""
    if isinstance(error, MemoryError):
        return FilestoreError("there is not enough memory", remedy="ask for less")
    if not isinstance(error, OSError):
        _LOG.error("a request failed", exc_info=error)
        return FilestoreError(
            f"internal error: {type(error).__name__}", remedy="see what the server logged"
        )
    return FilestoreError(
        f"the store cannot be read: {error.strerror or type(error).__name__}",
        remedy="check that its folder is there, then ask again",
    )
