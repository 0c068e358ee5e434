"""The catalog against itself: its pages, its remembered values, what it took from records.

SQLite checks no data page, and a flipped bit in one is a wrong answer, not an error. One rule: the
pages are walked first, and of a catalog that fails there nothing else is asked.
"""

from collections.abc import Iterator
from typing import Final

from filestore import drift, records
from filestore.catalog import Catalog, resource_of
from filestore.facts import facts
from filestore.findings import Finding
from filestore.hashing import content_hash
from filestore.subject import Said, Subject

CATALOG: Final = ".sidecar/catalog.sqlite"


def check(subject: Subject, problem: str, said: Said) -> bool:
    """Say what is wrong with pages, and hold what stands twice against each other.

    Args:
        subject: The store.
        problem: What a walk through all pages and indexes found, or "".
        said: Where findings go.

    Returns:
        Whether the rest of the catalog can be asked.
    """
    if problem:
        said.add([Finding(code="catalog-damaged", path=CATALOG, detail=problem)])
        said.not_checked.append("files, vectors and full text against a catalog that is damaged")
        return False
    said.add(_remembered(subject.catalog))
    said.add(_records(subject.catalog))
    said.checked.append("every page and index of the catalog")
    return True


def _remembered(catalog: Catalog) -> Iterator[Finding]:
    if not catalog.meta_is_sound():
        detail = "what it remembers of the store fails its checksum"
        yield Finding(code="map-mismatch", path=CATALOG, detail=detail)


def _records(catalog: Catalog) -> Iterator[Finding]:
    """Records whose rows are not what their bytes say; the bytes are held against their hash."""
    rows = {row.path: row for row in catalog.record_files()}
    for path, resource, source, data in catalog.all_records():
        row = rows.pop(path, None)
        if row is None or content_hash(data) != row.file_hash:
            yield _mismatch(path, "its last seen bytes are not those that were recorded")
        elif not _is_as_written(catalog, path, resource, source, data):
            yield _mismatch(path, "what was taken from it is not what it says")
    for path in rows:
        yield _mismatch(path, "nothing was taken from it")


def _is_as_written(catalog: Catalog, path: str, resource: str, source: str, data: bytes) -> bool:
    try:
        record = records.parse(data)
    except records.RecordInvalidError:
        return False
    documents = {(document.source, document.hash) for document in record.documents}
    expected = {
        (key, value, document.source)
        for document in record.documents
        for key, value in facts(document.metadata)
    }
    named = record.resource or resource_of(path)
    if (resource, source) != (named, record.source) or catalog.documents_in(path) != documents:
        return False
    # Of two records of one resource only the last one's facts are kept.
    return len(catalog.record_paths(resource)) > 1 or catalog.record_facts(resource) == expected


def _mismatch(path: str, detail: str) -> Finding:
    return Finding(code="map-mismatch", path=drift.root_path(path), detail=detail)
