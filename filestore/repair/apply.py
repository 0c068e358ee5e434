"""Applying a plan of repair: truth files in one batch, then the sidecar, then sources.

Steps that write files of the tree are written as one; steps of the sidecar alone become what a sync
applies; documents are added again where a step asks for it or a conflict was resolved. One
rule: a step is applied whole or not at all, and only while each file holds what the step was
planned on; what is skipped has a reason.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import AWAITED, Conflict
from filestore.chunks import chunk_file, resource_record
from filestore.chunks.observation import Observation
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding, worst_first
from filestore.core.hashing import content_hash
from filestore.core.paths import TOP, ChunkPath, StorePath
from filestore.core.progress import OnProgress, ignore
from filestore.fs.disk import WriteFailedError
from filestore.fs.transaction import ChangedMeanwhile
from filestore.git import attributes, merge, repository
from filestore.git.attributes import attributes_in
from filestore.history import write
from filestore.ingest import add, put, update
from filestore.repair.plan import ABSENT, KINDS, Plan, State, Step, moved_on
from filestore.repair.request import RepairReport
from filestore.repair.tree_files import (
    Recorded,
    Restoring,
    TreeReader,
    state_of,
    state_of_error,
)
from filestore.sidecar import originals
from filestore.sidecar.session import Parts
from filestore.sync import apply as syncing
from filestore.sync.actions import Follow, Forget, Index, Move, Session, put_settled
from filestore.sync.apply import SyncPlan, SyncReport, embed_waiting, part_actions
from filestore.verify import drift, recorded_state, source_drift
from filestore.verify.drift import is_as_recorded
from filestore.verify.run import verified

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot, Writing
    from filestore.verify.lost_links import LostSources

Made = dict[StorePath, bytes | None]
"""Path to the bytes of its file; None removes it."""
OnSkipped = Callable[[Step, str], None]
"""Called with the reason why a step is not applied."""


class _MovedOnError(FilestoreError):
    """A file, or what a step needs of it, is not as it was when the step was planned."""


class TreeChanges:
    """Truth files to be written together."""

    def __init__(self, snapshot: "StoreSnapshot") -> None:
        self.snapshot = snapshot
        self.reader = TreeReader(snapshot)
        self.recorded = Recorded(snapshot)
        self.restoring = Restoring(snapshot.places, snapshot.catalog)
        self.tree = snapshot.places.tree
        self.before: Made = {}
        self.after: Made = {}
        self.steps: list[Step] = []

    @cached_property
    def conflicts(self) -> dict[ChunkPath, Conflict]:
        """Path to the ingest conflict that waits there."""
        return {one.path: one for one in self.snapshot.catalog.conflicts()}

    @property
    def moves(self) -> list[tuple[ChunkPath, ChunkPath]]:
        """Old path and new path of files that moved before their links were written."""
        chunk_path = self.tree.chunk_path
        steps = (one for one in self.steps if one.kind == "relink" and one.other)
        return [(chunk_path(one.other), chunk_path(one.path)) for one in steps]

    @property
    def resolved(self) -> list[ChunkPath]:
        """Files whose ingest conflict is resolved."""
        chunk_path = self.tree.chunk_path
        return [chunk_path(step.path) for step in self.steps if KINDS[step.kind].resolves]

    def take(self, step: Step) -> str:
        """Note what a step changes, all or nothing; returns why it cannot be made, or ""."""
        if not (self.tree.is_written or KINDS[step.kind].of_documents):
            return "no command writes documents so"
        try:
            for path in step.seen:
                self.held(step, path)
            made = TREE_EXECUTORS[step.kind](self, step)
            before = {path: self.held(step, path) for path in made}
        except FilestoreError as error:
            return error.message
        self.before |= before
        self.after |= made
        self.steps.append(step)
        return ""

    def held(self, step: Step, path: StorePath) -> bytes | None:
        """What a file holds, which is what the step was planned on."""
        # One look gives both: bytes that were saved right after it must not pass for those.
        now, data = self.reader.look(path)
        planned = step.seen.get(path, ABSENT)
        if not planned.holds(now):
            raise _MovedOnError(moved_on(path, planned, now))
        return attributes_in(self.snapshot.places.root) if path == attributes.NAME else data

    def write(self, group: str) -> str:
        """Write them, or nothing; returns the batch with the originals.

        Raises:
            ChangedMeanwhile: Somebody edits one of the files in this moment.
        """
        tree = self.tree
        rows = self.snapshot.catalog.files(tree.chunk_paths(self.before))
        known = {tree.store_path(path): row.file_hash for path, row in rows.items()}
        moved = self.snapshot.catalog.files([old for old, _ in self.moves])
        known |= {tree.store_path(new): moved[old].file_hash for old, new in self.moves}
        batch = write.change(
            self.snapshot.places,
            self.after,
            before=self.before,
            command="repair",
            last=[path for path in self.after if path.endswith(".json")],
            group=group,
            # Undo leaves what the catalog does not know to `status`.
            unknown={
                path
                for path, data in self.before.items()
                if data is not None and tree.holds(path) and content_hash(data) != known.get(path)
            },
            above=max((path.count("../") for path in self.after), default=0),
        )
        return batch or ""


def write_files(
    snapshot: "StoreSnapshot", steps: Sequence[Step], *, group: str, on_skipped: OnSkipped
) -> tuple[TreeChanges, str]:
    """Write what steps ask for; a step whose file is edited in this moment is skipped.

    Returns:
        What was written, and the batch with the originals.
    """
    while True:
        changes = TreeChanges(snapshot)
        late = {step.key: reason for step in steps if (reason := changes.take(step))}
        if not late:
            try:
                return changes, changes.write(group) if changes.steps else ""
            except ChangedMeanwhile as error:
                paths = set(error.paths)
                late = {step.key: _LATE for step in changes.steps if paths & set(step.seen)}
                if not late:
                    raise
        torn = {step.kind for step in steps if step.key in late and KINDS[step.kind].is_joint}
        late = {step.key: _TORN for step in steps if step.kind in torn} | late
        for step in steps:
            if step.key in late:
                on_skipped(step, late[step.key])
        steps = [step for step in steps if step.key not in late]


_LATE: Final = "it changed in this moment"
_TORN: Final = "links are updated in all of the files or in none, and one of them changed"


def _restore(changes: TreeChanges, step: Step) -> Made:
    data = changes.restoring.fetch(changes.tree.chunk_path(step.path), step.hash, step.blob)
    if data is None:
        raise _MovedOnError("the copy to restore from is no longer kept")
    return {step.path: data}


def _rewrite_attributes(changes: TreeChanges, step: Step) -> Made:
    made = attributes.corrected(changes.held(step, step.path) or b"")
    if step.hash != content_hash(made).hex():
        raise _MovedOnError(f"{step.path} changed since the plan was made")
    return {step.path: made}


def _relink(changes: TreeChanges, step: Step) -> Made:
    # What another step makes of the file is what is linked again.
    data = changes.after.get(step.path) or changes.held(step, step.path) or b""
    made = changes.recorded.relinked(step.path, data).data
    is_chunk = changes.tree.is_written and changes.tree.holds(step.path)
    if not is_chunk and step.hash != content_hash(made).hex():
        raise _MovedOnError("other files moved since the plan was made")
    return {step.path: made}


def _resolve(changes: TreeChanges, step: Step) -> Made:
    conflict, data = (
        changes.conflicts.get(changes.tree.chunk_path(step.path)),
        changes.held(step, step.path),
    )
    if conflict is None or data is None:
        raise _MovedOnError("nothing waits for a choice there any more")
    snapshot = changes.snapshot
    where = source_drift.reachable(snapshot)
    found = originals.found_now(snapshot.catalog, where, conflict.source)
    if not recorded_state.still_open(conflict, chunk_file.parse(data), found):
        raise _MovedOnError(
            "the file or its source moved on since the conflict was found: add the source again"
        )
    choice: recorded_state.Choice = "ours" if step.kind == "resolve-ours" else "theirs"
    made = recorded_state.resolve(data, conflict, choice)
    if step.hash != (content_hash(made).hex() if made is not None else ""):
        raise _MovedOnError("the source was added again since the plan was made")
    return {step.path: made}


def _take_side(changes: TreeChanges, step: Step) -> Made:
    data = changes.held(step, step.path)
    staged = repository.staged(changes.snapshot.places.root, step.path)
    made = merge.resolved(data, step.sides, staged)
    if step.hash != (content_hash(made).hex() if made is not None else ""):
        raise _MovedOnError("what git has of it changed since the plan was made")
    return {step.path: made}


def _remove_duplicate(changes: TreeChanges, step: Step) -> Made:
    put.refuse_unmerged(changes.snapshot.places, [changes.tree.chunk_path(step.path)])
    stays = changes.held(step, step.other)
    if stays is None or changes.after.get(step.other, stays) != stays:
        raise _MovedOnError(f"{step.other}, which has its text, does not stay as it was")
    return {step.path: None}


def _remove(changes: TreeChanges, step: Step) -> Made:
    record_path, record, document = changes.recorded.record_of(step.path) or (TOP, None, None)
    if record is None or document is None:
        raise _MovedOnError("no record names it any more")
    rows = changes.recorded.made_of(record, document)
    made: Made = {changes.tree.store_path(row.path): None for row in rows}
    path = changes.tree.store_path(record_path)
    # Two documents of one record may go in one repair.
    data = changes.after.get(path) or changes.held(step, path) or b""
    left = tuple(one for one in resource_record.parse(data).documents if one != document)
    made[path] = resource_record.serialize(replace(record, documents=left)) if left else None
    return made


TREE_EXECUTORS: Final[Mapping[str, Callable[[TreeChanges, Step], Made]]] = {
    "restore": _restore,
    "resolve-ours": _resolve,
    "resolve-theirs": _resolve,
    "take-ours": _take_side,
    "take-theirs": _take_side,
    "take-hunks": _take_side,
    "relink": _relink,
    "remove": _remove,
    "rewrite-attributes": _rewrite_attributes,
    "remove-duplicate": _remove_duplicate,
}
"""Kind of step to what it makes of files."""


class SidecarChanges:
    """Steps that touch only the sidecar, as the actions of a sync."""

    def __init__(self, session: Session, on_skipped: OnSkipped) -> None:
        self.session = session
        session.accepts = self._accepts
        self.tree = session.snapshot.places.tree
        self.reader = TreeReader(session.snapshot, unmerged=session.snapshot.unmerged)
        self.read: dict[ChunkPath, list[Step]] = {}
        """Files to be read and followed."""
        self.moves: list[Move] = []
        self.edited_moves: list[tuple[ChunkPath, ChunkPath]] = []
        self.forgotten: list[Step] = []
        self.kinds: set[str] = set()
        """Of steps that repair derived parts."""
        self.is_whole = False
        """Whether the whole tree is followed."""
        self.steps: dict[tuple[str, str, str], Step] = {}
        """Those whose files are as they were planned on, by key."""
        self._on_skipped = on_skipped

    def run(self, steps: Iterable[Step]) -> SyncReport:
        """Do what steps ask for; those whose files are not as planned are skipped."""
        for step in steps:
            self.steps[step.key] = step
            if step.kind == "rebuild-catalog":
                self.is_whole = True
            elif step.part:
                self.kinds.add(step.kind)
            elif step.kind == "repoint":
                self._repoint(step)
            elif step.kind == "forget":
                if self.holds(step, step.path, self.reader.state(step.path)):
                    self.forgotten.append(step)
            elif self.tree.holds(step.path):
                # What lies outside the tree was collected when the parts were opened.
                self.read.setdefault(self.tree.chunk_path(step.path), []).append(step)
        report = syncing.apply(
            self.session, syncing.plan(self.session) if self.is_whole else self._plan()
        )
        if self.is_whole:
            # What is gone was never read.
            for step in chain.from_iterable(self.read.values()):
                if step.key in self.steps and (now := self.reader.state(step.path)) == ABSENT:
                    self.holds(step, step.path, now)
        return report

    def _repoint(self, step: Step) -> None:
        if not all(self.holds(step, path, self.reader.state(path)) for path in step.seen):
            return
        old, catalog = self.tree.chunk_path(step.other), self.session.snapshot.catalog
        look, row = self.reader.observed(step.path), catalog.files([old]).get(old)
        if row is None or look is None:
            return
        if is_as_recorded(row, look):
            self.moves.append((old, look))
        else:
            self.edited_moves.append((old, look.path))

    def holds(self, step: Step, path: StorePath, now: State) -> bool:
        """Whether a file is as a step was planned on; if not, the step is skipped."""
        if step.seen.get(path, now).holds(now):
            return True
        if self.steps.pop(step.key, None):
            self._on_skipped(step, moved_on(path, step.seen[path], now))
        return False

    def _accepts(self, seen: Observation | tuple[ChunkPath, OSError]) -> bool:
        """Whether a file that was read just now is what its steps were planned on."""
        if isinstance(seen, Observation):
            path, now = seen.path, state_of(seen)
        else:
            path, now = seen[0], state_of_error(seen[1])
        held = [self.holds(step, step.path, now) for step in self.read.get(path, ())]
        # What is followed anyway is followed as it is now.
        return all(held) or self.is_whole

    def _plan(self) -> SyncPlan:
        wanted = self.kinds.union(*(KINDS[kind].also for kind in self.kinds))
        actions, _ = part_actions(self.session, only=wanted)
        if self.moves or self.edited_moves:
            actions.append(Follow(moves=self.moves, edited_moves=self.edited_moves))
        for is_left_out in (False, True):
            steps = [one for one in self.forgotten if ("left-out" in one.codes) == is_left_out]
            if steps:
                found = [Finding(code=step.codes[0], path=step.path) for step in steps]
                paths = sorted(self.tree.chunk_path(step.path) for step in steps)
                actions.append(Forget(applied=found, paths=paths, by_hand=not is_left_out))
        if self.read:
            stamp = self.session.clock.now_ns()
            actions.append(Index(paths=sorted(self.read), latest_stamp_ns=stamp))
        return SyncPlan(actions=actions)


def apply(parts: Parts, chosen: Plan, *, on_progress: OnProgress = ignore) -> RepairReport:
    """Apply the steps of a plan that its policy allows, then verify again.

    Raises:
        GitBusyError: Truth files are to be written in the middle of a merge or the like.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; what was applied before stays, and can be undone.
    """
    work = _Applying(parts, chosen, on_progress)
    if chosen.doable:
        work.run(chosen.doable)
        parts.close()
        after = embed_waiting(parts, on_progress=on_progress)
        work.count(after.texts, 0, after.problem)
    remaining = chosen.findings
    not_checked: tuple[str, ...] = ("everything: nothing was done",)
    if chosen.doable:
        checked = verified(parts, chosen.level, None, on_progress)
        remaining, not_checked = checked.findings, checked.not_checked
    return RepairReport(
        plan=chosen,
        applied=tuple(work.applied),
        skipped=tuple(work.skipped),
        remaining=tuple(worst_first(list(remaining))),
        not_checked=not_checked,
        undo=work.group,
        embedded=work.embedded,
        reused=work.reused,
        problem=work.problem,
    )


class _Applying:
    """One plan being applied."""

    def __init__(self, parts: Parts, chosen: Plan, on_progress: OnProgress) -> None:
        self._parts = parts
        self._plan = chosen
        self._on_progress = on_progress
        self._clock = parts.clock()
        self.applied: list[Step] = []
        self.skipped: list[tuple[Step, str]] = []
        self.group = ""
        """Under which name all originals are kept."""
        self._originals: LostSources | None = None
        """The moved ones, where links to them were written."""
        self.embedded = 0
        self.reused = 0
        self.problem: FilestoreError | None = None

    def run(self, steps: Sequence[Step]) -> None:
        """Apply everything that still holds, phase by phase, under one lock."""
        # Git waits for nothing but the choice in a file that it could not merge.
        if any(step.truth and not step.sides for step in steps):
            repository.refuse_during_operation(self._parts.places.root)
        self._parts.model.ask()
        with self._parts.locked("repair") as require_alone:
            if self._plan.identity and any(step.part for step in steps):
                steps = self._of_this_generation(steps)
            files, sidecar, sources = (
                [step for step in steps if KINDS[step.kind].phase == phase]
                for phase in ("tree", "sidecar", "source")
            )
            # Each phase opens the parts anew: the second one sets aside what is damaged, of which
            # the first one may still need what it knows.
            if files:
                self._write(files, require_alone)
            if sidecar:
                self._follow(sidecar, require_alone)
            if self._originals is not None:
                self._follow_originals(self._originals, require_alone)
            if sources or any(KINDS[step.kind].resolves for step in self.applied):
                self._reingest(sources, require_alone)

    def _follow_originals(self, lost: "LostSources", require_alone: Callable[[], None]) -> None:
        """Re-ingest the originals in which links were written, and the moved ones."""
        now = {lost.moved.get(source, source): name for source, name in lost.resources.items()}
        touched = {now[step.path] for step in self.applied if step.path in now}
        touched |= {lost.resources[source] for source in lost.moved}
        with self._parts.opened(require_alone) as (catalog, embeddings, _):
            store = self._parts.held(catalog, embeddings)
            wanted = update.UpdateRequest(resources=tuple(sorted(touched)), moved=lost.moved)
            found = update.look(store.snapshot, wanted)
            report = update.apply(store, found, self._on_progress, group=self.group)
        self.count(report.embedded, report.reused, report.problem)

    def _skip(self, step: Step, reason: str) -> None:
        self.skipped.append((step, reason))

    def _of_this_generation(self, steps: Sequence[Step]) -> list[Step]:
        """What repairs a part holds only for the generation in which it was found."""
        with self._parts.looking(sound=True) as (snapshot, has_catalog):
            now = (
                (snapshot.catalog.identity, snapshot.catalog.generation) if has_catalog else ("", 0)
            )
        planned = (self._plan.identity, self._plan.generation)
        if now == planned:
            return list(steps)
        for step in steps:
            if step.part:
                self._skip(
                    step, f"the store has changed since (generation {planned[1]}, now {now[1]})"
                )
        return [step for step in steps if not step.part]

    def _write(self, steps: Sequence[Step], require_alone: Callable[[], None]) -> None:
        """Write files of the tree, and update the sidecar."""
        with self._parts.opened(require_alone) as (catalog, embeddings, _):
            snapshot = self._parts.snapshot(catalog, embeddings)
            changes, batch = write_files(snapshot, steps, group=self.group, on_skipped=self._skip)
            self.group = self.group or batch
            self.applied += changes.steps
            tree = changes.tree
            if any(one.kind == "relink" and not tree.holds(one.path) for one in changes.steps):
                self._originals = changes.recorded.lost_sources
            ours = {
                tree.chunk_path(path): data
                for path, data in changes.after.items()
                if tree.holds(path)
            }
            if not ours and not changes.resolved:
                return
            is_mass = any("mass-missing" in step.codes for step in changes.steps)
            rest = drift.detect(snapshot).gone if is_mass else ()
            with self._parts.commit(catalog, embeddings, embed=True) as commit:
                if is_mass:
                    commit.catalog.set_meta(AWAITED, int(bool(rest)))
                commit.forget([path for path, data in ours.items() if data is None])
                commit.repoint(changes.moves)
                written = [path for path, data in ours.items() if data is not None]
                # A person decided what they hold, so they are searchable before 'git add'.
                resolved_now = {tree.chunk_path(one.path) for one in changes.steps if one.sides}
                settled = replace(snapshot, unmerged=snapshot.unmerged - resolved_now)
                put_settled(settled, commit, written, self._clock, self._on_progress)
                waiting = {one.path: one for one in snapshot.catalog.conflicts()}
                resolved = [waiting[path] for path in changes.resolved if path in waiting]
                commit.catalog.keep_resolved(batch, resolved)
                commit.catalog.delete_conflicts(changes.resolved)
                done = commit.finish()
        self.count(done.embedded, done.reused, done.problem)

    def count(self, embedded: int, reused: int, problem: FilestoreError | None) -> None:
        self.embedded += embedded
        self.reused += reused
        self.problem = self.problem or problem

    def _follow(self, steps: Sequence[Step], require_alone: Callable[[], None]) -> None:
        """Apply the steps that touch only the sidecar, in one commit."""
        found = [finding for step in steps for finding in step.repairs]
        unsound = self._plan.unsound if found else ()
        with (
            self._parts.opened(require_alone, found=found, unsound=unsound) as opened,
            self._parts.commit(*opened[:2], embed=True) as commit,
        ):
            snapshot = self._parts.snapshot(*opened[:2])
            session = Session(
                snapshot=snapshot,
                commit=commit,
                clock=self._clock,
                on_progress=self._on_progress,
            )
            changes = SidecarChanges(session, self._skip)
            report = changes.run(steps)
        done = {finding.path for finding in (*opened[2], *report.applied)}
        excluded = {finding.path: finding for finding in report.remaining}
        for step in changes.steps.values():
            if step.part or step.kind == "withhold" or step.path in done:
                self.applied.append(step)
            elif step.path in excluded:
                # A document is read when it is indexed, and only then tells that it is none.
                self._skip(step, f"it is excluded from search: {excluded[step.path].detail}")
            else:
                self._skip(step, "it was repaired in the meantime")
        self.count(report.embedded, report.reused, report.problem)

    def _reingest(self, steps: Sequence[Step], require_alone: Callable[[], None]) -> None:
        """Add the documents of records again: those of steps, and of resolved conflicts."""
        with self._parts.opened(require_alone) as (catalog, embeddings, _):
            store = self._parts.held(catalog, embeddings)
            tree = store.snapshot.places.tree
            reader, recorded = TreeReader(store.snapshot), Recorded(store.snapshot)
            records: dict[ChunkPath, list[Step]] = {}
            for step in steps:
                states = ((path, was, reader.state(path)) for path, was in step.seen.items())
                late = next((one for one in states if not one[1].holds(one[2])), None)
                record = recorded.record_of(step.path)
                if late is not None:
                    self._skip(step, moved_on(*late))
                elif record is None:
                    self._skip(step, "no record names it any more")
                else:
                    records.setdefault(record[0], []).append(step)
            resolved = [step for step in self.applied if KINDS[step.kind].resolves]
            done = [tree.chunk_path(step.path) for step in resolved]
            names = {row.resource for row in catalog.files(done).values()}
            names |= {path.partition("/")[0] for path in done}
            for path in sorted({path for name in names for path in catalog.record_paths(name)}):
                records.setdefault(path, [])
            for path, wanted in records.items():
                self._add(store, path, wanted)

    def _add(self, store: "Writing", record_path: ChunkPath, steps: Sequence[Step]) -> None:
        snapshot = store.snapshot
        try:
            reachable = source_drift.reachable(snapshot)
            report = add.add_all(
                store,
                add.recorded_sources(snapshot.places, snapshot.layout, [record_path], reachable),
                on_progress=self._on_progress,
                group=self.group,
                reachable=reachable,
            )
        except WriteFailedError:
            raise
        except FilestoreError as error:
            for step in steps:
                self._skip(step, error.message)
            return
        errors = [outcome.error for outcome in report.outcomes if outcome.error is not None]
        for step in steps:
            if errors:
                self._skip(step, errors[0].message)
            else:
                self.applied.append(step)
        kept = (outcome.undo for outcome in report.outcomes if outcome.undo is not None)
        self.group = self.group or next(kept, "")
        self.count(report.embedded, report.reused, report.problem)
