"""What may be asked of a served store, each once: its parameters, its answer, what does it.

HTTP, its description and MCP are made from this table. One rule: what a client gives is checked
against the parameters before any of it is used, and nothing that it names is looked for outside the
store.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from filestore.core.errors import UsageError

if TYPE_CHECKING:
    from jsonschema import ValidationError

    from filestore.server.stores import ServedStore
    from filestore.store import Store

Values = dict[str, Any]
MOST_HITS: Final = 1_000
MOST_QUESTIONS: Final = 10_000
LONGEST_QUERY: Final = 10_000
"""Characters."""
LONGEST_PATH: Final = 4_096


class Operation(Struct, frozen=True, dict=True):
    """One thing that may be asked."""

    name: str
    about: str
    """One sentence, for whoever reads the list of them."""
    run: "Callable[[Store, Values], dict[str, Any]]"
    """From an open store and checked values to what `--json` prints."""
    answer: str
    """The shape of that; see JSON.md."""
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Name to JSON Schema."""
    required: tuple[str, ...] = ()
    writes: bool = False
    slow: bool = False
    """Whether it reads for long: such wait for each other, and nobody else for them."""

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its parameters; nothing else may be given."""
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": list(self.required),
            "additionalProperties": False,
        }

    def checked(self, given: Any) -> Values:
        """What a client gives, as it is meant, with what it left out.

        Raises:
            UsageError: It does not fit.
        """
        from jsonschema import Draft202012Validator

        try:
            orjson.dumps(given)
        except TypeError as error:
            raise UsageError(
                f"{self.name}: not valid UTF-8, or no JSON",
                remedy=f"see the parameters of {self.name}",
            ) from error
        if isinstance(given, dict):
            given = {name: self._meant(name, value) for name, value in given.items()}
            given = {name: value for name, value in given.items() if value is not _LEFT_OUT}
        problem = next(iter(Draft202012Validator(self.schema).iter_errors(given)), None)
        if problem is not None:
            where = ".".join(map(str, problem.absolute_path))
            raise UsageError(
                f"{where or self.name}: {_said(problem)}",
                remedy=f"see the parameters of {self.name}",
            )
        left_out: Values = {
            name: schema["default"]
            for name, schema in self.parameters.items()
            if name not in given and "default" in schema
        }
        return {**left_out, **given}

    def _meant(self, name: str, value: Any) -> Any:
        """A value as the schema has it: programs write null, and numbers and lists as texts."""
        schema = self.parameters.get(name, {})
        kind = str(schema.get("type", ""))
        if name not in self.required and None not in schema.get("enum", ()):
            is_nothing = value is None or (value in ("", "null") and kind not in ("string", ""))
            if is_nothing and schema:
                return _LEFT_OUT
        if kind == "array" and not isinstance(value, list):
            found = _parsed(value, _KINDS[kind])
            return found if isinstance(found, list) and _fits(found, schema) else [value]
        if kind in _KINDS:
            value = _parsed(value, _KINDS[kind])
        # JSON knows one kind of number: 10.0 is a whole one.
        is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
        return int(value) if is_whole else value

    async def ask(self, store: "ServedStore", given: Any) -> dict[str, Any]:
        """Check what a client gives, and answer it.

        Raises:
            FilestoreError: What the library raises.
        """
        values: Values = self.checked(given)
        if self.name == "add":
            store.require_writes()
            values["paths"] = store.require_allowed(values["paths"])
        do = store.write if self.writes else store.read_long if self.slow else store.read
        answer = await do(lambda opened: self.run(opened, values))
        if self.writes:
            store.tell(self.name, answer)
        return answer


_LEFT_OUT: Final = object()
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "integer": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
"""What JSON in a text may stand for."""


def _parsed(value: Any, kinds: tuple[type, ...]) -> Any:
    """What a text holds as JSON, where that is of some kinds; else the value itself."""
    if not isinstance(value, str):
        return value
    try:
        found = orjson.loads(value if value not in ("True", "False") else value.lower())
    except orjson.JSONDecodeError:
        return value
    return found if type(found) in kinds else value


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    from jsonschema import Draft202012Validator

    return bool(Draft202012Validator(schema).is_valid(value))


_MOST: Final = {"maxItems": "values", "maxProperties": "keys", "maxLength": "characters"}


def _said(problem: "ValidationError") -> str:
    """What does not fit; of what is too long not all of it."""
    if problem.validator in _MOST:
        return f"expected at most {problem.validator_value:,} {_MOST[problem.validator]}"
    return problem.message if len(problem.message) <= 300 else f"{problem.message[:300]}…"


def text(about: str, *, longest: int = LONGEST_PATH, **more: Any) -> dict[str, Any]:
    """The schema of a text."""
    return {"type": "string", "maxLength": longest, "description": about, **more}


def number(about: str, *, least: int, most: int, default: int) -> dict[str, Any]:
    """The schema of a whole number."""
    bounds = {"minimum": least, "maximum": most, "default": default}
    return {"type": "integer", "description": about, **bounds}


def flag(about: str, *, default: bool = False) -> dict[str, Any]:
    """The schema of a yes or no."""
    return {"type": "boolean", "description": about, "default": default}


def texts(about: str, **more: Any) -> dict[str, Any]:
    """The schema of a list of texts."""
    item = {"type": "string", "maxLength": LONGEST_PATH}
    # The length stands first, and is checked first: a million texts are refused at once.
    return {"type": "array", "maxItems": 1_000, "items": item, "description": about, **more}


def one_of(about: str, *choices: str) -> dict[str, Any]:
    """The schema of a word out of some; the first is the default."""
    return {"enum": list(choices), "default": choices[0], "description": about}


_PLAIN: Final = ["string", "number", "boolean"]
_WHERE: Final = {
    "type": "object",
    "description": "key to value, or to values that must all hold, of frontmatter or document",
    "maxProperties": 100,
    "additionalProperties": {
        "type": [*_PLAIN, "array"],
        "maxItems": 100,
        "items": {"type": _PLAIN},
    },
    "default": {},
}
_PATH: Final = text("of a chunk file or a document, relative to the root; PATH:LINE in place")
_K: Final = number("at most so many", least=1, most=MOST_HITS, default=10)
_EMBED: Final = flag("whether texts without embedding are embedded now", default=True)


def _search(store: "Store", values: Values) -> dict[str, Any]:
    query: str = values.pop("query")
    return store.search(query, **values).to_dict()


def _ls(store: "Store", values: Values) -> dict[str, Any]:
    from filestore.browse.records import ChunkFiles, Resources

    named = values["resource"]
    if not named:
        return Resources(store.resources()).to_dict()
    folder = store.documents(named)
    if folder is not None:
        return Resources(folder).to_dict()
    return ChunkFiles(store.chunks(named)).to_dict()


def _evaluate(store: "Store", values: Values) -> dict[str, Any]:
    from filestore.search.metrics import parse_queries

    lines = b"\n".join(map(orjson.dumps, values["questions"]))
    found = store.evaluate(parse_queries(lines, name="questions"), k=values["k"])
    each = found.results if values["per_query"] else ()
    return replace(found, per_query=each).to_dict()


def _add(store: "Store", values: Values) -> dict[str, Any]:
    into = values.get("into") or None
    return store.add(*values["paths"], into=into, each=values["each"]).to_dict()


def _remove(store: "Store", values: Values) -> dict[str, Any]:
    from filestore.ingest.remove import RemovedResources

    return RemovedResources(store.remove(*values["resources"])).to_dict()


def _undo(store: "Store", values: Values) -> dict[str, Any]:
    from filestore.repair.undo import nothing

    done = store.undo(values["id"] or None)
    return (done or nothing("before")).to_dict()


_ALL: Final = (
    Operation(
        name="search",
        about="Search the store: passages, best first, with document, line and freshness",
        run=_search,
        answer="Answer",
        parameters={
            "query": text('words, "phrases", -excluded, +required', longest=LONGEST_QUERY),
            "k": _K,
            "mode": one_of("what ranks the hits", "hybrid", "vector", "keyword"),
            "where": _WHERE,
            "source": texts(
                "globs over the path of the source, of which one must hold", default=[]
            ),
            "kind": {
                "type": "array",
                "maxItems": 2,
                "items": {"enum": ["chunk", "summary"]},
                "description": "only these kinds",
                "default": [],
            },
            "syntax": one_of("which signs are operators", "auto", "plain", "operators"),
            "group": {"enum": ["document", None], "description": "one hit a document"},
            "context": number("lines around each passage", least=0, most=100, default=0),
            "tree": flag("go from the summaries down to the texts"),
        },
        required=("query",),
    ),
    Operation(
        name="similar",
        about="Find what is similar to a file, or to one of its lines",
        run=lambda store, values: store.similar(values["path"], k=values["k"]).to_dict(),
        answer="Similar",
        parameters={"path": _PATH, "k": _K},
        required=("path",),
    ),
    Operation(
        name="show",
        about="Show one chunk file or document with its record",
        run=lambda store, values: store.show(values["path"]).to_dict(),
        answer="Shown",
        parameters={"path": _PATH},
        required=("path",),
    ),
    Operation(
        name="document",
        about="Show a whole document in its parts, around the one that is named",
        run=lambda store, values: store.document(values.pop("path"), **values).to_dict(),
        answer="WholeDocument",
        parameters={
            "path": text("of a chunk file or a document, relative to the root"),
            "line": number("of a document in place", least=0, most=10**9, default=0),
            "first": {
                "type": "integer",
                "minimum": 0,
                "maximum": 10**9,
                "description": "begin with the part of this number, not around the one named",
            },
        },
        required=("path",),
    ),
    Operation(
        name="map",
        about="Lay the texts of the store out in a plane, near ones near each other",
        run=lambda store, values: store.vector_map(most=values["most"]).to_dict(),
        answer="VectorMap",
        parameters={"most": number("points", least=1, most=20_000, default=2_000)},
        slow=True,
    ),
    Operation(
        name="ls",
        about="List resources, or the chunks of one",
        run=_ls,
        answer="Resources",
        parameters={"resource": text("its name; none for all", default="")},
    ),
    Operation(
        name="about",
        about="Say what the store, a resource, a file or a question is about",
        run=lambda store, values: store.about(values["asked"], depth=values["depth"]).to_dict(),
        answer="Overview",
        parameters={
            "asked": text("a resource, a file or a question", default=""),
            "depth": number("levels of summaries", least=1, most=20, default=2),
        },
    ),
    Operation(
        name="links",
        about="List the links of a file, and those to it",
        run=lambda store, values: store.links(values["path"]).to_dict(),
        answer="Links",
        parameters={"path": _PATH},
        required=("path",),
    ),
    Operation(
        name="status",
        about="Show what drifted between files and index",
        run=lambda store, values: store.status().to_dict(),
        answer="Status",
    ),
    Operation(
        name="verify",
        about="Check everything, change nothing",
        run=lambda store, values: store.verify(level=values["level"]).to_dict(),
        answer="Checked",
        parameters={"level": one_of("how thoroughly", "fast", "full", "deep")},
        slow=True,
    ),
    Operation(
        name="evaluate",
        about="Measure search quality by questions whose answers are known",
        run=_evaluate,
        answer="Evaluation",
        parameters={
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_QUESTIONS,
                "items": {"type": "object"},
                "description": "each with query, relevant and, if wanted, id",
            },
            "k": _K,
            "per_query": flag("whether each question's scores are told"),
        },
        required=("questions",),
        slow=True,
    ),
    Operation(
        name="sync",
        about="Update the index from the files",
        run=lambda store, values: store.sync(**values).to_dict(),
        answer="SyncReport",
        parameters={
            "embed": _EMBED,
            "forget_missing": flag("whether a mass of missing files is meant to be gone"),
            "full": flag("verify everything first, and repair what that finds"),
        },
        writes=True,
    ),
    Operation(
        name="update",
        about="Follow the originals: re-ingest what changed, then sync",
        run=lambda store, values: store.update(*values.pop("resources"), **values).to_dict(),
        answer="UpdateReport",
        parameters={
            "resources": texts("their names; none for all", default=[]),
            "remove_gone": flag("whether what was made from originals that are gone is to go"),
            "embed": _EMBED,
        },
        writes=True,
    ),
    Operation(
        name="add",
        about="Add documents that lie in the store's folder, or update them; others are uploaded",
        run=_add,
        answer="AddReport",
        parameters={
            "paths": texts("of files and folders, relative to the root", minItems=1),
            "into": text("the resource's name", longest=255, default=""),
            "each": flag("whether every child of a folder is a resource of its own"),
        },
        required=("paths",),
        writes=True,
    ),
    Operation(
        name="remove",
        about="Remove resources; can be undone",
        run=_remove,
        answer="RemovedResources",
        parameters={"resources": texts("their names", minItems=1)},
        required=("resources",),
        writes=True,
    ),
    Operation(
        name="undo",
        about="Undo a change of files",
        run=_undo,
        answer="UndoResult",
        parameters={"id": text("which one; none for the newest", default="")},
        writes=True,
    ),
)

OPERATIONS: Final[Mapping[str, Operation]] = {one.name: one for one in _ALL}
"""By name."""
