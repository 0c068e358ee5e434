"""The catalog against itself, its pages, its values, its records; the full-text index against it.

SQLite checks no data page, and a flipped bit in one is a wrong answer, not an error. One rule: the
pages are walked first, and of a catalog that fails there nothing else is asked.

Of the links of documents in place only a path that is written out, as Markdown has it, can be
wrong: a `[[name]]` that no note has waits to be written, and a file on disk may be left out.

Nothing of the full-text index is parsed before every byte matched its stamp.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from filestore.catalog import Catalog, file_of_text, queries, summaries
from filestore.chunks import chunk_file, kept, questions_file, resource_record
from filestore.chunks.layout import resource_of
from filestore.chunks.links import own_links
from filestore.chunks.observation import DOCUMENT, RECORD
from filestore.config.layout import CATALOG, FULLTEXT
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath, Tree, is_made
from filestore.core.safe_text import listed
from filestore.sidecar import fulltext_file
from filestore.sidecar.file_rows import entries, named_by
from filestore.sidecar.snapshot import Level, Sample, StoreSnapshot, VerificationReport
from filestore.verify.lost_links import LostLinks

if TYPE_CHECKING:
    from filestore.fulltext import Reader


MOST_FILES: Final = 100
"""How many files are parsed again below the deepest level."""


def check(
    snapshot: StoreSnapshot, problem: str, level: Level, sample: Sample, report: VerificationReport
) -> bool:
    """Report what is wrong with pages, and compare what is held twice.

    Args:
        snapshot: The store.
        problem: What a walk through all pages and indexes found, or "".
        level: How many files are parsed again.
        sample: The slice of files of which some are.
        report: Where findings go.

    Returns:
        Whether the rest of the catalog can be asked.
    """
    own = snapshot.places.part(CATALOG)
    if problem:
        report.add([Finding(code="catalog-damaged", path=own, detail=problem)])
        report.not_checked.append("files, vectors and full text against a catalog that is damaged")
        return False
    # When it was opened, the rest of what it remembers was held against its checksum.
    if detail := snapshot.catalog.lost_rows() or snapshot.catalog.misplaced():
        report.add([Finding(code="map-mismatch", path=own, detail=detail)])
    report.add(_records(snapshot))
    report.checked.append("every page and index of the catalog")
    # Metadata and links of some files, at the deepest level of all, against their texts.
    catalog, tree = snapshot.catalog, snapshot.places.tree
    ids = catalog.indexed_ids()
    chosen = ids if level == "deep" else ids[:: -(-len(ids) // MOST_FILES) or 1]
    paths = catalog.indexed_paths(chosen)
    paths = {one: path for one, path in paths.items() if sample.has_path(path)}
    for identifier, path in paths.items():
        if detail := _taken_otherwise(catalog, identifier, path):
            report.add([_mismatch(tree, path, detail)])
    among = f"{len(ids):,} files"
    report.checked.append(f"metadata and links of {len(paths):,} of {among}")
    if len(paths) < len(ids):
        report.not_checked.append(f"metadata and links of {len(ids) - len(paths):,} of {among}")
    return True


def _records(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Records whose rows are not what their bytes say; the bytes are held against their hash."""
    catalog, mismatch = snapshot.catalog, partial(_mismatch, snapshot.places.tree)
    records = [one for one, state, _ in catalog.states() if state == RECORD]
    rows = catalog.files(records)
    for path, resource, source, data in catalog.all_records():
        row = rows.pop(path, None)
        if row is None or content_hash(data) != row.file_hash:
            yield mismatch(path, "its last seen bytes differ from the record")
        elif not _is_as_written(catalog, path, resource, source, data):
            yield mismatch(path, "what was taken from it is not what it says")
    for path in rows:
        yield mismatch(path, "nothing was taken from it")


def _is_as_written(
    catalog: Catalog, path: ChunkPath, resource: str, source: str, data: bytes
) -> bool:
    try:
        record = resource_record.parse(data)
    except resource_record.RecordInvalidError:
        return False
    documents = {(document.source, document.hash) for document in record.documents}
    expected = {
        (key, value, document.source)
        for document in record.documents
        for key, value in document.pairs()
    }
    named = record.resource or resource_of(path)
    if (resource, source) != (named, record.source) or catalog.documents_in(path) != documents:
        return False
    # Of two records of one resource only the last one's metadata is kept.
    return len(catalog.record_paths(resource)) > 1 or catalog.record_metadata(resource) == expected


def _taken_otherwise(catalog: Catalog, identifier: int, path: ChunkPath) -> str:
    try:
        chunk = kept.read(catalog.content(identifier) or b"")
    except ValueError:
        # Damaged bytes are found by their rows.
        return ""
    if catalog.metadata_of(identifier) != set(kept.pairs_of(chunk, path)):
        return "its metadata is not that of its frontmatter"
    named = {(one.path, one.key) for one in chunk.children}
    # What a file of questions names is in its text.
    is_read = chunk.kind != questions_file.KIND
    if is_read and summaries.named_by(catalog, identifier) != named:
        return "what it was made from is not what it names"
    if chunk.origin is not None and chunk_file.hand_edited(chunk):
        # Which links are a person's own depends on what was generated, as it was known then.
        return ""
    targets = {child.path for child in chunk.children}
    if is_made(path):
        targets = set()
    elif chunk.kind == DOCUMENT:
        targets = {ChunkPath(key) for key in chunk.link_keys}
    elif chunk.origin is None:
        targets.update(own_links(path, chunk.body, None))
    return "" if catalog.links_of(identifier) == targets else "its links are not those of its text"


def _mismatch(tree: Tree, path: ChunkPath, detail: str) -> Finding:
    return Finding(code="map-mismatch", path=tree.store_path(path), detail=detail)


def check_links(snapshot: StoreSnapshot, report: VerificationReport) -> None:
    """Hold the links of documents as they were indexed against the files that are there."""
    if not snapshot.layout.has_sections:
        return
    chunk_path = snapshot.places.tree.chunk_path
    moved = [one for one in report.findings if one.code == "moved"]
    moves = [(chunk_path(one.other), chunk_path(one.path)) for one in moved]
    report.add(LostLinks(snapshot, moves).every())
    report.checked.append("the links of documents")


_NAMED: Final = 10


def check_fulltext(
    snapshot: StoreSnapshot, level: Level, sample: Sample, report: VerificationReport
) -> None:
    """Read the index and hold it against the catalog's files."""
    from filestore.fulltext import FulltextDamaged, FulltextMissing, Reader

    # What sizes have shown is not reported again by hashes.
    found = fulltext_file.findings(snapshot.places, snapshot.catalog, hashes=True)
    report.add(finding for finding in found if finding.code not in report.codes())
    path = snapshot.places.part(FULLTEXT)
    reported = {one.code for one in report.findings if one.path == path}
    stamp = None if reported else fulltext_file.own_stamp(snapshot.places, snapshot.catalog)
    if stamp is None:
        if reported:
            report.not_checked.append(f"full-text entries ({', '.join(reported)})")
        return
    try:
        with Reader.open(snapshot.places.fulltext, stamp) as reader:
            _check_entries(snapshot, reader, level, sample, report)
    except (FulltextDamaged, FulltextMissing) as error:
        detail = f"{error.message} ({error.detail})" if error.detail else error.message
        report.add([Finding(code="fulltext-damaged", path=path, detail=detail)])
        report.not_checked.append("full-text entries, since the index cannot be read")


def _check_entries(
    snapshot: StoreSnapshot,
    reader: "Reader",
    level: Level,
    sample: Sample,
    report: VerificationReport,
) -> None:
    catalog, tree = snapshot.catalog, snapshot.places.tree
    ids, held = queries.text_ids(catalog), reader.ids()
    if lacking := [one for one in ids if one not in held]:
        report.add(_of_texts(tree, catalog, lacking, "it is not in the index"))
    if foreign := held.difference(ids):
        detail = f"{len(foreign):,} of its ids are no file's, first {min(foreign)}"
        report.add([Finding(code="fulltext-mismatch", path=tree.part(FULLTEXT), detail=detail)])
    report.checked.append("every full-text id")
    looked_up = [one for one in ids if one in held]
    if not sample.is_all:
        paths = catalog.indexed_paths([file_of_text(one) for one in looked_up])
        looked_up = [one for one in looked_up if sample.has_path(paths[file_of_text(one)])]
    if level != "deep":
        looked_up = looked_up[:: -(-len(looked_up) // MOST_FILES) or 1]
    # A file is taken apart once, however many texts it has.
    silent = [
        one
        for file, texts in groupby(sorted(looked_up, key=file_of_text), file_of_text)
        for one in _silent(catalog, reader, file, texts)
    ]
    report.add(_of_texts(tree, catalog, silent, "its own words do not find it"))
    kind = "passages" if snapshot.layout.has_sections else "files"
    number, among = len(looked_up), f"{len(ids):,} {kind} in the full-text index"
    report.checked.append(f"the words of {number:,} of {among}")
    if number < len(ids):
        report.not_checked.append(f"the words of {len(ids) - number:,} of {among}")


def _silent(catalog: Catalog, reader: "Reader", file: int, texts: Iterable[int]) -> Iterator[int]:
    """Those of a file's texts that the index does not hold under their own words.

    Damaged words are reported elsewhere.
    """
    data, row = catalog.content(file), catalog.files_by_id([file])[file]
    (named,) = named_by(catalog, [row])
    try:
        made = {one.id: one for one in entries(file, row.path, kept.read(data or b""), named)}
    except ValueError:
        return
    for one in filter(None, map(made.get, texts)):
        if not reader.holds(one.id, (one.title, one.text, one.description)):
            yield one.id


def _of_texts(tree: Tree, catalog: Catalog, files: Sequence[int], detail: str) -> Iterator[Finding]:
    paths = sorted(catalog.indexed_paths([file_of_text(one) for one in files]).values())
    if len(paths) > _NAMED:
        counted = f"{len(paths):,} files ({listed(map(tree.store_path, paths))}): {detail}"
        yield Finding(code="fulltext-mismatch", path=tree.part(FULLTEXT), detail=counted)
        return
    for path in map(tree.store_path, paths):
        yield Finding(code="fulltext-mismatch", path=path, other=tree.part(FULLTEXT), detail=detail)
