"""Giving the vectors of a store another place: what that sends, and doing it.

One rule: nothing is embedded, and the store keeps the place it has until the new one has all.
"""

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.config import settings, user_config
from filestore.config.layout import Places
from filestore.config.settings import Backend
from filestore.core.errors import UsageError
from filestore.core.safe_text import brief
from filestore.core.spelling import did_you_mean
from filestore.fs import disk
from filestore.index import BackendError
from filestore.index.backend import BackendKeysMissing, BackendSettingsWrong, Sent
from filestore.sidecar.session import Parts, home_of
from filestore.sidecar.vector_home import StoredVectors, VectorHome

if TYPE_CHECKING:
    from filestore.catalog import Catalog, CatalogWriter
    from filestore.embed import Embedder
    from filestore.embed.cache import EmbeddingCache


_PASSWORD: Final = re.compile(r"//[^/@\s]*:[^/@\s]+@|\bpassword\s*=\s*\S", re.IGNORECASE)


class BackendChange(Struct, frozen=True, kw_only=True):
    """Another place for the vectors of a store, and what it takes."""

    backend: Backend
    home: VectorHome
    address: str
    """Of the new place, for people."""
    would: Sent
    """What filling it does."""
    takes_over: bool = False
    """Whether what it has may be another store's."""


def options_of(kind: str, given: list[str]) -> Backend:
    """A backend as it is named on the command line.

    Args:
        kind: One of the backends.
        given: ``KEY=VALUE``; a value is true, false, a whole number, or a text; of a
            whitelist, a list.

    Raises:
        UsageError: There is no such backend, an option is none, or holds a password.
    """
    if kind not in settings.BACKENDS:
        raise UsageError(
            f"there is no backend {brief(kind)}{did_you_mean(kind, settings.BACKENDS)}",
            remedy=f"the backends are {', '.join(settings.BACKENDS)}",
        )
    values: dict[str, str | int | bool | tuple[str, ...]] = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not equals or not key:
            # The word is not named: it may be a password.
            raise UsageError("an option is written KEY=VALUE", remedy="filestore backend list")
        if _PASSWORD.search(value):
            raise UsageError(
                f"{brief(key)} holds a password, and filestore.toml is committed",
                remedy="leave the password out; set PGPASSWORD, or write it into ~/.pgpass",
            )
        if not value:
            raise UsageError(f"{brief(key)} has no value", remedy="filestore backend list")
        if key in values:
            raise UsageError(f"{brief(key)} is given twice", remedy="give it one value")
        if key == "metadata_whitelist":
            values[key] = tuple(one for one in value.split(",") if one)
        elif value in ("true", "false"):
            values[key] = value == "true"
        else:
            values[key] = int(value) if re.fullmatch(r"[+-]?[0-9]{1,9}", value) else value
    return Backend(kind=kind, options=values)


def plan(
    places: Places,
    backend: Backend,
    *,
    catalog: "Catalog",
    embedder: "Embedder",
    takes_over: bool,
) -> BackendChange:
    """Connect to the new place and count what it lacks; changes nothing of the store.

    Args:
        places: Where the store lies.
        backend: The new place. Naming it allows the store to reach it.
        catalog: Knows the vectors.
        embedder: Whose vectors.
        takes_over: Whether what another store has there may be replaced.

    Raises:
        UsageError: A key is missing, unknown, or has a value that cannot be used.
        BackendError: It cannot be used, or belongs to another store.
    """
    try:
        home = home_of(backend, places).trusted()
    except (BackendKeysMissing, BackendSettingsWrong) as error:
        raise UsageError(error.message, remedy=error.remedy) from error
    would = home.compare(catalog, embedder, takes_over=takes_over)
    return BackendChange(
        backend=backend, home=home, address=home.address(), would=would, takes_over=takes_over
    )


def apply(
    parts: Parts,
    change: BackendChange,
    catalog: "CatalogWriter",
    embeddings: "EmbeddingCache",
) -> Sent:
    """Fill the new place, then name it: until then the store goes on with the one it has.

    Raises:
        BackendError: It went away, or refuses.
        WriteFailedError: The disk refused.
    """
    home, vectors = change.home, StoredVectors(catalog, embeddings, parts.own_embedder(catalog))

    def name() -> None:
        """Name the place in `filestore.toml`, and remember that it may be reached."""
        places = parts.places
        if home.reaches_out:
            user_config.trust(parts.configuration, places.root, change.address)
        with disk.disk_errors(places.settings):
            data = settings.read(places.settings)
            disk.write_path(places.settings, settings.with_backend(data, change.backend))
        parts.settings = replace(parts.settings, backend=change.backend)

    sent = home.fill(catalog, vectors, name, takes_over=change.takes_over)
    if sent is not None:
        return sent
    with parts.commit(catalog, embeddings, embed=False) as commit:
        commit.want_index()
        commit.finish()
    return change.would


def is_left(before: VectorHome, change: BackendChange) -> bool:
    """Whether vectors stay behind in a place that is another than the one that takes them."""
    if not before.elsewhere:
        return False
    try:
        return before.address() != change.address
    except BackendError:
        # It could not be used, which the new place can.
        return True


def clear(
    parts: Parts, left: VectorHome, catalog: "CatalogWriter", embeddings: "EmbeddingCache"
) -> bool:
    """Delete what a store has in the place it left; returns whether that was there.

    Raises:
        BackendError: It is away, or refuses.
    """
    if not left.clear(catalog):
        return False
    if parts.home.is_emptied():
        # One table may have two addresses, as a server has two names: then it is filled again.
        vectors = StoredVectors(catalog, embeddings, parts.own_embedder(catalog))
        parts.home.fill(catalog, vectors, lambda: None)
    return True
