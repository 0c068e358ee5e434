"""One collection: what lies in its folder, who asks it now, the threads that hold it open.

Its folder is a store with a record, or has the old layout. One rule: what was not made here is
neither replaced nor deleted.
"""

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar

import orjson
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import asdict

from filestore.chunks.chunk_file import OUR_KEYS
from filestore.config.layout import SETTINGS, folded_path
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.hashing import content_hash
from filestore.core.safe_text import brief
from filestore.core.schema import JsonObject, converted, json_of
from filestore.exchange import faiss_json
from filestore.fs import disk
from filestore.fs.lock import writer_lock
from filestore.fs.staged import LONGEST_NAME_BYTES
from filestore.search import Mode
from filestore.server.operations import LONGEST_QUERY, Count
from filestore.store import Store
from filestore.store.threads import BusyError, StoreThreads
from filestore.verify.names import why_no_name

T = TypeVar("T")
Kind = Literal["collection", "store", "faiss-json", ""]
RECORD: Final = "collection.json"
OLD_FILES: Final = frozenset(faiss_json.FILES)
SETTLED: Final = (SETTINGS, ".gitignore", ".gitattributes")
"""What stays where all documents are replaced."""
_OURS: Final = OLD_FILES | {*SETTLED, RECORD, ".sidecar", ".undo", "chunked"}
_FORMAT: Final = 1
_MOST_RECORD_BYTES: Final = 64 * 1024 * 1024


class CollectionRecord(Struct, frozen=True, kw_only=True):
    """What is known of a collection besides its documents."""

    created_at: str
    updated_at: str
    digest: str = ""
    """Of the documents as they were written; "" where that is unknown."""
    dataset_info: dict[str, Any] = field(default_factory=dict)

    @property
    def written(self) -> bytes:
        """The bytes of its file."""
        return orjson.dumps({"format": _FORMAT, **asdict(self)}, option=orjson.OPT_INDENT_2)


def kind_of(path: str) -> Kind:
    """What a folder is; "" for what is none of these, a link among them."""
    if os.path.islink(path):
        return ""
    try:
        names = set(os.listdir(path))
    except OSError:
        return ""
    if SETTINGS in names:
        return "collection" if RECORD in names else "store"
    return "faiss-json" if faiss_json.INDEX in names else ""


def strange(path: str) -> list[str]:
    """What in the root of a collection neither this door nor a store put there."""
    return sorted(set(os.listdir(path)) - _OURS)


def record_of(path: str) -> CollectionRecord:
    """The record; where it cannot be used, what the files tell."""
    try:
        data = disk.read_path(os.path.join(path, RECORD), limit=_MOST_RECORD_BYTES)
        found = converted(json_of(data), CollectionRecord)
        for one in (found.created_at, found.updated_at):
            datetime.fromisoformat(one)
        return found
    except (OSError, ValueError):
        try:
            moment = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
        except (OSError, ValueError, OverflowError):
            moment = datetime.fromtimestamp(0, UTC)
        stamp = written_time(moment)
        return CollectionRecord(created_at=stamp, updated_at=stamp)


def written_time(moment: datetime) -> str:
    """A time as the layout has it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def digest_of(path: str) -> str:
    """A digest of all documents: it differs once any of them was changed.

    Raises:
        OSError: One cannot be read.
    """
    lines = []
    top = os.path.join(path, "chunked")
    for place in sorted(_files(top, strict=True)):
        name = os.fsencode(os.path.relpath(place, top))
        lines.append(content_hash(name) + content_hash(disk.read_path(place)))
    return content_hash(b"".join(lines)).hex()


def size_bytes(path: str) -> int:
    """What all files of a folder have together."""
    total = 0
    for place in _files(path, strict=False):
        try:
            total += os.lstat(place).st_size
        except OSError:
            continue  # It went just now.
    return total


def _files(top: str, *, strict: bool) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        if strict:
            raise error

    for folder, _, names in os.walk(top, onerror=refuse):
        for name in names:
            yield os.path.join(folder, name)


def check_name(name: object) -> str:
    """The name, where it can be a folder of the collections.

    Raises:
        UsageError: It cannot.
    """
    if not isinstance(name, str):
        raise UsageError("the name of a collection is a text", remedy='send "rag_name": "NAME"')
    if not name.strip():
        reason = "it is empty"
    elif name != name.strip():
        reason = "it begins or ends with a blank"
    elif name[0] == "-":
        reason = "it begins with a hyphen"
    elif "\\" in name:
        reason = "it has a backslash"
    elif not (reason := why_no_name(name)) and len(name.encode()) > LONGEST_NAME_BYTES:
        reason = f"it has more than {LONGEST_NAME_BYTES} bytes"
    if reason:
        raise UsageError(
            f"{brief(name)} cannot name a collection: {reason}", remedy="choose another name"
        )
    return name


def check_alike(name: str, others: Iterable[str]) -> None:
    """Refuse a name that some file systems could not tell from another one.

    Raises:
        RefusedError: There is such a one.
    """
    folded = folded_path(name)
    for other in others:
        if other != name and folded_path(other) == folded:
            raise RefusedError(
                f"{brief(name)} differs only by case or composition from {brief(other)}",
                remedy="use that name, or choose another one",
            )


_WAIT_S: Final = 30.0
"""So long one who writes waits for another."""
_PATIENCE_S: Final = 60.0
"""So long anyone else waits."""
_NO_ROOM: Final = disk.FULL_ERRORS | {errno.EFBIG}


class UnknownCollectionError(FilestoreError, LookupError):
    """There is no collection of this name."""


class NotIndexedError(FilestoreError):
    """What lies there is not yet a store."""


class ServedCollection:
    """One collection, asked from any thread; used by `Collections` alone."""

    def __init__(self, name: str, path: str, *, configuration: str, readers: int) -> None:
        self.name = name
        self.path = path
        self.users = 0
        """How many calls are about it; counted by `Collections`."""
        self.asked_at = 0.0
        self._configuration = configuration
        self._readers = readers
        self._writer = threading.Lock()
        self._entry = threading.Lock()
        """Held for the moment in which a call begins, and as long as the folder is exchanged."""
        self._calls: set[Future[Any]] = set()
        self._threads: StoreThreads | None = None

    @property
    def is_open(self) -> bool:
        """Whether threads hold it."""
        return self._threads is not None

    def call(self, job: Callable[[Store], T]) -> T:
        """What a function makes of the store, which is not exchanged before it has done so.

        Raises:
            UnknownCollectionError: There is none.
            NotIndexedError: It is in the old layout.
            BusyError: It was being exchanged for too long.
        """
        with self._entering():
            self.asked_at = time.monotonic()
            self.require()
            if self._threads is None:
                self._threads = StoreThreads(
                    self.path,
                    configuration=self._configuration,
                    most=self._readers,
                    for_programs=True,
                )
            future = self._threads.submit(job)
            self._calls.add(future)
            future.add_done_callback(self._calls.discard)
        return future.result()

    def require(self) -> None:
        """Refuse where there is no store.

        Raises:
            UnknownCollectionError: There is none.
            NotIndexedError: It is in the old layout.
        """
        kind = kind_of(self.path)
        if kind == "":
            raise UnknownCollectionError(
                f"there is no collection {brief(self.name)}",
                remedy="GET /rag/list has all there are; POST /rag/index makes one",
            )
        if kind == "faiss-json":
            raise NotIndexedError(
                f"{brief(self.name)} is a folder of FAISS + JSON, and not yet a store",
                remedy=f"POST /rag/{self.name}/index/reload makes it one; its files stay",
            )

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one of this process who writes.

        Raises:
            BusyError: Another one took too long.
        """
        if not self._writer.acquire(timeout=_WAIT_S):
            raise BusyError(
                f"{brief(self.name)} is being written", remedy="ask again once it has been"
            )
        try:
            yield
        finally:
            self._writer.release()

    @contextlib.contextmanager
    def exchanging(self) -> Iterator[None]:
        """Be alone with it while it is closed, and for other processes the one who writes it.

        Raises:
            BusyError: Somebody asked for too long.
            LockedError: Another process writes it.
        """
        with contextlib.ExitStack() as stack:
            sidecar = os.path.join(self.path, ".sidecar")
            if os.path.isdir(sidecar) and not os.path.islink(sidecar):
                lock = os.path.join(sidecar, "lock")
                try:
                    stack.enter_context(writer_lock(lock, command="serve", wait_s=_WAIT_S))
                except disk.NotAFileError:
                    pass  # No process can hold it; what is there is deleted, which repairs that.
                except OSError as error:
                    # Its holder finds no room to say its name; deleting makes some.
                    if error.errno not in _NO_ROOM:
                        raise
            stack.enter_context(self._entering())
            # Before the files have another name: SQLite finds those of a database by its path.
            self._close()
            yield

    def close(self) -> None:
        """Let go of its files; the next one who asks has them opened."""
        with self._entering():
            self._close()

    @contextlib.contextmanager
    def _entering(self) -> Iterator[None]:
        """Begin a call, or keep others from beginning one.

        Raises:
            BusyError: It was being exchanged for too long.
        """
        if not self._entry.acquire(timeout=_PATIENCE_S):
            raise _busy()
        try:
            yield
        finally:
            self._entry.release()

    def _close(self) -> None:
        """Close it once the calls that began have ended.

        Raises:
            BusyError: One took too long.
        """
        if wait(self._calls, _PATIENCE_S).not_done:
            raise _busy()
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.close()


def _busy() -> BusyError:
    return BusyError("the collection is being exchanged or asked", remedy="ask again later")


FOLDER: Final = "documents"
"""Below `chunked/`."""
MOST_DOCUMENTS: Final = 100_000
LONGEST_ID: Final = 1_000
"""Characters."""
_MOST_INFO_BYTES: Final = 64 * 1024
"""Of `dataset_info`, which is part of each answer about the collection."""
_ID: Final = "document_id"
_DEEPER: Final = "document_metadata"
"""Holds metadata whose names are taken."""
_TAKEN: Final = frozenset((*OUR_KEYS, _ID, _DEEPER))
_TEXTS: Final = ("text", "content")
_KEYS: Final = frozenset((*_TEXTS, "id", "metadata"))


class SentDocument(Struct, frozen=True, kw_only=True):
    """One text with its id and metadata."""

    id: str
    text: str
    metadata: Mapping[str, Any]

    @property
    def frontmatter(self) -> dict[str, Any]:
        """The keys of its chunk file."""
        own = {key: value for key, value in self.metadata.items() if key not in _TAKEN}
        deeper = {key: value for key, value in self.metadata.items() if key in _TAKEN}
        return {_ID: self.id, **own, **({_DEEPER: deeper} if deeper else {})}


class CollectionQuery(Struct, frozen=True, kw_only=True):
    """What is asked of a collection."""

    query: Annotated[str, Meta(max_length=LONGEST_QUERY, pattern=r"\S")]
    """the question"""
    k: Count | None = None
    """at most this many documents (default: 5)"""
    top_k: Count | None = None
    """the same as k"""
    mode: Mode = "hybrid"
    """what ranks the documents"""


class IndexRequest(Struct, frozen=True, kw_only=True):
    """The documents that replace all of a collection."""

    rag_name: str | None = None
    """the collection's name"""
    name: str | None = None
    """the same as rag_name"""
    documents: Annotated[list[str | dict[str, Any]], Meta(min_length=1, max_length=MOST_DOCUMENTS)]
    """texts, or objects with text (or content) and, if wanted, id and metadata"""
    dataset_info: dict[str, Any] = {}
    """information about the documents, kept and returned as it is"""
    overwrite: bool = False
    """whether what a person changed in the old documents may go, too"""


def id_and_metadata(keys: Mapping[str, Any], path: str) -> tuple[str, dict[str, Any]]:
    """Id and metadata of a chunk file; one that a person wrote has its path as id."""
    own = {key: value for key, value in keys.items() if key not in (_ID, _DEEPER)}
    deeper = keys.get(_DEEPER)
    if isinstance(deeper, Mapping):
        own |= deeper
    identifier = keys.get(_ID)
    return (identifier if isinstance(identifier, str) and identifier else path), own


def documents_in(given: Sequence[str | Mapping[str, Any]]) -> list[SentDocument]:
    """What a client sends as documents; one without an id gets its place in the list, from 0.

    Raises:
        UsageError: One cannot be used, or two have the same id.
    """
    found = [_document(place, one) for place, one in enumerate(given)]
    seen: set[str] = set()
    for place, one in enumerate(found):
        if one.id in seen:
            raise UsageError(
                f"document {place}: the id {brief(one.id)} is that of another document",
                remedy="give each document an id of its own, or none",
            )
        seen.add(one.id)
    return found


def checked_info(given: dict[str, Any]) -> dict[str, Any]:
    """The information that a client wants to be kept with the documents.

    Raises:
        UsageError: It is too large.
    """
    size = len(orjson.dumps(given))
    if size > _MOST_INFO_BYTES:
        raise UsageError(
            f"dataset_info has {size:,} bytes: it has at most {_MOST_INFO_BYTES:,}",
            remedy="put what belongs to one document into its metadata",
        )
    return given


def _document(place: int, given: str | Mapping[str, Any]) -> SentDocument:
    wrong = f"document {place}:"
    if isinstance(given, str):
        given = {"text": given}
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        raise UsageError(
            f"{wrong} unknown key {brief(unknown[0])}", remedy="put it into its metadata"
        )
    texts = [given[key] for key in _TEXTS if given.get(key) is not None]
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise UsageError(f"{wrong} expected one text, as text or content")
    if not texts[0].strip():
        raise UsageError(f"{wrong} its text is empty: nothing could find it")
    metadata = given.get("metadata")
    if not isinstance(metadata, Mapping | None):
        raise UsageError(f"{wrong} its metadata is not an object")
    identifier = given.get("id")
    if identifier is None or type(identifier) is int:
        identifier = str(place if identifier is None else identifier)
    elif not isinstance(identifier, str) or not 1 <= len(identifier) <= LONGEST_ID:
        raise UsageError(f"{wrong} its id is a text of 1 to {LONGEST_ID:,} characters, or a number")
    return SentDocument(id=identifier, text=texts[0], metadata=dict(metadata or {}))


class RagStatus(JsonObject, Struct, frozen=True, kw_only=True):
    """The state of a collection."""

    rag_name: str
    """The name of the collection."""
    has_index: bool = False
    """Whether it can be asked."""
    document_count: int = 0
    """Documents that are indexed."""
    embedding_dimension: int | None = None
    """Numbers in a vector; None where that is not known here."""
    index_type: str | None = None
    """`exact` or `approximate`."""
    created_at: str
    """When it was indexed first, ISO 8601 in UTC."""
    updated_at: str
    """When it was indexed last."""
    total_size_bytes: int
    """Of all its files."""
    dataset_info: Mapping[str, Any]
    """As it was sent with the documents."""
    clean: bool = False
    """Whether the files are as they were indexed."""
    error: str | UnsetType = UNSET
    """Why it cannot be asked."""
    details: str | UnsetType = UNSET
    """Technical detail, or empty."""
    action: str | UnsetType = UNSET
    """What to do next."""


class RagIndexed(RagStatus, frozen=True, kw_only=True):
    """A collection that was made of documents."""

    embedded: int
    """Texts that the model embedded."""
    reused: int
    """Texts whose embedding came from the cache."""


class RagReloaded(RagStatus, frozen=True, kw_only=True):
    """A collection that took up what changed on the disk."""

    synced: bool
    """Whether it was synced; false where the server was started to read."""
    applied: Mapping[str, int]
    """Codes of findings to how many were repaired."""
    remaining: Mapping[str, int]
    """Codes of findings to how many remain."""
    embedded: int
    """Texts that the model embedded."""
    reused: int
    """Texts whose embedding came from the cache."""


class RagEntry(JsonObject, Struct, frozen=True):
    """One collection of a list."""

    rag_name: str
    """The name of the collection."""
    index_status: RagStatus
    """Its state; see `GET /rag/NAME/index/status`."""


class RagList(JsonObject, Struct, frozen=True):
    """Every collection."""

    rags: list[RagEntry]
    """Every collection, by name; one that is damaged says so, the others go on."""
    count: int
    """How many there are."""


class RagResult(JsonObject, Struct, frozen=True):
    """One document of an answer."""

    id: str
    """Of the document; one that a person wrote has its path."""
    text: str
    """Of the document, as it is on disk now."""
    score: float
    """The higher the better; to be compared within one answer."""
    metadata: Mapping[str, Any]
    """Of the document."""
    path: str
    """Of its chunk file, below the folder of the collection."""
    freshness: str
    """`fresh`, `edited`, `outdated` or `gone`."""


class RagAnswer(JsonObject, Struct, frozen=True):
    """What a collection answers."""

    rag_name: str
    """The name of the collection."""
    query: str
    """What was asked."""
    results: list[RagResult]
    """The documents that answer, best first."""
    notes: tuple[str, ...]
    """What to know about this answer."""


class RagDeleted(JsonObject, Struct, frozen=True):
    """A collection that was deleted."""

    rag_name: str
    """The name of the collection."""
    deleted: bool = True
    """True: no file of it is left."""
