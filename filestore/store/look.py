"""The look at the files before an answer: what the index lacks, indexed first where that is little.

One rule: it forgets nothing, and never holds an answer up. Where it may not write, another writes,
or much differs, the answer is given as the index has it, and says what that lacks. A caller that
may only read has the rest indexed by `TreeLook.take_up`, turn by turn, as long as it waits.
"""

import os
import time
from collections.abc import Callable, Collection
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, queries
from filestore.catalog.ages import history
from filestore.core.errors import FilestoreError
from filestore.core.findings import Behind
from filestore.core.paths import TOP, ChunkPath
from filestore.fs import scan

if TYPE_CHECKING:
    from filestore.sidecar.session import Parts
    from filestore.sync.apply import SyncReport

T = TypeVar("T")

HOLDS_S: Final = 1.0
"""So long a look is not repeated in one process, unless a walk that is kept tells of changes."""
MOST_S: Final = 2.0
"""A look that takes longer is not made, or given up."""
_LEAST_S: Final = 4e-6
"""No file takes less: a walk, and what it is compared with."""
_ASKED: Final = 64
"""Files that show how long all of them take, of a store with more than `_FEW`."""
_FEW: Final = 1_000
_TURN_S: Final = 0.2
"""So long another thread of this process is waited for, which looks or indexes."""
_AWAY: Final = (
    "{} empty or not mounted: {:,} of {:,} files are gone, and shown as they were indexed;"
    " 'filestore sync --forget-missing' forgets them"
)
_SYNC: Final = "run 'filestore sync'"


class _LookedAt(Struct, frozen=True, kw_only=True):
    """What one look saw."""

    behind: Behind
    of: tuple[str, int] = ("", 0)
    """Identity and generation of the catalog that the files were compared with."""
    tree: scan.TreeScan | None = None
    """None where it was not walked."""
    came: tuple[ChunkPath, ...] = ()
    """New and edited files that may be indexed."""
    head: str = ""
    """The commit that was checked out; "" where dates of commits are not known."""
    is_committed: bool = False
    """Whether that is a later one than the last one that is known."""


class TreeLook:
    """The last look at the files of one store, for all who have it open in this process."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._lock = Lock()
        self._last: _LookedAt | None = None
        self._looked_s = 0.0

    def before(
        self,
        ask: Callable[[Behind], T],
        parts: "Parts",
        close: Callable[[], None],
        *,
        update: bool,
    ) -> T:
        """Look at the files, index what is quickly indexed, then ask.

        Args:
            ask: Answers, with what the index lacks.
            parts: Of the store.
            close: Lets go of all that is open; called before anything is written.
            update: Whether anyone wants a look.

        Raises:
            CatalogMissingError: There is no catalog yet; what else `ask` raises.
        """
        with parts.comparing() as catalog:
            last = self._last
            if not (update and parts.settings.updates):
                last = _LookedAt(behind=Behind(unembedded=catalog.waiting_count()))
            elif last is not None and not self._holds(last, parts, catalog):
                last = None
            if last is not None:
                return ask(last.behind)
        return ask(self._looked(parts, close).behind)

    def _looked(self, parts: "Parts", close: Callable[[], None]) -> _LookedAt:
        has_turn = self._lock.acquire(timeout=_TURN_S)
        try:
            with parts.comparing() as catalog:
                if self._last is not None and self._holds(self._last, parts, catalog):
                    # Another thread has looked meanwhile.
                    return self._last
                try:
                    tree = _watched(parts) or _scanned(parts, catalog)
                    seen = _compared(parts, catalog, tree)
                except scan.SlowScanError as error:
                    behind = Behind(unembedded=catalog.waiting_count(), notes=(error.message,))
                    seen = _LookedAt(behind=behind, of=(catalog.identity, catalog.generation))
            if has_turn:
                self._last = seen = _updated(parts, seen, close)
                self._looked_s = time.monotonic()
            return seen
        finally:
            if has_turn:
                self._lock.release()

    def take_up(
        self,
        parts: "Parts",
        close: Callable[[], None],
        *,
        for_s: float,
    ) -> "SyncReport":
        """Index what a look would, however many files that are, turn by turn until a time.

        Raises:
            CatalogMissingError: There is no catalog yet.
            LockedError: Another writer holds the store.
            FilestoreError: Nothing can be written.
        """
        from filestore.sync.apply import NOTHING, embed_waiting
        from filestore.sync.little import WAIT_S, Turn, take_up

        ends_s, turn, report, why = time.monotonic() + for_s, Turn(), NOTHING, ""
        tree, remedy = _whole_tree(parts, ends_s), "see 'filestore status'"
        while True:
            with parts.comparing() as catalog:
                seen = _compared(parts, catalog, tree)
            left_s = ends_s - time.monotonic()
            if turn.done.issuperset(seen.came):
                break
            if left_s <= 0:
                why, remedy = f"{for_s:,.0f} s are over", "sync goes on"
                break
            close()
            with self._lock:
                taken = take_up(parts, tree, seen.of, replace(turn, wait_s=left_s))
            report, why = taken.report.after(report), taken.why_not
            if why:
                break
            turn = turn.after(taken.paths, left_s - (ends_s - time.monotonic()))
        if not why and parts.model.reaches is None and not parts.home.elsewhere:
            close()
            before, parts.embed_for_s = parts.embed_for_s, max(0.0, left_s)
            try:
                report = embed_waiting(parts, wait_s=WAIT_S).added_to(report)
            finally:
                parts.embed_for_s = before
        with self._lock:
            self._last = left = _left(parts, tree, why, remedy)
            self._looked_s = time.monotonic()
        return replace(report, behind=left.behind, generation=left.of[1])

    def _holds(self, last: _LookedAt, parts: "Parts", catalog: Catalog) -> bool:
        if last.of != (catalog.identity, catalog.generation):
            return False
        if parts.watched_tree is not None and parts.watched_tree.folders:
            # What is there is made anew only where something changed.
            is_head = _commits(parts, last.head)[0] == last.head
            return _watched(parts) is last.tree and is_head
        return time.monotonic() - self._looked_s < HOLDS_S


def _watched(parts: "Parts") -> scan.TreeScan | None:
    """The tree by a walk that is kept; None where none is."""
    if parts.watched_tree is None:
        return None
    from filestore.sidecar.losses import walk_watched

    return walk_watched(parts.places, parts.watched_tree).tree


def _scanned(parts: "Parts", catalog: Catalog) -> scan.TreeScan:
    """The tree as it is now.

    Raises:
        SlowScanError: That takes too long.
    """
    root, files, begun_s = parts.places.chunked, catalog.file_count(), time.monotonic()
    if files > _FEW:
        # How long a look takes for one file, by a few of them.
        took_s = [_LEAST_S]
        for path in queries.some_paths(catalog, _ASKED):
            one_s = time.perf_counter()
            os.path.lexists(os.path.join(root, path))
            took_s.append(time.perf_counter() - one_s)
        if (takes_s := files * max(_LEAST_S, sorted(took_s)[len(took_s) // 2])) > MOST_S:
            raise _too_slow(f"its {files:,} files would take about {takes_s:,.0f} s")
    try:
        return scan.scan_tree(root, rules=parts.places.rules, until_s=begun_s + MOST_S)
    except scan.SlowScanError as error:
        takes_s = (time.monotonic() - begun_s) * max(1.0, files / max(1, error.seen))
        raise _too_slow(f"its files would take more than {takes_s:,.0f} s") from error
    except OSError as error:
        from filestore.sidecar.losses import unlistable

        return unlistable(error)


def _whole_tree(parts: "Parts", until_s: float) -> scan.TreeScan:
    """The tree as it is now, however long that takes.

    Raises:
        SlowScanError: It takes until a time.
    """
    try:
        root, rules = parts.places.chunked, parts.places.rules
        return _watched(parts) or scan.scan_tree(root, rules=rules, until_s=until_s)
    except OSError as error:
        from filestore.sidecar.losses import unlistable

        return unlistable(error)


def _too_slow(why: str) -> scan.SlowScanError:
    return scan.SlowScanError(f"the folder was not looked at, {why}: after edits {_SYNC}")


def _compared(parts: "Parts", catalog: Catalog, tree: scan.TreeScan) -> _LookedAt:
    """What the index lacks of a tree, by stats."""
    found, files = scan.differences(tree, catalog.folders()), catalog.file_count()
    is_away = False
    if found.gone:
        from filestore.sidecar import losses

        found = replace(found, gone=losses.apart_from_left_out(parts.places, found.gone)[0])
        is_away = losses.needs_word(parts.places, parts.layout, catalog, tree, found)
    behind = Behind(
        new=_count(parts, found.added),
        edited=_count(parts, found.changed),
        gone=_count(parts, found.gone),
        unembedded=catalog.waiting_count(),
        shows_gone=is_away,
    )
    if TOP in tree.problems:
        reason = f"the folder cannot be looked at: {tree.problems[TOP]}"
        behind = Behind(unembedded=behind.unembedded, notes=(reason,))
    elif is_away:
        emptied = losses.is_emptied_of(found.gone, tree, parts.layout, catalog)
        folder = "the folder is" if emptied else "a folder in it is"
        behind = replace(behind, notes=(_AWAY.format(folder, len(found.gone), files),))
    else:
        behind = _with_notes(behind)
    came = () if is_away else (*found.added, *found.changed)
    head, is_committed = _commits(parts, history(catalog).head)
    return _LookedAt(
        behind=behind,
        of=(catalog.identity, catalog.generation),
        tree=tree,
        came=came,
        head=head,
        is_committed=is_committed,
    )


def _commits(parts: "Parts", known: str) -> tuple[str, bool]:
    """The commit that is checked out, and whether it comes after the one that is known, if any."""
    if not known:
        return "", False
    from filestore.git import dates

    head = dates.head(parts.places.root)
    return head, dates.is_later(parts.places.root, known, head)


def _count(parts: "Parts", paths: Collection[ChunkPath]) -> int:
    """How many of some files who asks may see, as far as their names and the catalog tell."""
    if not paths or parts.places.closed is None:
        return len(paths)
    with parts.reading() as seen:
        return sum(not seen.closes(path) for path in paths)


def _updated(parts: "Parts", seen: _LookedAt, close: Callable[[], None]) -> _LookedAt:
    """What the index lacks once it has what is little."""
    if seen.tree is None or not (seen.came or seen.is_committed):
        return seen
    from filestore.sync.little import is_little, take_up

    if not is_little(seen.tree, seen.came):
        return seen
    close()
    try:
        reason = take_up(parts, seen.tree, seen.of).why_not
    except (FilestoreError, OSError) as error:
        reason = str(error)
    return _left(parts, seen.tree, reason)


def _left(parts: "Parts", tree: scan.TreeScan, why: str, remedy: str = _SYNC) -> _LookedAt:
    """What the index lacks still, and why."""
    from filestore.sync.little import count_differing, is_little

    with parts.comparing() as catalog:
        now = _compared(parts, catalog, tree)
        if not now.came or parts.places.closed is not None:
            return now
        if not is_little(tree, now.came):
            return replace(now, behind=_with_notes(now.behind, why, remedy))
        # They are few, so that reading tells which of them really differ.
        new, edited, moved = count_differing(parts, catalog, tree)
        gone = (now.behind.gone or 0) - moved
        behind = replace(now.behind, new=new + moved, edited=edited, gone=gone)
        return replace(now, behind=_with_notes(behind, why, remedy, is_sure=True))


def _with_notes(
    behind: Behind, why: str = "", remedy: str = _SYNC, *, is_sure: bool = False
) -> Behind:
    """The same, with its notes."""
    edited = ("edited file", "edited files")
    if not is_sure:
        edited = ("file that may be edited", "files that may be edited")
    differing = [
        f"{number:,} {one if number == 1 else more}"
        for number, one, more in ((behind.new, "new file", "new files"), (behind.edited, *edited))
        if number
    ]
    notes = []
    if differing:
        are = "is" if (behind.new or 0) + (behind.edited or 0) == 1 else "are"
        notes.append(f"{' and '.join(differing)} {are} not indexed{why and f' ({why})'}: {remedy}")
    if behind.gone:
        files = "1 indexed file is" if behind.gone == 1 else f"{behind.gone:,} indexed files are"
        notes.append(f"{files} gone: {_SYNC}")
    return replace(behind, notes=tuple(notes))
