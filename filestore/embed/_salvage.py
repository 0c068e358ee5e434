"""What is left of a damaged database of embeddings, row by row.

Reads only; where the rows go is for the cache. One rule: garbage yields nothing and is no error,
and what is yielded has a checksum that holds.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Final

from filestore.embed._database import connect, is_sound, seed_of

_LEAST_ROW_BYTES: Final = 48
"""A key, a checksum and what SQLite needs for a row."""

_SELECT_ROW: Final = "SELECT model, key, checksum, vector FROM vectors WHERE id = ?"


def open_damaged(
    path: str, *, timeout_s: float
) -> AbstractContextManager[sqlite3.Connection | None]:
    """A reader that tolerates a truncated file; None where SQLite will not even look."""
    if not os.path.isfile(path):
        return nullcontext()
    try:
        # Nobody writes a damaged file; without a log, immutable leaves no files beside it.
        logged = os.path.exists(f"{path}-wal")
        mode = "mode=ro" if logged else "mode=ro&immutable=1"
        connection = connect(path, mode, timeout_s=timeout_s)
        # Lets SQLite open a file that is shorter than its header says.
        connection.execute("PRAGMA writable_schema = ON")
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
    except sqlite3.Error:
        return nullcontext()
    return closing(connection)


def salvaged_rows(
    source: sqlite3.Connection | None, path: str, fingerprints: Iterable[str]
) -> Iterator[tuple[str, bytes, bytes]]:
    """Fingerprint, key and vector of each row whose checksum holds; the rest is stepped over."""
    if source is None:
        return
    owners = _owners(source)
    others = [(fingerprint, seed_of(fingerprint)) for fingerprint in fingerprints]
    for identifier in range(1, _last_row(source, path) + 1):
        with suppress(sqlite3.Error):
            row = source.execute(_SELECT_ROW, (identifier,)).fetchone()
            if row is None:
                continue
            owner, key, checksum, vector = row
            for fingerprint, seed in [*owners.get(owner, ()), *others]:
                if is_sound(seed, key, checksum, vector):
                    yield fingerprint, key, vector
                    break


def _owners(source: sqlite3.Connection) -> dict[object, list[tuple[str, int]]]:
    owners: dict[object, list[tuple[str, int]]] = {}
    with suppress(sqlite3.Error):
        for identifier, fingerprint in source.execute("SELECT id, fingerprint FROM models"):
            if isinstance(fingerprint, str):
                owners[identifier] = [(fingerprint, seed_of(fingerprint))]
    return owners


def _last_row(source: sqlite3.Connection, path: str) -> int:
    """The highest row number, or a bound for it where the end of the table cannot be read."""
    sizes = [os.path.getsize(name) for name in (path, f"{path}-wal") if os.path.exists(name)]
    bound = sum(sizes) // _LEAST_ROW_BYTES
    with suppress(sqlite3.Error):
        return min(bound, int(source.execute("SELECT max(id) FROM vectors").fetchone()[0] or 0))
    return bound
