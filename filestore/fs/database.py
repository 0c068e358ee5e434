"""Reading what is left of a SQLite file that is damaged, or that a stranger made, and removing it.

Knows no table of ours. One rule: whatever the file says of itself, only plain tables are read, and
no more work is done, nor more bytes taken, than a file of its size can ask for.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, Final

from filestore.core.errors import on_error
from filestore.fs import part

UNREADABLE: Final = (sqlite3.Error, UnicodeDecodeError)
"""How reading fails: SQLite quotes the name of a damaged table, which may be no text."""
MAX_ROW_BYTES: Final = 64 * 1024 * 1024
"""Nothing of ours is as large: a file of the tree that is larger is left out."""
_STEPS: Final = 20_000_000
"""The steps of SQLite's machine that any file may take, a second or so of work."""
_STEPS_PER_BYTE: Final = 2
"""A row takes some ten steps and at least as many bytes."""
_STEPS_AT_ONCE: Final = 100_000
_MAKING: Final = "mode=rwc"


def connect(
    path: str, mode: str, *, timeout_s: float = 5.0, kind: part.Kind = "file"
) -> sqlite3.Connection:
    """Open a database of ours, without implicit transactions and for any thread.

    Args:
        path: Where the file is.
        mode: How to open it, as a query of SQLite's URIs: ``mode=ro``; ``mode=rwc`` makes it.
        timeout_s: How long to wait for another process's lock.
        kind: ``shared`` where the mode is one that never writes; one that is immutable never does.

    Raises:
        NotAFileError, UnsafePartError: The file, or one that SQLite opens with it, is not ours.
        sqlite3.Error: It cannot be opened.
    """
    for suffix in part.DATABASE_SUFFIXES:
        part.check(path + suffix, "shared" if "immutable=1" in mode else kind)
    if mode == _MAKING:
        # SQLite would make it through a link that appeared just now. One that is there stays shut:
        # to close a handle of it lets go of every lock that this process has on it.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        with suppress(OSError):
            os.close(part.open_file(path, flags, mode=0o644))
        mode = "mode=rw"
    # Every byte of the path in hexadecimal: what quotes only some takes longer to load.
    address = f"file:%{os.fsencode(os.path.abspath(path)).hex('%')}?{mode}"
    connection = sqlite3.connect(
        address, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False
    )
    with on_error(connection.close):
        # SQLite resolves links as it makes the name absolute, and follows none as it opens that
        # name: what it reached through a link shows, and nothing of it was read or written yet.
        folder, name = os.path.split(os.path.abspath(path))
        connection.text_factory = bytes
        opened = connection.execute("PRAGMA database_list").fetchone()[2]
        connection.text_factory = str
        if opened != os.fsencode(os.path.join(os.path.realpath(folder), name)):
            raise part.not_a_file(path, "is a symbolic link, not a regular file")
        # A file from a stranger may hold code: views and triggers are not to call functions.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    return connection


def copy(path: str, target: str) -> None:
    """Write a copy of a database that others may have open, this process among them.

    Raises:
        NotAFileError, UnsafePartError: See `connect`.
        sqlite3.Error: It cannot be read, or the copy not be written.
    """
    with (
        closing(connect(path, "mode=ro", kind="shared")) as source,
        closing(connect(target, _MAKING)) as made,
    ):
        source.backup(made)


def remove(path: str) -> None:
    """`part.remove` for an ordinary path.

    Raises:
        UnsafePartError: It is, or holds, what is not the user's.
        OSError: It stays.
    """
    folder, name = os.path.split(path)
    with part.folder_of(folder) as handle:
        part.remove(handle, name)


def size_bytes(path: str) -> int:
    """How large a file and its write-ahead log are; none of its rows can have more bytes."""
    found = 0
    for name in (path, f"{path}-wal"):
        with suppress(OSError):
            found += os.stat(name, follow_symlinks=False).st_size
    return found


def open_untrusted(path: str, *, timeout_s: float = 5.0) -> sqlite3.Connection:
    """The file, read only; its log is read as far as it holds.

    Raises:
        sqlite3.Error: SQLite will not even look, or there is no regular file.
        UnicodeDecodeError: The same, where it says so in bytes that are no text.
    """
    # A damaged file is never written; without a log, immutable leaves no other files.
    mode = "mode=ro" if os.path.exists(f"{path}-wal") else "mode=ro&immutable=1"
    try:
        connection = connect(path, mode, timeout_s=timeout_s, kind="shared")
    except part.NotAFileError as error:
        raise sqlite3.DatabaseError(error.message) from error
    with on_error(connection.close):
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
        connection.set_progress_handler(_Allowance(size_bytes(path)), _STEPS_AT_ONCE)
        # Lets SQLite open a file that is shorter than its header says.
        connection.execute("PRAGMA writable_schema = ON")
    return connection


class _Allowance:
    """Ends the work on a file that leads around in circles."""

    def __init__(self, size: int) -> None:
        self._left = (_STEPS + _STEPS_PER_BYTE * size) // _STEPS_AT_ONCE

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


def is_plain_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a name is that of a table whose rows are stored, and not computed as they are read.

    The type that the file gives is not asked: SQLite goes by the statement alone.
    """
    try:
        found = connection.execute(
            "SELECT sql FROM sqlite_master WHERE lower(name) = lower(?)", (name,)
        ).fetchall()
        if [str(sql)[:13].upper() for (sql,) in found] != ["CREATE TABLE "]:
            return False
        columns = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
    except UNREADABLE:
        return False
    return bool(columns) and not any(hidden for *_, hidden in columns)


def stored_values(path: str, table: str, column: str) -> Iterator[Any]:
    """A column of a database that another library is about to read, as that will find it.

    Args:
        path: Where it is; what a kill left of it is rolled back.
        table: Its name, one of our own.
        column: The same.

    Raises:
        sqlite3.Error: It cannot be read, or its rows are computed and may differ each time.
    """
    with closing(connect(path, "mode=rw")) as connection:
        if not is_plain_table(connection, table):
            raise sqlite3.DatabaseError(f"{table} is not a plain table")
        for (value,) in connection.execute(f"SELECT {column} FROM {table}"):
            yield value
