"""What may be asked, each once: of the command line, over HTTP, by agents.

All three are made from this table, and so is what describes them. A row's options are a value, in
the module of its command, and in `server/requests` where a served store answers. One rule: what a
client gives is checked against them before any of it is used.

A name, a type and a default say nearly all of an option: `depth: int = 2` is ``--depth``, and of a
flag that is True ``--no-…`` is typed. A `Typed` that annotates the type says the rest, and the
docstring under the field has the sentence for people.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec
import orjson
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from filestore.core.errors import UsageError
from filestore.core.safe_text import safe_text
from filestore.core.schema import UnfitError, converted, json_of
from filestore.core.spelling import did_you_mean

if TYPE_CHECKING:
    from filestore.store import Store

V = TypeVar("V", bound=Struct)
_LEFT_OUT: Final = object()


class Typed(Struct, frozen=True, kw_only=True):
    """How a field is typed, where its name and type do not say it."""

    metavar: str | None = None
    names: tuple[str, ...] = ()
    """Of the option, instead of one like the field's name."""
    argument: bool = False
    """Whether it is positional."""
    joined: bool = False
    """Whether several words make one text."""
    many: bool = False
    """Whether a list takes several words at once."""
    one_of: Sequence[str] = ()
    """Words that its help lists, and that the command itself checks."""
    group: str = ""
    """Of options that exclude each other."""
    needs: str = ""
    """The field without which it means nothing."""
    hidden: bool = False
    """Whether the help leaves it out."""
    local: bool = False
    """Whether only the command line takes it, and no server."""
    inner: bool = False
    """Whether neither does, but programs that use the library."""


def option(metavar: str | None = None, *names: str, **more: Any) -> Typed:
    """How an option is typed."""
    return Typed(metavar=metavar, names=names, **more)


def argument(metavar: str, **more: Any) -> Typed:
    """How a positional argument is typed."""
    return Typed(metavar=metavar, argument=True, **more)


MOST_HITS: Final = 1_000
LIMIT: Final = ("-n", "--limit")
"""Other names of `k`."""
LONGEST_QUERY: Final = 10_000
"""Characters."""
LONGEST_PATH: Final = 4_096
Text = Annotated[str, Meta(max_length=LONGEST_PATH)]
# The length of a list is checked first: a million texts are refused at once.
Texts = Annotated[list[Text], Meta(max_length=1_000)]
Count = Annotated[int, Meta(ge=1, le=MOST_HITS), option("N", *LIMIT)]
Scalar = Annotated[str, Meta(max_length=10_000)] | int | float | bool
Values = Scalar | Annotated[list[Scalar], Meta(max_length=100)]
Where = Annotated[dict[str, Values], Meta(max_length=100), option("K=V")]


class Caller(Struct, frozen=True):
    """Who asks: a program, or a person at the page."""

    name: str
    """Of the program, as it or its token says; "" for a person, and where nothing says."""
    writes: bool
    """Whether it may change stores, as far as these are served to be changed."""
    person: bool
    """Whether it is a person, who sees what is closed to programs."""

    @property
    def program(self) -> str | None:
        """Who changes files, as it is kept with the change; None for a person."""
        return None if self.person else self.name or "a program"


LONGEST_NAME: Final = 80
"""Characters of a caller's name."""


def caller_name(text: str) -> str:
    """A name that a program gives itself, on one line and fit to be printed and kept."""
    return " ".join(safe_text(text[:4_000], keep_newlines=False).split())[:LONGEST_NAME].strip()


class Request:
    """What may be asked of a store."""

    __slots__ = ()

    def answer(self, store: "Store") -> Any:
        """What the store answers."""
        raise NotImplementedError

    def answer_to(self, store: "Store", caller: Caller) -> Any:
        """What the store answers to a client; other than that only where it matters who asks."""
        return self.answer(store)

    def allowed(self, require_allowed: Callable[[Sequence[str]], list[str]]) -> Self:
        """The same with nothing in it that leads out of the store.

        Args:
            require_allowed: Of the served store.

        Raises:
            RefusedError: Something does.
        """
        return self


class CommonOptions(Struct, frozen=True, kw_only=True):
    """What every command takes."""

    store: Annotated[str | None, option("DIR", local=True)] = None
    """the store, or a folder with file_index/"""
    json: Annotated[bool, option(local=True)] = False
    """print JSON on standard output"""


class Field(Struct, frozen=True, kw_only=True):
    """One field of options."""

    name: str
    key: str
    """Its name in JSON."""
    kind: Any
    """`str`, `int`, `float`, `bool` or `dict`; of a list, that of its items."""
    hint: Any
    """As it is annotated."""
    typed: Typed
    default: Any
    required: bool
    several: bool
    choices: tuple[str, ...] | None

    @property
    def names(self) -> tuple[str, ...]:
        """Its names on a command line; none of a positional argument."""
        if self.typed.argument:
            return ()
        if len(self.name) == 1:
            return (*self.typed.names, f"-{self.name}")
        no = "no-" if self.default is True else ""
        return self.typed.names or (f"--{no}{self.name.replace('_', '-')}",)


def fields_of(kind: type[Struct]) -> tuple[Field, ...]:
    """The fields of options, in the order of their help."""
    found = []
    for one in fields(kind):
        hint, typed = _plain(one.type)
        if typed.inner:
            continue
        several = isinstance(origin := get_origin(hint), type) and issubclass(origin, Sequence)
        if several:
            hint, _ = _plain(get_args(hint)[0])
        if get_origin(hint) in (Union, UnionType):
            # Of the forms that a value may have the first is the plain one.
            hint, _ = _plain(get_args(hint)[0])
        choices = get_args(hint) if get_origin(hint) is Literal else None
        made = one.default if one.default_factory is NODEFAULT else one.default_factory()
        found.append(
            Field(
                name=one.name,
                key=one.encode_name,
                kind=str if choices else get_origin(hint) or hint,
                hint=one.type,
                typed=typed,
                default=None if one.required else made,
                required=one.required,
                several=several,
                choices=choices,
            )
        )
    return tuple(found)


def _plain(hint: Any) -> tuple[Any, Typed]:
    """A type without None and without what annotates it, and how its field is typed."""
    typed = Typed()
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            typed = next((one for one in more if isinstance(one, Typed)), typed)
            continue
        is_union = get_origin(hint) in (Union, UnionType)
        kinds = [one for one in get_args(hint) if one is not NoneType] if is_union else []
        if len(kinds) != 1:
            return hint, typed
        (hint,) = kinds


def sentences(kind: type[Struct]) -> Mapping[str, str]:
    """The docstrings under the fields of a class and of its bases, by field."""
    import ast
    import inspect

    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if one in (object, Struct) or not issubclass(one, Struct):
            continue
        (node,) = ast.parse(inspect.getsource(one)).body
        for field, text in pairwise(getattr(node, "body", ())):
            value = text.value if isinstance(text, ast.Expr) else None
            if isinstance(field, ast.AnnAssign) and isinstance(value, ast.Constant):
                found[ast.unparse(field.target)] = " ".join(str(value.value).split())
    return found


def fields_for(kind: type[msgspec.Struct]) -> Mapping[str, Field]:
    """The options that clients may give, by name."""
    return {one.key: one for one in fields_of(kind) if not one.typed.local}


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of some options; nothing else may be given."""
    texts, fields = sentences(kind), fields_for(kind)
    properties = {}
    for key, one in fields.items():
        found = _whole(msgspec.json.schema(one.hint))
        # Null is what may be left out; no client need know.
        kinds = [kind for kind in found.get("anyOf", ()) if kind != {"type": "null"}]
        found = kinds[0] if len(kinds) == 1 else found
        properties[key] = found | {"description": texts[one.name]}
        if one.default is not None:
            properties[key]["default"] = one.default
    return {
        "type": "object",
        "properties": properties,
        "required": [one.key for one in fields.values() if one.required],
        "additionalProperties": False,
    }


def _whole(schema: Any, known: Mapping[str, Any] | None = None) -> Any:
    """A schema without references: it is embedded in another one."""
    if isinstance(schema, list):
        return [_whole(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    known = schema.pop("$defs", known or {})
    if "$ref" in schema:
        return _whole(dict(known[schema["$ref"].rpartition("/")[2]]), known)
    return {key: _whole(one, known) for key, one in schema.items()}


@cache
def definitions(place: str = "#/$defs/") -> dict[str, Any]:
    """Every shape by its name; others in it are references to where they lie."""
    from importlib.resources import files

    data = files("filestore.server").joinpath("schema.json").read_bytes()
    found: dict[str, Any] = orjson.loads(data.replace(b"#/$defs/", place.encode()))["$defs"]
    return found


def decoded(kind: type[V], given: Any, name: str) -> V:
    """The options that a client gives, converted and with defaults.

    Args:
        kind: The options.
        given: As it came in JSON, or in the query of an address.
        name: Of what is asked, for messages.

    Raises:
        UsageError: It does not fit.
    """
    remedy = f"see the parameters of {name}"
    try:
        orjson.dumps(given)
    except TypeError as error:
        raise UsageError(f"{name}: not valid UTF-8, or no JSON", remedy=remedy) from error
    try:
        if isinstance(given, dict):
            fields = fields_for(kind)
            for key in given:
                if key not in fields:
                    nearest = did_you_mean(key[:80], fields)
                    raise UsageError(f"unknown parameter {key[:80]!r}{nearest}", remedy=remedy)
            read = {key: _coerced(fields[key], value) for key, value in given.items()}
            given = {key: value for key, value in read.items() if value is not _LEFT_OUT}
        return converted(given, kind)
    except UnfitError as error:
        raise UsageError(f"{name}: {error.message}", remedy=remedy) from error


def _coerced(field: Field, value: Any) -> Any:
    """A value as its type wants it.

    Programs write null, numbers and lists as texts, a year as a number, a list of one as the one
    and the one as a list.
    """
    is_text = field.kind is str and not field.several
    if not field.required and (value is None or (value in ("", "null") and not is_text)):
        return _LEFT_OUT
    if field.several:
        return _as_list(field, value)
    if field.kind is dict:
        return _as_conditions(field.key, parsed(value))
    if get_origin(_plain(field.hint)[0]) in (Union, UnionType):
        value = [*map(parsed, found)] if isinstance(found := parsed(value), list) else value
    if isinstance(value, list) and (len(value) == 1 or (is_text and field.typed.joined)):
        texts = all(isinstance(one, str) for one in value)
        value = " ".join(value) if texts else value[0] if len(value) == 1 else value
    if isinstance(value, int) and (field.typed.joined or field.typed.metavar == "DATE"):
        return value if isinstance(value, bool) else str(value)
    if field.kind in (int, float, bool):
        found = parsed(value)
        value = found if isinstance(found, bool | int | float) else value
        # JSON knows one kind of number: 10.0 is a whole one.
        if field.kind is not float and isinstance(value, float) and value.is_integer():
            return int(value)
    return value


def _as_list(field: Field, value: Any) -> list[Any]:
    if not isinstance(value, list):
        found = parsed(value)
        value = found if isinstance(found, list) else [value]
        with contextlib.suppress(UnfitError):
            return list(converted(value, field.hint))
    return list(value)


def _as_conditions(name: str, value: Any) -> Any:
    """What metadata must be; a text in it is one condition, as the command line has it."""
    if isinstance(value, dict | None):
        return value
    from filestore.search.conditions import typed

    found = []
    for one in value if isinstance(value, list) else [value]:
        one = parsed(one)
        if isinstance(one, str):
            condition = typed(one, name)
            one = {"key": condition.key, "op": condition.op, "value": condition.value}
        found.append(one)
    return found


def parsed(value: Any) -> Any:
    """What a text holds as JSON; else the value itself."""
    with contextlib.suppress(orjson.JSONDecodeError):
        if isinstance(value, str):
            return json_of(value if value not in ("True", "False") else value.lower())
    return value


class Operation(Struct, frozen=True, dict=True):
    """One thing that may be asked."""

    name: str
    about: str
    """One line, for the list of commands."""
    answer: str = ""
    """The shape of what a served store answers; see JSON.md."""
    route: str = ""
    """Its name over HTTP; "" where it is not asked so."""
    command: bool = True
    """Whether the command line has it: `run_…` with its name in a module of `cli`."""
    tool: bool = False
    """Whether agents may call it."""
    writes: bool = False
    module: str = "requests"
    """Of `server`, which has the options that clients give."""
    slow: bool = False
    """Whether it reads for long: such operations wait for each other, and no others for them."""
    options: str = ""
    """The name of its options in the module; "" for that of the operation."""
    for_readers: "Operation | None" = None
    """What callers get that may only read, where they get something."""

    @property
    def sentence(self) -> str:
        """The line, as a sentence begins."""
        return self.about[:1].upper() + self.about[1:]

    @cached_property
    def kind(self) -> type[Any]:
        """The options that clients give, as a value that answers."""
        name = self.options or (self.route or self.name).title().replace("_", "")
        found: type[Any] = getattr(import_module(f"filestore.server.{self.module}"), name)
        return found

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its options."""
        return schema_of(self.kind)

    def of(self, *, writes: bool) -> "Operation":
        """What a caller gets who may write, or may only read."""
        return self if writes or self.for_readers is None else self.for_readers

    def checked(self, given: Any) -> Request:
        """The options that a client gives; see `decoded`."""
        request: Request = decoded(self.kind, given, self.route or self.name)
        return request


OPERATIONS: Final = (
    Operation("init", "create a store"),
    Operation("add", "add documents, or update them", "AddReport", "add", writes=True),
    Operation(
        "update",
        "re-import changed source files, then sync",
        "UpdateReport",
        "update",
        writes=True,
    ),
    Operation("rm", "remove documents; can be undone", "RemovedResources", "remove", writes=True),
    Operation("mv", "move a file or a folder, with the links to it"),
    Operation("ls", "list documents, or the chunks of one", "Resources", "ls"),
    Operation(
        "list",
        "list folders with counts, the newest and most linked documents, then those of a folder",
        "Contents",
        "list",
        command=False,
        tool=True,
    ),
    Operation("show", "show a document or chunk file with its record", "Shown", "show", tool=True),
    Operation("status", "show what drifted between files and index", "Status", "status", tool=True),
    Operation("verify", "check everything, change nothing", "Checked", "verify", slow=True),
    Operation(
        "sync",
        "update the index from the files",
        "SyncReport",
        "sync",
        tool=True,
        writes=True,
        for_readers=Operation(
            "sync", "index new, edited and moved files; forget nothing", slow=True, options="TakeUp"
        ),
    ),
    Operation("repair", "plan repairs, ask, and apply them"),
    Operation("changes", "list changes and who made them, newest first", "Changes", "changes"),
    Operation("undo", "undo a change of files", "UndoResult", "undo", writes=True),
    Operation("redo", "redo a change that was undone"),
    Operation("watch", "keep the index up to date while files change"),
    Operation("git", "install git hooks that keep the index up to date"),
    Operation(
        "search",
        "search the store: passages, best first, with document, line and freshness",
        "Answer",
        "search",
        tool=True,
        module="searching",
    ),
    Operation(
        "about",
        "overview: what is in the store, a folder or a document, or about a question",
        "Overview",
        "about",
        tool=True,
    ),
    Operation(
        "similar",
        "find passages similar to a file or to the passage at PATH:LINE",
        "Similar",
        "similar",
        tool=True,
    ),
    Operation("duplicates", "find files with the same or nearly the same text"),
    Operation("links", "list the links of a file, and those to it", "Links", "links"),
    Operation(
        "document",
        "show a whole document in its parts, around the one that is named",
        "WholeDocument",
        "document",
        command=False,
    ),
    Operation("open", "open a search hit in your editor, at its line"),
    Operation(
        "evaluate",
        "measure search quality with questions whose answers are known",
        "Evaluation",
        "evaluate",
        slow=True,
    ),
    Operation("log", "list the commits that changed the answer to a question"),
    Operation("compare", "list the answers that changed between two commits"),
    Operation("embedder", "list models, or change the store's model"),
    Operation("backend", "show or choose where vectors are searched"),
    Operation("embeddings", "carry embeddings from one store to another in a file"),
    Operation("export", "write the store in a form of other programs"),
    Operation("import", "import an export of filestore or another program"),
    Operation("convert", "turn an index in a .ragmd file into FAISS + JSON, or back"),
    Operation("enrich", "make questions and summaries, kept as files"),
    Operation(
        "add_note",
        "write a new note as Markdown, found at once; the answer names the undo command",
        "Note",
        command=False,
        tool=True,
        writes=True,
    ),
    Operation(
        "append",
        "add text at the end of a Markdown file; the answer names the undo command",
        "Note",
        command=False,
        tool=True,
        writes=True,
    ),
    Operation(
        "edit",
        "replace a passage or a section of a Markdown file; the answer names the undo command",
        "Note",
        command=False,
        tool=True,
        writes=True,
    ),
    Operation(
        "move",
        "move or rename a file or a folder and rewrite the links to it; the answer names the"
        " undo command",
        "Move",
        "move",
        command=False,
        tool=True,
        writes=True,
    ),
    Operation("trust", "allow this store to use the services in its settings"),
    Operation("reconstruct", "rebuild a document from its chunks"),
    Operation("serve", "serve stores to programs, agents and browsers"),
    Operation("mcp", "answer agents over MCP"),
    Operation("token", "manage the tokens of clients of 'serve'"),
    Operation("demo", "take a tour in a temporary folder"),
    Operation("tui", "open the inspector"),
    Operation("config", "list what you want in every store, and its origin"),
    Operation("doctor", "check this machine, and name the command to run first"),
    Operation("completion", "print what completes commands at TAB, for bash, zsh or fish"),
    Operation("help", "print the help of a command, a page of the manual, or a code"),
)

COMMANDS: Final = {one.name: one for one in OPERATIONS if one.command}
"""By the name of the command."""
MODULES: Final = {
    command: module
    for module, commands in {
        "documents": ("add", "update", "rm", "mv", "enrich"),
        "files": ("ls", "show", "about", "links", "status", "similar", "duplicates"),
        "syncing": ("verify", "sync", "watch", "repair", "changes", "undo", "redo"),
        "questions": ("evaluate", "compare", "log"),
        "models": ("embedder", "backend"),
        "exchange": ("export", "import", "convert", "reconstruct", "embeddings"),
        "serve": ("serve", "mcp", "open", "tui"),
        "setup": ("init", "trust", "demo"),
    }.items()
    for command in commands
}
"""Of `cli`, by the command; any other command has one of its own name."""
ROUTES: Final = {one.route: one for one in OPERATIONS if one.route}
"""By their name over HTTP."""
TOOLS: Final = {one.name: one for one in OPERATIONS if one.tool}
"""By the name that agents call."""
