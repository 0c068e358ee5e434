"""Lines that are shown at the edges: a bar of items that are pressed, and a caption that wraps.

One rule: where there is no room, what matters less goes first, and nothing is cut in a wide sign.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from textual.events import Click
from textual.message import Message
from textual.strip import Strip

from tui.formatting import Line, Span
from tui.widgets.drawing import Drawn, cells, fitted, strip, wrapped

GAP: Final = 2
"""Columns between two items."""
LEAST: Final = 8
"""The least columns for the text on the right."""


class Item(Struct, frozen=True):
    """An item of a bar."""

    line: Line
    press: str = ""
    """Sent with `Bar.Pressed` on a click; "" for plain text."""
    gives_way: int = 0
    """Where there is no room for all, the items with the highest number go first; those with 0
    only where there is no room for them, from the right."""


class Bar(Drawn, can_focus=False):
    """Items on the left, text on the right, cut where the items need the room."""

    DEFAULT_CSS: ClassVar[str] = "Bar { height: 1; width: 100%; overflow: hidden; }"

    @dataclass
    class Pressed(Message):
        """An item was clicked."""

        press: str

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._left: Sequence[Item] = []
        self._right: Line = ()

    def show(self, left: Sequence[Item], right: Line = ()) -> None:
        """Show items on the left and text on the right."""
        left = [replace(item, line=self.written(item.line)) for item in left]
        right = self.written(right)
        if (self._left, self._right) != (left, right):
            self._left, self._right = left, right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw it: the items that fit before the text on the right."""
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
        """From which column to which each item is drawn for which there is room."""
        # A long text on the right is cut before anything gives way to it.
        kept, right = list(self._left), min(cells(self._right), self.size.width // 3)
        while sum(cells(item.line) + GAP for item in kept) + right > self.size.width:
            first = max(kept, key=lambda item: item.gives_way, default=None)
            if first is None or not first.gives_way:
                break
            kept.remove(first)
        at = 0
        for item in kept:
            last = at + cells(item.line)
            if last > self.size.width:
                return
            yield at, last, item
            at = last + GAP

    def on_click(self, event: Click) -> None:
        """Post which item was clicked."""
        for first, last, item in self._placed():
            if first <= event.x < last and item.press:
                self.post_message(self.Pressed(item.press))


class Caption(Drawn, can_focus=False):
    """As high as its lines, wrapped, up to a limit; not there at all while it has none."""

    DEFAULT_CSS = "Caption { height: 1; overflow: hidden; }"

    def __init__(self, *, id: str | None = None, most: int = 4) -> None:
        """Nothing is shown yet.

        Args:
            id: Of the widget.
            most: The rows that are shown.
        """
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._rows: Sequence[Line] = ()
        self._most = most
        self.display = False

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines, in as much room as they need."""
        if lines != self._lines:
            self._lines = lines
            self.display = bool(lines)
            self._lay()

    def on_resize(self) -> None:
        """Wrap the lines to the new width."""
        self._lay()

    def _lay(self) -> None:
        width = self.scrollable_content_region.width
        rows = list(map(self.written, self._lines))
        if width:
            rows = wrapped(rows, width)
            if len(rows) > self._most:
                rows[self._most - 1] += (Span(" " * width),)
        height = min(max(len(rows), 1), self._most)
        if self.styles.height is None or self.styles.height.value != height:
            self.styles.height = height
        self._rows = rows[:height]
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one of its rows."""
        width = self.size.width
        line = fitted(self._rows[y] if y < len(self._rows) else (), width, self.ellipsis)
        return strip(line, width, self.style_of, self.rich_style)
