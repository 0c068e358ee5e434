"""From what a search printed to the document that is meant, and the line in it.

One rule: a text that a search printed is found again, whatever stands in the names of files.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from filestore.catalog import Catalog, CatalogDamagedError, CatalogMissingError
from filestore.chunks import frontmatter
from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.config.layout import Places
from filestore.core.caller import absolute, working_folder
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath, StorePath
from filestore.extract.markdown_read import Markdown
from filestore.fs import disk
from filestore.fs.path_names import typed_paths
from filestore.search import passage
from filestore.search.place import Chunk, Locator, Place, Span
from filestore.sidecar.session import Parts

_PLACE: Final = re.compile(r":(?:(\d{1,9})|p(\d{1,9}))(?:-\d+)?(?=:|\s|$)")


class NoSuchDocumentError(FilestoreError, FileNotFoundError):
    """Nothing that a search could have printed is there."""


class Spot(Struct, frozen=True, kw_only=True):
    """A file, and where in it."""

    path: str
    """Absolute."""
    line: int | None = None
    page: int | None = None


def spot_of(hit: str, places: Places) -> Spot:
    """The file that a person means, and where in it: ``PATH``, ``PATH:LINE``, or a line of output.

    Args:
        hit: Relative to the working folder, to the store root or to `chunked/`.
        places: Where the store lies.

    Raises:
        NoSuchDocumentError: There is none.
    """
    for name, line, page in _readings(hit.removesuffix("\n")):
        for place in typed_paths(name, (working_folder(), places.root, places.chunked)):
            path = absolute(place)
            if name and "\0" not in name and os.path.isfile(path):
                return Spot(path=path, line=line, page=page)
    raise NoSuchDocumentError(
        f"no such file: {hit!r}",
        remedy="name one as 'filestore search' prints it: PATH or PATH:LINE",
    )


def _readings(hit: str) -> Iterator[tuple[str, int | None, int | None]]:
    """What may be path, line and page in a text; the shortest path with a place last of all."""
    yield hit, None, None
    for match in _PLACE.finditer(hit):
        line, page = match[1], match[2]
        yield hit[: match.start()], int(line) if line else None, int(page) if page else None


def located(parts: Parts, spot: Spot, *, chunk: bool) -> Place:
    """The document that a file leads to: of a chunk file the one it was made from.

    Args:
        parts: Of the store.
        spot: The file, and the line in it.
        chunk: Whether a chunk file stands for itself.
    """
    places = parts.places
    root, real = os.path.realpath(places.root), os.path.realpath(spot.path)
    name = os.path.relpath(spot.path, root)
    own = Place(document=StorePath(name), line=spot.line, page=spot.page)
    path = ChunkPath(os.path.relpath(real, os.path.realpath(places.chunked)))
    if chunk or path.startswith("../") or not path.endswith(".md"):
        return own
    with contextlib.suppress(CatalogMissingError, CatalogDamagedError), parts.reading() as catalog:
        return _document_of(real, path, spot.line, catalog, parts) or own
    return own


def _document_of(
    real: str, path: ChunkPath, line: int | None, catalog: Catalog, parts_of: Parts
) -> Place | None:
    """Where the line of a chunk file stands in its document; None where it does not."""
    row = catalog.files([path]).get(path)
    source = None if row is None else catalog.source_of(row)
    if row is None or source is None:
        return None
    data = disk.read_path(real, limit=MAX_CHUNK_BYTES)
    parts = frontmatter.split(data)
    body = parts.body.decode("utf-8", "replace")
    headings, pages = row.headings_and_pages()
    chunk = Chunk(
        path=parts_of.places.tree.store_path(path),
        body=body,
        body_line=parts.head.count(b"\n") + 1,
        source=source,
        resource=row.resource,
        headings=headings,
        pages=pages,
        edited=row.edited,
    )
    locator = Locator(parts_of.reachable, catalog, [source])
    found = locator.place(chunk, _passage_at(chunk, line))
    return None if found.document == chunk.path else found


def _passage_at(chunk: Chunk, line: int | None) -> Span:
    """The line of a chunk file as a passage; its beginning for none, or one above the body."""
    lines = chunk.body.split("\n")
    at = 0 if line is None else line - chunk.body_line
    if line is None or not 0 <= at < len(lines) or not lines[at].strip():
        found = passage.opening(Markdown(chunk.body))
        return found.start, found.end
    start = sum(len(one) + 1 for one in lines[:at])
    text = lines[at].strip()
    start += lines[at].index(text)
    return start, start + len(text)
