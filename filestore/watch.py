"""Watching: the sidecar kept in step while files change.

What the file system tells only says when to look: each time `Store.sync` scans, so an event that
never came costs a wait and no truth. One rule: no error of one sync ends it, and it holds no lock
between two.
"""

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from filestore.errors import FilestoreError
from filestore.locking import LockedError
from filestore.worktree import git_folder

if TYPE_CHECKING:
    from filestore.findings import Finding
    from filestore.places import Places
    from filestore.store import Store
    from filestore.syncing import SyncReport

QUIET_S: Final = 0.3
"""So long nothing may happen before what happened is followed."""
LONGEST_S: Final = 2.0
"""Under steady events it is followed this often."""
RESCAN_S: Final = 60.0
"""Without any event the tree is scanned this often: some are lost by every system."""
GIT_WAIT_S: Final = 60.0
"""A lock of git that is older was left behind by a dead git."""
BLIND_S: Final = 5.0
"""Where the system tells of no event, the tree is scanned this often."""
_TICK_S: Final = 0.5
_STEP_S: Final = 0.05


class Stop(Protocol):
    """What says that it is time to end: an event of threads."""

    def is_set(self) -> bool:
        """Whether it is time."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it; whether it is time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something a person may want to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced(Event):
    """The sidecar was brought in step, or what is left for a person is not what it was."""

    report: "SyncReport"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Event):
    """Somebody else is at work; it goes on by itself."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopened(Event):
    """The settings changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event):
    """One sync failed; the next one tries again."""

    error: FilestoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind(Event):
    """The file system does not tell of changes; the tree is scanned from time to time."""

    reason: str


@dataclass(slots=True)
class _Watcher:
    """What is remembered from one sync to the next."""

    open_store: "Callable[[], Store]"
    places: "Places"
    embed: bool
    stop: Stop
    store: "Store | None" = None
    settings: bytes | None = None
    told: "tuple[Finding, ...] | None" = None
    failure: tuple[str, str] | None = None

    def close(self) -> None:
        """Let go of the store."""
        if self.store is not None:
            self.store.close()
        self.store = None


def watch(
    open_store: "Callable[[], Store]", places: "Places", *, embed: bool, stop: Stop
) -> Iterator[Event]:
    """Sync, then again whenever something changed, until it is told to stop.

    Args:
        open_store: Opens the store afresh, also after its settings changed.
        places: Where the store lies.
        embed: Whether new texts are embedded.
        stop: Ends it between two syncs.
    """
    watcher = _Watcher(open_store=open_store, places=places, embed=embed, stop=stop)
    with contextlib.closing(_occasions(places, stop)) as occasions:
        try:
            yield from _follow(watcher)
            for occasion in occasions:
                if isinstance(occasion, Event):
                    yield occasion
                yield from _follow(watcher)
        finally:
            watcher.close()


def _follow(watcher: _Watcher) -> Iterator[Event]:
    """One sync, once nobody else is writing."""
    yield from _let_git_finish(watcher)
    try:
        yield from _reopen(watcher)
        yield from _sync(watcher)
        watcher.failure = None
    except FilestoreError as error:
        # The same failure is told once, not at every scan.
        known, watcher.failure = watcher.failure, (type(error).__name__, error.message)
        if watcher.failure != known:
            yield Failed(error=error)


def _let_git_finish(watcher: _Watcher) -> Iterator[Event]:
    """Wait while git holds its index: it is in the middle of writing files."""
    folder = git_folder(watcher.places.root)
    if folder is None:
        return
    lock = os.path.join(folder, "index.lock")
    started = time.monotonic()
    told = False
    while _is_young(lock):
        if not told and time.monotonic() - started > _TICK_S:
            told = True
            yield Waiting(reason=f"git is at work: {lock} is there")
        if watcher.stop.wait(_STEP_S):
            return


def _is_young(lock: str) -> bool:
    """Whether a lock is there that no dead git has left behind."""
    try:
        return time.time() - os.stat(lock).st_mtime < GIT_WAIT_S
    except OSError:
        return False


def _reopen(watcher: _Watcher) -> Iterator[Event]:
    """Open the store, again where its settings are not what they were."""
    settings = _settings(watcher.places)
    if watcher.store is not None and settings == watcher.settings:
        return
    again = watcher.settings is not None
    watcher.close()
    watcher.store, watcher.settings = watcher.open_store(), settings
    if again:
        yield Reopened()


def _settings(places: "Places") -> bytes | None:
    try:
        with open(places.settings, "rb") as file:
            return file.read()
    except OSError:
        return None


def _sync(watcher: _Watcher) -> Iterator[Event]:
    told = False
    while watcher.store is not None and not watcher.stop.is_set():
        try:
            report = watcher.store.sync(embed=watcher.embed, wait_s=_TICK_S)
        except LockedError as error:
            if not told:
                told = True
                yield Waiting(reason=error.message)
            continue
        if report.applied or report.remaining != watcher.told:
            watcher.told = report.remaining
            yield Synced(report=report)
        if report.problem is not None:
            raise report.problem
        return


def _occasions(places: "Places", stop: Stop) -> "Generator[Event | None, None, None]":
    """Says when to look: events, debounced, and now and then none at all."""
    told = ""
    while not stop.is_set():
        pause_s = _TICK_S
        try:
            yield from _batches(places, stop)
        except (OSError, RuntimeError, ValueError) as error:
            # No room for watches, no such service, or a name that the watch cannot tell.
            reason = str(error)
            yield Blind(reason=reason) if reason != told else None
            pause_s = BLIND_S if reason == told else _TICK_S
            told = reason
        stop.wait(pause_s)


def _batches(places: "Places", stop: Stop) -> Iterator[None]:
    """One None for every batch of events below the root, until that is another folder."""
    from watchfiles import watch as watch_files

    watched = _identity(places.root)
    last = -RESCAN_S  # at once: what happened before the watch began is told by nobody
    for changes in watch_files(
        places.root,
        watch_filter=_Concerned(places),
        debounce=round(LONGEST_S * 1000),
        step=round(QUIET_S * 1000),
        rust_timeout=round(_TICK_S * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        ignore_permission_denied=True,
    ):
        if changes or time.monotonic() - last > RESCAN_S:
            yield None
            last = time.monotonic()
        if _identity(places.root) != watched:
            return


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class _Concerned:
    """Whether an event is about what a person writes, not about what we do."""

    def __init__(self, places: "Places") -> None:
        self._exact = {places.root, places.settings, places.chunked, places.source}
        self._below = (places.chunked + os.sep, places.source + os.sep)

    def __call__(self, _: object, path: str) -> bool:
        return path in self._exact or path.startswith(self._below)
