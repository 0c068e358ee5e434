"""Documents that were read and cut before, so that no bytes are extracted twice.

A cache: whatever is damaged of it costs time and nothing else. One rule: rows are only looked up by
the hash of the bytes that they were made from, and each carries its own checksum (see
`chunks.kept`). Who can write it can write the catalog beside it, and is trusted as much.
"""

import sqlite3
from collections.abc import Container, Iterable, Mapping
from contextlib import closing, suppress
from typing import Final, Self

from filestore.catalog._rows import in_batches, placeholders
from filestore.catalog._schema import is_damage
from filestore.core.errors import on_error
from filestore.core.hashing import content_hash
from filestore.fs import database, disk, part

_APPLICATION_ID: Final = 0x66736465  # "fsde"
_SCHEMA: Final = (
    "CREATE TABLE documents(id INTEGER PRIMARY KEY, key BLOB NOT NULL, data BLOB NOT NULL)",
    "CREATE UNIQUE INDEX documents_by_key ON documents(key)",
)
_FAILURES: Final = (sqlite3.Error, part.NotAFileError, UnicodeDecodeError)


def key_of(file_hash: bytes, label: str) -> bytes:
    """The key of a document: 16 bytes.

    Args:
        file_hash: The xxh3_128 of the bytes it was made from.
        label: What read them, and all that this hangs on beside them.
    """
    return content_hash(file_hash + label.encode("utf-8", "surrogateescape"))


class DocumentCache:
    """Documents by key, in SQLite; one that cannot be used is empty."""

    def __init__(self, path: str, connection: sqlite3.Connection | None) -> None:
        self._path = path
        self._connection = connection

    @classmethod
    def open(cls, path: str) -> Self:
        """Open or make it; a damaged one is made anew. The caller holds the store's lock.

        Raises:
            OSError: It cannot be removed.
        """
        for _ in range(2):
            try:
                return cls(path, _opened(path))
            except _FAILURES as error:
                disk.pass_hidden_limits(error)
                _remove(path)
        return cls(path, None)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Those of some documents that are there."""
        found: dict[bytes, bytes] = {}
        if self._connection is None:
            return found
        try:
            for batch in in_batches(list(keys)):
                # An index may be damaged: which key a document has is what its own row says.
                rows = self._connection.execute(
                    "SELECT key, data FROM documents WHERE id IN"
                    f" (SELECT id FROM documents WHERE key IN ({placeholders(batch)}))",
                    batch,
                )
                found.update((key, data) for key, data in rows if isinstance(data, bytes))
        except _FAILURES as error:
            self._begin_again(error)
        return found

    def put(self, documents: Mapping[bytes, bytes]) -> None:
        """Keep documents by key."""
        for _ in range(2):
            if self._connection is None or not documents:
                return
            try:
                self._insert(self._connection, documents)
            except _FAILURES as error:
                if self._begin_again(error):
                    continue
            return

    def _insert(self, connection: sqlite3.Connection, documents: Mapping[bytes, bytes]) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute("BEGIN")
            try:
                statement = "INSERT OR REPLACE INTO documents(key, data) VALUES (?, ?)"
                cursor.executemany(statement, list(documents.items()))
                cursor.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    def _begin_again(self, error: BaseException) -> bool:
        """Make a damaged file anew, lest what it held be extracted again by every later sync.

        Returns:
            Whether it was damaged, and not the disk full or the like.

        Raises:
            OSError: It cannot be removed.
        """
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            return False
        self.close()
        _remove(self._path)
        with suppress(*_FAILURES):
            self._connection = _opened(self._path)
        return True

    def drop_unused(self, used: Container[bytes], most_bytes: int) -> None:
        """Forget documents that no file is any more, the oldest first.

        Args:
            used: The keys of those that files are.
            most_bytes: So much of the others stays: somebody may go back to them.
        """
        if self._connection is None:
            return
        statement = "SELECT id, key, length(data) FROM documents ORDER BY id DESC"
        try:
            kept_bytes, dropped = 0, []
            for identifier, key, size in self._connection.execute(statement):
                if key not in used:
                    kept_bytes += size or 0
                    if kept_bytes > most_bytes:
                        dropped.append((identifier,))
            self._connection.execute("BEGIN")
            self._connection.executemany("DELETE FROM documents WHERE id = ?", dropped)
            self._connection.execute("COMMIT")
        except _FAILURES as error:
            self._begin_again(error)


def _remove(path: str) -> None:
    for suffix in part.DATABASE_SUFFIXES:
        database.remove(path + suffix)


def _opened(path: str) -> sqlite3.Connection:
    connection = database.connect(path, "mode=rwc")
    with on_error(connection.close):
        connection.execute("PRAGMA synchronous = NORMAL")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application == 0:
            statements = "; ".join(_SCHEMA)
            connection.executescript(
                f"BEGIN; {statements}; PRAGMA application_id = {_APPLICATION_ID}; COMMIT;"
            )
        found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
        if found != set(_SCHEMA):
            raise sqlite3.DatabaseError("its tables are not those that were made")
    return connection
