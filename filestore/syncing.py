"""Syncing: the sidecar brought in step with the files, every safe repair applied in one commit.

Writes no truth file, but takes away the temporary files of dead writers. What needs a person, or
touches a file, is left and said; `repair` plans that.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from filestore import catalog_findings, checking_sources, drift, source_drift, verify
from filestore.errors import FilestoreError
from filestore.fileio import FileSystemClock
from filestore.findings import Finding, worst_first
from filestore.indexing import BATCH, Commit
from filestore.observation import Observation
from filestore.progress import OnProgress, Progress, ignore, part_of
from filestore.subject import Subject

INDEX_CODES: Final = frozenset(
    {"index-missing", "index-damaged", "index-behind", "index-foreign", "metric-mismatch"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What `sync` did."""

    generation: int
    applied: tuple[Finding, ...]
    remaining: tuple[Finding, ...]
    embedded: int
    reused: int
    mass_missing: bool = False
    problem: FilestoreError | None = None
    """Why texts were left without embedding, where they were to be embedded."""


def _every(_: Finding) -> bool:
    return True


@dataclass(slots=True)
class _Pass:
    """One pass over what may differ."""

    chosen: Callable[[Finding], bool] = _every
    applied: list[Finding] = field(default_factory=list)
    remaining: list[Finding] = field(default_factory=list)
    written: bool = False


def sync(
    subject: Subject,
    commit: Commit,
    *,
    clock: FileSystemClock,
    forget_missing: bool,
    on_progress: OnProgress,
    chosen: Callable[[Finding], bool] | None = None,
) -> SyncReport:
    """Bring the sidecar in step with the files, in the commit that is open.

    Args:
        subject: The store, its catalog being the one the commit writes to.
        commit: Entered by the caller; finished here unless nothing is to be written.
        clock: The file system's.
        forget_missing: Whether a mass of missing files is meant to be gone.
        on_progress: Told how many files were looked at.
        chosen: Which findings are to be mended; the others remain. None for all.
    """
    catalog = subject.catalog
    seen = drift.detect(
        subject.places,
        catalog,
        layout=subject.layout,
        deleted=subject.deleted,
        mass_allowed=forget_missing,
        processes=subject.processes,
        unmerged=subject.unmerged,
    )
    work = _Pass(chosen=chosen or _every, remaining=list(seen.findings))
    moved = [old for old, _ in (*seen.moves, *seen.edited_moves)]
    looked_at = {*seen.look, *seen.gone, *moved}
    seen = _narrowed(seen, work)
    for finding in drift.standing_findings(catalog, looked_at):
        if finding.code == "leftovers" and work.chosen(finding):
            _collect(subject, commit, finding, work)
        else:
            work.remaining.append(finding)
    _settle_sidecar(subject, commit, work)
    _follow_moves(seen, commit, clock, work)
    _forget(seen, commit, work)
    _index(subject, seen, commit, clock, work, on_progress)
    sources = note_sources(subject, commit, clock, on_progress)
    stale = catalog_findings.stale_conflicts(catalog)
    commit.settle_conflicts(stale, ())
    work.written = work.written or bool(sources.read or stale)
    report = commit.finish() if work.written else None
    if report is not None and subject.embedder is not None:
        work.remaining += verify.not_embedded(catalog)
    work.remaining += source_drift.findings(catalog, sources)
    work.remaining += _left_to_a_person(subject, work)
    return SyncReport(
        generation=report.generation if report else catalog.generation,
        applied=tuple(worst_first(work.applied)),
        remaining=tuple(worst_first(list(dict.fromkeys(work.remaining)))),
        embedded=report.embedded if report else 0,
        reused=report.reused if report else 0,
        mass_missing=seen.mass_missing,
        problem=commit.problem,
    )


def _left_to_a_person(subject: Subject, work: _Pass) -> Iterator[Finding]:
    """What no sync can mend, so that it ends as `status` does."""
    yield from catalog_findings.open_matters(subject)
    yield from catalog_findings.warnings(subject, {finding.code for finding in work.remaining})


def follow_moves(subject: Subject, commit: Commit, *, clock: FileSystemClock) -> None:
    """Follow the files that were moved, and nothing else, in the commit that is open."""
    sync(
        subject,
        commit,
        clock=clock,
        forget_missing=False,
        on_progress=ignore,
        chosen=lambda finding: finding.code == "moved",
    )


def _settle_sidecar(subject: Subject, commit: Commit, work: _Pass) -> None:
    """Repair the derived files; what hangs on texts is repaired with them."""
    found = verify.sidecar_findings(subject, hashes=True)
    work.remaining += [finding for finding in found if not work.chosen(finding)]
    found = [finding for finding in found if work.chosen(finding)]
    codes = {finding.code for finding in found}
    if codes & INDEX_CODES and subject.embedder is not None:
        commit.want_index()
    if codes & {"fulltext-damaged", "fulltext-mismatch"}:
        commit.want_fulltext()
    if commit.note_lost_embeddings():
        codes.add("vector-missing")
        detail = "embeddings were gone"
        path = ".sidecar/embeddings.sqlite"
        lost = Finding(code="embeddings-damaged", path=path, detail=detail)
        (found if work.chosen(lost) else work.remaining).append(lost)
    if "vector-missing" in codes and commit.embeds:
        commit.embed_missing()
    for finding in found:
        needs_model = finding.code in INDEX_CODES and subject.embedder is None
        needs_embedding = finding.code == "vector-missing" and not commit.embeds
        if finding.safe and not needs_model and not needs_embedding:
            work.applied.append(finding)
            work.written = True
        else:
            work.remaining.append(finding)


def _narrowed(seen: drift.Drift, work: _Pass) -> drift.Drift:
    """What was seen without the moves and losses that are not to be followed."""
    left = {found.path for found in drift.missing_findings(seen) if not work.chosen(found)}
    if not left or seen.mass_missing:
        return seen
    work.remaining += [found for found in drift.missing_findings(seen) if found.path in left]
    return replace(
        seen,
        moves=tuple(pair for pair in seen.moves if drift.root_path(pair[1].path) not in left),
        edited_moves=tuple(
            pair for pair in seen.edited_moves if drift.root_path(pair[1]) not in left
        ),
        look=tuple(
            path
            for path in seen.look
            if drift.root_path(path) not in left or path not in dict(seen.edited_moves).values()
        ),
        gone=tuple(path for path in seen.gone if drift.root_path(path) not in left),
    )


def note_sources(
    subject: Subject, commit: Commit, clock: FileSystemClock, on_progress: OnProgress
) -> source_drift.SourceDrift:
    """Look at the originals that records name, and record the stats of those that were read."""
    reachable = checking_sources.reachable(subject)
    sources = source_drift.look(subject.catalog, reachable, clock=clock, on_progress=on_progress)
    commit.note_sources(source_drift.entries(sources))
    return sources


def _follow_moves(seen: drift.Drift, commit: Commit, clock: FileSystemClock, work: _Pass) -> None:
    if not seen.moves and not seen.edited_moves:
        return
    stamps = [max(look.values[1:3]) for _, look in seen.moves]
    commit.move(seen.moves, clock.wait_past(max(stamps, default=0)))
    commit.repoint(seen.edited_moves)
    work.applied += [finding for finding in drift.missing_findings(seen) if finding.code == "moved"]
    work.remaining += drift.withheld_moves(seen)
    work.written = True


def _forget(seen: drift.Drift, commit: Commit, work: _Pass) -> None:
    found = [finding for finding in drift.missing_findings(seen) if finding.code != "moved"]
    if seen.mass_missing:
        work.remaining += found
    elif seen.gone:
        commit.forget(seen.gone, by_hand=True)
        work.applied += found
        work.written = True


def _index(
    subject: Subject,
    seen: drift.Drift,
    commit: Commit,
    clock: FileSystemClock,
    work: _Pass,
    on_progress: OnProgress,
) -> None:
    done = 0
    for read_from_ns, looks, failures in settled(subject, seen.look, clock, seen.latest_stamp_ns):
        known = subject.catalog.files([look.path for look in looks])
        changed: list[Observation] = []
        for look in looks:
            row = known.get(look.path)
            finding = drift.classify(row, look)
            if finding is not None and not work.chosen(finding):
                work.remaining.append(finding)
                continue
            if finding is not None and finding.code == "leftovers":
                _collect(subject, commit, finding, work)
                continue
            if finding is not None:
                (work.applied if finding.safe else work.remaining).append(finding)
            work.written = True
            if row is not None and drift.is_as_recorded(row, look):
                commit.refresh([look], read_from_ns)
            else:
                changed.append(look)
        on_share = part_of(
            on_progress, "indexing", done=done, part=len(looks), total=len(seen.look)
        )
        commit.put(changed, read_from_ns, on_share)
        for path, error in failures:
            work.remaining += drift.unreadable(path, error)
        done += len(looks) + len(failures)
        on_progress(Progress(stage="indexing", done=done, total=len(seen.look)))


def _collect(subject: Subject, commit: Commit, finding: Finding, work: _Pass) -> None:
    """Remove the temporary file of a dead writer: this writer's lock says that it is dead."""
    path = finding.path.removeprefix(f"{drift.CHUNKED}/")
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(subject.places.chunked, path))
    commit.forget([path])
    work.applied.append(finding)
    work.written = True


def put_settled(
    subject: Subject,
    commit: Commit,
    paths: Sequence[str],
    clock: FileSystemClock,
    on_progress: OnProgress,
) -> None:
    """Put files that were written just now into a commit."""
    done = 0
    for read_from_ns, looks, failures in settled(subject, paths, clock, clock.now_ns()):
        on_share = part_of(on_progress, "indexing", done=done, part=len(looks), total=len(paths))
        commit.put(looks, read_from_ns, on_share)
        done += len(looks) + len(failures)
        on_progress(Progress(stage="indexing", done=done, total=len(paths)))


def settled(
    subject: Subject, paths: Sequence[str], clock: FileSystemClock, latest_stamp_ns: int
) -> Iterator[tuple[int, list[Observation], list[tuple[str, OSError]]]]:
    """Read files in batches, after the clock has moved past their newest stamp.

    A file that is written meanwhile is remembered as one to be read again.

    Yields:
        The clock's reading from before the batch was read, the observations, and what failed.
    """
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
        read_from_ns = clock.wait_past(latest_stamp_ns)
        looks: list[Observation] = []
        failures: list[tuple[str, OSError]] = []
        for look in drift.look_at(subject.places, batch, subject.layout, unmerged=subject.unmerged):
            if isinstance(look, Observation):
                looks.append(look)
            else:
                failures.append(look)
        yield read_from_ns, looks, failures
