"""Where a model lies: a name that the machine knows, a folder, the hub's cache on disk.

Finding reads file names only and never reaches the network; `fetch_model` does, and is called only
when a person asks for it.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Final

from filestore.embed.base import Choice, ModelMissing

DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_HUB_OWNER: Final = "sentence-transformers/"
"""Whose a model without an owner in its name is."""
_REVISION: Final = re.compile(r"[0-9A-Za-z]{1,64}")
_REVISION_LIMIT: Final = 128
_FETCHED: Final = (
    "*.json",
    "*.txt",
    "*.model",
    "model*.safetensors",
    "*/model*.safetensors",
    "onnx/model.onnx",
    "onnx/model.onnx_data",
)
"""No pickles, no weights of other frameworks."""


def model_name(choice: Choice) -> str:
    """The model a choice means: what it names, else the default one."""
    return choice.model or DEFAULT_MODEL


def find_model(choice: Choice) -> str:
    """The folder of a model.

    Looks for a name that the machine knows, then a folder (relative to the store, or absolute),
    then the hub's cache on disk.

    Raises:
        ModelMissing: It is in none of them.
    """
    name = model_name(choice)
    for folder in (_known(choice, name), _folder(choice.root, name)):
        if folder:
            return folder
    for alias in _aliases(name):
        if folder := cached_snapshot(alias, choice.machine.environment):
            return folder
    raise ModelMissing(
        f"the model {name!r} is not on this machine",
        remedy=f"name its folder with `filestore embedder use {choice.name} FOLDER`, or download it"
        f" with `filestore embedder fetch {name}`",
    )


def _known(choice: Choice, name: str) -> str | None:
    models = choice.machine.models
    for key in (choice.name, *_aliases(name)):
        if key in models:
            folder = models[key]
            if os.path.isdir(folder):
                return folder
            raise ModelMissing(
                f"the model {key!r} was at {folder}, where no folder is now",
                remedy=f"name its folder with `filestore embedder use {key} FOLDER`",
            )
    return None


def _folder(root: str, name: str) -> str | None:
    # Put in order before it is looked at: a store that is being made has no folder to go up from.
    path = os.path.normpath(os.path.join(root, os.path.expanduser(name)))
    return path if os.path.isabs(path) and os.path.isdir(path) else None


def _aliases(name: str) -> tuple[str, ...]:
    """The spellings of a name, its own first."""
    if name.startswith(_HUB_OWNER):
        return (name, name.removeprefix(_HUB_OWNER))
    return (name,) if "/" in name else (name, _HUB_OWNER + name)


def cached_snapshot(name: str, environment: Mapping[str, str]) -> str | None:
    """The folder of a model in the hub's cache, by its main revision; None where it is not.

    Args:
        name: As on the hub, ``owner/model``.
        environment: The variables that say where the cache is.
    """
    folder = os.path.join(hub_cache(environment), f"models--{name.replace('/', '--')}")
    try:
        with open(os.path.join(folder, "refs", "main"), encoding="ascii") as file:
            revision = file.read(_REVISION_LIMIT).strip()
    except (OSError, ValueError):
        return None
    snapshot = os.path.join(folder, "snapshots", revision)
    return snapshot if _REVISION.fullmatch(revision) and os.path.isdir(snapshot) else None


def hub_cache(environment: Mapping[str, str]) -> str:
    """Where the hub's library keeps what it downloaded, by its own rules."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(variable):
            return os.path.expanduser(environment[variable])
    home = environment.get("HF_HOME")
    if not home:
        caches = environment.get("XDG_CACHE_HOME")
        caches = caches or os.path.join(
            environment.get("HOME") or os.path.expanduser("~"), ".cache"
        )
        home = os.path.join(caches, "huggingface")
    return os.path.join(os.path.expanduser(home), "hub")


def fetch_model(name: str, *, environment: Mapping[str, str]) -> str:
    """Download a model from the hub into its cache.

    Args:
        name: As on the hub; one without an owner is of ``sentence-transformers``.
        environment: The variables that say where the cache is.

    Returns:
        Its folder.

    Raises:
        ModelMissing: The library is not installed, or the hub gives no such model.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ModelMissing(
            "downloading a model needs huggingface_hub, which is not installed",
            remedy="run `pip install 'filestore[semantic]'`",
        ) from error
    full = _aliases(name)[-1] if "/" not in name else name
    try:
        return snapshot_download(
            full, cache_dir=hub_cache(environment), allow_patterns=list(_FETCHED)
        )
    except _download_errors() as error:
        raise ModelMissing(
            f"the model {full!r} cannot be downloaded: {_reason(error)}",
            remedy="check the name and the network, or copy its folder here and name it with"
            f" `filestore embedder use {name} FOLDER`",
            detail=str(error),
        ) from error


def _download_errors() -> tuple[type[Exception], ...]:
    """What a download may end with; which client the library uses depends on its version."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    known: tuple[type[Exception], ...] = (
        OSError,
        ValueError,
        RuntimeError,
        HfHubHTTPError,
        HFValidationError,
    )
    for name in ("httpx2", "httpx"):
        with suppress(ImportError):
            known = (*known, import_module(name).HTTPError)
    return known


def _reason(error: Exception) -> str:
    """The first line of what a library says."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
