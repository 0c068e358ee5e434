"""One file as it is shown: a chunk file, a document in place, or an original of a chunk store.

Two rules: a text is shown as the file is now; where that takes a process to tell, as indexed, and
reported as edited. Of a text that is given in part the rest is counted, and what follows is named.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from filestore.browse.documents import place_of, present
from filestore.browse.file import Record, document_metadata, record_of
from filestore.browse.links import backlinks, note_links
from filestore.browse.named import (
    NamedFiles,
    UnknownPathError,
    file_in_tree,
    files_named,
    one_document,
    require_open,
    rows_of,
    unknown_path,
)
from filestore.browse.original import data_of
from filestore.browse.spans import FileText, Given, NoLineError, Range, Rest
from filestore.catalog import Catalog, FileRow
from filestore.catalog.ages import aged
from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.layout import look_at
from filestore.chunks.observation import DOCUMENT, INDEXED, MAX_CHUNK_BYTES, Observation
from filestore.chunks.reading_order import reconstruct
from filestore.core.errors import FilestoreError
from filestore.core.findings import FromIndex
from filestore.core.frontmatter_yaml import MalformedFrontmatter
from filestore.core.hashing import content_hash, revision_of
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.safe_text import inner_word
from filestore.extract import is_markup, is_text
from filestore.fs import disk
from filestore.search import authority
from filestore.search.authority import Authority
from filestore.search.freshness import KnownFile
from filestore.sidecar.door import is_shut_text
from filestore.sidecar.session import Parts

_CHUNKS: Final = "'filestore ls DOCUMENT' lists the chunks of a document"


class Shown(FromIndex, frozen=True, kw_only=True):
    """One file with what the store knows of it."""

    path: StorePath
    """Below the store root; of an original as records name it."""
    frontmatter: dict[str, Any]
    """As the file has it."""
    body: str
    """The text, or the part of it that was asked for."""
    revision: str | None
    """Of the file as it is now; a change of it names the revision it was made for. None of an
    original that cannot be read."""
    lines: tuple[int, int] | None
    """The first and the last line of the file that are in the text, also of frontmatter; of a
    document without lines, such as a PDF, those of all its text. None where there is no text."""
    left: Rest | None
    """What is not shown of the text; None where all of it is."""
    record: Record
    """What the store knows of it; sections and links are those of the part that is shown."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The keys of the frontmatter that are not ours."""
        # In place a document's keys are all its author's.
        ours = chunk_file.OUR_KEYS if self.record.get("kind") != DOCUMENT else ()
        return {key: value for key, value in self.frontmatter.items() if key not in ours}


class Asked(Struct, frozen=True, kw_only=True):
    """What is to be shown."""

    text: str
    """A file, with or without a place in it."""
    lines: str = ""
    """Instead of that place: what would be behind the colon; "" for none."""
    most: int | None = None
    """Characters, in whole lines; None for all of them."""

    def place(self, named: Range | None) -> Range | None:
        """The part that is shown; the path names this one.

        Raises:
            UsageError: It is no range.
        """
        found = Range.parse(self.lines) if self.lines else named
        return None if found is None else found.checked()


def show(parts: Parts, catalog: Catalog, asked: Asked) -> Shown:
    """A file as it is now, all or a part of it, and what the store knows of it.

    Args:
        parts: The store's.
        catalog: Inside a snapshot.
        asked: Which file, and which part of it.

    Raises:
        UnknownPathError: There is no such file.
        NoLineError: There is no such line, page or section.
        FilestoreError: It cannot be read.
    """
    is_document = parts.places.tree.has_sections
    there = file_in_tree(parts.places, asked.text)
    if there is not None and os.path.isdir(os.path.join(parts.places.chunked, there[0])):
        require_open(parts.places, catalog, there[0], asked.text)
        if one_document(catalog, there[0]) is None:
            try:
                # The folder of a document's chunks is called like the document.
                files_named(parts.places, catalog, asked.text, asked.place(None))
            except UnknownPathError as error:
                listed = f"'filestore ls {inner_word(asked.text)}' lists its documents"
                remedy = listed if is_document else _CHUNKS
                raise UnknownPathError(f"{asked.text} is a folder", remedy=remedy) from error
        there = None
    # It need not be indexed.
    if there is not None:
        path, wanted = there[0], asked.place(there[1])
    else:
        found = files_named(parts.places, catalog, asked.text, asked.place(None))
        if found.source is not None and (found.place is None or found.place.unit != "passage"):
            return _original(parts, catalog, found, asked.most)
        # Of an original the passage with a line is a chunk.
        path, wanted = found.paths[0], None if found.source else found.place
    require_open(parts.places, catalog, path, asked.text)
    shown = _document if is_document else _chunk
    return shown(parts, catalog, path, wanted, asked.most)


def _tell_authority(parts: Parts, catalog: Catalog, row: FileRow | None, record: Record) -> None:
    """Add how old a file is, and what it says of itself."""
    if row is None or row.state != INDEXED:
        return
    from filestore.sidecar.standing import Sources

    names, one = parts.settings.keys, aged(row, parts.places.tree, catalog.source_of(row))
    known = Authority(parts.places, catalog, names).known([one], parts.today())[row.id]
    judged = Sources(catalog, parts.reachable, names).judged(one)
    if judged.words and record.get("freshness") == "fresh":
        record["freshness"] = "outdated"
    record["created"], record["updated"] = known.created, known.updated
    record["status"] = known.status
    record["notes"] = [*known.notes, *judged.words]
    record["not_checked"] = list(judged.unknown)


def _given(
    text: FileText, given: Given, chunk: chunk_file.Chunk, data: bytes, record: Record
) -> Shown:
    """A file of the tree, as much of it as is given."""
    (start, end), lines, left = given
    return Shown(
        path=StorePath(text.name),
        frontmatter=dict(chunk.frontmatter),
        body=text.text[start:end] if left is not None else chunk.body,
        revision=revision_of(text.name, data),
        lines=lines,
        left=left,
        record=record,
    )


# Documents in place


def _document(
    parts: Parts, catalog: Catalog, path: ChunkPath, wanted: Range | None, most: int | None
) -> Shown:
    shown = parts.places.tree.store_path(path)
    row = catalog.files([path]).get(path)
    chunk, is_fresh, data = present(parts, catalog, path, row)
    text = _document_text(chunk, data, shown)
    given = text.shown(wanted, most)
    (start, end), lines, left = given
    inside = [
        number
        for number, one in enumerate(chunk.sections)
        if one.start < end - text.start and start - text.start < one.end
    ]
    record = _document_record(parts, catalog, row, chunk, is_fresh=is_fresh)
    _tell_authority(parts, catalog, row, record)
    if left is not None:
        record["sections"] = [record["sections"][number] for number in inside]
        ids: list[int] = record.get("vector_ids", [])
        if len(ids) == len(chunk.sections):
            record["vector_ids"] = [ids[number] for number in inside]
        links = record.get("links", [])
        first, last = lines or (0, 0)
        record["links"] = [one for one in links if not one["line"] or first <= one["line"] <= last]
    return _given(text, given, chunk, data, record)


def _document_text(chunk: chunk_file.Chunk, data: bytes, name: str) -> FileText:
    """The text of a document, with the lines of its file where it has any."""
    text, start = chunk.body, 0
    first = next((one for one in chunk.sections if one.line), None)
    if first is not None:
        whole = _decoded(data, name)
        if whole.replace("\r", "\n").endswith(text):
            text, start = whole, len(whole) - len(text)
        else:
            # The file is another one than what was read of it.
            start = max(0, first.line - 1 - text.count("\n", 0, first.start))
            text = "\n" * start + text
    return FileText(
        text=text,
        start=start,
        pages=[(start + at, number) for at, number in chunk.page_starts],
        passages=[(start + one.start, start + one.end) for one in chunk.sections],
        name=name,
    )


def _decoded(data: bytes, name: str) -> str:
    """The text of a file in whatever encoding, its lines ended by LF; "" where it is none."""
    from filestore.extract.base import ExtractionError, decode

    try:
        text = decode(data, name=name)[0].removeprefix("\ufeff").replace("\r\n", "\n")
    except ExtractionError:
        return ""
    # A lone CR ends a line only where no LF does.
    return text if "\n" in text else text.replace("\r", "\n")


def _document_record(
    parts: Parts,
    catalog: Catalog,
    row: FileRow | None,
    chunk: chunk_file.Chunk,
    *,
    is_fresh: bool,
) -> Record:
    """What is known of a document; its sections and links are those of the text as it is."""
    places, pairs = parts.places, dict.fromkeys(chunk.pairs)
    withheld = row.state if row is not None else None
    found: Record = {"indexed": False, "withheld": withheld, "hand_edited": False}
    if row is not None and row.state == INDEXED:
        found = {
            "indexed": True,
            "withheld": None,
            "freshness": "fresh" if is_fresh else "edited",
            "kind": row.kind,
            "hand_edited": False,
            "vector_ids": catalog.parts_of(row.id),
            "file_hash": row.file_hash.hex(),
            "generation": row.generation,
        }
    found["title"] = chunk.headings[0] if chunk.headings else ""
    found["aliases"] = [value for key, value in pairs if key == "aliases"]
    found["tags"] = [value for key, value in pairs if key == "tags"]
    found["sections"] = [place_of(chunk, section) for section in chunk.sections]
    if row is not None and found["indexed"]:
        found["links"] = [
            {"line": one.line, "target": one.target} for one in note_links(places, catalog, row)
        ]
        found["backlinks"] = [
            {"path": one.path, "line": one.line} for one in backlinks(places, catalog, row.path)
        ]
    return found


# Chunk files, and what they were made from


def _chunk(
    parts: Parts, catalog: Catalog, path: ChunkPath, wanted: Range | None, most: int | None
) -> Shown:
    shown = parts.places.tree.store_path(path)
    try:
        with disk.folder_at(parts.places.chunked) as handle:
            data, _ = disk.read_below(handle, path, most=MAX_CHUNK_BYTES)
    except disk.FileTooLargeError as error:
        raise FilestoreError(
            f"cannot show {shown}: oversized, {error.message}"
            "; cut it into smaller files, or move it out of chunked/",
        ) from error
    except FileNotFoundError as error:
        raise unknown_path(parts.places, shown, catalog) from error
    except OSError as error:
        raise UnknownPathError(
            f"cannot show {shown}: {error.strerror or error}", remedy=_CHUNKS
        ) from error
    chunk = chunk_file.parse(data)
    require_open(parts.places, catalog, path, shown, chunk)
    row = catalog.files([path]).get(path)
    record = record_of(
        catalog, row, hand_edited=chunk_file.hand_edited(chunk), now=content_hash(data)
    )
    if record.get("freshness") == "fresh":
        # Outdated where its original has changed.
        known = KnownFile(
            path=shown, resource=record["resource"], source=record["source"], freshness="fresh"
        )
        (marked,), _ = authority.outdated([known], parts, catalog)
        record["freshness"] = marked.freshness
    _tell_authority(parts, catalog, row, record)
    halves = frontmatter.split(data)
    head, body = (one.decode("utf-8", "replace") for one in (halves.head, halves.body))
    text = FileText(text=head + body, start=len(head), name=shown)
    return _given(text, text.shown(wanted, most), chunk, data, record)


def _original(parts: Parts, catalog: Catalog, found: NamedFiles, most: int | None) -> Shown:
    """An original: its own text where that has lines, else that of its chunks."""
    source, wanted = found.source or "", found.place
    data = None
    with contextlib.suppress(NoLineError):
        data = data_of(parts.places, catalog, source)
        with contextlib.suppress(MalformedFrontmatter, chunk_file.InvalidMetadata):
            document = chunk_file.parse(data if is_text(source) else b"")
            require_open(parts.places, catalog, ChunkPath(source), source, document)
    about: dict[str, Any] = {}
    text: FileText | None = None
    # Of a page of HTML a person reads what was taken out of it, and counts its own lines.
    is_read = is_text(source) and (wanted is not None or not is_markup(source))
    if data is not None and is_read and (whole := _decoded(data, source)):
        start = 0
        if source.lower().endswith((".md", ".markdown")):
            from filestore.extract.markdown import read_frontmatter

            about, start = read_frontmatter(whole)
        text = FileText(text=whole, start=start, name=source)
    if text is None:
        # The chunks are those of the pages, or of the section, that were asked for.
        is_of_lines = wanted is not None and wanted.unit == "lines"
        rows = rows_of(catalog, source) if is_of_lines else found.rows
        text = FileText(text=_joined(parts, rows), name=source)
        wanted = wanted if is_of_lines else None
    (start, end), lines, left = text.shown(wanted, most)
    row = found.rows[0]
    known = [
        KnownFile(
            path=parts.places.tree.store_path(one.path),
            resource=one.resource,
            source=source,
            freshness="fresh",
        )
        for one in found.rows
    ]
    marked, _ = authority.outdated(known, parts, catalog)
    record: Record = {
        "indexed": True,
        "freshness": max((one.freshness for one in marked), default="fresh"),
        "resource": row.resource,
        "source": source,
        "document": document_metadata(catalog, row.resource, source),
        "hand_edited": any(one.edited for one in found.rows),
    }
    _tell_authority(parts, catalog, row, record)
    return Shown(
        path=StorePath(source),
        frontmatter=about,
        body=text.text[start:end],
        revision=None if data is None else revision_of(source, data),
        lines=lines,
        left=left,
        record=record,
    )


def _joined(parts: Parts, rows: Sequence[FileRow]) -> str:
    """The text that the chunks of an original are, as they are on disk."""
    chunks = []
    for seen in look_at(parts.places, [row.path for row in rows], parts.layout):
        if not isinstance(seen, Observation) or seen.chunk is None:
            continue
        if not is_shut_text(parts.places, seen.chunk, seen.path):
            chunks.append((parts.places.tree.store_path(seen.path), seen.chunk))
    return reconstruct(chunks).text
