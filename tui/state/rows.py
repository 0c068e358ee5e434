"""The rows of a list by number, and those that are marked. Pure."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, Protocol

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


class Marking:
    """Marked keys, in a set that may be shared."""

    def __init__(self) -> None:
        self.keys: set[Any] = set()
        self.begun_at: Hashable | None = None
        """Where the range begins; None while there is none."""
        self._ranged: set[Hashable] = set()
        self._added: list[Any] = []
        self._removed: list[Any] = []

    def changes(self) -> tuple[list[Any], list[Any]]:
        """The keys that were marked, and those that were unmarked, since this was asked last."""
        changes = self._added, self._removed
        self._added, self._removed = [], []
        return changes

    def add(self, keys: Iterable[Hashable]) -> None:
        """Mark keys."""
        added = {key for key in keys if key not in self.keys}
        self.keys.update(added)
        self._added += added

    def remove(self, keys: Iterable[Hashable]) -> None:
        """Unmark keys."""
        removed = {key for key in keys if key in self.keys}
        self.keys.difference_update(removed)
        self._removed += removed

    def toggle(self, keys: Collection[Hashable]) -> None:
        """Unmark keys that are all marked; mark them where one is not."""
        if self.keys.issuperset(keys):
            self.remove(keys)
        else:
            self.add(keys)

    def begin(self, key: Hashable) -> None:
        """Begin a range here."""
        self.end()
        self.begun_at = key

    def extend(self, keys: Collection[Hashable]) -> None:
        """Make the range these keys; what was marked before stays marked."""
        left = self._ranged.difference(keys)
        self.remove(left)
        came = {key for key in keys if key not in self.keys}
        self.add(came)
        self._ranged = (self._ranged - left) | came

    def end(self) -> None:
        """Keep the range."""
        self.begun_at = None
        self._ranged = set()

    def drop(self) -> bool:
        """Clear the range, or without one all marks; whether there was any."""
        if self.begun_at is not None:
            self.remove(self._ranged)
            self.end()
            return True
        if self.keys:
            self.remove(tuple(self.keys))
            return True
        return False
