"""The map of the vectors: a point a text, coloured by folder.

Asked for when it is first shown, and again after the store changed. One rule: a sample says so.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.strip import Strip

from filestore import FilestoreError
from tui.formatting import Line, error_lines, line
from tui.formatting import vector_map as texts
from tui.formatting.rows import is_folder
from tui.views.context import Jumped, ViewContext
from tui.widgets.drawing import PLAIN, Drawn, fitted, strip, wrapped
from tui.workers.tasks import Handlers, Job

if TYPE_CHECKING:
    from filestore.browse import VectorMap

_POINTED: Final = Style(reverse=True, bold=True)
_MOST_LEGEND: Final = 4
"""Rows of what the colours mean."""


class MapPane(Drawn, can_focus=True, inherit_bindings=False):
    """A title, the map, its legend, and what is pointed at, a row of the screen each or more."""

    DEFAULT_CSS: ClassVar[str] = "MapPane { overflow: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "move(0, -1)", "the next point above"),
        ("down,j", "move(0, 1)", "the next point below"),
        ("left,h", "move(-1, 0)", "the next point to the left"),
        ("right,l", "move(1, 0)", "the next point to the right"),
        ("enter", "choose", "go to its file"),
    ]

    def __init__(self, host: ViewContext) -> None:
        super().__init__(id="browse-map")
        self._host = host
        self._found: VectorMap | None = None
        self._error: FilestoreError | None = None
        self._grouped = texts.grouped(())
        self._points: dict[str, int] = {}
        """Path to the number of its point."""
        self._plotted: texts.Plotted | None = None
        self._path = ""
        self._resource: str | None = None
        self._marked: Collection[str] = ()
        self._at: int | None = None
        """The number of the point that is pointed at."""
        self._top = 0
        """The first row of the picture."""
        self._lines: Sequence[Line] = ()
        self._drawn_for: Size | None = None

    def show(self) -> None:
        """Show the map, once its data are there."""
        self.forget_drawn()
        if self._found is not None:
            return
        self._error = None
        self._host.task_manager.ask(
            Job(name="vector_map"),
            Handlers(
                then=self._take,
                failed=self._failed,
                stopped=lambda: self._failed(
                    FilestoreError("cancelled: press m twice to ask again")
                ),
            ),
            group="map",
            title="map of the vectors",
        )

    def _take(self, found: "VectorMap") -> None:
        self._found = found
        is_by_folder = self._host.findings.tree.has_sections
        names = texts.folders(found.paths) if is_by_folder else found.resources
        self._grouped = texts.grouped(names)
        self._points = {path: number for number, path in enumerate(found.paths)}
        self._at = None
        self.forget_drawn()

    def _failed(self, error: FilestoreError) -> None:
        self._error = error
        self.forget_drawn()

    def select(self, path: str = "", resource: str | None = None) -> None:
        """Mark the point of a file, or those of a resource or folder."""
        self._path, self._resource = path, resource
        self.forget_drawn()

    def mark(self, paths: Collection[str]) -> None:
        """Mark the points of these files, too."""
        self._marked = paths
        self.forget_drawn()

    def store_changed(self) -> None:
        """Drop the data; a map on the screen asks again."""
        self._found = self._plotted = self._error = None
        if self.display and self.size:
            self.show()

    # Drawing

    def forget_drawn(self) -> None:
        """Draw it again."""
        self._drawn_for = None
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw all of it for a new size, and some of its lines."""
        if self._drawn_for != self.size:
            self._drawn_for = self.size
            self._lines = list(map(self.written, self._draw(*self.size)))
        return super().render_lines(crop)

    def _draw(self, width: int, height: int) -> Sequence[Line]:
        found, letters = self._found, self.is_ascii or self.app.no_color
        if self._error is not None or found is None:
            title = error_lines(self._error) if self._error is not None else [texts.WORKING]
            return wrapped(title, width)
        shown = len(found.paths)
        title = [texts.map_title(shown=shown, total=found.total, explained=found.explained)]
        if self._path and self._path not in self._points:
            title.append(line("the file under the cursor is not on it", "quiet"))
        head = wrapped(title, width)
        legend = texts.legend_lines(self._grouped, width=width, letters=letters)[:_MOST_LEGEND]
        self._top, rows = len(head), max(height - len(head) - len(legend) - 1, 1)
        picture = texts.plotted(
            found.xs, found.ys, self._grouped.groups, width=max(width, 1), height=rows
        )
        self._plotted, of_path = picture, self._host.findings.index.of_path
        # What is under the cursor of the list, and what is marked there.
        paths, name = [self._path, *self._marked], self._resource
        selected = {self._points[path] for path in paths if path in self._points}
        if name is not None:
            below = name if is_folder(name) else "\0"
            of = enumerate(found.resources)
            selected |= {number for number, one in of if one == name or one.startswith(below)}
        drifted = (
            number
            for path, number in self._points.items()
            if any(finding.severity != "I" for finding in of_path(path))
        )
        lines = texts.map_lines(
            picture,
            drifted={picture.cells[number] for number in drifted},
            selected={picture.cells[number] for number in selected},
            letters=letters,
        )
        return [*head, *lines, *legend]

    def render_line(self, y: int) -> Strip:
        """Draw one line, and the cell that is pointed at in its own look."""
        width = self.size.width
        found = self._lines[y] if y < len(self._lines) else ()
        if self._found is not None and y == self.size.height - 1:
            inside = self._inside(*self.point)
            paths = [self._found.paths[number] for number in inside]
            found = texts.cell_line(paths, self._found.resources[inside[0]] if inside else "")
        drawn = strip(fitted(self.written(found), width, self.ellipsis), width, self.style_of, None)
        x, row = self.point
        if self.has_focus and self._at is not None and y == self._top + row:
            before, cell, after = drawn.crop(0, x), drawn.crop(x, x + 1), drawn.crop(x + 1)
            shown = [Segment(text, (style or PLAIN) + _POINTED) for text, style, _ in cell]
            return Strip.join([before, Strip(shown, cell.cell_length), after])
        return drawn

    # Pointing

    @property
    def point(self) -> tuple[int, int]:
        """Column and row, in the picture, of the cell that is pointed at."""
        if self._plotted is None or self._at is None:
            return -1, -1
        y, x = divmod(self._plotted.cells[self._at], self._plotted.width)
        return x, y

    def _inside(self, x: int, y: int) -> Sequence[int]:
        picture = self._plotted
        return () if picture is None else picture.members.get(y * picture.width + x, ())

    def _point_at(self, x: int, y: int) -> None:
        self._at = next(iter(self._inside(x, y)), None)
        self.refresh()

    def action_move(self, right: int, down: int) -> None:
        """Go to the next point in a direction."""
        if self._plotted is not None:
            self._point_at(*texts.next_cell(self._plotted, *self.point, right=right, down=down))

    def step(self, by: int) -> None:
        """Go to the next point in reading order, or the one before; from the last to the first."""
        if self._plotted is None or not self._plotted.members:
            return
        self.screen.set_focus(self)
        cells, width = sorted(self._plotted.members), self._plotted.width
        x, y = self.point
        cell = y * width + x
        at = bisect_left(cells, cell) + by if cell in self._plotted.members else min(by, 0)
        row, column = divmod(cells[at % len(cells)], width)
        self._point_at(column, row)

    def action_choose(self) -> None:
        """Go to the file of the point."""
        if self._found is not None and self._at is not None:
            self.post_message(Jumped(self._found.paths[self._at]))

    def on_click(self, event: Click) -> None:
        """Point at the cell; a double click goes to its file."""
        offset = event.get_content_offset(self)
        if offset is not None:
            event.stop()
            self._point_at(offset.x, offset.y - self._top)
            if event.chain == 2:
                self.action_choose()
