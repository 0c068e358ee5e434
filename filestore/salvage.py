"""What is self-verifying in a catalog that was put aside, carried over into the new one.

Texts carry the hash they are known by, so they can be trusted whatever else is damaged; all other
rows are made again from the files. Reads row by row past what SQLite cannot walk. One rule: garbage
yields nothing and is no error.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from filestore.catalog import Forgotten, decode_path
from filestore.hashing import content_hash, origin_hash
from filestore.places import Places

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter

ORIGINAL: Final = "original:"
_KEPT_ROWS: Final = 10_000_000
"""No catalog has more; a damaged tree of pages may lead around in circles."""


def carry_over(path: str, catalog: "CatalogWriter", places: Places) -> int:
    """Take what can be proved from a catalog that was put aside. The lock is held.

    Args:
        path: The old catalog, with its write-ahead log beside it where there is one.
        catalog: The new one, which nobody has committed to.
        places: Says which files are there still: their own bytes are the newer ones.

    Returns:
        How many texts and remarks were kept.
    """
    kept = 0
    catalog.begin()
    try:
        for origin, body in _proved(path, _GENERATED, _is_generated):
            catalog.keep_generated(origin, bytes(body))
            kept += 1
        for key, value in _proved(path, _ORIGINALS, _is_original):
            catalog.set_meta(key, value)
            kept += 1
        gone = list(_gone(path, places))
        catalog.remember_forgotten(gone)
        # Not a generation: of the files nothing is recorded yet.
        catalog.connection.execute("COMMIT")
    except BaseException:
        catalog.rollback()
        raise
    return kept + len(gone)


def _gone(path: str, places: Places) -> Iterator[Forgotten]:
    """The last good bytes of files that are not there any more, those forgotten long ago first."""
    for statement in (_FORGOTTEN, _CONTENTS):
        for name, file_hash, data, mtime_ns in _proved(path, statement, _is_content):
            below = decode_path(name)
            if _is_below(below) and not os.path.lexists(os.path.join(places.chunked, below)):
                yield Forgotten(
                    path=below, file_hash=file_hash, data=data, mtime_ns=mtime_ns, generation=0
                )


def _is_below(path: str) -> bool:
    """Whether a path out of a damaged file names something inside its folder."""
    parts = path.split("/")
    return bool(path) and "\0" not in path and not {"", ".", ".."} & set(parts)


_GENERATED: Final = "SELECT origin, body FROM generated ORDER BY origin {order}"
_ORIGINALS: Final = (
    f"SELECT key, value FROM meta WHERE key GLOB '{ORIGINAL}*' ORDER BY key {{order}}"
)
_FORGOTTEN: Final = "SELECT path, file_hash, data, mtime_ns FROM forgotten ORDER BY path {order}"
_CONTENTS: Final = (
    "SELECT path, file_hash, data, 0 FROM contents JOIN files ON id = file ORDER BY file {order}"
)


def _is_generated(row: tuple[Any, ...]) -> bool:
    origin, body = row
    return bool(origin_hash(body.decode("utf-8")) == origin)


def _is_original(row: tuple[Any, ...]) -> bool:
    """A path that a person named: not proved, and only ever looked at to be compared by hash."""
    return all(isinstance(value, str) and "\0" not in value for value in row)


def _is_content(row: tuple[Any, ...]) -> bool:
    path, file_hash, data, mtime_ns = row
    typed = isinstance(path, bytes) and isinstance(data, bytes) and isinstance(mtime_ns, int)
    return typed and content_hash(data) == file_hash


def _proved(
    path: str, statement: str, holds: Callable[[tuple[Any, ...]], bool]
) -> Iterator[tuple[Any, ...]]:
    """Rows that prove themselves, from both ends of their table up to what cannot be read."""
    seen: set[Any] = set()
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error), closing(_opened(path)) as connection:
            rows = connection.execute(statement.format(order=order))
            for _ in range(_KEPT_ROWS):
                row = rows.fetchone()
                if row is None:
                    return
                # Values of a damaged row may be of any type.
                with suppress(ValueError, TypeError, AttributeError):
                    if row[0] not in seen and holds(row):
                        seen.add(row[0])
                        yield row


def _opened(path: str) -> sqlite3.Connection:
    """The old file, read only; a log beside it is read as far as it holds."""
    logged = os.path.exists(f"{path}-wal")
    mode = "mode=ro" if logged else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"file:{quote(path)}?{mode}", uri=True, isolation_level=None)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        # Lets SQLite open a file that is shorter than its header says.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection
