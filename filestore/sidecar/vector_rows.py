"""The vectors of a store in a backend: sending what changed, asking it, reporting its state.

The catalog says what the backend lacks, the embeddings are what is sent. One rule, the order: first
the catalog's generation, then what it changes in the backend, then a note in the catalog that it is
there. Dying between any two, or a server that is away, leaves a difference, which a search lays
over what the backend has, and which the next writer sends.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec.structs import replace

from filestore.catalog import Catalog, in_batches, queries
from filestore.config.layout import LINES, PARTS, Places
from filestore.config.settings import BACKENDS, Backend
from filestore.config.user_config import Machine
from filestore.core.errors import on_error
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash, vector_id
from filestore.core.paths import StorePath, is_below
from filestore.fs.disk import TEMPORARY_PREFIX
from filestore.index import BackendError, Where, open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendForeign,
    BackendSettingsWrong,
    BackendUnusable,
    DocState,
    EmbedConfig,
    IndexBackend,
    Inspected,
    Item,
    NotSent,
    Sent,
    ShownHome,
    Stamp,
    check_stamp,
    digest,
    older,
    plan,
    whitelisted,
)
from filestore.remote.address import check_trusted
from filestore.sidecar.file_rows import kept_texts
from filestore.sidecar.vector_file import collect
from filestore.sidecar.vector_home import (
    PART,
    Space,
    StoredVectors,
    VectorHome,
    is_doubted,
)

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.index import VectorIndex

_FILES_AT_ONCE: Final = 256
_TAKEN: Final = (
    TEMPORARY_PREFIX,
    *{part.name.partition("*")[0] for part in PARTS if part.name != LINES and "/" not in part.name},
)
"""How the names of what else is in a sidecar begin."""
_HOW: Final = frozenset({"index", "partial", "timeout_s"})
"""Options that say how a backend is asked, not where its rows are or what they hold."""


class BackendUntrusted(BackendError):
    """The settings name a backend that the user did not allow this store to reach."""


class VectorRows(VectorHome):
    """The backend that a store's settings name; opened for each use."""

    takes_conditions = True

    def __init__(self, backend: Backend, places: Places, *, machine: Machine) -> None:
        self.choice = BackendChoice(
            kind=backend.kind,
            options={
                key: list(value) if isinstance(value, tuple) else value
                for key, value in backend.options.items()
            },
            folder=places.sidecar,
            environment=os.environ,
        )
        self.elsewhere = backend.kind
        self._backend, self._places, self._machine = backend, places, machine

    def trusted(self) -> "VectorRows":
        """See the contract."""
        machine = self._machine.trusting(self._places.root, self.address())
        return VectorRows(self._backend, self._places, machine=machine)

    @property
    def label(self) -> str:
        """What the catalog remembers it by: kind and a hash, since an address may hold a secret."""
        place = {key: value for key, value in self.choice.options.items() if key not in _HOW}
        named = orjson.dumps(place, option=orjson.OPT_SORT_KEYS)
        return f"{self.choice.kind}:{content_hash(named).hex()}"

    def address(self) -> str:
        """See the contract."""
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
        """See the contract."""
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
                f"`path` of the backend {self.choice.kind} is a part of the sidecar itself"
                ": name another file, such as index.jsonl",
            )
        backend = self._opened()
        if self.reaches_out:
            check_trusted(
                backend.address(),
                machine=self._machine,
                root=self._places.root,
                would="keep its passages in",
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
    def row_name(self) -> str:
        """See the contract."""
        return f"row of {self.address()}"

    def part(self, catalog: Catalog) -> StorePath:
        """See the contract."""
        return PART

    @property
    def reaches_out(self) -> bool:
        """See the contract."""
        return self._inside is None

    @property
    def _inside(self) -> str | None:
        """Where in the sidecar it is, relative to that; None where it is elsewhere."""
        path = self.choice.options.get("path", "")
        if path == "":
            path = BACKENDS[self.elsewhere].path
        elsewhere = self.choice.options.keys() & {"dsn", "url"}
        if elsewhere or not isinstance(path, str) or not path or "\0" in path:
            return None
        # What it is called says too little: a clone may climb out by `..`, or bring a link along.
        folder = os.path.realpath(self.choice.folder)
        target = os.path.realpath(os.path.join(folder, path))
        return os.path.relpath(target, folder) if is_below(target, folder) else None

    def takes(self, where: Where, catalog: Catalog) -> bool:
        """See the contract."""
        if self._sent(catalog) is None:
            return False
        return not self.whitelist or {key for key, _ in where} <= set(self.whitelist)

    @property
    def whitelist(self) -> tuple[str, ...]:
        """The metadata that it may be given; empty where that is all."""
        names = self.choice.options.get("metadata_whitelist")
        return tuple(names) if isinstance(names, list) else ()

    def lag(self, catalog: Catalog, *, changed: int = 0) -> str:
        """See the contract."""
        if self._sent(catalog) is None:
            count = catalog.count("vectors")
            return f"none of {count:,} vectors was sent to this backend" if count else ""
        waiting = queries.unsent_vectors(catalog)
        return f"{waiting:,} vectors wait to be sent" if waiting else ""

    def _hashes(self, catalog: Catalog, space: Space) -> dict[str, str]:
        """The content hash of each vector with all that is sent with it, by its id as a text."""
        found = {}
        for batch in in_batches(catalog.vector_keys()):
            files = queries.files_sent_with(catalog, [identifier for identifier, _ in batch])
            for identifier, key in batch:
                sent = self._metadata(files.get(identifier, []))
                found[str(identifier)] = _hash(space, key, sent)
        return found

    def _metadata(self, files: Sequence[queries.SentFile]) -> Mapping[str, Any]:
        """What a backend is given with a vector: no more than the whitelist names."""
        return whitelisted({"files": queries.sendable(files)}, self.whitelist)

    def findings(self, catalog: Catalog, *, hashes: bool) -> list[Finding]:
        """See the contract."""
        behind = self.lag(catalog)
        return [Finding(code="index-behind", path=PART, detail=behind)] if behind else []

    def doubt(self, catalog: "CatalogWriter", found: Iterable[Finding]) -> None:
        """See the contract."""
        if is_doubted(found):
            catalog.doubt_sent()

    def write(self, catalog: "CatalogWriter", vectors: StoredVectors, *, wanted: bool) -> bool:
        """Nothing: what it lacks is sent once the transaction is over."""
        return False

    def catch_up(
        self, catalog: "CatalogWriter", vectors: StoredVectors, *, whole: bool
    ) -> BackendError | None:
        """See the contract."""
        if not whole and not self.lag(catalog):
            return None
        try:
            self._send(catalog, vectors, whole=whole, takes_over=False)
            catalog.note_sent(self.label, catalog.generation)
        except BackendError as error:
            return error
        return None

    def compare(self, catalog: Catalog, space: Space, *, takes_over: bool) -> Sent:
        """See the contract."""
        with self.connected_to_write(whole=True) as opened:
            stamp = opened.stamp() if takes_over else _own_stamp(opened, catalog)
            held = opened.state.docs if stamp is not None else {}
        steps = plan(held, self._hashes(catalog, space))
        deleted = set(steps.delete).difference(map(int, steps.upsert))
        return Sent(written=len(steps.upsert), kept=steps.kept, deleted=len(deleted))

    def fill(
        self,
        catalog: "CatalogWriter",
        vectors: StoredVectors,
        name: Callable[[], None],
        *,
        takes_over: bool = False,
    ) -> Sent:
        """See the contract; no FAISS file is needed then."""
        sent = self._send(catalog, vectors, whole=True, takes_over=takes_over)
        name()
        catalog.note_sent(self.label, catalog.generation)
        collect(self._places, catalog, None)
        return sent

    def clear(self, catalog: Catalog) -> bool:
        """See the contract."""
        with self.connected_to_write(whole=True) as backend:
            stamp = backend.stamp()
            if stamp is None or stamp.owner != catalog.identity:
                return False
            backend.clear()
        return True

    def is_emptied(self) -> bool:
        """See the contract."""
        with self.connected() as backend:
            return backend.stamp() is None

    def _send(
        self, catalog: "CatalogWriter", vectors: StoredVectors, *, whole: bool, takes_over: bool
    ) -> Sent:
        """Bring the backend up to the catalog's generation, which is committed.

        Args:
            catalog: Between two transactions.
            vectors: What is sent.
            whole: Compare all that it holds, vectors too; else what the catalog says differs.
            takes_over: Take what another store wrote there.

        Raises:
            BackendError: It is away, refuses, or belongs to another store.
        """
        known = queries.sent_rows(catalog)
        whole = whole or known is None
        with self.connected_to_write(whole=whole) as backend:
            # A file of the sidecar is this store's, whatever catalog it has now.
            takes_over = takes_over or not self.reaches_out
            stamp = backend.stamp() if takes_over else _own_stamp(backend, catalog)
            embed = _config(vectors.space)
            if stamp is not None and stamp.embed != embed:
                backend.clear()
                stamp = None
            backend.set_embed_config(embed)
            is_known = known == (self.label, stamp.generation if stamp else None)
            if stamp is not None and stamp.owner == catalog.identity and is_known and not whole:
                removed, added = catalog.index_delta()
                deleted = backend.delete(removed)
                items = self._items(vectors, [identifier for identifier, _ in added])
                sent = Sent(written=backend.upsert(items, skip_existing=False), deleted=deleted)
            else:
                sent = self._send_all(backend, vectors, whole=whole)
            backend.save(owner=catalog.identity, generation=catalog.generation)
        return sent

    def _send_all(self, backend: IndexBackend, vectors: StoredVectors, *, whole: bool) -> Sent:
        state = dict(backend.state.docs)
        held = backend.digests() if whole else {}
        for batch in in_batches(vectors.keys) if whole else ():
            keys = [key for _, key in batch]
            rows, found = vectors.embeddings.get(vectors.space.fingerprint, keys)
            for (one, _), sound, expected in zip(batch, found, digest(rows), strict=True):
                if sound and one in held and held[one] != expected:
                    # It lies there otherwise than it was embedded.
                    state[str(one)] = DocState(content_hash="", chunk_ids=(one,))
        steps = plan(state, self._hashes(vectors.catalog, vectors.space))
        sending = {int(name) for name in steps.upsert}
        deleted = backend.delete([one for one in steps.delete if one not in sending])
        items = self._items(vectors, sorted(sending))
        written = backend.upsert(items, skip_existing=False)
        return Sent(written=written, deleted=deleted, kept=steps.kept)

    def _items(self, vectors: StoredVectors, wanted: Sequence[int]) -> Iterator[Item]:
        """Vectors as they are sent, each once; those without a sound embedding are left out."""
        left, catalog, space = set(wanted), vectors.catalog, vectors.space
        for batch in in_batches(queries.paths_of_vectors(catalog, wanted), _FILES_AT_ONCE):
            texts = {
                vector_id(key): (key, text)
                for key, text in kept_texts(catalog, batch)
                if vector_id(key) in left
            }
            left -= texts.keys()
            ids = sorted(texts)
            files = queries.files_sent_with(catalog, ids)
            keys = [texts[one][0] for one in ids]
            rows, found = vectors.embeddings.get(space.fingerprint, keys)
            for row, identifier in enumerate(ids):
                if not found[row]:
                    continue
                key, text = texts[identifier]
                metadata = self._metadata(files.get(identifier, []))
                yield Item(
                    id=identifier,
                    vector=rows[row],
                    doc_id=str(identifier),
                    content_hash=_hash(space, key, metadata),
                    text=queries.sendable(text),
                    metadata=metadata,
                )

    def _sent(self, catalog: Catalog) -> int | None:
        """The generation that it was sent last; None where the catalog does not count on it."""
        sent = queries.sent_rows(catalog)
        return sent[1] if sent is not None and sent[0] == self.label else None

    def _loaded(self, vectors: StoredVectors) -> IndexBackend:
        """The backend, which has what was sent to it and answers for this store alone.

        Raises:
            NotSent: It has nothing yet, or not enough to be searched.
            BackendError: It is away, or what it has is not this store's.
        """
        catalog = vectors.catalog
        known, backend = self._sent(catalog), self.connected()
        with on_error(backend.close):
            stamp, address = _own_stamp(backend, catalog, known), backend.address()
            is_of = stamp is not None and stamp.embed == _config(vectors.space)
            if known is not None and not is_of:
                raise older(address)
            # A switch may have been killed before it was noted: then it has just this generation.
            if known is None and not (is_of and stamp and stamp.generation == catalog.generation):
                what = f"the vectors were not sent to {address} yet"
                raise NotSent(what, remedy="filestore sync")
            backend.expect(catalog.identity, catalog.generation if known is None else known)
        return backend

    def _laid_over(self, backend: IndexBackend, vectors: StoredVectors) -> "VectorIndex":
        # The catalog's difference is not to this place where it never got any.
        return backend if self._sent(vectors.catalog) is None else vectors.laid_over(backend)

    def load(self, vectors: StoredVectors) -> "VectorIndex":
        """See the contract; what it lacks is laid over it."""
        return self._laid_over(self._loaded(vectors), vectors)

    def inspect(self, vectors: StoredVectors) -> Inspected:
        """See the contract; what it has with its vectors is compared where it lacks nothing."""
        behind = self.lag(vectors.catalog)
        try:
            backend = self._loaded(vectors)
            with on_error(backend.close):
                docs = {} if behind else backend.state.docs
                index = self._laid_over(backend, vectors)
        except NotSent as error:
            code, why = "index-missing" if behind else "index-lost", error.message
        except BackendForeign as error:
            code, why = "index-taken", error.message
        except BackendError as error:
            is_damaged = isinstance(error, BackendUnusable) and not self.reaches_out
            code, why = "index-damaged" if is_damaged else "index-away", error.message
        else:
            wanted = self._hashes(vectors.catalog, vectors.space) if docs else {}
            stale = [
                int(name)
                for name, content in wanted.items()
                if name in docs and docs[name].content_hash != content
            ]
            return Inspected(index=index, stale=stale)
        found = [Finding(code=code, path=PART, detail=why)]
        return Inspected(findings=found, unread="vectors of the backend, which cannot be asked")

    def shown(self, catalog: Catalog) -> ShownHome:
        """See the contract."""
        known, vectors = self._sent(catalog), catalog.count("vectors")
        waiting = queries.unsent_vectors(catalog) if known is not None else vectors
        found = ShownHome(kind=self.elsewhere, address="", vectors=vectors, waiting=waiting)
        try:
            found = replace(found, address=self.address())
            with self.connected() as backend:
                can = backend.capabilities
                found = replace(
                    found, approximate=can.approximate, filters=can.filters, compares=can.compares
                )
                _own_stamp(backend, catalog, known)
        except BackendError as error:
            found = replace(found, problem=error.in_one_line)
        return found


def _own_stamp(backend: IndexBackend, catalog: Catalog, known: int | None = None) -> Stamp | None:
    """The stamp of a backend, of this store and no older than what was sent, if that is known.

    Raises:
        BackendForeign: It is not.
    """
    stamp = backend.stamp()
    if stamp is not None or known is not None:
        check_stamp(stamp, (catalog.identity, known or 0), backend.address())
    return stamp


def _config(space: Space) -> EmbedConfig:
    return EmbedConfig(fingerprint=space.fingerprint, dimension=space.dimension)


def _hash(space: Space, key: bytes, sent: Mapping[str, Any]) -> str:
    """Of what was sent, so that another whitelist has it sent again."""
    hashed = [space.fingerprint, key.hex(), sent["files"]]
    return content_hash(orjson.dumps(hashed, option=orjson.OPT_SORT_KEYS)).hex()
