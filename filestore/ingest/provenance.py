"""Where the chunk files of a resource came from, where they went, and what became of a source.

Reads catalog, tree and git; decides nothing. One rule: a text counts as the one a file was made
from only if its hash is the file's origin.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from filestore.catalog import Catalog
from filestore.chunks import chunk_file
from filestore.chunks.layout import Layout
from filestore.chunks.observation import Observation
from filestore.config.layout import RECORD_NAME, Places
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash, origin_hash
from filestore.core.paths import CHUNKS, TOP, ChunkPath, StorePath, inside
from filestore.core.schema import JsonObject
from filestore.git import repository
from filestore.history.write import chunk_files, is_gone, look_at_existing
from filestore.ingest.regenerate import Existing, Kept, Lost


class Passed(JsonObject, Struct, frozen=True):
    """A file that was left out."""

    path: str
    """As the folder was given."""
    reason: str
    """Why it was left out."""


class Outcome(JsonObject, Struct, kw_only=True):
    """What became of one source."""

    KEYS = (
        "source resource note chunks error remedy merged kept deleted ignored other skipped "
        "copied_bytes"
    )
    SPARSE = "note error remedy merged kept deleted ignored other skipped copied_bytes"

    source: str
    """As recorded: relative to the store root; as given where it never got that far."""
    resource: str
    status: str
    """``added``, ``updated``, ``unchanged``, ``failed``, or ``removed``: nothing of it is left."""
    note: str | None = None
    """Why a new resource is called otherwise than its source."""
    chunks: int = 0
    """How many it has."""
    error: FilestoreError | None = None
    record_path: ChunkPath = TOP
    written: list[ChunkPath] = field(default_factory=list)
    """What was written, the record included."""
    removed: list[ChunkPath] = field(default_factory=list)
    merged: list[ChunkPath] = field(default_factory=list)
    """Those of the written in which a hand edit and a new source text came together."""
    kept: dict[ChunkPath, Kept] = field(default_factory=dict)
    """Hand-edited files in which they could not: they stay until a person chooses."""
    looked_at: list[ChunkPath] = field(default_factory=list)
    """The resource's chunk files that were there before; what of them is not kept is settled."""
    deleted: dict[ChunkPath, Lost] = field(default_factory=dict)
    """Files that a person deleted and that are not made again, as their text did not change."""
    documents: dict[str, str] = field(default_factory=dict)
    """The hashes of its documents as they are now."""
    generated: dict[str, str] = field(default_factory=dict)
    """Origin to text of what was generated for hand-edited files."""
    ignored: int = 0
    """How many files and folders of a folder ignore rules left out; a folder counts as one."""
    other: int = 0
    """How many files of a folder were passed over for their format."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Documents of a folder that were left out, with the reason."""

    @property
    def json_resource(self) -> str | None:
        """Its resource; None where it never got a name."""
        return self.resource or None

    @property
    def json_error(self) -> str | None:
        """Why it failed."""
        return self.error.message if self.error else None

    @property
    def remedy(self) -> str | None:
        """What to do next."""
        return self.error.remedy if self.error else None

    @property
    def json_merged(self) -> list[StorePath]:
        """Files in which your edit and the new text were merged."""
        return list(map(CHUNKS.store_path, self.merged))

    @property
    def json_kept(self) -> dict[StorePath, str]:
        """Files with overlapping changes, with what overlaps."""
        return {CHUNKS.store_path(path): kept.detail for path, kept in self.kept.items()}

    @property
    def json_deleted(self) -> list[StorePath]:
        """Files you deleted that are not created again."""
        return list(map(CHUNKS.store_path, self.deleted))

    @property
    def json_skipped(self) -> list[Passed]:
        """Files left out although they may be meant."""
        return [Passed(*item) for item in self.skipped]

    failures: list[tuple[str, FilestoreError]] = field(default_factory=list)
    """Documents of a folder that could not be read; what they had before stays."""
    passed_over: set[str] = field(default_factory=set)
    """Documents of a folder at which the store may not look; what they had before stays."""
    original: str | None = None
    """Where the original of a copy lies; remembered in the sidecar, never committed."""
    undo: str | None = None
    copied: tuple[int, ...] = ()
    """The size of each original that was copied from outside the work tree."""

    @property
    def copied_bytes(self) -> int:
        """Size of the originals that were copied from outside the work tree."""
        return sum(self.copied)


COMMITS: Final = 200
"""So many commits of a file are searched for the text it was made from."""


class Lineage:
    """The chunk files of one store with their past, as the sidecar and git remember it."""

    def __init__(self, places: Places, layout: Layout, catalog: Catalog) -> None:
        self._places = places
        self._layout = layout
        self._catalog = catalog
        self._bodies: dict[str, str | None] = {}

    # Which files belong to a resource

    def files_of(
        self, prefix: ChunkPath, reference: str, is_document: Callable[[str], bool]
    ) -> list[Existing]:
        """The readable chunk files of a resource, those that were moved out of its folder too.

        Args:
            prefix: The resource's folder, "" in the flat layout.
            reference: Its source; what names a source outside it belongs to another resource.
            is_document: Whether a source is a document of the resource, for the flat layout.
        """
        folder = os.path.join(self._places.chunked, prefix)
        names = sorted(chunk_files(folder)) if os.path.isdir(folder) else []
        paths = [inside(prefix, name) for name in names]
        if prefix:
            # The files in a resource's folder that are another's, whose folder is still there.
            own = self._folders(prefix)
            moves = [
                (_top(old), new) for old, new in self._moves.get(prefix, ()) if _top(new) == prefix
            ]
            others = {
                folder
                for folder, _ in moves
                if folder not in own
                and os.path.exists(os.path.join(self._places.chunked, folder, RECORD_NAME))
            }
            foreign = {new for folder, new in moves if folder in others}
            paths = [path for path in paths if path not in foreign]
            paths += [path for path in self._went_elsewhere(prefix) if path not in paths]
        found = (self._existing(look) for look in self._looks(paths))
        return [
            file
            for file in found
            if file is not None
            and not chunk_file.is_summary(file.path, file.chunk)
            and _is_of(file.chunk.source, prefix, reference, is_document)
        ]

    def _looks(self, paths: Sequence[ChunkPath]) -> list[Observation]:
        return look_at_existing(self._places, paths, self._layout)

    @cached_property
    def _moves(self) -> dict[ChunkPath, list[tuple[ChunkPath, ChunkPath]]]:
        """Old and new path of every move that was followed, by the first folder of either."""
        found: dict[ChunkPath, list[tuple[ChunkPath, ChunkPath]]] = {}
        for old, new in self._catalog.renamed_from(TOP).items():
            for top in {_top(old), _top(new)}:
                found.setdefault(top, []).append((old, new))
        return found

    def _folders(self, prefix: ChunkPath) -> set[ChunkPath]:
        """The folder of a resource, and those it had before it was renamed."""
        record = inside(prefix, RECORD_NAME)
        moves = self._moves.get(prefix, ())
        return {prefix, *(_top(old) for old, new in moves if new == record)}

    def _went_elsewhere(self, prefix: ChunkPath) -> list[ChunkPath]:
        """Where the files are that were moved out of a resource's folder."""
        moves = {move for folder in self._folders(prefix) for move in self._moves.get(folder, ())}
        folders = self._folders(prefix)
        return sorted(
            new
            for old, new in moves
            if _top(old) in folders and _top(new) != prefix and new.endswith(".md")
        )

    @cached_property
    def _unmerged(self) -> set[ChunkPath]:
        return repository.unmerged(self._places.chunked)

    def _existing(self, look: Observation) -> Existing | None:
        """A file as it is; one that cannot be used as it last was, and marked as excluded."""
        if look.path in self._unmerged:
            return self._withheld(look, "conflict-markers")
        if look.chunk is not None:
            return self._as_found(look, look.chunk)
        if look.state == "empty":
            # Somebody took all of its text out, which is an edit like any other.
            return self._as_found(look, chunk_file.parse(look.data))
        return self._withheld(look, look.state)

    def _withheld(self, look: Observation, code: str) -> Existing | None:
        chunk = _parsed(look.data) if look.file_hash else None
        if chunk is None:
            chunk = self._last_indexed(look.path)
        if chunk is None:
            return None
        return self._as_found(look, chunk, excluded=f"it is excluded from search ({code})")

    def _as_found(
        self, look: Observation, chunk: chunk_file.Chunk, *, excluded: str = ""
    ) -> Existing:
        # A name that says where the file stands tells more than any that it had before.
        numbered = chunk_file.number_of_name(look.path) is not None
        return Existing(
            path=look.path,
            data=look.data,
            chunk=chunk,
            name="" if numbered else next(iter(self._earlier_names(look.path)), ""),
            excluded=excluded,
        )

    def _earlier_names(self, path: ChunkPath) -> list[ChunkPath]:
        """What a file was called: the names that say where it stands first, as it was made."""
        found = [old for old, new in self._moves.get(_top(path), ()) if new == path]
        return sorted(found, key=lambda old: chunk_file.number_of_name(old) is None)

    def _last_indexed(self, path: ChunkPath) -> chunk_file.Chunk | None:
        row = self._catalog.files([path]).get(path)
        data = self._catalog.content(row.id) if row is not None else None
        return None if data is None else _parsed(data)

    # Which files are gone

    def lost(self, prefix: ChunkPath, record_path: ChunkPath, sources: Sequence[str]) -> list[Lost]:
        """The files of a resource that a person deleted since its record was written.

        Those that went with the record, as by a change of branch, are none of them.

        Args:
            prefix: The resource's folder, "" in the flat layout.
            record_path: Of its record, which is there.
            sources: Its documents.
        """
        (record,) = self._looks([record_path])
        known = {one.path: one for one in self._catalog.deleted(content_hash(record.data))}
        found = {path: (one.origin, one.source) for path, one in known.items()}
        if self._catalog.record_data(record_path) == record.data:
            rows = self._catalog.files_of(prefix) if prefix else self._catalog.files_from(sources)
            # A summary is made anew from what is there.
            found |= {
                row.path: (row.origin or "", row.source)
                for row in rows
                if row.origin and row.kind != "summary"
            }
        return [
            Lost(path=path, origin=origin or "", source=source)
            for path, (origin, source) in sorted(found.items())
            if is_gone(self._places, path)
        ]

    # What they were made from

    def body(self, file: Existing) -> str | None:
        """The text that a hand-edited file was made from; None where it is no longer kept."""
        origin = file.chunk.origin or ""
        if origin not in self._bodies:
            self._bodies[origin] = self._find_body(file.path, origin)
        return self._bodies[origin]

    def _find_body(self, path: ChunkPath, origin: str) -> str | None:
        kept = self._catalog.generated(origin)
        with contextlib.suppress(UnicodeDecodeError):
            if kept is not None and origin_hash(kept.decode()) == origin:
                return kept.decode()
        return next((chunk.body for chunk in self._made_as(path, origin)), None)

    def headings(self, file: Existing) -> tuple[str, ...] | None:
        """The headings that a hand-edited file was made with; None where that is not known."""
        # The oldest one with the generated text is the one without an edit.
        found = [chunk.headings for chunk in self._made_as(file.path, file.chunk.origin or "")]
        return found[-1] if found else None

    def _made_as(self, path: ChunkPath, origin: str) -> Iterator[chunk_file.Chunk]:
        """What a file was while it had its generated text, newest first."""
        for chunk in self._earlier(path):
            if chunk is not None and origin_hash(chunk.body) == origin:
                yield chunk

    def _earlier(self, path: ChunkPath) -> Iterator[chunk_file.Chunk | None]:
        """What a file was, newest first: as last indexed, then in commits."""
        yield self._last_indexed(path)
        for name in (path, *self._earlier_names(path)):
            for data in repository.history(self._places.chunked, name, COMMITS):
                yield _parsed(data)

    # What waits for a person

    @cached_property
    def conflicts(self) -> frozenset[ChunkPath]:
        """The files that wait for a person's choice."""
        return frozenset(conflict.path for conflict in self._catalog.conflicts())


def _parsed(data: bytes) -> chunk_file.Chunk | None:
    with contextlib.suppress(FilestoreError):
        return chunk_file.parse(data)
    return None


def _top(path: ChunkPath) -> ChunkPath:
    return ChunkPath(path.partition("/")[0])


def _is_of(
    source: str | None, prefix: ChunkPath, reference: str, is_document: Callable[[str], bool]
) -> bool:
    if not prefix:
        return source is not None and is_document(source)
    return source is None or source == reference or source.startswith(f"{reference}/")
