"""The resources that agents read: chunks and documents of a store, each under an address.

``filestore://STORE/chunk/PATH`` and ``filestore://STORE/document/PATH``. One rule: a path is
decoded once, and looked for in the store alone.
"""

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote_to_bytes

import mcp_types as types
import orjson

from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import has_plain_names
from filestore.core.safe_text import safe_text
from filestore.core.schema import text as json_text
from filestore.server.agents.wording import counted
from filestore.server.operations import LONGEST_PATH
from filestore.server.stores import ServedStore, Stores

if TYPE_CHECKING:
    from filestore.store import Store

PAGE: Final = 100
"""So many documents are listed at once."""
_SCHEME: Final = "filestore://"
_MARKDOWN: Final = "text/markdown"
_REMEDY: Final = "list the resources, or take the path of a hit"
_KINDS: Final = {
    "chunk": "One chunk file, or in place the section of a document that holds a line: PATH:LINE",
    "document": "The whole text of a document, by the name that `resource` of a hit gives",
}


class UnknownResourceError(FilestoreError, LookupError):
    """Nothing of a served store has this address."""


def templates(stores: Stores) -> list[types.ResourceTemplate]:
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


def address(store: str, kind: str, path: str) -> str:
    """The address of a chunk or a document."""
    return f"{_SCHEME}{_quoted(store)}/{kind}/{quote(path, safe='/', errors='surrogateescape')}"


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="surrogateescape")


async def listed(stores: Stores, cursor: str | None) -> tuple[list[types.Resource], str | None]:
    """The documents behind a cursor, in one order whatever comes or goes, and the next cursor.

    Those of a store that cannot be read are left out, unless there are no others.

    Raises:
        UsageError: It is none of ours.
        FilestoreError: No store can be read.
    """
    first, behind = _position(cursor)
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
            uri=address(store, "document", name),
            description=counted(chunks, "chunk"),
            mime_type=_MARKDOWN,
        )
        for store, name, chunks in page
    ]
    return resources, more


def _names_behind(store: "Store", start: str) -> list[tuple[str, int]]:
    names = ((one["resource"], one["chunks"]) for one in store.resources())
    return sorted((name, chunks) for name, chunks in names if name > start)[: PAGE + 1]


def _position(cursor: str | None) -> tuple[str, str]:
    if not cursor:
        return "", ""
    try:
        store, name = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
        return _undone(store), _undone(name)
    except (ValueError, TypeError, AttributeError, binascii.Error) as error:
        raise UsageError("this cursor is none of ours", remedy="list from the start") from error


def _undone(value: str) -> str:
    return value.encode("latin-1").decode("utf-8", "surrogateescape")


async def read(stores: Stores, uri: str) -> types.ReadResourceResult:
    """What an address stands for.

    Raises:
        UnknownResourceError: Nothing.
        FilestoreError: It cannot be read.
    """
    store, kind, path = _parsed(stores, uri)
    try:
        body, about = await store.read(lambda opened: _text(opened, kind, path))
    except LookupError as error:
        if isinstance(error, FilestoreError):
            error.remedy = _REMEDY
        raise
    content = types.TextResourceContents(
        uri=uri, mime_type=_MARKDOWN, text=json_text(body), _meta=about
    )
    return types.ReadResourceResult(contents=[content])


def _parsed(stores: Stores, uri: str) -> tuple[ServedStore, str, str]:
    unknown = UnknownResourceError(f"no resource {uri[:200]!r}", remedy=_REMEDY)
    scheme, _, rest = uri.partition("://")
    parts = rest.split("/", 2)
    if f"{scheme}://" != _SCHEME or len(parts) != 3 or len(uri) > 3 * LONGEST_PATH:
        raise unknown
    name, kind, path = (unquote_to_bytes(one).decode("utf-8", "surrogateescape") for one in parts)
    if kind not in _KINDS or name not in stores.names or not has_plain_names(path):
        raise unknown
    return stores.named(name), kind, path


def _text(store: "Store", kind: str, path: str) -> tuple[str, dict[str, Any]]:
    """The text of a file or a document, and what is said beside it."""
    if kind == "document" and not store.places.tree.has_sections:
        found = store.reconstruct(path)
        return found.text, {
            "document": json_text(path),
            "chunks": found.chunks,
            "notes": [*found.warnings],
        }
    shown = store.show(path)
    return shown.body, {"path": json_text(shown.path), "freshness": shown.record.get("freshness")}
