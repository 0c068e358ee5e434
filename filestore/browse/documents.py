"""What a store in place holds: its documents by folder, and one of them with its sections.

One rule: a text is shown as the file is now; where that takes a process to tell, as it was indexed,
and reported as edited.
"""

import os
from typing import Final

from filestore.browse.file import (
    ChunkFile,
    Record,
    Resource,
    Shown,
    ShownSection,
)
from filestore.browse.links import backlinks, note_links
from filestore.browse.named import UnknownPathError, below_chunked, files_named
from filestore.browse.rows import read
from filestore.catalog import Catalog, FileRow, decode_path, queries
from filestore.chunks import kept
from filestore.chunks.chunk_file import Chunk, Section
from filestore.chunks.observation import INDEXED, Observation
from filestore.chunks.observe import look_at
from filestore.config.layout import Places
from filestore.core.paths import TOP, ChunkPath
from filestore.search.freshness import first_line
from filestore.sidecar.session import Parts

_LIST: Final = "'filestore ls' lists the documents, 'filestore ls FOLDER' those of a folder"


def documents(places: Places, catalog: Catalog, folder: ChunkPath = TOP) -> list[Resource]:
    """The documents in a folder and below it, each with the number of its sections."""
    start = f"{folder}/".encode("utf-8", "surrogateescape") if folder else b""
    return [
        {"resource": places.tree.store_path(decode_path(path)), "source": None, "chunks": count}
        for path, count in queries.documents_with_sections(catalog)
        if path.startswith(start)
    ]


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
            **_place(chunk, section),
        }
        for section in chunk.sections
    ]


def _place(chunk: Chunk, section: Section) -> ShownSection:
    return {
        "line": first_line(chunk.body[section.start : section.end], section.line) or None,
        "end_line": section.end_line or None,
        "page": section.page or None,
        "headings": list(section.headings),
    }


def show(parts: Parts, catalog: Catalog, name: str) -> Shown:
    """A document, or the section of it that holds a line, and what the store knows of it.

    Args:
        parts: The store's.
        catalog: Inside a snapshot.
        name: PATH or PATH:LINE.

    Raises:
        UnknownPathError: There is no such file.
        NoLineError: There is no such line.
    """
    places = parts.places
    path, part = _document_named(places, catalog, name)
    row = catalog.files([path]).get(path)
    chunk, is_fresh = present(parts, catalog, path, row)
    body = chunk.body
    if part is not None and part < len(chunk.sections):
        body = body[chunk.sections[part].start : chunk.sections[part].end]
    return Shown(
        path=places.tree.store_path(path),
        frontmatter=dict(chunk.frontmatter),
        body=body,
        record=_record(places, catalog, row, chunk, is_fresh=is_fresh),
    )


def present(
    parts: Parts, catalog: Catalog, path: ChunkPath, row: FileRow | None
) -> tuple[Chunk, bool]:
    """What a document says, and whether that is as it was indexed.

    Raises:
        UnknownPathError: It cannot be read.
    """
    now = _now(parts, path)
    before = read(catalog, row.id) if row is not None and row.state == INDEXED else None
    is_fresh = row is not None and now.file_hash == row.file_hash
    chunk = before if is_fresh or now.chunk is None else now.chunk
    if chunk is None or (now.state != INDEXED and not is_fresh):
        # It may be new, and take a process to read; what is none of the tree's is never indexed.
        is_new = now.pending and parts.places.tree.holds(parts.places.tree.store_path(path))
        reason = "it is not indexed yet" if is_new else now.detail or now.state
        can_sync = is_new or row is not None
        raise UnknownPathError(
            f"cannot show {path}: {reason or 'it is no document'}",
            remedy="filestore sync" if can_sync else _LIST,
        )
    return chunk, is_fresh


def _document_named(places: Places, catalog: Catalog, name: str) -> tuple[ChunkPath, int | None]:
    """The file, and the section of a line; a file need not be indexed."""
    try:
        path = below_chunked(places, name)
    except UnknownPathError:
        asked = files_named(places, catalog, name)
        return asked.paths[0], asked.part
    if os.path.isdir(os.path.join(places.chunked, path)):
        raise UnknownPathError(f"{name} is a folder", remedy=_LIST)
    return path, None


def _now(parts: Parts, path: ChunkPath) -> Observation:
    """The file as it is; what it says, where no process has to be started for that.

    Raises:
        UnknownPathError: It cannot be read.
    """
    (seen,) = look_at(parts.places, [path], parts.layout)
    if not isinstance(seen, Observation):
        reason = seen[1].strerror or seen[1]
        raise UnknownPathError(f"cannot show {path}: {reason}", remedy=_LIST)
    parts.layout.settle(seen)
    return seen


def _record(
    places: Places, catalog: Catalog, row: FileRow | None, chunk: Chunk, *, is_fresh: bool
) -> Record:
    """What is known of a document; its sections and links are those of the text that is shown."""
    pairs = dict.fromkeys(chunk.pairs)
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
    found["sections"] = [_place(chunk, section) for section in chunk.sections]
    if row is not None and found["indexed"]:
        found["links"] = [
            {"line": one.line, "target": one.target} for one in note_links(places, catalog, row)
        ]
        found["backlinks"] = [
            {"path": one.path, "line": one.line} for one in backlinks(places, catalog, row.path)
        ]
    return found
