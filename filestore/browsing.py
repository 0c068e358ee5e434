"""Looking at what a store holds: resources, chunks, one file and its record, a whole text."""

import os
from typing import Any

from filestore import chunkfile, drift, fileio, records
from filestore.catalog import Catalog, FileRow, UnknownResourceError
from filestore.errors import FilestoreError
from filestore.hashing import content_hash
from filestore.observation import INDEXED, RECORD, Observation
from filestore.observe import interpret_chunk, is_record
from filestore.places import Places
from filestore.reconstruction import Reconstruction, reconstruct
from filestore.settings import Layout


class UnknownPathError(FilestoreError, KeyError):
    """No file of the store has this path."""

    def __str__(self) -> str:
        return self.message


def resource_named(catalog: Catalog, name: str, places: Places) -> str:
    """The resource meant by a name: its own, its name without suffix, or its source.

    Raises:
        UnknownResourceError: None or several fit.
    """
    known = catalog.resources()
    names = [resource for resource, _, _ in known]
    wanted = name.rstrip("/")
    if wanted in names:
        return wanted
    absolute = os.path.abspath(wanted)
    fitting = sorted(
        resource
        for resource, source, _ in known
        if resource
        and (
            os.path.splitext(resource)[0] == wanted
            or (source and source == wanted)
            or (source and os.path.normpath(os.path.join(places.root, source)) == absolute)
            or os.path.join(places.chunked, resource) == absolute
        )
    )
    if len(fitting) == 1:
        return fitting[0]
    detail = f"; it could be {', '.join(fitting)}" if fitting else ""
    raise UnknownResourceError(
        f"no resource {name!r}{detail}", remedy="'filestore ls' lists what is there"
    )


def chunks(catalog: Catalog, resource: str) -> list[dict[str, Any]]:
    """The files of a resource in reading order, as the catalog knows them."""
    rows = [row for row in catalog.files_of(resource) if row.state != RECORD]
    rows.sort(key=lambda row: chunkfile.sort_key(row.position, row.path))
    return [
        {
            "path": drift.root_path(row.path),
            "kind": row.kind or None,
            "source": catalog.source_of(row),
            "edited": row.edited,
            "withheld": row.state or None,
        }
        for row in rows
    ]


def show(places: Places, catalog: Catalog, path: str) -> dict[str, Any]:
    """One chunk file as it is on disk, and what the catalog knows of it.

    Raises:
        UnknownPathError: There is no such file below `chunked/`.
        FilestoreError: It cannot be read as a chunk.
    """
    relative = below_chunked(places, path)
    try:
        handle = os.open(places.chunked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            data, _ = fileio.read_below(handle, relative)
        finally:
            os.close(handle)
    except OSError as error:
        raise UnknownPathError(
            f"cannot show {path}: {error.strerror or error}",
            remedy="'filestore ls RESOURCE' lists the chunks of a resource",
        ) from error
    chunk = chunkfile.parse(data)
    row = catalog.files([relative]).get(relative)
    return {
        "path": drift.root_path(relative),
        "frontmatter": dict(chunk.frontmatter),
        "body": chunk.body,
        "record": _record(catalog, row, chunk, data),
    }


def _record(
    catalog: Catalog, row: FileRow | None, chunk: chunkfile.Chunk, data: bytes
) -> dict[str, Any]:
    if row is None:
        return {"indexed": False, "hand_edited": chunkfile.hand_edited(chunk)}
    source = catalog.source_of(row)
    return {
        "indexed": row.state == INDEXED,
        "withheld": row.state or None,
        "freshness": "fresh" if content_hash(data) == row.file_hash else "edited",
        "resource": row.resource,
        "kind": row.kind,
        "source": source,
        "document": _document(catalog, row.resource, source),
        "hand_edited": chunkfile.hand_edited(chunk),
        "vector_ids": catalog.parts_of(row.id),
        "file_hash": row.file_hash.hex(),
        "generation": row.generation,
    }


def _document(catalog: Catalog, resource: str, source: str | None) -> dict[str, Any]:
    """What the chunk's document says about itself."""
    for data in catalog.records_of(resource):
        for document in records.parse(data).documents:
            if document.source == source:
                return dict(document.metadata)
    return {}


def below_chunked(places: Places, path: str) -> str:
    """A path as given by a person, relative to `chunked/`.

    Raises:
        UnknownPathError: It leads out of it.
    """
    candidates = (
        os.path.join(places.root, path),
        os.path.join(places.chunked, path),
        os.path.abspath(path),
    )
    for candidate in candidates:
        normal = os.path.normpath(candidate)
        if normal.startswith(places.chunked + os.sep) and os.path.lexists(normal):
            return os.path.relpath(normal, places.chunked)
    raise UnknownPathError(
        f"no chunk file {path!r}", remedy="'filestore ls RESOURCE' lists the chunks of a resource"
    )


def reconstruct_resource(
    places: Places, catalog: Catalog, resource: str, layout: Layout
) -> Reconstruction:
    """The text of a resource from its files on disk, document after document."""
    files = (row.path for row in catalog.files_of(resource))
    paths = sorted(path for path in files if not is_record(path.rpartition("/")[2], layout))
    found: list[tuple[str, chunkfile.Chunk]] = []
    problems: list[str] = []
    for look in drift.look_at(places, paths, layout):
        if not isinstance(look, Observation):
            problems.append(f"{drift.root_path(look[0])}: {look[1].strerror or look[1]}")
            continue
        interpret_chunk(look)
        if look.chunk is None:
            problems.append(f"{drift.root_path(look.path)}: left out, {look.state}")
        elif (look.chunk.kind or chunkfile.kind_of_name(look.path)) != "summary":
            found.append((drift.root_path(look.path), look.chunk))
    done = reconstruct(found)
    return Reconstruction(text=done.text, chunks=done.chunks, warnings=(*problems, *done.warnings))
