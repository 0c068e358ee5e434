"""What files of the tree, and sources, hold now, as states that a step can be planned on.

Also what the catalog tells of sources, files made from them, and links that lost their way.

Reads; changes nothing. One rule: a reader opens a file once, while there is room for its bytes.
"""

import os
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Final

from filestore.catalog import Catalog, FileRow
from filestore.chunks import resource_record
from filestore.chunks.observation import Observation
from filestore.chunks.resource_record import Record, SourceDocument
from filestore.core.hashing import source_hash
from filestore.core.paths import ChunkPath, StorePath, Tree
from filestore.fs.disk import stat_values
from filestore.git import attributes
from filestore.ingest.sources import SourceError, read_source
from filestore.repair.plan import ABSENT, State
from filestore.sidecar.originals import Reachable
from filestore.sidecar.snapshot import SeenFiles

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot


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
        seen = self.observed(path)
        return seen.data if seen is not None else b""

    def state(self, path: StorePath) -> State:
        """The state of a file of the tree, or of a source."""
        return self.look(path)[0]

    def look(self, path: StorePath) -> tuple[State, bytes | None]:
        """The state and the bytes of a file of the tree, of one reading; of a source the state."""
        if not self._tree.holds(path):
            return source_state(self._snapshot, path), None
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
    places = snapshot.places
    if reference == attributes.NAME:
        path: str | None = os.path.join(places.root, reference)
    else:
        path = Reachable(places, snapshot.originals).followed(reference)
    if path is None:
        return UNREADABLE
    try:
        return State(stat=stat_values(os.stat(path)), hash=source_hash(read_source(path)))
    except FileNotFoundError:
        return ABSENT
    except SourceError:
        return UNREADABLE if os.path.lexists(path) else ABSENT
    except OSError:
        return UNREADABLE


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
