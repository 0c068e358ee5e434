"""A store as a commit had it; its views are found, made where missing, removed when too many.

Views are derived: whatever is wrong with one costs the time to make it again. One rule: a view is
complete when it has its name, and nothing in it but fetched files is changed from then on, other
than by the holder of the lock.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore._version import __version__
from filestore.catalog import CatalogDamagedError, CatalogMissingError, CatalogWriter, queries
from filestore.config import settings
from filestore.config.layout import PAST, SETTINGS
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash
from filestore.core.progress import OnProgress, ignore
from filestore.fs import disk, part
from filestore.fs.disk import Closing
from filestore.fs.lock import writer_lock
from filestore.git.process import work_tree
from filestore.past.commits import Commit, resolve
from filestore.past.view import (
    TREE,
    BlobNames,
    PastParts,
    SettingsThenError,
    make,
    root_in,
    settings_at,
)
from filestore.search import Query
from filestore.search.answer import At
from filestore.search.session import SearchSession
from filestore.sidecar.refusals import UnsafeSidecarError
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.embed.cache import EmbeddingCache
    from filestore.search.answer import Answer

MOST_BYTES: Final = 2 * 1024 * 1024 * 1024
"""The oldest go when all take more."""
MOST_VIEWS: Final = 64
_FORM: Final = b"view 3\0"
"""Changes when a view holds something else, or is made otherwise."""
_LOCK: Final = "lock"
_NAMES: Final = "blob-names"
_USED: Final = "used"
"""An empty file of a view: locked by its readers, and touched when it is opened."""
_BUILDING: Final = "building"
_DAMAGED: Final = (
    *(CatalogDamagedError, CatalogMissingError, UnsafeSidecarError),
    part.NotAFileError,
)
_WAIT_S: Final = 600.0
"""Another process may be making a view of a large store."""


class PastFolder(Struct, frozen=True, kw_only=True):
    """The folder of the views, open."""

    handle: int
    path: str
    """Leads to it for as long as it is open."""


def place_of(home: Parts, closing: contextlib.ExitStack) -> PastFolder:
    """The folder of the views; one that goes at the end where the sidecar cannot be written.

    Args:
        home: The store's own parts.
        closing: Lets go of it, or removes that one.
    """
    path = os.path.join(home.places.sidecar, PAST)
    if os.access(path if disk.is_folder(path) else home.places.sidecar, os.W_OK):
        with part.folder_of(home.places.sidecar) as sidecar:
            own = part.own_folder(PAST, folder=sidecar, make=True, replace=True)
            handle = closing.enter_context(own)
    else:
        path = closing.enter_context(tempfile.TemporaryDirectory(prefix="filestore-past-"))
        handle = closing.enter_context(part.folder_of(path))
    return PastFolder(handle=handle, path=part.path_of(handle, path))


def open_view(
    home: Parts,
    commit: Commit,
    closing: contextlib.ExitStack,
    *,
    embed: bool = False,
    on_progress: OnProgress = ignore,
) -> PastParts:
    """Open the view of a commit, made now if there is none.

    Args:
        home: The store's own parts; the writer's lock of the store is taken only to embed.
        commit: What it holds.
        closing: Lets go of it.
        embed: Whether texts that were never embedded are embedded now.
        on_progress: Called with the progress.

    Raises:
        NoStoreThenError: The commit has nothing of the store.
        SettingsThenError: Its settings cannot be used.
        LockedError: Another process is making a view, or writes the store, for too long.
        WriteFailedError: The disk refused.
    """
    chosen, _ = settings_at(home, commit)
    try:
        settings.parse(chosen, name=f"{commit.commit[:12]}:{SETTINGS}")
    except FilestoreError as error:
        raise SettingsThenError(commit, error) from error
    with disk.disk_errors(home.places.sidecar), contextlib.ExitStack() as closed:
        past, name = place_of(home, closed), _key(home, commit, chosen)
        for _ in range(2):
            with contextlib.ExitStack() as opened:
                try:
                    if not _is_there(past, name):
                        with _locked(home, past):
                            _collect(past)
                            if not _is_there(past, name):
                                _make(home, commit, chosen, past, name, on_progress)
                    parts = _opened(home, commit, past, name, opened)
                    _complete(home, parts, past, embed=embed)
                except _DAMAGED:
                    opened.close()
                    with _locked(home, past):
                        part.remove(past.handle, name)
                else:
                    closed.push(opened.pop_all())
                    closing.push(closed.pop_all())
                    return parts
        raise FilestoreError("a view was damaged as soon as it was made: check the disk")


def text_keys(home: Parts) -> Iterator[bytes]:
    """The embedding keys of all texts that some view has."""
    past = os.path.join(home.places.sidecar, PAST)
    # Outside a git work tree no view can be opened.
    if work_tree(home.places.root) is None or not os.path.isdir(past):
        return
    for name in os.listdir(past):
        with contextlib.suppress(*_DAMAGED, FilestoreError):
            root = root_in(home, os.path.join(past, name, TREE))
            parts = Parts(root, configuration=home.configuration)
            with contextlib.closing(parts), parts.catalog().snapshot():
                yield from queries.text_keys(parts.catalog())


def _is_there(past: PastFolder, name: str) -> bool:
    """Whether there is a view.

    Raises:
        NotAFileError: Something else has its name.
    """
    part.check(name, "folder", folder=past.handle)
    return os.access(name, os.F_OK, dir_fd=past.handle, follow_symlinks=False)


def _opened(
    home: Parts, commit: Commit, past: PastFolder, name: str, closing: contextlib.ExitStack
) -> PastParts:
    handle = closing.enter_context(part.own_folder(name, folder=past.handle))
    folder = part.path_of(handle, os.path.join(past.path, name))
    try:
        parts = PastParts(home, folder, commit)
    except FilestoreError as error:
        # Its settings could be read when it was made.
        raise part.not_a_file(folder, f"is not a view: {error.message}") from error
    # No step down to its sidecar is a link.
    below = os.path.relpath(parts.places.sidecar, folder)
    try:
        closing.enter_context(disk.folder(handle, below))
    except OSError as error:
        raise part.not_a_file(parts.places.sidecar, f"is not our folder: {error}") from error
    closing.callback(parts.close)
    # Locked for as long as it is open, so that it is not removed.
    used = part.open_file(_USED, os.O_RDWR | os.O_CREAT, folder=handle)
    closing.callback(os.close, used)
    fcntl.flock(used, fcntl.LOCK_SH)
    os.utime(used)
    return parts


def _key(home: Parts, commit: Commit, chosen: bytes) -> str:
    """The name of a view: what it is made from, and by what."""
    embedder = home.model.embedder
    made_by = (embedder.fingerprint if embedder else "", __version__)
    where = os.path.realpath(home.places.root)
    key = "\0".join((commit.commit, where, *made_by)).encode("utf-8", "surrogateescape")
    return content_hash(_FORM + key + b"\0" + chosen).hex()


@contextlib.contextmanager
def _locked(home: Parts, past: PastFolder) -> Iterator[None]:
    lock = os.path.join(past.path, _LOCK)
    with writer_lock(lock, command="filestore search --at", wait_s=_WAIT_S, on_wait=home.on_wait):
        yield


def _make(
    home: Parts,
    commit: Commit,
    chosen: bytes,
    past: PastFolder,
    name: str,
    on_progress: OnProgress,
) -> None:
    names = BlobNames(past.handle, _NAMES)
    os.mkdir(_BUILDING, 0o700, dir_fd=past.handle)
    try:
        with part.own_folder(_BUILDING, folder=past.handle) as handle:
            folder = part.path_of(handle, os.path.join(past.path, _BUILDING))
            make(home, commit, folder, chosen=chosen, names=names, on_progress=on_progress)
        names.save()
        os.rename(_BUILDING, name, src_dir_fd=past.handle, dst_dir_fd=past.handle)
    except BaseException:
        with contextlib.suppress(OSError):
            part.remove(past.handle, _BUILDING)
        raise


def _complete(home: Parts, parts: PastParts, past: PastFolder, *, embed: bool) -> None:
    """Have what was embedded since the view was made; or embed it now."""
    lacking = [key for _, key in parts.catalog().vector_keys(embedded=False)]
    embedder, embeddings = parts.model.embedder, home.embeddings()
    if not lacking or embedder is None:
        return
    if not embed:
        if embeddings is None or not embeddings.has(embedder.fingerprint, lacking):
            return
        with _locked(home, past):
            _take(parts, embeddings, embed=False)
        return
    parts.model.ask()
    with home.writing("search --at --embed") as (_, writable, _), _locked(home, past):
        _take(parts, writable, embed=True)
    home.close()


def _take(parts: PastParts, embeddings: "EmbeddingCache", *, embed: bool) -> None:
    parts.close()
    with (
        contextlib.closing(CatalogWriter.open(parts.places.catalog)) as catalog,
        parts.commit(catalog, embeddings, embed=embed) as commit,
    ):
        if embed:
            commit.embed_all()
        else:
            commit.take_missing()
        done = commit.finish()
    if embed and done.problem is not None:
        raise done.problem


def _collect(past: PastFolder) -> None:
    """Remove what a killed process left, and the views that were not used for longest."""
    part.remove(past.handle, _BUILDING)
    views = []
    for name in os.listdir(past.handle):
        with contextlib.suppress(OSError), part.own_folder(name, folder=past.handle) as folder:
            used = os.stat(_USED, dir_fd=folder, follow_symlinks=False).st_mtime_ns
            views.append((used, name))
    total = 0
    for number, (_, name) in enumerate(sorted(views, reverse=True), start=1):
        # A file with a second name elsewhere takes nothing more of the disk.
        for path, _, files in os.walk(os.path.join(past.path, name)):
            seen = (os.lstat(os.path.join(path, file)) for file in files)
            total += sum(one.st_size for one in seen if one.st_nlink == 1)
        if number >= MOST_VIEWS or total > MOST_BYTES:
            with contextlib.suppress(OSError), part.own_folder(name, folder=past.handle) as folder:
                used = part.open_file(_USED, os.O_RDWR, folder=folder)
                try:
                    # One that somebody reads stays.
                    fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    part.remove(past.handle, name)
                finally:
                    os.close(used)


class PastStore(Closing):
    """A store as a commit had it, for the thread that opened it. A context manager.

    It is read by the settings of that commit, or where that has none by those of today, and answers
    from the embeddings that are here.
    """

    def __init__(
        self,
        parts: Parts,
        revision: str,
        *,
        embed: bool = False,
        on_progress: OnProgress = ignore,
    ) -> None:
        """Open it; see `open_view` for what is raised.

        Args:
            parts: The store's own.
            revision: Names the commit.
            embed: Whether texts of it that were never embedded are embedded now.
            on_progress: Called with the progress.
        """
        self._root = parts.places.root
        self.commit: Commit = resolve(self._root, revision)
        self._closing = contextlib.ExitStack()
        self._view = open_view(
            parts, self.commit, self._closing, embed=embed, on_progress=on_progress
        )
        self.session = SearchSession(lambda: self.parts)
        """Answers without the notes on the commit."""
        lacking = self.parts.catalog().vector_keys(embedded=False)
        self.not_embedded = len(lacking)
        """How many of its texts have no vector here."""

    def close(self) -> None:
        """Let go of every file."""
        self.session.close()
        self._closing.close()

    @property
    def parts(self) -> Parts:
        """The parts of its view."""
        return self._view

    def search(self, query: Query | str, **options: Any) -> "Answer":
        """See `Store.search`; an answer names the commit."""
        answer = self.session.answer(Query.of(query, options))
        of = f" of commit {self.commit.commit[:12]}"
        lacking = (not_embedded(self.not_embedded, of),) if self.not_embedded else ()
        at = At(
            commit=self.commit.commit,
            committed=self.commit.committed,
            not_embedded=self.not_embedded,
        )
        return replace(
            answer,
            root=self._root,
            at=at,
            notes=(*self.notes_on_files(), *lacking, *answer.notes),
        ).made()

    def notes_on_files(self) -> tuple[str, ...]:
        """What of the commit is not searched, or not as a checkout has it."""
        return self._view.notes


def not_embedded(count: int, of: str = "") -> str:
    """What to say of passages that have no vector."""
    texts = f"1 passage{of} was" if count == 1 else f"{count:,} passages{of} were"
    return f"{texts} never embedded, and found by keyword only: --embed embeds what is missing"
