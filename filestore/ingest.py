"""Ingest: sources into chunk files.

Writes truth files and nothing else; what it wrote and removed is told, and indexed by the caller.
One rule: a resource changes as a whole or not at all, and the rest goes on.
"""

import contextlib
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from filestore import chunking, extract, fileio, records
from filestore.errors import FilestoreError, RefusedError
from filestore.extract.base import Document
from filestore.extract.folder import documents
from filestore.extraction import Extraction, Pending
from filestore.hashing import origin_hash
from filestore.naming import Named, Naming
from filestore.places import Places
from filestore.records import Record, SourceDocument
from filestore.regeneration import Existing, NewChunk, NewDocument, Regeneration, regenerate
from filestore.settings import Settings
from filestore.sources import Original, SourceError, SourcePath, read_original, unreadable
from filestore.truth import FolderOfStore, change, chunk_files, look_at_existing, remove_copy

if TYPE_CHECKING:
    from filestore.embed.base import Embedder

UNCHANGED: Final = "unchanged"
HELD_BYTES: Final = 128 * 1024 * 1024
"""So much of a source is held in memory; what is beyond it is read twice."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of one source."""

    source: str
    """As recorded: relative to the store root; as given where it never got that far."""
    resource: str
    status: str
    """``added``, ``updated``, ``unchanged`` or ``failed``."""
    chunks: int = 0
    error: FilestoreError | None = None
    record_path: str = ""
    """Below `chunked/`."""
    written: list[str] = field(default_factory=list)
    """Paths below `chunked/` that were written, the record included."""
    removed: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    """Hand-edited files that were kept although their source changed, to the reason."""
    generated: dict[str, str] = field(default_factory=dict)
    """Origin to text of what was generated for the kept files."""
    ignored: int = 0
    """How many files and folders of a folder ignore rules left out; a folder counts as one."""
    other: int = 0
    """How many files of a folder were passed over for their format."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Documents of a folder that were left out, with the reason."""
    failures: list[tuple[str, FilestoreError]] = field(default_factory=list)
    """Documents of a folder that could not be read; what they had before stays."""
    original: str | None = None
    """Where the original of a copy lies; remembered in the sidecar, never committed."""
    undo: str | None = None


@dataclass(slots=True, kw_only=True)
class Begun:
    """A source that was read and is being extracted; nothing is written yet."""

    source: SourcePath
    outcome: Outcome
    named: Named | None = None
    """None where it failed already."""
    fresh: dict[str, Original] = field(default_factory=dict)
    """Its documents by their reference."""
    pending: dict[str, Pending] = field(default_factory=dict)
    """Those that are new or changed."""

    @property
    def held_bytes(self) -> int:
        """How much of them is held in memory."""
        return sum(len(original.held or b"") for original in self.fresh.values())


class Ingest:
    """Brings sources into one store; holds what stays the same from source to source."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        embedder: "Embedder | None",
        *,
        naming: Naming,
        extraction: Extraction,
    ) -> None:
        """Prepare.

        Args:
            places: Where the store lies.
            settings: The store's.
            embedder: Counts tokens; None leaves an estimate.
            naming: Names its sources.
            extraction: Reads them.
        """
        self._places = places
        self._settings = settings
        self._naming = naming
        self._extraction = extraction
        self._embedder = embedder
        self._count = embedder.count_tokens if embedder is not None else _estimate
        most = embedder.max_tokens if embedder is not None else None
        self._budget = min(settings.budget, most) if most is not None else settings.budget
        counter = embedder.tokenizer if embedder is not None else "estimate"
        made = (places.root, places.chunked, places.sidecar, places.undo)
        self._own_folders = {os.path.realpath(folder) for folder in made}
        self._chunker = f"{chunking.CHUNKER}:{self._budget}:{counter}"

    def begin(self, source: SourcePath) -> Begun:
        """Name and read a source, and start to extract what changed.

        A source that cannot be used is an outcome with its error, not an exception.
        """
        outcome = Outcome(source=source.path, resource=source.resource, status="failed")
        begun = Begun(source=source, outcome=outcome)
        with _told(begun):
            named = self._naming.name(source)
            outcome.source, outcome.resource = named.reference, named.resource
            outcome.original, outcome.record_path = named.original, named.record_path
            begun.fresh = self._read(source, outcome)
            begun.named = named
            if named.before is not None and self._is_unchanged(named.before, begun.fresh):
                known = {document.source for document in named.before.documents}
                outcome.chunks = len(self._existing(named.prefix, known))
                outcome.status = UNCHANGED
            else:
                begun.pending = self._begin_extraction(named.before, begun.fresh)
        return begun

    def finish(self, begun: Begun, on_document: Callable[[], None]) -> Outcome:
        """Wait for its documents, cut them, and write its chunk files.

        Args:
            begun: What `begin` gave.
            on_document: Called after each document.
        """
        outcome, named = begun.outcome, begun.named
        if outcome.error is None and outcome.status != UNCHANGED and named is not None:
            with _told(begun):
                self._write(begun, named, on_document)
                self._naming.take(named)
        return outcome

    def _read(self, source: SourcePath, outcome: Outcome) -> dict[str, Original]:
        """Every document by its reference; what was left out or failed is noted."""
        reference = outcome.source
        if not os.path.isdir(source.path):
            return {reference: read_original(source.path, room=HELD_BYTES)}
        listing = documents(
            source.path,
            leave_out=self._is_own,
            patterns=self._settings.ignore,
            found_in=source.found_in,
        )
        outcome.ignored, outcome.other = listing.ignored, listing.other
        found: dict[str, Original] = {}
        room = HELD_BYTES
        outcome.skipped = list(listing.skipped)
        for path in listing.paths:
            try:
                original = read_original(os.path.join(source.path, path), room=room)
                found[f"{reference}/{path}"] = original
                room -= len(original.held or b"")
            except FilestoreError as error:
                outcome.failures.append((f"{reference}/{path}", error))
            except OSError as error:
                outcome.failures.append((f"{reference}/{path}", unreadable(path, error)))
        if not found:
            raise SourceError(
                f"no readable document in {source.path}",
                remedy="add text, Markdown, HTML, PDF, DOCX, PPTX or source code",
                detail="; ".join(f"{path}: {reason}" for path, reason in outcome.skipped[:5]),
            )
        return found

    def _is_own(self, path: str) -> bool:
        """Whether a path met while walking a source is the store, or what it made."""
        return os.path.realpath(path) in self._own_folders

    def _is_unchanged(self, before: Record, fresh: Mapping[str, Original]) -> bool:
        known = {document.source: document for document in before.documents}
        return (
            self._cut_alike(before)
            and set(known) == set(fresh)
            and all(_same(known[path], path, original) for path, original in fresh.items())
        )

    def _cut_alike(self, before: Record) -> bool:
        """Whether the chunks that are there would be cut so today; without a model they stay."""
        return before.chunker == self._chunker or self._embedder is None

    def _begin_extraction(
        self, before: Record | None, fresh: Mapping[str, Original]
    ) -> dict[str, Pending]:
        known: dict[str, SourceDocument] = {}
        if before is not None and self._cut_alike(before):
            known = {document.source: document for document in before.documents}
        return {
            path: self._extraction.begin(original)
            for path, original in fresh.items()
            if path not in known or not _same(known[path], path, original)
        }

    def _write(self, begun: Begun, named: Named, on_document: Callable[[], None]) -> None:
        outcome = begun.outcome
        made, described = self._documents(begun, named, on_document)
        folder = os.path.isdir(begun.source.path)
        done, held = self._plan(named, made, name_sources=folder)
        before = named.before
        known = {document.source: document for document in before.documents} if before else {}
        record = Record(
            resource=None if named.prefix else named.resource,
            source=named.reference,
            kind="folder" if folder else "file",
            chunker=self._label(before, outcome),
            # As long as a new text waits behind a hand edit, its document counts as not taken in.
            documents=tuple(
                known.get(one.source, one) if one.source in done.pending else one
                for one in described
            ),
        )
        self._copy(begun, described, before)
        self._apply(outcome, named, done, held)
        if record == before and not (outcome.written or outcome.removed or outcome.kept):
            outcome.status = UNCHANGED
        else:
            self._write_record(named, record)
            outcome.written.append(named.record_path)
            outcome.status = "added" if before is None else "updated"
        outcome.chunks = done.chunks

    def _documents(
        self, begun: Begun, named: Named, on_document: Callable[[], None]
    ) -> tuple[list[NewDocument], list[SourceDocument]]:
        """Cut what changed; a document that fails keeps the chunks it had, if any."""
        outcome, before = begun.outcome, named.before
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
                    chunks, had = self._chunks(document), _described(path, original, document)
            except (FilestoreError, OSError) as error:
                failures.append(unreadable(original.path, error))
                outcome.failures.append((path, failures[-1]))
            on_document()
            if had is not None:
                made.append(NewDocument(source=path, chunks=chunks))
                described.append(had)
        for path, _ in outcome.failures:
            had = known.get(path)
            if had is not None and had not in described:
                made.append(NewDocument(source=had.source, chunks=None))
                described.append(had)
        if not described or (failures and len(begun.fresh) == 1):
            outcome.failures = []
            raise failures[0]
        return made, described

    def _chunks(self, document: Document) -> tuple[NewChunk, ...]:
        pieces = chunking.split(
            document.text,
            syntax=document.syntax,
            budget=self._budget,
            count_tokens=self._count,
            title=document.title,
            outline=document.outline,
        )
        return tuple(
            NewChunk(
                body=document.text[piece.start : piece.end],
                headings=piece.headings,
                pages=document.pages_between(piece.start, piece.end),
            )
            for piece in pieces
        )

    def _existing(self, prefix: str, sources: Container[str]) -> list[Existing]:
        """The readable chunk files of a resource; in the flat layout those of its documents."""
        folder = os.path.join(self._places.chunked, prefix)
        if not os.path.isdir(folder):
            return []
        names = sorted(chunk_files(folder))
        paths = [f"{prefix}/{name}" if prefix else name for name in names]
        start = len(prefix) + 1 if prefix else 0
        return [
            Existing(name=look.path[start:], data=look.data, chunk=look.chunk)
            for look in look_at_existing(self._places, paths, self._settings.layout)
            if look.chunk is not None and (prefix or look.chunk.source in sources)
        ]

    def _plan(
        self, named: Named, made: Sequence[NewDocument], *, name_sources: bool
    ) -> tuple[Regeneration, dict[str, bytes]]:
        """What is to be written, and the bytes of the chunk files that are there."""
        before, prefix = named.before, named.prefix
        sources = {document.source for document in before.documents} if before else set()
        existing = self._existing(prefix, sources) if before or prefix else []

        def planned(there: Sequence[Existing], taken: Iterable[str]) -> Regeneration:
            return regenerate(
                there,
                made,
                layout=self._settings.layout,
                name_sources=name_sources,
                taken=taken,
            )

        held = {file.name: file.data for file in existing}
        if before is not None:
            return planned(existing, self._taken(prefix)), held
        ours = {file.name: file for file in existing if file.chunk.origin is not None}
        first = planned([], [name for name in self._taken(prefix) if prefix and name not in ours])
        if not prefix:
            held = self._held(first.writes)
            return planned([], [name for name in held if held[name] != first.writes[name]]), held
        if all(first.writes.get(name) == file.data for name, file in ours.items()):
            # Nothing is there, or what an interrupted `add` of the very same text left.
            return first, held
        origins = {origin_hash(c.body) for document in made for c in document.chunks or ()}
        if any(file.chunk.origin in origins for file in ours.values()):
            return planned(existing, self._taken(prefix)), held
        raise RefusedError(
            f"the name {named.resource!r} is in use: chunked/{prefix} has chunks of other text",
            remedy=f"choose another with --into, or remove it: filestore rm {named.resource}",
        )

    def _held(self, names: Iterable[str]) -> dict[str, bytes]:
        """Those of some files of the flat layout that are there."""
        looks = look_at_existing(self._places, sorted(names), self._settings.layout)
        return {look.path: look.data for look in looks}

    def _taken(self, prefix: str) -> list[str]:
        try:
            return os.listdir(os.path.join(self._places.chunked, prefix))
        except FileNotFoundError:
            return []

    def _label(self, before: Record | None, outcome: Outcome) -> str:
        """What cut the chunks; the old cutter as long as some document was not cut anew."""
        left = before is not None and (self._embedder is None or bool(outcome.failures))
        return before.chunker if before is not None and left else self._chunker

    def _copy(
        self, begun: Begun, described: Sequence[SourceDocument], before: Record | None
    ) -> None:
        """Copy what was read of a source from elsewhere; take away copies of what went."""
        if not self._naming.is_copied(begun.source):
            return
        kept = {document.source for document in described}
        for reference in begun.fresh.keys() & kept:
            parent, _, name = reference.rpartition("/")
            with FolderOfStore(self._places.root, parent) as handle:
                fileio.write_at(handle, name, begun.fresh[reference].data())
                os.fsync(handle)
        for document in before.documents if before else ():
            if document.source not in kept:
                remove_copy(self._places.root, document.source, document.hash)

    def _apply(
        self, outcome: Outcome, named: Named, done: Regeneration, held: Mapping[str, bytes]
    ) -> None:
        prefix = named.prefix

        def path_of(name: str) -> str:
            return f"{prefix}/{name}" if prefix else name

        outcome.undo = change(
            self._places,
            prefix,
            done.writes,
            done.deletions,
            before=held,
            command=f"add {named.resource}",
        )
        outcome.written = [path_of(name) for name in done.writes]
        outcome.removed = [path_of(name) for name in done.deletions]
        outcome.kept = {path_of(name): reason for name, reason in done.kept.items()}
        outcome.generated = done.generated

    def _write_record(self, named: Named, record: Record) -> None:
        with FolderOfStore(self._places.chunked, named.prefix) as handle:
            name = named.record_path.rpartition("/")[2]
            fileio.write_at(handle, name, records.serialize(record))
            os.fsync(handle)


@contextlib.contextmanager
def _told(begun: Begun) -> Iterator[None]:
    """What is wrong with a source is told with its outcome."""
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


def _described(path: str, original: Original, document: Document) -> SourceDocument:
    return SourceDocument(
        source=path,
        hash=original.hash,
        extractor=document.extractor,
        metadata=document.metadata,
    )


def _estimate(text: str) -> int:
    """For stores whose model is not here: few models have a token to fewer characters."""
    return (len(text) + 2) // 3
