"""A picture made of lines for the size it has, with a cursor that points at its cells."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from tui.widgets.cells import PLAIN, fitted, strip
from tui.widgets.styles import Drawn
from tui.words.lines import Line

POINTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("up,k", "move(0, -1)", "point further up"),
    ("down,j", "move(0, 1)", "point further down"),
    ("left,h", "move(-1, 0)", "point further left"),
    ("right,l", "move(1, 0)", "point further right"),
    ("enter", "choose", "choose what is pointed at"),
)
"""Keys, action and help of what every picture does by itself."""
_POINTED: Final = Style(reverse=True, bold=True)

Draw = Callable[[int, int], Sequence[Line]]
"""Gives a picture of a width and a height in cells."""


class Plot(Drawn, can_focus=True, inherit_bindings=False):
    """A picture; arrows and clicks point at a cell of it, enter and a double click choose it."""

    DEFAULT_CSS: ClassVar[str] = "Plot { overflow: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(keys, action, help, show=False) for keys, action, help in POINTS
    ]

    class Pointed(Message):
        """Another cell is pointed at."""

        def __init__(self, plot: "Plot", x: int, y: int) -> None:
            super().__init__()
            self.plot = plot
            self.x = x
            self.y = y

    class Chosen(Message):
        """Enter, or a double click, on a cell."""

        def __init__(self, plot: "Plot", x: int, y: int) -> None:
            super().__init__()
            self.plot = plot
            self.x = x
            self.y = y

    def __init__(self, draw: Draw, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._draw = draw
        self._lines: Sequence[Line] = ()
        self._lines_size: Size | None = None
        self._point = (0, 0)

    @property
    def point(self) -> tuple[int, int]:
        """The cell that is pointed at: column and row."""
        return self._point

    def point_at(self, x: int, y: int) -> None:
        """Point at a cell, or the nearest there is."""
        width, height = self.size
        point = (min(max(x, 0), max(width - 1, 0)), min(max(y, 0), max(height - 1, 0)))
        if point != self._point:
            self._point = point
            self.refresh()
            self.post_message(self.Pointed(self, *point))

    def draw_again(self) -> None:
        """Have the picture drawn: what it shows is another one."""
        self._lines_size = None
        self.refresh()

    def on_resize(self) -> None:
        """Point at a cell that there is."""
        self.point_at(*self._point)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Have the picture drawn where it is not for this size, and draw some of its lines."""
        if self._lines_size != self.size:
            self._lines_size = self.size
            self._lines = self._draw(*self.size)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the picture."""
        width = self.size.width
        found = self._lines[y] if y < len(self._lines) else ()
        drawn = strip(fitted(self.written(found), width, self.ellipsis), width, self.style_of, None)
        if self.has_focus and y == self._point[1]:
            return _pointed(drawn, self._point[0])
        return drawn

    def action_move(self, right: int, down: int) -> None:
        """Point at a cell beside the one that is."""
        self.point_at(self._point[0] + right, self._point[1] + down)

    def action_choose(self) -> None:
        """Choose what is pointed at."""
        self.post_message(self.Chosen(self, *self._point))

    def on_click(self, event: events.Click) -> None:
        """Point at the cell; a double click chooses it."""
        offset = event.get_content_offset(self)
        if offset is not None:
            event.stop()
            self.point_at(*offset)
            if event.chain == 2:
                self.action_choose()


def _pointed(drawn: Strip, x: int) -> Strip:
    """A line with one of its cells shown as pointed at."""
    before, cell, after = drawn.crop(0, x), drawn.crop(x, x + 1), drawn.crop(x + 1)
    shown = [Segment(text, (style or PLAIN) + _POINTED) for text, style, _ in cell]
    return Strip.join([before, Strip(shown, cell.cell_length), after])
