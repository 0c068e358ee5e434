"""The vectors of a store in a backend: sending what changed, asking it, saying how it stands.

The catalog says what the backend lacks, the embeddings are what is sent. One rule, the order: first
the catalog's generation, then what it changes in the backend, then a note in the catalog that it is
there. Dying between any two, or a server that is away, leaves a difference, which a search lays
over what the backend has, and which the next writer sends.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, in_batches, queries
from filestore.config.layout import LINES, PARTS, SETTINGS, Places
from filestore.config.settings import Backend
from filestore.config.user_config import Machine
from filestore.core.errors import on_error
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash, vector_id
from filestore.core.paths import StorePath, is_below
from filestore.fs.disk import TEMPORARY_PREFIX
from filestore.index import open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendForeign,
    BackendSettingsWrong,
    BackendUnusable,
    DocState,
    EmbedConfig,
    IndexBackend,
    Item,
    ServedIndex,
    Stamp,
    digest,
    plan,
    whitelisted,
)
from filestore.index.base import BackendError, Where
from filestore.remote.address import check_trusted
from filestore.sidecar.file_rows import kept_texts
from filestore.sidecar.vector_file import Space, StoredVectors

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex

_FILES_AT_ONCE: Final = 256
_TAKEN: Final = (
    TEMPORARY_PREFIX,
    *{part.name.partition("*")[0] for part in PARTS if part.name != LINES and "/" not in part.name},
)
"""How the names of what else is in a sidecar begin."""
_HOW: Final = frozenset({"index", "partial", "timeout_s"})
"""Options that say how a backend is asked, not where its rows are or what stands in them."""


class BackendUntrusted(BackendError):
    """The settings name a backend that the user did not allow this store to reach."""


class NotSent(BackendError):
    """The vectors were not sent to this backend yet."""


class Sent(Struct, frozen=True, kw_only=True):
    """What sending did."""

    written: int
    deleted: int
    kept: int
    """Vectors that were there as they should be, where all were compared."""


class VectorRows(Struct, frozen=True, kw_only=True):
    """The backend that a store's settings name; opened for each use."""

    choice: BackendChoice
    machine: Machine
    root: str

    @classmethod
    def of(cls, backend: Backend, places: Places, *, machine: Machine) -> "VectorRows":
        """The backend that settings name, which is not the sidecar's own file."""
        choice = BackendChoice(
            kind=backend.kind,
            options={
                key: list(value) if isinstance(value, tuple) else value
                for key, value in backend.options.items()
            },
            folder=places.sidecar,
            environment=os.environ,
        )
        return cls(choice=choice, machine=machine, root=places.root)

    @property
    def label(self) -> str:
        """What the catalog remembers it by: kind and a hash, since an address may hold a secret."""
        place = {key: value for key, value in self.choice.options.items() if key not in _HOW}
        said = orjson.dumps(place, option=orjson.OPT_SORT_KEYS)
        return f"{self.choice.kind}:{content_hash(said).hex()}"

    def address(self) -> str:
        """Where it is, for people.

        Raises:
            BackendError: The settings cannot be used, or its package is not installed.
        """
        return self._opened().address()

    def _opened(self) -> IndexBackend:
        """The backend, not connected; outside of the sidecar a path is where its links lead now."""
        path = self.choice.options.get("path")
        if not self.reaches_out or not isinstance(path, str) or "\0" in path:
            return open_backend(self.choice)
        real = os.path.realpath(os.path.join(self.choice.folder, path))
        return open_backend(replace(self.choice, options={**self.choice.options, "path": real}))

    @property
    def where(self) -> str:
        """The address; of settings that cannot be used, what they name."""
        try:
            return self.address()
        except BackendError:
            return f"the backend {self.choice.kind}"

    def connected(self) -> IndexBackend:
        """The backend, loaded; to be closed.

        Raises:
            BackendUntrusted: It was not allowed.
            BackendError: It cannot be used.
        """
        # What is damaged in a part of the sidecar would be deleted.
        inside = self._inside
        if inside is not None and (inside == "." or inside.startswith(_TAKEN)):
            raise BackendSettingsWrong(
                f"`path` of the backend {self.choice.kind} is a part of the sidecar itself",
                remedy="name another file, such as index.jsonl",
            )
        backend = self._opened()
        if self.reaches_out:
            check_trusted(
                backend.address(),
                machine=self.machine,
                root=self.root,
                would="keep its texts in",
                error=BackendUntrusted,
            )
        with on_error(backend.close):
            backend.load()
        return backend

    def connected_to_write(self, *, whole: bool) -> IndexBackend:
        """As `connected`; a damaged file of the sidecar is deleted, since it is made again."""
        try:
            return self.connected()
        except BackendUnusable:
            if self.reaches_out or not whole:
                raise
            with open_backend(self.choice) as damaged:
                damaged.clear()
            return self.connected()

    @property
    def reaches_out(self) -> bool:
        """Whether it is anywhere but in the sidecar."""
        return self._inside is None

    @property
    def _inside(self) -> str | None:
        """Where in the sidecar it is, relative to that; None where it is elsewhere."""
        path = self.choice.options.get("path", "" if self.choice.kind == "local" else None)
        elsewhere = self.choice.options.keys() & {"dsn", "url"}
        if elsewhere or not isinstance(path, str) or "\0" in path:
            return None
        # What it is called says too little: a clone may climb out by `..`, or bring a link along.
        folder = os.path.realpath(self.choice.folder)
        target = os.path.realpath(os.path.join(folder, path or LINES))
        return os.path.relpath(target, folder) if is_below(target, folder) else None

    def takes(self, where: Where, catalog: Catalog) -> bool:
        """Whether it was given all that a filter asks for, by these settings."""
        sent = queries.sent_to_backend(catalog)
        if sent is None or sent[0] != self.label:
            return False
        return not self.whitelist or {key for key, _ in where} <= set(self.whitelist)

    @property
    def whitelist(self) -> tuple[str, ...]:
        """The metadata that it may be given; empty where that is all."""
        names = self.choice.options.get("metadata_whitelist")
        return tuple(names) if isinstance(names, list) else ()

    def is_behind(self, catalog: Catalog) -> str:
        """What it lacks of the catalog's vectors, in words; "" where nothing. Asks nobody."""
        sent = queries.sent_to_backend(catalog)
        if sent is None or sent[0] != self.label:
            count = catalog.count("vectors")
            return f"none of {count:,} vectors was sent to this backend" if count else ""
        waiting = queries.unsent_vectors(catalog)
        return f"{waiting:,} vectors wait to be sent" if waiting else ""

    def stale(self, docs: Mapping[str, DocState], catalog: Catalog, space: Space) -> list[int]:
        """The vectors that are there with another content hash than they should have."""
        wanted = self.hashes(catalog, space, catalog.vector_keys())
        return [
            int(name)
            for name, content in wanted.items()
            if name in docs and docs[name].content_hash != content
        ]

    def hashes(
        self, catalog: Catalog, space: Space, keys: Sequence[tuple[int, bytes]]
    ) -> dict[str, str]:
        """The content hash of each vector with all that is sent beside it, by its id as a text."""
        found = {}
        for batch in in_batches(keys):
            files = queries.files_beside(catalog, [identifier for identifier, _ in batch])
            for identifier, key in batch:
                sent = _sent(files.get(identifier, []), self.whitelist)
                found[str(identifier)] = _hash(space, key, sent)
        return found

    def findings(self, catalog: Catalog) -> list[Finding]:
        """How it stands by the catalog alone."""
        behind = self.is_behind(catalog)
        return [Finding(code="index-behind", path=PART, detail=behind)] if behind else []

    def catch_up(
        self,
        catalog: "CatalogWriter",
        embeddings: "EmbeddingCache",
        space: Space,
        *,
        whole: bool,
    ) -> BackendError | None:
        """Send what is lacking, if anything; why that did not work, which is no reason to fail."""
        if not whole and not self.is_behind(catalog):
            return None
        try:
            self.send(catalog, embeddings, space, whole=whole)
        except BackendError as error:
            return error
        return None

    def send(
        self,
        catalog: "CatalogWriter",
        embeddings: "EmbeddingCache",
        space: Space,
        *,
        whole: bool = False,
        takes_over: bool = False,
        noted: bool = True,
    ) -> Sent:
        """Bring the backend up to the catalog's generation, which is committed.

        Args:
            catalog: Between two transactions.
            embeddings: What is sent.
            space: Whose vectors.
            whole: Compare all that it holds, vectors too; else what the catalog says differs.
            takes_over: Take what another store wrote there.
            noted: Whether the catalog takes it as the place of the vectors.

        Raises:
            BackendError: It is away, refuses, or belongs to another store.
        """
        known = queries.sent_to_backend(catalog)
        whole = whole or known is None
        with self.connected_to_write(whole=whole) as backend:
            stamp = backend.stamp()
            # A file of the sidecar is this store's, whatever catalog it has now.
            takes_over = takes_over or not self.reaches_out
            if stamp is not None and stamp.owner != catalog.identity and not takes_over:
                raise taken(backend.address())
            embed = EmbedConfig(fingerprint=space.fingerprint, dimension=space.dimension)
            if stamp is not None and stamp.embed != embed:
                backend.clear()
                stamp = None
            backend.set_embed_config(embed)
            is_known = known == (self.label, stamp.generation if stamp else None)
            if stamp is not None and stamp.owner == catalog.identity and is_known and not whole:
                removed, added = catalog.index_delta()
                deleted = backend.delete(removed)
                wanted = [identifier for identifier, _ in added]
                sending = items(catalog, embeddings, space, wanted, self.whitelist)
                written = backend.upsert(sending, skip_existing=False)
                sent = Sent(written=written, deleted=deleted, kept=0)
            else:
                sent = self._send_all(backend, catalog, embeddings, space, whole=whole)
            backend.save(owner=catalog.identity, generation=catalog.generation)
        if noted:
            catalog.note_sent(self.label, catalog.generation)
        return sent

    def _send_all(
        self,
        backend: IndexBackend,
        catalog: Catalog,
        embeddings: "EmbeddingCache",
        space: Space,
        *,
        whole: bool,
    ) -> Sent:
        keys = catalog.vector_keys()
        state = dict(backend.state.docs)
        for name in _damaged(backend, embeddings, space, keys) if whole else ():
            state[name] = DocState(content_hash="", chunk_ids=(int(name),))
        steps = plan(state, self.hashes(catalog, space, keys))
        sending = {int(name) for name in steps.upsert}
        deleted = backend.delete([one for one in steps.delete if one not in sending])
        written = backend.upsert(
            items(catalog, embeddings, space, sorted(sending), self.whitelist), skip_existing=False
        )
        return Sent(written=written, deleted=deleted, kept=steps.kept)

    def load(self, catalog: Catalog, embeddings: "EmbeddingCache", space: Space) -> "VectorIndex":
        """What is searched: the backend, with what it lacks laid over it; to be closed.

        Raises:
            NotSent: It has nothing yet, or not enough to be searched.
            BackendError: It is away, or what it has is not this store's.
        """
        sent = queries.sent_to_backend(catalog)
        backend = self.connected()
        with on_error(backend.close):
            known = sent[1] if sent is not None and sent[0] == self.label else None
            _check(backend, catalog, known, space)
            backend.expect(catalog.identity, catalog.generation if known is None else known)
        served = ServedIndex(backend, space.dimension)
        # The catalog's difference is not to this place where it was never told of it.
        if known is None:
            return served
        return StoredVectors(catalog, embeddings, space).laid_over(served)


def is_doubted(found: Iterable[Finding]) -> bool:
    """Whether findings of a verification say that a backend has not what was sent to it."""
    return any(
        PART in (one.path, one.other) and (one.meaning.discards == "index" or one.meaning.unopened)
        for one in found
    )


PART: Final = StorePath(SETTINGS)
"""The path of a backend in findings: that of the settings, which name it."""


def taken(address: str) -> BackendForeign:
    """What says that another store has its vectors in a place."""
    return BackendForeign(
        f"{address} holds the vectors of another store, or of a catalog of this one that was lost",
        remedy="name another place, or run `filestore backend set … --take-over`",
    )


def _check(backend: IndexBackend, catalog: Catalog, known: int | None, space: Space) -> None:
    """Whether a backend has what was sent to it.

    Args:
        backend: Loaded.
        catalog: The one that asks.
        known: The generation that it sent last; None where it does not know of this place. It then
            counts only if it has just this generation: a switch was killed before it was noted.
        space: Whose vectors.

    Raises:
        BackendError: It has not.
    """
    stamp, address = check_stamp(backend, catalog, known), backend.address()
    if known is None:
        if stamp is None or stamp.generation != catalog.generation or not _is_of(stamp, space):
            raise NotSent(f"the vectors were not sent to {address} yet", remedy="filestore sync")
        return
    if stamp is not None and not _is_of(stamp, space):
        raise _older(address)


def check_stamp(backend: IndexBackend, catalog: Catalog, known: int | None) -> Stamp | None:
    """The stamp of a backend, which has to be this store's and no older than what was sent.

    Raises:
        BackendForeign: It is another store's.
        NotSent: It is gone, or older.
    """
    stamp, address = backend.stamp(), backend.address()
    if stamp is not None and stamp.owner != catalog.identity:
        raise taken(address)
    if known is not None and stamp is None:
        raise NotSent(
            f"{address} has lost the vectors that were sent to it", remedy="filestore sync --full"
        )
    if known is not None and stamp is not None and stamp.generation < known:
        raise _older(address)
    return stamp


def _older(address: str) -> NotSent:
    return NotSent(
        f"{address} has older vectors than were sent to it", remedy="filestore sync --full"
    )


def _is_of(stamp: Stamp, space: Space) -> bool:
    return (stamp.embed.fingerprint, stamp.embed.dimension) == (space.fingerprint, space.dimension)


def _sent(files: Sequence[queries.Beside], whitelist: Sequence[str]) -> Mapping[str, Any]:
    """What stands beside a vector as a backend is given it: no more than the whitelist names."""
    return whitelisted({"files": queries.sendable(files)}, whitelist)


def _hash(space: Space, key: bytes, sent: Mapping[str, Any]) -> str:
    """Of what was sent, so that another whitelist has it sent again."""
    said = [space.fingerprint, key.hex(), sent["files"]]
    return content_hash(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hex()


def items(
    catalog: Catalog,
    embeddings: "EmbeddingCache",
    space: Space,
    wanted: Sequence[int],
    whitelist: Sequence[str],
) -> Iterator[Item]:
    """Vectors as they are sent, each once; those without a sound embedding are left out."""
    left = set(wanted)
    for batch in in_batches(queries.paths_of_vectors(catalog, wanted), _FILES_AT_ONCE):
        texts = {
            vector_id(key): (key, text)
            for key, text in kept_texts(catalog, batch)
            if vector_id(key) in left
        }
        left -= texts.keys()
        ids = sorted(texts)
        files = queries.files_beside(catalog, ids)
        vectors, found = embeddings.get(space.fingerprint, [texts[one][0] for one in ids])
        for row, identifier in enumerate(ids):
            if not found[row]:
                continue
            key, text = texts[identifier]
            sent = _sent(files.get(identifier, []), whitelist)
            yield Item(
                id=identifier,
                vector=vectors[row],
                doc_id=str(identifier),
                content_hash=_hash(space, key, sent),
                text=queries.sendable(text),
                metadata=sent,
            )


def _damaged(
    backend: IndexBackend,
    embeddings: "EmbeddingCache",
    space: Space,
    keys: Sequence[tuple[int, bytes]],
) -> list[str]:
    """Which vectors lie there otherwise than they were embedded."""
    held = backend.digests()
    wrong = []
    for batch in in_batches(keys):
        vectors, found = embeddings.get(space.fingerprint, [key for _, key in batch])
        for (identifier, _), sound, expected in zip(batch, found, digest(vectors), strict=True):
            if sound and identifier in held and held[identifier] != expected:
                wrong.append(str(identifier))
    return wrong
