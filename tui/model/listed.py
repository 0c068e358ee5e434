"""Rows that are all there: answers, neighbours, whatever is short enough to be a list. Pure."""

from collections.abc import Hashable, Sequence

from tui.words.lines import Line


class Listed:
    """Lines with their keys; see `tui.model.rows.Rows`. Of equal keys the first one is found."""

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

    def want(self, first: int, last: int) -> None:
        """Everything is there."""
