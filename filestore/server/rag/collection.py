"""One collection: what lies in its folder, who asks it now, the threads that hold it open.

Its folder is a store with a record beside it, or has the old layout. One rule: what this door did
not make it neither replaces nor deletes.
"""

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar

import orjson
from msgspec import Struct, field
from msgspec.structs import asdict

from filestore.config.layout import SETTINGS, folded_path
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.hashing import content_hash
from filestore.core.safe_text import brief
from filestore.core.schema import converted, json_of
from filestore.exchange.vector_files import faiss_folder
from filestore.fs import disk
from filestore.fs.lock import writer_lock
from filestore.fs.staged_folder import LONGEST_NAME_BYTES
from filestore.server.stores import BusyError
from filestore.store import Store
from filestore.store.threads import StoreThreads
from filestore.verify.names import why_no_name

T = TypeVar("T")
Kind = Literal["collection", "store", "faiss-json", ""]
RECORD: Final = "collection.json"
OLD_FILES: Final = frozenset(faiss_folder.FILES)
SETTLED: Final = (SETTINGS, ".gitignore", ".gitattributes")
"""What stays where all documents are replaced."""
_OURS: Final = OLD_FILES | {*SETTLED, RECORD, ".sidecar", ".undo", "chunked"}
_FORMAT: Final = 1
_MOST_RECORD_BYTES: Final = 64 * 1024 * 1024


class Record(Struct, frozen=True, kw_only=True):
    """What is known of a collection beside its documents."""

    created_at: str
    updated_at: str
    digest: str = ""
    """Of the documents as they were written; "" where nobody knows."""
    dataset_info: dict[str, Any] = field(default_factory=dict)

    @property
    def written(self) -> bytes:
        """As it stands in its file."""
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
    return "faiss-json" if faiss_folder.INDEX in names else ""


def strange(path: str) -> list[str]:
    """What in the root of a collection neither this door nor a store put there."""
    return sorted(set(os.listdir(path)) - _OURS)


def record_of(path: str) -> Record:
    """The record; where it cannot be used, what the files tell."""
    try:
        data = disk.read_path(os.path.join(path, RECORD), limit=_MOST_RECORD_BYTES)
        found = converted(json_of(data), Record)
        for one in (found.created_at, found.updated_at):
            datetime.fromisoformat(one)
        return found
    except (OSError, ValueError):
        try:
            moment = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
        except (OSError, ValueError, OverflowError):
            moment = datetime.fromtimestamp(0, UTC)
        stamp = written_time(moment)
        return Record(created_at=stamp, updated_at=stamp)


def written_time(moment: datetime) -> str:
    """A time as the layout has it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def digest_of(path: str) -> str:
    """Tells whether a document was changed, whoever did it.

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
    reason = _wrong(name)
    if reason:
        raise UsageError(
            f"{brief(name)} cannot name a collection: {reason}", remedy="choose another name"
        )
    return name


def _wrong(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if name != name.strip():
        return "it begins or ends with a blank"
    if name[0] == "-":
        return "it begins with a hyphen"
    if "\\" in name:
        return "it has a backslash"
    if reason := why_no_name(name):
        return reason
    if len(name.encode()) > LONGEST_NAME_BYTES:
        return f"it has more than {LONGEST_NAME_BYTES} bytes"
    return ""


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


class UnknownCollectionError(FilestoreError, KeyError):
    """There is no collection of this name."""

    def __str__(self) -> str:
        return self.message


class NotIndexedError(FilestoreError):
    """What lies there is not yet a store."""


class ServedCollection:
    """One collection, asked from any thread; used by `Collections` alone."""

    def __init__(self, name: str, path: str, *, configuration: str, readers: int) -> None:
        self.name = name
        self.path = path
        self.users = 0
        """How many calls are about it; counted by whoever hands it out."""
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
                    self.path, configuration=self._configuration, most=self._readers
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
                remedy="GET /rag/list has those that there are; POST /rag/index makes one",
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
                    pass  # Nobody can have it; what is there is deleted, which repairs that.
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
