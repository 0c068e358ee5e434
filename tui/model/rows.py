"""Rows by number: what a list widget draws from, whatever stands behind it."""

from collections.abc import Hashable
from typing import Protocol

from tui.words.lines import Line


class Rows(Protocol):
    """Rows that are asked for by number, of which only those in sight need be there."""

    def __len__(self) -> int:
        """How many there are."""

    def row(self, index: int) -> Line | None:
        """One row, drawn; None while it is not there yet."""

    def key(self, index: int) -> Hashable:
        """What tells a row from every other, also after rows were added or went away.

        Always there, also for a row whose words are not.
        """

    def index_of(self, key: Hashable) -> int | None:
        """Where a row is now; None where it is not."""

    def want(self, first: int, last: int) -> None:
        """Have the rows from first up to, not including, last fetched where they are not there.

        Whoever made the rows tells the widget when they came (`VirtualRows.loaded`).
        """
