"""One generation of the catalog at a time, and what was made of it."""

import contextlib
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from filestore.catalog import _remembered
from filestore.catalog._damage import catalog_errors, readable, refuse

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
        with readable(), catalog_errors(self):
            self.connection.execute("BEGIN")
            try:
                self.require_sound_memory()
                self._forget_other_states()
                self._in_snapshot = True
                yield
            finally:
                self._in_snapshot = False
                self.connection.execute("ROLLBACK")

    def _forget_other_states(self) -> None:
        # The first tells of commits of others, the second of our own.
        state = (self.rows("PRAGMA data_version")[0][0], self.connection.total_changes)
        if state != self._state:
            self._made.clear()
            self._state = state

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is made of the catalog alone, made once until the next commit.

        Args:
            key: Tells it from everything else that is made.
            make: Makes what nobody changes.
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

    def meta(self, key: str, default: Any = None) -> Any:
        """One remembered value."""
        with catalog_errors(self):
            found = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,))
            row = found.fetchone()
        return default if row is None else row[0]

    def require_sound_memory(self) -> None:
        """Hold what is remembered against its checksum and its form; reads a few rows.

        Raises:
            CatalogDamagedError: It is not what the last commit wrote.
        """
        refuse(self.connection, _remembered.problem)

    @abstractmethod
    def problem(self) -> str:
        """What is wrong with the catalog, or ""; for when in doubt."""
