"""What the catalog remembers of itself and of one generation, held against checksum and tables.

A commit derives from what it reads here, so a forged value must never get a fresh
checksum. One rule: cheap enough for every opening; whole large tables are for a verification.
"""

import contextlib
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson

from filestore.catalog._rows import in_batches, placeholders
from filestore.catalog._schema import (
    CHILDREN,
    COMMITTED_FILES,
    TABLES,
    catalog_errors,
    readable,
    refuse,
)
from filestore.core.hashing import content_hash

AWAITED: Final = "awaited"
"""Remembered where a part of a mass of missing files came back: the rest waits for a person."""
CHECKSUM: Final = "checksum"
"""Over all that is remembered, but for where originals lie: SQLite checks no data page."""
LAST_FILE: Final = "last_file"
"""The highest file id that was ever given: none is given twice."""
HISTORY: Final = "history"
"""What was read of git's log, as JSON; see `ages.History`."""
COMMITTED: Final = "committed"
"""When the last generation was made, in seconds since 1970."""
LET_GO: Final = "let_go"
"""Remembered where the last file was forgotten: it went on purpose, whatever git still has."""
RESOLVED: Final = "resolved"
"""Conflicts that a person resolved, as JSON."""
ROWS: Final = "rows"
"""How many rows each table had at the last commit, as JSON."""
ROWS_AT: Final = "vector_rows"
"""Where the backend is that has the vectors, where the sidecar has no FAISS file of them."""
ROWS_GENERATION: Final = "vector_rows_generation"
"""What was sent to it last."""
_TABLE: Final = re.compile(r"CREATE TABLE (\w+)")
COUNTED: Final = frozenset(_TABLE.findall(TABLES)) - {"contents", "meta"}
"""Not `contents`: it has the most bytes, and a row for every searchable file."""
_ADDED: Final = {*_TABLE.findall(CHILDREN + COMMITTED_FILES)}
"""Tables that a schema before did not have."""
MOST: Final = 2**53
"""No number of ours is larger; one that is was never counted up to."""

_NARROW: Final = frozenset({"files", "parts", "vectors"})
"""Counted at every opening, at a millisecond for 100,000 rows: all answers come from them."""
_FEW: Final = 1_000
"""Other tables are counted at every opening up to this many rows; beyond, looked at for any row."""
_REMEMBERED: Final = (
    "SELECT key, value FROM meta WHERE key < 'original:' OR key >= 'original;' ORDER BY key"
)
_GIVEN: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'files'"
_COMPARED: Final = 10_000
"""Up to this many paths are compared at every opening, in some 10 ms."""
_LEADS_OUT: Final = (
    # Through the index: what is no blob, and what begins with a NUL, comes first.
    "SELECT 1 FROM main.files WHERE path < x'01'"
    " OR path >= x'2f' AND path < x'30'"  # /
    " OR path >= x'2e2f' AND path < x'2e30'"  # ./
    " OR path >= x'2e2e2f' AND path < x'2e2e30'"  # ../
    " OR path IN (x'2e', x'2e2e') LIMIT 1"
)
_DESCRIBED: Final = frozenset({"vectors", "lists", "probes", "trained_on"})
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_DIGEST: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}", re.ASCII)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _is_description(value: Any) -> bool:
    """As `index.building.Description` is serialized."""
    found = _parsed(value)
    if not isinstance(found, dict) or found.pop("kind", "") not in ("exact", "approximate"):
        return False
    shares = [found.pop(key, None) for key in ("recall", "work")]
    numbers = [number for key, number in found.items() if key == "vectors" or number is not None]
    is_sound = all(
        one is None or (isinstance(one, float) and 0 <= one <= MOST) for one in shares
    ) and all(map(_is_number, numbers))
    return is_sound and "vectors" in found and found.keys() <= _DESCRIBED


def _is_history(value: Any) -> bool:
    """As `ages.History` is serialized; git is given the name of the commit."""
    found = _parsed(value)
    types = {"head": str, "prefix": str, "below": list, "generation": int, "problem": str}
    is_formed = isinstance(found, dict) and {key: type(one) for key, one in found.items()} == types
    return (
        is_formed
        and _is_number(found["generation"])
        and all(isinstance(one, str) for one in found["below"])
        and (not found["head"] or _COMMIT.fullmatch(found["head"]) is not None)
    )


def _is_count_of_rows(value: Any) -> bool:
    counts = _parsed(value)
    if not isinstance(counts, dict) or counts.keys() | _ADDED != COUNTED:
        return False
    return all(map(_is_number, counts.values()))


def _parsed(value: Any) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


_NUMBERS: Final = (
    *(AWAITED, LAST_FILE, LET_GO, ROWS_GENERATION, COMMITTED, "embeddings", "files", "generation"),
    *("beside_embeddings", "beside_generation", "beside_lacking"),
    *("index_generation", "index_size", "indexed", "texts"),
)
_TEXTS: Final = ("beside_fingerprint", "fingerprint", "index_fingerprint", "metric", ROWS_AT)
_FORMS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(_NUMBERS, _is_number),
    **dict.fromkeys(_TEXTS, lambda value: isinstance(value, str)),
    **dict.fromkeys((CHECKSUM, "identity", "index_hash"), _is_digest),
    "index_description": _is_description,
    "index_name": lambda name: isinstance(name, str) and bool(_FILE_NAME.fullmatch(name)),
    RESOLVED: lambda value: isinstance(_parsed(value), list),
    ROWS: _is_count_of_rows,
    HISTORY: _is_history,
}


def checksum(connection: sqlite3.Connection) -> str:
    """Over what is remembered now."""
    return _checksum(connection.execute(_REMEMBERED).fetchall())


def _checksum(remembered: Iterable[tuple[str, Any]]) -> str:
    sealed = [row for row in remembered if row[0] != CHECKSUM]
    return content_hash(repr(sealed).encode("utf-8", "surrogatepass")).hex()


def problem(connection: sqlite3.Connection) -> str:
    """What is wrong with what is remembered, or ""; reads a few rows."""
    rows = connection.execute(_REMEMBERED).fetchall()
    remembered = dict(rows)
    if CHECKSUM not in remembered:
        known = connection.execute("SELECT key, value FROM meta LIMIT 2").fetchall()
        # A new catalog knows its identity, and no file was ever in it.
        if [key for key, _ in known] == ["identity"] and _is_digest(known[0][1]):
            tables = (*COUNTED, "contents", "sqlite_sequence")
            if not any(_has_rows(connection, table) for table in tables):
                return ""
        return "the checksum of its records is missing"
    if remembered[CHECKSUM] != _checksum(rows):
        return "its records of the store fail their checksum"
    for key, value in rows:
        if key in _FORMS and not _FORMS[key](value):
            return f"its recorded {key} is not a possible value"
    if not {"files", "generation", "identity", "indexed"} <= remembered.keys():
        return "its generation is not recorded"
    if remembered["indexed"] > remembered["files"]:
        return "it records more searchable files than it has"
    given = _given(connection)
    if remembered.get(LAST_FILE, given) != given:
        return "the last file id is not the one that was given last"
    return ""


def _given(connection: sqlite3.Connection) -> Any:
    found = connection.execute(_GIVEN).fetchall()
    return found[0][0] if found else 0


def seal(connection: sqlite3.Connection, touched: Iterable[str]) -> None:
    """Remember the rows of tables that a transaction changed, and put the checksum over all.

    Args:
        connection: In the transaction that is about to be committed.
        touched: The tables.
    """
    before = _counts(connection)
    changed = {*touched, *(COUNTED - before.keys())} & COUNTED
    counts = before | {table: _count(connection, table) for table in changed}
    statement = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
    rows = orjson.dumps(counts, option=orjson.OPT_SORT_KEYS).decode()
    connection.executemany(statement, [(ROWS, rows), (LAST_FILE, _given(connection))])
    connection.execute(statement, (CHECKSUM, checksum(connection)))


def _value(connection: sqlite3.Connection, key: str) -> Any:
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    """The rows of each table at the last commit; empty where that was not remembered yet."""
    kept = _value(connection, ROWS)
    return dict(orjson.loads(kept)) if kept is not None else {}


def lost_rows(connection: sqlite3.Connection, *, every: bool) -> str:
    """Which table has other rows than it was left with, or "".

    Args:
        connection: Of a catalog whose remembered values are sound.
        every: Whether large tables are counted, too, and not only looked at for being empty.
    """
    for table, number in _counts(connection).items():
        if every or number <= _FEW or table in _NARROW:
            found = _count(connection, table)
        else:
            found = number if _has_rows(connection, table) else 0
        if found != number:
            return f"its table {table} had {number:,} rows when it was written, and has {found:,}"
    indexed = _value(connection, "indexed") or 0
    if every or indexed <= _FEW:
        is_whole = _count(connection, "contents") >= indexed
    else:
        is_whole = _has_rows(connection, "contents")
    return "" if is_whole else "its table contents lacks texts of searchable files"


def misplaced(connection: sqlite3.Connection, *, every: bool) -> str:
    """Whether files have other paths than the stat cache has names, or "".

    Args:
        connection: Of a catalog whose remembered values are sound.
        every: Whether each path is compared where there are many, and not only the first of those
            that lead elsewhere, and how many there are.
    """
    if connection.execute(_LEADS_OUT).fetchone() is not None:
        return "a file has a path that leads out of the tree, or is none"
    folders = connection.execute("SELECT path, names FROM main.folders").fetchall()
    files = _count(connection, "files")
    if every or files <= _COMPARED:
        starts = ((folder + b"/" if folder else b"", names) for folder, names in folders)
        seen = {start + name for start, names in starts for name in names.split(b"\0")}
        is_same = seen == {path for (path,) in connection.execute("SELECT path FROM main.files")}
    else:
        is_same = files == sum(names.count(b"\0") + 1 for _, names in folders)
    return "" if is_same else "its files have other paths than it saw in the tree"


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM main.{table}").fetchone()[0])


def _has_rows(connection: sqlite3.Connection, table: str) -> bool:
    return connection.execute(f"SELECT 1 FROM main.{table} LIMIT 1").fetchone() is not None


T = TypeVar("T")


class Snapshots(ABC):
    """An open connection, whose questions may see one generation together."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._made: dict[Hashable, Any] = {}
        """What was made of the catalog as it is in state `_state`; see `once`."""
        self._state = (0, 0)
        self._in_snapshot = False

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything asked inside sees one generation."""
        if self.connection.in_transaction:
            yield
            return
        with readable(), catalog_errors(self.problem):
            self.connection.execute("BEGIN")
            try:
                self.require_sound_memory()
                # The first tells of commits of others, the second of our own.
                state = (self.rows("PRAGMA data_version")[0][0], self.connection.total_changes)
                if state != self._state:
                    self._made.clear()
                    self._state = state
                self._in_snapshot = True
                yield
            finally:
                self._in_snapshot = False
                self.connection.execute("ROLLBACK")

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is made of the catalog alone, made once until the next commit.

        Args:
            key: Tells it from everything else that is made.
            make: Makes what is not to be changed.
        """
        if not self._in_snapshot:
            return make()
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one question."""
        return self.connection.execute(statement, values).fetchall()

    def rows_among(self, statement: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """All rows of one question with ``IN ({})`` about any number of values."""
        for batch in in_batches(list(values)):
            yield from self.rows(statement.format(placeholders(batch)), batch)

    def meta(self, key: str, default: Any = None) -> Any:
        """One remembered value."""
        with catalog_errors(self.problem):
            found = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,))
            row = found.fetchone()
        return default if row is None else row[0]

    def require_sound_memory(self) -> None:
        """Hold what is remembered against its checksum and its form; reads a few rows.

        Raises:
            CatalogDamagedError: It is not what the last commit wrote.
        """
        refuse(self.connection, problem)

    @abstractmethod
    def problem(self) -> str:
        """What is wrong with the catalog, or ""; for when in doubt."""
