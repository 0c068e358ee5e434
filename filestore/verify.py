"""Verification: every drift and damage as findings, at two levels. Changes nothing.

`fast` stats everything and opens no content file of a clean tree; `full` reads every byte of the
three sets, files, catalog and vectors, and holds them against each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from filestore import drift, fulltext_file, vector_file
from filestore.catalog import Catalog, FileRow
from filestore.findings import Finding, worst_first
from filestore.observation import INDEXED, Observation
from filestore.places import Places
from filestore.progress import OnProgress, Progress, ignore
from filestore.settings import Layout

if TYPE_CHECKING:
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache

Level = Literal["fast", "full"]
TOLERANCE: Final = 1e-3
"""How far the length of a stored vector may be from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of one verification."""

    level: Level
    findings: tuple[Finding, ...]
    """Worst first."""
    checked: tuple[str, ...]
    """What was looked at, in words."""
    not_checked: tuple[str, ...]
    """What was not, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The opened parts of the store under verification."""

    places: Places
    layout: Layout
    catalog: Catalog
    embeddings: "EmbeddingCache | None"
    embedder: "Embedder | None"
    deleted: drift.DeletedPaths
    processes: int = 1
    no_model: str = ""
    """Why there is no embedder."""


def verify(subject: Subject, *, level: Level, on_progress: OnProgress = ignore) -> Checked:
    """Compare files, catalog and vectors.

    Args:
        subject: The store; its catalog should be inside a snapshot.
        level: How much is read.
        on_progress: Told how many files were read.
    """
    found = [*fast_findings(subject), *_collisions(subject.catalog)]
    if level == "fast":
        return Checked(
            level=level,
            findings=tuple(worst_first(found)),
            checked=("names and stats of all files", "sizes of all accelerator files"),
            not_checked=("contents of files with unchanged stats", "vectors", "full-text entries"),
        )
    found += _file_findings(subject, {finding.path for finding in found}, on_progress)
    found += _vector_findings(subject)
    found += _fulltext_findings(subject)
    return Checked(
        level=level,
        findings=tuple(worst_first(list(dict.fromkeys(found)))),
        checked=(
            "contents of all files",
            "every vector id, both ways",
            "every stored embedding and FAISS row",
            "every full-text id and file",
        ),
        not_checked=("whether the model still gives the same vectors",),
    )


def fast_findings(subject: Subject) -> list[Finding]:
    """What `status` shows: drift by stat, and the state of the sidecar's files."""
    places, catalog = subject.places, subject.catalog
    seen = drift.detect(
        places,
        catalog,
        layout=subject.layout,
        deleted=subject.deleted,
        processes=subject.processes,
    )
    found = [*seen.findings, *drift.missing_findings(seen)]
    looked_at = {*seen.look, *seen.gone, *(old for old, _ in seen.moves)}
    found += drift.standing_findings(catalog, looked_at)
    found += changed_findings(subject, seen.look)
    return found + sidecar_findings(subject, hashes=False)


def changed_findings(subject: Subject, paths: tuple[str, ...]) -> Iterator[Finding]:
    """Read the files whose stat differs, and say what differs."""
    known = subject.catalog.files(paths)
    for look in drift.look_at(subject.places, paths, subject.layout):
        if isinstance(look, Observation):
            finding = drift.classify(known.get(look.path), look)
            if finding is not None:
                yield finding
        else:
            yield from unreadable(*look)


def unreadable(path: str, error: OSError) -> Iterator[Finding]:
    """The finding for a file that cannot be read; none for one that went away meanwhile."""
    if not isinstance(error, FileNotFoundError):
        reason = error.strerror or str(error)
        yield Finding(code="unreadable", path=drift.root_path(path), detail=reason)


def sidecar_findings(subject: Subject, *, hashes: bool) -> list[Finding]:
    """What is wrong with the derived files, without parsing an accelerator."""
    places, catalog = subject.places, subject.catalog
    found = [
        *vector_file.findings(places, catalog, hashes=hashes),
        *fulltext_file.findings(places, catalog, hashes=hashes),
    ]
    recorded = catalog.meta("fingerprint")
    if subject.embedder is None:
        # Without its model nobody can give the store vectors, nor needs to be told of each.
        found = [finding for finding in found if not finding.code.startswith("index-")]
        missing = Finding(code="model-missing", path="filestore.toml", detail=subject.no_model)
        return [*found, missing]
    if recorded is not None and recorded != subject.embedder.fingerprint:
        detail = f"indexed with {recorded}, the settings ask for {subject.embedder.fingerprint}"
        found.append(Finding(code="model-changed", path="filestore.toml", detail=detail))
    return found + not_embedded(catalog)


def not_embedded(catalog: Catalog) -> list[Finding]:
    """Files with a text that has no vector."""
    return [
        Finding(code="vector-missing", path=drift.root_path(path), detail="never embedded")
        for path in catalog.paths_without_vectors()
    ]


def _collisions(catalog: Catalog) -> list[Finding]:
    by_folded: dict[str, str] = {}
    found = []
    for row in catalog.all_files():
        folded = drift.folded_path(row.path)
        other = by_folded.setdefault(folded, row.path)
        if other != row.path:
            detail = f"differs from {drift.root_path(other)} only by case or composition"
            path = drift.root_path(row.path)
            found.append(Finding(code="name-collision", path=path, detail=detail))
    return found


def _file_findings(
    subject: Subject, known_paths: set[str], on_progress: OnProgress
) -> Iterator[Finding]:
    """Read every catalogued file, also those whose stat is as it was."""
    rows = {row.path: row for row in subject.catalog.all_files()}
    looks = drift.look_at(subject.places, list(rows), subject.layout)
    for number, look in enumerate(looks):
        if number % 1000 == 0:
            on_progress(Progress(stage="reading files", done=number, total=len(rows)))
        if not isinstance(look, Observation):
            continue
        row = rows[look.path]
        if drift.root_path(look.path) not in known_paths:
            yield from _hold_against(subject.catalog, row, look)


def _hold_against(catalog: Catalog, row: FileRow, look: Observation) -> Iterator[Finding]:
    path = drift.root_path(row.path)
    if look.file_hash != row.file_hash:
        detail = (
            f"hash {look.file_hash.hex()}, expected {row.file_hash.hex()}; every stamp is equal"
        )
        yield Finding(code="bit-rot", path=path, detail=detail)
    elif not catalog.row_is_sound(row):
        yield Finding(code="map-mismatch", path=path, detail="its catalog row is damaged")
    elif look.state == INDEXED:
        if catalog.parts_of(row.id) != look.vector_ids() or row.text_key != look.text_key:
            yield Finding(
                code="map-mismatch", path=path, detail="its vector ids are not those of its texts"
            )
        elif catalog.content(row.id) != look.data:
            yield Finding(code="map-mismatch", path=path, detail="its last seen text is damaged")


def _vector_findings(subject: Subject) -> list[Finding]:
    found = vector_file.findings(subject.places, subject.catalog, hashes=True)
    if subject.embedder is None or subject.catalog.count("vectors") == 0:
        return found
    if subject.embeddings is None:
        return [*found, _embeddings_damaged("the file of embeddings cannot be read")]
    from filestore.embed.cache import EmbeddingsDamaged

    try:
        damaged = subject.embeddings.verify(subject.embedder.fingerprint)
        if damaged:
            found.append(_embeddings_damaged(f"{len(damaged)} rows fail their checksum"))
        if any(finding.code in ("index-missing", "index-damaged") for finding in found):
            return found
        return found + _compare_vectors(subject, subject.embedder, subject.embeddings)
    except EmbeddingsDamaged as error:
        return [*found, _embeddings_damaged(error.message)]


def _embeddings_damaged(detail: str) -> Finding:
    return Finding(code="embeddings-damaged", path=".sidecar/embeddings.sqlite", detail=detail)


def _compare_vectors(
    subject: Subject, embedder: "Embedder", embeddings: "EmbeddingCache"
) -> list[Finding]:
    """Hold the FAISS rows against the catalog's ids and the stored embeddings, bit for bit.

    An index that shortens vectors is held against the embeddings shortened in the same way.
    """
    import numpy

    index = vector_file.load(subject.places, subject.catalog, embeddings, embedder)
    keys = dict(subject.catalog.vector_keys())
    ids = numpy.array(list(keys), dtype=numpy.int64)
    held = index.ids()
    tally = {
        # A row that is there twice is one too many.
        "vector-orphan": len(held) - len(numpy.intersect1d(held, ids)),
        "vector-missing": len(numpy.setdiff1d(ids, held)),
        "vector-mismatch": 0,
        "vector-invalid": 0,
        "embeddings-damaged": 0,
    }
    both = numpy.intersect1d(ids, held)
    for start in range(0, len(both), 4096):
        block = both[start : start + 4096]
        stored, present = embeddings.get(
            embedder.fingerprint, [keys[identifier] for identifier in block.tolist()]
        )
        tally["embeddings-damaged"] += int((~present).sum())
        if not present.any():
            continue
        vectors = stored[present]
        tally["vector-mismatch"] += int((~index.holds(block[present], vectors)).sum())
        lengths = numpy.linalg.norm(vectors, axis=1)
        tally["vector-invalid"] += int((~(numpy.abs(lengths - 1) < TOLERANCE)).sum())
    return [
        Finding(code=code, path=".sidecar", detail=_TOLD[code].format(count))
        for code, count in tally.items()
        if count
    ]


_TOLD: Final = {
    "vector-orphan": "{} vectors belong to no file",
    "vector-missing": "{} vectors are not in the index",
    "vector-mismatch": "{} rows of the index differ from their embeddings",
    "vector-invalid": "{} vectors are not of length 1",
    "embeddings-damaged": "{} embeddings are gone or damaged",
}


def _fulltext_findings(subject: Subject) -> list[Finding]:
    from filestore.fulltext import FulltextDamaged, FulltextMissing, Reader

    found = fulltext_file.findings(subject.places, subject.catalog, hashes=True)
    stamp = fulltext_file.own_stamp(subject.places, subject.catalog)
    if found or stamp is None:
        return found
    path = ".sidecar/fulltext"
    try:
        reader = Reader.open(subject.places.fulltext, stamp)
        try:
            held = reader.ids()
        finally:
            reader.close()
    except (FulltextDamaged, FulltextMissing) as error:
        return [Finding(code="fulltext-damaged", path=path, detail=error.message)]
    wanted = set(_indexed_ids(subject.catalog.all_files()))
    if held == wanted:
        return []
    detail = f"{len(wanted - held)} files are not in it, {len(held - wanted)} of its ids are none"
    return [Finding(code="fulltext-mismatch", path=path, detail=detail)]


def _indexed_ids(rows: Iterable[FileRow]) -> Iterator[int]:
    return (row.id for row in rows if row.state == INDEXED)
