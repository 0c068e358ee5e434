"""Bringing resources up to date with their originals: what changed, and how it is ingested again.

Planning changes nothing; `apply` goes through `add`. One rule: a hand edit stays, and what was made
from an original that is gone stays until a person asks for its removal.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import FileRow, UnknownResourceError
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.findings import Finding, worst_first
from filestore.core.paths import TOP, ChunkPath, is_below
from filestore.core.progress import OnProgress, ignore
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean_path
from filestore.extract.ignore_files import GIT_RULES, OWN_RULES
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.git import repository
from filestore.ingest.add import AddReport, MergeConflict, add_all
from filestore.ingest.sources import Outcome, SourcePath
from filestore.sidecar import originals
from filestore.sidecar.originals import SourceDrift, is_followed
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import StoreSnapshot, Writing
from filestore.sync.apply import SyncReport, SyncRequest, catch_up
from filestore.verify import source_drift
from filestore.verify.source_drift import NewFiles
from filestore.verify.source_moves import came_to_folder_of, edited_on_the_way, where_to


class UpdateRequest(Struct, frozen=True):
    """What an update is asked for."""

    resources: tuple[str, ...] = ()
    """Exact names; none for all."""
    around: str = ""
    """A folder, absolute: only resources whose source holds it, or lies in it; "" for all."""
    followed_only: bool = False
    """Whether only resources are asked for that follow their originals without being asked."""
    remove_gone: bool = False
    """Whether what was made from originals that are gone is to go."""
    moved: Mapping[str, str] = {}
    """Originals and folders, as recorded, that were moved just now, and their names since."""


class SourceChange(JsonObject, Struct, frozen=True, kw_only=True):
    """How the originals of one resource differ from its record."""

    KEYS = "resource source moved_to modified new renamed gone chunks edited"
    SPARSE = "moved_to"

    resource: str
    """Its document."""
    record_path: ChunkPath
    source: str
    """As recorded, below the store root."""
    place: str
    """Where that is now: elsewhere if it was renamed."""
    modified: tuple[str, ...] = ()
    """Originals that say something else now."""
    new: tuple[str, ...] = ()
    """Originals that were never added."""
    renamed: Mapping[str, str]
    """Originals that were renamed, with their new names."""
    gone: tuple[str, ...] = ()
    """Originals that are not there any more."""
    is_all_gone: bool = False
    """Whether no document is left."""
    chunks: int = 0
    """How many chunk files were made from documents that are gone."""
    edited: int = 0
    """How many of these were edited by hand."""
    found_in: str = ""
    """The folder of which it is a new child, where each child is a resource."""
    copied_from: str = ""
    """Where its original lies on this machine, if that is to be copied again."""

    @property
    def moved_to(self) -> str:
        """Where its source is now; "" where it is where it was."""
        return "" if self.place == self.source else self.place

    @property
    def has_news(self) -> bool:
        """Whether there is anything to re-ingest."""
        return bool(self.modified or self.new or self.renamed)


class UpdatePlan(JsonObject, Struct, frozen=True, kw_only=True):
    """What an update would do."""

    KEYS = "changes remove_gone outside"

    changes: tuple[SourceChange, ...]
    """Each document whose originals differ."""
    outside: tuple[str, ...] = ()
    """Originals that the store may not look at."""
    watched: tuple[str, ...] = ()
    """Absolute paths of the originals that were looked at, and of the folders they lie in where
    new ones are added."""
    remove_gone: bool = False
    """Whether what was made from originals that are gone is to go."""
    waiting: tuple[str, ...] = ()
    """Originals whose new text waits behind a hand edit."""

    def __iter__(self) -> Iterator[SourceChange]:
        return iter(self.changes)

    @property
    def has_work(self) -> bool:
        """Whether there is anything to be done."""
        return any(one.has_news or (self.remove_gone and one.gone) for one in self.changes)


def look(snapshot: StoreSnapshot, wanted: UpdateRequest) -> UpdatePlan:
    """What changed among originals; changes nothing.

    Args:
        snapshot: The store, its catalog inside a snapshot or a transaction.
        wanted: Which resources are asked for.

    Raises:
        UnknownResourceError: There is none of a name.
    """
    work = _Looking(snapshot, wanted)
    changes = [*(work.change(*record) for record in work.records), *work.new_children()]
    return UpdatePlan(
        changes=tuple(one for one in changes if one.has_news or one.gone),
        outside=tuple(work.outside()),
        watched=tuple(work.watched()),
        remove_gone=wanted.remove_gone,
        waiting=tuple(work.waiting()),
    )


class _Looking:
    """One look at the originals of a store."""

    def __init__(self, snapshot: StoreSnapshot, wanted: UpdateRequest) -> None:
        self._snapshot = snapshot
        self._catalog = snapshot.catalog
        self._wanted = wanted
        self._reachable = source_drift.reachable(snapshot)
        known = [
            (path, resource, source) for path, resource, source, _ in self._catalog.all_records()
        ]
        names = {resource for _, resource, _ in known}
        for name in wanted.resources:
            if name not in names:
                raise UnknownResourceError(
                    f"no document {name!r}{did_you_mean_path(name, names)}",
                    remedy="'filestore ls' lists what is there",
                )
        self.records = [one for one in known if self._is_asked_for(*one[1:])]
        if wanted.around and not self.records:
            raise UsageError(
                f"no document was added from {wanted.around}, inside it or around it",
                remedy=f"filestore add {shlex.quote(str(wanted.around))}",
            )
        asked_for = {path for path, _, _ in self.records}
        self._documents = [one for one in self._catalog.documents() if one[0] in asked_for]

    def _is_asked_for(self, resource: str, source: str) -> bool:
        wanted = self._wanted
        if wanted.resources and resource not in wanted.resources:
            return False
        if wanted.around:
            reachable = self._reachable
            place = reachable.followed(source) or reachable.folder(source)
            place = place or reachable.named(source)
            if not (is_below(wanted.around, place) or is_below(place, wanted.around)):
                return False
        follow = self._snapshot.settings.follow
        return not wanted.followed_only or is_followed(follow, self._reachable, resource, source)

    @cached_property
    def drift(self) -> SourceDrift:
        """What a look at the recorded documents found."""
        return originals.look(self._catalog, self._reachable, documents=self._documents)

    @cached_property
    def _new(self) -> NewFiles:
        wanted = self._wanted
        return source_drift.untracked(
            self._snapshot,
            self._reachable,
            followed_only=wanted.followed_only,
            resources=wanted.resources or None,
        )

    @cached_property
    def _missing(self) -> dict[str, str]:
        seen = self.drift.seen
        return {
            source: digest
            for _, _, source, digest in self._documents
            if source in seen and not seen[source].found and not seen[source].reason
        }

    @cached_property
    def _renamed(self) -> dict[str, str]:
        new = [one.source for one in self._new.files]
        folders = self._new.folders
        found = where_to(self._missing, new, folders, self._catalog, self._reachable)
        moved = self._wanted.moved
        return found | {old: moved[old] for old in self._missing if old in moved}

    @cached_property
    def _edited(self) -> dict[str, str]:
        """Of what was renamed, what was edited as well."""
        moved = {
            old: new
            for old, new in self._wanted.moved.items()
            if old in self._missing
            and originals.found_now(self._catalog, self._reachable, new) != self._missing[old]
        }
        return moved | edited_on_the_way(self._pairs(), self._catalog, self._reachable)

    def _pairs(self) -> Iterator[tuple[str, Sequence[FileRow], str]]:
        """What went alone from a folder that was added, or next to which one alone came."""
        there = {*self._renamed, *self._renamed.values()}
        sources = {path: source for path, _, source in self.records}
        went: dict[tuple[bool, str], list[tuple[str, str]]] = {}
        for path, resource, one, _ in self._documents:
            if one in self._missing and one not in there and not originals.is_copy(one):
                is_file = sources[path] == one
                place = one.rpartition("/")[0] if is_file else resource
                went.setdefault((is_file, place), []).append((one, resource))
        for (is_file, _), [(one, resource), *others] in went.items():
            if others:
                continue
            if is_file:
                came = came_to_folder_of(one, self._catalog, self._reachable)
                rows = [row for row in self._catalog.files_of(resource) if row.origin]
            else:
                came = [each.source for each in self._new.files if each.resource == resource]
                rows = self._catalog.files_from([one])
            came = [each for each in came if each not in there]
            if len(came) == 1:
                yield one, rows, came[0]

    @cached_property
    def _went(self) -> dict[str, str]:
        return self._renamed | self._edited

    @cached_property
    def _moved_folders(self) -> dict[str, str]:
        moved = self._wanted.moved
        return source_drift.moved_folders(
            self._went,
            self._missing,
            self._new.folders,
            documents=[source for _, _, source, _ in self._documents],
            reachable=self._reachable,
        ) | {source: moved[source] for _, _, source in self.records if source in moved}

    @cached_property
    def _waiting(self) -> set[tuple[str, str]]:
        """Documents whose text now waits behind a hand edit, with its hash."""
        return {(one.source, one.document) for one in self._catalog.conflicts()}

    def waiting(self) -> list[str]:
        """Those of the documents that wait for a choice."""
        return sorted({source for _, _, source, _ in self._documents} & dict(self._waiting).keys())

    def outside(self) -> list[str]:
        """What the store may not look at."""
        return self.drift.outside

    @cached_property
    def _elsewhere(self) -> dict[str, str]:
        """The originals of copies, where they may be read."""
        sources = (source for _, _, source, _ in self._documents)
        found = originals.of_copies(self._catalog, sources)
        return {source: path for source, path in found.items() if self._reachable.path(path)}

    def watched(self) -> Iterator[str]:
        """Where the originals lie, the folders in which new ones may come, and their rules."""
        documents = [source for _, _, source, _ in self._documents]
        yield from filter(None, map(self._reachable.path, documents))
        yield from self._elsewhere.values()
        for folder in self._new.entered:
            yield folder
            yield from (os.path.join(folder, name) for name in (OWN_RULES, GIT_RULES))

    def change(self, path: ChunkPath, resource: str, source: str) -> SourceChange:
        """How the originals of one resource differ."""
        documents = [one for one in self._documents if one[0] == path]
        seen = self.drift.seen
        modified = [
            one
            for _, _, one, digest in documents
            if one in seen and seen[one].found not in ("", digest) and not seen[one].reason
            if (one, seen[one].found) not in self._waiting
        ]
        # Where the original of a copy is; "" where there is none, or the store may not look.
        named = self._catalog.originals().get(source)
        where = self._reachable
        copied = "" if named is None else where.followed(named) or where.tree(named) or ""
        elsewhere = [one for _, _, one, _ in documents if copied and one in self._elsewhere]
        again = [
            one
            for one in elsewhere
            if one in self.drift.elsewhere and one not in modified
            if (one, self.drift.elsewhere[one].found) not in self._waiting
        ]
        missing = [one for _, _, one, _ in documents if one in self._missing]
        is_file = [one for _, _, one, _ in documents] == [source]
        home = self._moved_folders.get(source, source)
        place = self._went.get(source, source) if is_file else home
        # What went, and is one of its resource where it went.
        went = [one for one in missing if one in self._went]
        renamed = {
            one: self._went[one] for one in went if one == source or is_below(self._went[one], home)
        }
        gone = [one for one in missing if one not in renamed and (one, "") not in self._waiting]
        modified += [one for one in renamed if one in self._edited]
        there = set(renamed.values())
        new = [
            one.source
            for one in self._new.files
            if one.resource == resource and one.source not in there
        ]
        rows = list(self._catalog.files_from(gone)) if gone else []
        if gone and is_file:
            rows = [row for row in self._catalog.files_of(resource) if row.origin]
        return SourceChange(
            resource=resource,
            record_path=path,
            source=source,
            place=place,
            modified=(*modified, *again),
            copied_from=copied if again else "",
            new=tuple(new),
            renamed=renamed,
            gone=tuple(gone),
            is_all_gone=len(missing) - len(renamed) == len(documents) and not new,
            chunks=len(rows),
            edited=sum(row.edited for row in rows),
        )

    def new_children(self) -> Iterator[SourceChange]:
        """What came to folders each child of which is a resource."""
        there, wanted = set(self._went.values()), self._wanted
        for new in self._new.files:
            place = os.path.realpath(os.path.join(self._snapshot.places.root, new.source))
            is_asked_for = new.is_followed or not wanted.followed_only
            is_asked_for = is_asked_for and (not wanted.around or is_below(place, wanted.around))
            if new.found_in and is_asked_for and new.source not in there:
                yield SourceChange(
                    resource=new.resource,
                    record_path=TOP,
                    source=new.source,
                    place=new.source,
                    new=(new.source,),
                    renamed={},
                    found_in=new.found_in,
                )


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
    """What became of the originals."""
    synced: SyncReport
    """What the sync after that did."""

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.ingested)

    @property
    def added(self) -> list[Outcome]:
        """New children of a folder each child of which is a document."""
        return self.ingested.added

    @property
    def updated(self) -> list[Outcome]:
        """Documents of which files were written."""
        return self.ingested.updated

    @property
    def unchanged(self) -> list[Outcome]:
        """Documents that were read and had nothing to be written."""
        return self.ingested.unchanged

    @property
    def removed(self) -> list[Outcome]:
        """Documents of which nothing is left."""
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


def apply(
    store: Writing, planned: UpdatePlan, on_progress: OnProgress, *, group: str = ""
) -> AddReport:
    """Re-ingest what a plan names, as one change that is undone as one.

    Args:
        store: Written to.
        planned: Made just now, under the same lock.
        on_progress: Called with the progress.
        group: An earlier batch of the same command; "" for none.

    Raises:
        GitBusyError: Git is in the middle of an operation.
    """
    root = store.snapshot.places.root
    sources = []
    for change in planned.changes:
        if not (change.has_news or (planned.remove_gone and change.gone)):
            continue
        if change.found_in:
            folder = os.path.normpath(os.path.join(root, change.found_in))
            path = os.path.join(folder, change.resource)
            child = SourcePath(path=path, resource=change.resource, implied=True, found_in=folder)
            sources.append(child)
            continue
        is_lost, renamed = change.is_all_gone, change.renamed
        source = SourcePath(
            path=change.copied_from or os.path.normpath(os.path.join(root, change.place)),
            resource=change.resource,
            named=True,
            recorded=None if change.copied_from else change.place,
            was=change.source if change.moved_to else None,
            gone="keep" if not planned.remove_gone else "all" if is_lost else "drop",
            drops=None if is_lost else frozenset(change.gone),
            renames={one: renamed[one] for one in change.modified if one in renamed},
        )
        sources.append(source)
    if not sources:
        return AddReport()
    return add_all(
        store,
        sources,
        on_progress=on_progress,
        group=group,
        command="update",
        reachable=source_drift.reachable(store.snapshot),
    )


def run(
    parts: Parts,
    wanted: UpdateRequest,
    *,
    embed: bool = True,
    wait_s: float = DEFAULT_WAIT_S,
    on_progress: OnProgress = ignore,
) -> UpdateReport:
    """Sync the store, re-ingest what changed among originals, and sync what that left.

    Args:
        parts: The store's.
        wanted: Which resources are asked for.
        embed: Whether texts without embedding are embedded now.
        wait_s: How long to wait for another writer.
        on_progress: Called with the progress.

    Raises:
        UnknownResourceError: There is no document of a name.
        GitBusyError: Git is in the middle of an operation, and files were to be written.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused.
    """
    sync = SyncRequest(embed=embed, wait_s=wait_s)
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


def plan(parts: Parts, wanted: UpdateRequest) -> UpdatePlan:
    """What `run` would do, by the catalog as it is; changes nothing.

    Raises:
        CatalogMissingError: There is no catalog yet.
        UnknownResourceError: There is no document of a name.
    """
    with parts.comparing() as catalog:
        return look(parts.snapshot(catalog, None), wanted)
