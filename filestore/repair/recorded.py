"""What the catalog tells of sources, the chunk files made from them, and links that lost their way.

Asks the catalog; reads no file.
"""

from functools import cached_property

from filestore.catalog import Catalog, FileRow
from filestore.chunks import resource_record
from filestore.chunks.resource_record import Record, SourceDocument
from filestore.core.paths import ChunkPath, StorePath, Tree


class Recorded:
    """Records and links of one generation, each asked for once."""

    def __init__(self, tree: Tree, catalog: Catalog) -> None:
        self._tree = tree
        self._catalog = catalog

    @cached_property
    def _records(self) -> list[tuple[ChunkPath, Record]]:
        """Path and value of every record that the catalog has."""
        found = []
        for path in sorted({path for path, *_ in self._catalog.documents()}):
            data = self._catalog.record_data(path)
            if data is not None:
                found.append((path, resource_record.parse(data)))
        return found

    def record_of(self, path: StorePath) -> tuple[ChunkPath, Record, SourceDocument | None] | None:
        """The record that a finding about a source, or about the record itself, is about."""
        for record_path, record in self._records:
            if self._tree.store_path(record_path) == path:
                return record_path, record, None
            for document in record.documents:
                if document.source == path:
                    return record_path, record, document
        return None

    def made_of(self, record: Record, document: SourceDocument) -> list[FileRow]:
        """The chunk files that were made from one document."""
        resources = {
            resource
            for _, resource, source, _ in self._catalog.documents()
            if source == document.source
        }
        rows = [row for resource in sorted(resources) for row in self._catalog.files_of(resource)]
        return [
            row
            for row in rows
            if row.origin is not None and (row.source or record.source) == document.source
        ]

    @cached_property
    def moved_targets(self) -> dict[StorePath, dict[ChunkPath, ChunkPath]]:
        """Path of a file to the targets of its dangling links, and where each of these went."""
        found: dict[StorePath, dict[ChunkPath, ChunkPath]] = {}
        for link in self._catalog.dangling_links():
            if link.moved_to is not None:
                found.setdefault(self._tree.store_path(link.path), {})[link.target] = link.moved_to
        return found
