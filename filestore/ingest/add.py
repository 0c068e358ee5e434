"""Adding: sources through ingest, several being extracted at once, then through commits.

One rule: a source that only a record names is read only where the store may look.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, TypedDict

from msgspec import Struct, field

from filestore.catalog import Conflict, Deleted, FileRow
from filestore.chunking import count_tokens
from filestore.chunks.chunk_file import embed_text
from filestore.chunks.layout import Layout
from filestore.config.layout import Places, folded_path
from filestore.config.user_config import Originals, remember_originals, stored_path
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.paths import CHUNKS, ChunkPath, StorePath, folder_of, inside
from filestore.core.progress import OnProgress, Progress
from filestore.core.schema import JsonObject
from filestore.extract.pool import Extraction
from filestore.fs.disk import WriteFailedError, make_folders
from filestore.git import repository
from filestore.history.write import (
    chunk_files,
    collect_leftovers,
    is_clean,
    is_gone,
    look_at_existing,
)
from filestore.ingest.pipeline import UNCHANGED, Begun, Ingest, OnCopy
from filestore.ingest.regenerate import NewChunk
from filestore.ingest.resource_names import Naming
from filestore.ingest.sources import Outcome, Passed, SourceError, SourcePath, Sources
from filestore.sidecar import fulltext_file, originals
from filestore.sidecar.originals import Reachable
from filestore.sidecar.snapshot import StoreSnapshot, Writing
from filestore.sync.actions import note_sources, put_settled
from filestore.sync.apply import follow_moves
from filestore.verify import source_drift
from filestore.verify.drift import is_as_recorded

COMMIT_FILES: Final = 20_000
"""Chunk files written before they are committed to the sidecar."""
AHEAD_SOURCES: Final = 2
"""How many sources for each worker are read ahead of the one that is being written."""
AHEAD_BYTES: Final = 128 * 1024 * 1024
"""No more is read ahead once this much is held."""
_FIRST_WORDS: Final = 80
"""Characters."""
_DONE: Final = ("added", "updated", "unchanged")
"""What became of a source that is in the store."""


class SourceOutside(RefusedError):
    """A record names a source at which the store may not look; records come from strangers."""


class MergeConflict(TypedDict):
    """A file in which a hand edit and the new source text overlap."""

    path: StorePath
    """Below the store root."""
    detail: str
    """What overlaps."""


class AddReport(JsonObject, Struct, kw_only=True, rename={"problem": "not_embedded"}):
    """What became of every source."""

    KEYS = "added updated unchanged failed conflicts embedded reused problem ignored other skipped"
    SPARSE = "not_embedded ignored other skipped"

    outcomes: list[Outcome] = field(default_factory=list)
    """What became of each source."""
    embedded: int = 0
    """Texts that the model embedded."""
    reused: int = 0
    """Texts whose embedding came from the cache."""
    problem: FilestoreError | None = None
    """Why texts were left without embedding; keywords find them."""
    folders: Sequence[tuple[str, Sources]] = ()
    """Each path that was given, with its sources."""
    unusable: Sequence[tuple[str, FilestoreError]] = ()
    """Each path that is no source, with the reason."""
    not_remembered: FilestoreError | None = None
    """Why it could not be noted where the originals may be looked at."""

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def of(self, status: str) -> list[Outcome]:
        """The outcomes of one kind."""
        return [one for one in self.outcomes if one.status == status]

    @property
    def added(self) -> list[Outcome]:
        """Sources that are new."""
        return self.of("added")

    @property
    def updated(self) -> list[Outcome]:
        """Sources whose text changed."""
        return self.of("updated")

    @property
    def unchanged(self) -> list[Outcome]:
        """Sources that are as they were."""
        return self.of("unchanged")

    @property
    def ignored(self) -> int:
        """Files and folders that ignore rules left out with `--each`."""
        return sum(found.ignored for _, found in self.folders)

    @property
    def other(self) -> int:
        """Files of other formats left out with `--each`."""
        return sum(found.other for _, found in self.folders)

    @property
    def skipped(self) -> list[Passed]:
        """Files left out with `--each` although they may be wanted."""
        return [Passed(*item) for _, found in self.folders for item in found.skipped]

    @property
    def failed(self) -> list[Outcome]:
        """Sources and documents that could not be added."""
        found = [
            Outcome(source=path, typed=path, resource="", status="failed", error=error)
            for path, error in self.unusable
        ]
        for outcome in self.outcomes:
            found += [outcome] if outcome.status == "failed" else []
            found += [
                Outcome(
                    source=path,
                    typed=outcome.as_typed(path),
                    resource=outcome.resource,
                    status="failed",
                    error=error,
                )
                for path, error in outcome.failures
            ]
        return found

    @property
    def conflicts(self) -> list[MergeConflict]:
        """Files in which a hand edit and the new source text overlap."""
        return [
            {"path": CHUNKS.store_path(path), "detail": kept.detail}
            for outcome in self.outcomes
            for path, kept in outcome.kept.items()
        ]

    @property
    def counts(self) -> dict[str, int]:
        """How many documents are in the store, by what became of their source; none that failed."""
        counts = dict.fromkeys(_DONE, 0)
        for outcome in self.outcomes:
            if outcome.status in counts:
                failed = {path for path, _ in outcome.failures}
                counts[outcome.status] += len(outcome.documents.keys() - failed)
        return {status: number for status, number in counts.items() if number}

    @property
    def is_partial(self) -> bool:
        """Whether some of what was asked for is in the store, and some failed."""
        return bool(self.failed and self.counts)


class PlannedChunk(JsonObject, Struct, frozen=True, kw_only=True):
    """A chunk as it would be cut."""

    headings: tuple[str, ...]
    """The titles around it, from the outermost in."""
    pages: tuple[int, ...]
    """Where it lies in its document; none where that has no pages."""
    tokens: int
    """Of headings and text, as the budget counts them."""
    characters: int
    """Of its text."""
    words: str
    """How its text begins, on one line."""


class PlannedDocument(JsonObject, Struct, frozen=True, kw_only=True):
    """A document and its cuts."""

    source: str
    """As it would be recorded: relative to the store root."""
    resource: str
    """The document that it is part of."""
    is_read: bool
    """Whether `add` would read it: it is new, changed, or was cut otherwise."""
    chunks: tuple[PlannedChunk, ...]
    """In reading order."""


class AddPlan(JsonObject, Struct, frozen=True, kw_only=True):
    """What an `add` would cut."""

    documents: tuple[PlannedDocument, ...]
    """Each document, in the order in which they would be read."""
    report: AddReport
    """What cannot be read, and what is left out."""

    KEYS = "documents report.failed"


class _Reading(Struct):
    """How far reading is, in documents; sources that were not looked into count as one."""

    on_progress: OnProgress
    unread: int
    known: int = 0
    done: int = 0

    def begun(self, documents: int) -> None:
        self.unread -= 1
        self.known += documents

    def document(self) -> None:
        self.done += 1
        total = max(self.done, self.known + self.unread)
        self.on_progress(Progress(stage="reading", done=self.done, total=total))


def add_all(
    store: Writing,
    sources: Sequence[SourcePath],
    *,
    on_progress: OnProgress,
    group: str = "",
    command: str = "add",
    on_copy: OnCopy | None = None,
    reachable: Reachable | None = None,
) -> AddReport:
    """Add sources and index what they wrote, as far as their model can be had.

    What it changes is undone together, and with what `group` names, a batch of originals. Before
    originals from outside the work tree are copied `on_copy` is called. With `reachable` the
    sources are those of records, else a person names them, and the store may follow them from now
    on.

    Raises:
        GitBusyError: Git is in the middle of an operation.
    """
    snapshot = store.snapshot
    repository.refuse_during_operation(snapshot.places.root)
    make_folders(snapshot.places.chunked)
    collect_leftovers(snapshot.places)
    naming = Naming(snapshot)
    sources = naming.apart(sources)
    if any(_has_lost(snapshot, naming, source) for source in sources):
        # What was moved was not deleted.
        with store.open_commit() as commit:
            follow_moves(snapshot, commit, clock=store.clock)
    extraction = Extraction(workers=snapshot.processes)
    ingest = Ingest(
        snapshot,
        naming=naming,
        extraction=extraction,
        group=group,
        command=command,
        on_copy=on_copy,
        lists=reachable.lists if reachable is not None else None,
    )
    report = AddReport()
    waiting: list[Outcome] = []
    try:
        for outcome in _ingested(ingest, sources, snapshot.processes, on_progress):
            report.outcomes.append(outcome)
            waiting.append(outcome)
            files = sum(len(outcome.written) + len(outcome.removed) for outcome in waiting)
            if len(report.outcomes) == len(sources) or files >= COMMIT_FILES:
                _index(store, waiting, on_progress, report)
                waiting = []
    finally:
        extraction.close()
    _remember(snapshot, sources, report, by_person=reachable is None)
    return report


def plan_all(
    snapshot: StoreSnapshot, sources: Sequence[SourcePath], *, on_progress: OnProgress
) -> AddPlan:
    """How the documents of sources would be cut; changes nothing."""
    extraction = Extraction(workers=snapshot.processes)
    naming = Naming(snapshot)
    ingest = Ingest(snapshot, naming=naming, extraction=extraction)
    report, planned = AddReport(), list[PlannedDocument]()
    try:
        for number, source in enumerate(sources, 1):
            begun = ingest.begin(source)
            resource = begun.outcome.resource
            for path, chunks, is_read in ingest.cuts(begun):
                cut = tuple(map(_planned, chunks))
                planned.append(
                    PlannedDocument(source=path, resource=resource, is_read=is_read, chunks=cut)
                )
            if begun.outcome.error is None:
                begun.outcome.status = UNCHANGED
            report.outcomes.append(begun.outcome)
            on_progress(Progress(stage="reading", done=number, total=len(sources)))
    finally:
        extraction.close()
    return AddPlan(documents=tuple(planned), report=report)


def _planned(chunk: NewChunk) -> PlannedChunk:
    return PlannedChunk(
        headings=chunk.headings,
        pages=chunk.pages,
        tokens=count_tokens(embed_text(chunk.headings, chunk.body)),
        characters=len(chunk.body),
        words=" ".join(chunk.body[: 4 * _FIRST_WORDS].split())[:_FIRST_WORDS],
    )


def _remember(
    snapshot: StoreSnapshot, sources: Sequence[SourcePath], report: AddReport, *, by_person: bool
) -> None:
    """Note on this user's side where the store may look for what was added, and what it is called.

    Of what records name only the documents of a folder that a person added are noted.
    """
    places, known = snapshot.places, snapshot.originals
    done = [
        (source.found_in or source.path, outcome)
        for source, outcome in zip(sources, report.outcomes, strict=False)
        if outcome.status != "failed"
    ]
    if by_person:
        named = [path for path, _ in done]
        more = source_drift.reachable(snapshot).given_to_add(named)
    else:
        done = [one for one in done if stored_path(os.path.realpath(one[0])) in known.given]
        more = Originals()
    added = set[str]()
    for _, outcome in done:
        added |= outcome.documents.keys()
        if outcome.original is not None:
            ends = (one[len(outcome.source) :] for one in outcome.documents)
            added |= {outcome.original + end for end in ends}
    where = Reachable(places, known.joined(more))
    closed = [os.path.join(places.root, one) for one in added if where.path(one) is None]
    files = frozenset(stored_path(os.path.realpath(path)) for path in closed)
    more = more.joined(Originals(files=files))
    if known.joined(more) == known:
        return
    try:
        if places.configuration:
            remember_originals(places.configuration, places.root, more)
    except WriteFailedError as error:
        report.not_remembered = error


def _has_lost(snapshot: StoreSnapshot, naming: Naming, source: SourcePath) -> bool:
    """Whether catalogued files of a source's resource are gone."""
    try:
        named = naming.name(source)
    except (FilestoreError, OSError):
        return False
    documents = named.before.documents if named.before is not None else ()
    rows = _rows(snapshot, named.prefix, [document.source for document in documents])
    return any(is_gone(snapshot.places, row.path) for row in rows)


def _rows(snapshot: StoreSnapshot, folder: str, sources: Sequence[str]) -> list[FileRow]:
    """The catalogued files of a resource: by its folder, in the flat layout by its documents."""
    return snapshot.catalog.files_of(folder) if folder else snapshot.catalog.files_from(sources)


def recorded_sources(
    places: Places, layout: Layout, record_paths: Sequence[ChunkPath], reachable: Reachable
) -> list[SourcePath]:
    """The sources of some records, as `add_all` takes them, to bring their resources up to date.

    Of a copy from elsewhere it is the copy under `source/`.

    Args:
        places: Where the store lies.
        layout: Its layout.
        record_paths: Below `chunked/`.
        reachable: Where the store may look.

    Raises:
        SourceOutside: The store may not look at a source.
        SourceError: There is no usable record.
    """
    looks = {look.path: look for look in look_at_existing(places, record_paths, layout)}
    found = []
    for path in record_paths:
        record = looks[path].record if path in looks else None
        if record is None:
            raise SourceError(
                f"{CHUNKS.store_path(path)} is not a usable record"
                ": restore it from git, or add its source again",
            )
        source = os.path.normpath(os.path.join(places.root, record.source.replace("\0", "")))
        leads = reachable.tree if record.kind == "folder" else reachable.followed
        if leads(record.source) is None:
            if reachable.is_outside(record.source):
                raise SourceOutside(
                    f"the source {record.source!r} lies outside the work tree",
                    remedy="filestore trust",
                )
            raise SourceOutside(
                f"the source {record.source!r} is hidden or of no known format, and you did not"
                " add it"
                "; add it yourself: filestore add PATH",
            )
        name = record.resource or path.partition("/")[0]
        found.append(SourcePath(path=source, resource=name, named=True, recorded=record.source))
    return found


def _ingested(
    ingest: Ingest, sources: Sequence[SourcePath], workers: int, on_progress: OnProgress
) -> Iterator[Outcome]:
    """Outcomes in the order of the sources; a few sources are extracted ahead."""
    reading = _Reading(on_progress, len(sources))
    ahead: deque[Begun] = deque()
    for source in sources:
        begun = ingest.begin(source)
        names = {folded_path(begun.outcome.resource), begun.outcome.source, source.path}
        # The same source, a document in common, or the same name.
        if any(
            names & {folded_path(other.outcome.resource), other.outcome.source}
            or begun.outcome.source in other.fresh
            or not begun.fresh.keys().isdisjoint(other.fresh)
            for other in ahead
        ):
            # What the other one writes decides what becomes of this one.
            yield from _finished(ingest, ahead, reading, keep=0)
            begun = ingest.begin(source)
        reading.begun(max(1, len(begun.fresh)))
        ahead.append(begun)
        held = sum(other.held_bytes for other in ahead)
        room = AHEAD_SOURCES * workers if held < AHEAD_BYTES else 0
        yield from _finished(ingest, ahead, reading, keep=room)
    yield from _finished(ingest, ahead, reading, keep=0)


def _finished(
    ingest: Ingest, ahead: deque[Begun], reading: _Reading, *, keep: int
) -> Iterator[Outcome]:
    while len(ahead) > keep:
        yield ingest.finish(ahead.popleft(), reading.document)


def _index(
    store: Writing, outcomes: Sequence[Outcome], on_progress: OnProgress, report: AddReport
) -> None:
    snapshot = store.snapshot
    changes = _changes(snapshot, outcomes)
    known = {conflict.path: conflict for conflict in snapshot.catalog.conflicts()}
    waiting = [conflict for outcome in outcomes for conflict in _waiting(snapshot, outcome)]
    fresh = [conflict for conflict in waiting if known.get(conflict.path) != conflict]
    looked_at = {path for outcome in outcomes for path in outcome.looked_at}
    kept = {path for outcome in outcomes for path in outcome.kept}
    # Known conflicts that are none any more: of files that were looked at, or are gone.
    settled = [
        path
        for path in known.keys() - kept
        if path in looked_at or not os.path.lexists(os.path.join(snapshot.places.chunked, path))
    ]
    behind = fulltext_file.findings(snapshot.places, snapshot.catalog, hashes=False)
    if not (changes or settled or fresh or behind):
        return
    with store.open_commit() as commit:
        for outcome in outcomes:
            for origin, body in outcome.generated.items():
                commit.catalog.keep_generated(origin, body.encode())
            if outcome.original is not None:
                commit.catalog.set_meta(f"original:{outcome.source}", outcome.original)
        commit.forget(list(changes.gone))
        commit.forget(list(changes.lost), by_hand=True)
        commit.catalog.delete_conflicts(settled)
        for conflict in fresh:
            commit.catalog.put_conflict(conflict)
        put_settled(snapshot, commit, list(changes.put), store.clock, on_progress)
        for outcome in outcomes:
            gone = outcome.deleted.values()
            deleted = [Deleted(path=one.path, origin=one.origin, source=one.source) for one in gone]
            commit.stay_deleted(outcome.record_path, deleted)
        note_sources(snapshot, commit, store.clock, on_progress)
        done = commit.finish()
    report.embedded += done.embedded
    report.reused += done.reused
    report.problem = report.problem or done.problem


def _waiting(snapshot: StoreSnapshot, outcome: Outcome) -> Iterator[Conflict]:
    where = source_drift.reachable(snapshot)
    for path, kept in outcome.kept.items():
        document = outcome.documents.get(kept.source)
        if document is None:
            # It is no document of its folder any more, and may lie there all the same.
            document = originals.found_now(snapshot.catalog, where, kept.source)
        yield Conflict(
            path=path,
            base=kept.base,
            theirs=kept.theirs,
            origin=kept.origin,
            headings=kept.headings,
            pages=kept.pages,
            detail=kept.detail,
            source=kept.source,
            document=document or "",
        )


class _Changes(Struct):
    """Files whose rows have to change."""

    put: dict[ChunkPath, None] = field(default_factory=dict)
    gone: dict[ChunkPath, None] = field(default_factory=dict)
    """Removed by what was added."""
    lost: dict[ChunkPath, None] = field(default_factory=dict)
    """Deleted by a person."""

    def __bool__(self) -> bool:
        return bool(self.put or self.gone or self.lost)


def _changes(snapshot: StoreSnapshot, outcomes: Sequence[Outcome]) -> _Changes:
    """What sources wrote and removed, and what else of their resources is not as it is known.

    An `add` that was killed before it indexed leaves such files, and so does an edit.
    """
    done = _Changes()
    for outcome in outcomes:
        done.put |= dict.fromkeys(outcome.written)
        done.gone |= dict.fromkeys(outcome.removed)
    others: dict[ChunkPath, None] = {}
    for outcome in outcomes:
        if outcome.status != "failed":
            folder = folder_of(outcome.record_path)
            names = chunk_files(os.path.join(snapshot.places.chunked, folder)) if folder else ()
            files = [inside(folder, name) for name in names]
            there = dict.fromkeys([outcome.record_path, *files, *outcome.looked_at])
            others |= there
            rows = _rows(snapshot, folder, list(outcome.documents))
            gone = (row.path for row in rows if row.path not in there)
            done.lost |= {path: None for path in gone if is_gone(snapshot.places, path)}
    folders = snapshot.catalog.folders()
    entries: dict[ChunkPath, dict[str, bytes]] = {}
    unsure = []
    for path in others.keys() - done.put.keys() - done.gone.keys():
        folder, name = folder_of(path), path.rpartition("/")[2]
        if folder not in entries:
            entries[folder] = folders[folder].entries() if folder in folders else {}
        if not is_clean(snapshot.places, path, entries[folder].get(name)):
            unsure.append(path)
    known = snapshot.catalog.files(unsure)
    for look in look_at_existing(snapshot.places, sorted(unsure), snapshot.layout):
        row = known.get(look.path)
        if row is None or not is_as_recorded(row, look):
            done.put[look.path] = None
    done.lost = {path: None for path in done.lost if path not in done.gone}
    return done
