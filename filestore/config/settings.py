"""Settings: `filestore.toml`, committed with the store, and the few kept on the user's side.

Parses and serialises; knows nothing of what the settings do. One rule: a clone's settings never
reach outside the store, so only the user's own file has paths.
"""

import contextlib
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from filestore.config.layout import LINES, SETTINGS
from filestore.core.caller import leads
from filestore.core.errors import UPGRADE, FilestoreError, UsageError
from filestore.core.paths import CHUNKS, DOCUMENTS, Tree
from filestore.core.safe_text import brief
from filestore.core.schema import UnfitError, converted, unknown_keys
from filestore.fs import disk

FORMAT_VERSION: Final = 1
USERS: Final = os.path.join("filestore", "settings.toml")
"""The user's own settings, in the folder of the user's configuration."""
"""Where the vectors may be searched; the first one is the sidecar's own file."""
DEFAULT_BUDGET: Final = 240
MAX_BUDGET: Final = 100_000

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 32
MAX_RULES: Final = 1_000
MAX_RULE: Final = 1_000
"""Characters."""
_SHOWN: Final = 100

_TEXT: Final = (
    r'"""(?:\\.|[^\\])*?"""|'
    r"'''.*?'''|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'[^'\n]*'|#[^\n]*"
)
"""Texts and remarks, in which no sign means anything."""
_TOKEN: Final = re.compile(rf"{_TEXT}|[][{{}}=,.\n]", re.DOTALL)
"""What opens, closes, joins and parts."""
_INTEGER: Final = re.compile(
    rf"{_TEXT}|(?<![\w.+-])[+-]?([1-9][0-9_]*+)(?![\w.:+-]|[ \t]*=)", re.DOTALL
)
"""A decimal one is group 1; no part of a date or of a fraction, and no key."""
_OPENING: Final = frozenset("[{")
_CLOSING: Final = frozenset("]}")
_PARTING: Final = frozenset("[]{}=,\n")
_OPTION: Final[Any] = str | int | bool | tuple[str, ...]
"""What a key of `backend_config` may have."""
_EVERY: Final = "*"
"""Every resource that is not named."""
DESCRIBED: Final = "FORMAT.md describes every key."

BackendName = Literal["faiss", "local", "qdrant", "pgvector"]
LayoutName = Literal["tree", "flat", "in-place"]
LAYOUTS: Final[dict[LayoutName, Tree]] = {"tree": CHUNKS, "flat": CHUNKS, "in-place": DOCUMENTS}
A = TypeVar("A", bound="AgentRules")
T = TypeVar("T", bound=Struct)


class SettingsError(FilestoreError, ValueError):
    """`filestore.toml` cannot be used."""


class NewerFormatError(FilestoreError):
    """The store was written by a newer filestore."""


class ModelOptions(Struct, frozen=True, kw_only=True):
    """How the model of a store is to be used; None leaves it to what the model says of itself."""

    endpoint: str | None = None
    """Base address of an OpenAI-compatible service, such as ``http://127.0.0.1:11434/v1``."""
    dimension: Annotated[int, Meta(ge=1)] | None = None
    """Asked of a service that can shorten its vectors; of others what is expected."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """The longest text that is embedded well."""
    query_prefix: str | None = None
    document_prefix: str | None = None


class SecondModel(ModelOptions, frozen=True, kw_only=True):
    """A second model that is tried: the table ``[beside]``."""

    embedder: Annotated[str, Meta(min_length=1)]
    """As the key ``embedder`` of the store's own."""

    @property
    def model(self) -> ModelOptions:
        """As the table ``[model]``; its keys are in the same table as `embedder`."""
        return ModelOptions(**{key: getattr(self, key) for key in ModelOptions.__struct_fields__})


Which = Literal["own", "beside"]
MODELS: Final[tuple[Which, ...]] = get_args(Which)
"""The two models that settings name."""


class GeneratorOptions(Struct, frozen=True, kw_only=True):
    """How a store's generator is to be used: the table ``[generator]``."""

    name: str = "extractive"
    """Kind, or kind and model: ``openai:gpt-4o-mini``."""
    endpoint: str | None = None
    """Base address of an OpenAI-compatible service, such as ``http://127.0.0.1:11434/v1``."""
    window_tokens: Annotated[int, Meta(ge=1)] | None = None
    """The most tokens of text in one request."""
    prompts: str | None = None
    """A folder of the store with prompts of its own, relative to its root."""
    price_in: Annotated[float, Meta(ge=0)] | None = None
    """Of a million tokens that are sent, in any currency; None where it is not known."""
    price_out: Annotated[float, Meta(ge=0)] | None = None
    """Of a million tokens that come back."""
    requests_per_minute: Annotated[int, Meta(ge=1)] | None = None
    """No more are made; None for as many as the service takes."""
    timeout_s: Annotated[int, Meta(ge=1)] | None = None
    """For one answer; with its repetitions twice as long. None for 300 s."""
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The least mean cosine of chunks under one summary; None leaves it to the data."""


class Follow(Struct, frozen=True, kw_only=True):
    """Which resources follow their originals without being asked."""

    every: bool = True
    """Whether those do that are not named, and whose original lies in the work tree."""
    named: Mapping[str, bool] = field(default_factory=dict)
    """What was chosen for a resource, by its name."""


class AgentRules(Struct, frozen=True, kw_only=True):
    """What programs may see and change: the table ``[agents]`` of the user, for every store.

    A rule is a pattern of paths as in ``.gitignore``, ``tag:NAME`` or ``KEY=VALUE``.
    """

    closed: tuple[str, ...] = ()
    """Rules for what programs neither read nor write."""
    read_only: tuple[str, ...] = ()
    """Rules for what programs do not write."""


class InspectorOptions(Struct, frozen=True, kw_only=True):
    """How the inspector looks: the table ``[inspector]`` of the user, for every store."""

    theme: str = ""
    """Its colours, as `T` names them; "" for those chosen last."""
    columns: tuple[str, ...] = ()
    """Of its list, in their order; none for the usual ones."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """An action, as ``browse.filter``, to the keys that do it in place of its own."""


class UserDefaults(Struct, frozen=True, kw_only=True):
    """The table ``[defaults]`` of the user's settings; None leaves it to what comes after."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    """Results of `search` and `similar`, on a terminal alone."""
    mode: Literal["hybrid", "vector", "keyword"] | None = None
    """Of `search`, on a terminal alone."""
    color: Literal["auto", "never"] | None = None
    pager: str | None = None
    """A command; empty for none."""
    editor: str | None = None
    """A command."""
    links: str | None = None
    """An address that opens a hit, with ``{path}`` and ``{line}``; empty for none."""


class AgentOptions(AgentRules, frozen=True, kw_only=True):
    """The same of a store, and how programs are to write there: its table ``[agents]``."""

    conventions: str | None = None
    """A note of the store, relative to its root, that says how notes are written here."""
    sign: bool = False
    """Whether the frontmatter names the program that wrote, as `author`."""

    def joined(self, other: AgentRules) -> "AgentOptions":
        """With the rules of others, too."""
        return replace(
            self,
            closed=tuple(dict.fromkeys((*self.closed, *other.closed))),
            read_only=tuple(dict.fromkeys((*self.read_only, *other.read_only))),
        )


class KeyNames(Struct, frozen=True, kw_only=True):
    """Which keys of frontmatter say how old a document is and what holds of it: ``[keys]``."""

    created: tuple[str, ...] = ("created", "date")
    """The first that is a date counts, here and below."""
    updated: tuple[str, ...] = ("updated", "modified", "date", "timestamp")
    status: tuple[str, ...] = ("status",)
    superseded_by: tuple[str, ...] = ("superseded_by",)
    stale_after: tuple[str, ...] = ("stale_after",)
    verified: tuple[str, ...] = ("verified",)
    sources: tuple[str, ...] = ("sources",)


class BackendKind(Struct, frozen=True, kw_only=True):
    """A kind of backend."""

    member: str
    """Module and class of `index.backend.IndexBackend`."""
    keys: str
    """What it takes, in words; `metadata_whitelist=KEY,KEY` is one of every kind's."""
    path: str = ""
    """Of its file in the sidecar, where the settings name none; "" where it has none."""


BACKENDS: Final[Mapping[str, BackendKind]] = {
    "faiss": BackendKind(
        member="filestore.index._file_rows.FaissRows",
        keys="the FAISS file of the sidecar; with path=FILE another one",
    ),
    "local": BackendKind(
        member="filestore.index._file_rows.LocalRows",
        keys="a file of JSON lines, every vector compared; path=FILE (in the sidecar, if relative)",
        path=LINES,
    ),
    "qdrant": BackendKind(
        member="filestore.index._qdrant.rows.QdrantRows",
        keys="url=URL or path=FOLDER; collection, shards, replication, timeout_s",
    ),
    "pgvector": BackendKind(
        member="filestore.index._pgvector.rows.PgvectorRows",
        keys="dsn=DSN; table, schema, index=auto|exact|hnsw, timeout_s",
    ),
}
_OWN_FILE: Final = "faiss"


class Backend(Struct, frozen=True, kw_only=True):
    """Where a store's vectors are searched: key ``backend`` and table ``[backend_config]``."""

    kind: str = _OWN_FILE
    options: Mapping[str, str | int | bool | tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_own_file(self) -> bool:
        """Whether that is the FAISS file of the sidecar, as by default."""
        return self.kind == _OWN_FILE and not self.options


class Settings(Struct, frozen=True, kw_only=True):
    """What a store was set to."""

    layout: LayoutName = "tree"
    embedder: str = "builtin"
    """Name, or name and model: ``onnx:all-MiniLM-L6-v2``."""
    model: ModelOptions = ModelOptions()
    second: SecondModel | None = None
    """The second model; None where there is none."""
    generator: GeneratorOptions = GeneratorOptions()
    ignore: tuple[str, ...] = ()
    """Patterns, as in ``.gitignore``, of what is left out of folders that are added."""
    follow: Follow = Follow()
    updates: bool = True
    """Whether a search looks at the files first, and indexes what is quickly indexed."""
    metric: str = "cosine"
    backend: Backend = Backend()
    keys: KeyNames = KeyNames()
    budget: int = DEFAULT_BUDGET
    """The most tokens a chunk may have, heading path included."""
    agents: AgentOptions = AgentOptions()
    """What programs may see and change here; a user's own rules are added by `user_agents`."""
    accepted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Code of an accepted warning to the paths it is accepted for."""
    unknown: tuple[str, ...] = ()
    """A sentence on each key that nothing reads."""

    @property
    def vectors_in(self) -> str:
        """The kind of what searches the vectors."""
        return self.backend.kind

    @property
    def has_own_vectors(self) -> bool:
        """Whether that is the FAISS file of the sidecar."""
        return self.backend.is_own_file

    @property
    def models(self) -> "dict[str, Any]":
        """The fields that name models."""
        return {"embedder": self.embedder, "model": self.model, "second": self.second}


class _ChunkerTable(Struct, frozen=True, kw_only=True):
    """The table ``[chunker]``."""

    budget: Annotated[int, Meta(ge=1, le=MAX_BUDGET)] = DEFAULT_BUDGET


class _SearchTable(Struct, frozen=True, kw_only=True):
    """The table ``[search]``."""

    update: bool = True


class _File(Struct, frozen=True, kw_only=True):
    """A settings file; what has keys of a person is judged key by key."""

    format: int = FORMAT_VERSION
    layout: LayoutName = "tree"
    embedder: str = "builtin"
    metric: Literal["cosine"] = "cosine"
    backend: BackendName = "faiss"
    backend_config: dict[str, Any] = {}
    ignore: tuple[str, ...] = ()
    follow: bool | dict[str, Any] = True
    chunker: _ChunkerTable = _ChunkerTable()
    search: _SearchTable = _SearchTable()
    keys: KeyNames = KeyNames()
    model: ModelOptions = ModelOptions()
    second: SecondModel | None = field(default=None, name="beside")
    generator: GeneratorOptions = GeneratorOptions()
    agents: AgentOptions = AgentOptions()
    accepted: dict[str, Any] = {}


_KEYS: Final = {
    "": _File.__struct_encode_fields__,
    "chunker": _ChunkerTable.__struct_fields__,
    "search": _SearchTable.__struct_fields__,
    "keys": KeyNames.__struct_fields__,
    "model": ModelOptions.__struct_fields__,
    "beside": SecondModel.__struct_fields__,
    "generator": GeneratorOptions.__struct_fields__,
    "agents": AgentOptions.__struct_fields__,
}
"""Of each table the keys that are read."""


def read(path: str) -> bytes:
    """The bytes of a settings file.

    Raises:
        FileNotFoundError: There is none.
        NotADirectoryError: A file is in the place of its folder.
        SettingsError: It cannot be read, or has more bytes than settings have.
    """
    try:
        return disk.read_path(path, limit=MAX_BYTES, follow_links=True)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except FilestoreError as error:
        raise SettingsError(error.message, remedy=error.remedy) from error
    except OSError as error:
        disk.pass_limits(error)
        raise SettingsError(
            f"{path} cannot be read: {error.strerror or error}; make {path} readable"
        ) from error


def parse(data: bytes, *, name: str = SETTINGS) -> Settings:
    """Read the bytes of a settings file.

    Raises:
        NewerFormatError: Its format version is above ours.
        SettingsError: It is no TOML, or a value has the wrong type.
    """
    table = _table(data, name, f"fix {name}, or restore it from git")
    with _naming(name):
        version = converted(table.get("format", FORMAT_VERSION), int, "format")
        if version > FORMAT_VERSION:
            raise NewerFormatError(
                f"{name} has format {brief(version)}; this filestore reads up to {FORMAT_VERSION}",
                remedy=UPGRADE,
            )
        file = converted(table, _File)
        follow = file.follow if isinstance(file.follow, dict) else {_EVERY: file.follow}
        named = {
            key: converted(one, bool, f"follow.{_clipped(key)}") for key, one in follow.items()
        }
        return Settings(
            layout=file.layout,
            embedder=file.embedder,
            model=file.model,
            second=file.second,
            generator=file.generator,
            ignore=file.ignore,
            follow=Follow(every=named.pop(_EVERY, True), named=named),
            updates=file.search.update,
            keys=file.keys,
            metric=file.metric,
            backend=_backend(file, name),
            budget=file.chunker.budget,
            agents=_agents(table, AgentOptions),
            accepted={
                code: converted(paths, tuple[str, ...], f"accepted.{_clipped(code)}")
                for code, paths in file.accepted.items()
            },
            unknown=tuple(f"{name}: {one}" for one in unknown_keys(table, _KEYS)),
        )


def _agents(table: Mapping[str, Any], kind: type[A]) -> A:
    """The table ``[agents]``; what would close nothing without a word is refused."""
    found = converted(table.get("agents", {}), kind, "agents")
    for problem in unknown_keys(table.get("agents", {}), {"": kind.__struct_fields__}):
        raise UnfitError(f"agents: {problem}")
    for key in ("closed", "read_only"):
        rules = getattr(found, key)
        if len(rules) > MAX_RULES:
            raise UnfitError(f"agents.{key} must have at most {MAX_RULES:,} rules")
        for rule in rules:
            name, sign, value = rule.partition(":" if rule.startswith("tag:") else "=")
            is_half = bool(sign) and not (name.strip() and value.strip())
            is_line = rule == rule.strip() and rule.isprintable() and len(rule) <= MAX_RULE
            if is_half or not is_line or rule[:1] in ("", "!", "#") or not rule.strip("/"):
                wanted = "rules, each a pattern of paths, tag:NAME or KEY=VALUE"
                raise UnfitError(f"agents.{key} must have {wanted}, found {brief(rule)}")
    return found


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Raise what does not fit as an error of the file of that name."""
    try:
        yield
    except UnfitError as error:
        wanted, comma, found = error.message.partition(", found ")
        words = wanted.replace(" an object", " a table") + comma + found  # as TOML calls it
        raise SettingsError(f"{name}: {words}; fix it there") from error


def _table(data: bytes, name: str, remedy: str) -> dict[str, Any]:
    """The values of TOML from anybody: its parser recurses, and takes long over long keys."""
    try:
        text = data.decode("utf-8")
        if line := _too_deep(text):
            raise ValueError(f"nested more than {MAX_DEPTH} deep (at line {line})")
        return tomllib.loads(text)
    except (RecursionError, ValueError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else _reason(error, data)
        lines = data.splitlines()
        starts = [number for number, line in enumerate(lines, 1) if line.startswith(b"<<<<<<< ")]
        if starts and any(line.startswith(b">>>>>>> ") for line in lines):
            reason = f"it has an unresolved merge conflict (at line {starts[0]})"
            remedy = f"keep one side of the conflict in {name}, then run the command again"
        raise SettingsError(f"{name} cannot be read: {reason}", remedy=remedy) from error


def _too_deep(text: str) -> int:
    """The first line in which brackets, or the parts of a key, go deeper than is read; or 0."""
    depth = parts = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        parts = parts + 1 if mark == "." else parts * (mark not in _PARTING)
        depth += (mark in _OPENING) - (mark in _CLOSING)
        if max(depth, parts) > MAX_DEPTH:
            return text.count("\n", 0, token.start()) + 1
    return 0


def _reason(error: ValueError, data: bytes) -> str:
    """Why TOML cannot be read; the line of a number that Python refuses is unknown."""
    if isinstance(error, tomllib.TOMLDecodeError | UnicodeDecodeError):
        return str(error)
    text = data.decode("utf-8")
    for number in _INTEGER.finditer(text):
        digits = len(number[1].replace("_", "")) if number[1] else 0
        if digits > sys.get_int_max_str_digits():
            line = text.count("\n", 0, number.start()) + 1
            return f"a number of {digits:,} digits (at line {line})"
    return str(error)


def _backend(file: _File, name: str) -> Backend:
    """Kind and options; which keys a kind has, it says itself when it is opened."""
    options: dict[str, str | int | bool | tuple[str, ...]] = {}
    for key, value in file.backend_config.items():
        try:
            options[key] = converted(value, _OPTION)
        except UnfitError:
            expected = "a text, a whole number, true or false, or a list of texts"
            # The value is not named: it may hold a password.
            raise SettingsError(
                f"{name}: backend_config.{_clipped(key)} must be {expected}; fix it there",
            ) from None
    return Backend(kind=file.backend, options=options)


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def check_layout(layout: str) -> LayoutName:
    """A layout named on the command line.

    Raises:
        UsageError: There is no such layout.
    """
    if name := next((one for one in LAYOUTS if one == layout), None):
        return name
    raise UsageError(f"no layout {layout!r}: use one of {', '.join(LAYOUTS)}")


def sidecar_folder(root: str, configuration: str, tree: Tree = CHUNKS) -> str:
    """Where the sidecar of a store lies: in its root, unless the user's own settings say else.

    Args:
        root: The store root, absolute and without links; the settings may name it by one.
        tree: Of the store, which tells how the folder is called.
        configuration: The user's configuration folder, such as ``~/.config``.

    Raises:
        SettingsError: The user's settings cannot be read.
    """
    path, folders = os.path.join(configuration, USERS), users(configuration)[0]
    named = next((one for one in folders if os.path.isabs(one) and leads(one) == root), root)
    if named not in folders:
        return os.path.join(root, tree.sidecar)
    with _naming(path):
        chosen = os.path.expanduser(converted(folders[named], str, f"sidecar.{_clipped(named)}"))
        if not os.path.isabs(chosen) or "\0" in chosen:
            expected = f"sidecar.{_clipped(named)} must be an absolute path"
            raise UnfitError(f"{expected}, found {brief(chosen)}")
    return os.path.normpath(chosen)


def users(configuration: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Where the user has sidecars, by store root, and a sentence on each key that nothing reads.

    Raises:
        SettingsError: It cannot be read.
    """
    path, table = _users_table(configuration)
    with _naming(path):
        folders = converted(table.get("sidecar", {}), dict[str, Any], "sidecar")
        known = {
            "": ["sidecar", "agents", "inspector", "defaults"],
            "agents": AgentRules.__struct_fields__,
            "inspector": InspectorOptions.__struct_fields__,
            "defaults": UserDefaults.__struct_fields__,
        }
        named = list(unknown_keys(table, known))
        try:
            converted(table.get("defaults", {}), UserDefaults, "defaults")
        except UnfitError as error:
            # A misspelt preference is no reason to keep a store closed.
            named.append(f"{error.message}; the defaults are ignored")
        return folders, tuple(f"{path}: {one}" for one in named)


def user_table(configuration: str, name: str, kind: type[T]) -> T:
    """A table of the user's settings, which holds in every store.

    Args:
        configuration: The user's configuration folder.
        name: Of the table.
        kind: What it becomes.

    Raises:
        SettingsError: It cannot be read.
    """
    path, table = _users_table(configuration)
    with _naming(path):
        return converted(table.get(name, {}), kind, name)


def user_inspector(configuration: str) -> InspectorOptions:
    """How the user has the inspector, in every store.

    Raises:
        SettingsError: It cannot be read.
    """
    return user_table(configuration, "inspector", InspectorOptions)


def user_agents(configuration: str) -> AgentRules:
    """What the user keeps from programs, in every store.

    Raises:
        SettingsError: It cannot be read.
    """
    path, table = _users_table(configuration)
    with _naming(path):
        return _agents(table, AgentRules)


def _users_table(configuration: str) -> tuple[str, dict[str, Any]]:
    path = os.path.join(configuration, USERS)
    try:
        return path, _table(read(path), path, f"fix {path}")
    except (FileNotFoundError, NotADirectoryError):
        return path, {}
