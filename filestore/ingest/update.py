"""Bringing resources up to date with their originals: what changed is re-ingested.

What changed is told by `update_plan`; `apply` goes through `add`. One rule: a hand edit stays even
where what was made from originals that are gone is removed.
"""

import os
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding, worst_first
from filestore.core.progress import OnProgress, ignore
from filestore.core.schema import JsonObject
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.git import repository
from filestore.ingest.add import AddReport, MergeConflict, add_all
from filestore.ingest.provenance import Outcome
from filestore.ingest.sources import SourcePath
from filestore.ingest.update_plan import UpdatePlan, Wanted, look
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import StoreSnapshot, Writing
from filestore.sync.apply import SyncReport, catch_up
from filestore.sync.apply import Wanted as SyncWanted
from filestore.verify import source_drift


class UpdateReport(JsonObject, Struct, frozen=True, kw_only=True):
    """What an update did."""

    KEYS = (
        "added updated removed unchanged failed conflicts plan embedded reused not_embedded "
        "synced.generation synced.applied remaining undo"
    )
    SPARSE = "not_embedded"

    plan: UpdatePlan
    """What changed among the originals."""
    ingested: AddReport
    synced: SyncReport

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.ingested)

    @property
    def added(self) -> list[Outcome]:
        """New children of a folder each child of which is a resource."""
        return self.ingested.added

    @property
    def updated(self) -> list[Outcome]:
        """Resources of which files were written."""
        return self.ingested.updated

    @property
    def unchanged(self) -> list[Outcome]:
        """Resources that were read and had nothing to be written."""
        return self.ingested.unchanged

    @property
    def removed(self) -> list[Outcome]:
        """Resources of which nothing is left."""
        return self.ingested.of("removed")

    @property
    def failed(self) -> list[Outcome]:
        """Originals that could not be read."""
        return self.ingested.failed

    @property
    def conflicts(self) -> list[MergeConflict]:
        """Files in which a hand edit and the new source text overlap."""
        return self.ingested.conflicts

    @property
    def embedded(self) -> int:
        """Texts that the model embedded."""
        return self.ingested.embedded + self.synced.embedded

    @property
    def reused(self) -> int:
        """Texts whose embedding came from the cache."""
        return self.ingested.reused + self.synced.reused

    @property
    def remaining(self) -> tuple[Finding, ...]:
        """Findings left for you."""
        return self.synced.remaining

    @property
    def undo(self) -> str | None:
        """What `undo` takes to take back all of it; None where no file changed."""
        return next((one.undo for one in self.ingested.outcomes if one.undo), None)

    @property
    def not_embedded(self) -> FilestoreError | None:
        """Why texts were left without vectors."""
        return self.synced.problem


def apply(store: Writing, planned: UpdatePlan, on_progress: OnProgress) -> AddReport:
    """Re-ingest what a plan names, as one change that is undone as one.

    Args:
        store: Written to.
        planned: Made just now, under the same lock.
        on_progress: Called with the progress.

    Raises:
        GitBusyError: Git is in the middle of an operation.
    """
    sources = list(_sources(store.snapshot, planned))
    if not sources:
        return AddReport()
    return add_all(
        store,
        sources,
        on_progress=on_progress,
        command="update",
        reachable=source_drift.reachable(store.snapshot),
    )


def run(
    parts: Parts,
    wanted: Wanted,
    *,
    embed: bool = True,
    wait_s: float = DEFAULT_WAIT_S,
    on_progress: OnProgress = ignore,
) -> UpdateReport:
    """Sync the store, re-ingest what changed among originals, and sync what that left.

    Args:
        parts: The store's.
        wanted: Which resources are meant.
        embed: Whether texts without embedding are embedded now.
        wait_s: How long to wait for another writer.
        on_progress: Called with the progress.

    Raises:
        UnknownResourceError: There is no resource of a name.
        GitBusyError: Git is in the middle of an operation, and files were to be written.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    sync = SyncWanted(embed=embed, wait_s=wait_s)
    # Records that came with a checkout say what their chunks were made from.
    synced = catch_up(parts, sync, on_progress)
    found = plan(parts, wanted)
    # What a person did not ask for waits until git is done.
    waits = wanted.followed_only and repository.operation(parts.places.root)
    parts.close()
    if waits or not found.has_work:
        return UpdateReport(plan=found, ingested=AddReport(), synced=synced)
    with parts.writing("update", wait_s=wait_s) as (catalog, embeddings, _):
        store = parts.held(catalog, embeddings, embed=embed)
        found = look(store.snapshot, wanted)
        ingested = apply(store, found, on_progress)
    if ingested.outcomes:
        parts.close()
        # Whose time for embedding ran out in the first sync has none left for a second one.
        ran_out = any(one.code == "vector-pending" for one in synced.remaining)
        again = catch_up(parts, replace(sync, embed=embed and not ran_out), on_progress)
        applied = tuple(worst_first([*synced.applied, *again.applied]))
        synced = replace(
            again,
            applied=applied,
            embedded=synced.embedded + again.embedded,
            reused=synced.reused + again.reused,
            problem=again.problem or ingested.problem or synced.problem,
        )
    return UpdateReport(plan=found, ingested=ingested, synced=synced)


def plan(parts: Parts, wanted: Wanted) -> UpdatePlan:
    """What `run` would do, by the catalog as it is; changes nothing.

    Raises:
        CatalogMissingError: There is no catalog yet.
        UnknownResourceError: There is no resource of a name.
    """
    with parts.reading() as catalog:
        return look(parts.snapshot(catalog, None), wanted)


def _sources(snapshot: StoreSnapshot, planned: UpdatePlan) -> Iterable[SourcePath]:
    for change in planned.changes:
        if not (change.has_news or (planned.remove_gone and change.gone)):
            continue
        is_lost = change.is_all_gone
        root = snapshot.places.root
        if change.found_in:
            folder = os.path.normpath(os.path.join(root, change.found_in))
            path = os.path.join(folder, change.resource)
            yield SourcePath(path=path, resource=change.resource, implied=True, found_in=folder)
            continue
        yield SourcePath(
            path=change.copied_from or os.path.normpath(os.path.join(root, change.place)),
            resource=change.resource,
            named=True,
            recorded=None if change.copied_from else change.place,
            was=change.source if change.moved_to else None,
            gone="keep" if not planned.remove_gone else "all" if is_lost else "drop",
            drops=None if is_lost else frozenset(change.gone),
            renames={one: change.renamed[one] for one in change.modified if one in change.renamed},
        )
