"""Rows by number: what a list widget draws from; `Listed` for short lists. Pure."""

from collections.abc import Hashable, Sequence
from typing import Protocol

from tui.formatting.lines import Line


class Rows(Protocol):
    """Rows by number, of which only those in sight need be there."""

    def __len__(self) -> int:
        """How many there are."""

    def row(self, index: int) -> Line | None:
        """One row, drawn; None while it is not there yet."""

    def key(self, index: int) -> Hashable:
        """The identity of a row, whatever is added or removed; known also for a row not fetched."""

    def index_of(self, key: Hashable) -> int | None:
        """Where a row is now; None where it is not."""

    def want(self, first: int, last: int) -> None:
        """Have the rows from first up to, not including, last fetched where they are not there.

        Whoever fetches them calls `VirtualRows.loaded`. Nothing to do where all are there.
        """
        return


class Listed(Rows):
    """Lines with their keys. Of equal keys the first one is found."""

    def __init__(self, rows: Sequence[tuple[Hashable, Line]] = ()) -> None:
        self._rows = rows
        self._places: dict[Hashable, int] = {}
        for place, (key, _) in enumerate(rows):
            self._places.setdefault(key, place)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    def row(self, index: int) -> Line | None:
        """One line."""
        return self._rows[index][1]

    def key(self, index: int) -> Hashable:
        """Its key."""
        return self._rows[index][0]

    def index_of(self, key: Hashable) -> int | None:
        """Where the line of a key is."""
        return self._places.get(key)
