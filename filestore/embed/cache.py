"""The embeddings that were paid for, in SQLite: by model fingerprint and embedding key.

Holds vectors only, no texts and no paths, so it serves every branch and every clone. Rows are
added, hardly ever changed. One rule: no vector leaves here whose checksum does not hold, because
SQLite does not check its data pages; such a row counts as absent, and `put` writes it again.

Layout: ``models(id, fingerprint, dimension, checksum)`` and ``vectors(id, model, key, checksum,
vector)``, where `key` is 32 bytes, `vector` little-endian float32, and `checksum` the xxh3_64 of
key and vector (of the dimension, for a model) seeded with the xxh3_64 of the fingerprint, so that
no row passes for another model's. Of a damaged file every sound row is salvaged.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import compress
from operator import not_
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from filestore.core.errors import UPGRADE, FilestoreError, on_error
from filestore.fs import disk
from filestore.fs.database import UNREADABLE, connect, is_plain_table, open_untrusted, size_bytes
from filestore.fs.disk import pass_hidden_limits, pass_limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_APPLICATION_ID: Final = 0x66735631
_SCHEMA_VERSION: Final = 1
_PAGE_BYTES: Final = 16_384
_LEAST_PAGE_BYTES: Final = 512
_CACHE_KIB: Final = 32_768
"""Room for the pages of a large transaction, which would else be written twice."""
_CHECKPOINT_PAGES: Final = 4_096
_IMMUTABLE: Final = "mode=ro&immutable=1"
_BUSY_TIMEOUT_S: Final = 10.0
_KEYS_PER_QUERY: Final = 500
_FLOAT_BYTES: Final = 4

_SCHEMA: Final = (
    "CREATE TABLE models("
    " id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL,"
    " checksum BLOB NOT NULL)",
    "CREATE TABLE vectors("
    " id INTEGER PRIMARY KEY, model INTEGER NOT NULL, key BLOB NOT NULL,"
    " checksum BLOB NOT NULL, vector BLOB NOT NULL)",
    "CREATE UNIQUE INDEX vectors_by_key ON vectors(model, key)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
_OUR_TABLES: Final = {statement for statement in _SCHEMA if statement.startswith("CREATE")}
_INSERT: Final = "INSERT OR IGNORE INTO vectors(model, key, checksum, vector) VALUES (?, ?, ?, ?)"
_UPDATE: Final = "UPDATE vectors SET checksum = ?, vector = ? WHERE model = ? AND key = ?"
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""What SQLite says of damage; a statement of ours that does not fit means a lost table."""
_SHORT_READ: Final = sqlite3.SQLITE_IOERR_SHORT_READ
_SELECT_MODEL: Final = "SELECT id, dimension, checksum FROM models WHERE fingerprint = ?"


class EmbeddingsMissing(FilestoreError, FileNotFoundError):
    """There are no embeddings to read yet."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no embeddings at {path}", remedy="filestore sync")


class EmbeddingsDamaged(FilestoreError, ValueError):
    """The file is not a database of embeddings, or SQLite cannot walk it."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f"the embeddings at {path} are damaged",
            remedy="'filestore sync --full' keeps the sound rows and embeds the rest",
            detail=detail,
        )


class EmbeddingsNewer(FilestoreError, ValueError):
    """The file was written by a later version."""

    def __init__(self, path: str, version: int) -> None:
        super().__init__(
            f"the embeddings at {path} have format {version}, this version reads up to"
            f" {_SCHEMA_VERSION}",
            remedy=f"{UPGRADE}, or delete the file: the passages are then embedded again",
        )


class EmbeddingsBusy(FilestoreError, TimeoutError):
    """Another process kept the file locked."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the embeddings at {path} were locked for more than {_BUSY_TIMEOUT_S:g} s"
            ": wait for the other filestore process to end, then try again",
        )


class _Model(Struct, frozen=True, kw_only=True):
    identifier: int
    dimension: int
    seed: int
    """Of the checksums; from the fingerprint, so that rows do not pass for another model's."""

    @property
    def vector_bytes(self) -> int:
        return self.dimension * _FLOAT_BYTES

    def sound(self, key: bytes, checksum: bytes, vector: bytes) -> bool:
        """Whether a row is what was once written."""
        return is_sound(self.seed, key, checksum, vector) and len(vector) == self.vector_bytes


class EmbeddingCache(disk.Closing):
    """Embeddings by fingerprint and key. Open it with `open`; one thread at a time."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._models: dict[str, _Model] = {}
        self._damaged: set[tuple[str, bytes]] = set()

    @classmethod
    def open(cls, path: str, *, read_only: bool = False) -> Self:
        """Open the file, or create it.

        Args:
            path: Where the file is; its folder exists.
            read_only: Write nothing. Where the folder cannot be written either and no write-ahead
                log is left, the file is opened as immutable.

        Raises:
            EmbeddingsMissing: It is to be read only and not there.
            EmbeddingsDamaged: It is not a database of embeddings.
            EmbeddingsNewer: A later version wrote it.
            EmbeddingsBusy: Another process kept it locked.
        """
        if read_only and not os.path.lexists(path):
            raise EmbeddingsMissing(path)
        mode = "mode=ro" if read_only else "mode=rwc"
        if read_only and not _has_log(path):
            # Without a log and without the right to make one only an immutable file can be opened.
            writable = os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)
            mode = mode if writable else _IMMUTABLE
        with _explained(path):
            try:
                return cls(path, _opened(path, mode, read_only=read_only))
            except sqlite3.OperationalError:
                if not read_only or _has_log(path):
                    raise
                # On a full disk no shared memory can be made, and without a log none is needed.
                return cls(path, _opened(path, _IMMUTABLE, read_only=True))

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._connection.close()

    @property
    def damaged(self) -> int:
        """How many rows were found damaged since opening, and not repaired."""
        return len(self._damaged)

    def fingerprints(self) -> dict[str, int]:
        """The dimension of each model that has embeddings here."""
        with _explained(self._path):
            found = self._connection.execute("SELECT fingerprint, dimension FROM models")
            # A file that came with a store may hold anything.
            return {name: size for name, size in found if (type(name), type(size)) == (str, int)}

    def count(self, fingerprint: str) -> int:
        """How many rows a model has, damaged ones included."""
        model = self._model(fingerprint)
        if model is None:
            return 0
        query = "SELECT count(*) FROM vectors WHERE model = ?"
        with _explained(self._path):
            return int(self._connection.execute(query, (model.identifier,)).fetchone()[0])

    def has(self, fingerprint: str, keys: Iterable[bytes]) -> set[bytes]:
        """Those of the keys that have a row; its checksum is not looked at."""
        return {key for (key,) in self._select("key", fingerprint, keys)}

    def get(
        self, fingerprint: str, keys: Sequence[bytes]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The vectors of these keys, in their order.

        Returns:
            ``(n, dimension) float32``, and ``(n,) bool``: whether there is a sound row. Where there
            is none, the vector is all zero. A fingerprint never seen has dimension 0.
        """
        import numpy as np

        model = self._model(fingerprint)
        size = model.vector_bytes if model else 0
        raw = bytearray(len(keys) * size)
        found = bytearray(len(keys))
        places: dict[bytes, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        for key, vector in self._sound_rows(fingerprint, places):
            for place in places[key]:
                raw[place * size : (place + 1) * size] = vector
                found[place] = 1
        vectors = np.frombuffer(raw, dtype="<f4").reshape(len(keys), size // _FLOAT_BYTES)
        return vectors.astype(np.float32, copy=False), np.frombuffer(found, dtype=np.bool_)

    def raw(self, fingerprint: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Key to raw float32 vector of those of the keys that have a sound row; needs no numpy."""
        return dict(self._sound_rows(fingerprint, keys))

    def rows(self, fingerprint: str) -> Iterator[tuple[bytes, bytes]]:
        """Every sound row of a model in key order, one at a time: key and raw float32 vector."""
        for keys, vectors in self.walk(fingerprint, _KEYS_PER_QUERY):
            yield from zip(keys, vectors, strict=True)

    def walk(
        self, fingerprint: str, size: int
    ) -> Iterator[tuple[tuple[bytes, ...], tuple[bytes, ...]]]:
        """As `rows`, up to this many at a time: their keys, and their raw vectors."""
        model = self._model(fingerprint)
        if model is None:
            return
        query = "SELECT key, checksum, vector FROM vectors WHERE model = ? ORDER BY key"
        with _explained(self._path):
            rows = self._connection.execute(query, (model.identifier,))
            while some := rows.fetchmany(size):
                # All at once: one by one takes twice as long, and nearly all are sound.
                is_all_sound = are_sound(model.seed, some)
                if not is_all_sound or {len(one[2]) for one in some} != {model.vector_bytes}:
                    holds = [model.sound(*row) for row in some]
                    wrong = compress(some, map(not_, holds))
                    self._damaged.update((fingerprint, key) for key, _, _ in wrong)
                    some = list(compress(some, holds))
                if some:
                    keys, _, vectors = zip(*some, strict=True)
                    yield keys, vectors

    def keys(self, fingerprint: str) -> Iterator[bytes]:
        """The key of every row of a model, in order, damaged ones included; reads no vector."""
        model = self._model(fingerprint)
        if model is not None:
            query = "SELECT key FROM vectors WHERE model = ? ORDER BY key"
            with _explained(self._path):
                for (key,) in self._connection.execute(query, (model.identifier,)):
                    yield key

    def damaged_keys(self, fingerprint: str) -> list[bytes]:
        """The keys of the rows that were found damaged so far, sorted."""
        return sorted(key for owner, key in self._damaged if owner == fingerprint)

    def verify(self, fingerprint: str) -> list[bytes]:
        """The keys of the rows whose checksum does not hold, sorted; reads every row."""
        for _ in self.rows(fingerprint):
            pass
        return self.damaged_keys(fingerprint)

    def put(self, fingerprint: str, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> int:
        """Keep embeddings, in one transaction; a sound row that is there already stays.

        Args:
            fingerprint: The model they come from.
            keys: One embedding key each.
            vectors: ``(n, dimension) float32``.

        Returns:
            How many rows were written, repaired ones included.

        Raises:
            ValueError: The shape does not fit the keys or the model, or a number is not finite.
        """
        import numpy as np

        matrix = np.ascontiguousarray(vectors, dtype="<f4")
        if matrix.ndim != 2 or len(matrix) != len(keys):
            raise ValueError(f"{len(keys)} keys, but vectors of shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise ValueError(f"an embedding of {fingerprint} holds a number that is not finite")
        size = matrix.shape[1] * _FLOAT_BYTES
        raw = matrix.tobytes()
        # In key order the index grows page by page instead of everywhere.
        pairs = sorted((key, raw[i * size : (i + 1) * size]) for i, key in enumerate(keys))
        with _explained(self._path), _transaction(self._connection):
            model = self._model_to_write(fingerprint, matrix.shape[1])
            inserted = self._insert(model, pairs)
            if inserted == len(pairs):
                return inserted
            by_key = dict(pairs)
            sound = {key for key, _ in self._sound_rows(fingerprint, by_key)}
            repaired = [key for key in by_key if key not in sound]
            for key in repaired:
                checksum = row_checksum(model.seed, key, by_key[key])
                self._connection.execute(_UPDATE, (checksum, by_key[key], model.identifier, key))
                self._damaged.discard((fingerprint, key))
            return inserted + len(repaired)

    def discard(self, fingerprint: str, keys: Iterable[bytes]) -> None:
        """Take out embeddings, whether or not their checksum holds."""
        model = self._model(fingerprint)
        if model is None:
            return
        statement = "DELETE FROM vectors WHERE model = ? AND key = ?"
        with _explained(self._path), _transaction(self._connection):
            self._connection.executemany(statement, [(model.identifier, key) for key in keys])

    def forget(self, fingerprint: str) -> None:
        """Take out every embedding of a model; the room is used by later ones."""
        model = self._model(fingerprint)
        if model is None:
            return
        with _explained(self._path), _transaction(self._connection):
            self._connection.execute("DELETE FROM vectors WHERE model = ?", (model.identifier,))
            self._connection.execute("DELETE FROM models WHERE id = ?", (model.identifier,))
        del self._models[fingerprint]
        self._damaged = {one for one in self._damaged if one[0] != fingerprint}

    def shrink(self) -> None:
        """Give the room of rows that were taken out back to the disk; needs as much as is left.

        Raises:
            EmbeddingsBusy: Another process writes to the file.
            sqlite3.Error: The disk refused; no row is lost.
        """
        if _pragma(self._connection, "freelist_count"):
            with _explained(self._path):
                self._connection.execute("VACUUM")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def salvage(self, damaged_path: str, *, fingerprints: Iterable[str] = ()) -> int:
        """Keep every sound row of a damaged file; the file itself is not changed.

        Reads row by row past what SQLite cannot walk. Garbage yields nothing and is no error.

        Args:
            damaged_path: The file, with its write-ahead log next to it where there is one.
            fingerprints: Models to try where the file no longer says whose a row is.

        Returns:
            How many rows were kept here that were not here before.
        """
        models: dict[str, _Model] = {}
        kept = 0
        with _explained(self._path), _transaction(self._connection):
            for fingerprint, key, vector in _salvaged_rows(damaged_path, fingerprints):
                model = models.get(fingerprint)
                if model is None:
                    dimension = len(vector) // _FLOAT_BYTES
                    model = models[fingerprint] = self._model_to_write(fingerprint, dimension)
                kept += self._insert(model, [(key, vector)])
        return kept

    def _model(self, fingerprint: str) -> _Model | None:
        known = self._models.get(fingerprint)
        if known is None and (known := self._read_model(fingerprint)) is not None:
            self._models[fingerprint] = known
        return known

    def _read_model(self, fingerprint: str) -> _Model | None:
        with _explained(self._path):
            row = self._connection.execute(_SELECT_MODEL, (fingerprint,)).fetchone()
        if row is None:
            return None
        identifier, dimension, checksum = row
        seed = seed_of(fingerprint)
        if checksum != model_checksum(seed, dimension):
            raise EmbeddingsDamaged(self._path, f"the record of model {fingerprint} is damaged")
        return _Model(identifier=identifier, dimension=dimension, seed=seed)

    def _model_to_write(self, fingerprint: str, dimension: int) -> _Model:
        self._connection.execute(
            "INSERT OR IGNORE INTO models(fingerprint, dimension, checksum) VALUES (?, ?, ?)",
            (fingerprint, dimension, model_checksum(seed_of(fingerprint), dimension)),
        )
        # Not remembered before the commit: a rollback would leave a number that means nothing.
        model = self._read_model(fingerprint)
        if model is None or model.dimension != dimension:
            found = model.dimension if model else None
            raise ValueError(f"{fingerprint} has dimension {found}, not {dimension}")
        return model

    def _insert(self, model: _Model, pairs: Iterable[tuple[bytes, bytes]]) -> int:
        rows = (
            (model.identifier, key, row_checksum(model.seed, key, vector), vector)
            for key, vector in pairs
        )
        before = self._connection.total_changes
        self._connection.executemany(_INSERT, rows)
        return self._connection.total_changes - before

    def _sound_rows(self, fingerprint: str, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        model = self._model(fingerprint)
        for key, checksum, vector in self._select("key, checksum, vector", fingerprint, keys):
            if model is not None and model.sound(key, checksum, vector):
                yield key, vector
            else:
                self._damaged.add((fingerprint, key))

    def _select(
        self, columns: str, fingerprint: str, keys: Iterable[bytes]
    ) -> Iterator[tuple[bytes, ...]]:
        model = self._model(fingerprint)
        if model is None:
            return
        wanted = sorted(set(keys))
        for start in range(0, len(wanted), _KEYS_PER_QUERY):
            some = wanted[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT {columns} FROM vectors WHERE model = ? AND key IN ({marks})"
            with _explained(self._path):
                yield from self._connection.execute(query, (model.identifier, *some))


def _has_log(path: str) -> bool:
    try:
        return os.path.getsize(f"{path}-wal") > 0
    except OSError:
        return False


def _opened(path: str, mode: str, *, read_only: bool) -> sqlite3.Connection:
    connection = connect(path, mode, timeout_s=_BUSY_TIMEOUT_S)
    with on_error(connection.close):
        _prepare(connection, path, read_only=read_only)
    return connection


def _prepare(connection: sqlite3.Connection, path: str, *, read_only: bool) -> None:
    """Check that the file is ours before anything in it is changed; create the tables in a new one.

    A new database has no pages, and neither has an empty file.
    """
    if 0 < os.path.getsize(path) < _LEAST_PAGE_BYTES:
        # SQLite would take it for an empty file and overwrite it.
        raise EmbeddingsDamaged(path, "it is too short for a database")
    if read_only or _pragma(connection, "page_count") > 0:
        _check(connection, path)
    if read_only:
        return
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = {-_CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    with _transaction(connection):
        # Asked again within the transaction: of two that create the file, one finds it made.
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in _SCHEMA:
                connection.execute(statement)


def _check(connection: sqlite3.Connection, path: str) -> None:
    made = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        # Another process may have made the file a moment ago and not filled it yet.
        if made:
            raise EmbeddingsDamaged(path, "it is another program's database")
        return
    version = _pragma(connection, "user_version")
    if version > _SCHEMA_VERSION:
        raise EmbeddingsNewer(path, version)
    # The index of a UNIQUE column has no statement; nothing else is there that we did not make.
    if version != _SCHEMA_VERSION or made != {*_OUR_TABLES, None}:
        raise EmbeddingsDamaged(path, "its tables have another shape")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors; the first error is the one to raise.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn what SQLite says about damage and locks into our errors."""
    try:
        yield
    except disk.NotAFileError as error:
        raise EmbeddingsDamaged(path, error.message) from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _DAMAGE or getattr(error, "sqlite_errorcode", 0) == _SHORT_READ:
            raise EmbeddingsDamaged(path, str(error)) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise EmbeddingsBusy(path) from error
        pass_hidden_limits(error)
        raise
    except UnicodeDecodeError as error:
        # SQLite quotes the name of a damaged table, which may be no text.
        raise EmbeddingsDamaged(path, "its tables have names that are not text") from error
    except MemoryError as error:
        pass_limits(error)
        raise


_LEAST_ROW_BYTES: Final = 48
"""A key, a checksum and what SQLite needs for a row."""

_SELECT_OWNERS: Final = "SELECT id, fingerprint FROM models"
_SELECT_ROW: Final = "SELECT model, key, checksum, vector FROM vectors WHERE id = ?"


def seed_of(fingerprint: str) -> int:
    """What seeds the checksums of a model's rows."""
    return xxh3_64_intdigest(fingerprint.encode("utf-8", "surrogatepass"))


def model_checksum(seed: int, dimension: object) -> bytes:
    """The checksum in the record of a model."""
    return xxh3_64_digest(str(dimension).encode(), seed)


def row_checksum(seed: int, key: bytes, vector: bytes) -> bytes:
    """The checksum next to a vector."""
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


def _salvaged_rows(path: str, fingerprints: Iterable[str]) -> Iterator[tuple[str, bytes, bytes]]:
    """Fingerprint, key and vector of each row whose checksum holds; the rest is stepped over."""
    if not os.path.isfile(path):
        return
    try:
        source = open_untrusted(path, timeout_s=_BUSY_TIMEOUT_S)
    except UNREADABLE:
        return
    with closing(source):
        if not is_plain_table(source, "vectors"):
            return
        owners: dict[object, list[tuple[str, int]]] = {}
        with suppress(*UNREADABLE):
            found = is_plain_table(source, "models")
            for identifier, fingerprint in source.execute(_SELECT_OWNERS) if found else ():
                if isinstance(fingerprint, str):
                    owners[identifier] = [(fingerprint, seed_of(fingerprint))]
        left = size_bytes(path)
        others = [(fingerprint, seed_of(fingerprint)) for fingerprint in fingerprints]
        # The highest row number, or a bound for it where the end of the table cannot be read.
        last = left // _LEAST_ROW_BYTES
        with suppress(*UNREADABLE):
            last = min(last, int(source.execute("SELECT max(id) FROM vectors").fetchone()[0] or 0))
        for identifier in range(1, last + 1):
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
