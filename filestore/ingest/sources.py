"""Sources: what a person names to be added, its bytes, and what became of it since.

Reads originals, catalog, tree and git; decides nothing. One rule: what cannot be used is a
`SourceError` that says why, and a text counts as the one a file was made from only if its hash is
the file's origin.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.observation import Observation
from filestore.config.layout import MAX_SOURCE_BYTES, RECORD_NAME
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.hashing import content_hash, origin_hash, source_hash
from filestore.core.paths import CHUNKS, TOP, ChunkPath, StorePath, inside
from filestore.core.safe_text import brief
from filestore.core.schema import JsonObject
from filestore.extract.folder import children
from filestore.fs import disk
from filestore.fs.path_names import on_disk
from filestore.git import repository
from filestore.history.write import chunk_files, is_gone, look_at_existing
from filestore.ingest.regenerate import Existing, Lost, OpenConflict
from filestore.verify.names import why_impossible, why_no_name, why_unportable

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot

_ANOTHER_NAME: Final = "choose a name with --into"


class SourceError(FilestoreError):
    """A source cannot be read or used."""


class SourcePath(Struct, frozen=True, kw_only=True):
    """A source as the user named it, and what it is to be called."""

    path: str
    """Absolute."""
    resource: str
    named: bool = False
    """Whether the user chose the name."""
    note: str | None = None
    """Why it is called otherwise than its file, if it is."""
    implied: bool = False
    """Whether it was found in a folder, not named: the store itself is then passed over."""
    found_in: str | None = None
    """The folder, absolute, that was named in its stead: its ignore rules hold for it too."""
    typed: str = ""
    """As the user wrote it, or with its folder's path in front; "" where a record names it."""
    recorded: str | None = None
    """Its reference where a record names it; None for a source that a person names."""
    is_copied: bool = True
    """Whether the store keeps a copy if it lies outside the work tree."""
    was: str | None = None
    """Its reference in the record, where it was renamed since."""
    renames: Mapping[str, str] = {}
    """Documents that were edited while they were renamed, as recorded, to what they are called."""
    gone: Literal["drop", "keep", "all"] = "drop"
    """What becomes of documents that are gone: their chunks go as well, or stay; ``all`` where
    nothing of the source is there, and all of its chunks are to go."""
    drops: frozenset[str] | None = None
    """The only documents whose chunks may go, as recorded; None for all that are not found."""

    @property
    def may_drop(self) -> frozenset[str]:
        """What of `drops` is to go."""
        return self.drops or frozenset() if self.gone == "drop" else frozenset()


class Sources(Struct, frozen=True, kw_only=True):
    """The sources of one path, and what of a folder is none."""

    paths: tuple[SourcePath, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    """Path and reason of what was left out although it might be wanted; the path begins with that
    of the folder, as it was given."""
    ignored: int = 0
    """How many files and folders ignore rules left out."""
    other: int = 0
    """How many files were passed over for their format."""

    def __len__(self) -> int:
        """How many sources there are."""
        return len(self.paths)

    def __iter__(self) -> Iterator[SourcePath]:
        """Its sources."""
        return iter(self.paths)


class Given(Struct, frozen=True, kw_only=True):
    """The sources of the paths given to `add`."""

    folders: tuple[tuple[str, Sources], ...]
    """Each path that can be used, as it was given."""
    unusable: tuple[tuple[str, FilestoreError], ...]

    def outside(self, root: str, *, copy: bool = True) -> list[SourcePath]:
        """The sources, without the store itself where it was found in a folder.

        Args:
            root: Of the store.
            copy: Whether those outside the work tree are copied.
        """
        store = os.path.realpath(root)
        return [
            replace(source, is_copied=copy)
            for _, found in self.folders
            for source in found
            if not (source.implied and os.path.realpath(source.path) == store)
        ]


def given(paths: Sequence[str], *, into: str | None, each: bool, patterns: Sequence[str]) -> Given:
    """The sources of several paths; see `sources_of`.

    Raises:
        UsageError: One name is given to several resources.
    """
    if into is not None and (len(paths) > 1 or each):
        raise UsageError("--into names one document: add one path at a time with --into")
    folders: list[tuple[str, Sources]] = []
    unusable: list[tuple[str, FilestoreError]] = []
    for path in paths:
        try:
            folders.append((path, sources_of(path, into=into, each=each, patterns=patterns)))
        except FilestoreError as error:
            unusable.append((path, error))
    return Given(folders=tuple(folders), unusable=tuple(unusable))


def sources_of(path: str, *, into: str | None, each: bool, patterns: Sequence[str] = ()) -> Sources:
    """The sources of one path given to `add`: itself, or with `each` every child of the folder.

    Args:
        path: As the user gave it.
        into: The name that the user chose.
        each: Whether every child of the folder is a source.
        patterns: Ignore rules of the store, in addition to those in the folder.

    Raises:
        SourceError: It does not exist or cannot be read.
        IgnoreRulesError: Ignore rules in or around the folder cannot be followed.
    """
    if not path:
        raise UsageError("an empty path was given: name a file or a folder")
    place = on_disk(absolute(path))
    if not os.path.lexists(place):
        raise SourceError(f"no such file or folder: {path}; check the path")
    if not each:
        name = into if into is not None else os.path.basename(place)
        source = SourcePath(path=place, resource=name, named=into is not None, typed=path)
        return Sources(paths=(source,))
    if not os.path.isdir(place):
        raise SourceError(f"{path} is not a folder: leave --each out for a file")
    try:
        listing = children(place, leave_out=lambda _: False, patterns=patterns)
    except OSError as error:
        raise unreadable(path, error) from error
    found = (
        SourcePath(
            path=os.path.join(place, name),
            resource=name,
            implied=True,
            found_in=place,
            typed=os.path.join(path, name),
        )
        for name in listing.paths
    )
    return Sources(
        paths=tuple(found),
        skipped=tuple((os.path.join(path, name), reason) for name, reason in listing.skipped),
        ignored=listing.ignored,
        other=listing.other,
    )


def check_name(name: str, *, chosen_in: str = "", remedy: str = _ANOTHER_NAME) -> None:
    """Refuse a name that cannot be a folder of the store.

    Args:
        name: Of a resource, or of a folder that a program names.
        chosen_in: Where it is to lie, of one that somebody thought of: unless it is there already
            every system has to hold it. "" for the name of a file that is added, as that is: its
            path is before the message.
        remedy: What helps.

    Raises:
        SourceError: It cannot.
    """
    reason = why_impossible(name)
    if not reason and chosen_in and not os.path.lexists(os.path.join(chosen_in, name)):
        reason = why_no_name(name) or why_unportable(name)
    if reason:
        which = brief(name) if chosen_in else "its name"
        raise SourceError(f"{which} cannot name a document: {reason}", remedy=remedy)


def read_source(path: str) -> bytes:
    """The bytes of an original.

    Raises:
        SourceError: It is no regular file, or too large.
        OSError: It cannot be read.
    """
    try:
        return disk.read_path(path, limit=MAX_SOURCE_BYTES, follow_links=True)
    except disk.NotAFileError as error:
        raise SourceError(f"{error.message}; add a file or a folder") from error
    except disk.FileTooLargeError as error:
        raise SourceError(f"{error.message}; cut it into smaller files") from error


class Original(Struct, frozen=True, kw_only=True):
    """One document as it was read; a large folder is not held in memory but read again."""

    path: str
    """Absolute."""
    hash: str
    """As records have it."""
    held: bytes | None
    """Its bytes, as long as there is room."""
    size_bytes: int

    def data(self) -> bytes:
        """Its bytes.

        Raises:
            SourceError: It was replaced meanwhile.
            OSError: It cannot be read.
        """
        if self.held is not None:
            return self.held
        data = read_source(self.path)
        if source_hash(data) != self.hash:
            raise SourceError(f"{self.path} changed while it was added: add it again")
        return data


def read_original(path: str, *, room: int) -> Original:
    """Read an original, and hold it if it has at most `room` bytes.

    Raises:
        SourceError: It is no regular file, or too large.
        OSError: It cannot be read.
    """
    data = read_source(path)
    held = data if len(data) <= room else None
    return Original(path=path, hash=source_hash(data), held=held, size_bytes=len(data))


def unreadable(path: str, error: OSError | FilestoreError) -> FilestoreError:
    """The error for an original that cannot be read."""
    if isinstance(error, FilestoreError):
        return error
    return SourceError(
        f"cannot read {path}: {error.strerror or error}; make it readable, then add it again",
        detail=str(error),
    )


class Passed(JsonObject, Struct, frozen=True):
    """A file that was left out."""

    path: str
    """As the folder was given."""
    reason: str
    """Why it was left out."""


class Remark(JsonObject, Struct, frozen=True):
    """What you should know of how a document was read."""

    path: str
    """Its source, as recorded."""
    text: str
    """What is missing or a guess, on one line."""


class Outcome(JsonObject, Struct, kw_only=True):
    """What became of one source."""

    KEYS = (
        "source resource note chunks error remedy merged kept deleted ignored other skipped "
        "remarks copied_bytes"
    )
    SPARSE = "note error remedy merged kept deleted ignored other skipped remarks copied_bytes"

    source: str
    """As recorded: relative to the store root; as given where it never got that far."""
    typed: str = ""
    """As the user wrote it; "" where a record names it."""
    resource: str
    status: str
    """``added``, ``updated``, ``unchanged``, ``failed``, or ``removed``: nothing of it is left."""
    note: str | None = None
    """Why a new document is called otherwise than its source."""
    chunks: int = 0
    """How many it has."""
    error: FilestoreError | None = None
    record_path: ChunkPath = TOP
    written: list[ChunkPath] = field(default_factory=list)
    """What was written, the record included."""
    removed: list[ChunkPath] = field(default_factory=list)
    merged: list[ChunkPath] = field(default_factory=list)
    """Those of the written in which a hand edit and a new source text came together."""
    kept: dict[ChunkPath, OpenConflict] = field(default_factory=dict)
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
    remarks: list[Remark] = field(default_factory=list)
    """What you should know of how documents were read."""

    def as_typed(self, document: str) -> str:
        """One of its documents, by its reference, below the path that the user wrote."""
        below = document.removeprefix(self.source)
        return self.typed + below if self.typed and below != document else document

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
        """Files left out although they may be wanted."""
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
"""How many commits of a file are searched for the text it was made from."""


class Lineage:
    """The chunk files of one store with their past, as the sidecar and git remember it."""

    def __init__(self, snapshot: "StoreSnapshot") -> None:
        self._places = snapshot.places
        self._layout = snapshot.layout
        self._catalog = snapshot.catalog
        self._bodies: dict[str, str | None] = {}

    # Which files belong to a resource

    def files_of(
        self, prefix: ChunkPath, reference: str, is_document: Callable[[str], bool]
    ) -> list[Existing]:
        """The readable chunk files of a resource, also those moved out of its folder too.

        Args:
            prefix: The resource's folder, "" in the flat layout.
            reference: Its source; what names a source outside it belongs to another resource.
            is_document: Whether a source is a document of the resource, for the flat layout.
        """
        folder = os.path.join(self._places.chunked, prefix)
        names = sorted(chunk_files(folder)) if os.path.isdir(folder) else []
        paths = [inside(prefix, name) for name in names]
        if prefix:
            record, followed = inside(prefix, RECORD_NAME), self._moves.get(prefix, ())
            # The folder of the resource, and those it had before it was renamed.
            own = {prefix, *(_top(old) for old, new in followed if new == record)}
            # The files in a resource's folder that are another's, whose folder is still there.
            moves = [(_top(old), new) for old, new in followed if _top(new) == prefix]
            others = {
                folder
                for folder, _ in moves
                if folder not in own
                and os.path.exists(os.path.join(self._places.chunked, folder, RECORD_NAME))
            }
            foreign = {new for folder, new in moves if folder in others}
            paths = [path for path in paths if path not in foreign]
            went = {move for folder in own for move in self._moves.get(folder, ())}
            elsewhere = {
                new
                for old, new in went
                if _top(old) in own and _top(new) != prefix and new.endswith(".md")
            }
            paths += sorted(elsewhere.difference(paths))
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

    @cached_property
    def _unmerged(self) -> set[ChunkPath]:
        return repository.unmerged(self._places.chunked)

    def _existing(self, look: Observation) -> Existing | None:
        """A file as it is; one that cannot be used as it last was, and marked as excluded."""
        if look.path in self._unmerged:
            return self._excluded(look, "conflict-markers")
        if look.chunk is not None:
            return self._as_found(look, look.chunk)
        if look.state == "empty":
            # Somebody took all of its text out, which is an edit like any other.
            return self._as_found(look, chunk_file.parse(look.data))
        return self._excluded(look, look.state)

    def _excluded(self, look: Observation, code: str) -> Existing | None:
        chunk = _parsed(look.data) if look.file_hash else None
        if chunk is None:
            chunk = self._last_indexed(look.path)
        if chunk is None:
            return None
        return self._as_found(look, chunk, excluded=f"it is excluded from search ({code})")

    def _as_found(
        self, look: Observation, chunk: chunk_file.Chunk, *, excluded: str = ""
    ) -> Existing:
        # A name that says where the file is tells more than any that it had before.
        numbered = chunk_file.number_of_name(look.path) is not None
        return Existing(
            path=look.path,
            data=look.data,
            chunk=chunk,
            name="" if numbered else next(iter(self._earlier_names(look.path)), ""),
            excluded=excluded,
        )

    def _earlier_names(self, path: ChunkPath) -> list[ChunkPath]:
        """What a file was called: the names that say where it comes first, as it was made."""
        found = [old for old, new in self._moves.get(_top(path), ()) if new == path]
        return sorted(found, key=lambda old: chunk_file.number_of_name(old) is None)

    def _last_indexed(self, path: ChunkPath) -> chunk_file.Chunk | None:
        row = self._catalog.files([path]).get(path)
        data = self._catalog.content(row.id) if row is not None else None
        return None if data is None else _parsed(data)

    # Which files are gone

    def lost(self, prefix: ChunkPath, record_path: ChunkPath, sources: Sequence[str]) -> list[Lost]:
        """The files of a resource that a person deleted since its record was written.

        The ones that went with the record, as by a change of branch, are none of them.

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
            kept = self._catalog.generated(origin)
            text = None if kept is None else kept.decode(errors="replace")
            if text is None or origin_hash(text) != origin:
                text = next((chunk.body for chunk in self._made_as(file.path, origin)), None)
            self._bodies[origin] = text
        return self._bodies[origin]

    def headings(self, file: Existing) -> tuple[str, ...] | None:
        """The headings that a hand-edited file was made with; None where that is not known."""
        # The oldest one with the generated text is the one without an edit.
        found = [chunk.headings for chunk in self._made_as(file.path, file.chunk.origin or "")]
        return found[-1] if found else None

    def _made_as(self, path: ChunkPath, origin: str) -> Iterator[chunk_file.Chunk]:
        """What a file was while it had its generated text, newest first.

        As it was last indexed, then as in commits.
        """
        commits = (
            data
            for name in (path, *self._earlier_names(path))
            for data in repository.history(self._places.chunked, name, COMMITS)
        )
        for chunk in chain([self._last_indexed(path)], map(_parsed, commits)):
            if chunk is not None and origin_hash(chunk.body) == origin:
                yield chunk

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
