"""Which chunk files a filter leaves by what they, or their documents, say of themselves.

One rule: the headings inside a file are read once, and again only when it was indexed again.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

import orjson

from filestore.browse.wanted import Wanted
from filestore.catalog import Catalog, CatalogPages

Key = TypeVar("Key")

_AT_ONCE: Final = 4_096
"""Names that are looked through in one call."""
_MARK: Final = re.compile(rb"^(?:#{1,6}[ \t]+([^\r\n]+)|(`{3,}|~{3,}))", re.MULTILINE)
"""A heading, or where a block of code begins or ends."""
_FRONTMATTER: Final = re.compile(rb"---\r?\n.*?\n---\r?(?:\n|\Z)", re.DOTALL)


class ChunkFinder:
    """Finds chunk files by headings, titles and other names, and by the names of documents."""

    def __init__(self) -> None:
        self._of = ""
        """The identity of the catalog whose ids follow."""
        self._read_to = 0
        """The last file that was looked through for headings."""
        self._headed: list[tuple[array[int], str]] = []
        """Files with headings of their own, and in the same order, separated by NUL, these."""

    def fitting(self, catalog: Catalog, wanted: Wanted) -> bytearray:
        """For each id of a file whether something fits that it, or its document, says.

        Args:
            catalog: Inside a snapshot.
            wanted: Without `Wanted.inverse`.
        """
        pages = CatalogPages(catalog)
        fits = bytearray(pages.last_file() + 1)
        for found in self._of_files(catalog, pages, wanted):
            for one in found:
                fits[one] = True
        return fits

    def _of_files(
        self, catalog: Catalog, pages: CatalogPages, wanted: Wanted
    ) -> Iterator[Iterable[int]]:
        yield fitting(pages.names_said(), wanted)
        for resource, sources in _documents(pages, wanted).items():
            yield _files_of(pages, resource, sources)
        for _, packed, headings in pages.headed():
            places = wanted.places(headings.decode("utf-8", "replace"))
            if places:
                known = orjson.loads(b"[%b]" % packed)
                yield (known[place] for place in places)
        self._read(catalog, pages)
        for ids, joined in self._headed:
            yield (ids[place] for place in wanted.places(joined))

    def _read(self, catalog: Catalog, pages: CatalogPages) -> None:
        if self._of != catalog.identity:
            self._of, self._read_to, self._headed = catalog.identity, 0, []
        last = pages.last_file()
        headed = (
            (file, found)
            for file, data in pages.with_headings(self._read_to)
            if (found := _own_headings(data))
        )
        while some := list(islice(headed, _AT_ONCE)):
            joined = "\0".join(found for _, found in some)
            self._headed.append((array("q", [file for file, _ in some]), joined))
        self._read_to = last


def _own_headings(data: bytes) -> str:
    """The headings in a chunk file that its frontmatter does not name, a line each."""
    head = _FRONTMATTER.match(data)
    start = head.end() if head is not None else 0
    named, fence, found = data[:start], b"", []
    for mark in _MARK.finditer(data, start):
        heading, border = mark.groups()
        if border is not None:
            if not fence:
                fence = border
            elif border.startswith(fence):
                fence = b""
        elif not fence and b'"%b"' % heading not in named:
            found.append(heading)
    return b"\n".join(found).decode("utf-8", "replace").replace("\0", " ")


def _documents(pages: CatalogPages, wanted: Wanted) -> dict[str, set[str]]:
    """By resource the documents of which the name, the title or another name fits."""
    names = (
        ((resource, source), source.removeprefix(f"{folder}/"))
        for resource, source, folder in pages.document_names()
    )
    found: dict[str, set[str]] = {}
    for every in (names, pages.document_names_said()):
        for resource, source in fitting(every, wanted):
            found.setdefault(resource, set()).add(source)
    return found


def _files_of(pages: CatalogPages, resource: str, sources: set[str]) -> Iterator[int]:
    documents = pages.documents(resource)
    if not documents:
        # One document: what it is called is said of all that is there.
        documents = [(source, packed) for source in sources for packed in pages.file_ids(resource)]
    for source, packed in documents:
        if source in sources:
            yield from orjson.loads(b"[%b]" % packed)


def fitting(names: Iterable[tuple[Key, str]], wanted: Wanted) -> Iterator[Key]:
    """The keys of the names that fit, some thousands looked at in one call."""
    every = iter(names)
    while some := list(islice(every, _AT_ONCE)):
        # A name with a NUL in it would be two.
        joined = "\0".join(name.replace("\0", " ") for _, name in some)
        yield from (some[place][0] for place in wanted.places(joined))


def combined(
    ids: Sequence[int], fits: bytearray, places: Sequence[int], *, inverse: bool
) -> Sequence[int]:
    """The places in a block that a filter leaves, of those that fit by their paths and by `fits`.

    Args:
        ids: Of the files of the block.
        fits: As `ChunkFinder.fitting` gives it.
        places: Those whose path is wanted; with `inverse`, those without what is not wanted.
        inverse: Whether what fits is left out.
    """
    if inverse:
        return [place for place in places if not fits[ids[place]]]
    by_path = set(places)
    return [place for place, one in enumerate(ids) if fits[one] or place in by_path]
