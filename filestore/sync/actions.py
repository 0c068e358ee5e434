"""What can be done to the sidecar in an open commit: an object for each deed, run in order.

One rule: an action says what it repaired and what it left only once it ran, and whether it changed
anything; who runs a list finishes the commit if one of its actions did.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from filestore.catalog import AWAITED, FileRow, queries
from filestore.chunks.layout import look_at, unreadable
from filestore.chunks.observation import Observation
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath, is_made
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.fs.disk import FileSystemClock
from filestore.fs.stats import StatEntries, stat_entry
from filestore.sidecar import commit_dates
from filestore.sidecar.commit import Commit
from filestore.sidecar.snapshot import StoreSnapshot, VerificationReport
from filestore.verify import drift, recorded_state

if TYPE_CHECKING:
    from filestore.sidecar.originals import SourceDrift

Move = tuple[ChunkPath, Observation]
"""Old path, and what was seen at the new one."""

Accepts = Callable[[Observation | tuple[ChunkPath, OSError]], bool]
"""Asked of each file as it is read, or cannot be, whether it is to be followed."""

_BATCH: Final = 1000
"""How many files are put at once."""
_MOST_BYTES: Final = 64 * 1024 * 1024
"""The most bytes of files held at once, but for one file more."""


class Session(Struct, kw_only=True):
    """An open commit, with what its actions share."""

    snapshot: StoreSnapshot
    """The store, its catalog being the one the commit writes to."""
    commit: Commit
    """Entered by the caller."""
    clock: FileSystemClock
    """The file system's."""
    on_progress: OnProgress = ignore
    """Called with the number of files done."""
    accepts: Accepts = lambda _: True
    """Asked of each file as it is read, or cannot be, whether it is to be followed."""


class Action(Struct, kw_only=True):
    """One deed in a session."""

    applied: list[Finding] = field(default_factory=list)
    """What it repaired; before it runs, what it is to repair, as far as that is known."""
    left: list[Finding] = field(default_factory=list)
    """What it left for a person."""
    uncounted: int = 0
    """Deleted texts that keyword scores no longer count."""

    def run(self, session: Session) -> bool:
        """Do it; returns whether there is something to commit."""
        raise NotImplementedError


class LeaveOutDeleted(Action):
    """Let keyword scores no longer count deleted texts."""

    def run(self, session: Session) -> bool:
        self.uncounted = session.commit.words.leave_out_deleted()
        return self.uncounted > 0


class Collect(Action):
    """Remove the temporary files of dead writers: this writer's lock says that they are dead."""

    def run(self, session: Session) -> bool:
        places = session.snapshot.places
        if not places.tree.is_written:
            # No writer of ours ever wrote what is not named as ours.
            self.left = [one for one in self.applied if not is_made(one.path)]
            self.applied = [one for one in self.applied if is_made(one.path)]
        paths = [places.tree.chunk_path(one.path) for one in self.applied]
        for path in paths:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(places.chunked, path))
        session.commit.forget(paths)
        return bool(paths)


class Embed(Action, kw_only=True):
    """Give vectors to the texts that have none."""

    lost: Sequence[int] = ()
    """Ids of vectors whose embedding is gone, though the catalog counts on it."""

    def run(self, session: Session) -> bool:
        session.commit.catalog.set_embedded(self.lost, embedded=False)
        if session.commit.embeds:
            session.commit.take_missing()
        return True


class RebuildIndex(Action):
    """Write the vector index again, or send a server what it lacks."""

    def run(self, session: Session) -> bool:
        session.commit.want_index(whole=any(one.code != "index-behind" for one in self.applied))
        return True


class RebuildFulltext(Action):
    """Build the full-text index again; one that is only behind gets the changes it lacks."""

    def run(self, session: Session) -> bool:
        if any(one.meaning.discards == "fulltext" for one in self.applied):
            session.commit.words.rebuild()
        return True


PART_ACTIONS: Final[Mapping[str, type[Action]]] = {
    "salvage": Embed,
    "embed": Embed,
    "rebuild-index": RebuildIndex,
    "rebuild-fulltext": RebuildFulltext,
}
"""Kind of step to what repairs its derived part; a lost catalog is made anew by opening it."""


class Follow(Action, kw_only=True):
    """Follow files to their new names.

    What changed or went since it was found is drift of its own, for the next look at the tree.
    """

    moves: Sequence[Move]
    edited_moves: Sequence[tuple[ChunkPath, ChunkPath]]
    """Old and new path of files that were edited, too."""

    def run(self, session: Session) -> bool:
        snapshot, pairs = session.snapshot, [*self.edited_moves]
        found = {look.path: (old, look) for old, look in self.moves}
        stamp = max((max(look.values[1:3]) for _, look in self.moves), default=0)
        for read_from_ns, looks, _ in settled(snapshot, list(found), session.clock, stamp):
            same = [
                (found[look.path][0], look)
                for look in looks
                if _content(look) == _content(found[look.path][1])
            ]
            session.commit.move(same, read_from_ns)
            pairs += [(old, look.path) for old, look in same]
            self.left += drift.excluded_moves(snapshot.places.tree, [look for _, look in same])
        session.commit.repoint(self.edited_moves)
        self.applied = drift.moved_findings(snapshot.places.tree, pairs)
        return True


class Forget(Action, kw_only=True):
    """Forget files that are gone, or that are left out now."""

    paths: Sequence[ChunkPath]
    by_hand: bool
    """Whether a person deleted them."""

    def run(self, session: Session) -> bool:
        session.commit.forget(self.paths, by_hand=self.by_hand)
        return True


class Index(Action, kw_only=True):
    """Read the files that may differ, and index what differs."""

    paths: Sequence[ChunkPath]
    latest_stamp_ns: int

    def run(self, session: Session) -> bool:
        snapshot, done, is_changed = session.snapshot, 0, False
        entries = StatEntries(snapshot.catalog.folders())
        batches = settled(snapshot, self.paths, session.clock, self.latest_stamp_ns)
        leftovers = Collect()
        for read_from_ns, looks, failures in batches:
            changed = []
            accepted = [look for look in looks if session.accepts(look)]
            for look, row, finding in _classified(snapshot, accepted):
                if finding is not None and finding.code == "leftovers":
                    leftovers.applied.append(finding)
                    continue
                if finding is not None:
                    (self.applied if finding.safe else self.left).append(finding)
                if row is None or not drift.is_as_recorded(row, look):
                    changed.append(look)
                    continue
                session.commit.refresh([look], read_from_ns)
                # Of a file from the future no stat tells that it is the same: it is read each time.
                entry = stat_entry(look.values, read_from_ns)
                is_changed = is_changed or entries.entry(look.path) != entry
            session.commit.put(changed, read_from_ns)
            is_changed = is_changed or bool(changed)
            for path, error in filter(session.accepts, failures):
                self.left += unreadable(snapshot.places.tree, path, error)
            done += len(looks) + len(failures)
            session.on_progress(Progress(stage="indexing", done=done, total=len(self.paths)))
        if leftovers.applied:
            is_changed = leftovers.run(session) or is_changed
            self.applied += leftovers.applied
            self.left += leftovers.left
        return is_changed


class CutAgain(Action, kw_only=True):
    """Cut the documents that did not change as they are to be cut today."""

    read: Collection[ChunkPath]
    """Files that are read anyway."""

    def run(self, session: Session) -> bool:
        snapshot, commit = session.snapshot, session.commit
        known = snapshot.catalog.indexed_paths(snapshot.catalog.indexed_ids()).values()
        paths = sorted(set(known).difference(self.read))
        put_settled(snapshot, commit, paths, session.clock, session.on_progress)
        commit.all_cut_again = True
        return True


class SettleRest(Action):
    """Remember that a mass of missing files is back, or was forgotten."""

    def run(self, session: Session) -> bool:
        session.commit.catalog.set_meta(AWAITED, 0)
        return True


class CheckSources(Action):
    """Look at the originals that records name, and close conflicts that are about none of them."""

    def run(self, session: Session) -> bool:
        from filestore.verify import source_drift

        snapshot, commit = session.snapshot, session.commit
        if not (commit.catalog.has_rows("documents") or commit.catalog.has_rows("conflicts")):
            return False
        sources = note_sources(snapshot, commit, session.clock, session.on_progress)
        stale = recorded_state.stale_conflicts(snapshot.catalog)
        commit.catalog.delete_conflicts(stale)
        source_drift.check(snapshot, None, report := VerificationReport(), sources)
        self.left += report.findings
        return bool(sources.read or stale)


class HashSources(Action):
    """Hash the sources of which documents name a hash, so that a stat tells of them in answers."""

    def run(self, session: Session) -> bool:
        snapshot, catalog = session.snapshot, session.commit.catalog
        names = snapshot.settings.keys
        if not queries.has_key(catalog, [f"{key}.sha256" for key in names.sources]):
            return False
        from filestore.sidecar import originals
        from filestore.sidecar.standing import Sources

        where = originals.Reachable(snapshot.places, snapshot.originals)
        named = Sources(catalog, lambda: where, names).hashed(snapshot.places.tree)
        seen = originals.look(catalog, where, documents=named, clock=session.clock)
        catalog.put_source_stats(originals.entries(seen))
        return bool(seen.read)


class ReadHistory(Action):
    """Read git's log, which every commit does, where HEAD is another than it was."""

    def run(self, session: Session) -> bool:
        return commit_dates.is_behind(session.snapshot.places, session.commit.catalog)


def note_sources(
    snapshot: StoreSnapshot, commit: Commit, clock: FileSystemClock, on_progress: OnProgress
) -> "SourceDrift":
    """Look at the originals that records name, and record the stats of what was read."""
    from filestore.sidecar import originals

    reachable = originals.Reachable(snapshot.places, snapshot.originals)
    sources = originals.look(snapshot.catalog, reachable, clock=clock, on_progress=on_progress)
    commit.catalog.put_source_stats(originals.entries(sources))
    return sources


def put_settled(
    snapshot: StoreSnapshot,
    commit: Commit,
    paths: Sequence[ChunkPath],
    clock: FileSystemClock,
    on_progress: OnProgress,
) -> None:
    """Put files that were written just now into a commit."""
    done = 0
    for read_from_ns, looks, failures in settled(snapshot, paths, clock, clock.now_ns()):
        commit.put(looks, read_from_ns)
        done += len(looks) + len(failures)
        on_progress(Progress(stage="indexing", done=done, total=len(paths)))


def settled(
    snapshot: StoreSnapshot,
    paths: Sequence[ChunkPath],
    clock: FileSystemClock,
    latest_stamp_ns: int,
) -> Iterator[tuple[int, list[Observation], list[tuple[ChunkPath, OSError]]]]:
    """Read files in batches, after the clock has moved past their newest stamp.

    A file that is written meanwhile is remembered as one to be read again.

    Yields:
        The clock's reading from before the batch was read, the observations, and what failed.
    """
    # What a record says of a document is indexed with its chunks.
    is_record = snapshot.layout.is_record
    paths = sorted(paths, key=lambda path: not is_record(path.rpartition("/")[2]))
    for start in range(0, len(paths), _BATCH):
        batch = paths[start : start + _BATCH]
        read_from_ns = clock.wait_past(latest_stamp_ns)
        looks: list[Observation] = []
        failures: list[tuple[ChunkPath, OSError]] = []
        held = 0
        for look in look_at(snapshot.places, batch, snapshot.layout, unmerged=snapshot.unmerged):
            if not isinstance(look, Observation):
                failures.append(look)
                continue
            looks.append(look)
            held += len(look.data)
            if held > _MOST_BYTES:
                yield read_from_ns, looks, failures
                read_from_ns = clock.wait_past(latest_stamp_ns)
                looks, failures, held = [], [], 0
        yield read_from_ns, looks, failures


def _content(look: Observation) -> tuple[bytes, str]:
    return look.file_hash, look.state


def _classified(
    snapshot: StoreSnapshot, looks: Sequence[Observation]
) -> Iterator[tuple[Observation, FileRow | None, Finding | None]]:
    """Each file with its row and with its finding."""
    known = snapshot.catalog.files([look.path for look in looks])
    rows = [(look, known.get(look.path)) for look in looks]
    # What a document is shows when it is read: the finding here is the one of the next `status`.
    snapshot.layout.complete(
        look for look, row in rows if row is None or not drift.is_as_recorded(row, look)
    )
    for look, row in rows:
        yield look, row, drift.classify(snapshot.places.tree, row, look)
