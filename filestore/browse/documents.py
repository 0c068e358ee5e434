"""Documents: those of a store in place with their sections, and any one from beginning to end.

Two rules: a text is shown as the file is now; where that takes a process to tell, as indexed, and
reported as edited. What is given of a document is bounded by characters, the part that was
asked for is always there, and how many parts are left out is reported.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.browse.blocks import Block, heading_line, read_blocks
from filestore.browse.file import (
    ChunkFile,
    ChunkFiles,
    Resource,
    Resources,
    ShownSection,
    chunks,
    document_metadata,
)
from filestore.browse.named import (
    UnknownPathError,
    files_named,
    folder_named,
    require_open,
    resource_named,
    rows_of,
)
from filestore.browse.rows import read
from filestore.browse.spans import NoLineError, Range
from filestore.catalog import Catalog, FileRow, decode_path, queries
from filestore.chunking import Section
from filestore.chunks import chunk_file, kept
from filestore.chunks.layout import look_at
from filestore.chunks.observation import (
    DOCUMENT,
    INDEXED,
    MAX_CHUNK_BYTES,
    Observation,
    why_excluded,
)
from filestore.config.layout import Places
from filestore.core.codes import CODES
from filestore.core.errors import FilestoreError
from filestore.core.findings import FromIndex
from filestore.core.hashing import content_hash
from filestore.core.paths import TOP, ChunkPath, StorePath
from filestore.core.safe_text import without_name
from filestore.core.schema import JsonObject
from filestore.extract import is_prose
from filestore.fs import disk
from filestore.search import authority
from filestore.search.freshness import Freshness, KnownFile, first_line
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.search.place import Locator

MOST_PARTS: Final = 2_000
_BEFORE: Final = 4
"""Of what may be given, one in n parts comes before the one that was asked for."""
LIST: Final = "'filestore ls' lists the documents, 'filestore ls FOLDER' those of a folder"


class UnreadDocumentError(FilestoreError, LookupError):
    """A document has no text, because it could not be read when it was to be indexed."""


def documents(
    places: Places,
    catalog: Catalog,
    folder: ChunkPath = TOP,
    *,
    after: str = "",
    limit: int | None = None,
) -> list[Resource]:
    """The documents in a folder and below it, by path, each with the number of its sections.

    Args:
        places: Where the store lies.
        catalog: Inside a snapshot.
        folder: Where they are.
        after: Only those behind this path.
        limit: At most n; None for all.
    """
    start = f"{folder}/".encode("utf-8", "surrogateescape") if folder else b""
    behind = max(start, after.encode("utf-8", "surrogateescape"))
    return [
        {"resource": places.tree.store_path(decode_path(path)), "source": None, "chunks": count}
        for path, count in takewhile(
            lambda one: one[0].startswith(start),
            queries.documents_with_sections(catalog, behind, limit),
        )
    ]


def resources(parts: Parts, after: str | None, limit: int | None) -> list[Resource]:
    """Every resource; in place, every document."""
    with parts.reading() as catalog:
        if parts.places.tree.has_sections:
            return documents(parts.places, catalog, after=after or "", limit=limit)
        found = catalog.resources(after, limit)
    return [
        {"resource": name, "source": source or None, "chunks": chunks}
        for name, source, chunks in found
    ]


def files_of(parts: Parts, resource: str) -> list[ChunkFile]:
    """The files of a resource; in place, the sections of a document."""
    with parts.reading() as catalog:
        if parts.places.tree.has_sections:
            return sections(parts.places, catalog, resource)
        return chunks(parts.places, catalog, resource_named(catalog, resource, parts.places))


def in_folder(parts: Parts, folder: str) -> list[Resource] | None:
    """The documents of a folder in place; None if there is none."""
    found = folder_named(parts.places, folder) if parts.places.tree.has_sections else None
    if found is None:
        return None
    with parts.reading() as catalog:
        return documents(parts.places, catalog, found)


def listed(parts: Parts, name: str) -> Resources | ChunkFiles:
    """Everything, or what a folder or a resource has."""
    found = in_folder(parts, name) if name else resources(parts, None, None)
    return ChunkFiles(files_of(parts, name)) if found is None else Resources(found)


def sections(places: Places, catalog: Catalog, path: str) -> list[ChunkFile]:
    """The sections of a document, in order, as they were indexed.

    Raises:
        UnknownPathError: There is no such document in the index.
    """
    (row,) = files_named(places, catalog, path).rows
    chunk = kept.read(catalog.content(row.id) or b"")
    return [
        {
            "path": places.tree.store_path(row.path),
            "kind": row.kind,
            "source": None,
            "edited": False,
            "withheld": row.state or None,
            **place_of(chunk, section),
        }
        for section in chunk.sections
    ]


def place_of(chunk: chunk_file.Chunk, section: Section) -> ShownSection:
    """Where a section of a document is."""
    return {
        "line": first_line(chunk.body[section.start : section.end], section.line) or None,
        "end_line": section.end_line or None,
        "page": section.page or None,
        "headings": list(section.headings),
    }


def present(
    parts: Parts, catalog: Catalog, path: ChunkPath, row: FileRow | None
) -> tuple[chunk_file.Chunk, bool, bytes]:
    """What a document says, whether that is as it was indexed, and the bytes of its file.

    Raises:
        UnknownPathError: It cannot be read.
        UnreadDocumentError: It could not be when it was to be indexed.
    """
    (now,) = look_at(parts.places, [path], parts.layout)
    if not isinstance(now, Observation):
        reason = now[1].strerror or str(now[1])
        raise UnknownPathError(f"cannot show {path}: {reason}", remedy=LIST)
    data = now.data
    before = read(catalog, row.id) if row is not None and row.state == INDEXED else None
    is_fresh = row is not None and now.file_hash == row.file_hash
    if not is_fresh:
        # Cutting it costs more than all else; as it was indexed it is cut already.
        parts.layout.settle(now)
    if row is not None and is_fresh and before is None:
        # It was read as it is, and that failed: reading it again is no help.
        detail = without_name(path, why_excluded(row.state, row.detail))
        raise UnreadDocumentError(
            f"{path} is not indexed: {detail}", remedy=CODES[row.state].repair
        )
    chunk = before if is_fresh or now.chunk is None else now.chunk
    if chunk is None or (now.state != INDEXED and not is_fresh):
        # It may be new, and take a process to read; what is none of the tree's is never indexed.
        is_new = now.pending and parts.places.tree.holds(parts.places.tree.store_path(path))
        reason = "it is not indexed yet" if is_new else without_name(path, now.detail) or now.state
        can_sync = is_new or row is not None
        raise UnknownPathError(
            f"cannot show {path}: {reason or 'it is not a document'}",
            remedy="filestore sync" if can_sync else LIST,
        )
    require_open(parts.places, catalog, path, path, chunk)
    return chunk, is_fresh, data


class DocumentPart(JsonObject, Struct, frozen=True, kw_only=True):
    """A chunk of the document, or a section of one in place."""

    SPARSE = "problem blocks"

    path: StorePath
    """Its chunk file; in place the document."""
    line: int | None
    """Of the document, on which the text begins; None where it has no lines, or not this text."""
    end_line: int | None
    """On which it ends."""
    page: int | None
    """Of the document, on which it begins."""
    headings: tuple[str, ...]
    """From the outermost to its own."""
    freshness: Freshness
    """`fresh`: as indexed; `outdated`: as indexed, but its original changed or went; `edited`
    since; `gone`."""
    text: str
    """As it is on disk."""
    problem: str | None = None
    """Why there is no text; None where there is."""
    blocks: tuple[Block, ...] = ()
    """The text as it is read, where that was asked for and the document is running text."""


class WholeDocument(FromIndex, frozen=True, kw_only=True):
    """A document, as much of it as is given at once."""

    SPARSE = "line"

    path: StorePath
    """As hits name it: the original, or the file of the tree."""
    title: str
    """Its title, else its name."""
    resource: str
    """Its document."""
    kind: str
    """`chunk`, `summary`, or `document` in place."""
    generation: int
    """Of the index."""
    metadata: dict[str, Any]
    """What it says about itself."""
    prose: bool
    """Whether it is to be set as running text, by its name: no source code, and no rows."""
    parts: tuple[DocumentPart, ...]
    """Its chunks or sections, in reading order, as many as are given at once."""
    first: int
    """The number of the first that is given, from 0."""
    total: int
    """How many there are."""
    at: int
    """The number of the one that was asked for."""
    line: int = 0
    """Of the heading that was named, as blocks count lines; left out where there is none."""


class AskedParts(Struct, frozen=True):
    """Which of its parts are given; around the one that was asked for unless `first` is given."""

    line: int
    """Of a document in place, whose part is asked for; 0 for the beginning."""
    first: int | None
    """Begin with the part of this number instead."""
    most: int
    """At most this many characters, but one part at least."""
    heading: str = ""
    """Whose part is asked for; "" for none. Of a document without it the beginning is."""
    rendered: bool = False
    """Whether each part has its blocks."""


def whole(parts: Parts, catalog: Catalog, name: str, wanted: AskedParts) -> WholeDocument:
    """The document that a file is, or was made from.

    Args:
        parts: The store's.
        catalog: Inside a snapshot.
        name: A file of the tree, or an original, with or without a place in it.
        wanted: Which of its parts.

    Raises:
        UnknownPathError, NoLineError: There is none, or no such place in it.
    """
    try:
        place = Range(unit="section", heading=wanted.heading) if wanted.heading else None
        found = files_named(parts.places, catalog, name, place)
    except NoLineError:
        if not wanted.heading:
            raise
        found = files_named(parts.places, catalog, name)
    row = found.rows[0]
    if row.kind == DOCUMENT:
        return _document(parts, catalog, row, found.part, wanted)
    source = catalog.source_of(row) if row.kind == "chunk" else None
    rows = rows_of(catalog, source) if source else []
    at = next((n for n, one in enumerate(rows) if one.id == row.id), None)
    if at is None:
        # A summary, or written by hand next to what was made: no part of the document.
        rows, at, source = [row], 0, None
    return _of_chunks(parts, catalog, rows, at, source, wanted)


def _document(
    parts: Parts, catalog: Catalog, row: FileRow, named: int | None, wanted: AskedParts
) -> WholeDocument:
    path = parts.places.tree.store_path(row.path)
    chunk, is_fresh, _ = present(parts, catalog, row.path, row)
    freshness: Freshness = "fresh" if is_fresh else "edited"
    sections = chunk.sections or (Section(start=0, end=len(chunk.body), headings=chunk.headings),)
    # Of a document without lines each section says 0.
    above = [n for n, one in enumerate(sections) if 0 < one.line <= wanted.line]
    at = above[-1] if above else 0
    if named is not None and not wanted.line:
        at = min(named, len(sections) - 1)

    def part(number: int) -> DocumentPart:
        one = sections[number]
        text = chunk.body[one.start : one.end]
        return DocumentPart(
            path=path,
            line=first_line(text, one.line) or None,
            end_line=one.end_line or None,
            page=one.page or None,
            headings=one.headings,
            freshness=freshness,
            text=text,
        )

    from filestore.search.answer import stem

    given, begin = _window(part, len(sections), at, wanted)
    if wanted.rendered and is_prose(path):
        given = _rendered(chunk.body, sections[begin : begin + len(given)], given)
    return WholeDocument(
        path=path,
        title=chunk.headings[0] if chunk.headings else stem(path),
        resource=row.resource or path,
        kind=row.kind,
        generation=catalog.generation,
        metadata=dict(chunk.frontmatter),
        prose=is_prose(path),
        parts=given,
        first=begin,
        total=len(sections),
        at=at,
        line=_line_of(wanted.heading, given[max(at - begin, 0) :]),
    )


def _rendered(
    body: str, sections: Sequence[Section], given: Sequence[DocumentPart]
) -> tuple[DocumentPart, ...]:
    """Sections with their blocks, read as one text: a listing may go on in the next section."""
    start, first = sections[0].start, sections[0].line or 1
    starts = [one.start for one in sections]
    passed = (body.count("\n", *pair) for pair in pairwise(starts))
    lines = list(accumulate(passed, initial=first))
    blocks: list[list[Block]] = [[] for _ in sections]
    for block in read_blocks(body[start : sections[-1].end], first=first):
        blocks[max(bisect_right(lines, block.line) - 1, 0)].append(block)
    return tuple(replace(part, blocks=tuple(own)) for part, own in zip(given, blocks, strict=True))


def _line_of(heading: str, given: Sequence[DocumentPart]) -> int:
    blocks = (block for part in given for block in part.blocks)
    return heading_line(blocks, heading) if heading else 0


def _of_chunks(
    parts: Parts,
    catalog: Catalog,
    rows: Sequence[FileRow],
    at: int,
    source: str | None,
    wanted: AskedParts,
) -> WholeDocument:
    from filestore.search.place import Locator

    row, tree = rows[at], parts.places.tree
    recorded = catalog.source_of(row)
    locator = Locator(parts.reachable, catalog, [recorded] if recorded else [])
    with disk.folder_at(parts.places.chunked) as handle:
        given, begin = _window(
            lambda number: _chunk_part(parts, catalog, locator, handle, rows[number]),
            len(rows),
            at,
            wanted,
        )
    # The parts; the ones that are as indexed say where what they were made from is not.
    resource = row.resource
    found = [
        KnownFile(path=one.path, resource=resource, source=recorded, freshness=one.freshness)
        for one in given
    ]
    marked, _ = authority.outdated(found, parts, catalog)
    given = tuple(
        replace(part, freshness=one.freshness) for part, one in zip(given, marked, strict=True)
    )
    from filestore.search.answer import stem

    path = StorePath(source) if source else tree.store_path(row.path)
    if wanted.rendered and is_prose(path):
        given = tuple(
            replace(one, blocks=tuple(read_blocks(one.text, first=one.line or 1))) for one in given
        )
    metadata = document_metadata(catalog, row.resource, recorded)
    own = queries.titles_of_files(catalog, [row.id]).get(row.id)
    return WholeDocument(
        path=path,
        title=own or str(metadata.get("title") or "") or stem(path),
        resource=row.resource,
        kind=row.kind,
        generation=catalog.generation,
        metadata=metadata,
        prose=is_prose(path),
        parts=given,
        first=begin,
        total=len(rows),
        at=at,
        line=_line_of(wanted.heading, given[max(at - begin, 0) :]),
    )


def _chunk_part(
    parts: Parts, catalog: Catalog, locator: "Locator", handle: int, row: FileRow
) -> DocumentPart:
    """A chunk file as it is now, and where in its document it is."""
    from filestore.search.place import Chunk

    path = parts.places.tree.store_path(row.path)
    headings, pages = row.headings_and_pages()
    text, problem, line, end_line = "", None, None, None
    freshness: Freshness = "edited"
    try:
        data, _ = disk.read_below(handle, row.path, most=MAX_CHUNK_BYTES)
        parsed = chunk_file.parse(data)
        require_open(parts.places, catalog, row.path, path, parsed)
        text = parsed.body
    except FileNotFoundError:
        problem, freshness = "the file is gone", "gone"
    except OSError as error:
        problem = error.strerror or str(error)
    except FilestoreError as error:
        problem = error.message
    else:
        freshness = "fresh" if content_hash(data) == row.file_hash else "edited"
        source = catalog.source_of(row)
        is_edited = row.edited or freshness == "edited"
        chunk = Chunk.of(row, parts.places.tree, text, source, edited=is_edited)
        place = locator.whole(chunk)
        if place.document == source:
            line, end_line = place.line, place.end_line
    return DocumentPart(
        path=path,
        line=line,
        end_line=end_line,
        page=pages[0] if pages else None,
        headings=headings,
        freshness=freshness,
        text=text,
        problem=problem,
    )


def _window(
    part: Callable[[int], DocumentPart], total: int, at: int, wanted: AskedParts
) -> tuple[tuple[DocumentPart, ...], int]:
    """As many parts as are given at once, with the one asked for, and the number of the first."""
    begin = at if wanted.first is None else min(max(wanted.first, 0), total - 1)
    found = [part(begin)]
    left = wanted.most - len(found[0].text)
    before: list[DocumentPart] = []
    if wanted.first is None:
        room = left // _BEFORE
        while len(before) < min(begin, MOST_PARTS // _BEFORE):
            one = part(begin - len(before) - 1)
            if len(one.text) > room:
                break
            room, left = room - len(one.text), left - len(one.text)
            before.append(one)
    for number in range(begin + 1, min(total, begin + MOST_PARTS - len(before))):
        one = part(number)
        if len(one.text) > left:
            break
        left -= len(one.text)
        found.append(one)
    return (*reversed(before), *found), begin - len(before)
