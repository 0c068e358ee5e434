"""A settings file as it is written: new, or with other models or another backend.

One rule: what a person wrote in it stays as it is, or the file is left alone.
"""

import tomllib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from filestore.config.layout import SETTINGS
from filestore.config.settings import (
    DESCRIBED,
    FORMAT_VERSION,
    Backend,
    ModelOptions,
    Settings,
    SettingsError,
    parse,
)


def serialize(settings: Settings) -> bytes:
    """The settings file of a new store."""
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.comment("Settings of this filestore; committed with it. " + DESCRIBED))
    document.update({"format": FORMAT_VERSION, "layout": settings.layout})
    document.update({"embedder": settings.embedder, "metric": settings.metric})
    if settings.ignore:
        document["ignore"] = list(settings.ignore)
    document["chunker"] = {"budget": settings.budget}
    return with_models(tomlkit.dumps(document).encode(), settings)


def with_models(data: bytes, wanted: Settings) -> bytes:
    """A settings file that names the models of other settings; every other line stays as it is.

    Raises:
        SettingsError: It is written in a way that cannot be edited without loss.
    """
    before, now = (_models_of(one) for one in (parse(data), wanted))
    return _edited(data, {key: value for key, value in now.items() if value != before[key]})


def _models_of(settings: Settings) -> dict[str, Any]:
    """The models of settings as TOML names them."""
    other = settings.second
    table = {"embedder": other.embedder, **_chosen(other.model)} if other else {}
    return {"embedder": settings.embedder, "model": _chosen(settings.model), "beside": table}


def with_backend(data: bytes, backend: Backend) -> bytes:
    """A settings file that names another backend; see `with_models`."""
    options = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in backend.options.items()
    }
    return _edited(data, {"backend": backend.kind, "backend_config": options})


def _chosen(options: ModelOptions) -> dict[str, Any]:
    return {key: value for key, value in asdict(options).items() if value is not None}


def _edited(data: bytes, changes: Mapping[str, Any]) -> bytes:
    """A settings file with other values of some keys; a table without any key goes."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    wanted = {**tomllib.loads(data.decode()), **changes}
    wanted = {key: value for key, value in wanted.items() if key not in changes or value != {}}
    try:
        document = tomlkit.parse(data)
        for key, value in changes.items():
            if isinstance(value, dict) and value and isinstance(document.get(key), dict):
                # In place, so that what a person wrote about it stays.
                for gone in set(document[key]) - set(value):
                    document[key].pop(gone)
                document[key].update(value)
            elif value == {}:
                document.pop(key, None)
            else:
                document[key] = value
        text = tomlkit.dumps(document)
        if not data.endswith(b"\n\n"):
            # A table that goes leaves the empty line before it.
            text = text.rstrip("\n") + "\n"
        kept = tomllib.loads(text) == wanted
    except (TOMLKitError, tomllib.TOMLDecodeError):
        kept = False
    if not kept:
        raise SettingsError(
            f"{SETTINGS} cannot be edited in place: write each table once, with one line a key",
        )
    return text.encode()
