"""The catalog as a screen turns its pages: resources, the files of one, those that a filter leaves.

Reads no file of the tree. One rule: nothing here takes longer in a large store than what is seen
of it, but for `Listing.counts` and `Listing.matching`, which go through it.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson
from msgspec import Struct

from filestore.browse import rows
from filestore.browse.name_filter import ChunkFinder, NameFilter, SectionFinder
from filestore.browse.rows import Row
from filestore.catalog import Catalog, CatalogPages, file_of_text, part_of_text, queries
from filestore.chunks import reading_order
from filestore.chunks.observation import RECORD
from filestore.chunks.reading_order import Ordered
from filestore.core.errors import FilestoreError
from filestore.core.paths import StorePath
from filestore.sidecar.session import Parts


class Counts(Struct, frozen=True, kw_only=True):
    """How large a store is."""

    files: int
    """Chunk files and records; of a store in place documents."""
    chunks: int
    """Chunk files, excluded ones included; of a store in place sections."""
    resources: int


class DocumentFiles(Struct, frozen=True, kw_only=True):
    """The files of a resource that were made from one of its documents."""

    ids: "array[int]"
    """In reading order; never none."""


class Listing(ABC):
    """The pages of a store's catalog, as it is when they are asked for; one thread at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tree = parts.places.tree
        self._of: tuple[str, int] | None = None
        """Identity and generation of the catalog that `_all` was read from."""
        self._all: dict[str, Ordered] | None = None

    @property
    def generation(self) -> int:
        """How many times the catalog was committed to."""
        return self._parts.catalog().generation

    @abstractmethod
    def counts(self) -> Counts:
        """How large the store is."""

    @abstractmethod
    def resources(self, after: str | None = None, limit: int | None = None) -> list[Row]:
        """Resources, by name; documents and the folders that they lie in.

        Args:
            after: Only those behind this name.
            limit: At most n; None for all. Of documents: only what lies in no folder.
        """

    @abstractmethod
    def chunk_ids(self, resource: str) -> "array[int]":
        """The files of a resource in reading order, by id; none for an unknown name.

        The chunk files; or the document of that name, or the documents below the folder.
        """

    @abstractmethod
    def below(self, resource: str) -> "Sequence[int | DocumentFiles]":
        """The rows below a resource: its files by id, by document if they are of several ones.

        Of a document: its sections, as `sections` knows them.
        """

    def chunks(self, ids: Sequence[int]) -> dict[int, Row]:
        """What is known of some chunk files; unknown ids are left out."""
        with self._reading() as (catalog, _):
            return rows.chunks(self._tree, catalog, ids)

    def paths(self, ids: Sequence[int]) -> list[StorePath]:
        """The paths of files, or of the documents of sections, each once; unknown ids left out."""
        files = list(dict.fromkeys(map(file_of_text, ids)))
        with self._reading() as (catalog, _):
            found = catalog.files_by_id(files)
        return [self._tree.store_path(found[one].path) for one in files if one in found]

    def documents(self, ids: Sequence[int]) -> dict[int, Row]:
        """What is known of some documents; unknown ids are left out."""
        with self._reading() as (catalog, _):
            return rows.documents(self._tree, catalog, ids)

    def sections(self, ids: Sequence[int]) -> dict[int, Row]:
        """What is known of some sections of documents; unknown ids are left out."""
        with self._reading() as (catalog, _):
            return rows.sections(self._tree, catalog, ids)

    @abstractmethod
    def matching(self, wanted: NameFilter) -> "dict[str, array[int]]":
        """The files that pass a filter, by resource: by path, title, alias or heading.

        The name of a document is that of all its files, too. The first time after a commit every
        path is read, which the next times do without.

        Returns:
            Resource to ids in reading order; resources without a file that passes are left out.
            With sections: document to sections, all of them where the document itself passes.
        """

    def place_of(self, path: str) -> tuple[str, int] | None:
        """The resource and the id of a file; None where the catalog does not have it.

        Args:
            path: Relative to the store root.
        """
        below = self._tree.chunk_path(StorePath(path))
        with self._reading() as (catalog, _):
            row = catalog.files([below]).get(below) if self._tree.holds(path) else None
        return (row.resource, row.id) if row is not None and row.state != RECORD else None

    def file_of(self, row: int) -> tuple[StorePath, int | None]:
        """The file of a row by its id; of a section also which of its texts that is.

        Raises:
            FilestoreError: The catalog does not have it any more.
        """
        found = self.paths([row])
        if not found:
            raise FilestoreError(
                "the file under the cursor is no longer in the catalog",
                remedy="ctrl+r rescans the store",
            )
        return found[0], part_of_text(row) if self._tree.has_sections else None

    def section_at(self, path: str, line: int) -> int:
        """The section of a document that holds a line, by id; 0 for none.

        Args:
            path: Relative to the store root.
            line: From 1.
        """
        del path, line
        return 0

    def path_of_vector(self, vector: int) -> StorePath | None:
        """A file that has the text of a vector, its body before a question; None for no such."""
        with self._reading() as (_, pages):
            path = pages.path_of_vector(vector)
        return None if path is None else self._tree.store_path(path)

    def walk(self, path: str, part: int | None, steps: int) -> tuple[StorePath, int]:
        """The file n steps further in reading order of its resource; at most the first, or last.

        Args:
            path: Relative to the store root.
            part: The section of a document to start from; None for before the first.
            steps: Below 0 for those before.

        Returns:
            Its path; of a document the same path and the id of another section of it, 0 where
            there is none.
        """
        place = self.place_of(path)
        return (StorePath(path), 0) if place is None else self._walked(path, *place, part, steps)

    @abstractmethod
    def _walked(
        self, path: str, resource: str, file: int, part: int | None, steps: int
    ) -> tuple[StorePath, int]:
        """See `walk`; the catalog has the file."""

    @contextmanager
    def _reading(self) -> Iterator[tuple[Catalog, CatalogPages]]:
        """The catalog in one generation; what was kept of another one is dropped."""
        with self._parts.reading() as catalog:
            now = (catalog.identity, catalog.generation)
            if now != self._of:
                self._of, self._all = now, None
            yield catalog, CatalogPages(catalog)


class ChunkListing(Listing):
    """Resources, each with its chunk files."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._finder = ChunkFinder()

    def counts(self) -> Counts:
        """See `Listing.counts`."""
        with self._reading() as (catalog, pages):
            files = catalog.file_count()
            return Counts(
                files=files,
                chunks=files - pages.record_count(),
                resources=pages.resource_count(),
            )

    def resources(self, after: str | None = None, limit: int | None = None) -> list[Row]:
        """See `Listing.resources`."""
        with self._reading() as (_, pages):
            if limit is not None and not self._parts.layout.shares_folder:
                return rows.resource_page(pages, after, limit)
            found = rows.resources(pages)
            return [row for row in found if after is None or row.resource > after][:limit]

    def chunk_ids(self, resource: str) -> "array[int]":
        """See `Listing.chunk_ids`."""
        with self._reading() as (_, pages):
            if self._all is not None:
                found = self._all.get(resource)
            else:
                found = dict(self._ordered(pages, resource)).get(resource)
        return found.ids() if found else array("q")

    def below(self, resource: str) -> "Sequence[int | DocumentFiles]":
        """See `Listing.below`."""
        ids = self.chunk_ids(resource)
        with self._reading() as (_, pages):
            documents = pages.documents(resource)
        if not documents:
            return ids
        document_of: dict[int, int] = {}
        for number, (_, packed) in enumerate(documents):
            document_of |= dict.fromkeys(orjson.loads(b"[%b]" % packed), number)
        found: list[int | DocumentFiles] = []
        last: DocumentFiles | None = None
        number = -1
        for one in ids:
            if document_of.get(one, number) != number:
                number = document_of[one]
                last = DocumentFiles(ids=array("q"))
                found.append(last)
            if last is None:
                found.append(one)
            else:
                last.ids.append(one)
        return found

    def matching(self, wanted: NameFilter) -> "dict[str, array[int]]":
        """See `Listing.matching`."""
        with self._reading() as (catalog, pages):
            if self._all is None:
                self._all = dict(sorted(self._ordered(pages, None)))
            return self._finder.matching(catalog, wanted, self._all)

    def _walked(
        self, path: str, resource: str, file: int, part: int | None, steps: int
    ) -> tuple[StorePath, int]:
        ids = self.chunk_ids(resource)
        to = min(max(ids.index(file) + steps, 0), len(ids) - 1)
        return next(iter(self.paths([ids[to]])), StorePath(path)), 0

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


class DocumentListing(Listing):
    """Documents in the folders where they lie, each with its sections."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._finder = SectionFinder()

    def counts(self) -> Counts:
        """See `Listing.counts`."""
        with self._reading() as (catalog, _):
            files = catalog.file_count()
            made, texts = queries.count_of_made(catalog)
            chunks = catalog.count("parts") - texts
            return Counts(files=files, chunks=chunks, resources=files - made)

    def resources(self, after: str | None = None, limit: int | None = None) -> list[Row]:
        """See `Listing.resources`."""
        with self._reading() as (_, pages):
            return rows.entries(pages) if limit is None else rows.top_entries(pages)

    def chunk_ids(self, resource: str) -> "array[int]":
        """See `Listing.chunk_ids`."""
        with self._reading() as (catalog, pages):
            return array("q", rows.documents_of(catalog, pages, resource))

    def below(self, resource: str) -> "array[int]":
        """See `Listing.below`."""
        ids = self.chunk_ids(resource)
        with self._reading() as (_, pages):
            counts = pages.part_counts(ids)
        return rows.section_ids(ids[0], counts.get(ids[0], 0)) if ids else ids

    def matching(self, wanted: NameFilter) -> "dict[str, array[int]]":
        """See `Listing.matching`."""
        with self._reading() as (catalog, _):
            return self._finder.matching(catalog, wanted)

    def section_at(self, path: str, line: int) -> int:
        """See `Listing.section_at`."""
        place = self.place_of(path)
        if place is None:
            return 0
        with self._reading() as (catalog, _):
            return rows.section_at(catalog, place[1], line)

    def _walked(
        self, path: str, resource: str, file: int, part: int | None, steps: int
    ) -> tuple[StorePath, int]:
        del file
        ids = self.below(resource)
        at = -1 if part is None else part
        to = min(max(at + steps, 0), len(ids) - 1)
        return StorePath(path), ids[to] if ids and to != part else 0


def listing_of(parts: Parts) -> Listing:
    """The pages of a store, by what its files are."""
    return DocumentListing(parts) if parts.places.tree.has_sections else ChunkListing(parts)
