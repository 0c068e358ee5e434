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

from filestore.core.packages import install_line, missing_packages
from filestore.embed._model_folder import clipped
from filestore.embed.base import Choice, Embedder, ModelMissing, ModelUnusable
from filestore.fs import disk

DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_HUB_OWNER: Final = "sentence-transformers/"
"""Whose a model without an owner in its name is."""
_HUB_NAME: Final = re.compile(r"[0-9A-Za-z][\w.-]*/[0-9A-Za-z][\w.-]*", re.ASCII)
_TRIAL: Final = "A lighthouse keeper writes down when the fog came."
BUILTIN_INSTEAD: Final = "compare words only: `filestore embedder set builtin`"
"""What a store may do without its model."""
_LENGTH_ERROR: Final = 1e-3
_REASON_LENGTH: Final = 200
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
    # Put in order before it is looked at: a store that is being made has no folder to go up from.
    path = os.path.normpath(os.path.join(choice.root, os.path.expanduser(name)))
    if known := _known(choice, name):
        return known
    if os.path.isabs(path) and os.path.isdir(path):
        return path
    for alias in _aliases(name):
        if folder := cached_snapshot(alias, choice.machine.environment):
            return folder
    use = f"name its folder with `filestore embedder use {clipped(name)} FOLDER`"
    fetch = f", or download it with `filestore embedder fetch {clipped(name)}`"
    may_be_on_hub = name in _aliases(DEFAULT_MODEL) or _HUB_NAME.fullmatch(name)
    raise ModelMissing(
        f"the model {clipped(name)!r} is not on this machine",
        remedy=use + (fetch if may_be_on_hub else ""),
    )


def installed_model(choice: Choice, *, feature: str, otherwise: str) -> str:
    """The folder of a model, where the packages that run it are installed.

    Args:
        choice: What names the model.
        feature: What it is to run by, as in `PACKAGES`.
        otherwise: What a person may do instead of installing them.

    Raises:
        ModelMissing: A package is not installed, or the model is not here; or both, said at once.
    """
    packages = missing_packages(feature)
    if not packages:
        return find_model(choice)
    remedy = f"run `{install_line(feature)}`"
    try:
        find_model(choice)
    except ModelMissing as error:
        remedy += f", then {error.remedy}"
    name = model_name(choice)
    verb = "is" if len(packages) == 1 else "are"
    raise ModelMissing(
        f"the model {name if os.path.isdir(name) else clipped(name)!r} needs"
        f" {' and '.join(packages)}, which {verb} not installed",
        remedy=f"{remedy}; or {otherwise}",
    )


def try_out(embedder: Embedder) -> None:
    """Embed one short text, so that a model that opens and cannot run is found before it is needed.

    Loads the model; a service is asked once.

    Raises:
        ModelMissing: A library that runs it cannot be loaded.
        ModelUnusable: It cannot be loaded or run, or gives other vectors than it says.
        EndpointError: The service does not answer as it should.
    """
    import numpy as np

    vectors = embedder.embed_documents([_TRIAL])
    expected = (1, embedder.dimension)
    if vectors.shape != expected:
        raise _failed(embedder, f"gives {vectors.shape} for one text, expected {expected}")
    length = float(np.linalg.norm(vectors))
    # A NaN is not near 1 either.
    if not abs(length - 1) <= _LENGTH_ERROR:
        raise _failed(embedder, f"gives a vector of length {length:.4g} for a text, expected 1")


def _failed(embedder: Embedder, what: str) -> ModelUnusable:
    return ModelUnusable(
        f"{clipped(embedder.name)} {what}",
        remedy="choose another model: `filestore embedder list` says which can be used",
    )


def _known(choice: Choice, name: str) -> str | None:
    models = choice.machine.models
    for key in (choice.name, *_aliases(name)):
        if key in models:
            folder = models[key]
            if os.path.isdir(folder):
                return folder
            raise ModelMissing(
                f"the model {clipped(key)!r} was at {folder}, where no folder is now",
                remedy=f"name its folder with `filestore embedder use {clipped(key)} FOLDER`",
            )
    return None


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
        named = os.path.join(folder, "refs", "main")
        data = disk.read_path(named, limit=_REVISION_LIMIT, follow_links=True)
        revision = data.decode("ascii").strip()
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
        ModelMissing: No model is named, the library is not installed, or the hub gives no such
            model.
    """
    if not name.strip():
        raise ModelMissing(
            "no model is named: the name is empty",
            remedy=f"name one as the hub spells it: `filestore embedder fetch {DEFAULT_MODEL}`",
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ModelMissing(
            f"to download the model {clipped(name)!r}, huggingface-hub is needed, which is not"
            " installed",
            remedy=f"run `{install_line('embedder fetch')}`, then"
            f" `filestore embedder fetch {clipped(name)}`",
        ) from error
    full = _aliases(name)[-1] if "/" not in name else name
    try:
        return snapshot_download(
            full, cache_dir=hub_cache(environment), allow_patterns=list(_FETCHED)
        )
    except _download_errors() as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelMissing(
            f"the model {clipped(full)!r} cannot be downloaded: {lines[0][:_REASON_LENGTH]}",
            remedy="check the name and the network, or copy its folder here and name it with"
            f" `filestore embedder use {clipped(name)} FOLDER`",
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
