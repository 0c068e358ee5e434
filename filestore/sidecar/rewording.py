"""Files whose texts stay, and which are found by other words now: within one commit.

A property was changed, a file lies elsewhere, or the record of a document names it otherwise. One
rule: such a file gets a new id, as one whose text changed, and keeps its vectors.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from filestore.catalog import CatalogWriter, FileRow, in_batches, queries
from filestore.chunks import kept
from filestore.chunks.layout import Layout
from filestore.chunks.observation import INDEXED, Observation
from filestore.core.paths import ChunkPath, folder_of, is_made
from filestore.sidecar.names import UNNAMED, Named, entries, named_by

if TYPE_CHECKING:
    from filestore.fulltext import Entry

_AT_ONCE: Final = 1_000


class Rewording:
    """Takes note while a commit is made, and gives what is to be indexed again at its end."""

    def __init__(self, catalog: CatalogWriter, layout: Layout) -> None:
        self._catalog = catalog
        self._layout = layout
        self._paths: set[ChunkPath] = set()
        self._documents: dict[str, set[str | None]] = {}
        """Of resources the documents that their records name otherwise now; None for the only one
        of a resource."""
        self._named: dict[int, Named] = {}
        """How the documents of the files were named that were indexed in this commit."""

    def named(self, rows: Sequence[FileRow]) -> list[Named]:
        """The documents of files that are indexed now, as they are named at this moment."""
        found = named_by(self._catalog, rows)
        self._named |= {row.id: one for row, one in zip(rows, found, strict=True)}
        return found

    def note_words(self, row: FileRow, look: Observation) -> None:
        """Note whether a file with the same texts has other names or properties now."""
        if look.chunk is None or row.file_hash == look.file_hash:
            return
        try:
            before = kept.read(self._catalog.content(row.id) or b"")
            made = entries(0, row.path, before, UNNAMED)
            now = entries(0, look.path, look.chunk, UNNAMED)
            is_same = all(one == other for one, other in zip_longest(made, now))
        except ValueError:
            is_same = False
        if not is_same:
            self._paths.add(look.path)

    def note_path(self, old: ChunkPath, new: ChunkPath) -> None:
        """Note that a file may be found by other words: its path, or its folder, is among them."""
        if not is_made(new) and (self._layout.is_in_place or folder_of(old) != folder_of(new)):
            self._paths.add(new)

    def note_record(
        self, path: ChunkPath, resource: str, source: str, now: Mapping[str, list[tuple[str, str]]]
    ) -> None:
        """Note which documents a record names or describes otherwise than it did.

        Args:
            path: Of the record, which the catalog still has as it was.
            resource: Whose it is; "" where it goes.
            source: What the resource is made from.
            now: Each of its documents, with the pairs of its metadata in order.
        """
        owner, of = queries.sources_of_records(self._catalog, [path]).get(path, ("", ""))
        sources = {named for named, _ in self._catalog.documents_in(path)} if owner else set()
        known = queries.metadata_of_documents(self._catalog, sources)
        before = {one: known.get(one, {}).get(owner, []) for one in sources}
        changed: set[str | None] = {
            one
            for one in {*before, *now}
            if owner != resource or before.get(one, []) != now.get(one, [])
        }
        if of != source or source in changed:
            changed.add(None)
        for one in filter(None, {owner, resource} if changed else ()):
            self._documents.setdefault(one, set()).update(changed)

    def renewed(self) -> "Iterator[tuple[list[int], Iterator[Entry]]]":
        """The full-text ids that files had, and their entries under new ones, in batches."""
        rows = {row.id: row for row in self._catalog.files(sorted(self._paths)).values()}
        documents = {one for changed in self._documents.values() for one in changed if one}
        is_flat = self._layout.name == "flat"
        if is_flat and documents:
            rows |= {row.id: row for row in self._catalog.files_from(sorted(documents))}
        for resource, changed in self._documents.items() if not is_flat else ():
            found = self._catalog.files_of(resource)
            rows |= {row.id: row for row in found if row.source in changed}
        indexed = [row for row in rows.values() if row.state == INDEXED]
        for batch in in_batches(indexed, _AT_ONCE):
            pairs = zip(batch, named_by(self._catalog, batch), strict=True)
            stale = [(row, one) for row, one in pairs if self._named.get(row.id) != one]
            old = [row for row, _ in stale]
            gone = queries.texts_of_files(self._catalog, [row.id for row in old])
            renewed = self._catalog.renew(old)
            yield gone, self._entries(renewed, [one for _, one in stale])

    def _entries(self, rows: Sequence[FileRow], named: Sequence[Named]) -> "Iterator[Entry]":
        for row, document in zip(rows, named, strict=True):
            chunk = kept.read(self._catalog.content(row.id) or b"")
            yield from entries(row.id, row.path, chunk, document)
