"""What the catalog holds of its files, proved from the catalog alone: no file is parsed again.

One rule: what was derived from a file's bytes is sound if the row that says so has its checksum,
the vectors' keys give the text key of that row, and the last seen bytes give its hash.

``python -m filestore.catalog_rows`` does it in a process of its own, beside other work.
"""

import contextlib
import gc
import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from filestore.catalog import FILE_COLUMNS, Catalog, decode_path
from filestore.children import Child, own_streams, read_message, write_message
from filestore.hashing import content_hash, vector_id
from filestore.observation import INDEXED
from filestore.subject import Sample

DAMAGED: Final = "its row in the catalog fails its checksum"

_COLUMNS: Final = tuple(FILE_COLUMNS.replace(",", "").split())
_EDITED: Final = _COLUMNS.index("edited")
_FILES: Final = (
    f"SELECT {FILE_COLUMNS}, checksum, data FROM files"
    " LEFT JOIN contents ON contents.file = files.id ORDER BY id"
)
_PARTS: Final = "SELECT file, part, vector FROM parts ORDER BY file, part"
_LAST: Final = (2**63, 0, 0)
"""Stands behind the last text: no file has this id."""


Unsound = list[tuple[str, str]]
"""Paths below `chunked/`, and what is wrong with their rows."""


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

    def page_problem(self) -> str:
        """What is wrong with the pages and indexes, or ""; else the rest is not to be asked."""
        return "" if self._is_clean("pages") else self._catalog.page_problem()

    def unsound(self) -> Unsound:
        """Files whose rows do not belong together."""
        return [] if self._is_clean("rows") else list(unsound(self._catalog, self._sample))

    def loose_ends(self) -> list[str]:
        """What is wrong with ids."""
        return [] if self._is_clean("ids") else list(loose_ends(self._catalog))

    def _is_clean(self, what: str) -> bool:
        if self._child is not None:
            with contextlib.suppress(OSError):
                return self._child.receive() == what.encode()
        return False


def unsound(catalog: Catalog, sample: Sample) -> Iterator[tuple[str, str]]:
    """Files whose rows do not belong together, with the reason.

    Args:
        catalog: Inside a snapshot.
        sample: The slice of files that are checked.
    """
    key_of = dict(catalog.connection.execute("SELECT id, key FROM vectors")).get
    # Both in the order of files: one walk through each.
    parts = catalog.connection.execute(_PARTS)
    part = next(parts, _LAST)
    for *row, checksum, data in catalog.connection.execute(_FILES):
        identifier = row[0]
        while part[0] < identifier:
            part = next(parts, _LAST)
        keys: list[Any] = []
        while part[0] == identifier:
            keys.append(key_of(part[2]) if part[1] == len(keys) else None)
            part = next(parts, _LAST)
        if not isinstance(row[1], bytes):
            yield str(row[1]), DAMAGED
            continue
        path = row[1] = decode_path(row[1])
        if sample.has_path(path) and (reason := _problem(row, checksum, keys, data)):
            yield path, reason


def loose_ends(catalog: Catalog) -> Iterator[str]:
    """Ids that lead nowhere, or to the wrong text."""
    connection = catalog.connection
    files = {one for (one,) in connection.execute("SELECT id FROM files WHERE state = ''")}
    parts = connection.execute("SELECT file, vector FROM parts").fetchall()
    keys = connection.execute("SELECT id, key FROM vectors").fetchall()
    vectors = {one for one, _ in keys}
    used = {one for _, one in parts}
    wrong = [one for one, key in keys if not isinstance(key, bytes) or vector_id(key) != one]
    yield from _counted({one for one, _ in parts} - files, "texts belong to no file")
    yield from _counted(used - vectors, "texts have no vector id that is known")
    yield from _counted(vectors - used, "vector ids belong to no text")
    yield from _counted(wrong, "vector ids are not those of their keys")


def _counted(ids: Collection[int], what: str) -> Iterator[str]:
    if ids:
        yield f"{len(ids):,} {what}, first {min(ids)}"


def _problem(row: list[Any], checksum: bytes, keys: Sequence[Any], data: Any) -> str:
    _, _, state, _, file_hash, text_key, *_ = row
    row[_EDITED] = bool(row[_EDITED])
    # As `FileRow.checksum` has it.
    if content_hash(repr(tuple(row)).encode("utf-8", "surrogatepass")) != checksum:
        return DAMAGED
    if state != INDEXED:
        return ""
    try:
        if content_hash(b"".join(keys)) != text_key:
            return "its vector ids are not those of its texts"
        if content_hash(data) != file_hash:
            return "its last seen text is not what the file holds"
    except TypeError:  # None where a row is missing, and whatever a flipped type byte made
        return "its vector ids or its last seen text are missing"
    return ""


def main() -> None:
    """Check the catalog of one request, and say for each part whether it is clean."""
    requests, answers = own_streams()
    # It ends soon, and makes no garbage that counting references leaves behind.
    gc.disable()
    path, identity, generation, number, of = json.loads(read_message(requests) or b"")
    catalog = Catalog.open(path)
    with catalog.snapshot():
        is_same = (catalog.identity, catalog.generation) == (identity, generation)
        found = unsound(catalog, Sample(number=number, of=of))
        write_message(answers, b"pages" if is_same and not catalog.page_problem() else b"")
        write_message(answers, b"rows" if is_same and next(found, None) is None else b"")
        write_message(answers, b"ids" if is_same and not any(loose_ends(catalog)) else b"")


if __name__ == "__main__":
    main()
