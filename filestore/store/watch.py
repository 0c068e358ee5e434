"""The one file watcher, and the sidecar kept in sync while files change.

Events of the file system only say when to look: `watch` scans each time, so an event that never
came costs a wait and no truth. `changes` alone is for programs that only show the store. One rule:
no error of one sync ends it, and it holds no lock between two.
"""

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, UnsetType, field

from filestore.config.settings import SettingsError, read
from filestore.core.errors import FilestoreError
from filestore.core.paths import CHUNKS, SETTINGS, SUMMARIES, TOP, Tree
from filestore.core.schema import JsonObject
from filestore.extract.ignore_files import GIT_RULES, OWN_RULES
from filestore.fs.disk import TEMPORARY_PREFIX
from filestore.fs.lock import LockedError
from filestore.fs.part import folder_of
from filestore.fs.watched_tree import FolderWatches
from filestore.fs.watched_tree import UnwatchableError as UnwatchableError
from filestore.git.repository import git_folder

if TYPE_CHECKING:
    from filestore.config.layout import Places
    from filestore.core.findings import Finding
    from filestore.ingest.update import UpdateReport
    from filestore.store import Store
    from filestore.sync.apply import SyncReport

QUIET_S: Final = 0.3
"""Events are reported once nothing has happened for so long."""
LONGEST_S: Final = 2.0
"""Under steady events they are reported this often."""
RESCAN_S: Final = 60.0
"""Without any event the tree is scanned this often: every system loses some."""
GIT_WAIT_S: Final = 60.0
"""A lock of git that is older was left behind by a dead git."""
BLIND_S: Final = 5.0
"""Where the system reports no events, the tree is polled this often."""
MOST_PATHS: Final = 5_000
_MOST_WATCHES: Final = "/proc/sys/fs/inotify/max_user_watches"
_NO_TEXT: Final = "Unable to decode path"
"""What watchfiles says of a name whose bytes are not UTF-8."""
_TICK_S: Final = 0.5
_EMBED_S: Final = 4.0
"""So long texts are embedded before changes are looked for again."""
_STEP_S: Final = 0.05


def require_watchable(folder: str, *, folders: int) -> None:
    """See whether a tree can be watched, by a watch of its top that is given up at once.

    Args:
        folder: Its top.
        folders: How many it has.

    Raises:
        UnwatchableError: The system does not report all changes there, or lacks room for watches.
    """
    with contextlib.closing(FolderWatches()) as watches, folder_of(folder) as handle:
        watches.add(handle, TOP)
    with contextlib.suppress(OSError), open(_MOST_WATCHES, encoding="ascii") as file:
        if folders > (most := int(file.read())):
            raise UnwatchableError(
                f"{folders:,} folders are more than the {most:,} that the system lets you watch",
                remedy="sysctl fs.inotify.max_user_watches=1000000",
            )


class Event(Struct, frozen=True, kw_only=True):
    """Something a person may want to know."""


class Synced(Event, frozen=True, kw_only=True):
    """The sidecar was synced, or what is left for a person has changed."""

    report: "SyncReport"


class Updated(Event, frozen=True, kw_only=True):
    """Resources followed their originals, or could not."""

    report: "UpdateReport"


class Waiting(Event, frozen=True, kw_only=True):
    """Somebody else is at work; it goes on by itself."""

    reason: str


class Reopened(Event, frozen=True, kw_only=True):
    """The settings changed."""


class Failed(Event, frozen=True, kw_only=True):
    """One sync failed; the next one tries again."""

    error: FilestoreError


class Unavailable(Event, frozen=True, kw_only=True):
    """The system reports no events; the tree is polled instead."""

    reason: str


class Ready(Struct, frozen=True, kw_only=True):
    """From now on no change is missed."""


class Changed(Struct, frozen=True, kw_only=True):
    """Files or folders were written, made, moved or removed."""

    paths: frozenset[str] | None
    """Relative to the store root; None for any of them."""


class CatalogChanged(Struct, frozen=True, kw_only=True):
    """The catalog has other content."""


Notice = Ready | Changed | CatalogChanged | Unavailable


class _Watcher(Struct):
    """What is remembered from one sync to the next."""

    open_store: "Callable[[], Store]"
    places: "Places"
    embed: bool
    stop: threading.Event
    store: "Store | None" = None
    settings: bytes | None = None
    remaining: "tuple[Finding, ...] | None" = None
    waits: bool = False
    """Whether texts wait for their vector."""
    failure: tuple[str, str] | None = None
    unread: tuple[str, ...] = ()
    """Originals that an update could not read, with the reasons."""
    originals: dict[str, "Stamp"] = field(default_factory=dict)
    """Each followed original and its folder, as it was before the last update."""
    moving: dict[str, "Stamp"] = field(default_factory=dict)
    """The same, a moment ago."""

    def originals_changed(self) -> bool:
        """Whether followed originals changed and are not being written just now."""
        now = {path: _stamp(path) for path in self.originals}
        is_settled, self.moving = now == self.moving, now
        if now == self.originals or not is_settled:
            return False
        self.originals = now
        return True

    def close(self) -> None:
        """Let go of the store."""
        if self.store is not None:
            self.store.close()
        self.store = None


Stamp = tuple[int, int, int] | None


def _stamp(path: str) -> Stamp:
    """Tells whether a file, or the names in a folder, changed; None where there is nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Line(JsonObject, Struct, frozen=True, kw_only=True, rename={"for_": "for"}):
    """An event as `watch --json` prints it, and a server sends it."""

    event: str
    """`synced`, `updated`, `waiting`, `blind`, `reopened`, `failed` or `stopped`; of a server
    `synced`, `updated`, `ready`, `changed`, `catalog`, `blind` or `lagging`."""
    applied: dict[str, int] | UnsetType = UNSET
    """`synced`: each code that was repaired, with its count."""
    remaining: dict[str, int] | UnsetType = UNSET
    """`synced`: each code that is left, with its count."""
    embedded: int | UnsetType = UNSET
    """`synced`: texts that the model embedded."""
    reused: int | UnsetType = UNSET
    """`synced`: texts whose embedding came from the cache."""
    generation: int | UnsetType = UNSET
    """`synced`: of the index now."""
    updated: list[str] | UnsetType = UNSET
    """`updated`: documents that followed their originals; of a server also added and removed
    ones."""
    conflicts: list[str] | UnsetType = UNSET
    """`updated`: files in which a hand edit and the new text overlap."""
    failed: list[str] | UnsetType = UNSET
    """`updated`: originals that could not be read."""
    paths: list[str] | UnsetType = UNSET
    """`changed`: files and folders, relative to the root; left out where they are not known."""
    for_: str | UnsetType = UNSET
    """`waiting`: what it waits for."""
    error: str | UnsetType = UNSET
    """`failed`: what happened."""
    detail: str | UnsetType = UNSET
    """`failed`: technical detail; `blind`, `stopped`, `lagging`: why."""
    remedy: str | UnsetType = UNSET
    """`failed`: what to do next."""


def synced_line(report: Mapping[str, Any]) -> Line:
    """The line of JSON about a sync, from what `sync --json` prints of it."""
    return Line(
        event="synced",
        applied=counts(report["applied"]),
        remaining=counts(report["remaining"]),
        **{key: report[key] for key in ("embedded", "reused", "generation")},
    )


def updated_line(report: Mapping[str, Any]) -> Line:
    """The line of JSON about resources, from what `update`, `add` or `rm` print of them."""
    written = [one for kind in ("added", "updated", "removed") for one in report.get(kind, ())]
    return Line(
        event="updated",
        updated=[one["resource"] for one in written],
        conflicts=[one["path"] for one in report.get("conflicts", ())],
        failed=[one["source"] for one in report.get("failed", ())],
    )


def counts(found: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many findings there are of each code."""
    return dict(Counter(one["code"] for one in found))


def watch(
    open_store: "Callable[[], Store]", places: "Places", *, embed: bool, stop: threading.Event
) -> Iterator[Event]:
    """Sync, then again whenever something changed, until `stop`; originals are followed.

    Args:
        open_store: Opens the store again, also after its settings changed.
        places: Where the store lies.
        embed: Whether new texts are embedded.
        stop: Ends it between two syncs.
    """
    watcher = _Watcher(open_store=open_store, places=places, embed=embed, stop=stop)
    with contextlib.closing(changes(places.root, tree=places.tree, stop=stop)) as notices:
        try:
            yield from _follow(watcher)
            scanned_s, rescan_s = time.monotonic(), RESCAN_S
            for notice in notices:
                if isinstance(notice, Unavailable):
                    yield notice
                    rescan_s = BLIND_S
                elif isinstance(notice, Ready):
                    rescan_s = RESCAN_S
                is_due = time.monotonic() - scanned_s >= rescan_s
                if notice is not None or watcher.originals_changed() or is_due:
                    yield from _follow(watcher)
                    scanned_s = time.monotonic()
                elif watcher.waits:
                    # For a while; once that ends, a sync reports what was done, or went wrong.
                    watcher.waits = False
                    with contextlib.suppress(FilestoreError):
                        watcher.waits = watcher.store is not None and watcher.store.embed().goes_on
                    if not watcher.waits:
                        yield from _follow(watcher)
        finally:
            watcher.close()


def _follow(watcher: _Watcher) -> Iterator[Event]:
    """One sync, once no other writer is at work."""
    yield from _let_git_finish(watcher)
    try:
        settings = None
        with contextlib.suppress(OSError, SettingsError):
            settings = read(watcher.places.settings)
        if watcher.store is None or settings != watcher.settings:
            is_again = watcher.settings is not None
            watcher.close()
            watcher.store, watcher.settings = watcher.open_store(), settings
            watcher.store.embed_for(_EMBED_S)
            if is_again:
                yield Reopened()
        yield from _sync(watcher)
        watcher.failure = None
    except FilestoreError as error:
        # The same failure is reported once, not at every scan.
        last, watcher.failure = watcher.failure, (type(error).__name__, error.message)
        if watcher.failure != last:
            yield Failed(error=error)


def _let_git_finish(watcher: _Watcher) -> Iterator[Event]:
    """Wait while git holds its index: it is in the middle of writing files."""
    folder = git_folder(watcher.places.root)
    if folder is None:
        return
    lock = os.path.join(folder, "index.lock")
    started = time.monotonic()
    is_reported = False
    while True:
        try:
            # A dead git leaves its lock behind; the clock may jump.
            if abs(time.time() - os.stat(lock).st_mtime) >= GIT_WAIT_S:
                return
        except OSError:
            return
        if not is_reported and time.monotonic() - started > _TICK_S:
            is_reported = True
            yield Waiting(reason=f"git is running: {lock} exists")
        if watcher.stop.wait(_STEP_S):
            return


def _sync(watcher: _Watcher) -> Iterator[Event]:
    is_reported = False
    while watcher.store is not None and not watcher.stop.is_set():
        try:
            # A change from now on is one that the next look has to find.
            watcher.originals = {path: _stamp(path) for path in watcher.originals}
            updated = watcher.store.update(followed_only=True, embed=watcher.embed, wait_s=_TICK_S)
        except LockedError as error:
            if not is_reported:
                is_reported = True
                yield Waiting(reason=error.message)
            continue
        report = updated.synced
        # Another writer lets us on, or embeds them; a sync that embedded none would go on for ever.
        is_locked = isinstance(report.problem, LockedError)
        goes_on = is_locked or (report.embedded > 0 and report.problem is None)
        found = {one.code for one in report.remaining}
        watcher.waits = watcher.embed and goes_on and "vector-pending" in found
        known = watcher.originals
        watcher.originals = {
            path: known[path] if path in known else _stamp(path) for path in updated.plan.watched
        }
        # The same failure once, not at every scan.
        unread = tuple(f"{one.source}: {one.error}" for one in updated.failed)
        is_new, watcher.unread = unread != watcher.unread, unread
        written = (*updated.added, *updated.updated, *updated.removed)
        if written or updated.conflicts or (unread and is_new):
            yield Updated(report=updated)
        if report.applied or report.remaining != watcher.remaining:
            watcher.remaining = report.remaining
            yield Synced(report=report)
        if report.problem is not None and not is_locked:
            raise report.problem
        return


def changes(
    root: str,
    *,
    tree: Tree = CHUNKS,
    catalog: str = "",
    stop: threading.Event,
    quiet_s: float = QUIET_S,
    longest_s: float = LONGEST_S,
) -> "Generator[Notice | None, None, None]":
    """What changes below a store, until `stop`; None after each tick in which nothing did.

    What cannot be named for certain is reported as a change of anything.

    Args:
        root: Of the store, absolute.
        tree: Where its files lie.
        catalog: Whose changes are reported as well, absolute; "" for none.
        stop: Ends it.
        quiet_s: Changes are reported once nothing has happened for so long.
        longest_s: Under steady changes they are reported this often.
    """
    polls = is_late = False
    reason = ""
    while not stop.is_set():
        pause_s = 0.0
        try:
            watched = _changes_until_replaced(
                root, tree, catalog, stop, (quiet_s, longest_s), polls
            )
            for notice in watched:
                yield notice
                if is_late and isinstance(notice, Ready):
                    yield Changed(paths=None)
        except (ValueError, OSError, RuntimeError) as error:
            # A name that is not text: which one is not known, but something changed.
            if isinstance(error, UnicodeEncodeError) or not (
                isinstance(error, ValueError) or _NO_TEXT in str(error)
            ):
                # No room for watches, no such service, a root whose own name is not text; one that
                # is gone may come back.
                polls = not isinstance(error, FileNotFoundError)
                is_new, reason = str(error) != reason, str(error)
                yield Unavailable(reason=reason) if is_new else None
                pause_s = _TICK_S if is_new else BLIND_S
        is_late = True
        stop.wait(pause_s)


def _changes_until_replaced(
    root: str,
    tree: Tree,
    catalog: str,
    stop: threading.Event,
    pauses_s: tuple[float, float],
    polls: bool,
) -> "Iterator[Notice | None]":
    """What changes until the root is another folder."""
    from watchfiles import watch as watch_files

    below = root.rstrip(os.sep) + os.sep
    catalog_files = {catalog, f"{catalog}-wal"} if catalog else set()
    exact = {below + name for name in (*_folders(tree), SETTINGS)}

    def concerns(path: str) -> bool:
        return path in exact or _is_truth(path.removeprefix(below), tree)

    identity, content = _identity(root), _content(catalog_files)
    sidecar = os.path.dirname(catalog)
    folders = [root] if not sidecar or sidecar.startswith(below) else [root, sidecar]
    is_ready = False
    for batch in watch_files(
        *folders,
        # Filtered by it, what does not concern us would keep a tick from coming.
        watch_filter=None,
        step=round(pauses_s[0] * 1000),
        debounce=round(pauses_s[1] * 1000),
        rust_timeout=round(_TICK_S * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        force_polling=polls or None,
        poll_delay_ms=round(BLIND_S * 1000),
        ignore_permission_denied=True,
    ):
        if not is_ready:
            is_ready = True
            yield Ready()
        paths = frozenset(path.removeprefix(below) for _, path in batch if concerns(path))
        yield Changed(paths=paths if len(paths) <= MOST_PATHS else None) if paths else None
        if (now := _content(catalog_files)) != content:
            content = now
            yield CatalogChanged()
        if _identity(root) != identity:
            return


def _folders(tree: Tree) -> tuple[str, ...]:
    """The folders of a store that hold what it is made of, where that is not all of it."""
    return (tree.folder, "source") if tree.is_written else ()


def _is_truth(path: str, tree: Tree) -> bool:
    """Whether a path, relative to the root, may be that of a file of the truth."""
    *above, name = path.split("/")
    if name.startswith(TEMPORARY_PREFIX):
        return False
    if tree.is_written:
        return bool(above) and above[0] in _folders(tree)
    # What lies in folders such as .git is no document; what keeps files out changes which are.
    is_hidden = any(part.startswith(".") for part in above if part != SUMMARIES)
    return (
        tree.holds(path)
        and not is_hidden
        and (not name.startswith(".") or name in (OWN_RULES, GIT_RULES))
    )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _content(files: set[str]) -> set[tuple[int, ...]]:
    """Tells whether a catalog was written; readers leave it, and an empty log, as it is."""
    found = set[tuple[int, ...]]()
    for path in files:
        with contextlib.suppress(OSError):
            status = os.stat(path)
            if status.st_size:
                found.add((status.st_ino, status.st_size, status.st_mtime_ns))
    return found
