"""Pictures of the store: map of the vectors, sizes, similarities, drift.

Their data are asked for when a picture is first shown, and again after the store changed. One
rule: a picture of a sample says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize
from textual.message import Message
from textual.widget import Widget

from filestore import FilestoreError
from tui.formatting import pictures as texts
from tui.formatting.chunks import error_lines
from tui.formatting.lines import Line, line
from tui.formatting.summaries import drawing_lines, drawing_title
from tui.views.context import ViewContext
from tui.widgets.caption import Caption
from tui.widgets.plot import Plot
from tui.widgets.text import TextPane
from tui.workers import Handlers, Job

if TYPE_CHECKING:
    from filestore.browse import Drawing, Histogram, ResourceRow, VectorMap

KINDS: Final = ("map", "sizes", "similarities", "drift", "tree")
MOST_POINTS: Final = 20_000
MOST_COMPARED: Final = 1_000
LEGEND_LINES: Final = 4
_JOBS: Final[dict[str, Job]] = {
    "map": Job(name="vector_map", arguments={"most": MOST_POINTS}),
    "similarities": Job(name="similarities", arguments={"most": MOST_COMPARED}),
}


class PicturePane(Vertical):
    """One picture, with a title above and a legend below."""

    DEFAULT_CSS: ClassVar[str] = """
    PicturePane Plot { height: 1fr; }
    PicturePane TextPane { height: 1fr; display: none; }
    PicturePane.-tree Plot { display: none; }
    PicturePane.-tree TextPane { display: block; }
    """

    @dataclass
    class Pointed(Message):
        """A person chose a point of the map: this file."""

        path: str

    def __init__(self, host: ViewContext) -> None:
        super().__init__(id="browse-picture")
        self._host = host
        self.kind = KINDS[0]
        self.resources: Sequence[ResourceRow] = ()
        """All of the store, for the picture of drift."""
        self._resource: str | None = None
        """The one that sizes are shown of; None for those of the whole store."""
        self._tree_of: str | None = None
        """The resource whose tree is drawn; None for none."""
        self._data: dict[str, Any] = {}
        self._errors: dict[str, FilestoreError] = {}
        self._at = ""
        self._grouped: texts.Grouped | None = None
        self._points: dict[str, int] = {}
        """Path to the number of its point."""
        self._plotted: texts.Plotted | None = None
        self._drifted: tuple[int, frozenset[int]] = (-1, frozenset())
        """The version of the findings, and the points that had drifted then."""

        self.plot = Plot(self._draw, id="browse-plot")
        self.reader = TextPane(id="browse-drawing")
        """Shows the tree of summaries, which may be longer than the screen."""
        self._title_caption = Caption(id="browse-picture-title")
        self._legend_caption = Caption(id="browse-legend", most=LEGEND_LINES)
        self._pointed_caption = Caption(id="browse-pointed")

    def compose(self) -> ComposeResult:
        """What it shows, the picture, what the colours mean, what is pointed at."""
        yield self._title_caption
        yield self.plot
        yield self.reader
        yield self._legend_caption
        yield self._pointed_caption

    # Which picture

    def show(self) -> None:
        """Show the chosen picture, once its data are there."""
        self.set_class(self.kind == "tree", "-tree")
        job = self._job()
        if self.kind == "tree" and self.kind not in self._data and self.kind not in self._errors:
            self._ask_tree()
        if job is not None and self.kind not in self._data and self.kind not in self._errors:
            self._host.task_manager.ask(
                job,
                Handlers(
                    then=partial(self._take, self.kind, job),
                    failed=partial(self._failed, self.kind),
                    stopped=partial(self._cancelled, self.kind),
                ),
                group=f"picture {self.kind}",
                title=texts.TITLES[self.kind],
            )
        self._redraw()

    def _ask_tree(self) -> None:
        """Read the tree of the resource under the cursor; without one there is none to draw."""
        name = self._tree_of
        if name is not None:
            self._host.task_manager.read(
                lambda store: store.summaries.drawing(name),
                self._take_tree,
                group="picture tree",
                failed=partial(self._failed, "tree"),
            )

    def _take_tree(self, drawing: "Drawing") -> None:
        if drawing.resource == self._tree_of:
            self._data["tree"] = drawing
            self._redraw()

    def draw_tree_of(self, resource: str | None) -> None:
        """Show the tree of another resource: the one that the cursor is on or below."""
        if resource != self._tree_of:
            self._tree_of = resource
            self._data.pop("tree", None)
            self._errors.pop("tree", None)
            if self.kind == "tree" and self.is_seen:
                self.show()

    def _job(self) -> Job | None:
        if self.kind == "sizes":
            return Job(name="sizes", arguments={"resource": self._resource})
        return _JOBS.get(self.kind)

    def next(self) -> None:
        """Show the next picture."""
        self.kind = KINDS[(KINDS.index(self.kind) + 1) % len(KINDS)]
        self._errors.pop(self.kind, None)
        self.show()

    def _take(self, kind: str, job: Job, data: Any) -> None:
        if kind == "sizes" and job.arguments["resource"] != self._resource:
            return
        self._data[kind] = data
        if kind == "map":
            self._grouped = texts.grouped(data.resources)
            self._points = {path: number for number, path in enumerate(data.paths)}
            self._plotted = None
            self._drifted = (-1, frozenset())
        self._redraw()

    def _cancelled(self, kind: str) -> None:
        self._failed(
            kind, FilestoreError("cancelled", remedy="press m until this picture comes round again")
        )

    def _failed(self, kind: str, error: FilestoreError) -> None:
        self._errors[kind] = error
        self._redraw()

    def point_at(self, path: str) -> None:
        """Mark the point of a file on the map."""
        if path != self._at:
            self._at = path
            if self.kind == "map" and self.is_seen:
                self._redraw()

    def narrow_to(self, resource: str | None) -> None:
        """Show the sizes of one resource; None for all of the store."""
        if resource == self._resource:
            return
        self._resource = resource
        self._data.pop("sizes", None)
        self._errors.pop("sizes", None)
        if self.kind == "sizes" and self.is_seen:
            self.show()

    @property
    def part(self) -> Widget:
        """What takes the keys."""
        return self.reader if self.kind == "tree" else self.plot

    @property
    def parts(self) -> Sequence[Widget]:
        """All that may."""
        return self.plot, self.reader

    @property
    def is_seen(self) -> bool:
        """Whether the picture is on the screen."""
        return self.display and bool(self.size)

    def findings_changed(self) -> None:
        """Draw drift again, where it is visible."""
        if self.kind in ("map", "drift") and self.is_seen:
            self._redraw()

    def store_changed(self) -> None:
        """Drop all data; those of a visible picture are asked for again."""
        self._data.clear()
        self._errors.clear()
        self._plotted = None
        if self.is_seen:
            self.show()

    # Drawing

    def _redraw(self) -> None:
        self._title_caption.show(self._title())
        self._show_legend()
        if self.kind != "map":
            self._pointed_caption.show([])
        if self.kind == "tree":
            self._draw_tree()
        self.plot.draw_again()

    def _title(self) -> list[Line]:
        if self.kind in self._errors:
            return error_lines(self._errors[self.kind])
        if self.kind == "tree" and self._tree_of is None:
            return [line("tree of summaries: put the cursor on a resource", "title")]
        if self.kind == "drift":
            return [line("drift by resource, as far as it is known", "title")]
        data = self._data.get(self.kind)
        if data is None:
            return [line(f"{texts.TITLES[self.kind]}: working …", "quiet")]
        if self.kind == "tree":
            return drawing_title(data)
        resource = self._resource if self.kind == "sizes" else None
        if self.kind == "map":
            title = texts.map_title(
                shown=len(data.paths), total=data.total, explained=data.explained
            )
            if not self._at or self._at in self._points:
                return [title]
            return [title, line("the file under the cursor is not on it", "quiet")]
        return [
            texts.histogram_title(
                self.kind, total=data.total, sampled=data.sampled, resource=resource
            )
        ]

    def _show_legend(self) -> None:
        self._legend_caption.show(self._legend())

    def _legend(self) -> list[Line]:
        if self.kind != "map" or self._grouped is None or "map" not in self._data:
            return []
        width = max(self.size.width - 2, 20)
        return texts.legend_lines(self._grouped, width=width, letters=self._letters)

    @property
    def _ascii(self) -> bool:
        return bool(getattr(self.app, "ascii", False))

    @property
    def _letters(self) -> bool:
        return self._ascii or self.app.no_color

    def _draw(self, width: int, height: int) -> Sequence[Line]:
        if width < 1 or height < 1:
            return ()
        if self.kind == "map":
            return self._draw_map(width, height)
        if self.kind == "drift":
            of_resource = self._host.findings.of_resource
            resources = [
                (one.resource, one.chunks, of_resource(one.resource)) for one in self.resources
            ]
            return texts.drift_lines(resources, width=width, height=height, ascii_only=self._ascii)
        found: Histogram | None = self._data.get(self.kind)
        if found is None:
            return ()
        return texts.histogram_lines(
            found.edges,
            found.counts,
            unit=found.unit,
            width=width,
            height=height,
            ascii_only=self._ascii,
        )

    def _draw_tree(self) -> None:
        found: Drawing | None = self._data.get("tree")
        width = self.reader.text_width or max(self.size.width - 3, 20)
        lines = [] if found is None else drawing_lines(found, width=width, ascii_only=self._ascii)
        self.reader.show(lines, key=f"tree {self._tree_of}")

    @on(Resize)
    def _resized(self) -> None:
        # Both are wrapped to the width, which is not known when data are there at once.
        self.call_after_refresh(self._draw_tree if self.kind == "tree" else self._show_legend)

    def _draw_map(self, width: int, height: int) -> Sequence[Line]:
        found: VectorMap | None = self._data.get("map")
        if found is None or self._grouped is None:
            return ()
        picture = self._plotted
        if picture is None or (picture.width, picture.height) != (width, height):
            groups = self._grouped.groups
            picture = texts.plotted(found.xs, found.ys, groups, width=width, height=height)
            self._plotted = picture
        findings = self._host.findings
        if self._drifted[0] != findings.version:
            drifted = frozenset(
                number
                for number, path in enumerate(found.paths)
                if any(finding.severity != "I" for finding in findings.of_path(path))
            )
            self._drifted = (findings.version, drifted)
        point, cells = self._points.get(self._at), picture.cells
        return texts.map_lines(
            picture,
            drifted={cells[number] for number in self._drifted[1]},
            at=cells[point] if point is not None else None,
            letters=self._letters,
        )

    # Pointing

    def _inside(self, x: int, y: int) -> Sequence[int]:
        picture = self._plotted
        if self.kind != "map" or picture is None or "map" not in self._data:
            return ()
        return picture.members.get(y * picture.width + x, ())

    @on(Plot.Pointed)
    def _pointed(self, event: Plot.Pointed) -> None:
        event.stop()
        if self.kind == "map" and "map" in self._data:
            inside, found = self._inside(event.x, event.y), self._data["map"]
            paths = [found.paths[number] for number in inside]
            resource = found.resources[inside[0]] if inside else ""
            self._pointed_caption.show([texts.cell_line(paths, resource)])

    @on(Plot.Chosen)
    def _chosen(self, event: Plot.Chosen) -> None:
        event.stop()
        inside = self._inside(event.x, event.y)
        if inside:
            self.post_message(self.Pointed(self._data["map"].paths[inside[0]]))
