"""A picture made of lines for the size it has, with a cursor that goes from point to point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from tui.formatting.lines import Line
from tui.widgets.cells import PLAIN, fitted, strip
from tui.widgets.styles import Drawn

_POINTED: Final = Style(reverse=True, bold=True)

Draw = Callable[[int, int], Sequence[Line]]
"""Gives a picture of a width and a height in cells."""
Step = Callable[[tuple[int, int], int, int], tuple[int, int]]
"""Gives the next point from a column and row, so far to the right and down."""


class Plot(Drawn, can_focus=True, inherit_bindings=False):
    """A picture; arrows go to its points, a click to any cell; enter and a double click choose."""

    DEFAULT_CSS: ClassVar[str] = "Plot { overflow: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "move(0, -1)", "the next point above"),
        ("down,j", "move(0, 1)", "the next point below"),
        ("left,h", "move(-1, 0)", "the next point to the left"),
        ("right,l", "move(1, 0)", "the next point to the right"),
        ("enter", "choose", "choose what is pointed at"),
    ]

    @dataclass
    class Pointed(Message):
        """Another cell is pointed at."""

        x: int
        y: int

    @dataclass
    class Chosen(Message):
        """Enter, or a double click, on a cell."""

        x: int
        y: int

    def __init__(self, draw: Draw, step: Step, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._draw = draw
        self._step = step
        self._lines: Sequence[Line] = ()
        self._lines_size: Size | None = None
        self.point = (0, 0)
        """The cell that is pointed at: column and row."""

    def point_at(self, x: int, y: int) -> None:
        """Point at a cell, or the nearest there is."""
        width, height = self.size
        point = (min(max(x, 0), max(width - 1, 0)), min(max(y, 0), max(height - 1, 0)))
        if point != self.point:
            self.point = point
            self.refresh()
            self.post_message(self.Pointed(*point))

    def draw_again(self) -> None:
        """Draw the picture again: its content changed."""
        self._lines_size = None
        self.refresh()

    def on_resize(self) -> None:
        """Keep the point inside the picture."""
        self.point_at(*self.point)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the picture for a new size, and some of its lines."""
        if self._lines_size != self.size:
            self._lines_size = self.size
            self._lines = self._draw(*self.size)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the picture."""
        width = self.size.width
        found = self._lines[y] if y < len(self._lines) else ()
        drawn = strip(fitted(self.written(found), width, self.ellipsis), width, self.style_of, None)
        if self.has_focus and y == self.point[1]:
            # A line with one of its cells shown as pointed at.
            x = self.point[0]
            before, cell, after = drawn.crop(0, x), drawn.crop(x, x + 1), drawn.crop(x + 1)
            shown = [Segment(text, (style or PLAIN) + _POINTED) for text, style, _ in cell]
            return Strip.join([before, Strip(shown, cell.cell_length), after])
        return drawn

    def action_move(self, right: int, down: int) -> None:
        """Go to the next point in a direction."""
        self.point_at(*self._step(self.point, right, down))

    def action_choose(self) -> None:
        """Choose what is pointed at."""
        self.post_message(self.Chosen(*self.point))

    def on_click(self, event: events.Click) -> None:
        """Point at the cell; a double click chooses it."""
        offset = event.get_content_offset(self)
        if offset is not None:
            event.stop()
            self.point_at(*offset)
            if event.chain == 2:
                self.action_choose()
