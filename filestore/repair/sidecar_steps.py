"""Steps that touch only the sidecar, as what a sync applies.

The writer's lock is held. One rule: a file is read once, and followed only while it holds what its
step was planned on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from filestore.chunks.observation import Observation
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.progress import OnProgress
from filestore.fs.disk import FileSystemClock
from filestore.repair.plan import ABSENT, KINDS, State, Step, moved_on
from filestore.repair.tree_files import TreeReader, state_of, state_of_error
from filestore.repair.tree_steps import OnSkipped
from filestore.sync.apply import SyncReport, apply
from filestore.sync.plan import SyncPlan, plan, plan_parts
from filestore.verify.drift import Drift, is_as_recorded

if TYPE_CHECKING:
    from filestore.sidecar.commit import Commit
    from filestore.sidecar.snapshot import StoreSnapshot


class SidecarChanges:
    """What steps ask for, collected."""

    def __init__(self, snapshot: "StoreSnapshot", on_skipped: OnSkipped) -> None:
        self.snapshot = snapshot
        self.reader = TreeReader(snapshot, unmerged=snapshot.unmerged)
        self.read: dict[ChunkPath, list[Step]] = {}
        """Files to be read and followed."""
        self.gone: list[ChunkPath] = []
        self.left_out: list[ChunkPath] = []
        self.moves: list[tuple[ChunkPath, Observation]] = []
        self.edited_moves: list[tuple[ChunkPath, ChunkPath]] = []
        self.kinds: set[str] = set()
        """Of steps that repair derived parts."""
        self.is_whole = False
        """Whether the whole tree is followed."""
        self.steps: dict[tuple[str, str, str], Step] = {}
        """Those whose files are as they were planned on, by key."""
        self._on_skipped = on_skipped

    def take(self, step: Step) -> None:
        """Collect what one step asks for."""
        self.steps[step.key] = step
        EXECUTORS[step.kind](self, step)

    def holds(self, step: Step, path: StorePath, now: State) -> bool:
        """Whether a file is as a step was planned on; if not, the step is skipped."""
        if step.seen.get(path, now).holds(now):
            return True
        if self.steps.pop(step.key, None):
            self._on_skipped(step, moved_on(path, step.seen[path], now))
        return False

    def accepts(self, seen: Observation | tuple[ChunkPath, OSError]) -> bool:
        """Whether a file that was read just now is what its steps were planned on."""
        if isinstance(seen, Observation):
            path, now = seen.path, state_of(seen)
        else:
            path, now = seen[0], state_of_error(seen[1])
        held = [self.holds(step, step.path, now) for step in self.read.get(path, ())]
        # What is followed anyway is followed as it is now.
        return all(held) or self.is_whole

    def check_gone(self) -> None:
        """Skip steps whose file is gone: where the whole tree is followed, it was never read."""
        if self.is_whole:
            for step in [one for steps in self.read.values() for one in steps]:
                if step.key in self.steps and (now := self.reader.state(step.path)) == ABSENT:
                    self.holds(step, step.path, now)

    def sync_plan(self, commit: "Commit", clock: FileSystemClock) -> SyncPlan:
        """All of it, as a sync has it."""
        if self.is_whole:
            return plan(self.snapshot, embedder=commit.embedder, embeds=commit.embeds)
        wanted = self.kinds.union(*(KINDS[kind].also for kind in self.kinds))
        needed = plan_parts(self.snapshot, embedder=commit.embedder, embeds=commit.embeds)
        seen = Drift(
            tree=self.snapshot.places.tree,
            to_read=tuple(sorted(self.read)),
            latest_stamp_ns=clock.now_ns(),
            moves=tuple(self.moves),
            edited_moves=tuple(self.edited_moves),
            gone=tuple(sorted(self.gone)),
            left_out=tuple(sorted(self.left_out)),
            mass_missing=False,
            known=self.snapshot.catalog.file_count(),
            findings=(),
        )
        return SyncPlan(drift=seen, parts=needed.only(wanted))


def follow(
    snapshot: "StoreSnapshot",
    commit: "Commit",
    steps: Sequence[Step],
    *,
    clock: FileSystemClock,
    on_progress: OnProgress,
    on_skipped: OnSkipped,
) -> tuple[list[Step], SyncReport]:
    """Apply steps in one commit, which is open.

    Returns:
        Those whose files were as they were planned on, and what the sync did.
    """
    changes = SidecarChanges(snapshot, on_skipped)
    for step in steps:
        changes.take(step)
    report = apply(
        snapshot,
        commit,
        changes.sync_plan(commit, clock),
        clock=clock,
        on_progress=on_progress,
        accepts=changes.accepts,
    )
    changes.check_gone()
    return list(changes.steps.values()), report


def _read(changes: SidecarChanges, step: Step) -> None:
    if changes.snapshot.places.tree.holds(step.path):
        changes.read.setdefault(changes.snapshot.places.tree.chunk_path(step.path), []).append(step)


def _forget(changes: SidecarChanges, step: Step) -> None:
    if changes.holds(step, step.path, changes.reader.state(step.path)):
        forgotten = changes.left_out if "left-out" in step.codes else changes.gone
        forgotten.append(changes.snapshot.places.tree.chunk_path(step.path))


def _repoint(changes: SidecarChanges, step: Step) -> None:
    if not all(changes.holds(step, path, changes.reader.state(path)) for path in step.seen):
        return
    old = changes.snapshot.places.tree.chunk_path(step.other)
    look, row = changes.reader.observed(step.path), changes.snapshot.catalog.files([old]).get(old)
    if row is None or look is None:
        return
    if is_as_recorded(row, look):
        changes.moves.append((old, look))
    else:
        changes.edited_moves.append((old, look.path))


def _repair_part(changes: SidecarChanges, step: Step) -> None:
    changes.kinds.add(step.kind)


def _index_all(changes: SidecarChanges, _: Step) -> None:
    changes.is_whole = True


EXECUTORS: Final[Mapping[str, Callable[[SidecarChanges, Step], None]]] = {
    "salvage": _repair_part,
    "rebuild-catalog": _index_all,
    "repoint": _repoint,
    "forget": _forget,
    "index": _read,
    "reindex": _read,
    "update-record": _read,
    "withhold": _read,
    # What lies beside the tree was collected when the parts were opened.
    "collect": _read,
    "embed": _repair_part,
    "rebuild-index": _repair_part,
    "rebuild-fulltext": _repair_part,
}
"""Kind of step to what it asks of a sync."""
