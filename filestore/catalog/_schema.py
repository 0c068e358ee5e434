"""The tables of the catalog, opening them whole or not at all, and the errors of damaged ones."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

from filestore.core.errors import UPGRADE, FilestoreError, on_error
from filestore.core.paths import sidecar_named
from filestore.fs import database, part
from filestore.fs.disk import pass_hidden_limits, pass_limits
from filestore.fs.stats import STAT_BYTES

SCHEMA_VERSION: Final = 7
"""Since 7 origins are short; long ones stay until their row is written again, and are read."""
_OLDEST: Final = 3
"""The oldest schema that a catalog is upgraded from."""
APPLICATION_ID: Final = 0x66736361  # "fsca"
MEMORY: Final = ":memory:"
"""Instead of a path: a catalog without a file."""
_BUSY_TIMEOUT_S: Final = 10.0

CHILDREN: Final = """
CREATE TABLE children (
  file INTEGER NOT NULL, path BLOB NOT NULL, key BLOB NOT NULL, PRIMARY KEY (file, path, key)
) WITHOUT ROWID;
CREATE INDEX children_by_path ON children (path);
"""
"""What schema 3 does not have."""
CHILDREN_SINCE: Final = 4
_FACTS_OF_SOURCES: Final = """
CREATE INDEX record_facts_by_source ON record_facts (source, resource);
"""
"""What schema 4 does not have."""
FACTS_SINCE: Final = 5
COMMITTED_FILES: Final = """
CREATE TABLE committed_files (
  path BLOB PRIMARY KEY, created INTEGER NOT NULL, updated INTEGER NOT NULL, edited INTEGER NOT NULL
) WITHOUT ROWID;
"""
"""What schema 5 does not have."""
_DATES_SINCE: Final = 6
TABLES: Final = f"""{CHILDREN}{COMMITTED_FILES}
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE folders (path BLOB PRIMARY KEY, names BLOB NOT NULL, stats BLOB NOT NULL);
CREATE TABLE files (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path BLOB NOT NULL UNIQUE,
  state TEXT NOT NULL,
  detail TEXT NOT NULL,
  file_hash BLOB NOT NULL,
  text_key BLOB NOT NULL,
  kind TEXT NOT NULL,
  resource TEXT NOT NULL,
  source TEXT,
  position TEXT,
  origin TEXT,
  edited INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  place TEXT NOT NULL,
  checksum BLOB NOT NULL
);
CREATE INDEX files_by_state ON files (state, path) WHERE state <> '';
CREATE INDEX files_edited ON files (path) WHERE edited <> 0;
CREATE INDEX files_by_resource ON files (resource);
CREATE TABLE contents (file INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE generated (origin TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE parts (
  file INTEGER NOT NULL, part INTEGER NOT NULL, vector INTEGER NOT NULL,
  PRIMARY KEY (file, part)
) WITHOUT ROWID;
CREATE INDEX parts_by_vector ON parts (vector, file, part);
CREATE TABLE vectors (id INTEGER PRIMARY KEY, key BLOB NOT NULL, embedded INTEGER NOT NULL);
CREATE INDEX vectors_missing ON vectors (id) WHERE embedded = 0;
CREATE TABLE index_delta (vector INTEGER PRIMARY KEY, present INTEGER NOT NULL);
CREATE TABLE facts (
  key TEXT NOT NULL, value TEXT NOT NULL, file INTEGER NOT NULL,
  PRIMARY KEY (key, value, file)
) WITHOUT ROWID;
CREATE INDEX facts_by_file ON facts (file);
CREATE TABLE records (
  path BLOB PRIMARY KEY, resource TEXT NOT NULL, source TEXT NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE record_facts (
  key TEXT NOT NULL, value TEXT NOT NULL, resource TEXT NOT NULL, source TEXT NOT NULL,
  PRIMARY KEY (key, value, resource, source)
) WITHOUT ROWID;{_FACTS_OF_SOURCES}
CREATE TABLE dead (file INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
CREATE TABLE documents (
  record BLOB NOT NULL, resource TEXT NOT NULL, source TEXT NOT NULL, hash TEXT NOT NULL,
  PRIMARY KEY (record, source)
) WITHOUT ROWID;
CREATE TABLE source_stats (
  source TEXT PRIMARY KEY, hash TEXT NOT NULL, stat BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE links (
  file INTEGER NOT NULL, target BLOB NOT NULL, PRIMARY KEY (file, target)
) WITHOUT ROWID;
CREATE INDEX links_by_target ON links (target);
CREATE TABLE renamed (old BLOB PRIMARY KEY, new BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX renamed_by_new ON renamed (new);
CREATE TABLE conflicts (
  path BLOB PRIMARY KEY, base TEXT NOT NULL, theirs BLOB, origin TEXT,
  headings TEXT NOT NULL, pages TEXT NOT NULL, detail TEXT NOT NULL,
  source TEXT NOT NULL, document TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE deleted (
  version BLOB NOT NULL, path BLOB NOT NULL, origin TEXT NOT NULL, source TEXT,
  PRIMARY KEY (version, path)
) WITHOUT ROWID;
CREATE TABLE forgotten (
  path BLOB PRIMARY KEY, file_hash BLOB NOT NULL, data BLOB NOT NULL, mtime_ns INTEGER NOT NULL,
  generation INTEGER NOT NULL
) WITHOUT ROWID;
"""
"""`files.state` is '' for an indexed chunk, 'record', or the code that excludes the file;
`files.place` its headings and pages as a JSON list of two, '' where it has neither.
`contents` keeps the last good bytes of each file, `generated` what an edited body was made from.
`vectors.embedded` is 0 for a text without its embedding, else when the model gave it, in seconds
since 1970, 1 where that is not known. `index_delta` is the difference to the FAISS file named in
`meta`, or to the backend: `present` is 0 for what is to go, 1 for what it lacks, 2 for what it has
with other paths or metadata; `dead` the file ids that the full-text index may still
hold. `documents` are the sources that records name, `source_stats` the stats under which their
files had a hash. `links` are a person's own from file to file, and of a document in place what its
links call their targets, `children` what a summary was made from, with the embedding key that its
text had (empty where the file names none), `committed_files` when files of the work tree were first
and last committed, in seconds since 1970, and whether they differed from that commit, `renamed` the
moves that were followed, `conflicts` new
source text that conflicts with a hand edit (none where the source text went) and the hash of
the document that has it, `forgotten` the last good bytes of files that are gone, `deleted` the
origins of the
chunk files that a person deleted from what a version of a record describes."""


class CatalogMissingError(FilestoreError, FileNotFoundError):
    """There is no catalog."""


class CatalogDamagedError(FilestoreError):
    """The catalog cannot be read."""


class CatalogOutdatedError(CatalogDamagedError):
    """The catalog was written by an older filestore; it is made again from the files."""


class CatalogUnreadableError(FilestoreError):
    """The machine does not give what the catalog holds at the moment; it may well be sound."""


class CatalogNewerError(FilestoreError):
    """The catalog was written by a newer filestore."""


class UnknownResourceError(FilestoreError, KeyError):
    """No resource has this name."""

    def __str__(self) -> str:
        return self.message


def connect(path: str, *, create: bool = False) -> sqlite3.Connection:
    """Open the catalog and check that it is one.

    Raises:
        CatalogMissingError: There is none, and none shall be made.
        CatalogDamagedError: The file is no sound catalog.
        CatalogNewerError: Its schema is newer than ours.
        sqlite3.OperationalError: It cannot be opened at all.
    """
    if not create and not os.path.lexists(path):
        raise CatalogMissingError("the store has no catalog yet", remedy="filestore sync")
    try:
        if create or os.access(os.path.dirname(path), os.W_OK):
            try:
                if not create and _has_log(path):
                    # The last writer to close it would write the log into the database.
                    return _open(path, "mode=ro")
                return _open(path, "mode=rwc" if create else "mode=rw", create=create)
            except sqlite3.OperationalError:
                if create:
                    raise
        # No shared memory can be made: the folder is read-only, or the disk is full.
        return _open_unwritable(path)
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_ERROR, None):
            # Not trouble of the moment: its header asks for a format that SQLite never had, or a
            # text of it is no Unicode, which Python says without a code.
            raise damaged(error) from error
        raise
    except (sqlite3.DatabaseError, part.NotAFileError, UnicodeDecodeError) as error:
        # SQLite quotes the name of a damaged table, which may be no text.
        raise damaged(error) from error


def _open(path: str, mode: str, *, create: bool = False) -> sqlite3.Connection:
    if path == MEMORY:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    else:
        connection = database.connect(path, mode, timeout_s=_BUSY_TIMEOUT_S)
    with on_error(connection.close):
        connection.execute("PRAGMA temp_store = MEMORY")
        _check(connection, create=create)
    return connection


def _has_log(path: str) -> bool:
    log = f"{path}-wal"
    return os.path.exists(log) and os.path.getsize(log) > 0


def _open_unwritable(path: str) -> sqlite3.Connection:
    """Open in place what no log changes under us, and else a copy of database and log."""
    log = f"{path}-wal"
    if not _has_log(path):
        return _open(path, "immutable=1")
    import shutil
    import tempfile

    copy = tempfile.mkdtemp(prefix="filestore-")
    try:
        # To close a handle of a database lets go of the locks of this process on it: where no
        # shared memory can be made, no other connection has any.
        for name in (path, log):
            with (
                open(part.open_file(name, os.O_RDONLY, kind="shared"), "rb") as source,
                open(os.path.join(copy, os.path.basename(name)), "xb") as target,
            ):
                shutil.copyfileobj(source, target)
        return _open(os.path.join(copy, os.path.basename(path)), "mode=rw")
    finally:
        # The open connection keeps the files; their names can go.
        shutil.rmtree(copy, ignore_errors=True)


def _check(connection: sqlite3.Connection, *, create: bool) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and version == 0 and create:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError("it is some other database")
        connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"
            f"{TABLES} PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {SCHEMA_VERSION};"
            f"INSERT INTO meta VALUES ('identity', '{os.urandom(16).hex()}'); COMMIT;"
        )
        return
    if application != APPLICATION_ID:
        raise sqlite3.DatabaseError("it is not a filestore catalog")
    if version > SCHEMA_VERSION:
        folder, name = os.path.split(connection.execute("PRAGMA database_list").fetchone()[2])
        # As findings name it.
        named = f"{sidecar_named(os.path.basename(folder))}/{name}"
        raise CatalogNewerError(
            f"the catalog has schema {version}, this filestore knows {SCHEMA_VERSION}",
            remedy=f"{UPGRADE}, or delete {named} and run 'filestore sync'",
        )
    if version < _OLDEST:
        raise CatalogOutdatedError(
            f"the catalog has schema {version}, this filestore writes {SCHEMA_VERSION}",
            remedy="'filestore sync' makes it again; known passages are not embedded again",
        )
    tables = _tables(TABLES)
    if version < FACTS_SINCE:
        tables -= _tables(_FACTS_OF_SOURCES)
    for added in _added_since(version):
        # Nothing was known of it then. A reader sees an empty table, a writer makes it.
        connection.executescript(
            added.replace("CREATE TABLE", "CREATE TEMP TABLE", 1).replace(
                "INDEX children", "INDEX temp.children"
            )
        )
        tables -= _tables(added)
    expected = {*tables, "CREATE TABLE sqlite_sequence(name,seq)", None}  # by AUTOINCREMENT
    if {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")} != expected:
        raise sqlite3.DatabaseError("its tables have another shape")
    connection.execute("PRAGMA synchronous = FULL")


def _tables(statements: str) -> set[str]:
    return {statement.strip() for statement in statements.split(";") if statement.strip()}


def _added_since(version: int) -> list[str]:
    """The tables that a schema before this one does not have."""
    added = ((CHILDREN_SINCE, CHILDREN), (_DATES_SINCE, COMMITTED_FILES))
    return [tables for since, tables in added if version < since]


def upgrade(connection: sqlite3.Connection) -> int:
    """Bring a catalog of a schema before up to this one, inside a transaction.

    Returns:
        The schema that it had.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    statements: set[str] = set()
    if version < CHILDREN_SINCE:
        connection.execute("DROP TABLE temp.children")
    if version < _DATES_SINCE:
        connection.execute("DROP TABLE temp.committed_files")
    for added in _added_since(version):
        statements |= _tables(added)
    if version < FACTS_SINCE:
        statements |= _tables(_FACTS_OF_SOURCES)
    for statement in sorted(statements, reverse=True):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return int(version)


def damaged(error: Exception, *, command: str = "filestore sync") -> CatalogDamagedError:
    """Say that the catalog is damaged.

    Args:
        error: How that shows.
        command: What sees the same: not every sync comes across a row that somebody else reads.
    """
    return CatalogDamagedError(
        f"the catalog is damaged: {error}",
        remedy=f"'{command}' rebuilds it (the old one is kept)",
        detail=str(error),
    )


METRIC: Final = "metric"
"""The key under which the catalog remembers what its vectors are compared by."""
CHUNKER: Final = "chunker"
"""The label of how all documents in place are cut."""


_DAMAGE: Final = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_IOERR_SHORT_READ, None})
"""Operational errors that tell of damage: statements that fitted fail, the file is cut, or a text
is no Unicode, which Python says without a code."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error of SQLite tells of damage, and not of trouble of the moment."""
    is_operational = isinstance(error, sqlite3.OperationalError)
    return not is_operational or getattr(error, "sqlite_errorcode", None) in _DAMAGE


_THOROUGH: Final = "filestore sync --full"
WRONG_VALUES: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What becomes of a number where bytes were written, or of half a name."""


@contextlib.contextmanager
def catalog_errors(find: Callable[[], str] | None = None) -> Iterator[None]:
    """Turn what is raised over a damaged file into `CatalogDamagedError`.

    Operational trouble (a full disk, a lock) says nothing about damage and passes.

    Args:
        find: See `Catalog.problem`. Where given, an impossible value counts as damage if it finds
            some, else as what it is.
    """
    try:
        yield
    except FilestoreError:
        raise
    except sqlite3.OperationalError as error:
        if is_damage(error):
            raise damaged(error, command=_THOROUGH) from error
        pass_hidden_limits(error)
        raise
    except MemoryError as error:
        pass_limits(error)
        raise
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
            # Our authorizer refuses nothing: an interruption was raised in it, and SQLite ate it.
            raise KeyboardInterrupt from error
        raise damaged(error, command=_THOROUGH) from error
    except WRONG_VALUES as error:
        if find is not None and (problem := find()):
            raise damaged(sqlite3.DatabaseError(problem), command=_THOROUGH) from error
        raise


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Turn what a disk or a lock refuses to a reader into `CatalogUnreadableError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise CatalogUnreadableError(
            f"the databases of the store cannot be read at the moment: {error}",
            remedy="check the disk, or wait for the writer; then try again",
            detail=str(error),
        ) from error


@contextlib.contextmanager
def written_by_us() -> Iterator[None]:
    """Values that only we write, and that are not what we write, are damage."""
    try:
        yield
    except WRONG_VALUES as error:
        raise damaged(error, command=_THOROUGH) from error


def refuse(connection: sqlite3.Connection, find: Callable[[sqlite3.Connection], str]) -> None:
    """Raise what a look at a few rows finds, all of one generation.

    Raises:
        CatalogDamagedError: Something is found.
    """
    with catalog_errors(), written_by_us(), one_generation(connection):
        wrong = find(connection)
    if wrong:
        raise damaged(sqlite3.DatabaseError(wrong))


@contextlib.contextmanager
def one_generation(connection: sqlite3.Connection) -> Iterator[None]:
    """Between two questions a writer may commit: rows of two generations do not agree."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def type_problem(connection: sqlite3.Connection) -> str:
    """Which column has a value of another type than was declared, or ""; reads all tables."""
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        for _, column, declared, needed, *_ in connection.execute(
            f"PRAGMA main.table_info({table})"
        ):
            allowed = f"'{declared.lower()}'" + ("" if needed else ", 'null'")
            wrong = f"SELECT 1 FROM main.{table} WHERE typeof({column}) NOT IN ({allowed}) LIMIT 1"
            if declared and connection.execute(wrong).fetchone():
                return f"a value of {table}.{column} is of the wrong type"
    for names, stats in connection.execute("SELECT names, stats FROM main.folders"):
        if len(stats) != STAT_BYTES * (names.count(b"\0") + 1):
            return "a folder has more names than stats, or fewer"
    return ""
