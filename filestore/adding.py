"""Adding: sources through ingest, several being extracted at once, then through commits.

One rule: a source that only a record names is read only where the work tree holds it.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from filestore import syncing, worktree
from filestore.catalog import Conflict
from filestore.drift import folded_path
from filestore.errors import FilestoreError, RefusedError
from filestore.extraction import Extraction
from filestore.fileio import FileSystemClock
from filestore.hashing import content_hash
from filestore.indexing import Commit
from filestore.ingest import UNCHANGED, Begun, Ingest, Outcome
from filestore.lineage import Lineage
from filestore.naming import Naming
from filestore.places import Places
from filestore.progress import OnProgress, Progress
from filestore.settings import Layout, Settings
from filestore.sources import SourceError, SourcePath, inside
from filestore.subject import Subject
from filestore.truth import chunk_files, look_at_existing

COMMIT_FILES: Final = 20_000
"""Chunk files written before they are committed to the sidecar."""
AHEAD_SOURCES: Final = 2
"""So many sources for each worker are read ahead of the one that is being written."""
AHEAD_BYTES: Final = 128 * 1024 * 1024
"""No more is read ahead once this much is held."""


class SourceOutside(RefusedError):
    """A record names a source that the work tree does not hold; records come from strangers."""


@dataclass(slots=True, kw_only=True)
class AddReport:
    """What became of every source."""

    outcomes: list[Outcome] = field(default_factory=list)
    embedded: int = 0
    reused: int = 0
    problem: FilestoreError | None = None
    """Why texts were left without embedding; keywords find them."""


@dataclass(slots=True)
class _Reading:
    """How far reading is, in documents; sources that nobody looked into count as one."""

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
    subject: Subject,
    open_commit: Callable[[], Commit],
    settings: Settings,
    sources: Sequence[SourcePath],
    *,
    clock: FileSystemClock,
    on_progress: OnProgress,
) -> AddReport:
    """Add sources and index what they wrote, as far as their model can be had.

    Raises:
        GitBusyError: Git is in the middle of an operation.
    """
    worktree.refuse_during_operation(subject.places.root)
    os.makedirs(subject.places.chunked, exist_ok=True)
    naming = Naming(
        subject.places,
        settings.layout,
        originals=subject.catalog.originals(),
        owners=subject.catalog.sources_of_resources(),
    )
    extraction = Extraction(workers=subject.processes)
    ingest = Ingest(
        subject.places,
        settings,
        subject.embedder,
        naming=naming,
        extraction=extraction,
        lineage=Lineage(subject.places, settings.layout, subject.catalog),
    )
    report = AddReport()
    waiting: list[Outcome] = []
    try:
        for outcome in _ingested(ingest, sources, subject.processes, on_progress):
            report.outcomes.append(outcome)
            waiting.append(outcome)
            if len(report.outcomes) == len(sources) or _files(waiting) >= COMMIT_FILES:
                _index(subject, open_commit, waiting, clock, on_progress, report)
                waiting = []
    finally:
        extraction.close()
    return report


def recorded_sources(
    places: Places, layout: Layout, record_paths: Sequence[str], *, trusted: bool = False
) -> list[SourcePath]:
    """The sources of some records, as `add_all` takes them, to bring their resources up to date.

    Of a copy from elsewhere it is the copy under `source/`.

    Args:
        places: Where the store lies.
        layout: Its layout.
        record_paths: Below `chunked/`.
        trusted: Whether the user lets the store reach out of its work tree.

    Raises:
        SourceOutside: A source lies, or leads, out of the work tree.
        SourceError: There is no usable record.
    """
    looks = {look.path: look for look in look_at_existing(places, record_paths, layout)}
    found = []
    for path in record_paths:
        record = looks[path].record if path in looks else None
        if record is None:
            raise SourceError(
                f"chunked/{path} is not a usable record",
                remedy="restore it from git, or add its source again",
            )
        source = os.path.normpath(os.path.join(places.root, record.source.replace("\0", "")))
        if not trusted:
            _check_inside(places.root, record.source, source)
        name = record.resource or path.partition("/")[0]
        found.append(SourcePath(path=source, resource=name, named=True, recorded=record.source))
    return found


def _check_inside(root: str, reference: str, path: str) -> None:
    tree = os.path.realpath(worktree.work_tree(root))
    lexically = inside(path, os.path.realpath(tree)) or inside(path, worktree.work_tree(root))
    if "\0" in reference or os.path.isabs(reference) or not lexically:
        leads = ""
    elif not inside(os.path.realpath(path), tree):
        leads = ": a link leads there"
    else:
        return
    raise SourceOutside(
        f"the source {reference!r} lies outside the work tree {tree}{leads}",
        remedy="'filestore trust' lets a store whose records you know reach out, else add it anew",
    )


def _ingested(
    ingest: Ingest, sources: Sequence[SourcePath], workers: int, on_progress: OnProgress
) -> Iterator[Outcome]:
    """Outcomes in the order of the sources; a few sources are extracted ahead."""
    reading = _Reading(on_progress, len(sources))
    ahead: deque[Begun] = deque()
    for source in sources:
        begun = ingest.begin(source)
        if any(_alike(begun, other) for other in ahead):
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


def _alike(one: Begun, other: Begun) -> bool:
    """Whether two sources may be the same, or want the same name."""
    names = {folded_path(one.outcome.resource), one.outcome.source, one.source.path}
    return bool(names & {folded_path(other.outcome.resource), other.outcome.source})


def _files(outcomes: Iterable[Outcome]) -> int:
    return sum(len(outcome.written) + len(outcome.removed) for outcome in outcomes)


def _index(
    subject: Subject,
    open_commit: Callable[[], Commit],
    outcomes: Sequence[Outcome],
    clock: FileSystemClock,
    on_progress: OnProgress,
    report: AddReport,
) -> None:
    changes = [_changes(subject, outcome) for outcome in outcomes]
    written = [path for paths, _ in changes for path in paths]
    removed = [path for _, paths in changes for path in paths]
    known = {conflict.path: conflict for conflict in subject.catalog.conflicts()}
    waiting = [conflict for outcome in outcomes for conflict in _waiting(outcome)]
    fresh = [conflict for conflict in waiting if known.get(conflict.path) != conflict]
    settled = _settled(subject.places, outcomes, known)
    if not (written or removed or settled or fresh):
        return
    with open_commit() as commit:
        for outcome in outcomes:
            for origin, body in outcome.generated.items():
                commit.keep_generated(origin, body)
            if outcome.original is not None:
                commit.note_original(outcome.source, outcome.original)
        commit.forget(removed)
        commit.settle_conflicts(settled, fresh)
        syncing.put_settled(subject, commit, list(dict.fromkeys(written)), clock, on_progress)
        syncing.note_sources(subject, commit, clock, on_progress)
        done = commit.finish()
    report.embedded += done.embedded
    report.reused += done.reused
    report.problem = report.problem or done.problem


def _waiting(outcome: Outcome) -> Iterator[Conflict]:
    for path, kept in outcome.kept.items():
        yield Conflict(
            path=path,
            base=kept.base,
            theirs=kept.theirs,
            origin=kept.origin,
            headings=kept.headings,
            pages=kept.pages,
            detail=kept.detail,
        )


def _settled(
    places: Places, outcomes: Sequence[Outcome], known: Mapping[str, Conflict]
) -> list[str]:
    """Known conflicts that are none any more: of files that were looked at, or are gone."""
    looked_at = {path for outcome in outcomes for path in outcome.looked_at}
    waiting = {path for outcome in outcomes for path in outcome.kept}
    return [
        path
        for path in known
        if path not in waiting
        and (path in looked_at or not os.path.lexists(os.path.join(places.chunked, path)))
    ]


def _changes(subject: Subject, outcome: Outcome) -> tuple[list[str], list[str]]:
    """What a source wrote and removed; or an `add` that was interrupted before it was indexed."""
    if outcome.status != UNCHANGED or _is_indexed(subject, outcome.record_path):
        return outcome.written, outcome.removed
    folder = outcome.record_path.rpartition("/")[0]
    found = chunk_files(os.path.join(subject.places.chunked, folder))
    there = [outcome.record_path, *(f"{folder}/{name}" if folder else name for name in found)]
    known = {row.path for row in subject.catalog.files_of(outcome.resource)} if folder else set()
    return there, sorted(known.difference(there))


def _is_indexed(subject: Subject, record_path: str) -> bool:
    row = subject.catalog.files([record_path]).get(record_path)
    with open(os.path.join(subject.places.chunked, record_path), "rb") as file:
        return row is not None and row.file_hash == content_hash(file.read())
