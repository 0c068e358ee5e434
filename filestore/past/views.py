"""The views of a store: found again, made where they are missing, removed when there are too many.

Views are derived: whatever is wrong with one costs the time to make it again. One rule: a view is
complete when it has its name, and nothing in it but fetched files is changed from then on, other
than by whoever holds the lock.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from filestore._version import __version__
from filestore.catalog import CatalogDamagedError, CatalogMissingError, CatalogWriter
from filestore.config import settings
from filestore.config.layout import SETTINGS
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash
from filestore.core.progress import OnProgress, ignore
from filestore.fs import disk
from filestore.fs.lock import writer_lock
from filestore.git.revisions import Commit
from filestore.past.rows import BlobNames
from filestore.past.view import PastParts, SettingsThenError, make, settings_at
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.embed.cache import EmbeddingCache

PAST: Final = "past"
"""The folder of a sidecar that has the views."""
MOST_BYTES: Final = 2 * 1024 * 1024 * 1024
"""The oldest go when all take more."""
MOST_VIEWS: Final = 64
_FORM: Final = b"view 2\0"
"""Changes when a view holds something else, or is made otherwise."""
_LOCK: Final = "lock"
_NAMES: Final = "blob-names"
_USED: Final = "used"
"""An empty file of a view: locked by whoever reads it, and touched when it is opened."""
_BUILDING: Final = "building"
_WAIT_S: Final = 600.0
"""Another process may be making a view of a large store."""


class View:
    """An open view."""

    def __init__(self, parts: PastParts, folder: str, closing: contextlib.ExitStack) -> None:
        """Hold it open, so that nobody removes it.

        Args:
            parts: Of the view.
            folder: The view's.
            closing: Let go of at the end, too.
        """
        self.parts = parts
        self._closing = closing
        path = os.path.join(folder, _USED)
        used = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        closing.callback(os.close, used)
        closing.callback(parts.close)
        fcntl.flock(used, fcntl.LOCK_SH)
        os.utime(used)

    def close(self) -> None:
        """Let go of every file."""
        self._closing.close()


def place_of(home: Parts, closing: contextlib.ExitStack) -> str:
    """The folder of the views; one that goes at the end where the sidecar cannot be written.

    Args:
        home: The store's own parts.
        closing: Removes that one.
    """
    past = os.path.join(home.places.sidecar, PAST)
    if os.access(past if os.path.isdir(past) else home.places.sidecar, os.W_OK):
        os.makedirs(past, mode=0o700, exist_ok=True)
        return past
    return closing.enter_context(tempfile.TemporaryDirectory(prefix="filestore-past-"))


def open_view(
    home: Parts,
    commit: Commit,
    *,
    embed: bool = False,
    on_progress: OnProgress = ignore,
) -> View:
    """Open the view of a commit, made now if there is none.

    Args:
        home: The store's own parts; the writer's lock of the store is taken only to embed.
        commit: What it holds.
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
    closing = contextlib.ExitStack()
    try:
        with disk.disk_errors(home.places.sidecar):
            past = place_of(home, closing)
            folder = os.path.join(past, _key(home, commit, chosen))
            for _ in range(2):
                if not os.path.isdir(folder):
                    with _locked(home, past):
                        _collect(past)
                        if not os.path.isdir(folder):
                            _make(home, commit, chosen, past, folder, on_progress)
                view = View(PastParts(home, folder, commit), folder, closing)
                try:
                    _complete(home, view, past, embed=embed)
                except (CatalogDamagedError, CatalogMissingError):
                    view.parts.close()
                    with _locked(home, past):
                        shutil.rmtree(folder, ignore_errors=True)
                else:
                    return view
            raise FilestoreError(
                "a view was damaged as soon as it was made", remedy="check the disk"
            )
    except BaseException:
        closing.close()
        raise


def _key(home: Parts, commit: Commit, chosen: bytes) -> str:
    """The name of a view: what it is made from, and by what."""
    embedder = home.model.embedder
    made_by = (embedder.fingerprint if embedder else "", __version__)
    where = os.path.realpath(home.places.root)
    said = "\0".join((commit.commit, where, *made_by)).encode("utf-8", "surrogateescape")
    return content_hash(_FORM + said + b"\0" + chosen).hex()


@contextlib.contextmanager
def _locked(home: Parts, past: str) -> Iterator[None]:
    lock = os.path.join(past, _LOCK)
    with writer_lock(lock, command="filestore search --at", wait_s=_WAIT_S, on_wait=home.on_wait):
        yield


def _make(
    home: Parts, commit: Commit, chosen: bytes, past: str, folder: str, on_progress: OnProgress
) -> None:
    building = os.path.join(past, _BUILDING)
    names = BlobNames(os.path.join(past, _NAMES))
    os.mkdir(building, 0o700)
    try:
        make(home, commit, building, chosen=chosen, names=names, on_progress=on_progress)
        names.save()
        os.rename(building, folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _complete(home: Parts, view: View, past: str, *, embed: bool) -> None:
    """Have what was embedded since the view was made; or embed it now."""
    parts = view.parts
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
        commit.embed_missing()
        done = commit.finish()
    if embed and done.problem is not None:
        raise done.problem


def _collect(past: str) -> None:
    """Remove what a killed process left, and the views that were not used for longest."""
    shutil.rmtree(os.path.join(past, _BUILDING), ignore_errors=True)
    views = []
    for entry in os.scandir(past):
        if entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                used = os.stat(os.path.join(entry.path, _USED)).st_mtime_ns
                views.append((used, entry.path))
    total = 0
    for number, (_, folder) in enumerate(sorted(views, reverse=True), start=1):
        total += _size_bytes(folder)
        if number >= MOST_VIEWS or total > MOST_BYTES:
            _remove(folder)


def _size_bytes(folder: str) -> int:
    """What a view takes of the disk; a file with a second name elsewhere takes nothing more."""
    seen = (
        os.lstat(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names
    )
    return sum(one.st_size for one in seen if one.st_nlink == 1)


def _remove(folder: str) -> None:
    """Remove a view that nobody reads."""
    with contextlib.suppress(OSError):
        used = os.open(os.path.join(folder, _USED), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(used)
