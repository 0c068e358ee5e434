"""Applying a plan of repair: truth files in one batch, then the sidecar, then sources.

One rule: a step whose files changed since it was planned is skipped, with the reason. Each kind of
step has one executor, in the table of its phase in `steps`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from filestore.catalog import AWAITED
from filestore.core.errors import FilestoreError
from filestore.core.findings import worst_first
from filestore.core.paths import ChunkPath
from filestore.core.progress import OnProgress, ignore
from filestore.fs.disk import WriteFailedError
from filestore.git import repository
from filestore.repair.plan import KINDS, Plan, Step
from filestore.repair.request import RepairReport
from filestore.repair.steps import Reingest, SidecarChanges, TreeChanges, write_files
from filestore.sidecar.session import Parts
from filestore.sync.actions import Session, put_settled
from filestore.sync.embedding import embed_waiting
from filestore.verify import drift
from filestore.verify.run import verified

if TYPE_CHECKING:
    from filestore.sidecar.commit import Commit
    from filestore.sidecar.snapshot import StoreSnapshot


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
        self.embedded = 0
        self.reused = 0
        self.problem: FilestoreError | None = None

    def run(self, steps: Sequence[Step]) -> None:
        """Apply everything that still holds, phase by phase, under one lock."""
        if any(step.truth for step in steps):
            repository.refuse_during_operation(self._parts.places.root)
        self._parts.model.ask()
        with self._parts.locked("repair") as require_alone:
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
            if sources or any(KINDS[step.kind].resolves for step in self.applied):
                self._reingest(sources, require_alone)

    def _skip(self, step: Step, reason: str) -> None:
        self.skipped.append((step, reason))

    def _of_this_generation(self, steps: Sequence[Step]) -> list[Step]:
        """What repairs a part holds only for the generation in which it was found."""
        with self._parts.looking(sound=True) as (snapshot, has_catalog):
            now = (
                (snapshot.catalog.identity, snapshot.catalog.generation) if has_catalog else ("", 0)
            )
        planned = (self._plan.identity, self._plan.generation)
        if now == planned or not self._plan.identity:
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
            if changes.resolved or any(map(changes.tree.holds, changes.after)):
                commit = self._parts.commit(catalog, embeddings, embed=True)
                self._index(snapshot, commit, changes, batch)

    def _index(
        self, snapshot: "StoreSnapshot", commit: "Commit", changes: TreeChanges, batch: str
    ) -> None:
        tree = changes.tree
        ours = {
            tree.chunk_path(path): changes.after[path] for path in changes.after if tree.holds(path)
        }
        is_mass = any("mass-missing" in step.codes for step in changes.steps)
        rest = drift.detect(snapshot).gone if is_mass else ()
        with commit:
            if is_mass:
                commit.catalog.set_meta(AWAITED, int(bool(rest)))
            commit.forget([path for path, data in ours.items() if data is None])
            put_settled(
                snapshot,
                commit,
                [path for path, data in ours.items() if data is not None],
                self._clock,
                self._on_progress,
            )
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
        """Re-ingest sources: those of steps, and those whose conflicts were resolved."""
        with self._parts.opened(require_alone) as (catalog, embeddings, _):
            again = Reingest(self._parts.held(catalog, embeddings), self._skip)
            for step in steps:
                again.take(step)
            again.take_resolved(self.applied)
            for record_path, wanted in again.records.items():
                self._add(again, record_path, wanted)

    def _add(self, again: Reingest, record_path: ChunkPath, steps: Sequence[Step]) -> None:
        try:
            report = again.apply(record_path, self.group, self._on_progress)
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
