"""A few lines above or below something else, cut where they do not fit."""

from collections.abc import Sequence

from textual.strip import Strip

from tui.formatting.lines import Line, plain
from tui.widgets.cells import fitted, strip
from tui.widgets.styles import Drawn


class Caption(Drawn, can_focus=False):
    """As high as it has lines, up to a limit; not there at all while it has none."""

    DEFAULT_CSS = "Caption { height: 1; overflow: hidden; }"

    def __init__(self, *, id: str | None = None, most: int = 4) -> None:
        """Nothing is shown yet.

        Args:
            id: Of the widget.
            most: The lines that are shown.
        """
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._most = most
        self.display = False

    @property
    def plain(self) -> str:
        """Its text."""
        return plain(self._lines)

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines, in as much room as they need."""
        if lines == self._lines:
            return
        if len(lines) != len(self._lines):
            self.styles.height = min(max(len(lines), 1), self._most)
            self.display = bool(lines)
        self._lines = lines
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one of its lines."""
        width = self.size.width
        found = self._lines[y] if y < min(len(self._lines), self._most) else ()
        line = fitted(self.written(found), width, self.ellipsis)
        return strip(line, width, self.style_of, self.rich_style)
