"""Ingest: sources into chunk files, and resources out of the store again.

Writes truth files and nothing else; what it wrote and removed is told, and indexed by the caller.
One rule: a resource changes as a whole or not at all, and the rest goes on.
"""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from filestore import chunking, extract, fileio, records
from filestore.drift import folded_path, look_at
from filestore.errors import FilestoreError, RefusedError
from filestore.extract.base import Document
from filestore.extract.folder import documents
from filestore.hashing import origin_hash, source_hash
from filestore.observation import Observation
from filestore.originals import keep_originals
from filestore.places import RECORD_NAME, Places
from filestore.records import Record, SourceDocument
from filestore.regeneration import Existing, NewChunk, NewDocument, Regeneration, regenerate
from filestore.settings import Settings
from filestore.sources import (
    SourceError,
    SourcePath,
    check_name,
    extract_bytes,
    inside,
    read_source,
    unreadable,
)
from filestore.worktree import work_tree

if TYPE_CHECKING:
    from filestore.embed.base import Embedder


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
    written: list[str] = field(default_factory=list)
    """Paths below `chunked/` that were written, the record included."""
    removed: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    """Hand-edited files that were kept although their source changed, to the reason."""
    generated: dict[str, str] = field(default_factory=dict)
    """Origin to text of what was generated for the kept files."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Documents of a folder that were left out, with the reason."""
    failures: list[tuple[str, FilestoreError]] = field(default_factory=list)
    """Documents of a folder that could not be read; what they had before stays."""
    original: str | None = None
    """Where the original of a copy lies; remembered in the sidecar, never committed."""
    undo: str | None = None


class Ingest:
    """Brings sources into one store; holds what stays the same from source to source."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        embedder: "Embedder | None",
        *,
        originals: dict[str, str],
        owners: Mapping[str, str],
    ) -> None:
        """Prepare.

        Args:
            places: Where the store lies.
            settings: The store's.
            embedder: Counts tokens; None counts characters.
            originals: Where the originals of copies lie, by reference; added to.
            owners: Resource by source, as the catalog knows them.
        """
        self._originals = originals
        self._owners = owners
        self._places = places
        self._settings = settings
        self._tree = work_tree(places.root)
        self._count = embedder.count_tokens if embedder is not None else _count_words
        self._chunker = f"{chunking.CHUNKER}:{settings.budget}"
        self._in_use: dict[str, str] | None = None

    def add(self, source: SourcePath) -> Outcome:
        """Bring one source in, or up to date.

        A source that cannot be used is an outcome with its error, not an exception.
        """
        outcome = Outcome(source=source.path, resource=source.resource, status="failed")
        try:
            self._check(source)
            outcome.source = self._reference(source)
            self._check_original(source, outcome)
            self._follow_renamed(source, outcome)
            self._add(source, outcome)
            if outcome.original is not None:
                self._originals[outcome.source] = outcome.original
        except FilestoreError as error:
            outcome.status, outcome.error = "failed", error
        except OSError as error:
            outcome.status, outcome.error = "failed", unreadable(source.path, error)
        return outcome

    def _check(self, source: SourcePath) -> None:
        check_name(source.resource)
        path, root = os.path.realpath(source.path), os.path.realpath(self._places.root)
        for derived in (self._places.chunked, self._places.sidecar, self._places.undo):
            if inside(path, os.path.realpath(derived)):
                raise SourceError(
                    f"{source.path} lies in the store's own {os.path.basename(derived)}/",
                    remedy="add originals; chunk files are followed by 'filestore sync'",
                )
        if path == root:
            raise SourceError(f"{source.path} is the store itself", remedy="add what is around it")

    def _reference(self, source: SourcePath) -> str:
        """The source as recorded: in place inside the work tree, else its copy under `source/`."""
        path = os.path.realpath(source.path)
        if inside(path, os.path.realpath(self._tree)):
            reference = os.path.relpath(path, os.path.realpath(self._places.root))
        else:
            # A copy keeps the suffix, which tells how it is to be read.
            suffix = "" if os.path.isdir(path) else os.path.splitext(path)[1]
            named_alike = source.resource.lower().endswith(suffix.lower())
            reference = f"source/{source.resource}{'' if named_alike else suffix}"
        try:
            reference.encode("utf-8")
        except UnicodeEncodeError as error:
            raise SourceError(
                "the name of the source is not valid UTF-8", remedy="rename it, then add it"
            ) from error
        return reference

    def _check_original(self, source: SourcePath, outcome: Outcome) -> None:
        """Two documents from elsewhere with one name are two sources."""
        path = os.path.realpath(source.path)
        if inside(path, os.path.realpath(self._tree)):
            return
        known = self._originals.get(outcome.source, path)
        if known != path:
            raise RefusedError(
                f"the name {source.resource!r} is in use for {known}",
                remedy=f"choose another with --into, or remove it: filestore rm {source.resource}",
            )
        outcome.original = path

    def _follow_renamed(self, source: SourcePath, outcome: Outcome) -> None:
        """A source whose resource folder was renamed still belongs to that folder."""
        owner = self._owners.get(outcome.source)
        if source.named or owner is None or owner == source.resource:
            return
        if self._settings.layout == "tree":
            there = self._read_record(f"{owner}/{RECORD_NAME}")
            if there is not None and there.source == outcome.source:
                outcome.resource = owner

    def _add(self, source: SourcePath, outcome: Outcome) -> None:
        prefix, record_path = self._names(outcome)
        before = self._read_record(record_path)
        if before is not None and before.source != outcome.source:
            raise RefusedError(
                f"the name {source.resource!r} is in use for {before.source}",
                remedy=f"choose another with --into, or remove it: filestore rm {source.resource}",
            )
        if before is None:
            self._check_collision(outcome.resource)
        fresh = self._read(source, outcome)
        if before is not None and self._is_unchanged(before, fresh):
            outcome.status = "unchanged"
            outcome.chunks = len(
                self._existing(prefix, {known.source for known in before.documents})
            )
            return
        self._write(source, outcome, before, fresh, prefix, record_path)
        outcome.status = "added" if before is None else "updated"
        self._names_in_use()[folded_path(outcome.resource)] = outcome.resource

    def _names(self, outcome: Outcome) -> tuple[str, str]:
        """Folder of the resource below `chunked/` ("" in the flat layout), and its record."""
        if self._settings.layout == "tree":
            return outcome.resource, f"{outcome.resource}/{RECORD_NAME}"
        from filestore.chunkfile import record_stem

        return "", f"{record_stem(outcome.source)}.json"

    def _read_record(self, path: str) -> Record | None:
        for look in look_at_existing(self._places, [path], self._settings):
            if look.record is None:
                raise SourceError(
                    f"chunked/{path} is not a usable record: {look.detail}",
                    remedy="restore it from git, or remove it and add the source again",
                )
            return look.record
        return None

    def _check_collision(self, resource: str) -> None:
        """Refuse a name that some file systems could not tell from one that is there."""
        other = self._names_in_use().get(folded_path(resource))
        if other is not None and (other != resource or self._settings.layout == "flat"):
            kind = "is in use" if other == resource else "differs only by case or composition from"
            raise RefusedError(
                f"the name {resource!r} {kind} chunked/{other}",
                remedy="choose another name with --into",
            )

    def _names_in_use(self) -> dict[str, str]:
        """Names of resources by what a file system that ignores case makes of them."""
        if self._in_use is None:
            try:
                names = os.listdir(self._places.chunked)
            except FileNotFoundError:
                names = []
            if self._settings.layout == "flat":
                records_there = [name for name in names if name.endswith(".json")]
                looks = look_at_existing(self._places, records_there, self._settings)
                names = [look.record.resource or "" for look in looks if look.record]
            self._in_use = {folded_path(name): name for name in names}
        return self._in_use

    def _read(self, source: SourcePath, outcome: Outcome) -> dict[str, bytes]:
        """The bytes of every document by its reference; what was left out or failed is noted."""
        reference = outcome.source
        if not os.path.isdir(source.path):
            return {reference: read_source(source.path)}
        listing = documents(source.path, leave_out=self._is_own)
        found: dict[str, bytes] = {}
        outcome.skipped = list(listing.skipped)
        for path in listing.paths:
            try:
                found[f"{reference}/{path}"] = read_source(os.path.join(source.path, path))
            except FilestoreError as error:
                outcome.failures.append((path, error))
            except OSError as error:
                outcome.failures.append((path, unreadable(path, error)))
        if not found:
            raise SourceError(
                f"no readable document in {source.path}",
                remedy="add text, Markdown or HTML",
                detail="; ".join(f"{path}: {reason}" for path, reason in outcome.skipped[:5]),
            )
        return found

    def _is_own(self, path: str) -> bool:
        """Whether a path met while walking a source is the store, or what it made."""
        places = self._places
        made = (places.root, places.chunked, places.sidecar, places.undo)
        return os.path.realpath(path) in {os.path.realpath(folder) for folder in made}

    def _is_unchanged(self, before: Record, fresh: Mapping[str, bytes]) -> bool:
        known = {document.source: document for document in before.documents}
        return (
            before.chunker == self._chunker
            and set(known) == set(fresh)
            and all(self._same(known[path], path, data) for path, data in fresh.items())
        )

    def _same(self, known: SourceDocument, path: str, data: bytes) -> bool:
        extractor = extract.for_name(path)
        label = extractor.label if extractor else ""
        return known.hash == source_hash(data) and known.extractor == label

    def _existing(self, prefix: str, sources: Container[str]) -> list[Existing]:
        """The readable chunk files of a resource; in the flat layout those of its documents."""
        folder = os.path.join(self._places.chunked, prefix)
        if not os.path.isdir(folder):
            return []
        names = sorted(_chunk_files(folder))
        paths = [f"{prefix}/{name}" if prefix else name for name in names]
        start = len(prefix) + 1 if prefix else 0
        return [
            Existing(name=look.path[start:], data=look.data, chunk=look.chunk)
            for look in look_at_existing(self._places, paths, self._settings)
            if look.chunk is not None and (prefix or look.chunk.source in sources)
        ]

    def _plan(
        self,
        before: Record | None,
        outcome: Outcome,
        documents: Sequence[NewDocument],
        prefix: str,
        *,
        name_sources: bool,
    ) -> tuple[Regeneration, dict[str, bytes]]:
        """What is to be written, and the bytes of the chunk files that are there."""
        sources = {document.source for document in before.documents} if before else set()
        existing = self._existing(prefix, sources) if before or prefix else []

        def planned(there: Sequence[Existing], taken: Iterable[str]) -> Regeneration:
            return regenerate(
                there,
                documents,
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
        origins = {origin_hash(c.body) for document in documents for c in document.chunks or ()}
        if any(file.chunk.origin in origins for file in ours.values()):
            return planned(existing, self._taken(prefix)), held
        raise RefusedError(
            f"the name {outcome.resource!r} is in use: chunked/{prefix} has chunks of other text",
            remedy=f"choose another with --into, or remove it: filestore rm {outcome.resource}",
        )

    def _held(self, names: Iterable[str]) -> dict[str, bytes]:
        """Those of some files of the flat layout that are there."""
        looks = look_at_existing(self._places, sorted(names), self._settings)
        return {look.path: look.data for look in looks}

    def _write(
        self,
        source: SourcePath,
        outcome: Outcome,
        before: Record | None,
        fresh: dict[str, bytes],
        prefix: str,
        record_path: str,
    ) -> None:
        documents, described = self._extract(before, fresh, outcome)
        folder = os.path.isdir(source.path)
        done, held = self._plan(before, outcome, documents, prefix, name_sources=folder)
        record = Record(
            resource=None if prefix else outcome.resource,
            source=outcome.source,
            kind="folder" if folder else "file",
            chunker=self._chunker,
            documents=tuple(described),
        )
        self._copy(source, outcome, fresh)
        self._apply(outcome, done, held, prefix)
        record_data = records.serialize(record)
        with FolderOfStore(self._places.chunked, prefix) as handle:
            fileio.write_at(handle, record_path.rpartition("/")[2], record_data)
            os.fsync(handle)
        outcome.written.append(record_path)
        outcome.chunks = done.chunks

    def _taken(self, prefix: str) -> list[str]:
        try:
            return os.listdir(os.path.join(self._places.chunked, prefix))
        except FileNotFoundError:
            return []

    def _extract(
        self, before: Record | None, fresh: dict[str, bytes], outcome: Outcome
    ) -> tuple[list[NewDocument], list[SourceDocument]]:
        """Extract what changed; a document that fails keeps the chunks it had, if any."""
        known = {document.source: document for document in before.documents} if before else {}
        rechunk = before is None or before.chunker != self._chunker
        documents: list[NewDocument] = []
        described: list[SourceDocument] = []
        failures: list[FilestoreError] = []
        for path, data in fresh.items():
            had = known.get(path)
            if had is not None and not rechunk and self._same(had, path, data):
                documents.append(NewDocument(source=path, chunks=None))
                described.append(had)
                continue
            try:
                extracted = extract_bytes(data, path)
            except FilestoreError as error:
                failures.append(error)
                outcome.failures.append((path, error))
                if had is not None:
                    documents.append(NewDocument(source=path, chunks=None))
                    described.append(had)
                continue
            chunks = self._chunks(extracted)
            documents.append(NewDocument(source=path, chunks=chunks))
            described.append(_described(path, data, extracted))
        for path, _ in outcome.failures:
            had = known.get(f"{outcome.source}/{path}")
            if had is not None and had not in described:
                documents.append(NewDocument(source=had.source, chunks=None))
                described.append(had)
        if not described or (failures and len(fresh) == 1):
            outcome.failures = []
            raise failures[0]
        return documents, described

    def _chunks(self, document: Document) -> tuple[NewChunk, ...]:
        pieces = chunking.split(
            document.text,
            syntax=document.syntax,
            budget=self._settings.budget,
            count_tokens=self._count,
        )
        return tuple(
            NewChunk(body=document.text[piece.start : piece.end], headings=piece.headings)
            for piece in pieces
        )

    def _copy(self, source: SourcePath, outcome: Outcome, fresh: Mapping[str, bytes]) -> None:
        if not outcome.source.startswith("source/") or inside(
            os.path.realpath(source.path), os.path.realpath(self._tree)
        ):
            return
        for reference, data in fresh.items():
            parent, _, name = reference.rpartition("/")
            with FolderOfStore(self._places.root, parent) as handle:
                fileio.write_at(handle, name, data)
                os.fsync(handle)

    def _apply(
        self, outcome: Outcome, done: Regeneration, before: Mapping[str, bytes], prefix: str
    ) -> None:
        """Keep the originals, write all files whole or none, then remove what is no longer made."""

        def path_of(name: str) -> str:
            return f"{prefix}/{name}" if prefix else name

        writes = {name: data for name, data in done.writes.items() if before.get(name) != data}
        changes: dict[str, tuple[bytes | None, bytes | None]] = {
            path_of(name): (before.get(name), data) for name, data in writes.items()
        }
        changes |= {path_of(name): (before[name], None) for name in done.deletions}
        outcome.undo = keep_originals(self._places.undo, f"add {outcome.resource}", changes)
        with FolderOfStore(self._places.chunked, prefix) as handle:
            fileio.write_all_at(handle, writes)
            for name in done.deletions:
                os.unlink(name, dir_fd=handle)
            os.fsync(handle)
        outcome.written = [path_of(name) for name in done.writes]
        outcome.removed = [path_of(name) for name in done.deletions]
        outcome.kept = {path_of(name): reason for name, reason in done.kept.items()}
        outcome.generated = done.generated


class FolderOfStore:
    """A folder below a root, made where missing and taken away again if it stays empty."""

    def __init__(self, root: str, path: str) -> None:
        self._root = root
        self._path = path

    def __enter__(self) -> int:
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._handle = fileio.make_folders(root, self._path)
        finally:
            os.close(root)
        return self._handle

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._handle)
        if kind is not None and self._path:
            fileio.remove_empty_folders(self._root, self._path)


def _chunk_files(folder: str) -> Iterator[str]:
    """Markdown files below a folder, at any depth, relative to it."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(".md") and not name.startswith("."):
                yield os.path.relpath(os.path.join(path, name), folder)


def _described(path: str, data: bytes, document: Document) -> SourceDocument:
    return SourceDocument(
        source=path,
        hash=source_hash(data),
        extractor=document.extractor,
        metadata=document.metadata,
    )


def look_at_existing(places: Places, paths: Sequence[str], settings: Settings) -> list[Observation]:
    """Observations of the files that are there.

    Raises:
        OSError: One is there and cannot be read.
    """
    if not os.path.isdir(places.chunked):
        return []
    found = []
    for look in look_at(places, paths, settings.layout):
        if isinstance(look, Observation):
            found.append(look)
        elif not isinstance(look[1], FileNotFoundError):
            raise look[1]
    return found


def _count_words(text: str) -> int:
    """A bound for stores whose model is not here: no model has more tokens than characters."""
    return (len(text) + 2) // 3
