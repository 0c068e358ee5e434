"""Files against the catalog: every byte held against what was recorded, every id both ways."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from filestore import catalog_rows, drift, rereading
from filestore.catalog import decode_path
from filestore.catalog_rows import Judged
from filestore.findings import Finding
from filestore.observation import Observation
from filestore.progress import OnProgress, Progress
from filestore.subject import Said, Sample, Subject

CATALOG: Final = ".sidecar/catalog.sqlite"
_HANDED_ON: Final = 1000
"""So many rotten files are looked at twice, for somebody who waits for the first ones."""
_REMARKS: Final = frozenset(
    {
        "chunker-changed",
        "duplicate",
        "hand-edited",
        "ingest-conflict",
        "link-dangling",
        "name-collision",
        "unportable-name",
        "vector-missing",
    }
)
"""Codes that say nothing of a file's bytes: it is read all the same."""


@contextlib.contextmanager
def begun(
    subject: Subject, sample: Sample, said: Said, on_progress: OnProgress
) -> Iterator[Callable[[], list[str]]]:
    """Begin to read every catalogued file of a slice, also those whose stat is as it was.

    Args:
        subject: The store.
        sample: The slice.
        said: What was found by stats; rotten files are handed on by it as they are read.
        on_progress: Told how many were read.

    Yields:
        What ends it, and gives the paths that do not hold what was recorded.
    """
    files = subject.catalog.file_hashes()
    if not sample.is_all:
        files = [file for file in files if sample.has_path(decode_path(file[0]))]
    if not os.path.isdir(subject.places.chunked):
        files = []
    told_of = partial(Progress, stage="reading files", total=len(files))
    with rereading.differing(
        subject.places.chunked,
        files,
        processes=subject.processes if len(files) > drift.PARALLEL_FILES else 1,
        on_share=lambda share: on_progress(told_of(done=int(share * len(files)))),
        on_unlike=_Early(subject, said),
    ) as differing:
        yield differing


class _Early:
    """Hands on what differs while the rest is read."""

    def __init__(self, subject: Subject, said: Said) -> None:
        self._subject = subject
        self._said = said
        self._left = _HANDED_ON

    def __call__(self, paths: Sequence[str]) -> None:
        """Look at files of one block that differ."""
        if not self._left or not self._said.telling.is_heard:
            return
        known = told(self._said)
        fresh = _in_sight(
            [path for path in paths if drift.root_path(path) not in known], self._said
        )
        fresh = fresh[: self._left]
        self._left -= len(fresh)
        self._said.telling.tell(_rotten(self._subject, fresh))


def check(
    subject: Subject, judged: Judged, differing: list[str], told: set[str], said: Said
) -> None:
    """Hold what was read, and the rows of the catalog, against each other.

    Args:
        subject: The store.
        judged: The rows.
        differing: What `begun` gave.
        told: The paths of which the worst is told already.
        said: Where findings go.
    """
    wrong = dict(judged.unsound())
    # Of a row that is damaged itself nobody knows what the file should hold.
    held = [path for path in differing if wrong.get(path) != catalog_rows.DAMAGED]
    found = [*_rotten(subject, _out_of_sight(held, said)), *_mismatches(wrong)]
    said.add(finding for finding in found if finding.path not in told)
    ends = judged.loose_ends()
    said.add(Finding(code="map-mismatch", path=CATALOG, detail=detail) for detail in ends)


def _out_of_sight(paths: list[str], said: Said) -> list[str]:
    """The paths without those below a folder that cannot be read, which is told once, of it."""
    seen = _in_sight(paths, said)
    if len(seen) < len(paths):
        number = len(paths) - len(seen)
        said.not_checked.append(f"contents of {number:,} files below what is unreadable")
    return seen


def _in_sight(paths: list[str], said: Said) -> list[str]:
    closed = [one.path for one in said.findings if one.code == "unreadable"]
    below = tuple(f"{path}/" for path in closed)
    return [path for path in paths if not drift.root_path(path).startswith(below)]


def _mismatches(wrong: Mapping[str, str]) -> Iterator[Finding]:
    for path, reason in wrong.items():
        yield Finding(code="map-mismatch", path=drift.root_path(path), detail=reason)


def say_what_was_read(said: Said, sample: Sample) -> None:
    """Say which slice was read."""
    said.checked += ["contents of all files" if sample.is_all else f"contents of slice {sample}"]
    said.checked += ["every id of the catalog, both ways"]
    if not sample.is_all:
        said.not_checked.append(f"contents of files outside slice {sample}")


def told(said: Said) -> set[str]:
    """What drifted is told already, and what cannot be read, too."""
    return {finding.path for finding in said.findings if finding.code not in _REMARKS}


def _rotten(subject: Subject, paths: list[str]) -> Iterator[Finding]:
    """Files whose bytes are not those that were recorded, looked at once more."""
    rows = subject.catalog.files(paths)
    for look in drift.look_at(subject.places, paths, subject.layout):
        if isinstance(look, Observation) and look.file_hash != rows[look.path].file_hash:
            found, expected = look.file_hash.hex(), rows[look.path].file_hash.hex()
            detail = f"found hash {found}, expected {expected}; every stamp is equal"
            yield Finding(code="bit-rot", path=drift.root_path(look.path), detail=detail)
        elif not isinstance(look, Observation):
            yield from drift.unreadable(*look)
