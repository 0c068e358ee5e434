"""The chunks of a resource, put together as one text."""

from msgspec import Struct

from filestore.browse.file import as_indexed, first_line
from filestore.catalog import Catalog
from filestore.chunks import chunk_file
from filestore.chunks.layout import Layout, look_at
from filestore.chunks.observation import RECORD, Observation
from filestore.chunks.reading_order import Reconstruction, Written, own_texts, reconstruct
from filestore.config.layout import Places
from filestore.core.paths import ChunkPath, StorePath
from filestore.sidecar.door import is_shut_text


class Piece(Struct, frozen=True):
    """A chunk of a text that is read as a whole."""

    path: StorePath
    text: str
    """Without what repeats the chunk before."""
    line: int
    """Of the chunk file, in which it begins."""
    source: str
    """The document that it was made from; "" for none."""
    is_gone: bool = False
    """Whether its file is not there, so that this is its text as it was indexed."""


def pieces(
    places: Places, catalog: Catalog, resource: str, layout: Layout, most: int
) -> tuple[list[Piece], int]:
    """The texts of a resource in reading order, and how many chunks are left out.

    Args:
        places: The store's.
        catalog: Inside a snapshot.
        resource: Its name.
        layout: Of its files.
        most: Characters behind which no chunk begins.
    """
    rows = [row for row in catalog.files_of(resource) if row.state != RECORD]
    rows = [row for row in rows if row.kind != "summary"]
    rows.sort(key=lambda row: chunk_file.sort_key(row.position, row.path))
    found: list[Observation] = []
    gone: set[ChunkPath] = set()
    sources: dict[str, str] = {}
    size = 0
    looks = look_at(places, [row.path for row in rows], layout)
    for row, look in zip(rows, looks, strict=False):
        seen = look if isinstance(look, Observation) else None
        if seen is None and (seen := as_indexed(layout, catalog, row)) is not None:
            gone.add(row.path)
        if seen is not None:
            found.append(seen)
            sources[places.tree.store_path(row.path)] = catalog.source_of(row) or ""
            size += len(seen.data)
        if size > most:
            break
    known = [
        (places.tree.store_path(seen.path), seen.data, seen.chunk)
        for seen in found
        if seen.chunk is not None and not is_shut_text(places, seen.chunk, seen.path)
    ]
    texts = own_texts(Written(c.source, c.body, c.overlap, c.repeats) for _, _, c in known)
    made = [
        Piece(
            path=path,
            text=text,
            line=first_line(data) + chunk.body.count("\n", 0, chunk.body.find(text)),
            source=chunk.source or sources.get(path, ""),
            is_gone=places.tree.chunk_path(path) in gone,
        )
        for (path, data, chunk), text in zip(known, texts, strict=True)
    ]
    return made, len(rows) - len(found)


def reconstruct_resource(
    places: Places, catalog: Catalog, resource: str, layout: Layout
) -> Reconstruction:
    """The text of a resource from its files on disk, document after document."""
    files = (row.path for row in catalog.files_of(resource))
    paths = sorted(path for path in files if not layout.is_record(path.rpartition("/")[2]))
    found: list[tuple[StorePath, chunk_file.Chunk]] = []
    problems: list[str] = []
    for look in look_at(places, paths, layout):
        if not isinstance(look, Observation):
            problems.append(f"{places.tree.store_path(look[0])}: {look[1].strerror or look[1]}")
            continue
        if look.chunk is not None and is_shut_text(places, look.chunk, look.path):
            continue
        if look.chunk is None:
            problems.append(f"{places.tree.store_path(look.path)}: left out, {look.state}")
        elif (look.chunk.kind or chunk_file.kind_of_name(look.path)) != "summary":
            found.append((places.tree.store_path(look.path), look.chunk))
    done = reconstruct(found)
    return Reconstruction(text=done.text, chunks=done.chunks, warnings=(*problems, *done.warnings))
