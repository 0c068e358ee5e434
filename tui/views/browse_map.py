"""The map of the vectors: a point a text, coloured by folder.

Asked for when it is first shown, and again after the store changed. One rule: a sample says so.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from filestore import FilestoreError
from tui.formatting import Line, line
from tui.formatting import vector_map as texts
from tui.formatting.chunks import error_lines
from tui.formatting.rows import is_folder
from tui.views.context import Jumped, ViewContext
from tui.widgets.drawing import PLAIN, Drawn, fitted, strip
from tui.widgets.text import Caption
from tui.workers.tasks import Handlers, Job

if TYPE_CHECKING:
    from filestore.browse import VectorMap

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

    def forget_drawn(self) -> None:
        """Draw the picture again the next time."""
        self._lines_size = None

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


LEGEND_LINES: Final = 4


class MapPane(Vertical):
    """The map, with a title above and a legend below."""

    DEFAULT_CSS: ClassVar[str] = "MapPane Plot { height: 1fr; }"

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
        self._drifted: tuple[int, frozenset[int]] = (-1, frozenset())
        """The version of the findings, and the points that had drifted then."""
        self._at: int | None = None
        """The point that is pointed at, which is in another cell of another size."""
        self.plot = Plot(self._draw, self._step, id="browse-plot")
        self._title_caption = Caption(id="browse-map-title")
        self._legend_caption = Caption(id="browse-legend", most=LEGEND_LINES)
        self._pointed_caption = Caption(id="browse-pointed")

    def compose(self) -> ComposeResult:
        """What it shows, the map, what the colours mean, what is pointed at."""
        yield self._title_caption
        yield self.plot
        yield self._legend_caption
        yield self._pointed_caption

    def show(self) -> None:
        """Show the map, once its data are there."""
        if self._found is None:
            self._error = None
            self._host.task_manager.ask(
                Job(name="vector_map"),
                Handlers(
                    then=self._take,
                    failed=self._failed,
                    stopped=lambda: self._failed(
                        FilestoreError("cancelled", remedy="press m twice to ask again")
                    ),
                ),
                group="map",
                title="map of the vectors",
            )
        self.call_after_refresh(self._redraw)  # until then it has no size

    def _take(self, found: "VectorMap") -> None:
        self._found = found
        is_by_folder = self._host.findings.tree.has_sections
        names = texts.folders(found.paths) if is_by_folder else found.resources
        self._grouped = texts.grouped(names)
        self._points = {path: number for number, path in enumerate(found.paths)}
        self._plotted = self._at = None
        self._drifted = (-1, frozenset())
        self._redraw()

    def _failed(self, error: FilestoreError) -> None:
        self._error = error
        self._redraw()

    def select(self, path: str = "", resource: str | None = None) -> None:
        """Mark the point of a file, or those of a resource or folder."""
        if (path, resource) != (self._path, self._resource):
            self._path, self._resource = path, resource
            self._redraw()

    def mark(self, paths: Collection[str]) -> None:
        """Mark the points of these files, too."""
        self._marked = paths
        self._redraw()

    @property
    def is_seen(self) -> bool:
        """Whether the map is on the screen."""
        return self.display and bool(self.size)

    def findings_changed(self) -> None:
        """Draw what drifted again."""
        self._redraw()

    def store_changed(self) -> None:
        """Drop the data; a map on the screen asks again."""
        self._found = self._plotted = self._error = None
        if self.is_seen:
            self.show()

    # Drawing

    def _redraw(self) -> None:
        if not self.is_seen:
            return
        title, legend, found = [line("map of the vectors: working …", "quiet")], [], self._found
        if found is not None:
            shown, width = len(found.paths), max(self.size.width - 2, 20)
            title = [texts.map_title(shown=shown, total=found.total, explained=found.explained)]
            if self._path and self._path not in self._points:
                title.append(line("the file under the cursor is not on it", "quiet"))
            legend = texts.legend_lines(self._grouped, width=width, letters=self._letters)
        self._title_caption.show(title if self._error is None else error_lines(self._error))
        self._legend_caption.show(legend)
        self.plot.forget_drawn()
        self.plot.refresh()

    @on(Resize)
    def _resized(self) -> None:
        # What is around the map is wrapped to the width, which is not known before.
        self.call_after_refresh(self._redraw)

    @property
    def _letters(self) -> bool:
        return self.plot.is_ascii or self.app.no_color

    def _draw(self, width: int, height: int) -> Sequence[Line]:
        found = self._found
        if found is None or width < 1 or height < 1:
            return ()
        picture = self._plotted
        if picture is None or (picture.width, picture.height) != (width, height):
            groups = self._grouped.groups
            picture = texts.plotted(found.xs, found.ys, groups, width=width, height=height)
            self._plotted = picture
            if self._at is not None:
                y, x = divmod(picture.cells[self._at], width)
                self.plot.point = x, y
        findings = self._host.findings
        if self._drifted[0] != findings.version:
            drifted = frozenset(
                number
                for number, path in enumerate(found.paths)
                if any(finding.severity != "I" for finding in findings.index.of_path(path))
            )
            self._drifted = (findings.version, drifted)
        # What is under the cursor of the list, and what is marked there.
        paths, name = [self._path, *self._marked], self._resource
        selected = {self._points[path] for path in paths if path in self._points}
        if name is not None:
            below = name if is_folder(name) else "\0"
            of = enumerate(found.resources)
            selected |= {number for number, one in of if one == name or one.startswith(below)}
        return texts.map_lines(
            picture,
            drifted={picture.cells[number] for number in self._drifted[1]},
            selected={picture.cells[number] for number in selected},
            letters=self._letters,
        )

    # Pointing

    def _step(self, at: tuple[int, int], right: int, down: int) -> tuple[int, int]:
        if self._plotted is None:
            return at
        return texts.next_cell(self._plotted, *at, right=right, down=down)

    def _inside(self, x: int, y: int) -> Sequence[int]:
        picture = self._plotted
        return () if picture is None else picture.members.get(y * picture.width + x, ())

    @on(Plot.Pointed)
    def _pointed(self, event: Plot.Pointed) -> None:
        event.stop()
        inside, found = self._inside(event.x, event.y), self._found
        self._at = inside[0] if inside else None
        if found is not None:
            paths = [found.paths[number] for number in inside]
            resource = found.resources[inside[0]] if inside else ""
            self._pointed_caption.show([texts.cell_line(paths, resource)])

    @on(Plot.Chosen)
    def _chosen(self, event: Plot.Chosen) -> None:
        event.stop()
        inside = self._inside(event.x, event.y)
        if inside and self._found is not None:
            self.post_message(Jumped(self._found.paths[inside[0]]))
