"""The catalog as a screen turns its pages: resources, the files of one, those that a filter leaves.

Reads no file of the tree. One rule: nothing here takes longer in a large store than what is seen
of it, but for `Listing.counts` and `Listing.matching`, which go through it.
"""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.browse import document_rows
from filestore.browse.chunk_filter import ChunkFinder, combined
from filestore.browse.document_filter import DocumentFinder
from filestore.browse.document_rows import DocumentRow, ResourceRow, SectionRow
from filestore.browse.row_words import OPENING_BYTES, first_words
from filestore.browse.wanted import Wanted
from filestore.catalog import Catalog, CatalogPages, FileRow, file_of_text, part_of_text, queries
from filestore.chunks import reading_order
from filestore.chunks.chunk_file import kind_of_name
from filestore.chunks.observation import RECORD
from filestore.chunks.reading_order import Ordered
from filestore.core.errors import FilestoreError
from filestore.core.paths import NO_PATH, ChunkPath, StorePath, Tree
from filestore.sidecar.session import Parts


class Counts(Struct, frozen=True, kw_only=True):
    """How large a store is."""

    files: int
    """Chunk files and records; of a store in place documents."""
    chunks: int
    """Chunk files, excluded ones included; of a store in place sections."""
    resources: int


class ChunkRow(Struct, frozen=True, kw_only=True):
    """One chunk file, as the catalog knows it."""

    id: int
    path: StorePath
    kind: str
    """``chunk``, ``summary``, or "" where nothing tells it."""
    edited: bool
    """Whether its body differs from what was generated."""
    withheld: str
    """The code that keeps it out of answers, "" for none."""
    title: str = ""
    """Of its frontmatter; else its first heading, or its first words."""
    headings: tuple[str, ...] = ()
    """Above it in its document, from the top."""
    size_bytes: int | None = None
    """As it was indexed; None where that is not known."""
    source: str = ""
    """Its document, relative to the store root; "" where its resource's record tells it."""


class Listing:
    """The pages of a store's catalog, as it is when they are asked for; one thread at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tree = parts.places.tree
        self._of: tuple[str, int] | None = None
        """Identity and generation of the catalog that the following was read from."""
        self._all: dict[str, Ordered] | None = None
        self._is_in_place = parts.places.is_in_place
        self._finder = DocumentFinder()
        self._chunks = ChunkFinder()

    @property
    def generation(self) -> int:
        """How many times the catalog was committed to."""
        return self._parts.catalog().generation

    def counts(self) -> Counts:
        """How large the store is."""
        with self._reading() as (catalog, pages):
            files = catalog.file_count()
            if self._is_in_place:
                made, texts = queries.count_of_made(catalog)
                chunks = catalog.count("parts") - texts
                return Counts(files=files, chunks=chunks, resources=files - made)
            return Counts(
                files=files,
                chunks=files - pages.record_count(),
                resources=pages.resource_count(),
            )

    def resources(self, after: str | None = None, limit: int | None = None) -> list[ResourceRow]:
        """Resources, by name.

        Args:
            after: Only those behind this name.
            limit: At most so many; None for all. Of a store in place: only what lies in no folder.
        """
        with self._reading() as (_, pages):
            if self._is_in_place:
                listed = document_rows.entries if limit is None else document_rows.top_entries
                return listed(pages)
            if limit is None or self._parts.layout.name == "flat":
                return _all_resources(pages, after, limit)
            # A page of resources in the tree layout, where records lie in the folder of their
            # own.
            sizes = pages.resource_sizes(after, limit)
            titles = pages.document_titles([name for name, _ in sizes])
            found: list[ResourceRow] = []
            for name, files in sizes:
                records, source = pages.records_below(ChunkPath(name))
                row = ResourceRow(
                    resource=name,
                    source=source,
                    chunks=files - records,
                    title=titles.get(name, ""),
                )
                found.append(row)
            return found

    def chunk_ids(self, resource: str) -> "array[int]":
        """The chunk files of a resource in reading order, by id; none for an unknown name.

        Of a store in place: the document of that name, or those below the folder.
        """
        with self._reading() as (catalog, pages):
            if self._is_in_place:
                return array("q", document_rows.documents_of(catalog, pages, resource))
            if self._all is not None:
                found = self._all.get(resource)
            else:
                found = dict(self._ordered(pages, resource)).get(resource)
        return found.ids() if found else array("q")

    def outline(self, resource: str) -> "array[int]":
        """The same with a row above the files of each document, where there are several.

        Such a row is the id of the first file below it, below 0. Of a document in place: its
        sections, as `sections` knows them.
        """
        ids = self.chunk_ids(resource)
        if self._is_in_place:
            with self._reading() as (_, pages):
                return document_rows.section_ids(pages, ids[0]) if ids else ids
        with self._reading() as (_, pages):
            documents = pages.documents(resource)
        if not documents:
            return ids
        document_of: dict[int, int] = {}
        for number, (_, packed) in enumerate(documents):
            document_of |= dict.fromkeys(orjson.loads(b"[%b]" % packed), number)
        found, before = array("q"), -1
        for one in ids:
            number = document_of.get(one, before)
            if number != before:
                found.append(-one)
                before = number
            found.append(one)
        return found

    def chunks(self, ids: Sequence[int]) -> dict[int, ChunkRow]:
        """What is known of some chunk files; unknown ids are left out."""
        with self._reading() as (catalog, pages):
            rows = catalog.files_by_id(ids)
            openings, titles = pages.openings(ids, OPENING_BYTES), pages.titles(ids)
            return {
                one: _chunk_row(self._tree, row, titles.get(one, ""), openings.get(one))
                for one, row in rows.items()
            }

    def documents(self, ids: Sequence[int]) -> dict[int, DocumentRow]:
        """What is known of some documents in place; unknown ids are left out."""
        with self._reading() as (catalog, _):
            return document_rows.documents(self._tree, catalog, ids)

    def sections(self, ids: Sequence[int]) -> dict[int, SectionRow]:
        """What is known of some sections of documents in place; unknown ids are left out."""
        with self._reading() as (catalog, _):
            return document_rows.sections(self._tree, catalog, ids)

    def matching(self, wanted: Wanted) -> "dict[str, array[int]]":
        """The chunk files that fit, by resource, by path below `chunked/`, title, alias or heading.

        What a document is called is said of all its files. Excluded is what fits in one of these.
        The first time after a commit every path is read, which the next times do without.

        Returns:
            Resource to ids in reading order; resources without a file that fits are left out. Of
            a store in place: document to sections, all of them where the document itself fits.
        """
        if self._is_in_place:
            with self._reading() as (catalog, _):
                return self._finder.matching(catalog, wanted)
        with self._reading() as (catalog, pages):
            if self._all is None:
                self._all = dict(sorted(self._ordered(pages, None)))
            every = self._all
            plain = replace(wanted, inverse=False)
            fits = self._chunks.fitting(catalog, plain) if wanted.text else bytearray()
        is_said = 1 in fits
        found: dict[str, array[int]] = {}
        for resource, ordered in every.items():
            ids = array("q")
            for block in ordered.blocks:
                # Looked for, or left out: in both cases what has it in its path.
                places = wanted.places(ordered.paths(block))
                if is_said:
                    places = combined(block.ids, fits, places, inverse=wanted.inverse)
                ids.extend(map(block.ids.__getitem__, places))
            if ids:
                found[resource] = ids
        return found

    def place_of(self, path: str) -> tuple[str, int] | None:
        """The resource and the id of a chunk file; None where the catalog does not have it.

        Args:
            path: Relative to the store root.
        """
        below = self._tree.chunk_path(StorePath(path))
        with self._reading() as (catalog, _):
            row = catalog.files([below]).get(below) if self._tree.holds(path) else None
        return (row.resource, row.id) if row is not None and row.state != RECORD else None

    def file_of(self, row: int) -> tuple[StorePath, int | None]:
        """The file of a row by its id; of a section in place also which of its texts that is.

        Raises:
            FilestoreError: The catalog does not have it any more.
        """
        file = file_of_text(row)
        with self._reading() as (catalog, _):
            found = catalog.files_by_id([file]).get(file)
        if found is None:
            raise FilestoreError(
                "the file under the cursor is no longer in the catalog",
                remedy="ctrl+r rescans the store",
            )
        path = self._tree.store_path(found.path)
        return path, part_of_text(row) if self._is_in_place else None

    def section_at(self, path: str, line: int) -> int:
        """The section of a document in place that holds a line, by id; 0 for none.

        Args:
            path: Relative to the store root.
            line: From 1.
        """
        place = self.place_of(path)
        if place is None or not self._is_in_place:
            return 0
        with self._reading() as (catalog, _):
            return document_rows.section_at(catalog, place[1], line)

    def section_beside(self, path: str, part: int | None, steps: int) -> int:
        """The section so many steps behind one, or before; at most the last, or the first.

        Args:
            path: Of the document, relative to the store root.
            part: Which of its sections that is; None for none, which is before the first.
            steps: Below 0 for those before.

        Returns:
            Its id; 0 for a document without any.
        """
        place = self.place_of(path)
        ids = self.outline(place[0]) if place is not None else ()
        at = (-1 if part is None else part) + steps
        return ids[min(max(at, 0), len(ids) - 1)] if ids else 0

    def path_of_vector(self, vector: int) -> StorePath | None:
        """A file that has the text of a vector, its body before a question; None for no such."""
        with self._reading() as (_, pages):
            path = pages.path_of_vector(vector)
        return None if path is None else self._tree.store_path(path)

    def neighbours_in_order(self, path: str) -> tuple[StorePath, StorePath]:
        """The files read before and after one of the same resource, "" at its ends.

        Args:
            path: Relative to the store root.
        """
        place = self.place_of(path)
        if place is None:
            return NO_PATH, NO_PATH
        resource, identifier = place
        ids = self.chunk_ids(resource)
        at = ids.index(identifier)
        beside = [ids[at - 1] if at else 0, ids[at + 1] if at + 1 < len(ids) else 0]
        rows = self.chunks(beside)
        before, after = (rows[one].path if one in rows else NO_PATH for one in beside)
        return before, after

    @contextmanager
    def _reading(self) -> Iterator[tuple[Catalog, CatalogPages]]:
        """The catalog in one generation; what was kept of another one is dropped."""
        with self._parts.reading() as catalog:
            now = (catalog.identity, catalog.generation)
            if now != self._of:
                self._of, self._all = now, None
            yield catalog, CatalogPages(catalog)

    def _ordered(self, pages: CatalogPages, resource: str | None) -> Iterator[tuple[str, Ordered]]:
        """Name and files of one resource, or of all, in reading order."""
        irregular: list[str] = []
        for name, ids, paths, positions in pages.packed(resource):
            plain = None if positions else reading_order.by_number(f"{name}/", ids, paths)
            if plain is None:
                irregular.append(name)
            else:
                yield name, plain
        for name in irregular:
            yield name, reading_order.by_key(pages.sortable(name))


def _all_resources(pages: CatalogPages, after: str | None, limit: int | None) -> list[ResourceRow]:
    """Resources in any layout: in the flat one a record without chunk files names one, too."""
    sources, records = pages.record_sources(), pages.record_sizes()
    sizes = dict.fromkeys(sources, 0) | dict(pages.resource_sizes(None, None))
    titles = pages.document_titles()
    rows = [
        ResourceRow(
            resource=name,
            source=sources.get(name, ""),
            chunks=files - records.get(name, 0),
            title=titles.get(name, ""),
        )
        for name, files in sorted(sizes.items())
        if (after is None or name > after) and (name or files > records.get("", 0))
    ]
    return rows if limit is None else rows[:limit]


def _chunk_row(tree: Tree, row: FileRow, title: str, opening: tuple[int, bytes] | None) -> ChunkRow:
    return ChunkRow(
        title=title or (first_words(opening[1]) if opening is not None else ""),
        headings=row.headings_and_pages()[0],
        size_bytes=opening[0] if opening is not None else None,
        source=row.source or "",
        id=row.id,
        path=tree.store_path(row.path),
        kind=row.kind or kind_of_name(row.path) or "",
        edited=row.edited,
        withheld="" if row.state == RECORD else row.state,
    )
