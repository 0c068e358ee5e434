"""Files against the catalog: every byte held against what was recorded, every id both ways."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from filestore import catalog_rows, drift, rereading
from filestore.catalog import Catalog
from filestore.findings import Finding
from filestore.hashing import vector_id
from filestore.observation import Observation
from filestore.progress import OnProgress, Progress
from filestore.subject import Said, Sample, Subject

CATALOG: Final = ".sidecar/catalog.sqlite"
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
    subject: Subject, sample: Sample, on_progress: OnProgress
) -> Iterator[Callable[[Said, set[str]], None]]:
    """Begin to read every catalogued file of a slice, also those whose stat is as it was.

    Yields:
        What ends it and says what it found, but for paths of which the worst is told already.
    """
    catalog = subject.catalog
    files = [file for file in catalog.file_hashes() if sample.has_path(file[0])]
    if not os.path.isdir(subject.places.chunked):
        files = []
    many = subject.processes if len(files) > drift.PARALLEL_FILES else 1
    told_of = partial(Progress, stage="reading files", total=len(files))
    with (
        rereading.differing(
            subject.places.chunked,
            files,
            processes=many,
            on_share=lambda share: on_progress(told_of(done=int(share * len(files)))),
        ) as differing,
        catalog_rows.checked(catalog, subject.places.catalog, sample, apart=many > 1) as unsound,
    ):

        def finish(said: Said, told: set[str]) -> None:
            """Wait for what was begun, and hold it against the catalog."""
            wrong = dict(unsound())
            # Of a row that is damaged itself nobody knows what the file should hold.
            held = [path for path in differing() if wrong.get(path) != catalog_rows.DAMAGED]
            found = [*_rotten(subject, held), *_mismatches(wrong)]
            said.add(finding for finding in found if finding.path not in told)
            said.add(_id_findings(catalog))
            _say_what_was_read(said, sample)

        yield finish


def _mismatches(wrong: Mapping[str, str]) -> Iterator[Finding]:
    for path, reason in wrong.items():
        yield Finding(code="map-mismatch", path=drift.root_path(path), detail=reason)


def _say_what_was_read(said: Said, sample: Sample) -> None:
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


def _id_findings(catalog: Catalog) -> Iterator[Finding]:
    """Ids of the catalog that lead nowhere, or to the wrong text."""
    for detail, statement in _LOOSE_ENDS.items():
        ((count, example),) = catalog.rows(f"SELECT count(*), min(id) FROM ({statement})")
        if count:
            detail = f"{count:,} {detail}, first {example}"
            yield Finding(code="map-mismatch", path=CATALOG, detail=detail)
    wrong = [
        identifier
        for embedded in (True, False)
        for identifier, key in catalog.vector_keys(embedded=embedded)
        if vector_id(key) != identifier
    ]
    if wrong:
        detail = f"{len(wrong):,} vector ids are not those of their keys, first {wrong[0]}"
        yield Finding(code="map-mismatch", path=CATALOG, detail=detail)


_LOOSE_ENDS: Final = {
    "texts belong to no file": (
        "SELECT file AS id FROM parts WHERE file NOT IN (SELECT id FROM files WHERE state = '')"
    ),
    "texts have no vector id that is known": (
        "SELECT vector AS id FROM parts WHERE vector NOT IN (SELECT id FROM vectors)"
    ),
    "vector ids belong to no text": (
        "SELECT id FROM vectors WHERE id NOT IN (SELECT vector FROM parts)"
    ),
}
