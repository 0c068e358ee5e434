"""Syncing: the sidecar brought in step with the files, every safe repair applied in one commit.

Writes no truth file, but takes away the temporary files of dead writers. What needs a person, or
touches a file, is left and said; `repair` plans that.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from filestore import drift, verify
from filestore.errors import FilestoreError
from filestore.fileio import FileSystemClock
from filestore.findings import Finding, worst_first
from filestore.indexing import BATCH, Commit
from filestore.observation import Observation
from filestore.progress import OnProgress, Progress, part_of

INDEX_CODES: Final = frozenset({"index-missing", "index-damaged", "index-behind"})


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


@dataclass(slots=True)
class _Pass:
    """One pass over what may differ."""

    applied: list[Finding] = field(default_factory=list)
    remaining: list[Finding] = field(default_factory=list)
    written: bool = False


def sync(
    subject: verify.Subject,
    commit: Commit,
    *,
    clock: FileSystemClock,
    forget_missing: bool,
    on_progress: OnProgress,
) -> SyncReport:
    """Bring the sidecar in step with the files, in the commit that is open.

    Args:
        subject: The store, its catalog being the one the commit writes to.
        commit: Entered by the caller; finished here unless nothing is to be written.
        clock: The file system's.
        forget_missing: Whether a mass of missing files is meant to be gone.
        on_progress: Told how many files were looked at.
    """
    catalog = subject.catalog
    seen = drift.detect(
        subject.places,
        catalog,
        layout=subject.layout,
        deleted=subject.deleted,
        mass_allowed=forget_missing,
        processes=subject.processes,
    )
    work = _Pass(remaining=list(seen.findings))
    looked_at = {*seen.look, *seen.gone, *(old for old, _ in seen.moves)}
    for finding in drift.standing_findings(catalog, looked_at):
        if finding.code == "leftovers":
            _collect(subject, commit, finding, work)
        else:
            work.remaining.append(finding)
    _settle_sidecar(subject, commit, work)
    _follow_moves(seen, commit, clock, work)
    _forget(seen, commit, work)
    _index(subject, seen, commit, clock, work, on_progress)
    report = commit.finish() if work.written else None
    if report is not None and subject.embedder is not None:
        work.remaining += verify.not_embedded(subject.catalog)
    return SyncReport(
        generation=report.generation if report else catalog.generation,
        applied=tuple(worst_first(work.applied)),
        remaining=tuple(worst_first(list(dict.fromkeys(work.remaining)))),
        embedded=report.embedded if report else 0,
        reused=report.reused if report else 0,
        mass_missing=seen.mass_missing,
        problem=commit.problem,
    )


def _settle_sidecar(subject: verify.Subject, commit: Commit, work: _Pass) -> None:
    """Repair the derived files; what hangs on texts is repaired with them."""
    found = verify.sidecar_findings(subject, hashes=True)
    codes = {finding.code for finding in found}
    if codes & INDEX_CODES and subject.embedder is not None:
        commit.want_index()
    if codes & {"fulltext-damaged", "fulltext-mismatch"}:
        commit.want_fulltext()
    if commit.note_lost_embeddings():
        codes.add("vector-missing")
        detail = "embeddings were gone"
        path = ".sidecar/embeddings.sqlite"
        found.append(Finding(code="embeddings-damaged", path=path, detail=detail))
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


def _follow_moves(seen: drift.Drift, commit: Commit, clock: FileSystemClock, work: _Pass) -> None:
    if not seen.moves:
        return
    stamps = [max(look.values[1:3]) for _, look in seen.moves]
    commit.move(seen.moves, clock.wait_past(max(stamps)))
    work.applied += [finding for finding in drift.missing_findings(seen) if finding.code == "moved"]
    for _, look in seen.moves:
        finding = drift.classify(None, look)
        if finding is not None and finding.code != "untracked":
            # It is withheld under its new name too.
            work.remaining.append(finding)
    work.written = True


def _forget(seen: drift.Drift, commit: Commit, work: _Pass) -> None:
    found = [finding for finding in drift.missing_findings(seen) if finding.code != "moved"]
    if seen.mass_missing:
        work.remaining += found
    elif seen.gone:
        commit.forget(seen.gone)
        work.applied += found
        work.written = True


def _index(
    subject: verify.Subject,
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
            if finding is not None and finding.code == "leftovers":
                _collect(subject, commit, finding, work)
                continue
            if finding is not None:
                (work.applied if finding.safe else work.remaining).append(finding)
            if row is not None and drift.is_as_recorded(row, look):
                commit.refresh([look], read_from_ns)
            else:
                changed.append(look)
        on_share = part_of(
            on_progress, "indexing", done=done, part=len(looks), total=len(seen.look)
        )
        commit.put(changed, read_from_ns, on_share)
        for path, error in failures:
            work.remaining += verify.unreadable(path, error)
        work.written = work.written or bool(looks)
        done += len(looks) + len(failures)
        on_progress(Progress(stage="indexing", done=done, total=len(seen.look)))


def _collect(subject: verify.Subject, commit: Commit, finding: Finding, work: _Pass) -> None:
    """Remove the temporary file of a dead writer: this writer's lock says that it is dead."""
    path = finding.path.removeprefix(f"{drift.CHUNKED}/")
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(subject.places.chunked, path))
    commit.forget([path])
    work.applied.append(finding)
    work.written = True


def put_settled(
    subject: verify.Subject,
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
    subject: verify.Subject, paths: Sequence[str], clock: FileSystemClock, latest_stamp_ns: int
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
        for look in drift.look_at(subject.places, batch, subject.layout):
            if isinstance(look, Observation):
                looks.append(look)
            else:
                failures.append(look)
        yield read_from_ns, looks, failures
