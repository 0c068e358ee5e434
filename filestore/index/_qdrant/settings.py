"""What the settings say of Qdrant, checked before anything is made or asked.

Either ``url``, a server, or ``path``, a folder below the sidecar's.
Next to them ``collection`` and ``metadata_whitelist``; for a server ``timeout_s``, and ``shards``
and ``replication`` for the collection it makes. ``engine`` is of earlier versions: ``client`` is
what a folder has now, ``edge`` is refused.
"""

import os
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from filestore.core.errors import install_line, missing_packages
from filestore.core.safe_text import brief, shown_path
from filestore.index._qdrant import Place
from filestore.index._qdrant.folder import FolderPlace
from filestore.index._qdrant.server import KEY_VARIABLE, Server, ServerPlace
from filestore.index.backend import (
    BackendChoice,
    BackendKeysMissing,
    BackendMissing,
    BackendSettingsWrong,
    checked_options,
)
from filestore.remote import EndpointError
from filestore.remote.address import Use, parse_address

_KNOWN: Final[Mapping[str, type]] = {
    "url": str,
    "path": str,
    "collection": str,
    "replication": int,
    "shards": int,
    "timeout_s": int,
    "metadata_whitelist": list,
}
_OF_SERVERS: Final = ("replication", "shards", "timeout_s")
_COLLECTION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PORT: Final = 6333
_TIMEOUT_S: Final = 30
_MOST: Final = {"replication": 64, "shards": 4_096, "timeout_s": 3_600}
_CHANGE: Final = "correct it: `filestore backend set`, or [backend_config] in filestore.toml"
# Also for https, as Qdrant's own clients do.
_USE: Final = Use(path="", table="", model_key="", too_long="", kept="", without="", port=_PORT)


def opened_place(choice: BackendChoice) -> tuple[Place, tuple[str, ...]]:
    """The collection that settings name, not connected, and the whitelist.

    Raises:
        BackendKeysMissing: Neither ``url`` nor ``path`` is given.
        BackendSettingsWrong: A key is unknown, of another type, or says what cannot be.
        BackendMissing: qdrant-client is not installed.
    """
    if any(key in choice.options for key in ("api_key", "key", "password", "token")):
        raise BackendSettingsWrong(
            "the settings of the backend qdrant hold a key: they are shared, and keys are not",
            remedy=f"remove it, have the server give out another, and set {KEY_VARIABLE} "
            "in the environment",
        )
    given = dict(choice.options)
    engine = given.pop("engine", "client")
    options = checked_options(replace(choice, options=given), needed=(), known=_KNOWN)
    names = options.get("metadata_whitelist", [])
    if not all(isinstance(one, str) for one in names):
        raise BackendSettingsWrong("`metadata_whitelist` must be a list of texts", remedy=_CHANGE)
    whitelist = tuple(names)
    collection = str(options.get("collection", "filestore"))
    if not _COLLECTION.fullmatch(collection):
        raise BackendSettingsWrong(
            f"{brief(collection)} cannot be the name of a collection: expected at most 100 letters "
            "without accents, digits, - and _",
            remedy=_CHANGE,
        )
    if options.get("url") and options.get("path"):
        raise BackendSettingsWrong(
            "the backend qdrant has both url and path: it is a server, or a folder", remedy=_CHANGE
        )
    if not options.get("url") and not options.get("path"):
        raise BackendKeysMissing(
            "the backend qdrant needs url, of a server, or path, of a folder in the sidecar",
            remedy="'filestore backend set qdrant path=qdrant' takes a folder; of a server name"
            " its url=http://…",
        )
    if engine != "client":
        raise BackendSettingsWrong(
            f"`engine` of the backend qdrant is {brief(engine)}, and was removed: a folder is "
            "qdrant-client's",
            remedy=_set_anew(options),
        )
    if missing := missing_packages("qdrant"):
        raise BackendMissing(
            f"the backend qdrant needs {missing[0]}", remedy=install_line("qdrant")
        )
    if options.get("url"):
        return _server(options, collection, choice.environment), whitelist
    if names := [name for name in _OF_SERVERS if name in options]:
        raise BackendSettingsWrong(
            f"`{names[0]}` belongs to a server (url), not to a folder", remedy=_CHANGE
        )
    place = os.path.join(choice.folder, options["path"])
    return FolderPlace(place, collection, _set_anew(options)), whitelist


def _set_anew(options: Mapping[str, Any]) -> str:
    """The command that gives a store of the edge engine a place that can be read."""
    words = ["filestore", "backend", "set", "qdrant"]
    for key, value in options.items():
        is_path, is_list = key == "path", isinstance(value, list)
        shown = f"{value}-client" if is_path else ",".join(value) if is_list else value
        words.append(f"{key}={shown}")
    return f"'{shown_path(shlex.join(words))}' sends the vectors there and embeds nothing"


def _server(
    options: Mapping[str, Any], collection: str, environment: Mapping[str, str]
) -> ServerPlace:
    try:
        address = parse_address(options["url"], _USE)
    except EndpointError:
        raise BackendSettingsWrong(
            "`url` of the backend qdrant is not an address of the form http://host:6333",
            remedy=f"{_CHANGE}; a key belongs in the environment variable {KEY_VARIABLE}",
        ) from None
    key = environment.get(KEY_VARIABLE, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise BackendSettingsWrong(
            f"{KEY_VARIABLE} holds a character that no key has: set {KEY_VARIABLE} again"
        )
    if key and not address.keeps_secrets:
        raise BackendSettingsWrong(
            f"{KEY_VARIABLE} is not sent to {address.url}: over plain http anybody on the way can "
            "read it",
            remedy="use https in `url`, or unset it if that server wants no key",
        )
    server = Server(
        address=address,
        key=key,
        timeout_s=_count(options, "timeout_s") or _TIMEOUT_S,
        shards=_count(options, "shards"),
        replication=_count(options, "replication"),
    )
    return ServerPlace(server, collection)


def _count(options: Mapping[str, Any], name: str) -> int | None:
    value: int | None = options.get(name)
    if value is not None and not 1 <= value <= _MOST[name]:
        raise BackendSettingsWrong(f"`{name}` must be from 1 to {_MOST[name]:,}", remedy=_CHANGE)
    return value
