"""What the catalog holds of its files, proved from the catalog alone: no file is parsed again.

One rule: what was derived from a file's bytes is sound if the row that says so has its checksum,
the vectors' keys give the text key of that row, and the last seen bytes give its hash.

``python -m filestore.verify._rows`` does it in a process of its own, during other work.
"""

import contextlib
import gc
import json
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any, Final, Self

from msgspec import Struct

from filestore.catalog import FILE_COLUMNS, Catalog, decode_path, queries
from filestore.chunks.observation import INDEXED, kept_hash
from filestore.core.hashing import content_hash, vector_id
from filestore.core.paths import ChunkPath
from filestore.fs.programs import Child, parent_line
from filestore.sidecar.snapshot import Sample

DAMAGED: Final = "its row in the catalog fails its checksum"

_COLUMNS: Final = tuple(FILE_COLUMNS.replace(",", "").split())
_PATH, _STATE, _FILE_HASH, _TEXT_KEY, _EDITED, _GENERATION = map(
    _COLUMNS.index, ("path", "state", "file_hash", "text_key", "edited", "generation")
)
_MISSING: Final = "its vector ids or its last seen text are missing"

Unsound = list[tuple[ChunkPath, str]]
"""Paths, and what is wrong with their rows."""


class Ids(Struct, frozen=True):
    """Which texts files have, and which keys these have."""

    parts: list[tuple[int, int, int]]
    """File, part and vector id, in this order."""
    keys: dict[int, bytes]
    """Vector id to embedding key."""

    @classmethod
    def of(cls, catalog: Catalog) -> Self:
        """All of a catalog."""
        return cls(queries.part_rows(catalog), dict(catalog.vector_keys(embedded=None)))

    def keys_of_files(self) -> dict[int, Any]:
        """The keys of each file's texts, joined; None where a part is missing."""
        key_of = self.keys.get
        found: dict[int, Any] = {
            file: key_of(vector) for file, part, vector in self.parts if not part
        }
        after: dict[int, int] = {}
        for file, part, vector in self.parts:
            if part:
                after[file] = after.get(file, 0) + 1
                before, key = found.get(file), key_of(vector) if part == after[file] else None
                found[file] = None if before is None or key is None else before + key
        return found


@contextlib.contextmanager
def checked(catalog: Catalog, path: str, sample: Sample, *, apart: bool) -> "Iterator[Judged]":
    """Begin to check all pages, rows and ids.

    Args:
        catalog: Inside a snapshot.
        path: Where it lies.
        sample: The slice of files whose rows are checked.
        apart: Whether a process of its own does it; this one does where that fails.

    Yields:
        What gives the results, each to be asked for once and in this order.
    """
    if not apart:
        yield Judged(catalog, sample, None)
        return
    child = Child(__name__)
    try:
        with contextlib.suppress(OSError):
            wanted = (path, catalog.identity, catalog.generation, sample.number, sample.of)
            child.send(json.dumps(wanted).encode())
        yield Judged(catalog, sample, child)
    finally:
        child.kill()


class Judged:
    """What is wrong with a catalog; only that nothing is does another process tell."""

    def __init__(self, catalog: Catalog, sample: Sample, child: Child | None) -> None:
        self._catalog = catalog
        self._sample = sample
        self._child = child

    @cached_property
    def _ids(self) -> Ids:
        return Ids.of(self._catalog)

    def page_problem(self) -> str:
        """What is wrong with the pages and indexes, or ""; else the rest is not to be asked."""
        return "" if self._is_clean("pages") else self._catalog.page_problem()

    def unsound(self) -> Unsound:
        """Files whose rows do not belong together."""
        return (
            [] if self._is_clean("rows") else list(unsound(self._catalog, self._ids, self._sample))
        )

    def loose_ends(self) -> list[str]:
        """What is wrong with ids."""
        return [] if self._is_clean("ids") else list(loose_ends(self._catalog, self._ids))

    def _is_clean(self, what: str) -> bool:
        if self._child is not None:
            with contextlib.suppress(OSError):
                return self._child.receive() == what.encode()
        return False


def unsound(catalog: Catalog, ids: Ids, sample: Sample) -> Iterator[tuple[ChunkPath, str]]:
    """Files whose rows do not belong together, with the reason.

    Args:
        catalog: Inside a snapshot.
        ids: Its ids.
        sample: The slice of files that are checked.
    """
    keys_of, generation = ids.keys_of_files(), catalog.generation
    for row in queries.file_rows(catalog):
        if not isinstance(row[_PATH], bytes):
            yield ChunkPath(str(row[_PATH])), DAMAGED
            continue
        path = decode_path(row[_PATH])
        if sample.of > 1 and not sample.has_path(path):
            continue
        reason = _problem(row, path, keys_of.get(row[0], b""))
        if not reason and row[_GENERATION] > generation:
            reason = "its row is of a generation that was never committed"
        if reason:
            yield path, reason


def loose_ends(catalog: Catalog, ids: Ids) -> Iterator[str]:
    """Ids that lead nowhere, or to the wrong text."""
    keys = ids.keys
    used = {vector for _, _, vector in ids.parts}
    files = {file for file, _, _ in ids.parts}.difference(catalog.indexed_ids())
    wrong = [
        one for one, key in keys.items() if not isinstance(key, bytes) or vector_id(key) != one
    ]
    yield from _counted(files, "passages belong to no file")
    yield from _counted(used - keys.keys(), "passages have no vector id that is known")
    yield from _counted(keys.keys() - used, "vector ids belong to no passage")
    yield from _counted(wrong, "vector ids are not those of their keys")


def _counted(ids: Collection[int], what: str) -> Iterator[str]:
    if ids:
        yield f"{len(ids):,} {what}, first {min(ids)}"


def _problem(row: tuple[Any, ...], path: str, keys: Any) -> str:
    *_, checksum, data = row
    # As `FileRow.checksum` has it: the identifier and the path lead, generation and place follow.
    values = (row[0], path, *row[2:_EDITED], bool(row[_EDITED]), *row[_EDITED + 1 : len(_COLUMNS)])
    if content_hash(repr(values).encode("utf-8", "surrogatepass")) != checksum:
        return DAMAGED
    if row[_STATE] != INDEXED:
        return ""
    if not isinstance(keys, bytes) or data is None:
        return _MISSING
    if content_hash(keys) != row[_TEXT_KEY]:
        return "its vector ids are not those of its passages"
    try:
        is_last_seen = kept_hash(data) == row[_FILE_HASH]
    except (TypeError, AttributeError):  # whatever a flipped type byte made
        return _MISSING
    return "" if is_last_seen else "its last seen text is not what the file holds"


def main() -> None:
    """Check the catalog of one request, and say for each part whether it is clean."""
    line = parent_line()
    # It ends soon, and makes no garbage that counting references leaves behind.
    gc.disable()
    path, identity, generation, number, of = json.loads(line.receive())
    catalog = Catalog.open(path)
    with catalog.snapshot():
        is_same = (catalog.identity, catalog.generation) == (identity, generation)
        line.send(b"pages" if is_same and not catalog.page_problem() else b"")
        ids = Ids.of(catalog)
        found = unsound(catalog, ids, Sample(number=number, of=of))
        line.send(b"rows" if is_same and next(found, None) is None else b"")
        line.send(b"ids" if is_same and not any(loose_ends(catalog, ids)) else b"")


if __name__ == "__main__":
    main()
