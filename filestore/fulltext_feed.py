"""Documents on their way into the full-text index.

The index is committed after the catalog, so it may lag by a crash: the feed first replays what the
index has not seen, from the texts the catalog keeps, and then takes the new ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from filestore import chunkfile
from filestore.catalog import Catalog
from filestore.fulltext import (
    Entry,
    FulltextDamaged,
    FulltextMissing,
    Stamp,
    Writer,
    check_files,
    write_stamp,
)
from filestore.fulltext_file import own_stamp
from filestore.places import Places

EXACT_UP_TO: Final = 500
"""An index of so few documents is written whole when one of them goes. What is deleted counts in
the scores until its segment is merged away, and answers shall not depend on a store's past."""


def entry(identifier: int, chunk: chunkfile.Chunk) -> Entry:
    """What is indexed of a chunk: its headings as title, its body and questions as text."""
    text = "\n\n".join((chunk.body, *chunk.questions))
    return Entry(id=identifier, title=" > ".join(chunk.headings), text=text)


class FulltextFeed:
    """Takes additions and deletions of one commit; opens tantivy only if there are any."""

    def __init__(self, places: Places, catalog: Catalog) -> None:
        self._folder = places.fulltext
        self._catalog = catalog
        self._base = catalog.generation
        stamp = own_stamp(places, catalog)
        # Ahead of its catalog it holds ids that this catalog is about to give to other files.
        useless = (
            stamp is None
            or stamp.generation > self._base
            or check_files(places.fulltext, stamp, hashes=False)
        )
        self._stamp: Stamp | None = None if useless else stamp
        self._writer: Writer | None = None
        self._whole = False
        if self._is_behind and self._is_small:
            self._stamp = None

    @property
    def seen_generation(self) -> int:
        """The generation that the index on disk reflects; -1 where it has to be rebuilt."""
        return -1 if self._stamp is None else self._stamp.generation

    def add(self, entries: Iterable[Entry]) -> None:
        """Take documents with ids never seen before."""
        if not self._whole:
            self._open().add(entries)

    def delete(self, ids: list[int]) -> None:
        """Take out documents; unknown ids are passed over."""
        if not ids:
            return
        if not self._is_small:
            self._open().delete(ids)
        elif not self._whole:
            # Written at the end, from what the catalog then has of files.
            self.rebuild()
            self._whole = True

    def rebuild(self) -> None:
        """Use nothing of the index that is there."""
        self.abandon()
        self._stamp = None
        self._whole = False

    def catch_up(self) -> None:
        """Replay what an index behind its catalog lacks; nothing where it is not behind."""
        if self._stamp is None or self._is_behind:
            self._open()

    @property
    def _is_behind(self) -> bool:
        return self._stamp is not None and self._stamp.generation != self._base

    @property
    def _is_small(self) -> bool:
        return 0 < self._catalog.indexed_count() <= EXACT_UP_TO

    def _open(self) -> Writer:
        if self._writer is None:
            try:
                self._writer = Writer.open(self._folder, rebuild=self._stamp is None)
            except (FulltextDamaged, FulltextMissing):
                # Sizes were right and hashes are not: nothing of it is used.
                self._stamp = None
                self._writer = Writer.open(self._folder, rebuild=True)
            since = self.seen_generation
            if since != self._base:
                until = self._base + 1 if self._whole else self._base
                deleted, added = self._catalog.full_text_changes(since, until)
                if since >= 0:
                    # Adding again what a crash hid behind an old stamp must not double it.
                    self._writer.delete(deleted + added)
                self._writer.add(self._kept_entries(added))
        return self._writer

    def _kept_entries(self, ids: Iterable[int]) -> Iterator[Entry]:
        for identifier in ids:
            data = self._catalog.content(identifier)
            if data is not None:
                yield entry(identifier, chunkfile.parse(data))

    def commit(self, generation: int) -> None:
        """Make the index reflect a generation of the catalog that was just committed."""
        if self._writer is not None:
            self._writer.commit(generation, self._catalog.identity)
            self._writer.close()
            self._writer = None
        elif self._stamp is not None and self._stamp.generation == self._base:
            write_stamp(self._folder, replace(self._stamp, generation=generation))

    def abandon(self) -> None:
        """Forget what was taken; the index stays as it was."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
