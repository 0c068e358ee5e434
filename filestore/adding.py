"""Adding: each source through ingest, then what it wrote through one commit."""

import os
from collections.abc import Callable, Iterable, Sequence

from filestore import repair, verify
from filestore.fileio import FileSystemClock
from filestore.indexing import Commit
from filestore.ingest import Ingest, Outcome
from filestore.progress import OnProgress, Progress
from filestore.settings import Settings
from filestore.sources import SourcePath

COMMIT_FILES = 20_000
"""Chunk files written before they are committed to the sidecar."""


def add_all(
    subject: verify.Subject,
    open_commit: Callable[[], Commit],
    settings: Settings,
    sources: Sequence[SourcePath],
    *,
    clock: FileSystemClock,
    on_progress: OnProgress,
) -> tuple[list[Outcome], int, int]:
    """Add sources and index what they wrote.

    Returns:
        An outcome for each source, and how many texts were embedded and reused.
    """
    os.makedirs(subject.places.chunked, exist_ok=True)
    ingest = Ingest(
        subject.places,
        settings,
        subject.embedder,
        originals=subject.catalog.originals(),
        owners=subject.catalog.sources_of_resources(),
    )
    outcomes: list[Outcome] = []
    waiting: list[Outcome] = []
    embedded = reused = 0
    for number, source in enumerate(sources, start=1):
        outcome = ingest.add(source)
        outcomes.append(outcome)
        waiting.append(outcome)
        on_progress(Progress(stage="adding", done=number, total=len(sources)))
        if number == len(sources) or _files(waiting) >= COMMIT_FILES:
            report = _index(subject, open_commit, waiting, clock)
            embedded, reused = embedded + report[0], reused + report[1]
            waiting = []
    return outcomes, embedded, reused


def _files(outcomes: Iterable[Outcome]) -> int:
    return sum(len(outcome.written) + len(outcome.removed) for outcome in outcomes)


def _index(
    subject: verify.Subject,
    open_commit: Callable[[], Commit],
    outcomes: Sequence[Outcome],
    clock: FileSystemClock,
) -> tuple[int, int]:
    if not _files(outcomes):
        return 0, 0
    with open_commit() as commit:
        for outcome in outcomes:
            for origin, body in outcome.generated.items():
                commit.keep_generated(origin, body)
            if outcome.original is not None:
                commit.note_original(outcome.source, outcome.original)
        commit.forget([path for outcome in outcomes for path in outcome.removed])
        written = list(dict.fromkeys(path for outcome in outcomes for path in outcome.written))
        for read_from_ns, looks, _ in repair.settled(subject, written, clock, clock.now_ns()):
            commit.put(looks, read_from_ns)
        report = commit.finish()
    return report.embedded, report.reused
