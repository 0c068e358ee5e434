"""Files against the catalog: every byte held against what was recorded, every id both ways."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from filestore.catalog import decode_path
from filestore.chunks.observation import Observation
from filestore.chunks.observe import look_at, unreadable
from filestore.config.layout import CATALOG
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath, StorePath, Tree
from filestore.core.progress import OnProgress, Progress
from filestore.sidecar.snapshot import Sample, StoreSnapshot, VerificationReport
from filestore.verify import _reread, _rows, drift
from filestore.verify._rows import Judged

_HANDED_ON: Final = 1000
"""So many rotten files are looked at twice, for somebody who waits for the first ones."""


@contextlib.contextmanager
def begun(
    snapshot: StoreSnapshot, sample: Sample, report: VerificationReport, on_progress: OnProgress
) -> Iterator[Callable[[], list[ChunkPath]]]:
    """Begin to read every catalogued file of a slice, also those whose stat is as it was.

    Args:
        snapshot: The store.
        sample: The slice.
        report: What was found by stats; rotten files are handed on by it as they are read.
        on_progress: Called with the number of files read.

    Yields:
        What ends it, and gives the paths that do not hold what was recorded.
    """
    files = snapshot.catalog.file_hashes()
    if not sample.is_all:
        files = [file for file in files if sample.has_path(decode_path(file[0]))]
    if not os.path.isdir(snapshot.places.chunked):
        files = []
    # Of what drifted the worst is known, and its files were read.
    known = {os.fsencode(path) for path in snapshot.places.tree.chunk_paths(reported(report))}
    files = [file for file in files if file[0] not in known] if known else files
    told_of = partial(Progress, stage="reading files", total=len(files))
    with _reread.differing(
        snapshot.places.chunked,
        files,
        most_bytes=snapshot.layout.most_bytes,
        processes=snapshot.processes if len(files) > drift.PARALLEL_FILES else 1,
        on_share=lambda share: on_progress(told_of(done=int(share * len(files)))),
        on_unlike=_Early(snapshot, report),
    ) as differing:
        yield differing


class _Early:
    """Hands on what differs while the rest is read."""

    def __init__(self, snapshot: StoreSnapshot, report: VerificationReport) -> None:
        self._snapshot = snapshot
        self._report = report
        self._left = _HANDED_ON

    def __call__(self, paths: Sequence[ChunkPath]) -> None:
        """Look at files of one block that differ."""
        if not self._left or not self._report.stream.is_heard:
            return
        known, tree = reported(self._report), self._snapshot.places.tree
        unknown = [path for path in paths if tree.store_path(path) not in known]
        fresh = _in_sight(tree, unknown, self._report)
        fresh = fresh[: self._left]
        self._left -= len(fresh)
        self._report.stream.tell(_rotten(self._snapshot, fresh))


def check(
    snapshot: StoreSnapshot,
    judged: Judged,
    differing: list[ChunkPath],
    reported: set[StorePath],
    report: VerificationReport,
) -> None:
    """Hold what was read, and the rows of the catalog, against each other.

    Args:
        snapshot: The store.
        judged: The rows.
        differing: What `begun` gave.
        reported: The paths whose worst finding is reported.
        report: Where findings go.
    """
    wrong = dict(judged.unsound())
    # A damaged row does not say what the file should hold.
    held = [path for path in differing if wrong.get(path) != _rows.DAMAGED]
    tree = snapshot.places.tree
    found = [*_rotten(snapshot, _out_of_sight(tree, held, report)), *_mismatches(tree, wrong)]
    report.add(finding for finding in found if finding.path not in reported)
    ends = judged.loose_ends()
    path = tree.part(CATALOG)
    report.add(Finding(code="map-mismatch", path=path, detail=detail) for detail in ends)


def _out_of_sight(
    tree: Tree, paths: list[ChunkPath], report: VerificationReport
) -> list[ChunkPath]:
    """The paths without those below a folder that cannot be read, which is reported once."""
    seen = _in_sight(tree, paths, report)
    if len(seen) < len(paths):
        number = len(paths) - len(seen)
        report.not_checked.append(f"contents of {number:,} files below what is unreadable")
    return seen


def _in_sight(tree: Tree, paths: list[ChunkPath], report: VerificationReport) -> list[ChunkPath]:
    closed = [one.path for one in report.findings if one.code == "unreadable"]
    below = tuple(f"{path}/" for path in closed)
    return [path for path in paths if not tree.store_path(path).startswith(below)]


def _mismatches(tree: Tree, wrong: Mapping[ChunkPath, str]) -> Iterator[Finding]:
    for path, reason in wrong.items():
        yield Finding(code="map-mismatch", path=tree.store_path(path), detail=reason)


def say_what_was_read(report: VerificationReport, sample: Sample) -> None:
    """Say which slice was read."""
    report.checked += ["contents of all files" if sample.is_all else f"contents of slice {sample}"]
    report.checked += ["every id of the catalog, both ways"]
    if not sample.is_all:
        report.not_checked.append(f"contents of files outside slice {sample}")


def reported(report: VerificationReport) -> set[StorePath]:
    """Paths that the stat pass has reported."""
    return {finding.path for finding in report.findings if not finding.meaning.remark}


def _rotten(snapshot: StoreSnapshot, paths: list[ChunkPath]) -> Iterator[Finding]:
    """Files whose bytes are not those that were recorded, looked at once more."""
    rows, tree = snapshot.catalog.files(paths), snapshot.places.tree
    for look in look_at(snapshot.places, paths, snapshot.layout):
        if isinstance(look, Observation) and look.file_hash != rows[look.path].file_hash:
            found, expected = look.file_hash.hex(), rows[look.path].file_hash.hex()
            detail = f"found hash {found}, expected {expected}; every stamp is equal"
            yield Finding(code="bit-rot", path=tree.store_path(look.path), detail=detail)
        elif not isinstance(look, Observation):
            yield from unreadable(tree, *look)
