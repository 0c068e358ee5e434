"""Steps that re-ingest sources: those that are planned, and those whose conflicts were resolved.

The writer's lock is held.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from filestore.core.paths import ChunkPath
from filestore.core.progress import OnProgress
from filestore.fs.disk import FileSystemClock
from filestore.ingest import add
from filestore.ingest.add import AddReport
from filestore.repair.plan import KINDS, Step, moved_on
from filestore.repair.recorded import Recorded
from filestore.repair.tree_files import TreeReader
from filestore.repair.tree_steps import OnSkipped
from filestore.verify import source_check

if TYPE_CHECKING:
    from filestore.sidecar.commit import Commit
    from filestore.sidecar.snapshot import StoreSnapshot


class Reingest:
    """Records whose documents are added again, with the steps that ask for it."""

    def __init__(self, snapshot: "StoreSnapshot", on_skipped: OnSkipped) -> None:
        self._snapshot = snapshot
        self._reader = TreeReader(snapshot)
        self._recorded = Recorded(snapshot.places.tree, snapshot.catalog)
        self._on_skipped = on_skipped
        self.records: dict[ChunkPath, list[Step]] = {}
        """Path of a record to its steps."""

    def take(self, step: Step) -> None:
        """Collect what one step asks for, if its sources are as it was planned on."""
        EXECUTORS[step.kind](self, step)

    def add_record(self, step: Step) -> None:
        """See `take`."""
        for path, planned in step.seen.items():
            now = self._reader.state(path)
            if not planned.holds(now):
                self._on_skipped(step, moved_on(path, planned, now))
                return
        found = self._recorded.record_of(step.path)
        if found is None:
            self._on_skipped(step, "no record names it any more")
        else:
            self.records.setdefault(found[0], []).append(step)

    def take_resolved(self, steps: Iterable[Step]) -> None:
        """Collect the records of files whose conflict was resolved."""
        catalog = self._snapshot.catalog
        resolved = [
            self._snapshot.places.tree.chunk_path(step.path)
            for step in steps
            if KINDS[step.kind].resolves
        ]
        names = {row.resource for row in catalog.files(resolved).values()}
        names |= {path.partition("/")[0] for path in resolved}
        for path in sorted({path for name in names for path in catalog.record_paths(name)}):
            self.records.setdefault(path, [])

    def apply(
        self,
        record_path: ChunkPath,
        open_commit: "Callable[[], Commit]",
        *,
        clock: FileSystemClock,
        group: str,
        on_progress: OnProgress,
    ) -> AddReport:
        """Add the documents of one record again."""
        snapshot = self._snapshot
        reachable = source_check.reachable(snapshot)
        sources = add.recorded_sources(snapshot.places, snapshot.layout, [record_path], reachable)
        return add.add_all(
            snapshot,
            open_commit,
            snapshot.settings,
            sources,
            clock=clock,
            on_progress=on_progress,
            group=group,
            reachable=reachable,
        )


EXECUTORS: Final[Mapping[str, Callable[[Reingest, Step], None]]] = {
    "reingest": Reingest.add_record,
}
"""Kind of step to what it asks of an ingest."""
