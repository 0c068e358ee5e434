"""How the database of embeddings is reached, and the checksums in it.

What the cache and its salvage share; tables and errors are the cache's. One rule: a checksum is
seeded by the model's fingerprint, so that no row passes for another model's.
"""

import os
import sqlite3
import urllib.parse
from collections.abc import Sequence

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from filestore.fs import disk


def connect(path: str, mode: str, *, timeout_s: float) -> sqlite3.Connection:
    """A connection without implicit transactions.

    Args:
        path: Where the file is.
        mode: How to open it, as a query of SQLite's URIs: ``mode=ro``.
        timeout_s: How long to wait for another process's lock.

    Raises:
        NotAFileError: The file, or one that SQLite opens beside it, is no regular file.
        sqlite3.Error: It cannot be opened.
    """
    disk.check_database(path)
    address = f"file:{urllib.parse.quote(os.fsencode(os.path.abspath(path)))}?{mode}"
    connection = sqlite3.connect(address, uri=True, timeout=timeout_s, isolation_level=None)
    # A file from a stranger may hold code: views and triggers are not to call functions.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


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
