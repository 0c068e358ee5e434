"""What the catalog holds of its files, proved from the catalog alone: no file is parsed again.

One rule: what was derived from a file's bytes is sound if the row that says so has its checksum,
the vectors' keys give the text key of that row, and the last seen bytes give its hash.

``python -m filestore.catalog_rows`` does it in a process of its own, beside other work.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from filestore.catalog import FILE_COLUMNS, Catalog, decode_path
from filestore.children import Child, own_streams, read_message, write_message
from filestore.hashing import content_hash
from filestore.observation import INDEXED
from filestore.subject import Sample

DAMAGED: Final = "its row in the catalog fails its checksum"

_COLUMNS: Final = tuple(FILE_COLUMNS.replace(",", "").split())
_EDITED: Final = _COLUMNS.index("edited")
_FILES: Final = (
    f"SELECT {FILE_COLUMNS}, checksum, data FROM files"
    " LEFT JOIN contents ON contents.file = files.id ORDER BY id"
)
_PARTS: Final = (
    "SELECT file, part, key FROM parts LEFT JOIN vectors ON vectors.id = parts.vector"
    " ORDER BY file, part"
)
_CLEAN: Final = b"clean"
_LAST: Final = (2**63, 0, b"")
"""Stands behind the last text: no file has this id."""


Unsound = list[tuple[str, str]]
"""Paths below `chunked/`, and what is wrong with their rows."""


@contextlib.contextmanager
def checked(
    catalog: Catalog, path: str, sample: Sample, *, apart: bool
) -> Iterator[Callable[[], Unsound]]:
    """Begin to check all rows.

    Args:
        catalog: Inside a snapshot.
        path: Where it lies.
        sample: The slice of files that are checked.
        apart: Whether a process of its own does it; this one does where that fails.

    Yields:
        What gives the files whose rows do not belong together.
    """
    if not apart:
        yield lambda: list(unsound(catalog, sample))
        return
    child = Child(__name__)
    try:
        with contextlib.suppress(OSError):
            wanted = (path, catalog.identity, catalog.generation, sample.number, sample.of)
            child.send(json.dumps(wanted).encode())
        # Only that there is nothing is taken on its word.
        yield lambda: [] if _says_clean(child) else list(unsound(catalog, sample))
    finally:
        child.kill()


def _says_clean(child: Child) -> bool:
    with contextlib.suppress(OSError):
        return child.receive() == _CLEAN
    return False


def unsound(catalog: Catalog, sample: Sample) -> Iterator[tuple[str, str]]:
    """Files whose rows do not belong together, with the reason.

    Args:
        catalog: Inside a snapshot.
        sample: The slice of files that are checked.
    """
    # Both in the order of files: one walk through each.
    parts = catalog.connection.execute(_PARTS)
    part = next(parts, _LAST)
    for *row, checksum, data in catalog.connection.execute(_FILES):
        identifier = row[0]
        while part[0] < identifier:
            part = next(parts, _LAST)
        keys: list[Any] = []
        while part[0] == identifier:
            keys.append(part[2] if part[1] == len(keys) else None)
            part = next(parts, _LAST)
        if not isinstance(row[1], bytes):
            yield str(row[1]), DAMAGED
            continue
        path = row[1] = decode_path(row[1])
        if sample.has_path(path) and (reason := _problem(row, checksum, keys, data)):
            yield path, reason


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
    """Check the rows of one request, and say whether they are clean."""
    requests, answers = own_streams()
    path, identity, generation, number, of = json.loads(read_message(requests) or b"")
    catalog = Catalog.open(path)
    with catalog.snapshot():
        is_same = (catalog.identity, catalog.generation) == (identity, generation)
        found = unsound(catalog, Sample(number=number, of=of))
        is_clean = is_same and next(found, None) is None
    write_message(answers, _CLEAN if is_clean else b"")


if __name__ == "__main__":
    main()
