"""Giving the vectors of a store another place: what that sends, and doing it.

One rule: nothing is embedded, and the store keeps the place it has until the new one has all.
"""

import os
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import queries
from filestore.config import settings, user_config
from filestore.config.layout import Places
from filestore.config.settings import Backend
from filestore.core.errors import UsageError
from filestore.core.packages import PACKAGES, install_line, missing_packages
from filestore.core.safe_text import brief
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean
from filestore.fs import disk
from filestore.index.backend import BackendKeysMissing, BackendSettingsWrong
from filestore.index.backend import plan as compare
from filestore.index.base import BackendError
from filestore.sidecar import vector_file
from filestore.sidecar.session import Parts
from filestore.sidecar.vector_rows import Sent, VectorRows, check_stamp, taken

if TYPE_CHECKING:
    from filestore.catalog import Catalog, CatalogWriter
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache

KINDS: Final = {
    "faiss": "the FAISS file of the sidecar; with path=FILE another one",
    "local": "a file of JSON lines, every vector compared; path=FILE (in the sidecar, if relative)",
    "qdrant": "url=URL or path=FOLDER; collection, shards, replication, timeout_s",
    "pgvector": "dsn=DSN; table, schema, index=auto|exact|hnsw, timeout_s",
}
"""Each kind with its keys, in words; `metadata_whitelist=KEY,KEY` is one of every kind's."""
_PASSWORD: Final = re.compile(r"//[^/@\s]*:[^/@\s]+@|\bpassword\s*=\s*\S", re.IGNORECASE)


class BackendChange(Struct, frozen=True, kw_only=True):
    """Another place for the vectors of a store, and what it takes."""

    backend: Backend
    rows: VectorRows | None = None
    """None where the sidecar's own FAISS file takes them."""
    address: str
    """Of the new place, for people."""
    send: int
    """Vectors that it lacks, or has otherwise."""
    kept: int = 0
    """Vectors that it has already."""
    delete: int = 0
    """Vectors that it has and the store has not."""
    takes_over: bool = False
    """Whether they may be another store's."""


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
    configuration: str,
    catalog: "Catalog",
    embedder: "Embedder",
    takes_over: bool,
) -> BackendChange:
    """Connect to the new place and count what it lacks; changes nothing of the store.

    Args:
        places: Where the store lies.
        backend: The new place. Naming it allows the store to reach it.
        configuration: The user's configuration folder.
        catalog: Knows the vectors.
        embedder: Whose vectors.
        takes_over: Whether what another store has there may be replaced.

    Raises:
        UsageError: A key is missing, unknown, or has a value that cannot be used.
        BackendError: It cannot be used, or belongs to another store.
    """
    keys = catalog.vector_keys()
    if backend.is_own_file:
        own = "the FAISS file of the sidecar"
        return BackendChange(backend=backend, address=own, send=len(keys))
    try:
        machine = user_config.read_machine(configuration, os.environ)
        rows = VectorRows.of(backend, places, machine=machine)
        rows = replace(rows, machine=rows.machine.trusting(rows.root, rows.address()))
    except (BackendKeysMissing, BackendSettingsWrong) as error:
        raise UsageError(error.message, remedy=error.remedy) from error
    with rows.connected_to_write(whole=True) as opened:
        address, stamp = opened.address(), opened.stamp()
        if stamp is not None and stamp.owner != catalog.identity and not takes_over:
            raise taken(address)
        held = opened.state.docs if stamp is not None else {}
    steps = compare(held, rows.hashes(catalog, embedder, keys))
    changed = {int(name) for name in steps.upsert}
    return BackendChange(
        backend=backend,
        rows=rows,
        address=address,
        send=len(steps.upsert),
        kept=steps.kept,
        delete=len(set(steps.delete) - changed),
        takes_over=takes_over,
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
    embedder = parts.own_embedder(catalog)
    if change.rows is None:
        _write_settings(parts, change)
        with parts.commit(catalog, embeddings, embed=False) as commit:
            commit.want_index()
            commit.finish()
        return Sent(written=change.send, deleted=0, kept=0)
    sent = change.rows.send(
        catalog, embeddings, embedder, whole=True, takes_over=change.takes_over, noted=False
    )
    _write_settings(parts, change)
    catalog.note_sent(change.rows.label, catalog.generation)
    vector_file.collect(parts.places, catalog, None)
    return sent


def _write_settings(parts: Parts, change: BackendChange) -> None:
    """Name the place in `filestore.toml`, and remember that it may be reached."""
    places = parts.places
    if change.rows is not None and change.rows.reaches_out:
        user_config.trust(parts.configuration, places.root, change.address)
    with disk.disk_errors(places.settings):
        data = settings.read(places.settings)
        disk.write_path(places.settings, settings.with_backend(data, change.backend))
    parts.take_backend(change.backend)


def is_left(before: VectorRows | None, change: BackendChange) -> bool:
    """Whether the place that had the vectors is another than the one that takes them."""
    if before is None or change.rows is None:
        return before is not None
    try:
        return before.address() != change.address
    except BackendError:
        # It could not be used, which the new place can.
        return True


def clear(
    parts: Parts, rows: VectorRows, catalog: "CatalogWriter", embeddings: "EmbeddingCache"
) -> bool:
    """Delete what a store has in the place it left; returns whether that was there.

    Raises:
        BackendError: It is away, or refuses.
    """
    with rows.connected_to_write(whole=True) as backend:
        stamp = backend.stamp()
        if stamp is None or stamp.owner != catalog.identity:
            return False
        backend.clear()
    if parts.rows is not None:
        # One table may have two addresses, as a server has two names: then it is filled again.
        with parts.rows.connected() as backend:
            is_gone = backend.stamp() is None
        if is_gone:
            parts.rows.send(catalog, embeddings, parts.own_embedder(catalog))
    return True


def missing(kind: str) -> str:
    """Why a kind cannot be used on this machine, with what to do; "" where it can."""
    lacking = missing_packages(kind) if kind in PACKAGES else ()
    return f"{' and '.join(lacking)} missing; {install_line(kind)}" if lacking else ""


class ShownBackend(JsonObject, Struct, frozen=True, kw_only=True):
    """Where the vectors of a store are, and how that stands."""

    kind: str
    """`faiss`, `local`, `qdrant` or `pgvector`."""
    address: str
    """Where the vectors are, without a password; empty where the backend cannot be opened."""
    vectors: int
    """Vectors of the store."""
    waiting: int
    """Vectors that the backend lacks, or has otherwise."""
    approximate: bool | None = None
    """Whether a search may miss some of the nearest; None where it cannot be asked."""
    filters: bool = False
    """Whether it filters by metadata itself."""
    compares: bool = False
    """Whether `verify` compares vectors without transferring them."""
    problem: str | None = None
    """Why it cannot be asked."""


def shown(rows: VectorRows | None, catalog: "Catalog") -> ShownBackend:
    """Where the vectors are and how that stands, for `backend show`; a backend is asked."""
    vectors = catalog.count("vectors")
    if rows is None:
        return ShownBackend(
            kind="faiss",
            address="the FAISS file of the sidecar",
            vectors=vectors,
            waiting=queries.unsent_vectors(catalog),
            compares=True,
        )
    is_sent = queries.sent_to_backend(catalog)
    known = is_sent[1] if is_sent is not None and is_sent[0] == rows.label else None
    waiting = queries.unsent_vectors(catalog) if known is not None else vectors
    found = ShownBackend(kind=rows.choice.kind, address="", vectors=vectors, waiting=waiting)
    try:
        found = replace(found, address=rows.address())
        with rows.connected() as backend:
            can = backend.capabilities
            found = replace(
                found, approximate=can.approximate, filters=can.filters, compares=can.compares
            )
            check_stamp(backend, catalog, known)
    except BackendError as error:
        found = replace(found, problem=f"{error.message} (try: {error.remedy})")
    return found
