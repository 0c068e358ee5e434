"""Settings: `filestore.toml`, committed with the store, and the few kept on the user's side.

Parses and serialises; knows nothing of what the settings do. One rule: a clone's settings never
reach outside the store, so paths stand only in the user's own file.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from filestore.errors import FilestoreError, UsageError

SETTINGS_NAME: Final = "filestore.toml"
FORMAT_VERSION: Final = 1
LAYOUTS: Final = ("tree", "flat")
METRICS: Final = ("cosine",)
BACKENDS: Final = ("faiss",)
DEFAULT_BUDGET: Final = 256
MAX_BUDGET: Final = 100_000

Layout = Literal["tree", "flat"]


class SettingsError(FilestoreError, ValueError):
    """`filestore.toml` cannot be used."""


class NewerFormatError(FilestoreError):
    """The store was written by a newer filestore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a store was set to."""

    layout: Layout = "tree"
    embedder: str = "builtin"
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
        f'layout = "{settings.layout}"',
        f'embedder = "{settings.embedder}"',
        f'metric = "{settings.metric}"',
        f'backend = "{settings.backend}"',
        "",
        "[chunker]",
        f"budget = {settings.budget}",
        "",
    ]
    return "\n".join(lines).encode()


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
