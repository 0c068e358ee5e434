"""The tools that agents call, what they answer in words, and the resources that agents read.

A resource has an address: ``filestore://STORE/chunk/PATH`` or ``filestore://STORE/document/PATH``.
Two rules: a call that fails says what failed and what helps, as a result that agents can read, and
never how the program came there; a path is decoded once, and looked for in the store alone.

Agents pay for every word: an answer is a short text, the JSON has everything. What a store holds
cannot pass for our words: a line of ours is one line whatever it holds, each line of a passage
begins with ``> ``, the text of a file is between two fences that are not in it, and a name with
blanks in it is quoted.
"""

import base64
import binascii
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote_to_bytes

import mcp_types as types
import orjson

from filestore.browse.named import UnknownPathError
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import has_plain_names
from filestore.core.safe_text import listed, safe_text
from filestore.core.schema import text as json_text
from filestore.server.operations import LONGEST_PATH, TOOLS, Operation, definitions

if TYPE_CHECKING:
    from filestore.server.stores import Caller, Stores
    from filestore.store import Store


_LOG: Final = logging.getLogger(__name__)
_WITH_LINES: Final = re.compile(r"(?P<path>.+\.[a-z]+):(?P<line>[0-9]{1,9})(-[0-9]{1,9})?", re.S)
_QUOTED: Final = re.compile(r'\A"(?:[^"\\]|\\.)*"(?=\Z|:[0-9]|\s)')
"""A name as `_shown_name` writes one that has blanks in it."""
_DESTROYING: Final = frozenset(["edit_note"])
"""Tools that remove text; the others add, or repair what can be derived again."""


def offered(stores: "Stores") -> list[types.Tool]:
    """The tools for some stores; tools that write only where a store may be written."""
    tools = []
    for operation in _operations(stores):
        hints = types.ToolAnnotations(
            title=operation.name.replace("_", " ").capitalize(),
            read_only_hint=not operation.writes,
            destructive_hint=operation.name in _DESTROYING,
            idempotent_hint=not operation.writes or operation.name == "sync",
            open_world_hint=False,
        )
        schema = dict(operation.schema)
        if len(stores) > 1:
            which = {"enum": stores.names, "description": "which store"}
            schema["properties"] = {"store": which, **schema["properties"]}
            schema["required"] = ["store", *schema["required"]]
        tools.append(
            types.Tool(
                name=operation.name,
                title=hints.title,
                description=operation.sentence,
                input_schema=schema,
                output_schema=_output(operation.answer),
                annotations=hints,
            )
        )
    return tools


def _operations(stores: "Stores") -> Iterator[Operation]:
    may_write = any(store.access.writes for store in stores)
    return (one for one in TOOLS.values() if may_write or not one.writes)


def _output(shape: str) -> dict[str, Any]:
    """The shape of an answer and the shapes in it, without descriptions of their keys."""
    found: dict[str, Any] = {}
    waiting = [shape]
    while waiting:
        name = waiting.pop()
        if name not in found:
            schema = definitions()[name]
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


async def call(stores: "Stores", name: str, given: Any, caller: "Caller") -> types.CallToolResult:
    """What a tool answers; a call that cannot be done says so in its result."""
    try:
        known = {one.name: one for one in _operations(stores)}
        if name not in known and name in TOOLS:
            raise UsageError(f"{name} changes the store", remedy="start the server with --write")
        if name not in known:
            raise UsageError("there is no such tool", remedy=f"call one of: {', '.join(known)}")
        if not isinstance(given, Mapping | None):
            raise UsageError("arguments are an object", remedy=f"see the parameters of {name}")
        values = dict(given or {})
        which = values.pop("store", None) if len(stores) > 1 else None
        if which is not None and not isinstance(which, str):
            raise UsageError("store: the name of a store is a text")
        store = stores.named(which)
        answer = await store.ask(
            known[name], _cleaned(name, values, store.places.tree.has_sections), caller
        )
    except UnknownPathError as error:
        error.remedy = "take the path of a hit of search, as it stands there"
        return failed(error)
    except FilestoreError as error:
        return failed(error)
    except Exception as error:
        return failed(of_machine(error))
    text = types.TextContent(type="text", text=text_of(name, answer, store.root))
    return types.CallToolResult(content=[text], structured_content=answer)


def _cleaned(name: str, values: dict[str, Any], has_sections: bool) -> dict[str, Any]:
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


def failed(error: FilestoreError) -> types.CallToolResult:
    """An error as the result of a tool."""
    text = types.TextContent(type="text", text=text_of_error(error))
    return types.CallToolResult(content=[text], is_error=True)


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


PAGE: Final = 100
"""Documents listed at once."""
_SCHEME: Final = "filestore://"
_MARKDOWN: Final = "text/markdown"
_ADDRESS_REMEDY: Final = "list the resources, or take the path of a hit"
_KINDS: Final = {
    "chunk": "One chunk file, or in place the section of a document that holds a line: PATH:LINE",
    "document": "The whole text of a document, by the name that `resource` of a hit gives",
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
        raise UsageError("this cursor is none of ours", remedy="list from the start") from error


def _from_cursor(value: str) -> str:
    return value.encode("latin-1").decode("utf-8", "surrogateescape")


def _names_behind(store: "Store", start: str) -> list[tuple[str, int]]:
    names = ((one["resource"], one["chunks"]) for one in store.resources())
    return sorted((name, chunks) for name, chunks in names if name > start)[: PAGE + 1]


async def read_resource(stores: "Stores", uri: str) -> types.ReadResourceResult:
    """The content of an address.

    Raises:
        UnknownResourceError: Nothing.
        FilestoreError: It cannot be read.
    """
    unknown = UnknownResourceError(f"no resource {uri[:200]!r}", remedy=_ADDRESS_REMEDY)
    scheme, _, rest = uri.partition("://")
    parts = rest.split("/", 2)
    if f"{scheme}://" != _SCHEME or len(parts) != 3 or len(uri) > 3 * LONGEST_PATH:
        raise unknown
    name, kind, path = (unquote_to_bytes(one).decode("utf-8", "surrogateescape") for one in parts)
    if kind not in _KINDS or name not in stores.names or not has_plain_names(path):
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
        found = store.reconstruct(path)
        return found.text, {
            "document": json_text(path),
            "chunks": found.chunks,
            "notes": [*found.warnings],
        }
    shown = store.show(path)
    return shown.body, {"path": json_text(shown.path), "freshness": shown.record.get("freshness")}


Answer = Mapping[str, Any]


class Passage(str):
    """Words of the store, shown in lines that are marked as such."""

    __slots__ = ()


class Whole(Passage):
    """The text of a file, shown as it is, between fences: an edit names passages of it."""

    __slots__ = ()


_MOST_PATHS: Final = 20
"""Files of one code that are named; the rest is counted."""
_MOST_TEXT: Final = 50_000
"""Characters of one text; the JSON has all of it."""
_FENCE: Final = "```"
_PLAIN_NAME: Final = re.compile(r"[^\s\"'`()\[\]<>,:]+(?::[^\s\"'`()\[\]<>,:]+)*")
"""A name that ends where the next word of ours begins."""


_WORDED: Final[dict[str, Callable[[Answer], Iterator[str]]]] = {}
"""By the name of the operation."""


def _words_of(*names: str) -> Callable[[Callable[[Answer], Iterator[str]]], object]:
    """Register how some operations' answers are put into words."""
    return lambda put: _WORDED.update(dict.fromkeys(names, put))


def text_of(name: str, answer: Answer, root: str) -> str:
    """What an operation answered, in few words.

    Args:
        name: Of the operation.
        answer: As `--json` has it.
        root: Of the store.
    """
    pieces = [*_WORDED[name](answer)]
    if undo := answer.get("undo"):
        # The person who undoes it may be in another store.
        pieces.append(f"a person undoes it by: filestore --store {shlex.quote(root)} undo {undo}")
    return "\n".join(_written(pieces))


def _written(pieces: Iterable[str]) -> Iterator[str]:
    """Pieces as lines: ours one each, those of the store marked, and not too many of them."""
    left = _MOST_TEXT
    for piece in pieces:
        if left <= 0:
            yield "… (cut)"
            return
        shown = piece[:left]
        left -= len(shown)
        if not isinstance(piece, Passage):
            yield safe_text(shown, keep_newlines=False)
            continue
        text = safe_text(shown.replace("\r\n", "\n"))
        if isinstance(piece, Whole):
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(len(_FENCE), longest + 1)
            yield f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
        else:
            yield "\n".join(f"> {line}" for line in text.split("\n"))
        if len(shown) < len(piece):
            yield "… (cut)"
            return


def text_of_error(error: FilestoreError) -> str:
    """What was not done, why, and what helps."""
    remedy = f"Try: {' '.join(error.remedy.split())}" if error.remedy else ""
    pieces = [error.message, Passage(error.detail), remedy]
    return "\n".join(_written(filter(None, pieces)))


def _shown_name(name: str) -> str:
    """A path or a name, so that it is seen where it ends."""
    return name if _PLAIN_NAME.fullmatch(name) else orjson.dumps(name).decode()


@_words_of("search")
def _search(answer: Answer) -> Iterator[str]:
    if respelt := answer.get("respelt"):
        yield f"nothing for {_shown_name(answer['query'])}; for {_shown_name(respelt)}:"
    elif answer["nearest"]:
        yield "nothing close; nearest:"
    for number, hit in enumerate(answer["hits"] or answer["nearest"], start=1):
        # The document of a hit, and the passage's place in it.
        line, end = hit["line"], hit["end_line"]
        origin = f" p. {hit['page']}" if hit["page"] and not line else ""
        if hit["document"] != hit["path"]:
            lines = f":{line}-{end}" if line and end != line else f":{line}" if line else ""
            origin = f" ({_shown_name(hit['document'])}{lines}{origin})"
        yield _head(number, hit, origin, hit["section"])
        copies = len(hit["copies"])
        more = f"+{copies} {'copy' if copies == 1 else 'copies'}" if copies else ""
        if why := "; ".join(filter(None, (hit["reason"], more))):
            yield Passage(f"({why})")
        yield Passage(hit["excerpt"])
    yield from _closing(answer)


@_words_of("similar")
def _similar(answer: Answer) -> Iterator[str]:
    for number, hit in enumerate(answer["hits"], start=1):
        source = hit["source"] if hit["source"] != hit["path"] else None
        yield _head(number, hit, f" ({_shown_name(source)})" if source else "", hit["headings"])
        yield Passage(_brief(hit["text"]))
    yield from _closing(answer)


def _closing(answer: Answer) -> Iterator[str]:
    if not answer["hits"] and not answer.get("nearest"):
        yield "nothing found"
    yield from (f"Note: {note}" for note in answer["notes"])


@_words_of("show")
def _show(answer: Answer) -> Iterator[str]:
    record = answer["record"]
    about = [] if record["indexed"] else ["not indexed"]
    about += [record["freshness"]] if record.get("freshness", "fresh") != "fresh" else []
    source = record.get("source")
    about += [f"from {_shown_name(source)}"] if source and source != answer["path"] else []
    path = _shown_name(answer["path"])
    yield f"{path} [{', '.join(about)}]" if about else path
    yield f"revision: {answer['revision']}"
    keys = answer["frontmatter"]
    for key, sign in _SHOWN:
        if key in keys:
            value = keys[key]
            yield f"{key}: {sign.join(map(str, value)) if isinstance(value, list) else value}"
    yield Whole(answer["body"])


_SHOWN: Final = (("title", ", "), ("tags", ", "), ("headings", " > "), ("pages", ", "))


@_words_of("about")
def _about(answer: Answer) -> Iterator[str]:
    counts = [counted(answer["resources"], "document"), counted(answer["chunks"], "chunk")]
    yield f"{', '.join(counts)} in {_shown_name(answer['name']) if answer['name'] else 'the store'}"
    yield from _nodes(answer["nodes"], "")
    if not answer["nodes"]:
        yield from (f"{'  ' * one['depth']}- {one['title']}" for one in answer["outline"])
    for one in answer["documents"]:
        name = _shown_name(one["resource"])
        yield f"- {one['title']} ({name})" if one["title"] else f"- {name}"
    yield from (f"Note: {note}" for note in answer["notes"])


def _nodes(nodes: Iterable[Answer], indent: str) -> Iterator[str]:
    for node in nodes:
        path = _shown_name(node["path"])
        yield f"{indent}- {node['title'] or path}{_fresh(node)} ({path})"
        if node["text"]:
            yield Passage(_brief(node["text"]))
        yield from _nodes(node["below"], indent + "  ")


@_words_of("status")
def _status(answer: Answer) -> Iterator[str]:
    counts = ", ".join(f"{count} {what}" for what, count in answer["counts"].items())
    yield f"{'clean' if answer['clean'] else 'not clean'}, generation {answer['generation']}"
    yield counts
    for code, paths in answer["drift"].items():
        yield f"{code}: {listed(map(_shown_name, paths), _MOST_PATHS)}"
    if answer["drift"]:
        yield "sync updates the index; until then edited files say so where they are found"
    if problem := answer["embedder"]["problem"]:
        yield f"model: {problem}"


@_words_of("sync")
def _sync(answer: Answer) -> Iterator[str]:
    applied, left = len(answer["applied"]), answer["remaining"]
    if applied or answer["embedded"]:
        yield f"repaired {applied}, embedded {answer['embedded']} ({answer['reused']} from cache)"
    elif not left:
        yield "nothing to do: the index is up to date"
    for finding in left[:_MOST_PATHS]:
        yield f"left: {finding['code']} {_shown_name(finding['path'])} {finding['detail']}"
    if len(left) > _MOST_PATHS:
        yield f"and {len(left) - _MOST_PATHS} more"


@_words_of("add_note", "edit_note")
def _note(answer: Answer) -> Iterator[str]:
    yield f"wrote {_shown_name(answer['path'])}"
    if alike := answer["alike"]:
        yield f"Note: nearly the same name: {', '.join(map(_shown_name, alike))}"
    if problem := answer.get("not_embedded"):
        yield f"not embedded: {problem['error']}"


def counted(count: int, what: str) -> str:
    """A number of things."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _head(number: int, hit: Answer, origin: str, section: Iterable[str]) -> str:
    """The line of a hit: first its path, as the tools take it, then where that comes from."""
    heading = " > ".join(section)
    path, line = _shown_name(hit["path"]), hit.get("line")
    if line and hit.get("document", hit["path"]) == hit["path"]:
        # In place the line selects the section.
        path += f":{line}" if hit["kind"] == "document" else f" line {line}"
    head = f"{number}. {path}{origin}{_fresh(hit)} {hit['score']:.2f}"
    return f"{head} {heading}" if heading else head


def _fresh(one: Answer) -> str:
    return "" if one["freshness"] in ("fresh", "") else f" [{one['freshness']}]"


def _brief(text: str) -> str:
    """The first words of a text, on one line."""
    words = " ".join(text[:400].split())
    return words if len(words) <= 200 else f"{words[:200]}…"
