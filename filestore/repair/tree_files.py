"""What files of the tree, and sources, hold now, and where lost bytes can come from.

Also what the catalog tells of sources, files made from them, and links that lost their way. Reads;
changes nothing. One rule: a reader opens a file once, while there is room for its bytes; lost bytes
are offered only with a hash under which they can be had again, and what was not proved intact is
marked as different.
"""

import os
import sys
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from filestore.catalog import Catalog, FileRow
from filestore.chunks import links, relinking, resource_record
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.chunks.relinking import Relinked
from filestore.chunks.resource_record import Record, RecordInvalidError, SourceDocument
from filestore.config.layout import Places
from filestore.core.diff import unified_bytes
from filestore.core.hashing import content_hash, source_hash
from filestore.core.paths import NOTES, ChunkPath, StorePath, folder_of
from filestore.fs import disk
from filestore.fs.disk import stat_values
from filestore.fs.stats import unpack_stat
from filestore.git import attributes, repository
from filestore.ingest.sources import SourceError, read_source
from filestore.repair.plan import ABSENT, State
from filestore.sidecar.originals import Reachable
from filestore.sidecar.snapshot import SeenFiles

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot
    from filestore.verify.lost_links import LostLinks, LostSources


UNREADABLE: Final = State(stat=(-1, -1, -1, -1, -1))
"""The state of what is there and cannot be read."""


class TreeReader:
    """Reads files of one store's tree for one phase of a repair, each once."""

    def __init__(
        self, snapshot: "StoreSnapshot", *, unmerged: Set[ChunkPath] = frozenset()
    ) -> None:
        """Prepare.

        Args:
            snapshot: The store, perhaps with files that were read already.
            unmerged: Paths that are excluded from search, as git has them as unmerged.
        """
        self._snapshot = snapshot
        self._tree = snapshot.places.tree
        self._unmerged = unmerged
        self._seen = snapshot.seen if snapshot.seen.keeps else SeenFiles()

    def each(self, paths: Sequence[ChunkPath]) -> Iterator[tuple[ChunkPath, Observation | State]]:
        """Each path with what was seen, or the state of what was not."""
        places, layout = self._snapshot.places, self._snapshot.layout
        for seen in self._seen.look_at(places, paths, layout, unmerged=self._unmerged):
            if isinstance(seen, Observation):
                yield seen.path, seen
            else:
                yield seen[0], state_of_error(seen[1])

    def observed(self, path: StorePath) -> Observation | None:
        """A file of the tree; None where it cannot be read."""
        ((_, seen),) = self.each([self._tree.chunk_path(path)])
        return seen if isinstance(seen, Observation) else None

    def held(self, path: StorePath) -> bytes:
        """What a file of the tree holds, nothing where it cannot be read."""
        return self.look(path)[1] or b""

    def state(self, path: StorePath) -> State:
        """The state of a file of the tree, or of a source."""
        return self.look(path)[0]

    def look(self, path: StorePath) -> tuple[State, bytes | None]:
        """The state and the bytes of a file of the tree, of one reading; of a source the state."""
        if not self._tree.holds(path):
            return source_look(self._snapshot, path)
        if not self._tree.is_written:
            # What was seen of a document may be what was read out of it.
            try:
                with disk.folder_at(self._snapshot.places.chunked) as top:
                    data, status = disk.read_below(top, self._tree.chunk_path(path))
            except OSError as error:
                return state_of_error(error), None
            return State(stat=stat_values(status), hash=content_hash(data).hex()), data
        ((_, seen),) = self.each([self._tree.chunk_path(path)])
        return (state_of(seen), seen.data) if isinstance(seen, Observation) else (seen, None)


def state_of(seen: Observation) -> State:
    """What an observation says a step may be planned on."""
    return State(stat=seen.values, hash=seen.file_hash.hex())


def state_of_error(error: OSError) -> State:
    """The state of a file that could not be looked at."""
    return ABSENT if isinstance(error, FileNotFoundError | NotADirectoryError) else UNREADABLE


def source_state(snapshot: "StoreSnapshot", reference: str) -> State:
    """The state of an original; one that the store may not reach is not looked at."""
    return source_look(snapshot, reference)[0]


def source_look(snapshot: "StoreSnapshot", reference: str) -> tuple[State, bytes | None]:
    """The state and the bytes of an original, of one reading."""
    places = snapshot.places
    if reference == attributes.NAME:
        path: str | None = os.path.join(places.root, reference)
    else:
        path = Reachable(places, snapshot.originals).followed(reference)
    if path is None:
        return UNREADABLE, None
    try:
        stat, data = stat_values(os.stat(path)), read_source(path)
        return State(stat=stat, hash=source_hash(data)), data
    except FileNotFoundError:
        return ABSENT, None
    except SourceError:
        return UNREADABLE if os.path.lexists(path) else ABSENT, None
    except OSError:
        return UNREADABLE, None


class Recorded:
    """Records and links of one generation, each asked for once."""

    def __init__(self, snapshot: "StoreSnapshot") -> None:
        self._snapshot = snapshot
        self._tree = snapshot.places.tree
        self._catalog = snapshot.catalog

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

    @cached_property
    def lost_links(self) -> "LostLinks":
        """Of documents in place."""
        from filestore.verify.drift import detect, moved_paths
        from filestore.verify.lost_links import LostLinks

        return LostLinks(self._snapshot, moved_paths(detect(self._snapshot)))

    @cached_property
    def lost_sources(self) -> "LostSources":
        """Of originals around a store of chunk files."""
        from filestore.sidecar.snapshot import VerificationReport
        from filestore.verify import source_drift
        from filestore.verify.lost_links import LostSources, renamed_sources

        report = VerificationReport()
        source_drift.check(self._snapshot, "fast", report)
        return LostSources(self._snapshot, renamed_sources(report.findings))

    def relinked(self, path: StorePath, data: bytes) -> Relinked:
        """A file whose links lead to where their targets went; else byte for byte as it was.

        Raises:
            UnlinkableError: A link cannot be written so.
            UnicodeDecodeError: It is a document that is not UTF-8.
        """
        own = self._tree.chunk_path(path)
        if self._tree.is_written and not self._tree.holds(path):
            return self.lost_sources.relinked(path, data)
        if self._tree.is_written:
            made = links.relinked(data, own, self.moved_targets.get(path, {}))
            return Relinked(data=made, links=int(made != data))
        if not own.casefold().endswith(NOTES):
            return Relinked(data=data)
        return relinking.relinked(data, own, self.lost_links.followed)


Place = Literal["last seen", "git"]

SHOWN_LINES: Final = 40
"""So much of the difference of one file is shown; the rest is counted."""
_COMPARED_BYTES: Final = 256 * 1024
"""Larger files are not compared line by line: that takes more time than it is worth."""
_SECOND_NS: Final = 1_000_000_000


class KeptBytes(Struct, frozen=True, kw_only=True):
    """Bytes of a lost file that somebody kept."""

    place: Place
    data: bytes
    intact: bool
    """Whether they are what the catalog recorded last."""
    blob: str = ""
    """Git's name of the bytes."""

    @property
    def hash(self) -> str:
        """Of the bytes, hexadecimal."""
        return content_hash(self.data).hex()


class _Seen(Struct, frozen=True, kw_only=True):
    """What was last seen of a file, proved by its hash."""

    data: bytes
    mtime_ns: int
    """When it was written; 0 where that is not known."""


def _is_record(data: bytes) -> bool:
    try:
        resource_record.parse(data)
    except RecordInvalidError:
        return False
    return True


class Restoring:
    """Finds the bytes of lost files of one store; keeps what it asked git."""

    def __init__(self, places: Places, catalog: Catalog) -> None:
        self._places = places
        self._catalog = catalog
        self._entries: dict[ChunkPath, dict[str, bytes]] = {}
        self._head_ns: int | None = None

    def newest(self, path: ChunkPath) -> KeptBytes | None:
        """What a file that is gone held last: the newer of what was seen and what git has."""
        row, seen = self._row(path), self._last_seen(path)
        if seen is not None and self._is_newer(path, seen):
            return self._kept("last seen", seen.data, row)
        committed = self._from_git(path, row)
        if committed is None and seen is not None:
            return self._kept("last seen", seen.data, row)
        return committed

    def recorded(self, path: ChunkPath) -> KeptBytes | None:
        """What a file held that rotted: exactly that, or else what git has."""
        row, seen = self._row(path), self._last_seen(path)
        if seen is not None:
            return self._kept("last seen", seen.data, row)
        return self._from_git(path, row)

    def last_good_record(self, path: ChunkPath) -> KeptBytes | None:
        """What a record held before it became unusable: no hash proves a file that is excluded."""
        row = self._row(path)
        held = self._good_bytes(path, row)
        if held is not None and _is_record(held):
            return self._kept("last seen", held, row)
        committed = self._from_git(path, row)
        return committed if committed is not None and _is_record(committed.data) else None

    def fetch(self, path: ChunkPath, digest: str, blob: str) -> bytes | None:
        """The bytes that were offered; None where they cannot be had any more.

        Args:
            path: Below `chunked/`.
            digest: Of the bytes, hexadecimal.
            blob: Git's name of them; "" where they were last seen.
        """
        if blob:
            found = [repository.named_blob(self._places.root, blob)]
        else:
            seen = self._last_seen(path)
            found = [seen.data if seen else None, self._good_bytes(path, self._row(path))]
        for data in found:
            if data is not None and content_hash(data).hex() == digest:
                return data
        return None

    def _from_git(self, path: ChunkPath, row: FileRow | None) -> KeptBytes | None:
        name = self._blob_names.get(path)
        data = repository.named_blob(self._places.root, name) if name else None
        return None if data is None else self._kept("git", data, row, blob=name or "")

    def _kept(self, place: Place, data: bytes, row: FileRow | None, *, blob: str = "") -> KeptBytes:
        known = row is not None and row.state in (INDEXED, RECORD)
        intact = not known or (row is not None and content_hash(data) == row.file_hash)
        return KeptBytes(place=place, data=data, intact=intact, blob=blob)

    def _row(self, path: ChunkPath) -> FileRow | None:
        return self._catalog.files([path]).get(path)

    def _good_bytes(self, path: ChunkPath, row: FileRow | None) -> bytes | None:
        """The last good bytes that the catalog has, whether or not a hash proves them."""
        if row is None:
            return None
        return self._catalog.record_data(path) or self._catalog.content(row.id)

    def _last_seen(self, path: ChunkPath) -> _Seen | None:
        row = self._row(path)
        if row is None:
            gone = self._catalog.forgotten(path)
            if gone is None or content_hash(gone.data) != gone.file_hash:
                return None
            return _Seen(data=gone.data, mtime_ns=gone.mtime_ns)
        data = self._good_bytes(path, row)
        if data is None or content_hash(data) != row.file_hash:
            return None
        folder, name = folder_of(path), path.rpartition("/")[2]
        if folder not in self._entries:
            packed = self._catalog.folders().get(folder)
            self._entries[folder] = packed.entries() if packed else {}
        entry = self._entries[folder].get(name)
        return _Seen(data=data, mtime_ns=unpack_stat(entry)[1] if entry else 0)

    @cached_property
    def _blob_names(self) -> dict[ChunkPath, str]:
        """What HEAD has of each file, asked once for all: git takes long for each question."""
        named = repository.blob_names(self._places.root)
        return {
            self._places.tree.chunk_path(path): name
            for path, name in named.items()
            if self._places.tree.holds(path)
        }

    def _is_newer(self, path: ChunkPath, seen: _Seen) -> bool:
        """Whether what was seen was written after git's newest commit of the file."""
        name = self._blob_names.get(path)
        if name is None or seen.mtime_ns == 0:
            return True
        if self._head_ns is None:
            # Nothing that git has of any file is newer than its newest commit.
            self._head_ns = (repository.head_time(self._places.root) or 0) * _SECOND_NS
        if seen.mtime_ns >= self._head_ns:
            return True
        if repository.blob_namer(name)(seen.data) == name:
            return True
        committed = repository.last_commit(self._places.root, self._places.tree.store_path(path))
        return committed is None or seen.mtime_ns >= committed[0] * _SECOND_NS


def difference(path: str, before: bytes, after: bytes, most: int | None = SHOWN_LINES) -> str:
    """How a file changes, as a unified diff, cut where it is long; pure.

    Args:
        path: Its name in the head of the diff.
        before: What it holds now.
        after: What it is to hold.
        most: The most lines that are shown; None for every one.
    """
    if len(before) + len(after) > _COMPARED_BYTES and most is not None:
        return f"{len(before):,} bytes become {len(after):,}"
    names = f"now/{path}", f"then/{path}"
    text = unified_bytes(before, after, names=names, most_bytes=sys.maxsize)
    lines = text.split("\n")
    if most is not None and len(lines) > most:
        return "\n".join([*lines[:most], f"… and {len(lines) - most:,} more lines"])
    return text
