"""The catalog as a screen turns its pages: resources, the files of one, what a filter leaves.

Reads no file of the tree. One rule: nothing here takes longer in a large store than what is seen
of it, but for `Listing.counts` and `Listing.matching`, which go through it.
"""

import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from typing import Final

import orjson
from msgspec import Struct

from filestore.browse import rows
from filestore.browse.name_filter import NameFilter, Names, names_of
from filestore.browse.rows import Measure, Row
from filestore.catalog import (
    Catalog,
    CatalogPages,
    file_of_text,
    part_of_text,
    queries,
    summaries,
    text_id,
)
from filestore.chunks import reading_order
from filestore.chunks.observation import RECORD
from filestore.chunks.reading_order import Ordered
from filestore.core.errors import FilestoreError
from filestore.core.paths import StorePath
from filestore.sidecar.session import Parts

_MOST_KEPT: Final = 200_000
"""Files whose names are kept for a filter; of more they are read each time."""
_HEADING_OR_FENCE: Final = re.compile(rb"^(?:#{1,6}[ \t]+([^\r\n]+)|(`{3,}|~{3,}))", re.MULTILINE)
_SECTION_HEADING: Final = re.compile(r"^#{1,6}[ \t]+([^\0\n]+)", re.MULTILINE)
_FRONTMATTER: Final = re.compile(rb"---\r?\n.*?\n---\r?(?:\n|\Z)", re.DOTALL)


def _upto(path: str) -> Iterator[str]:
    """The folders above a path, outermost first, and itself."""
    return accumulate(path.split("/"), "{}/{}".format)


def _headings_inside(data: bytes) -> str:
    """The headings in a chunk file that its frontmatter does not name, a line each."""
    head = _FRONTMATTER.match(data)
    start = head.end() if head is not None else 0
    named, fence, found = data[:start], b"", []
    for match in _HEADING_OR_FENCE.finditer(data, start):
        heading, border = match.groups()
        if border is not None:
            if not fence:
                fence = border
            elif border.startswith(fence):
                fence = b""
        elif not fence and b'"%b"' % heading not in named:
            found.append(heading)
    return b"\n".join(found).decode("utf-8", "replace").replace("\0", " ")


def _section_headings(catalog: Catalog, file: int) -> str:
    # With it comes what reads Markdown, which the first rows do not need.
    from filestore.chunks import kept

    data = catalog.content(file)
    try:
        if data is None or not kept.is_document(data):
            return ""
        document = kept.decode(data)
    except kept.DocumentDamagedError:
        return ""
    sections = []
    for one in document.sections:
        lines = [" > ".join(one.headings).replace("\0", " ")]
        if document.syntax == "markdown":
            # The ones within the section.
            lines += _SECTION_HEADING.findall(document.text, one.start, one.end)
        sections.append("\n".join(lines))
    return "\0".join(sections)


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
        self._named: Sequence[Names] | None = None
        """What a filter looks through."""

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
    def rows_below(self, resource: str) -> "Sequence[int | DocumentFiles]":
        """The rows below a resource: its files by id, by document if they are of several ones.

        Without its summaries, which `Summaries` has. Of a document: its sections, as `sections`
        knows them.
        """

    def chunks(self, ids: Sequence[int]) -> dict[int, Row]:
        """What is known of some chunk files; unknown ids are left out."""
        with self._reading() as (catalog, _):
            return rows.chunks(self._tree, catalog, ids)

    def measures(self, resources: Sequence[str] | None = None) -> dict[str, Measure]:
        """The size and the date of some resources or documents, or of all."""
        with self._reading() as (catalog, _):
            return rows.measures(self._tree, catalog, self._parts.settings.keys, resources)

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
        """What is known of some sections of documents, or of summaries; unknown ids left out."""
        with self._reading() as (catalog, _):
            found = rows.sections(self._tree, catalog, ids)
            others = [one for one in ids if one not in found and not part_of_text(one)]
            return found | (rows.made_summaries(self._tree, catalog, others) if others else {})

    @abstractmethod
    def matching(self, wanted: NameFilter) -> "dict[str, array[int]]":
        """The files that pass a filter, by resource: by path, title, alias or heading.

        The name of a document is that of all its files, too. The first time after a commit every
        name is read, which the next times do without.

        Returns:
            Resource to ids, the best matches first, equal ones in reading order; resources without
            a file that passes are left out. With sections: document to sections, all of them where
            the document itself passes, and its summaries; those of several documents by their
            folder, "docs/", or "".
        """

    def made_from(self, originals: Collection[str]) -> dict[str, list[str]]:
        """Which of some originals, or of folders of them, each resource was made from.

        Folders of resources are there with those of all below them.
        """
        found: dict[str, list[str]] = {}
        with self._reading() as (catalog, _):
            for _, resource, source, _ in catalog.documents():
                named = [one for one in _upto(source) if one in originals][:1]
                for name in _upto(resource) if named else ():
                    of = found.setdefault(name, [])
                    of += [one for one in named if one not in of]
        return found

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
                "the file under the cursor is no longer in the catalog: ctrl+r rescans the store",
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

    @abstractmethod
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

    @contextmanager
    def _reading(self) -> Iterator[tuple[Catalog, CatalogPages]]:
        """The catalog in one generation; what was kept of another one is dropped."""
        with self._parts.reading() as catalog:
            now = (catalog.identity, catalog.generation)
            if now != self._of:
                self._of, self._all, self._named = now, None, None
            yield catalog, CatalogPages(catalog)


def _best_first(
    found: "dict[str, array[int]]", rank: Callable[[int], int], own: Callable[[str], int]
) -> "dict[str, array[int]]":
    """What passed, by the rank of its best file, or its own."""
    ranked: list[tuple[int, str, array[int]]] = []
    for name, ids in found.items():
        ranks = [-rank(one) for one in ids]
        best = min(ranks, default=0)
        if best != max(ranks, default=0):
            ids = array("q", map(ids.__getitem__, reading_order.order_of(ranks)))
        ranked.append((min(best, -own(name)), name, ids))
    order = reading_order.order_of([best for best, _, _ in ranked])
    return {ranked[place][1]: ranked[place][2] for place in order}


class ChunkListing(Listing):
    """Resources, each with its chunk files."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._headings_of = ""
        """The identity of the catalog that the following was read from."""
        self._read_to = 0
        """The last file that was searched for headings."""
        self._headed: list[Names] = []
        """Files with headings inside, and these headings."""
        self._groups: list[Sequence[int]] = []
        """The files that have one name, that of their document; -1 is the key of the first."""

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

    def rows_below(self, resource: str) -> "Sequence[int | DocumentFiles]":
        """See `Listing.rows_below`."""
        ids = self.chunk_ids(resource)
        with self._reading() as (catalog, pages):
            documents = pages.documents(resource)
            made = set(summaries.summaries_of(catalog, resource).values())
        if made:
            ids = array("q", [one for one in ids if one not in made])
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
            every = self._all
            ranks = bytearray(pages.last_file() + 1)
            """For each id of a file how well it passes."""
            names = self._names(catalog, pages, every) if wanted.text else ()
            for key, rank in wanted.ranked(names):
                for one in self._groups[~key] if key < 0 else (key,):
                    if rank > ranks[one]:
                        ranks[one] = rank
        found: dict[str, array[int]] = {}
        for resource, ordered in every.items():
            ids = ordered.ids()
            if wanted.text:
                ids = array("q", [one for one in ids if bool(ranks[one]) != wanted.inverse])
            if ids:
                found[resource] = ids
        return _best_first(found, ranks.__getitem__, lambda _: 0)

    def _names(
        self, catalog: Catalog, pages: CatalogPages, every: dict[str, Ordered]
    ) -> Iterable[Names]:
        """Paths, titles, aliases, and headings above and in files."""
        if self._named is not None:
            return self._named
        paths = (
            (block.ids, ordered.paths(block))
            for ordered in every.values()
            for block in ordered.blocks
        )
        aliases = (((file,), value.replace("\0", " ")) for file, value in pages.aliases_of_files())
        headed = (
            (orjson.loads(b"[%b]" % packed), headings.decode("utf-8", "replace"))
            for _, packed, headings in pages.headed()
        )
        pieces = chain(paths, aliases, headed, self._of_documents(pages))
        found = chain(names_of(pieces), self._by_headings_inside(catalog, pages))
        if catalog.file_count() > _MOST_KEPT:
            return found
        self._named = list(found)
        return self._named

    def _of_documents(self, pages: CatalogPages) -> Iterator[tuple[Sequence[int], str]]:
        """The names and aliases of documents, each with the key of its files."""
        self._groups = []
        names = (
            ((resource, source), source.removeprefix(f"{folder}/"))
            for resource, source, folder in pages.document_names()
        )
        known: dict[str, dict[str, list[str]]] = {}
        for (resource, source), name in chain(names, pages.document_aliases()):
            known.setdefault(resource, {}).setdefault(source, []).append(name.replace("\0", " "))
        for resource, named in known.items():
            documents = pages.documents(resource)
            if not documents:
                # The name of a single document is that of all files of its resource.
                every = [ids for _, ids, *_ in pages.packed(resource)]
                documents = [(source, ids) for source in named for ids in every]
            for source, packed in documents:
                if source in named:
                    self._groups.append(orjson.loads(b"[%b]" % packed))
                    keys = [-len(self._groups)] * len(named[source])
                    yield keys, "\0".join(named[source])

    def _by_headings_inside(self, catalog: Catalog, pages: CatalogPages) -> Sequence[Names]:
        if self._headings_of != catalog.identity:
            self._headings_of, self._read_to, self._headed = catalog.identity, 0, []
        last = pages.last_file()
        headed = (
            ((file,), found)
            for file, data in pages.with_headings(self._read_to)
            if (found := _headings_inside(data))
        )
        self._headed += names_of(headed)
        self._read_to = last
        return self._headed

    def walk(self, path: str, part: int | None, steps: int) -> tuple[StorePath, int]:
        """See `Listing.walk`."""
        place = self.place_of(path)
        if place is None:
            return StorePath(path), 0
        resource, file = place
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
        self._headings_of = ""
        """The identity of the catalog that the following was read from."""
        self._headings: dict[int, str] = {}
        """Of each document those of its sections, separated by NUL."""
        self._documents: list[Row] = []
        """All of them; known with `_named`."""
        self._summaries: list[tuple[int, str]] = []
        """Id and resource of each; known with `_named`."""

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

    def rows_below(self, resource: str) -> "array[int]":
        """See `Listing.rows_below`."""
        ids = self.chunk_ids(resource)
        with self._reading() as (_, pages):
            counts = pages.part_counts(ids)
        return array(
            "q", [text_id(one, part) for one in ids[:1] for part in range(counts.get(one, 0))]
        )

    def matching(self, wanted: NameFilter) -> "dict[str, array[int]]":
        """See `Listing.matching`."""
        with self._reading() as (catalog, pages):
            if self._named is None:
                self._documents = [row for row in rows.entries(pages) if row.id]
                self._summaries = pages.summaries()
                self._named = list(names_of(self._pieces(catalog, pages)))
        ranks: dict[int, int] = {}
        for key, rank in wanted.ranked(self._named if wanted.text else ()):
            ranks[key] = max(rank, ranks.get(key, 0))
        with_hits = {-key if key < 0 else file_of_text(key) for key in ranks}
        found: dict[str, array[int]] = {}
        own: dict[str, int] = {}
        for row in self._documents:
            own[row.resource] = ranks.get(-row.id, 0)
            if row.id not in with_hits if wanted.text and not wanted.inverse else -row.id in ranks:
                continue
            ids = array("q", [text_id(row.id, part) for part in range(row.children)])
            if row.id in with_hits and -row.id not in ranks:
                ids = array("q", [one for one in ids if (one in ranks) != wanted.inverse])
            if ids or not row.children:
                found[row.resource] = ids
        for one, name in self._summaries if not wanted.inverse else ():
            if one in ranks:
                of = name if name in own or not name else f"{name}/"
                found.setdefault(of, array("q")).append(one)
                own.setdefault(of, 0)
        return _best_first(found, lambda one: ranks.get(one, 0), own.__getitem__)

    def _pieces(self, catalog: Catalog, pages: CatalogPages) -> Iterator[tuple[Sequence[int], str]]:
        """Names and aliases of documents, each below 0, the headings of sections and summaries."""
        names = ((row.id, row.resource) for row in self._documents)
        for file, name in chain(names, pages.aliases_of_files()):
            yield (-file,), name.replace("\0", " ")
        known = self._headings if self._headings_of == catalog.identity else {}
        self._headings_of = catalog.identity
        self._headings = {
            row.id: known[row.id] if row.id in known else _section_headings(catalog, row.id)
            for row in self._documents
        }
        for file, headings in self._headings.items():
            if headings:
                yield [text_id(file, at) for at in range(headings.count("\0") + 1)], headings
        made = [one for one, _ in self._summaries]
        for one, row in rows.made_summaries(self._tree, catalog, made).items():
            yield (one,), " > ".join((*row.headings, row.title)).replace("\0", " ")

    def section_at(self, path: str, line: int) -> int:
        """See `Listing.section_at`."""
        place = self.place_of(path)
        if place is None:
            return 0
        with self._reading() as (catalog, _):
            return rows.section_at(catalog, place[1], line)

    def walk(self, path: str, part: int | None, steps: int) -> tuple[StorePath, int]:
        """See `Listing.walk`."""
        place = self.place_of(path)
        if place is None:
            return StorePath(path), 0
        ids = self.rows_below(place[0])
        at = -1 if part is None else part
        to = min(max(at + steps, 0), len(ids) - 1)
        return StorePath(path), ids[to] if ids and to != part else 0


def listing_of(parts: Parts) -> Listing:
    """The pages of a store, by what its files are."""
    return DocumentListing(parts) if parts.places.tree.has_sections else ChunkListing(parts)
