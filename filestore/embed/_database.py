"""The checksums in the database of embeddings, and what is left of a damaged one, row by row.

Tables and errors are the cache's. One rule: a checksum is seeded by the model's fingerprint, so
that no row passes for another model's; garbage yields nothing and is no error.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Final

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from filestore.fs.database import UNREADABLE, is_plain_table, open_untrusted, size_bytes

_LEAST_ROW_BYTES: Final = 48
"""A key, a checksum and what SQLite needs for a row."""

_SELECT_ROW: Final = "SELECT model, key, checksum, vector FROM vectors WHERE id = ?"


def seed_of(fingerprint: str) -> int:
    """What seeds the checksums of a model's rows."""
    return xxh3_64_intdigest(fingerprint.encode("utf-8", "surrogatepass"))


def model_checksum(seed: int, dimension: object) -> bytes:
    """The checksum in the record of a model."""
    return xxh3_64_digest(str(dimension).encode(), seed)


def row_checksum(seed: int, key: bytes, vector: bytes) -> bytes:
    """The checksum beside a vector."""
    return xxh3_64_digest(key + vector, seed)


def are_sound(seed: int, rows: Sequence[tuple[bytes, bytes, bytes]]) -> bool:
    """Whether the checksums of all rows hold, of key, checksum and vector; quicker than each."""
    try:
        found = [xxh3_64_digest(key + vector, seed) for key, _, vector in rows]
        return found == [checksum for _, checksum, _ in rows]
    except TypeError:
        return False


def is_sound(seed: int, key: bytes, checksum: bytes, vector: bytes) -> bool:
    """Whether the checksum of a row holds, whatever types its values have."""
    try:
        return checksum == xxh3_64_digest(key + vector, seed)
    except TypeError:  # a flipped type byte turns a blob into a number, a text or NULL
        return False


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
