"""Looking at what a store holds: resources, chunks, one file and its record."""

import contextlib
import math
import sys
import time
from array import array
from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict

from msgspec import Struct

from filestore.browse.named import (
    UnknownPathError,
    below_chunked,
    resource_named,
    unknown_path,
)
from filestore.browse.rows import documents_of
from filestore.catalog import SOME_TIME, Catalog, CatalogPages, FileRow
from filestore.chunking import Section
from filestore.chunks import chunk_file, frontmatter, kept, resource_record
from filestore.chunks.kept import DocumentDamagedError
from filestore.chunks.layout import Layout, observe_bytes, observe_entry
from filestore.chunks.observation import (
    INDEXED,
    MAGIC,
    RECORD,
    Observation,
    why_excluded,
)
from filestore.config.layout import Places
from filestore.core.codes import codes_where
from filestore.core.errors import FilestoreError
from filestore.core.findings import FromIndex
from filestore.core.paths import NO_PATH, ChunkPath, StorePath, folder_of
from filestore.extract import is_text
from filestore.fs import disk
from filestore.search.freshness import Freshness
from filestore.sidecar.door import is_shut
from filestore.sidecar.session import Parts

MOST_RAW_BYTES: Final = 1024 * 1024
GONE: Final = "the file is not there: this is its text as it was indexed"
_LIST: Final = "'filestore ls DOCUMENT' lists the chunks of a document"


class ShownSection(TypedDict):
    """A section of a document in place."""

    line: int | None
    """The first one in its file; None where its text has no lines of the file."""
    end_line: int | None
    """The last one."""
    page: int | None
    """On which it begins."""
    headings: list[str]
    """The headings above it."""


class ShownLink(TypedDict):
    """A link of a document in place."""

    line: int | None
    """In which it is; None in metadata."""
    target: str
    """The document it leads to; where there is none, as it is written."""


class Backlink(TypedDict):
    """A link of another document in place to the one that is shown."""

    path: StorePath
    """The document that has it."""
    line: int | None
    """In which it is; None in metadata."""


class Record(TypedDict):
    """What the store knows of a file."""

    indexed: bool
    """Whether it is in the index."""
    withheld: NotRequired[str | None]
    """The code that excludes it from search."""
    freshness: NotRequired[Freshness]
    """`fresh`: as indexed; `outdated`: as indexed, but its original changed or went; `edited`
    since."""
    resource: NotRequired[str]
    """Its document."""
    kind: NotRequired[str | None]
    """`chunk` or `summary`."""
    source: NotRequired[str | None]
    """Its original."""
    document: NotRequired[Mapping[str, Any]]
    """What the original says about itself."""
    hand_edited: bool
    """Whether its text was edited by hand."""
    vector_ids: NotRequired[Any]
    """Of its texts."""
    file_hash: NotRequired[str]
    """Of the bytes that were indexed."""
    generation: NotRequired[int]
    """In which it was indexed."""
    title: NotRequired[str]
    """What a document in place calls itself; empty where it does not."""
    aliases: NotRequired[list[str]]
    """Its other names."""
    tags: NotRequired[list[str]]
    """Of its metadata and its text, each with the ones above it."""
    sections: NotRequired[list[ShownSection]]
    """Of which it consists."""
    links: NotRequired[list[ShownLink]]
    """To other files, as it was indexed."""
    backlinks: NotRequired[list[Backlink]]
    """Links of others to it."""
    created: NotRequired[str | None]
    """The day on which its document was made, as it says itself, else by its first commit, else by
    its file; None where nothing tells."""
    updated: NotRequired[str | None]
    """The day of the last change, likewise: the `date` of a hit."""
    status: NotRequired[str]
    """Of its document, as it says itself."""
    notes: NotRequired[list[str]]
    """What to know before one relies on it, as of a hit."""
    not_checked: NotRequired[list[str]]
    """The sources that it names and that cannot be judged, each with why."""


class ChunkFile(TypedDict):
    """A chunk file of a resource, or a section of a document in place."""

    path: StorePath
    """Below the store root."""
    kind: str | None
    """`chunk` or `summary`; None where that is not known."""
    source: str | None
    """Its original."""
    edited: bool
    """Whether its text was edited by hand."""
    withheld: str | None
    """The code that excludes it from search."""
    line: NotRequired[int | None]
    """Of a section in place, the first one in its document."""
    end_line: NotRequired[int | None]
    """The last one."""
    page: NotRequired[int | None]
    """On which it begins."""
    headings: NotRequired[list[str]]
    """The headings above it."""


class Resource(TypedDict):
    """A resource; in place, a document."""

    resource: str
    """Its name; empty for files of none."""
    source: str | None
    """Its original."""
    chunks: int
    """How many it has; in place, how many sections."""


class Resources(FromIndex, frozen=True):
    """What `ls` prints."""

    items: list[Resource]
    """The documents, or those of a folder in place where one is named."""


class ChunkFiles(FromIndex, frozen=True):
    """What `ls DOCUMENT` prints."""

    items: list[ChunkFile]
    """Its chunk files, in reading order; of a document in place, its sections."""


class VectorFacts(Struct, frozen=True, kw_only=True):
    """One embedded text of a file, and its vector."""

    part: int
    """0 for headings and body, n for question n."""
    id: int
    embedded: bool
    norm: float | None
    """Length of the vector as it is stored; None where it is not, or is damaged."""
    when: str
    """When the model gave it, in local time: ``2026-11-20 14:03``; where that is not known, the
    generation in which the file came into the catalog."""


class About(Struct, frozen=True, kw_only=True):
    """Everything known of one file: as it is on disk, and as the catalog has it."""

    path: StorePath
    frontmatter: Mapping[str, Any]
    body: str
    raw: str
    """The file from its beginning; bytes that are not UTF-8 are replaced."""
    raw_cut: bool
    """Whether the file goes on beyond `raw`."""
    problem: str
    """Why it cannot be used as it is, "" if it can. Where it cannot even be parsed, `frontmatter`
    is empty and `body` is `raw`."""
    record: Mapping[str, Any]
    """As `show` has it."""
    source: str
    pages: tuple[int, ...]
    headings: tuple[str, ...]
    questions: tuple[str, ...]
    children: tuple[chunk_file.Child, ...]
    """What a summary was made from."""
    kind: str
    """``chunk``, ``summary``, ``record``, or "" where that is unknown."""
    hand_edited: bool
    freshness: Freshness | Literal["not indexed"]
    withheld: str
    """The code under which the catalog excludes it from search, "" for none."""
    vectors: tuple[VectorFacts, ...]
    """Of the texts that were indexed, part by part."""
    model: str
    """The fingerprint of the model that the vectors are from, "" for none."""
    file_hash: str
    """Of the bytes as they are, hexadecimal; "" where they were not read."""
    indexed_hash: str
    """Of the bytes as they were indexed; "" where they never were."""
    origin: str
    """The hash of the body as generated; "" for a file written by hand."""
    generation: int
    """In which the file came into the catalog as it is there; 0 where it is not."""
    sections: tuple[Section, ...] = ()
    """Of a document in place: where they are in `body`."""
    tags: tuple[str, ...] = ()
    """Of a document in place: those of its metadata and those in its text."""

    own_questions: tuple[str, ...] = ()
    """The questions that a person wrote or changed."""
    questions_stale: bool = False
    """Whether the others were generated from another text than the file has now."""

    def section(self, part: int | None) -> Section | None:
        """A section by its place; None where there is none such."""
        return self.sections[part] if part is not None and part < len(self.sections) else None

    @property
    def first_line(self) -> int:
        """Of the file, in which `body` begins; 0 where its text has no lines of the file."""
        first = next((one for one in self.sections if one.line), None)
        if first is not None:
            return first.line - self.body.count("\n", 0, first.start)
        if self.sections or not self.raw:
            return 0
        return first_line(self.raw.encode("utf-8", "replace"))

    def part_at(self, line: int | None, text: str) -> int | None:
        """The section at a line of the file; of several, or of none, the one with this text."""
        every = list(enumerate(self.sections))
        # A long line has many.
        held = [(part, one) for part, one in every if line and one.line <= line <= one.end_line]
        for part, one in held or every:
            if text and self.body[one.start : one.end] == text:
                return part
        return held[0][0] if held else None


class AboutResource(Struct, frozen=True, kw_only=True):
    """What is known of one resource."""

    resource: str
    chunks: int
    """Chunk files, excluded ones included; of a folder of documents in place the documents."""
    source: str = ""
    """What its record names; "" without one."""
    documents: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Source of each document, and what it says about itself, in reading order."""
    extractor: str = ""
    """Names and versions of what read the documents, separated by commas."""
    chunker: str = ""
    record_path: StorePath = NO_PATH
    """`NO_PATH` without one."""


def chunks(places: Places, catalog: Catalog, resource: str) -> list[ChunkFile]:
    """The files of a resource in reading order, as the catalog knows them."""
    rows = [row for row in catalog.files_of(resource) if row.state != RECORD]
    rows.sort(key=lambda row: chunk_file.sort_key(row.position, row.path))
    return [
        {
            "path": places.tree.store_path(row.path),
            "kind": row.kind or None,
            "source": catalog.source_of(row),
            "edited": row.edited,
            "withheld": row.state or None,
        }
        for row in rows
    ]


def record_of(catalog: Catalog, row: FileRow | None, *, hand_edited: bool, now: bytes) -> Record:
    """What is known of a chunk file whose bytes have a hash now."""
    if row is None:
        return {"indexed": False, "hand_edited": hand_edited}
    source = catalog.source_of(row)
    return {
        "indexed": row.state == INDEXED,
        "withheld": row.state or None,
        "freshness": "fresh" if now == row.file_hash else "edited",
        "resource": row.resource,
        "kind": row.kind,
        "source": source,
        "document": document_metadata(catalog, row.resource, source),
        "hand_edited": hand_edited,
        "vector_ids": catalog.parts_of(row.id),
        "file_hash": row.file_hash.hex(),
        "generation": row.generation,
    }


def about(
    parts: Parts, catalog: Catalog, path: str, *, indexed_as: str = "", last: bool = False
) -> About:
    """Everything known of one file, whatever state it is in.

    Args:
        parts: The store's.
        catalog: Inside a snapshot.
        path: Relative to the store root, to `chunked/`, or absolute.
        indexed_as: Its path in the catalog, relative to the store root, where it was moved since.
        last: Whether a file that is gone counts as it was indexed, where that is kept.

    Raises:
        UnknownPathError: There is no such file below `chunked/`.
    """
    tree, place = parts.places.tree, _place(parts, catalog, path, last=last)
    relative = tree.chunk_path(StorePath(indexed_as)) if indexed_as else place
    row = catalog.files([relative]).get(relative)
    gone = False
    try:
        seen, raw = _seen(parts, place)
        raw = _read_document(parts, catalog, row, seen, raw) if tree.has_sections else raw
    except UnknownPathError:
        gone, (seen, raw) = True, _last_seen(parts, catalog, path, row if last else None)
    chunk, text = _chunk(seen), raw[:MOST_RAW_BYTES].decode("utf-8", "replace")
    content = chunk or chunk_file.parse(b"")
    edited = chunk_file.hand_edited(chunk) if chunk else row is not None and row.edited
    now = b"" if gone else seen.file_hash
    record = record_of(catalog, row, hand_edited=edited, now=now)
    is_known = row is not None and row.state in (INDEXED, RECORD)
    kind = content.kind or chunk_file.kind_of_name(seen.path) or ("chunk" if chunk else "")
    fingerprint = str(catalog.meta("fingerprint") or "")
    return About(
        path=tree.store_path(relative),
        frontmatter=dict(content.frontmatter),
        body=chunk.body if chunk else text,
        raw=text,
        raw_cut=len(raw) > MOST_RAW_BYTES,
        problem=GONE if gone else _problem(seen),
        record=record,
        source=relative if tree.has_sections else _source(catalog, content, row),
        pages=content.pages,
        headings=content.headings,
        questions=content.questions,
        own_questions=chunk_file.own_questions(content),
        questions_stale=_are_stale(content),
        children=content.children,
        kind=RECORD if seen.state == RECORD else kind,
        hand_edited=edited,
        freshness="gone" if gone else record["freshness"] if is_known else "not indexed",
        withheld="" if row is None or is_known else row.state,
        vectors=_vectors(parts, catalog, row, fingerprint),
        model=fingerprint,
        file_hash=now.hex(),
        indexed_hash=row.file_hash.hex() if row else "",
        origin=(chunk.origin if chunk else row.origin if row else None) or "",
        generation=row.generation if row else 0,
        sections=content.sections,
        tags=tuple(value for key, value in content.pairs if key == "tags"),
    )


def _place(parts: Parts, catalog: Catalog, path: str, *, last: bool) -> ChunkPath:
    """Where a file is, or was."""
    place, tree = below_chunked(parts.places, path), parts.places.tree
    if place is None and last and tree.holds(path):
        was = tree.chunk_path(StorePath(path))
        # What the catalog does not name may lead anywhere.
        place = was if was in catalog.files([was]) and not is_shut(parts.places, was) else None
    if place is None:
        raise unknown_path(parts.places, path, catalog)
    return place


def _last_seen(
    parts: Parts, catalog: Catalog, path: str, row: FileRow | None
) -> tuple[Observation, bytes]:
    """A file that is gone as it was indexed, and what of that is shown as it was written."""
    was = as_indexed(parts.layout, catalog, row)
    if was is None:
        raise unknown_path(parts.places, path, catalog)
    return was, b"" if was.data.startswith(MAGIC) else was.data


def _chunk(seen: Observation) -> chunk_file.Chunk | None:
    """What a file says, also where it is kept out of the index for what it says."""
    if seen.chunk is None and seen.state in codes_where(excluded="body"):
        with contextlib.suppress(FilestoreError):
            return chunk_file.parse(seen.data)
    return seen.chunk


def _are_stale(content: chunk_file.Chunk) -> bool:
    """Whether its generated questions were made for another text."""
    made_for = content.questions_origin
    mark = chunk_file.text_mark(chunk_file.embed_text(content.headings, content.body))
    return made_for is not None and bool(made_for.made) and made_for.text != mark


def _source(catalog: Catalog, content: chunk_file.Chunk, row: FileRow | None) -> str:
    return content.source or (row and catalog.source_of(row)) or ""


def _read_document(
    parts: Parts, catalog: Catalog, row: FileRow | None, seen: Observation, raw: bytes
) -> bytes:
    """Fill in what a document says; of one that takes a process to read, what was indexed.

    Returns:
        Its first bytes as they are shown: none of a file that is no text.
    """
    parts.layout.settle(seen)
    if seen.pending and row is not None:
        with contextlib.suppress(DocumentDamagedError):
            kept.fill(seen, catalog.content(row.id) or b"")
    if seen.pending:
        seen.state, seen.detail = "untracked", "its text was not taken out yet: 'filestore sync'"
    return raw if is_text(seen.path) else b""


def as_indexed(layout: Layout, catalog: Catalog, row: FileRow | None) -> Observation | None:
    """A file that is gone, as it was indexed; None where nothing is kept of it."""
    data = catalog.content(row.id) if row is not None else None
    if row is None or data is None:
        return None
    if not data.startswith(MAGIC):
        return observe_bytes(row.path, data, layout=layout)
    seen = Observation(path=row.path, values=(0,) * 5, state=INDEXED, file_hash=row.file_hash)
    with contextlib.suppress(DocumentDamagedError):
        kept.fill(seen, data)
        return seen
    return None


def _problem(seen: Observation) -> str:
    return "" if seen.state in (INDEXED, RECORD) else why_excluded(seen.state, seen.detail)


def _seen(parts: Parts, relative: ChunkPath) -> tuple[Observation, bytes]:
    """A file as it is, and its first bytes, one more than are shown; none where it is no file."""
    name = relative.rpartition("/")[2]
    try:
        with (
            disk.folder_at(parts.places.chunked) as root,
            disk.folder(root, folder_of(relative)) as handle,
        ):
            try:
                seen = observe_entry(handle, relative, name, layout=parts.layout)
            except FileNotFoundError:
                raise
            except OSError as error:
                seen = _unreadable(relative, error)
            if seen.data:
                return seen, seen.data[: MOST_RAW_BYTES + 1]
            # Too large, or no chunk file: its beginning is shown, unless it is no regular file.
            with contextlib.suppress(OSError):
                return seen, disk.read_at(handle, name, limit=MOST_RAW_BYTES + 1)[0]
            return seen, b""
    except (FileNotFoundError, NotADirectoryError) as error:
        raise unknown_path(parts.places, relative) from error
    except OSError as error:
        return _unreadable(relative, error), b""


def _unreadable(path: ChunkPath, error: OSError) -> Observation:
    detail = error.strerror or str(error)
    return Observation(path=path, values=(0,) * 5, state="unreadable", detail=detail)


def _vectors(
    parts: Parts, catalog: Catalog, row: FileRow | None, fingerprint: str
) -> tuple[VectorFacts, ...]:
    if row is None:
        return ()
    found = CatalogPages(catalog).vectors_of(row.id)
    stored: Mapping[bytes, bytes] = {}
    # Without the embeddings everything else is still worth telling.
    with contextlib.suppress(FilestoreError):
        embeddings = parts.embeddings() if found else None
        if embeddings is not None:
            stored = embeddings.raw(fingerprint, [key for _, _, key, _ in found])
    facts = []
    for part, identifier, key, embedded in found:
        norm, when = None, f"generation {row.generation}"
        if key in stored:
            # Little-endian float32; one vector is not worth loading numpy.
            numbers = array("f", stored[key])
            if sys.byteorder == "big":
                numbers.byteswap()
            norm = math.hypot(*numbers)
        if embedded > SOME_TIME:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(embedded))
        facts.append(
            VectorFacts(part=part, id=identifier, embedded=embedded != 0, norm=norm, when=when)
        )
    return tuple(facts)


def about_resource(places: Places, catalog: Catalog, name: str) -> AboutResource:
    """What is known of one resource.

    Raises:
        UnknownResourceError: No resource has this name, or several fit.
    """
    pages = CatalogPages(catalog)
    if places.tree.has_sections and name.endswith("/"):
        inside = documents_of(catalog, pages, name)
        return AboutResource(resource=name, chunks=len(inside))
    resource = name if pages.has_resource(name) else resource_named(catalog, name, places)
    known = [resource_record.parse(data) for data in catalog.records_of(resource)]
    documents = [document for record in known for document in record.documents]
    paths = catalog.record_paths(resource)
    return AboutResource(
        resource=resource,
        source=", ".join(record.source for record in known),
        documents=tuple((one.source, dict(one.metadata)) for one in documents),
        chunks=pages.chunk_count(resource),
        extractor=", ".join(dict.fromkeys(document.extractor for document in documents)),
        chunker=", ".join(dict.fromkeys(record.chunker for record in known)),
        record_path=places.tree.store_path(paths[0]) if paths else NO_PATH,
    )


def first_line(data: bytes) -> int:
    """The line of a chunk file in which its text begins."""
    return frontmatter.split(data).head.count(b"\n") + 1


def document_metadata(catalog: Catalog, resource: str, source: str | None) -> dict[str, Any]:
    """What the document of a chunk says about itself."""
    for data in catalog.records_of(resource):
        for document in resource_record.parse(data).documents:
            if document.source == source:
                return dict(document.metadata)
    return {}
