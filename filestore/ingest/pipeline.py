"""Ingest: sources into chunk files.

Writes truth files and nothing else, and reports them: the caller updates the index.
One rule: a resource changes as a whole or not at all, and the rest goes on.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from filestore import extract
from filestore.chunks import resource_record
from filestore.chunks.resource_record import Record, SourceDocument
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.hashing import origin_hash, source_hash
from filestore.core.paths import CHUNKS, ChunkPath, StorePath, inside
from filestore.core.safe_text import listed
from filestore.extract.folder import documents
from filestore.extract.pool import Extraction, Pending
from filestore.fs import disk
from filestore.git.merge import merge
from filestore.history.write import change, look_at_existing
from filestore.ingest.regenerate import (
    Existing,
    Lost,
    NewChunk,
    NewDocument,
    Regenerating,
    Regeneration,
)
from filestore.ingest.resource_names import (
    Named,
    Naming,
    in_order,
    renamed_files,
    renamed_lost,
    renamed_record,
    renames_found,
)
from filestore.ingest.sources import (
    Lineage,
    Original,
    Outcome,
    Remark,
    SourceError,
    SourcePath,
    read_original,
    unreadable,
)
from filestore.sidecar.cutting import Chunker
from filestore.sidecar.snapshot import StoreSnapshot

UNCHANGED: Final = "unchanged"
HELD_BYTES: Final = 128 * 1024 * 1024
"""So much of a source is held in memory; what is beyond it is read twice."""


OnCopy = Callable[[str, Outcome], None]
"""Called before originals are copied, with the path of the source and what is known by then."""


class Begun(Struct, kw_only=True):
    """A source that was read and is being extracted; nothing is written yet."""

    source: SourcePath
    outcome: Outcome
    named: Named | None = None
    """None where it failed already."""
    before: Record | None = None
    """The record that is there, its documents called what they are called now."""
    renames: dict[str, str] = field(default_factory=dict)
    """Documents that were renamed."""
    fresh: dict[str, Original] = field(default_factory=dict)
    """Its documents by their reference."""
    pending: dict[str, Pending] = field(default_factory=dict)
    """The new and changed ones."""

    @property
    def held_bytes(self) -> int:
        """How much of them is held in memory."""
        return sum(len(original.held or b"") for original in self.fresh.values())


class Ingest:
    """Brings sources into one store; holds what stays the same from source to source."""

    def __init__(
        self,
        snapshot: StoreSnapshot,
        *,
        naming: Naming,
        extraction: Extraction,
        group: str = "",
        command: str = "add",
        on_copy: OnCopy | None = None,
        lists: Callable[[str, str], bool] | None = None,
    ) -> None:
        """Prepare.

        Args:
            snapshot: The store.
            naming: Names its sources.
            extraction: Reads them.
            group: The first batch of originals of the same command, if there is one already.
            command: What the list of changes calls it.
            on_copy: Called before copies are made.
            lists: Which files of a folder belong to it, by their path and its; None for all.
        """
        self._on_copy, self._lists = on_copy, lists
        self._group, self._command = group, command
        self._places = places = snapshot.places
        self._settings = snapshot.settings
        self._layout = snapshot.layout
        self._naming = naming
        self._extraction = extraction
        self._lineage = Lineage(snapshot)
        self._chunker = Chunker(budget=snapshot.settings.budget)
        made = (places.root, places.chunked, places.sidecar, places.undo)
        self._own_folders = {os.path.realpath(folder) for folder in made}

    def begin(self, source: SourcePath) -> Begun:
        """Name and read a source, and start to extract what changed.

        A source that cannot be used is an outcome with its error, not an exception.
        """
        outcome = Outcome(
            source=source.path, typed=source.typed, resource=source.resource, status="failed"
        )
        begun = Begun(source=source, outcome=outcome)
        with _failure_kept(begun):
            named = self._naming.name(source)
            outcome.source, outcome.resource = named.reference, named.resource
            outcome.original, outcome.record_path = named.original, named.record_path
            outcome.note = source.note if named.before is None else None
            begun.fresh = self._read(source, outcome, named)
            outcome.documents = {path: one.hash for path, one in begun.fresh.items()}
            begun.named = named
            self._follow_renames(begun, named)
            before = begun.before
            unchanged = not begun.renames and self._is_unchanged(begun, named)
            existing = (
                renamed_files(self._lineage_of(begun.named), begun.renames)
                if unchanged or self._lineage.conflicts
                else []
            )
            waiting = {
                file.chunk.source or named.reference
                for file in existing
                if file.path in self._lineage.conflicts
            }
            if unchanged and not waiting:
                outcome.chunks = len(existing)
                outcome.looked_at = [file.path for file in existing]
                outcome.status = UNCHANGED
            else:
                known: dict[str, SourceDocument] = {}
                if before is not None and self._cut_alike(before):
                    known = {document.source: document for document in before.documents}
                begun.pending = {
                    path: self._extraction.begin(original)
                    for path, original in begun.fresh.items()
                    if path not in known
                    or path in waiting
                    or not _same(known[path], path, original)
                }
        return begun

    def _follow_renames(self, begun: Begun, named: Named) -> None:
        """Note which documents are called otherwise since the record was written.

        Raises:
            SourceError: The source was renamed, and a chunk file that says so cannot be written.
        """
        source, before = begun.source, named.before
        if before is None:
            return
        fresh = begun.outcome.documents
        found = renames_found(before, named.reference, fresh, source.renames)
        # Only what can be written into every chunk file that names the document.
        files = self._lineage_of(named) if found else ()
        stuck = {file.chunk.source for file in files if file.excluded}
        renames = {old: new for old, new in found.items() if old not in stuck}
        if source.was is not None and renames != found:
            raise SourceError(
                f"{source.was} was renamed, and a chunk file made from it cannot be written",
                remedy="'filestore status' names it; repair it, then update again",
            )
        begun.renames, begun.before = renames, renamed_record(before, renames)

    def finish(self, begun: Begun, on_document: Callable[[], None]) -> Outcome:
        """Wait for its documents, cut them, and write its chunk files.

        Args:
            begun: What `begin` gave.
            on_document: Called after each document.
        """
        outcome, named = begun.outcome, begun.named
        if outcome.error is None and outcome.status != UNCHANGED and named is not None:
            with _failure_kept(begun):
                self._write(begun, named, on_document)
                self._naming.take(named, begun.fresh)
        return outcome

    def _read(self, source: SourcePath, outcome: Outcome, named: Named) -> dict[str, Original]:
        """Every document by its reference; what was left out or failed is noted."""
        reference = outcome.source
        if source.gone == "all":
            return {}
        if not os.path.isdir(source.path):
            return {reference: read_original(source.path, room=HELD_BYTES)}
        listing = documents(
            source.path,
            leave_out=lambda path: os.path.realpath(path) in self._own_folders,
            patterns=self._settings.ignore,
            found_in=source.found_in,
        )
        outcome.ignored, outcome.other = listing.ignored, listing.other
        found: dict[str, Original] = {}
        room = HELD_BYTES
        outcome.skipped = list(listing.skipped)
        real, top = os.path.realpath(source.path), os.path.realpath(source.found_in or source.path)
        for path in listing.paths:
            if self._lists is not None and not self._lists(os.path.join(real, path), top):
                outcome.passed_over.add(f"{reference}/{path}")
                continue
            if owner := self._naming.other_owner(f"{reference}/{path}", named):
                outcome.skipped.append((path, f"belongs to the document {owner}"))
                continue
            try:
                original = read_original(os.path.join(source.path, path), room=room)
                found[f"{reference}/{path}"] = original
                room -= len(original.held or b"")
            except FilestoreError as error:
                outcome.failures.append((f"{reference}/{path}", error))
            except OSError as error:
                outcome.failures.append((f"{reference}/{path}", unreadable(path, error)))
        if not found and listing.paths and not outcome.failures:
            raise RefusedError(
                f"every file in {source.path} belongs to a document added before",
                remedy="'filestore update' brings these up to date",
                detail=listed((" ".join(one) for one in outcome.skipped), 5, separator="; "),
            )
        if not found:
            raise SourceError(
                f"no readable document in {source.path}"
                ": add text, Markdown, HTML, PDF, office documents, books or source code",
                detail=listed((": ".join(one) for one in outcome.skipped), 5, separator="; "),
            )
        return found

    def _is_unchanged(self, begun: Begun, named: Named) -> bool:
        source, before, fresh = begun.source, begun.before, begun.fresh
        if before is None or before.each != self._naming.is_child(source, named):
            return False
        known = {document.source: document for document in before.documents}
        known = {one: had for one, had in known.items() if one not in begun.outcome.passed_over}
        if source.gone == "keep" or source.drops is not None:
            known = {one: had for one, had in known.items() if one in {*fresh, *source.may_drop}}
        return (
            self._cut_alike(before)
            and set(known) == set(fresh)
            and all(_same(known[path], path, original) for path, original in fresh.items())
        )

    def _cut_alike(self, before: Record) -> bool:
        """Whether the chunks that are there would be cut so today."""
        return before.chunker == self._chunker.label

    def _write(self, begun: Begun, named: Named, on_document: Callable[[], None]) -> None:
        outcome = begun.outcome
        made, described = self._documents(begun, on_document)
        before = begun.before
        folder = os.path.isdir(begun.source.path)
        if begun.source.gone == "all":
            folder = before is not None and before.kind == "folder"
        done, held = self._plan(begun, named, made, name_sources=folder)
        known = {document.source: document for document in before.documents} if before else {}
        gone = done.pending.difference(one.source for one in described)
        # The chunker of the chunks is the old one until every document was chunked again.
        left = bool(outcome.failures or done.pending)
        if before is not None and self._cut_alike(before):
            left = left or any(document.chunks is None for document in made)
        record = Record(
            resource=None if named.prefix else named.resource,
            source=named.reference,
            kind="folder" if folder else "file",
            chunker=before.chunker if before is not None and left else self._chunker.label,
            # As long as a new text waits behind a hand edit, its document counts as not added.
            documents=(
                *(
                    known.get(one.source, one) if one.source in done.pending else one
                    for one in described
                ),
                *(known[source] for source in sorted(gone & known.keys())),
            ),
            each=self._naming.is_child(begun.source, named),
        )
        same = record == named.before and not (done.writes or done.deletions)
        copies = self._copies(begun, described, before)
        outcome.copied = tuple(len(new) for old, new in copies.values() if new and new != old)
        if outcome.copied and self._on_copy is not None:
            self._on_copy(begun.source.path, outcome)
        self._apply(outcome, named, done, held, copies, None if same else record)
        outcome.status = UNCHANGED if same else "added" if before is None else "updated"
        if not record.documents:
            outcome.status = "removed"
        outcome.chunks = done.chunks

    def _documents(
        self, begun: Begun, on_document: Callable[[], None]
    ) -> tuple[list[NewDocument], list[SourceDocument]]:
        """Cut what changed; a document that fails keeps the chunks it had, if any."""
        outcome, before = begun.outcome, begun.before
        if begun.source.gone == "all":
            sources = [one.source for one in before.documents] if before else []
            return [NewDocument(source=source, chunks=()) for source in sources], []
        known = {document.source: document for document in before.documents} if before else {}
        made: list[NewDocument] = []
        described: list[SourceDocument] = []
        failures: list[FilestoreError] = []
        for path, original in begun.fresh.items():
            had = known.get(path)
            try:
                chunks = None
                if path in begun.pending:
                    document = begun.pending.pop(path)()
                    outcome.remarks += [Remark(path, text) for text in document.all_remarks]
                    chunks = self._cut(document)
                    had = SourceDocument(
                        source=path,
                        hash=original.hash,
                        extractor=document.extractor,
                        metadata=document.recorded,
                    )
            except (FilestoreError, OSError) as error:
                failures.append(unreadable(original.path, error))
                outcome.failures.append((path, failures[-1]))
            on_document()
            if had is not None:
                made.append(NewDocument(source=path, chunks=chunks))
                described.append(had)
        for path in (*(path for path, _ in outcome.failures), *sorted(outcome.passed_over)):
            had = known.get(path)
            if had is not None and had not in described:
                made.append(NewDocument(source=had.source, chunks=None))
                described.append(had)
        if not described or (failures and len(begun.fresh) == 1):
            outcome.failures = []
            raise failures[0]
        if begun.source.gone == "keep" or begun.source.drops is not None:
            gone = known.keys() - {one.source for one in described} - begun.source.may_drop
            made += [NewDocument(source=source, chunks=None) for source in gone]
            described += [known[source] for source in gone]
            order = in_order([one.source for one in described], before, set(gone))
            made.sort(key=lambda one: order.index(one.source))
            described.sort(key=lambda one: order.index(one.source))
        return made, described

    def _cut(self, document: extract.Document) -> tuple[NewChunk, ...]:
        return tuple(
            NewChunk(
                body=f"{piece.before}{document.text[piece.start : piece.end]}{piece.after}",
                repeats=(len(piece.before), len(piece.after)),
                headings=piece.headings,
                pages=document.pages_between(piece.start, piece.end),
            )
            for piece in self._chunker.pieces(document)
        )

    def cuts(self, begun: Begun) -> Iterator[tuple[str, tuple[NewChunk, ...], bool]]:
        """The pieces of each document of a source, and whether they are new; writes nothing.

        A document that cannot be read is a failure of the outcome.
        """
        for path, original in begun.fresh.items():
            try:
                is_new = path in begun.pending
                read = begun.pending.pop(path) if is_new else self._extraction.begin(original)
                chunks = self._cut(read())
            except (FilestoreError, OSError) as error:
                begun.outcome.failures.append((path, unreadable(original.path, error)))
            else:
                yield path, chunks, is_new

    def _lineage_of(self, named: Named | None) -> list[Existing]:
        """The chunk files of a resource; in the flat layout those of its documents."""
        if named is None:
            return []
        documents = named.before.documents if named.before is not None else ()
        sources = {document.source for document in documents}
        reference = named.before.source if named.before is not None else named.reference
        return self._lineage.files_of(named.prefix, reference, sources.__contains__)

    def _plan(
        self, begun: Begun, named: Named, made: Sequence[NewDocument], *, name_sources: bool
    ) -> tuple[Regeneration, dict[ChunkPath, bytes]]:
        """What is to be written, and the bytes of the chunk files that are there."""
        prefix = named.prefix
        found = self._lineage_of(named) if named.before is not None or prefix else []
        existing = renamed_files(found, begun.renames)
        lost: list[Lost] = []
        if named.before is not None:
            sources = [document.source for document in named.before.documents]
            there = named.old_record or named.record_path
            lost = renamed_lost(self._lineage.lost(prefix, there, sources), begun.renames)

        def planned(there: Sequence[Existing], taken: Iterable[str]) -> Regeneration:
            return Regenerating(
                there,
                layout=self._layout,
                name_sources=name_sources,
                merge=merge,
                past=self._lineage,
                folder=prefix,
                taken=taken,
                lost=lost,
                source=named.reference if name_sources and prefix else "",
            ).planned(made)

        held = {file.path: file.data for file in found}
        if named.before is not None:
            done = planned(existing, self._taken(prefix))
            for file in existing:
                if file.data != held[file.path] and file.path not in done.deletions:
                    done.writes.setdefault(file.path, file.data)
            return done, held
        if not prefix:
            return self._plan_flat(planned)
        ours = {file.path: file for file in existing if file.chunk.origin is not None}
        others = [name for name in self._taken(prefix) if inside(prefix, name) not in ours]
        first = planned([], others)
        if all(first.writes.get(path) == file.data for path, file in ours.items()):
            # Nothing is there, or what an interrupted `add` of the very same text left.
            return first, held
        origins = {origin_hash(c.body) for document in made for c in document.chunks or ()}
        if any(file.chunk.origin in origins for file in ours.values()):
            return planned(existing, self._taken(prefix)), held
        raise RefusedError(
            f"its name is in use; {CHUNKS.store_path(prefix)} has chunks of other text",
            remedy=f"'filestore rm {named.resource}' removes them; or name another with --into",
        )

    def _plan_flat(
        self, planned: Callable[[Sequence[Existing], Iterable[str]], Regeneration]
    ) -> tuple[Regeneration, dict[ChunkPath, bytes]]:
        """A new resource among all others: a file that says just this is taken for its own."""
        first = planned([], [])
        looks = look_at_existing(self._places, sorted(first.writes), self._layout)
        held = {look.path: look.data for look in looks}
        taken = [name for name in held if held[name] != first.writes[name]]
        return planned([], taken), held

    def _taken(self, prefix: ChunkPath) -> list[str]:
        top = os.path.join(self._places.chunked, prefix)
        return [
            os.path.relpath(os.path.join(folder, name), top) + end
            for folder, folders, names in os.walk(top)
            for names_of, end in ((folders, "/"), (names, ""))
            for name in names_of
        ]

    def _copies(
        self, begun: Begun, described: Sequence[SourceDocument], before: Record | None
    ) -> dict[StorePath, tuple[bytes | None, bytes | None]]:
        """Copies of a source from elsewhere, before and after; those of what went are to go."""
        if not self._naming.is_copied(begun.source):
            return {}
        kept = {document.source for document in described}
        copies: dict[StorePath, tuple[bytes | None, bytes | None]] = {
            StorePath(path): (self._held_at(path), begun.fresh[path].data())
            for path in sorted(begun.fresh.keys() & kept)
        }
        for document in before.documents if before else ():
            if document.source not in kept and document.source.startswith("source/"):
                with contextlib.suppress(OSError):
                    data = self._held_at(document.source)
                    # Another file than was copied is somebody's own.
                    if data is not None and source_hash(data) == document.hash:
                        copies[StorePath(document.source)] = (data, None)
        return copies

    def _held_at(self, path: str) -> bytes | None:
        """What a path relative to the store root holds; None where there is no file."""
        with disk.folder_at(self._places.root) as root, contextlib.suppress(FileNotFoundError):
            return disk.read_below(root, path)[0]
        return None

    def _apply(
        self,
        outcome: Outcome,
        named: Named,
        done: Regeneration,
        held: Mapping[ChunkPath, bytes],
        copies: Mapping[StorePath, tuple[bytes | None, bytes | None]],
        record: Record | None,
    ) -> None:
        """Change chunk files, copies and, unless it stays, the record: all or nothing."""
        changes = {path: after for path, (_, after) in copies.items()}
        before = {path: data for path, (data, _) in copies.items()}
        before |= {CHUNKS.store_path(path): data for path, data in held.items()}
        changes |= {CHUNKS.store_path(path): data for path, data in done.writes.items()}
        changes |= dict.fromkeys(map(CHUNKS.store_path, done.deletions))
        outcome.written, outcome.removed = list(done.writes), list(done.deletions)
        records: dict[ChunkPath, bytes | None] = {}
        if record is not None:
            data = resource_record.serialize(record) if record.documents else None
            records = dict.fromkeys([named.old_record] if named.old_record is not None else [])
            records[named.record_path] = data
        for path, after in records.items():
            changes[CHUNKS.store_path(path)] = after
            before[CHUNKS.store_path(path)] = self._held_at(CHUNKS.store_path(path))
            (outcome.removed if after is None else outcome.written).append(path)
        outcome.undo = change(
            self._places,
            changes,
            before=before,
            command=f"{self._command} {named.resource}",
            last=[CHUNKS.store_path(path) for path in records],
            group=self._group,
        )
        self._group = self._group or outcome.undo or ""
        outcome.merged = list(done.merged)
        outcome.kept, outcome.deleted = dict(done.kept), dict(done.deleted)
        outcome.generated = done.generated
        outcome.looked_at = list(held)


@contextlib.contextmanager
def _failure_kept(begun: Begun) -> Iterator[None]:
    """An error of a source belongs to its outcome."""
    outcome = begun.outcome
    try:
        yield
    except FilestoreError as error:
        outcome.status, outcome.error = "failed", error
    except OSError as error:
        outcome.status, outcome.error = "failed", unreadable(begun.source.path, error)


def _same(known: SourceDocument, path: str, original: Original) -> bool:
    extractor = extract.for_name(path)
    label = extractor.label if extractor else ""
    return known.hash == original.hash and known.extractor == label
