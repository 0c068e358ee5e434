"""What a filter of a list leaves: by names, paths, titles and headings, not by all of the text.

One rule: the headings inside a file are read once, and again only when it was indexed again.
"""

import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, Self, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.browse.rows import entries
from filestore.catalog import Catalog, CatalogPages, text_id
from filestore.chunks import kept
from filestore.chunks.reading_order import Ordered
from filestore.config.layout import folded_path
from filestore.core.errors import UsageError

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
                remedy="without the ~ it is looked for as it stands",
            ) from error


class ChunkFinder:
    """Finds chunk files by path, title, alias or heading, and by the names of their documents."""

    def __init__(self) -> None:
        self._of = ""
        """The identity of the catalog that the following was read from."""
        self._read_to = 0
        """The last file that was searched for headings."""
        self._headed: list[tuple[array[int], str]] = []
        """Files with headings inside, and these headings, separated by NUL."""

    def matching(
        self, catalog: Catalog, wanted: NameFilter, every: Mapping[str, Ordered]
    ) -> "dict[str, array[int]]":
        """Resource to the files that pass, in reading order; resources without one are left out.

        Args:
            catalog: Inside a snapshot.
            wanted: The filter.
            every: All files of each resource.
        """
        passed = bytearray()
        """For each id of a file whether something passes but its path."""
        if wanted.text:
            pages, plain = CatalogPages(catalog), wanted.plain
            passed = bytearray(pages.last_file() + 1)
            inside = self._by_headings_inside(catalog, pages, plain)
            for one in chain(_by_catalog(pages, plain), inside):
                passed[one] = True
        found: dict[str, array[int]] = {}
        has_passed = 1 in passed
        for resource, ordered in every.items():
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
        if self._of != catalog.identity:
            self._of, self._read_to, self._headed = catalog.identity, 0, []
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


class SectionFinder:
    """Finds documents in place by name, title or alias, and sections by their headings."""

    def __init__(self) -> None:
        self._of = ""
        """The identity of the catalog that the following was read from."""
        self._headings: dict[int, str] = {}
        """Of each document those of its sections, separated by NUL."""

    def matching(self, catalog: Catalog, wanted: NameFilter) -> "dict[str, array[int]]":
        """Document to sections, in the order of the list; all of them where the document passes.

        Args:
            catalog: Inside a snapshot.
            wanted: The filter.
        """
        pages, plain = CatalogPages(catalog), wanted.plain
        rows = [row for row in entries(pages) if row.id]
        passed = set(plain.keys((row.id, row.resource) for row in rows))
        passed |= set(plain.keys(pages.aliases_of_files()))
        known = self._headings if self._of == catalog.identity else {}
        self._of, self._headings = catalog.identity, {}
        found: dict[str, array[int]] = {}
        for row in rows:
            headings = known[row.id] if row.id in known else _section_headings(catalog, row.id)
            self._headings[row.id] = headings
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
            # Those that stand within the section.
            lines += _SECTION_HEADING.findall(document.text, one.start, one.end)
        sections.append("\n".join(lines))
    return "\0".join(sections)
