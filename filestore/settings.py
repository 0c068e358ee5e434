"""Settings: `filestore.toml`, committed with the store, and the few kept on the user's side.

Parses and serialises; knows nothing of what the settings do. One rule: a clone's settings never
reach outside the store, so paths stand only in the user's own file.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from filestore.errors import FilestoreError, UsageError

SETTINGS_NAME: Final = "filestore.toml"
FORMAT_VERSION: Final = 1
LAYOUTS: Final = ("tree", "flat")
METRICS: Final = ("cosine",)
BACKENDS: Final = ("faiss",)
DEFAULT_BUDGET: Final = 256
MAX_BUDGET: Final = 100_000

_TABLE: Final = re.compile(r"\s*\[+\s*\"?([^\]\"]*?)\"?\s*\]")
_EMBEDDER: Final = re.compile(r"\s*\"?embedder\"?\s*=")

Layout = Literal["tree", "flat"]


class SettingsError(FilestoreError, ValueError):
    """`filestore.toml` cannot be used."""


class NewerFormatError(FilestoreError):
    """The store was written by a newer filestore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How the model of a store is to be used; None leaves it to what the model says of itself."""

    endpoint: str | None = None
    """Base address of an OpenAI-compatible service, such as ``http://127.0.0.1:11434/v1``."""
    dimension: int | None = None
    """Asked of a service that can shorten its vectors; of others what is expected."""
    max_tokens: int | None = None
    """The longest text that is embedded well."""
    query_prefix: str | None = None
    document_prefix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a store was set to."""

    layout: Layout = "tree"
    embedder: str = "builtin"
    """Name, or name and model: ``onnx:all-MiniLM-L6-v2``."""
    model: ModelOptions = ModelOptions()
    ignore: tuple[str, ...] = ()
    """Patterns, as in ``.gitignore``, of what is left out of folders that are added."""
    metric: str = "cosine"
    backend: str = "faiss"
    budget: int = DEFAULT_BUDGET
    """The most tokens a chunk may have, heading path included."""
    accepted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Code of an accepted warning to the paths it is accepted for."""


def parse(data: bytes, *, name: str = SETTINGS_NAME) -> Settings:
    """Read the bytes of a settings file.

    Raises:
        NewerFormatError: Its format version is above ours.
        SettingsError: It is no TOML, or a value has the wrong type.
    """
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{name} cannot be read: {error}", remedy=f"mend {name}, or restore it from git"
        ) from error
    version = _value(table, "format", int, FORMAT_VERSION, name)
    if version > FORMAT_VERSION:
        raise NewerFormatError(
            f"{name} has format {version}, this filestore knows {FORMAT_VERSION}",
            remedy="upgrade filestore",
        )
    chunker = _value(table, "chunker", dict, {}, name)
    budget = _value(chunker, "budget", int, DEFAULT_BUDGET, name)
    if not 1 <= budget <= MAX_BUDGET:
        raise _wrong(name, "chunker.budget", f"1 to {MAX_BUDGET}", budget)
    layout = _choice(table, "layout", LAYOUTS, name)
    return Settings(
        layout="flat" if layout == "flat" else "tree",
        embedder=_value(table, "embedder", str, "builtin", name),
        model=_model(_value(table, "model", dict, {}, name), name),
        ignore=_texts(_value(table, "ignore", list, [], name), "ignore", name),
        metric=_choice(table, "metric", METRICS, name),
        backend=_choice(table, "backend", BACKENDS, name),
        budget=budget,
        accepted=_accepted(_value(table, "accepted", dict, {}, name), name),
    )


def serialize(settings: Settings) -> bytes:
    """The settings file of a new store."""
    lines = [
        "# Settings of this filestore; committed with it. FORMAT.md describes every key.",
        f"format = {FORMAT_VERSION}",
        f"layout = {_toml(settings.layout)}",
        f"embedder = {_toml(settings.embedder)}",
        f"metric = {_toml(settings.metric)}",
        f"backend = {_toml(settings.backend)}",
    ]
    if settings.ignore:
        lines.append(f"ignore = [{', '.join(map(_toml, settings.ignore))}]")
    lines += ["", "[chunker]", f"budget = {settings.budget}"]
    lines += _model_lines(settings.model) or [""]
    return "\n".join(lines).encode()


def with_model(data: bytes, embedder: str, options: ModelOptions) -> bytes:
    """A settings file that names another model; every other line stays as it is."""
    lines = data.decode("utf-8").split("\n")
    kept: list[str] = []
    table = ""
    for line in lines:
        if heading := _TABLE.match(line):
            table = heading[1]
        if table == "model" or (not table and _EMBEDDER.match(line)):
            continue
        kept.append(line)
    start = next((place for place, line in enumerate(kept) if _TABLE.match(line)), len(kept))
    while start and not kept[start - 1].strip():
        start -= 1
    kept.insert(start, f"embedder = {_toml(embedder)}")
    return ("\n".join(kept).rstrip("\n") + "\n" + "\n".join(_model_lines(options))).encode()


def _model_lines(options: ModelOptions) -> list[str]:
    chosen = {key: value for key, value in asdict(options).items() if value is not None}
    if not chosen:
        return []
    return ["", "[model]", *(f"{key} = {_toml(value)}" for key, value in chosen.items()), ""]


def _toml(value: str | int) -> str:
    # A JSON string is a TOML string but for one character that TOML wants escaped too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _model(table: Mapping[str, Any], name: str) -> ModelOptions:
    kinds = {"endpoint": str, "query_prefix": str, "document_prefix": str}
    counts = {"dimension": int, "max_tokens": int}
    for key, kind in (kinds | counts).items():
        _value(table, key, kind, kind(), f"{name}: model")
    for key in counts:
        if table.get(key, 1) < 1:
            raise _wrong(name, f"model.{key}", "1 or more", table[key])
    return ModelOptions(**{key: value for key, value in table.items() if key in kinds | counts})


def _texts(value: list[Any], key: str, name: str) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in value):
        raise _wrong(name, key, "a list of texts", value)
    return tuple(value)


def _value(table: Mapping[str, Any], key: str, kind: type, default: Any, name: str) -> Any:
    value = table.get(key, default)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _wrong(name, key, f"a {kind.__name__}", value)
    return value


def _choice(table: Mapping[str, Any], key: str, known: tuple[str, ...], name: str) -> str:
    value = _value(table, key, str, known[0], name)
    if value not in known:
        raise _wrong(name, key, " or ".join(known), value)
    return str(value)


def _accepted(table: Mapping[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    for code, paths in table.items():
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise _wrong(name, f"accepted.{code}", "a list of paths", paths)
    return {code: tuple(paths) for code, paths in table.items()}


def _wrong(name: str, key: str, expected: str, found: object) -> SettingsError:
    return SettingsError(
        f"{name}: {key} must be {expected}, found {found!r}", remedy=f"mend {key} in {name}"
    )


def check_layout(layout: str) -> Layout:
    """A layout named on the command line.

    Raises:
        UsageError: There is no such layout.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"no layout {layout!r}", remedy=f"use one of {', '.join(LAYOUTS)}")
    return "flat" if layout == "flat" else "tree"


def sidecar_folder(root: str, configuration: str) -> str:
    """Where the sidecar of a store lies: `.sidecar` in it, unless the user's own settings say else.

    Args:
        root: The store root, absolute.
        configuration: The user's configuration folder, such as ``~/.config``.

    Raises:
        SettingsError: The user's settings cannot be read.
    """
    default = os.path.join(root, ".sidecar")
    path = os.path.join(configuration, "filestore", "settings.toml")
    try:
        with open(path, "rb") as file:
            table = tomllib.loads(file.read().decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return default
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}", remedy=f"mend {path}") from error
    folders = _value(table, "sidecar", dict, {}, path)
    chosen: str = os.path.expanduser(_value(folders, root, str, default, path))
    if not os.path.isabs(chosen):
        raise _wrong(path, f"sidecar.{root}", "an absolute path", chosen)
    return os.path.normpath(chosen)
