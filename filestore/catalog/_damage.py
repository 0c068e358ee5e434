"""Errors of a damaged catalog, separate from those of the machine and of ours."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from filestore.catalog._schema import CatalogUnreadableError, damaged
from filestore.core.errors import FilestoreError
from filestore.fs.disk import pass_hidden_limits, pass_limits
from filestore.fs.stats import STAT_BYTES


class Suspect(Protocol):
    """A catalog that may be damaged."""

    connection: sqlite3.Connection

    def problem(self) -> str:
        """See `Catalog`."""
        ...


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
def catalog_errors(catalog: Suspect | None = None) -> Iterator[None]:
    """Turn what is raised over a damaged file into `CatalogDamagedError`.

    Operational trouble (a full disk, a lock) says nothing about damage and passes.

    Args:
        catalog: Where given, an impossible value counts as damage: it is
            damage if the catalog turns out to be damaged, else what it is.
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
        problem = _problem_now(catalog) if catalog is not None else ""
        if problem:
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
    with catalog_errors(), written_by_us(), _one_generation(connection):
        wrong = find(connection)
    if wrong:
        raise damaged(sqlite3.DatabaseError(wrong))


def _problem_now(catalog: Suspect) -> str:
    with _one_generation(catalog.connection):
        return catalog.problem()


@contextlib.contextmanager
def _one_generation(connection: sqlite3.Connection) -> Iterator[None]:
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
        for _, column, declared, needed, *_ in connection.execute(f"PRAGMA table_info({table})"):
            allowed = f"'{declared.lower()}'" + ("" if needed else ", 'null'")
            wrong = f"SELECT 1 FROM {table} WHERE typeof({column}) NOT IN ({allowed}) LIMIT 1"
            if declared and connection.execute(wrong).fetchone():
                return f"a value of {table}.{column} is of the wrong type"
    for names, stats in connection.execute("SELECT names, stats FROM folders"):
        if len(stats) != STAT_BYTES * (names.count(b"\0") + 1):
            return "a folder has more names than stats, or fewer"
    return ""
