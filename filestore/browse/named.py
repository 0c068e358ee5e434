"""What a person or an agent names: a file, with or without a place in it, or a resource.

One rule: a text that a door printed is found again, whatever the names of files are.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, product
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.browse.original import rows_at
from filestore.browse.spans import FileText, NoLineError, Range, readings
from filestore.catalog import (
    Catalog,
    CatalogDamagedError,
    CatalogMissingError,
    FileRow,
    UnknownResourceError,
    decode_path,
    queries,
)
from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.observation import INDEXED, MAX_CHUNK_BYTES
from filestore.config.layout import Places
from filestore.core.caller import absolute, leads, working_folder
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import TOP, ChunkPath, StorePath, around, is_below, is_made
from filestore.core.safe_text import offered
from filestore.core.spelling import did_you_mean_path, nearest_paths
from filestore.fs import disk
from filestore.fs.path_names import composed, name_among, on_disk, typed_paths
from filestore.sidecar.door import is_shut, is_shut_text
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.search.place import Place

_LIST: Final = "'filestore ls DOCUMENT' lists the chunks of a document"
_REMEDY: Final = "'filestore ls' lists what is there, 'filestore ls DOCUMENT' its chunks"
_DOCUMENTS_REMEDY: Final = "'filestore ls' lists the documents; 'filestore sync' indexes new ones"
_LONGEST: Final = 200
"""Characters of a path in a message."""


class UnknownPathError(FilestoreError, KeyError):
    """No file of the store has this path."""

    def __str__(self) -> str:
        return self.message


class NamedFiles(Struct, frozen=True, kw_only=True):
    """The indexed files that a person named."""

    rows: tuple[FileRow, ...]
    """In reading order; never none."""
    source: str | None = None
    """The original that was named, as records have it; None where a chunk file was."""
    line: int | None = None
    part: int | None = None
    """The section of a document in place in which what is named begins."""
    place: Range | None = None
    """What of it was named; None for all."""

    @property
    def paths(self) -> list[ChunkPath]:
        """Where they lie."""
        return [row.path for row in self.rows]


def files_named(
    places: Places, catalog: Catalog, text: str, wanted: Range | None = None
) -> NamedFiles:
    """The chunk files that a person means.

    Args:
        places: The store's.
        catalog: Inside a snapshot.
        text: A chunk file, relative to the store root, to `chunked/` or to the working folder; or
            an original, as records name it or relative to the working folder. Behind it a place;
            see `spans`.
        wanted: Instead of that place.

    Raises:
        UnknownPathError: It is neither, or the file is not indexed.
        NoLineError: There is no such line, page or section, or it is not known whose it is.
        UsageError: It is no range.
    """
    read = ((_named(places, catalog, name), place) for name, place in readings(text))
    found, place = next((one for one in read if one[0] is not None), (None, None))
    if found is None:
        raise unknown_path(places, text, catalog)
    wanted = wanted or place
    if wanted is None:
        return found
    wanted.checked()
    line = wanted.first if wanted.unit in ("passage", "lines") else None
    if found.source is None:
        part = _part_at(catalog, found.rows[0], wanted)
        return NamedFiles(rows=found.rows, line=line, part=part, place=wanted)
    rows = rows_at(places, catalog, found.source, found.rows, wanted)
    return NamedFiles(rows=tuple(rows), source=found.source, line=line, place=wanted)


def _named(places: Places, catalog: Catalog, text: str) -> NamedFiles | None:
    path = _chunk_path(places, catalog, text)
    if path is not None:
        row = catalog.files([path]).get(path)
        if row is None or row.state != INDEXED:
            state = "not indexed" if row is None else f"left out of the index ({row.state})"
            raise UnknownPathError(
                f"{text} is {state}",
                remedy="'filestore sync'; 'filestore status' says why a file is left out",
            )
        return NamedFiles(rows=(row,))
    source = _source(places, catalog, text)
    if source is None:
        return None
    rows = rows_of(catalog, source)
    if not rows:
        raise UnknownPathError(
            f"no chunk of {text} is indexed", remedy="'filestore sync', then 'filestore status'"
        )
    return NamedFiles(rows=tuple(rows), source=source)


def _chunk_path(places: Places, catalog: Catalog, text: str) -> ChunkPath | None:
    """A file that is there, or that the catalog knows."""
    path = below_chunked(places, text)
    if path is None:
        starts = (places.root, places.chunked, working_folder())
        for place in typed_paths(text, starts):
            relative = os.path.relpath(absolute(place), places.chunked)
            gone = ChunkPath(relative)
            if not relative.startswith("..") and gone in catalog.files([gone]):
                return gone
        return None
    is_folder = os.path.isdir(os.path.join(places.chunked, path))
    return None if is_folder or catalog.closes(path) else path


def _source(places: Places, catalog: Catalog, text: str) -> str | None:
    """The document that a person named, as records have it."""
    known = {source for _, _, source, _ in catalog.documents()}
    if (name := name_among(text, known)) in known:
        return name
    if "\0" in text:
        # No path has one, and the system takes none.
        return None
    typed = list(typed_paths(text, (working_folder(), places.root)))
    here = {on_disk(whole) for place in typed for whole in (absolute(place), leads(place))}
    lying = {reference: path for reference, path in catalog.originals().items() if path in here}
    for source in sorted(known):
        place = os.path.normpath(os.path.join(places.root, source))
        if place in here or source in lying:
            return source
    return one_document(catalog, text)


def one_document(catalog: Catalog, name: str) -> str | None:
    """The document of a resource by its name, where it has one alone."""
    found = [source for _, resource, source, _ in catalog.documents() if name == resource != ""]
    return found[0] if len(found) == 1 else None


def rows_of(catalog: Catalog, source: str) -> list[FileRow]:
    """The indexed chunk files made from a document, in reading order."""
    resources = {resource for _, resource, one, _ in catalog.documents() if one == source}
    rows = {row.id: row for row in catalog.files_from([source])}
    for resource in resources - {""}:
        rows |= {
            row.id: row
            for row in catalog.files_of(resource)
            if row.source is None and row.origin and catalog.source_of(row) == source
        }
    found = [row for row in rows.values() if row.state == INDEXED]
    return sorted(found, key=lambda row: chunk_file.sort_key(row.position, row.path))


def _part_at(catalog: Catalog, row: FileRow, wanted: Range) -> int | None:
    """The section in which what is named begins; None for a chunk file."""
    from filestore.chunks import kept

    data = catalog.content(row.id) or b""
    if not kept.is_document(data):
        if wanted.unit in ("passage", "lines"):
            FileText(text=data.decode("utf-8", "replace"), name=row.path).span(wanted)
        return None
    chunk = kept.as_chunk(kept.decode(data))
    last = max((one.end_line for one in chunk.sections), default=0)
    if last and wanted.unit in ("passage", "lines"):
        if wanted.first > last:
            raise NoLineError(
                f"there is no line {wanted.first:,}: the indexed file has {last:,}; leave it out"
            )
        return max(0, bisect_right([one.line for one in chunk.sections], wanted.first) - 1)
    start, _ = text_of(chunk, row.path).span(wanted)
    return max(0, bisect_right([one.start for one in chunk.sections], start) - 1)


def text_of(chunk: chunk_file.Chunk, name: str) -> FileText:
    """The text of a document in place of which nothing else is known than what was read of it."""
    return FileText(
        text=chunk.body,
        pages=chunk.page_starts,
        passages=[(one.start, one.end) for one in chunk.sections],
        name=name,
    )


# Paths and names that need not be indexed


def below_chunked(places: Places, path: str) -> ChunkPath | None:
    """A path as given by a person, relative to `chunked/`; None where no file there has it."""
    starts = (places.root, places.chunked, working_folder())
    for place, whole_of in product(typed_paths(path, starts), (absolute, leads)):
        whole = whole_of(place)
        if whole == places.chunked or not is_below(whole, places.chunked):
            continue
        try:
            os.lstat(whole)
        except PermissionError:
            pass  # something may be there
        except (OSError, ValueError):
            continue
        found = ChunkPath(os.path.relpath(whole, places.chunked))
        if not is_shut(places, found):
            return found
    return None


def require_open(
    places: Places,
    catalog: Catalog,
    path: ChunkPath,
    name: str,
    chunk: chunk_file.Chunk | None = None,
) -> None:
    """Pass over a file that is closed to who asks, as if it were not there.

    Args:
        places: The store's.
        catalog: Inside a snapshot.
        path: Of the file.
        name: As it was named.
        chunk: What it says now, which the catalog may not know yet.

    Raises:
        UnknownPathError: It is closed.
    """
    if catalog.closes(path) or (chunk is not None and is_shut_text(places, chunk, path)):
        raise unknown_path(places, name, catalog)


def chunk_paths(
    places: Places, paths: Sequence[str], *, missing_ok: bool = False
) -> list[ChunkPath]:
    """Paths as given by a person, relative to `chunked/`, each once.

    Raises:
        UnknownPathError: One leads out of it, or is not there where it has to be.
    """
    found: dict[ChunkPath, None] = {}
    for path in paths:
        if (there := below_chunked(places, path)) is not None:
            found[there] = None
        elif not missing_ok or not path:
            raise unknown_path(places, path)
    return list(found)


def file_in_tree(places: Places, text: str) -> tuple[ChunkPath, Range | None] | None:
    """The file of the tree that a text names, indexed or not, and the place in it, if any."""
    for name, place in readings(text):
        if (path := below_chunked(places, name)) is not None:
            return path, place
    return None


def unknown(parts: Parts, text: str) -> FilestoreError:
    """The error for a path that leads to no file, whether there is a catalog or not."""
    with suppress(CatalogMissingError, CatalogDamagedError), parts.reading() as catalog:
        return unknown_path(parts.places, text, catalog)
    return unknown_path(parts.places, text)


def unknown_path(places: Places, text: str, catalog: Catalog | None = None) -> FilestoreError:
    """The error for a path that leads to no file; with a catalog, it names the nearest three."""
    if not text.strip():
        return UsageError("no path was named: name one as search prints it")
    near = "" if catalog is None else _nearest(places, catalog, text)
    shown = f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text
    if places.tree.has_sections:
        return UnknownPathError(f"no document {shown!r}{near}", remedy=_DOCUMENTS_REMEDY)
    return UnknownPathError(f"no chunk file and no original {shown!r}{near}", remedy=_REMEDY)


def _nearest(places: Places, catalog: Catalog, text: str) -> str:
    paths = (places.tree.store_path(decode_path(path)) for path in queries.all_paths(catalog))
    known: Iterable[str] = (path for path in paths if not is_made(path))
    if not places.tree.has_sections:
        sources = {source for _, _, source, _ in catalog.documents()}
        known = chain(sources, (path for path in known if path.endswith(".md")))
    name = next((name for name, wanted in reversed([*readings(text)]) if wanted), text)
    # It may be gone, or closed since it was indexed.
    every = {one for one in known if one != name}
    # What has no ending is mostly a folder.
    is_folder = not os.path.splitext(name)[1]
    folders = {up for one in every for up in around(os.path.dirname(one))} if is_folder else set()
    found = nearest_paths(name, sorted((every | folders) - {".."}))
    return offered([f"{one}/" if one in folders else one for one in found])


def resource_named(catalog: Catalog, name: str, places: Places) -> str:
    """The resource of a name: its own, its name without suffix, or its source.

    Raises:
        UnknownResourceError: None or several fit.
    """
    known = catalog.resources()
    names = [resource for resource, _, _ in known]
    wanted = name_among(os.path.normpath(name) if name else name, names)
    if wanted in names:
        return wanted
    there = {on_disk(absolute(wanted)), on_disk(leads(wanted))}
    fitting = sorted(
        resource
        for resource, source, _ in known
        if resource
        and (
            composed(os.path.splitext(resource)[0]) == composed(wanted)
            or (source and composed(source) == composed(wanted))
            or (source and os.path.normpath(os.path.join(places.root, source)) in there)
            or os.path.join(places.chunked, resource) in there
        )
    )
    if len(fitting) == 1:
        return fitting[0]
    detail = f"; it could be {', '.join(fitting)}"
    if not fitting:
        sources = (source for _, source, _ in known)
        detail = did_you_mean_path(wanted, names) or did_you_mean_path(wanted, sources)
    raise UnknownResourceError(
        f"no document {name!r}{detail}", remedy="'filestore ls' lists what is there"
    )


def folder_named(places: Places, name: str) -> ChunkPath | None:
    """The folder that a person means, relative to the root or to the working folder, if any."""
    # What begins with a dot is relative to the working folder.
    starts = (working_folder(),) if name.startswith(".") else (places.root, working_folder())
    for place in typed_paths(name, starts):
        path = leads(place)
        relative = os.path.relpath(path, places.root)
        if os.path.isdir(path) and relative.partition("/")[0] != "..":
            folder = TOP if relative == "." else ChunkPath(relative)
            return None if folder and is_shut(places, folder) else folder
    return None


def prefix_of(places: Places, typed: str) -> str:
    """How the names of the documents in a folder begin, with "/" at the end; "" for the store."""
    there = folder_named(places, typed) if typed and places.tree.has_sections else None
    if there is not None:
        return f"{places.tree.store_path(there)}/" if there else ""
    name = os.path.relpath(typed, places.root) if os.path.isabs(typed) else typed
    name = os.path.normpath(name) if name else "."
    return "" if name == "." else f"{name}/"


def resources_below(catalog: Catalog, folder: str, places: Places) -> list[str]:
    """The resources that were made from what lies below a folder; in place, its documents."""
    prefix = prefix_of(places, folder)
    if places.tree.has_sections:
        paths = (decode_path(path) for path, _ in queries.documents_with_sections(catalog))
        return [one for one in map(places.tree.store_path, paths) if one.startswith(prefix)]
    return [name for name, source, _ in catalog.resources() if source and source.startswith(prefix)]


# What a search printed, and the editor that opens it


_HIGHEST: Final = 10**9
"""A line that editors can be given."""


class Spot(Struct, frozen=True, kw_only=True):
    """A file, and where in it."""

    path: str
    """Absolute."""
    line: int | None = None
    page: int | None = None


def spot_of(hit: str, parts: Parts) -> Spot:
    """The file that a person means, and where in it: ``PATH``, ``PATH:LINE``, or a line of output.

    Args:
        hit: Relative to the working folder, to the store root or to `chunked/`.
        parts: Of the store.

    Raises:
        UnknownPathError: There is none.
    """
    places, shown = parts.places, hit.removesuffix("\n")
    for name, wanted in readings(shown, of_output=True):
        for place in typed_paths(name, (working_folder(), places.root, places.chunked)):
            path = absolute(place)
            if name and "\0" not in name and os.path.isfile(path):
                first = min(wanted.first, _HIGHEST) if wanted is not None else None
                is_page = wanted is not None and wanted.unit == "pages"
                is_line = wanted is not None and wanted.unit in ("passage", "lines")
                line, page = first if is_line else None, first if is_page else None
                return Spot(path=path, line=line, page=page)
    error = unknown(parts, shown)
    error.remedy = "name one as 'filestore search' prints it: PATH or PATH:LINE"
    raise error


def located(parts: Parts, spot: Spot, *, chunk: bool) -> "Place":
    """The document that a file leads to: of a chunk file the one it was made from.

    Args:
        parts: Of the store.
        spot: The file, and the line in it.
        chunk: Whether a chunk file is opened itself.
    """
    from filestore.search.place import Place

    places = parts.places
    root, real = os.path.realpath(places.root), os.path.realpath(spot.path)
    name = os.path.relpath(spot.path, root)
    own = Place(document=StorePath(name), line=spot.line, page=spot.page)
    path = ChunkPath(os.path.relpath(real, os.path.realpath(places.chunked)))
    if chunk or path.startswith("../") or not path.endswith(".md"):
        return own
    with suppress(CatalogMissingError, CatalogDamagedError), parts.reading() as catalog:
        return _document_of(real, path, spot.line, catalog, parts) or own
    return own


def _document_of(
    real: str, path: ChunkPath, line: int | None, catalog: Catalog, parts_of: Parts
) -> "Place | None":
    """Where the line of a chunk file is in its document; None where it is in none."""
    from filestore.extract.markdown_read import Markdown
    from filestore.search import passage
    from filestore.search.place import Chunk, Locator

    row = catalog.files([path]).get(path)
    source = None if row is None else catalog.source_of(row)
    if row is None or source is None:
        return None
    data = disk.read_path(real, limit=MAX_CHUNK_BYTES)
    parts = frontmatter.split(data)
    body = parts.body.decode("utf-8", "replace")
    body_line = parts.head.count(b"\n") + 1
    tree = parts_of.places.tree
    chunk = Chunk.of(row, tree, body, source, edited=row.edited, body_line=body_line)
    lines = body.split("\n")
    at = 0 if line is None else line - chunk.body_line
    if line is None or not 0 <= at < len(lines) or not lines[at].strip():
        first = passage.opening(Markdown(body))
        span = first.start, first.end
    else:
        text = lines[at].strip()
        start = sum(len(one) + 1 for one in lines[:at]) + lines[at].index(text)
        span = start, start + len(text)
    locator = Locator(parts_of.reachable, catalog, [source])
    found = locator.place(chunk, span)
    return None if found.document == chunk.path else found
