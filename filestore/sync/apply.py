"""Brings the sidecar up to date with the files: every safe repair, applied in one commit.

`catch_up` plans and applies; a repair makes the same value of its steps, and `apply` applies that.
Writes no truth file, but removes the temporary files of dead writers. What needs a person, or
touches a file, is left and reported; `repair` plans that.

One lock: what a verification condemns is set aside by the writer that then syncs the files. That
writer walks the tree again: the verification held no lock, so since its walk files may have come
back that would be forgotten, and another writer may have made a generation. Of 20,000 files the
second walk takes 0.1 to 0.4 s, where the verification takes 2.5 s.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import CatalogDamagedError, FileRow
from filestore.chunks.observation import Observation
from filestore.chunks.observe import look_at, unreadable
from filestore.config.layout import EMBEDDINGS, Places
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding, as_told, worst_first
from filestore.core.paths import ChunkPath, StorePath, is_made
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.schema import JsonObject
from filestore.fs.disk import FileSystemClock
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.fs.stats import stat_entry
from filestore.sidecar import originals
from filestore.sidecar.commit import BATCH, Commit
from filestore.sidecar.file_rows import StatEntries
from filestore.sidecar.recover import condemned, part_finding
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import Level, StoreSnapshot, VerificationReport
from filestore.sync.embedding import embed_waiting
from filestore.sync.plan import PartRepairs, SyncPlan, detected, plan, plan_parts
from filestore.verify import drift, environment, recorded_state, run, source_drift, verify


class SyncReport(JsonObject, Struct, frozen=True, kw_only=True):
    """What `sync` did."""

    KEYS = "applied remaining embedded reused pruned uncounted generation"
    SPARSE = "pruned uncounted"

    generation: int
    """Of the index now."""
    applied: tuple[Finding, ...]
    """Findings that were repaired."""
    remaining: tuple[Finding, ...]
    """Findings left for you."""
    embedded: int
    """Texts that the model embedded."""
    reused: int
    """Texts whose embedding came from the cache."""
    mass_missing: bool = False
    uncounted: int = 0
    """Deleted texts that keyword scores counted, and count no longer."""
    problem: FilestoreError | None = None
    """Why texts were left without embedding, where they were to be embedded."""
    pruned: int = 0
    """Embeddings that nothing needed and `sync --full`, typed outside a git work tree, removed."""


Move = tuple[ChunkPath, Observation]
"""Old path, and what was seen at the new one."""

Accepts = Callable[[Observation | tuple[ChunkPath, OSError]], bool]
"""Asked of each file as it is read, or cannot be, whether it is to be followed."""


def apply(
    snapshot: StoreSnapshot,
    commit: Commit,
    steps: SyncPlan,
    *,
    clock: FileSystemClock,
    on_progress: OnProgress = ignore,
    accepts: Accepts = lambda _: True,
) -> SyncReport:
    """Apply a plan, and nothing else, in the commit that is open.

    Args:
        snapshot: The store, its catalog being the one the commit writes to.
        commit: Entered by the caller; finished here unless nothing is to be written.
        steps: What is to be done.
        clock: The file system's.
        on_progress: Called with the number of files done.
        accepts: Asked of each file as it is read, or cannot be, whether it is to be followed.
    """
    work = _Applying(snapshot, commit, clock, on_progress)
    work.remaining += [*steps.left, *steps.parts.left]
    uncounted = commit.leave_out_deleted(always=steps.is_full) if steps.is_whole else 0
    work.written = commit.has_taken_over or uncounted > 0
    for finding in steps.leftovers:
        work.collect(finding)
    work.repair_parts(steps.parts)
    work.follow(steps.drift)
    work.index(steps.drift, accepts)
    work.cut_again(steps)
    if steps.is_rest_settled:
        commit.await_rest(is_awaited=False)
        work.written = True
    if steps.is_whole:
        sources = note_sources(snapshot, commit, clock, on_progress)
        stale = recorded_state.stale_conflicts(snapshot.catalog)
        commit.settle_conflicts(stale, ())
        work.written = work.written or bool(sources.read or stale)
        source_drift.check(snapshot, None, said := VerificationReport(), sources)
        work.remaining += said.findings
    done = commit.finish() if work.written else None
    if done is not None and done.unsent is not None:
        work.not_sent(done.unsent)
        work.remaining += verify.beside_findings(snapshot)
    if steps.is_whole:
        # What no sync can repair, so that it ends as `status` does.
        matters = recorded_state.open_matters(snapshot)
        work.remaining += [*environment.attributes(snapshot.places), *matters]
        work.remaining += recorded_state.warnings(snapshot, {one.code for one in work.remaining})
    return SyncReport(
        generation=done.generation if done else snapshot.catalog.generation,
        applied=tuple(worst_first(work.applied)),
        remaining=tuple(worst_first(list(dict.fromkeys(work.remaining)))),
        embedded=done.embedded if done else 0,
        reused=done.reused if done else 0,
        mass_missing=steps.drift.mass_missing,
        uncounted=uncounted,
        problem=commit.problem,
    )


def follow_moves(snapshot: StoreSnapshot, commit: Commit, *, clock: FileSystemClock) -> None:
    """Follow the files that were moved, and nothing else, in the commit that is open."""
    seen = replace(detected(snapshot), to_read=(), gone=(), left_out=(), mass_missing=False)
    parts = plan_parts(snapshot, embedder=commit.embedder, embeds=commit.embeds)
    steps = SyncPlan(drift=seen, parts=parts.only(()))
    apply(snapshot, commit, steps, clock=clock)


_MOST_BYTES: Final = 64 * 1024 * 1024
"""So many bytes of files are held at once, and one file more."""

PartExecutor = Callable[[Commit, Sequence[Finding]], None]


def _embed(commit: Commit, _: Sequence[Finding]) -> None:
    if commit.embeds:
        commit.take_missing()


def _rebuild_fulltext(commit: Commit, found: Sequence[Finding]) -> None:
    # One that is only behind gets the changes it lacks as the commit is finished.
    if any(finding.meaning.discards == "fulltext" for finding in found):
        commit.want_fulltext()


PART_EXECUTORS: Final[Mapping[str, PartExecutor]] = {
    "salvage": _embed,
    "embed": _embed,
    "rebuild-index": lambda commit, found: commit.want_index(
        whole=any(finding.code != "index-behind" for finding in found)
    ),
    "rebuild-fulltext": _rebuild_fulltext,
}
"""Kind of step to what repairs its derived part; a lost catalog is made anew by opening it."""


def note_sources(
    snapshot: StoreSnapshot, commit: Commit, clock: FileSystemClock, on_progress: OnProgress
) -> originals.SourceDrift:
    """Look at the originals that records name, and record the stats of those that were read."""
    reachable = source_drift.reachable(snapshot)
    sources = originals.look(snapshot.catalog, reachable, clock=clock, on_progress=on_progress)
    commit.note_sources(originals.entries(sources))
    return sources


class _Applying:
    """One plan being applied: what was done, and what is left."""

    def __init__(
        self,
        snapshot: StoreSnapshot,
        commit: Commit,
        clock: FileSystemClock,
        on_progress: OnProgress,
    ) -> None:
        self._snapshot = snapshot
        self._commit = commit
        self._clock = clock
        self._on_progress = on_progress
        self.applied: list[Finding] = []
        self.remaining: list[Finding] = []
        self.written = False

    def not_sent(self, error: FilestoreError) -> None:
        """A backend did not take what it lacks: nothing of it was repaired."""
        self.applied = [one for one in self.applied if one.meaning.step != "rebuild-index"]
        reason = f"{error.message} (try: {error.remedy})"
        path = self._snapshot.home.part(self._snapshot.catalog)
        self.remaining.append(Finding(code="index-behind", path=path, detail=reason))

    def collect(self, finding: Finding) -> None:
        """Remove the temporary file of a dead writer: this writer's lock says that it is dead."""
        places = self._snapshot.places
        if places.is_in_place and not is_made(finding.path):
            # No writer of ours ever wrote there.
            self.remaining.append(finding)
            return
        path = places.tree.chunk_path(finding.path)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(places.chunked, path))
        self._commit.forget([path])
        self.applied.append(finding)
        self.written = True

    def repair_parts(self, parts: PartRepairs) -> None:
        """Repair the derived parts; what depends on texts is repaired with them."""
        if parts.is_fulltext_sound:
            self._commit.trust_fulltext()
        self._commit.lack(parts.lost_vectors)
        wanted: dict[PartExecutor, list[Finding]] = {}
        for kind, found in parts.steps.items():
            wanted.setdefault(PART_EXECUTORS[kind], []).extend(found)
        for execute, findings in wanted.items():
            execute(self._commit, findings)
            self.written = True
        self.applied += chain.from_iterable(parts.steps.values())

    def follow(self, seen: drift.Drift) -> None:
        """Follow moves, and forget what is gone."""
        if seen.moves or seen.edited_moves:
            seen = replace(seen, moves=tuple(self._moved(seen.moves)))
            self.remaining += drift.excluded_moves(seen)
            self._commit.repoint(seen.edited_moves)
            self.written = True
        if seen.gone and not seen.mass_missing:
            self._commit.forget(seen.gone, by_hand=True)
            self.written = True
        if seen.left_out:
            self._commit.forget(seen.left_out)
            self.written = True
        self.applied += [one for one in drift.missing_findings(seen) if one.safe]

    def _moved(self, moves: Sequence[Move]) -> Iterator[Move]:
        """Follow files to their new names; yields those that still were as they were found.

        What changed or went since is drift of its own, for the next look at the tree.
        """
        found = {look.path: (old, look) for old, look in moves}
        stamp = max((max(look.values[1:3]) for _, look in moves), default=0)
        for read_from_ns, looks, _ in settled(self._snapshot, list(found), self._clock, stamp):
            same = [
                (found[look.path][0], look)
                for look in looks
                if _content(look) == _content(found[look.path][1])
            ]
            self._commit.move(same, read_from_ns)
            yield from ((old, look.without_content()) for old, look in same)

    def index(self, seen: drift.Drift, accepts: Accepts) -> None:
        """Read the files that may differ, and index those that do."""
        done, total = 0, len(seen.to_read)
        batches = settled(self._snapshot, seen.to_read, self._clock, seen.latest_stamp_ns)
        for read_from_ns, looks, failures in batches:
            changed = self._note_all([look for look in looks if accepts(look)], read_from_ns)
            self._commit.put(changed, read_from_ns)
            for path, error in filter(accepts, failures):
                self.remaining += unreadable(self._snapshot.places.tree, path, error)
            done += len(looks) + len(failures)
            self._on_progress(Progress(stage="indexing", done=done, total=total))

    def cut_again(self, steps: SyncPlan) -> None:
        """Cut the documents that did not change as they are cut today, where they are not."""
        if not steps.cut_again:
            return
        read = set(steps.drift.to_read)
        catalog = self._snapshot.catalog
        known = catalog.indexed_paths(catalog.indexed_ids()).values()
        paths = [path for path in sorted(known) if path not in read]
        put_settled(self._snapshot, self._commit, paths, self._clock, self._on_progress)
        self._commit.note_all_cut_again()
        self.applied += steps.cut_again
        self.written = True

    def _note_all(self, looks: Sequence[Observation], read_from_ns: int) -> list[Observation]:
        """Note findings, leftovers and stats; returns the files that differ from their rows."""
        known = self._snapshot.catalog.files([look.path for look in looks])
        # What a document is shows when it is read: what is said here is what `status` says next.
        self._snapshot.layout.complete(
            look for look in looks if not _is_known(known.get(look.path), look)
        )
        changed: list[Observation] = []
        for look in looks:
            row = known.get(look.path)
            finding = drift.classify(self._snapshot.places.tree, row, look)
            if finding is not None and finding.code == "leftovers":
                self.collect(finding)
                continue
            if finding is not None:
                (self.applied if finding.safe else self.remaining).append(finding)
            if not _is_known(row, look):
                changed.append(look)
                continue
            self._commit.refresh([look], read_from_ns)
            # Of a file from the future no stat tells that it is the same: it is read each time.
            entry = stat_entry(look.values, read_from_ns)
            self.written = self.written or self._entries.entry(look.path) != entry
        self.written = self.written or bool(changed)
        return changed

    @cached_property
    def _entries(self) -> StatEntries:
        return StatEntries(self._snapshot.catalog)


def _content(look: Observation) -> tuple[bytes, str]:
    return look.file_hash, look.state


def _is_known(row: FileRow | None, look: Observation) -> bool:
    return row is not None and drift.is_as_recorded(row, look)


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
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
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


class Wanted(Struct, frozen=True, kw_only=True):
    """What a sync is asked to do."""

    embed: bool = True
    """Whether texts without embedding are embedded now."""
    forget_missing: bool = False
    """Whether a mass of missing files is meant to be gone."""
    forget: Collection[StorePath] | None = None
    """Missing files of which no text is to be kept; None for all but a mass."""
    first: Level | None = None
    """Verify at this level before, and repair what that finds, too."""
    wait_s: float = DEFAULT_WAIT_S
    """How long to wait for another writer."""


def catch_up(parts: Parts, wanted: Wanted, on_progress: OnProgress = ignore) -> SyncReport:
    """Index what differs in the files and repair the sidecar; writes no chunk file.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; the old generation stays.
    """
    report = _indexed(parts, wanted, on_progress)
    if wanted.embed and report.problem is None:
        embedded = embed_waiting(parts, wait_s=wanted.wait_s, on_progress=on_progress)
        report = embedded.added_to(report)
    waited = [one for one in report.remaining if one.meaning.awaits_model and one.meaning.step]
    with parts.reading() as catalog:
        snapshot = parts.snapshot(catalog, parts.embeddings())
        waits = as_told(verify.waiting(snapshot), parts.places.tree)
        report = replace(report, generation=catalog.generation)
    told = {one.code for one in waits}
    done = [one for one in waited if one.code not in told]
    remaining = [one for one in report.remaining if one not in waited]
    return replace(
        report,
        applied=tuple(worst_first([*report.applied, *done])),
        remaining=tuple(worst_first([*remaining, *waits])),
    )


def _indexed(parts: Parts, wanted: Wanted, on_progress: OnProgress) -> SyncReport:
    """Index what differs, and embed what is little.

    Raises:
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; the old generation stays.
    """
    from filestore.embed.cache import EmbeddingsDamaged

    found: tuple[Finding, ...] = ()
    unsound: tuple[bytes, ...] = ()
    if wanted.first is not None:
        checked = run.verified(parts, wanted.first, None, on_progress)
        found, unsound = checked.findings, checked.unsound
    try:
        return _follow(parts, wanted, on_progress, found, unsound)
    except (CatalogDamagedError, EmbeddingsDamaged) as error:
        # Damage that opening did not show: set it aside, and sync the files afresh.
        repaired = condemned(parts.places, found, parts.model.embedder)
        report = _follow(parts, wanted, on_progress, [part_finding(parts.places, error)], ())
        return replace(report, applied=_once(parts.places, [*repaired, *report.applied]))


def _once(places: Places, applied: Iterable[Finding]) -> tuple[Finding, ...]:
    """What was applied, the embeddings as a whole once: opening them and counting them tell it."""
    path = places.part(EMBEDDINGS)
    seen: dict[Finding | tuple[str, str], Finding] = {}
    for finding in applied:
        is_file = finding.code == "embeddings-damaged" and finding.path == path
        seen.setdefault((finding.code, finding.path) if is_file else finding, finding)
    return tuple(seen.values())


def _follow(
    parts: Parts,
    wanted: Wanted,
    on_progress: OnProgress,
    found: Sequence[Finding],
    unsound: Sequence[bytes],
) -> SyncReport:
    """Set aside what findings condemn, and sync the files in one commit."""
    if wanted.embed:
        parts.model.ask()
    writing = parts.writing("sync", wait_s=wanted.wait_s, found=found, unsound=unsound)
    with writing as (catalog, embeddings, repaired):
        with parts.commit(catalog, embeddings, embed=wanted.embed) as commit:
            snapshot = parts.snapshot(catalog, embeddings)
            steps = plan(
                snapshot,
                embedder=commit.embedder,
                embeds=commit.embeds,
                forget_missing=wanted.forget_missing,
                forget=wanted.forget,
            )
            steps = replace(steps, is_full=wanted.first is not None)
            report = apply(snapshot, commit, steps, clock=parts.clock(), on_progress=on_progress)
        return replace(
            report,
            applied=as_told(_once(parts.places, [*repaired, *report.applied]), parts.places.tree),
            remaining=as_told(_with_unrepaired(report, found), parts.places.tree),
        )


def _with_unrepaired(report: SyncReport, found: Iterable[Finding]) -> list[Finding]:
    """What is left, and what only the verification could see and no sync repairs, as bit rot."""
    told = {(one.code, one.path) for one in report.remaining}
    done = {one.path for one in report.applied}
    unseen = [
        one
        for one in found
        if one.meaning.level != "fast"
        and not (one.safe or one.path in done or (one.code, one.path) in told)
    ]
    return worst_first([*report.remaining, *unseen])
