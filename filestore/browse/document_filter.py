"""Which documents in place, and which of their sections, a filter leaves.

One rule: the headings of a document are read once, and again only when it was indexed again.
"""

import re
from array import array
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from filestore.browse.chunk_filter import fitting
from filestore.browse.document_rows import ResourceRow, entries
from filestore.browse.wanted import Wanted
from filestore.catalog import Catalog, CatalogPages, text_id
from filestore.chunks import kept

_HEADING: Final = re.compile(r"^#{1,6}[ \t]+([^\0\n]+)", re.MULTILINE)
"""One that stands within a section, which has those above it."""


class DocumentFinder:
    """Finds documents by name, title or alias, and sections by their headings."""

    def __init__(self) -> None:
        self._of: str = ""
        """The identity of the catalog whose ids follow."""
        self._headings: dict[int, str] = {}
        """Of each document those of its sections, separated by NUL."""

    def matching(self, catalog: Catalog, wanted: Wanted) -> "dict[str, array[int]]":
        """Document to sections, in the order of the list; all of them where the document fits.

        Args:
            catalog: Inside a snapshot.
            wanted: With `Wanted.inverse`, what fits is left out.
        """
        pages = CatalogPages(catalog)
        rows = [row for row in entries(pages) if row.document]
        plain = replace(wanted, inverse=False)
        names = ((row.document, row.resource) for row in rows)
        fit = set(fitting(names, plain)) | set(fitting(pages.names_said(), plain))
        self._read(catalog, rows)
        found: dict[str, array[int]] = {}
        for row in rows:
            if not wanted.text:
                parts: Iterable[int] = range(row.chunks)
            elif row.document in fit:
                parts = () if wanted.inverse else range(row.chunks)
            else:
                parts = self._headed(row, plain, inverse=wanted.inverse)
            ids = array("q", [text_id(row.document, part) for part in parts])
            if ids or (not row.chunks and (row.document in fit) != wanted.inverse):
                found[row.resource] = ids
        return found

    def _headed(self, row: ResourceRow, wanted: Wanted, *, inverse: bool) -> Iterable[int]:
        """The sections one of whose headings fits, or all others."""
        headings = self._headings[row.document]
        fit = set(wanted.places(headings)) if headings else set()
        return [part for part in range(row.chunks) if (part in fit) != inverse]

    def _read(self, catalog: Catalog, rows: Iterable[ResourceRow]) -> None:
        known = self._headings if self._of == catalog.identity else {}
        self._of = catalog.identity
        self._headings = {
            row.document: known[row.document]
            if row.document in known
            else _headings(catalog, row.document)
            for row in rows
        }


def _headings(catalog: Catalog, file: int) -> str:
    data = catalog.content(file)
    try:
        if data is None or not kept.is_document(data):
            return ""
        found = kept.decode(data)
    except kept.DocumentDamagedError:
        return ""
    is_markdown = found.syntax == "markdown"
    return "\0".join(
        "\n".join(
            (
                " > ".join(section.headings).replace("\0", " "),
                *(_HEADING.findall(found.text, section.start, section.end) if is_markdown else ()),
            )
        )
        for section in found.sections
    )
