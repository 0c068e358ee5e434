"""The full-text index of a store: its files against stamp and catalog, and what goes into it.

Loads tantivy where it reads or writes an index. The index is committed after the catalog, so it may
lag by a crash: the feed first replays what the index has not seen, from the texts the catalog
keeps, and then takes the new ones.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Catalog, in_batches, queries
from filestore.chunks.observation import INDEXED
from filestore.config import user_config
from filestore.config.layout import FULLTEXT, Places
from filestore.core.findings import Finding
from filestore.core.safe_text import listed
from filestore.fs import disk
from filestore.fulltext import (
    ANALYSIS,
    STAMP_NAME,
    FulltextDamaged,
    FulltextMissing,
    FulltextUnreadable,
    Stamp,
    check_files,
    read_stamp,
    write_stamp,
)

if TYPE_CHECKING:
    from filestore.fulltext import Entry, Reader, Writer


def found_stamp(places: Places, catalog: Catalog) -> Stamp | None:
    """The stamp of an index of this catalog and of our analysis, by any user."""
    stamp = read_stamp(places.fulltext)
    if stamp is None or stamp.analysis != ANALYSIS or stamp.catalog != catalog.identity:
        return None
    return stamp


def own_stamp(places: Places, catalog: Catalog) -> Stamp | None:
    """The same, of an index that this user wrote: tantivy parses no other."""
    stamp = found_stamp(places, catalog)
    return stamp if stamp is not None and _is_ours(places, stamp) else None


def _is_ours(places: Places, stamp: Stamp) -> bool:
    return user_config.is_sealed(places.configuration, stamp.claims(), stamp.seal)


def sealed(places: Places, stamp: Stamp) -> Stamp:
    """A stamp with this user's keyed hash, where there is a place for the secret behind it."""
    mark = user_config.seal(places.configuration, stamp.claims(), make=True)
    return replace(stamp, seal=mark or "")


def deleted_texts(places: Places, catalog: Catalog) -> int:
    """How many texts that are gone the scores of the index still count."""
    try:
        stamp = own_stamp(places, catalog)
    except FulltextUnreadable:
        return 0
    return stamp.deleted if stamp else 0


def languages(places: Places, catalog: Catalog) -> tuple[str, ...]:
    """The languages of the texts, the one of most first; none where something is closed."""
    if catalog.closed():
        return ()
    try:
        stamp = own_stamp(places, catalog)
    except FulltextUnreadable:
        return ()
    found = stamp.languages if stamp else ()
    return tuple(name for name, _ in sorted(found, key=lambda one: (-one[1], one[0])))


def copy(places: Places, stamp: Stamp, copied: Places) -> None:
    """Have the index of a stamp in another sidecar, too; files that never change are shared.

    Raises:
        OSError: A file of it is gone, or there is no room for a copy.
    """
    import shutil

    for name, _, _ in stamp.files:
        source, target = os.path.join(places.fulltext, name), os.path.join(copied.fulltext, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        if name.endswith(".json"):
            shutil.copyfile(source, target)
        else:
            disk.link_or_copy(source, target)
    write_stamp(copied.fulltext, sealed(copied, stamp))


def findings(places: Places, catalog: Catalog, *, hashes: bool) -> list[Finding]:
    """What is wrong with the full-text index, without parsing it: the first of what is."""
    code, detail = "", ""
    try:
        stamp = found_stamp(places, catalog)
        if stamp is None:
            # A stamp that says nothing; one of another catalog is as good as none.
            there = os.path.lexists(os.path.join(places.fulltext, STAMP_NAME))
            if there and read_stamp(places.fulltext) is None:
                code = "fulltext-damaged"
                detail = f"{STAMP_NAME} is there and cannot be read as a stamp"
            elif catalog.generation or catalog.has_rows("vectors"):
                code, detail = "fulltext-missing", "no usable stamp"
        elif problems := check_files(places.fulltext, stamp, hashes=hashes):
            code, detail = "fulltext-damaged", listed(problems, separator="; ")
        elif not _is_ours(places, stamp) and user_config.can_seal(places.configuration):
            code, detail = "fulltext-foreign", "nothing in its stamp shows that you made it"
        elif not _is_current(places, stamp, catalog):
            now = catalog.generation
            code = "fulltext-behind"
            detail = f"it reflects generation {stamp.generation}, the catalog is at {now}"
        elif stamp.documents != (texts := catalog.text_count()):
            code = "fulltext-mismatch"
            detail = f"it holds {stamp.documents} passages, the catalog {texts}"
    except FulltextUnreadable as error:
        code, detail = "unreadable", error.message
    path = places.part(FULLTEXT)
    return [Finding(code=code, path=path, detail=detail)] if code else []


def _is_current(places: Places, stamp: Stamp, catalog: Catalog) -> bool:
    """Whether the index has all texts of a catalog, which is inside a snapshot."""
    since, until = stamp.generation, catalog.generation
    if since > until:
        # A commit that was made since the snapshot was taken.
        with contextlib.closing(Catalog.open(places.catalog)) as now:
            return now.generation >= since
    return since == until or not any(catalog.full_text_changes(since, until))


EXACT_TEXTS: Final = 10_000
EXACT_BYTES: Final = 12_000_000
"""An index of no more is written whole when a text of it goes, which takes a second at most. What
is deleted counts in the scores until then, and answers shall not depend on a store's past."""
QUICK_TEXTS: Final = 2_000
"""Before an answer no index of more is written whole; the next sync does it."""
MOST_DELETED: Final = 0.01
"""A larger one is written whole when this share of its texts was deleted."""


MOST_REPLAYED: Final = 5_000
"""A reader replays no more files than this where the next sync does."""


def open_reader(places: Places, catalog: Catalog) -> "tuple[Reader | None, str]":
    """The full-text index of a catalog inside a snapshot, if there is one, and what to say of it.

    Of what the catalog closes no word is found, counted or offered.

    Raises:
        FulltextMissing: Its files are gone.
        FulltextUnreadable: The disk does not give them at the moment.
    """
    reader, note = _opened(places, catalog)
    if reader is not None and (shut := catalog.closed_texts()):
        reader.shut(shut)
    return reader, note


def _opened(places: Places, catalog: Catalog) -> "tuple[Reader | None, str]":
    from filestore.fulltext import Reader

    if found_stamp(places, catalog) is None:
        if places.tree.is_written and not catalog.generation:
            return None, "nothing was added yet: run 'filestore add PATH'"
        return None, "there is no full-text index: run 'filestore sync'"
    stamp, wanted = own_stamp(places, catalog), catalog.generation
    try:
        is_current = stamp is not None and _is_current(places, stamp, catalog)
        if stamp is None or (stamp.generation < wanted and not is_current):
            # No file of it, or no room for a copy: it is opened as is, and the answer notes that.
            with contextlib.suppress(OSError):
                if (reader := _caught_up(places, catalog, stamp)) is not None:
                    return reader, ""
        if stamp is None:
            return None, "the full-text index was made elsewhere: run 'filestore sync'"
        way = "behind" if stamp.generation < wanted else "ahead"
        note = f"the full-text index is {way}: run 'filestore sync'"
        return Reader.open(places.fulltext, stamp), "" if is_current else note
    except FulltextDamaged as error:
        return None, f"{error.message}: run 'filestore sync'"


def _caught_up(places: Places, catalog: Catalog, stamp: Stamp | None) -> "Reader | None":
    """An index that a crash left behind its catalog, with what it lacks; changes nothing.

    It is replayed in a copy, which is removed as soon as it is open.

    Args:
        places: Where the store lies.
        catalog: Inside a snapshot.
        stamp: Of the index; None where it is another user's, and nothing of it is used.

    Returns:
        None where too much is lacking, and a sync can repair that.

    Raises:
        FulltextDamaged: A file of it differs from the stamp.
        OSError: A file of it is gone, or there is no room for a copy.
    """
    from filestore.fulltext import Reader

    since = -1 if stamp is None else stamp.generation
    lacking = catalog.full_text_changes(since, catalog.generation)
    can_sync = os.access(places.sidecar, os.W_OK) and user_config.can_seal(places.configuration)
    if can_sync and sum(map(len, lacking)) > MOST_REPLAYED:
        return None
    import tempfile

    with tempfile.TemporaryDirectory(prefix="filestore-") as folder:
        # Its seal is made with a secret of its own: there may be no place for the user's.
        scratch = replace(places, sidecar=folder, configuration=folder)
        if stamp is not None:
            copy(places, stamp, scratch)
            if problems := check_files(scratch.fulltext, stamp, hashes=True):
                raise FulltextDamaged(places.fulltext, "; ".join(problems))
        feed = FulltextFeed(scratch, catalog)
        feed.trust()
        feed.catch_up()
        feed.commit(catalog.generation)
        fresh = own_stamp(scratch, catalog)
        return Reader.open(scratch.fulltext, fresh) if fresh else None


class FulltextFeed:
    """Takes additions and deletions of one commit; opens tantivy only if there are any."""

    def __init__(self, places: Places, catalog: Catalog) -> None:
        self._folder = places.fulltext
        self._seal = partial(sealed, places)
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
        self._deleted = self._stamp.deleted if self._stamp else 0
        self._writer: Writer | None = None
        self._whole = False
        self._is_checked = False
        self.exact_texts = EXACT_TEXTS
        """With no more texts than these what is deleted counts in no score."""

    @property
    def seen_generation(self) -> int:
        """The generation that the index on disk reflects; -1 where it has to be rebuilt."""
        return -1 if self._stamp is None else self._stamp.generation

    def add(self, entries: "Iterable[Entry]") -> None:
        """Take documents with ids never seen before."""
        if not self._whole:
            self._open().add(entries)

    def delete(self, ids: list[int]) -> None:
        """Take out documents; unknown ids are passed over."""
        if not ids or self._whole:
            return
        self._deleted += len(ids)
        if self.counts_too_many:
            self.rebuild()
        else:
            self._open().delete(ids)

    def rebuild(self) -> None:
        """Use nothing of the index that is there; it is written from what the catalog has."""
        self.abandon()
        self._stamp = None
        self._deleted = 0
        self._whole = True

    def leave_out_deleted(self) -> int:
        """Write the index whole where deleted texts count in its scores; how many do."""
        deleted = self._deleted
        if deleted:
            self.rebuild()
        return deleted

    def trust(self) -> None:
        """Take the files of the index for what their stamp says: somebody just read them all."""
        self._is_checked = True

    def catch_up(self) -> None:
        """Replay what an index behind its catalog lacks, and clear what a dead writer staged."""
        with contextlib.suppress(OSError), disk.folder_at(self._folder) as handle:
            disk.remove_staged(handle)
        if self._stamp is None or self._stamp.generation != self._base:
            self._open()
        if self.counts_too_many:
            self.rebuild()
            self._open()

    @property
    def counts_too_many(self) -> bool:
        """Whether deleted texts count in the scores that are to count no longer."""
        if not self._deleted:
            return False
        # Of those of this commit the catalog does not know yet.
        texts = self._catalog.text_count() - self._deleted
        is_small = texts <= self.exact_texts and self._catalog.content_bytes() <= EXACT_BYTES
        return self._deleted > (0 if is_small else texts * MOST_DELETED)

    def _open(self, language: str = "") -> "Writer":
        if self._writer is None:
            from filestore.fulltext import Writer

            try:
                self._writer = Writer.open(
                    self._folder, self._stamp, checked=self._is_checked, language=language
                )
            except (FulltextDamaged, FulltextMissing):
                # Sizes were right and hashes are not: nothing of it is used.
                self._stamp = None
                self._deleted = 0
                self._writer = Writer.open(self._folder)
            since = self.seen_generation
            if since != self._base:
                until = self._base + 1 if self._whole else self._base
                deleted, added = self._catalog.full_text_changes(since, until)
                if since >= 0:
                    # Adding again what a crash hid behind an old stamp must not double it.
                    again = queries.texts_of_files(self._catalog, added)
                    self._writer.delete(deleted + again)
                    self._deleted += len(deleted)
                self._writer.add(self._kept_entries(added))
        return self._writer

    def _kept_entries(self, ids: Iterable[int]) -> "Iterator[Entry]":
        from filestore.chunks import kept
        from filestore.sidecar.file_rows import entries, named_by

        for batch in in_batches(list(ids)):
            found = self._catalog.files_by_id(batch)
            rows = [found[one] for one in batch if one in found]
            for row, named in zip(rows, named_by(self._catalog, rows), strict=True):
                data = self._catalog.content(row.id)
                if data is not None and row.state == INDEXED:
                    yield from entries(row.id, row.path, kept.read(data), named)

    def commit(self, generation: int) -> None:
        """Make the index reflect a generation of the catalog that was just committed."""
        while self._writer is not None:
            self._writer.settle()
            language = self._writer.main_language
            if language == self._writer.language:
                break
            # Most texts are in another language now: texts that do not tell theirs are, too.
            self.rebuild()
            self._open(language)
        if self._writer is not None:
            self._writer.commit(generation, self._catalog.identity, seal=self._seal)
            self._writer.close()
            self._writer = None
        elif self._stamp is not None and self._stamp.generation == self._base:
            write_stamp(self._folder, self._seal(replace(self._stamp, generation=generation)))

    def abandon(self) -> None:
        """Forget what was taken; the index stays as it was."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
