"""A folder of collections: each an ordinary store of its own, made whole or not at all.

Knows nothing of HTTP. One rule: an answer is of what was there before, or of what is there
now: a new collection is made in a folder of its own, and exchanged in one step.
"""

import contextlib
import math
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from msgspec.structs import asdict, replace

from filestore.config import settings
from filestore.config.layout import SETTINGS, ancestors, configuration_folder
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.safe_text import brief, shown_path
from filestore.fs import disk, staged
from filestore.search import Mode
from filestore.server import collection
from filestore.server.collection import (
    FOLDER,
    CollectionRecord,
    RagAnswer,
    RagDeleted,
    RagEntry,
    RagIndexed,
    RagList,
    RagReloaded,
    RagResult,
    RagStatus,
    SentDocument,
    ServedCollection,
    UnknownCollectionError,
    check_alike,
    check_name,
    id_and_metadata,
)
from filestore.sidecar.refusals import UnsafeSidecarError
from filestore.store import Store
from filestore.store.threads import ReadOnlyError

MOST_OPEN: Final = 16
"""Collections kept open; of more, the one not asked for longest is closed."""
_PACK: Final = f"{disk.TEMPORARY_PREFIX}pack"
_FILE_BYTES: Final = 8_192
"""What one document takes on a disk besides its text and its vectors: its file, its rows."""
_COPIES: Final = 3
"""Of each text and each vector: in files, catalog and indexes."""


class NoSpaceError(disk.WriteFailedError):
    """The disk has no room for what is to be made."""


class Collections(disk.Closing):
    """Every collection of one folder, from any thread. A context manager."""

    def __init__(
        self,
        path: str,
        *,
        writes: bool = False,
        configuration: str | None = None,
        embedder: str | None = None,
        readers: int = 2,
        available: Callable[[str], int] = lambda path: shutil.disk_usage(path).free,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Open a folder of collections; where they may be written it is made.

        Args:
            path: The folder.
            writes: Whether collections may be made, replaced and deleted.
            configuration: The folder of the user's settings; None for the usual one.
            embedder: Of new collections; None for that of the installation.
            readers: Threads a collection.
            available: How many bytes may be written at a path.
            clock: The time.

        Raises:
            UsageError: It is no folder, or lies inside a store.
            WriteFailedError: It cannot be made.
        """
        self.path: str = os.path.realpath(path)
        self.writes = writes
        self._configuration = configuration_folder() if configuration is None else configuration
        self._embedder = embedder
        self._readers = readers
        self._available = available
        self._clock = clock
        self._lock = threading.Lock()
        self._served: dict[str, ServedCollection] = {}
        for one in ancestors(self.path):
            if os.path.exists(os.path.join(one, SETTINGS)):
                raise UsageError(
                    f"{shown_path(self.path)} lies in the store {shown_path(one)}",
                    remedy="choose a folder outside it: each collection is a store of its own",
                )
        if writes:
            with disk.disk_errors(self.path):
                os.makedirs(self.path, exist_ok=True)
                staged.collect_folders(self.path)
        if not os.path.isdir(self.path):
            raise UsageError(
                f"{shown_path(path)} is not a folder", remedy="name the folder of the collections"
            )

    def close(self) -> None:
        """Let go of every file."""
        with self._lock:
            served = list(self._served.values())
        for one in served:
            one.close()

    def listed(self) -> dict[str, Any]:
        """Every store, or folder of FAISS + JSON, with its state; a damaged one has its error."""
        rags = []
        for name in sorted(os.listdir(self.path)):
            # No name of a collection, or one that was deleted meanwhile.
            with contextlib.suppress(UsageError, UnknownCollectionError):
                if collection.kind_of(self._place(check_name(name))):
                    rags.append(RagEntry(name, self._status(name)))
        return RagList(rags, len(rags)).to_dict()

    def status(self, name: str) -> dict[str, Any]:
        """The state of a collection.

        Raises:
            UnknownCollectionError: There is none.
        """
        return self._status(name).to_dict()

    def _status(self, name: str) -> RagStatus:
        with self._using(name) as served:
            record = collection.record_of(served.path)
            found = RagStatus(
                rag_name=served.name,
                created_at=record.created_at,
                updated_at=record.updated_at,
                total_size_bytes=collection.size_bytes(served.path),
                dataset_info=record.dataset_info,
            )
            try:
                return replace(found, **served.call(_counted))
            except FilestoreError as error:
                if not collection.kind_of(served.path):
                    served.require()
                return replace(
                    found, error=error.message, details=error.detail, action=error.remedy
                )

    def query(self, name: str, query: str, *, k: int = 5, mode: Mode = "hybrid") -> dict[str, Any]:
        """The documents that answer a question, best first.

        Raises:
            UnknownCollectionError: There is none.
            FilestoreError: What `Store.search` raises.
        """
        with self._using(name) as served:
            answer = served.call(
                lambda store: store.search(query, k=k, mode=mode, without=["copies", "cut"])
            )
        results = []
        for hit in answer.hits:
            identifier, metadata = id_and_metadata(hit.metadata, hit.path)
            score = hit.score if math.isfinite(hit.score) else 0.0
            results.append(
                RagResult(identifier, hit.text, score, metadata, hit.path, hit.freshness)
            )
        return RagAnswer(name, query, results, answer.notes).to_dict()

    def index(
        self,
        name: str,
        documents: Sequence[SentDocument],
        *,
        dataset_info: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Make a collection of documents, or replace all of one that is there.

        Args:
            name: Of the collection.
            documents: All that it is to have.
            dataset_info: Information to be kept with them.
            overwrite: Whether what a person changed in the old one may go, too.

        Raises:
            UsageError: The name or a document cannot be used.
            RefusedError: Something else has the name, or a person changed what is there.
            NoSpaceError: The disk has no room for it.
            WriteFailedError: The disk refused.
            FilestoreError: The model failed. In each case the old collection is as it was.
        """
        self.require_writes()
        with self._using(name) as served, served.writing():
            self._require_replaceable(served, overwrite=overwrite)
            texts = sum(len(one.text.encode("utf-8", "surrogatepass")) for one in documents)
            required = _COPIES * texts + _FILE_BYTES * len(documents)
            with disk.disk_errors(self.path):
                available = self._available(self.path)
            if available < required:
                sizes = [f"{math.ceil(size / 1_000_000)} MB" for size in (required, available)]
                detail = "required {}, available {}".format(*sizes)
                raise NoSpaceError(
                    "the disk has no room for the collection",
                    detail=detail,
                    remedy=f"{detail}; free space and try again",
                )
            before = collection.record_of(served.path) if os.path.isdir(served.path) else None
            with staged.staged_folder(served.path, swap=served.exchanging) as staging:
                with self._made(staging, served) as store:
                    done = store.put(
                        [one.text for one in documents],
                        into=FOLDER,
                        names=[f"document{number}" for number in range(1, len(documents) + 1)],
                        metadata=[one.frontmatter for one in documents],
                    )
                    if done.problem is not None:
                        raise done.problem
                self._write_record(staging, before, dict(dataset_info or {}))
                self._require_replaceable(served, overwrite=overwrite)
        status = asdict(self._status(name))
        return RagIndexed(**status, embedded=done.embedded, reused=done.reused).to_dict()

    def reload(self, name: str) -> dict[str, Any]:
        """Load what changed on the disk: synced where that may be written, then opened anew.

        A folder of FAISS + JSON becomes a store; its files stay in it.

        Raises:
            UnknownCollectionError: There is none.
            FilestoreError: What `Store.sync` or `Store.import_from` raises.
        """
        done: dict[str, Any] = {"applied": {}, "remaining": {}, "embedded": 0, "reused": 0}
        with self._using(name) as served, served.writing():
            if collection.kind_of(served.path) == "faiss-json":
                self.require_writes()
                with staged.staged_folder(served.path, swap=served.exchanging) as staging:
                    with self._made(staging, served) as store:
                        store.import_from("faiss-json", served.path)
                    # Whatever lies there comes along.
                    shutil.copytree(served.path, staging, symlinks=True, dirs_exist_ok=True)
                    self._write_record(staging, None, {})
            served.require()
            if self.writes:
                with Store(served.path, configuration=self._configuration) as store:
                    report = store.sync()
                left = Counter(one.code for one in report.remaining if not one.accepted)
                done = {
                    "applied": Counter(one.code for one in report.applied),
                    "remaining": left,
                    "embedded": report.embedded,
                    "reused": report.reused,
                }
                if report.applied and collection.kind_of(served.path) == "collection":
                    # The index is of now; whose the documents are does not change.
                    record = collection.record_of(served.path)
                    made = replace(record, updated_at=collection.written_time(self._clock()))
                    disk.write_path(os.path.join(served.path, collection.RECORD), made.written)
            served.close()
        return RagReloaded(**asdict(self._status(name)), **done, synced=self.writes).to_dict()

    def delete(self, name: str) -> dict[str, Any]:
        """Delete a collection with its folder.

        Raises:
            UnknownCollectionError: There is none.
            RefusedError: It was not made here.
            WriteFailedError: The disk refused.
        """
        self.require_writes()
        with self._using(name) as served, served.writing():
            if not collection.kind_of(served.path):
                served.require()
            self._require_ours(served)
            with disk.disk_errors(served.path), served.exchanging():
                staged.remove_folder(served.path)
        return RagDeleted(name).to_dict()

    def require_writes(self) -> None:
        """Refuse changes of collections that are served to be read.

        Raises:
            ReadOnlyError: They are.
        """
        if not self.writes:
            raise ReadOnlyError(
                "collections are served to be read", remedy="start the server with --write"
            )

    def _place(self, name: str) -> str:
        return os.path.join(self.path, name)

    @contextlib.contextmanager
    def _using(self, name: str) -> Iterator[ServedCollection]:
        """The one object of a name, for as long as anybody uses it or it is open."""
        check_name(name)
        others = os.listdir(self.path)
        if name not in others:
            # A file system that ignores case has one folder for several names.
            check_alike(name, others)
        with self._lock:
            served = self._served.get(name) or ServedCollection(
                name,
                self._place(name),
                configuration=self._configuration,
                readers=self._readers,
            )
            self._served[name] = served
            served.users += 1
        try:
            yield served
        finally:
            with self._lock:
                served.users -= 1
                # Unused ones that need not be kept open are closed.
                unused = [one for one in self._served.values() if not one.users]
                opened = sorted(
                    (one for one in unused if one.is_open), key=lambda one: one.asked_at
                )
                many = sum(one.is_open for one in self._served.values())
                idle = opened[: max(0, many - MOST_OPEN)]
                for one in unused:
                    if one in idle or not one.is_open:
                        del self._served[one.name]
            for one in idle:
                one.close()

    def _require_ours(self, served: ServedCollection) -> None:
        """Refuse a folder that was not made here; an index of the old layout counts as made here.

        Raises:
            RefusedError: It was not.
        """
        path, shown = served.path, brief(served.name)
        kind = collection.kind_of(path)
        strange = collection.strange(path) if kind == "faiss-json" else []
        if kind in ("", "store") or strange:
            what = "is a store that was made otherwise" if kind == "store" else "holds other files"
            raise RefusedError(
                f"{shown} {what}: it is neither replaced nor deleted here",
                remedy="choose another name, or remove the folder yourself",
            )
        sidecar = settings.sidecar_folder(path, self._configuration)
        if sidecar != os.path.join(path, ".sidecar"):
            raise RefusedError(
                f"the sidecar of {shown} lies elsewhere: {shown_path(sidecar)}",
                remedy="take it out of your settings, or remove the folder yourself",
            )
        # Vectors elsewhere could not be exchanged in one step, nor would they go with its folder.
        if not _has_settings(served.path):
            return
        home = None
        # One whose sidecar cannot be used may go all the same.
        with (
            contextlib.suppress(UnsafeSidecarError),
            Store(served.path, configuration=self._configuration) as store,
        ):
            home = store.vector_home()
        if home is not None and home.reaches_out:
            raise RefusedError(
                f"the vectors of {brief(served.name)} lie in {home.where}, outside its folder",
                remedy="'filestore backend set faiss' in that folder; then send the request again",
            )

    def _require_replaceable(self, served: ServedCollection, *, overwrite: bool) -> None:
        """Refuse to replace what a person changed.

        Raises:
            RefusedError: A person did, or the folder is something else.
        """
        if not os.path.lexists(served.path):
            return
        self._require_ours(served)
        if overwrite or collection.kind_of(served.path) != "collection":
            return
        strange = collection.strange(served.path)
        known = collection.record_of(served.path).digest
        with disk.disk_errors(served.path):
            is_as_written = known == collection.digest_of(served.path)
        if strange or not is_as_written:
            what = f"{shown_path(strange[0])} was put there" if strange else "a document changed"
            raise RefusedError(
                f"{brief(served.name)} was changed since it was indexed: {what}",
                remedy='send "overwrite": true to replace it all the same',
            )

    @contextlib.contextmanager
    def _made(self, staging: str, served: ServedCollection) -> Iterator[Store]:
        """A new store with the settings and the embeddings of the old one, if there is one."""
        if not _has_settings(served.path):
            made = partial(Store.create, embedder=self._embedder)
            with made(staging, configuration=self._configuration) as store:
                yield store
            return
        for name in collection.SETTLED:
            with contextlib.suppress(FileNotFoundError, disk.NotAFileError):
                data = disk.read_path(os.path.join(served.path, name))
                disk.write_path(os.path.join(staging, name), data)
        os.mkdir(os.path.join(staging, "chunked"))
        with Store(staging, configuration=self._configuration) as store:
            # What the user allowed the collection counts for what takes its place.
            store.stand_in_for(served.path)
            embedder = store.embedder
            if embedder is not None and not embedder.lexical:
                # Let no text be embedded twice; where that cannot be it only takes longer.
                pack = os.path.join(store.root, _PACK)
                try:
                    served.call(lambda old: old.export_embeddings(pack))
                    store.import_embeddings(pack, unchecked=True)
                except FilestoreError:
                    pass
                finally:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(pack)
            yield store

    def _write_record(
        self, staging: str, before: CollectionRecord | None, dataset_info: dict[str, Any]
    ) -> None:
        stamp = collection.written_time(self._clock())
        made = CollectionRecord(
            created_at=before.created_at if before else stamp,
            updated_at=stamp,
            digest=collection.digest_of(staging),
            dataset_info=dataset_info,
        )
        disk.write_path(os.path.join(staging, collection.RECORD), made.written)


def _has_settings(path: str) -> bool:
    """Whether there are settings of a store that can be used."""
    try:
        settings.parse(settings.read(os.path.join(path, SETTINGS)))
    except (FilestoreError, OSError):
        return False
    return True


def _counted(store: Store) -> dict[str, Any]:
    """What an open store says of itself."""
    found = store.status()
    embedder, elsewhere = store.embedder, store.vector_home().elsewhere or None
    return {
        "has_index": True,
        "document_count": sum(one["chunks"] for one in store.resources()),
        "embedding_dimension": embedder.dimension if embedder and embedder.is_known else None,
        "index_type": found.index.kind if found.index else elsewhere,
        "clean": found.clean,
    }
