"""The tools that agents call, and the resources that agents read.

A resource has an address: ``filestore://STORE/chunk/PATH`` or ``filestore://STORE/document/PATH``.
Two rules: a call that fails says what failed and what helps, as a result that agents can read, and
never how the program came there; a path is decoded once, and looked for in the store alone.

An answer is a text alone. With structured content next to it some programs show a model that
instead, in which nothing marks the words of the store, and others show both, which costs twice.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote_to_bytes

import mcp_types as types
import orjson

from filestore.browse.named import UnknownPathError
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import has_plain_names
from filestore.core.safe_text import safe_text
from filestore.core.schema import text as json_text
from filestore.server.agents.wording import counted, text_of, text_of_error
from filestore.server.operations import LONGEST_PATH, TOOLS, Operation
from filestore.server.stores import of_machine, store_names

if TYPE_CHECKING:
    from filestore.server.stores import Caller, Stores
    from filestore.store import Store


_QUOTED: Final = re.compile(r'\A"(?:[^"\\]|\\.)*"(?=\Z|[:#]|\s)')
"""A name as `shown_name` writes one that has blanks in it."""
_MOST: Final = {"show": 9_000, "list": 3_400}
"""Characters of what a tool gives of a store at once; agents ask on for the rest."""
_FOR_OTHERS: Final = frozenset(["most", "begun"])
"""Fields that no agent need give."""
_DESTROYING: Final = frozenset(["edit", "move"])
"""Tools that remove text; the others add, or repair what can be derived again."""


def offered(stores: "Stores", caller: "Caller") -> list[types.Tool]:
    """The tools for some stores; tools that write only for a caller that may write one."""
    tools = []
    for one in _operations(stores):
        operation = one.of(writes=caller.writes)
        if operation.writes and not caller.writes:
            continue
        hints = types.ToolAnnotations(
            title=operation.name.replace("_", " ").capitalize(),
            read_only_hint=not operation.writes,
            destructive_hint=operation.name in _DESTROYING,
            idempotent_hint=not operation.writes or operation.name == "sync",
            open_world_hint=False,
        )
        schema = dict(operation.schema)
        properties = schema["properties"]
        schema["properties"] = {
            key: properties[key] for key in properties if key not in _FOR_OTHERS
        }
        if len(stores) > 1:
            which: dict[str, Any] = {"enum": stores.names, "description": "which store"}
            if operation.name == "search":
                several = {"type": "array", "items": {"enum": stores.names}}
                about = "which store, or a list of them; left out: all"
                which = {"anyOf": [{"enum": stores.names}, several], "description": about}
            else:
                schema["required"] = ["store", *schema["required"]]
            schema["properties"] = {"store": which, **schema["properties"]}
        tools.append(
            types.Tool(
                name=operation.name,
                title=hints.title,
                description=operation.sentence,
                input_schema=schema,
                annotations=hints,
            )
        )
    return tools


def _operations(stores: "Stores") -> Iterator[Operation]:
    may_write = any(store.access.writes for store in stores)
    offered = (one.of(writes=may_write) for one in TOOLS.values())
    return (one for one in offered if may_write or not one.writes)


async def call(stores: "Stores", name: str, given: Any, caller: "Caller") -> types.CallToolResult:
    """What a tool answers; a call that cannot be done says so in its result."""
    try:
        known = {one.name: one for one in _operations(stores)}
        if name not in known and name in TOOLS:
            raise UsageError(f"{name} changes the store: start the server with --write")
        if name not in known:
            raise UsageError(f"there is no such tool: call one of: {', '.join(known)}")
        if not isinstance(given, Mapping | None):
            raise UsageError(f"arguments are an object: see the parameters of {name}")
        values = dict(given or {})
        is_among = name == "search" and len(stores) > 1
        which = store_names(values.pop("store", "") if len(stores) > 1 else "", several=is_among)
        if isinstance(which, list) or (is_among and not which):
            found = await stores.search(which or stores.names, known[name], values, caller)
            text = types.TextContent(type="text", text=text_of(name, found, ""))
            return types.CallToolResult(content=[text])
        store = stores.named(which)
        answer = await store.ask(known[name], _cleaned(name, values), caller)
        has_written = known[name].writes and name != "sync"
        conventions = await store.read(lambda opened: opened.conventions()) if has_written else ""
    except UnknownPathError as error:
        error.remedy = "use a path exactly as search returned it"
        return failed(error)
    except FilestoreError as error:
        return failed(error)
    except Exception as error:
        return failed(of_machine(error))
    text = types.TextContent(type="text", text=text_of(name, answer, store.root, conventions))
    return types.CallToolResult(content=[text])


def _cleaned(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """What is asked, with a path as an agent takes it out of a text, and no more than it reads."""
    read = {
        key: _QUOTED.sub(_unquoted, value)
        if key in ("path", "folder", "after") and isinstance(value, str)
        else value
        for key, value in values.items()
    }
    if most := _MOST.get(name):
        # The path is in the answer as well, and in what is to be asked next.
        path = read.get("path", read.get("folder", ""))
        read["most"] = max(1_000, most - 3 * len(str(path)))
    return read


def _unquoted(found: re.Match[str]) -> str:
    try:
        return str(orjson.loads(found[0]))
    except orjson.JSONDecodeError:
        return found[0]


def failed(error: FilestoreError) -> types.CallToolResult:
    """An error as the result of a tool."""
    text = types.TextContent(type="text", text=text_of_error(error))
    return types.CallToolResult(content=[text], is_error=True)


PAGE: Final = 100
"""Documents listed at once."""
_SCHEME: Final = "filestore://"
_MARKDOWN: Final = "text/markdown"
_ADDRESS_REMEDY: Final = "use an address that the server lists, or the path of a hit"
_KINDS: Final = {
    "chunk": "A chunk file, or in place a document or a part of it: PATH:10-40, PATH:p2",
    "document": "The text of a document, by its name, or of an original or a part of it",
}


class UnknownResourceError(FilestoreError, LookupError):
    """Nothing of a served store has this address."""


def resource_templates(stores: "Stores") -> list[types.ResourceTemplate]:
    """How addresses are made, of each store and kind."""
    return [
        types.ResourceTemplate(
            name=f"{store.name} {kind}",
            uri_template=f"{_SCHEME}{_quoted(store.name)}/{kind}/{{+path}}",
            description=about,
            mime_type=_MARKDOWN,
        )
        for store in stores
        for kind, about in _KINDS.items()
    ]


def address_of(store: str, kind: str, path: str) -> str:
    """The address of a chunk or a document."""
    return f"{_SCHEME}{_quoted(store)}/{kind}/{quote(path, safe='/', errors='surrogateescape')}"


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="surrogateescape")


async def listed_resources(
    stores: "Stores", cursor: str | None
) -> tuple[list[types.Resource], str | None]:
    """The documents behind a cursor, in one order whatever comes or goes, and the next cursor.

    Those of a store that cannot be read are left out, unless there are no others.

    Raises:
        UsageError: It is none of ours.
        FilestoreError: No store can be read.
    """
    first, behind = _cursor_position(cursor)
    found: list[tuple[str, str, int]] = []
    failed: Exception | None = None
    for store in sorted(stores, key=lambda one: one.name):
        if store.name < first or len(found) > PAGE:
            continue
        start = behind if store.name == first else ""
        try:
            rest = await store.read(lambda opened, start=start: _names_behind(opened, start))  # type: ignore[misc]
        except (FilestoreError, OSError) as error:
            failed = error
            continue
        found += [(store.name, *one) for one in rest]
    if failed is not None and not found:
        raise failed
    page = found[:PAGE]
    more = None
    if len(found) > PAGE:
        last = [one.encode("utf-8", "surrogateescape").decode("latin-1") for one in page[-1][:2]]
        more = base64.urlsafe_b64encode(orjson.dumps(last)).decode()
    resources = [
        types.Resource(
            name=safe_text(name, keep_newlines=False),
            uri=address_of(store, "document", name),
            description=counted(chunks, "chunk"),
            mime_type=_MARKDOWN,
        )
        for store, name, chunks in page
    ]
    return resources, more


def _cursor_position(cursor: str | None) -> tuple[str, str]:
    if not cursor:
        return "", ""
    try:
        store, name = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
        return _from_cursor(store), _from_cursor(name)
    except (ValueError, TypeError, AttributeError, binascii.Error) as error:
        raise UsageError("this cursor is none of ours: list from the start") from error


def _from_cursor(value: str) -> str:
    return value.encode("latin-1").decode("utf-8", "surrogateescape")


def _names_behind(store: "Store", start: str) -> list[tuple[str, int]]:
    found = store.resources(after=start, limit=PAGE + 1)
    return [(one["resource"], one["chunks"]) for one in found]


async def read_resource(stores: "Stores", uri: str) -> types.ReadResourceResult:
    """The content of an address.

    Raises:
        UnknownResourceError: Nothing.
        FilestoreError: It cannot be read.
    """
    unknown = UnknownResourceError(f"no document at {uri[:200]!r}", remedy=_ADDRESS_REMEDY)
    scheme, _, rest = uri.partition("://")
    parts = rest.split("/", 2)
    if f"{scheme}://" != _SCHEME or len(parts) != 3 or len(uri) > 3 * LONGEST_PATH:
        raise unknown
    name, kind, path = (unquote_to_bytes(one).decode("utf-8", "surrogateescape") for one in parts)
    # An original may lie above the store; which ones may be read the store says.
    is_plain = kind == "document" or has_plain_names(path)
    if kind not in _KINDS or name not in stores.names or not is_plain:
        raise unknown
    store = stores.named(name)
    try:
        body, about = await store.read(lambda opened: _resource_text(opened, kind, path))
    except LookupError as error:
        if isinstance(error, FilestoreError):
            error.remedy = _ADDRESS_REMEDY
        raise
    content = types.TextResourceContents(
        uri=uri, mime_type=_MARKDOWN, text=json_text(body), _meta=about
    )
    return types.ReadResourceResult(contents=[content])


def _resource_text(store: "Store", kind: str, path: str) -> tuple[str, dict[str, Any]]:
    """The text of a file or a document, and its metadata."""
    if kind == "document" and not store.places.tree.has_sections:
        with suppress(LookupError):
            found = store.reconstruct(path)
            about = {"document": json_text(path), "chunks": found.chunks}
            return found.text, about | {"notes": [*found.warnings]}
    shown = store.show(path)
    return shown.body, {"path": json_text(shown.path), "freshness": shown.record.get("freshness")}
