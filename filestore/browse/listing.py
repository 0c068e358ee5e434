"""The catalog as a screen turns its pages: resources, the files of one, what a filter leaves.

Reads no file of the tree. One rule: nothing here takes longer in a large store than what is seen
of it, but for `Listing.counts` and `Listing.matching`, which go through it.
"""

import re
import warnings
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Final, Self, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.browse import rows
from filestore.browse.rows import Measure, Row
from filestore.catalog import Catalog, CatalogPages, file_of_text, part_of_text, queries, text_id
from filestore.chunks import kept, reading_order
from filestore.chunks.observation import RECORD
from filestore.chunks.reading_order import Ordered
from filestore.config.layout import folded_path
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import StorePath
from filestore.sidecar.session import Parts

Key = TypeVar("Key")

_AT_ONCE: Final = 4_096
"""Names that are searched in one call."""
_HEADING_OR_FENCE: Final = re.compile(rb"^(?:#{1,6}[ \t]+([^\r\n]+)|(`{3,}|~{3,}))", re.MULTILINE)
_SECTION_HEADING: Final = re.compile(r"^#{1,6}[ \t]+([^\0\n]+)", re.MULTILINE)
_FRONTMATTER: Final = re.compile(rb"---\r?\n.*?\n---\r?(?:\n|\Z)", re.DOTALL)


class NameFilter(Struct, frozen=True, kw_only=True):
    """What names must, or must not, contain: words, or a match of a regular expression. Pure."""

    text: str
    """Upper and lower case are the same; "" is in every name."""
    inverse: bool = False
    regex: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """The filter that was typed: ``words``, ``!words``, ``~regular expression`` or ``!~…``.

        Raises:
            UsageError: The regular expression is invalid.
        """
        rest = text.removeprefix("!")
        typed = cls(text=rest.removeprefix("~"), inverse=rest != text, regex=rest.startswith("~"))
        typed._search()
        return typed

    @property
    def plain(self) -> Self:
        """The same without `inverse`."""
        return replace(self, inverse=False)

    def places(self, joined: str) -> Sequence[int]:
        """The positions, from 0, of the names that pass; the names are separated by NUL."""
        every = range(joined.count("\0") + 1)
        if not self.text:
            return every
        if self.regex:
            search = self._search()
            return [
                place
                for place, name in enumerate(joined.split("\0"))
                if (search(name) is None) == self.inverse
            ]
        needle, folded = folded_path(self.text), folded_path(joined)
        if needle not in folded:
            return every if self.inverse else ()
        return [
            place
            for place, name in enumerate(folded.split("\0"))
            if (needle in name) != self.inverse
        ]

    def keys(self, names: Iterable[tuple[Key, str]]) -> Iterator[Key]:
        """The keys of the names that pass; some thousands are searched in one call."""
        every = iter(names)
        while some := list(islice(every, _AT_ONCE)):
            # A name with a NUL in it would be two.
            joined = "\0".join(name.replace("\0", " ") for _, name in some)
            yield from (some[place][0] for place in self.places(joined))

    def _search(self) -> Callable[[str], re.Match[str] | None]:
        try:
            with warnings.catch_warnings():
                # What Python may read otherwise some day is no concern of a person still typing.
                warnings.simplefilter("ignore")
                return re.compile(self.text if self.regex else "", re.IGNORECASE).search
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"invalid regular expression: {self.text}: {error}",
                remedy="without the ~ it is looked for as is",
            ) from error


def _by_catalog(pages: CatalogPages, wanted: NameFilter) -> Iterator[int]:
    """The files that pass by title, alias, headings above them, or the names of their document."""
    yield from wanted.keys(pages.aliases_of_files())
    names = (
        ((resource, source), source.removeprefix(f"{folder}/"))
        for resource, source, folder in pages.document_names()
    )
    sources: dict[str, set[str]] = {}
    for every in (names, pages.document_aliases()):
        for resource, source in wanted.keys(every):
            sources.setdefault(resource, set()).add(source)
    for resource, named in sources.items():
        documents = pages.documents(resource)
        if not documents:
            # The name of a single document is that of all files of its resource.
            documents = [(source, ids) for source in named for _, ids, *_ in pages.packed(resource)]
        for source, packed in documents:
            if source in named:
                yield from orjson.loads(b"[%b]" % packed)
    for _, packed, headings in pages.headed():
        places = wanted.places(headings.decode("utf-8", "replace"))
        if places:
            known = orjson.loads(b"[%b]" % packed)
            yield from (known[place] for place in places)


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

        Of a document: its sections, as `sections` knows them.
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
                self._of, self._all = now, None
            yield catalog, CatalogPages(catalog)


class ChunkListing(Listing):
    """Resources, each with its chunk files."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._headings_of = ""
        """The identity of the catalog that the following was read from."""
        self._read_to = 0
        """The last file that was searched for headings."""
        self._headed: list[tuple[array[int], str]] = []
        """Files with headings inside, and these headings, separated by NUL."""

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
            passed = bytearray()
            """For each id of a file whether something passes but its path."""
            if wanted.text:
                plain = wanted.plain
                passed = bytearray(pages.last_file() + 1)
                inside = self._by_headings_inside(catalog, pages, plain)
                for one in chain(_by_catalog(pages, plain), inside):
                    passed[one] = True
        found: dict[str, array[int]] = {}
        has_passed = 1 in passed
        for resource, ordered in self._all.items():
            ids = array("q")
            for block in ordered.blocks:
                places = wanted.places(ordered.paths(block))
                if wanted.inverse and has_passed:
                    # Neither the path nor anything else may contain it.
                    places = [place for place in places if not passed[block.ids[place]]]
                elif has_passed:
                    by_path = set(places)
                    places = [n for n, one in enumerate(block.ids) if passed[one] or n in by_path]
                ids.extend(map(block.ids.__getitem__, places))
            if ids:
                found[resource] = ids
        return found

    def _by_headings_inside(
        self, catalog: Catalog, pages: CatalogPages, wanted: NameFilter
    ) -> Iterator[int]:
        if self._headings_of != catalog.identity:
            self._headings_of, self._read_to, self._headed = catalog.identity, 0, []
        last = pages.last_file()
        headed = (
            (file, found)
            for file, data in pages.with_headings(self._read_to)
            if (found := _headings_inside(data))
        )
        while some := list(islice(headed, _AT_ONCE)):
            joined = "\0".join(found for _, found in some)
            self._headed.append((array("q", [file for file, _ in some]), joined))
        self._read_to = last
        for ids, joined in self._headed:
            yield from (ids[place] for place in wanted.places(joined))

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
            plain = wanted.plain
            documents = [row for row in rows.entries(pages) if row.id]
            passed = set(plain.keys((row.id, row.resource) for row in documents))
            passed |= set(plain.keys(pages.aliases_of_files()))
            known = self._headings if self._headings_of == catalog.identity else {}
            self._headings = {
                row.id: known[row.id] if row.id in known else _section_headings(catalog, row.id)
                for row in documents
            }
            self._headings_of = catalog.identity
        found: dict[str, array[int]] = {}
        for row in documents:
            headings = self._headings[row.id]
            parts: Iterable[int] = range(row.children)
            if wanted.text and row.id in passed:
                parts = () if wanted.inverse else parts
            elif wanted.text:
                fit = set(plain.places(headings)) if headings else set()
                parts = [part for part in parts if (part in fit) != wanted.inverse]
            ids = array("q", [text_id(row.id, part) for part in parts])
            if ids or (not row.children and (row.id in passed) != wanted.inverse):
                found[row.resource] = ids
        return found

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
