"""A line of words, some of which can be pressed: the head and the foot of the screen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from textual.events import Click
from textual.message import Message
from textual.strip import Strip

from tui.widgets.cells import cells, fitted, strip
from tui.widgets.styles import Drawn
from tui.words.lines import Line, Span, plain

GAP: Final = 2
"""Columns between two items."""
LEAST: Final = 8
"""Columns in which words on the right still say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Some words of a bar."""

    line: Line
    press: str = ""
    """What `Bar.Pressed` tells when somebody clicks on it; "" for words that only say something."""
    gives_way: int = 0
    """Where there is no room for all, the items with the highest number go first; those with 0
    only where there is no room for them, from the right."""


class Bar(Drawn, can_focus=False):
    """Items from the left, and words that keep to the right, cut where the items need the room."""

    DEFAULT_CSS: ClassVar[str] = "Bar { height: 1; width: 100%; overflow: hidden; }"

    class Pressed(Message):
        """Somebody clicked on an item."""

        def __init__(self, press: str) -> None:
            super().__init__()
            self.press = press

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._left: Sequence[Item] = []
        self._right: Line = ()

    def show(self, left: Sequence[Item], right: Line = ()) -> None:
        """Show items from the left and words on the right."""
        left = [replace(item, line=self.written(item.line)) for item in left]
        right = self.written(right)
        if (self._left, self._right) != (left, right):
            self._left, self._right = left, right
            self.refresh()

    @property
    def plain(self) -> str:
        """All its words, also those that found no room."""
        return "  ".join(plain([one]) for one in [*(item.line for item in self._left), self._right])

    def render_line(self, y: int) -> Strip:
        """Draw it: the items that fit before the words on the right."""
        width = self.size.width
        line: Line = ()
        end = 0
        for first, last, item in self._placed():
            line += (Span(" " * (first - end)), *item.line)
            end = last
        room = width - end - (GAP if end else 0)
        right = fitted(self._right, room, self.ellipsis) if room >= LEAST else ()
        line += (Span(" " * (width - end - cells(right))), *right)
        return strip(line, width, self.style_of, self.rich_style)

    def _placed(self) -> Iterator[tuple[int, int, Item]]:
        """From which column to which each item is drawn."""
        at = 0
        for item in self._kept():
            last = at + cells(item.line)
            if last > self.size.width:
                return
            yield at, last, item
            at = last + GAP

    def _kept(self) -> list[Item]:
        """The items that do not give way."""
        kept = list(self._left)
        while True:
            needed = sum(cells(item.line) + GAP for item in kept) + cells(self._right)
            first = max(kept, key=lambda item: item.gives_way, default=None)
            if first is None or not first.gives_way or needed <= self.size.width:
                return kept
            kept.remove(first)

    def on_click(self, event: Click) -> None:
        """Tell which item was clicked on."""
        for first, last, item in self._placed():
            if first <= event.x < last and item.press:
                self.post_message(self.Pressed(item.press))
