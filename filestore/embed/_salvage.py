"""What is left of a damaged database of embeddings, row by row.

Reads only; where the rows go is for the cache. One rule: garbage yields nothing and is no error,
and what is yielded has a checksum that holds.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Final

from filestore.embed._database import is_sound, seed_of
from filestore.fs.database import UNREADABLE, is_plain_table, open_untrusted, size_bytes

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
        return closing(open_untrusted(path, timeout_s=timeout_s))
    except UNREADABLE:
        return nullcontext()


def salvaged_rows(
    source: sqlite3.Connection | None, path: str, fingerprints: Iterable[str]
) -> Iterator[tuple[str, bytes, bytes]]:
    """Fingerprint, key and vector of each row whose checksum holds; the rest is stepped over."""
    if source is None or not is_plain_table(source, "vectors"):
        return
    owners = _owners(source) if is_plain_table(source, "models") else {}
    left = size_bytes(path)
    others = [(fingerprint, seed_of(fingerprint)) for fingerprint in fingerprints]
    for identifier in range(1, _last_row(source, path) + 1):
        with suppress(*UNREADABLE):
            row = source.execute(_SELECT_ROW, (identifier,)).fetchone()
            if row is None:
                continue
            owner, key, checksum, vector = row
            left -= sum(len(value) for value in row if isinstance(value, str | bytes))
            if left < 0:
                # Rows that share their pages: no file that we wrote has any.
                return
            for fingerprint, seed in [*owners.get(owner, ()), *others]:
                if is_sound(seed, key, checksum, vector):
                    yield fingerprint, key, vector
                    break


def _owners(source: sqlite3.Connection) -> dict[object, list[tuple[str, int]]]:
    owners: dict[object, list[tuple[str, int]]] = {}
    with suppress(*UNREADABLE):
        for identifier, fingerprint in source.execute("SELECT id, fingerprint FROM models"):
            if isinstance(fingerprint, str):
                owners[identifier] = [(fingerprint, seed_of(fingerprint))]
    return owners


def _last_row(source: sqlite3.Connection, path: str) -> int:
    """The highest row number, or a bound for it where the end of the table cannot be read."""
    bound = size_bytes(path) // _LEAST_ROW_BYTES
    with suppress(*UNREADABLE):
        return min(bound, int(source.execute("SELECT max(id) FROM vectors").fetchone()[0] or 0))
    return bound
