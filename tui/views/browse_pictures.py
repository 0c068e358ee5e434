"""Pictures of the store: map of the vectors, sizes, similarities, drift.

What they are drawn from is asked for when a picture is first looked at, and again after the store
changed. One rule: a picture of a sample says so.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from filestore import FilestoreError
from tui.backstage import Handlers, Job
from tui.desk import Desk
from tui.widgets.caption import Caption
from tui.widgets.plot import Plot
from tui.words import pictures as words
from tui.words.chunks import error_lines
from tui.words.lines import Line, line

if TYPE_CHECKING:
    from filestore import Histogram, ResourceRow, VectorMap

KINDS: Final = ("map", "sizes", "similarities", "drift")
MOST_POINTS: Final = 20_000
MOST_COMPARED: Final = 1_000
LEGEND_LINES: Final = 4
_JOBS: Final[dict[str, Job]] = {
    "map": Job(name="vector_map", arguments={"most": MOST_POINTS}),
    "similarities": Job(name="similarities", arguments={"most": MOST_COMPARED}),
}


class PicturePane(Vertical):
    """One picture, with what is to be said of it above and below."""

    DEFAULT_CSS: ClassVar[str] = "PicturePane Plot { height: 1fr; }"

    class Pointed(Message):
        """A person chose a point of the map: this file."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="browse-picture")
        self._desk = desk
        self.kind = KINDS[0]
        self.resources: Sequence[ResourceRow] = ()
        """All of the store, for the picture of drift."""
        self._resource: str | None = None
        """The one that sizes are shown of; None for those of the whole store."""
        self._data: dict[str, Any] = {}
        self._errors: dict[str, FilestoreError] = {}
        self._at = ""
        self._grouped: words.Grouped | None = None
        self._points: dict[str, int] = {}
        """Path to the number of its point."""
        self._plotted: words.Plotted | None = None
        self._drifted: tuple[int, frozenset[int]] = (-1, frozenset())
        """The version of the findings, and the points that had drifted then."""

        self.plot = Plot(self._draw, id="browse-plot")
        self._title_said = Caption(id="browse-picture-title")
        self._legend_said = Caption(id="browse-legend", most=LEGEND_LINES)
        self._pointed_said = Caption(id="browse-pointed")

    def compose(self) -> ComposeResult:
        """What it shows, the picture, what the colours mean, what is pointed at."""
        yield self._title_said
        yield self.plot
        yield self._legend_said
        yield self._pointed_said

    # Which picture

    def show(self) -> None:
        """Show the picture that was chosen, once there is what it is drawn from."""
        job = self._job()
        if job is not None and self.kind not in self._data and self.kind not in self._errors:
            self._desk.backstage.ask(
                job,
                Handlers(
                    then=partial(self._take, self.kind, job),
                    failed=partial(self._no, self.kind),
                    stopped=partial(self._given_up, self.kind),
                ),
                group=f"picture {self.kind}",
                title=words.TITLES[self.kind],
            )
        self._redraw()

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
            self._grouped = words.grouped(data.resources)
            self._points = {path: number for number, path in enumerate(data.paths)}
            self._plotted = None
            self._drifted = (-1, frozenset())
        self._redraw()

    def _given_up(self, kind: str) -> None:
        self._no(kind, FilestoreError("given up", remedy="m comes to it again"))

    def _no(self, kind: str, error: FilestoreError) -> None:
        self._errors[kind] = error
        self._redraw()

    def point_at(self, path: str) -> None:
        """Mark the point of a file on the map."""
        if path != self._at:
            self._at = path
            if self.kind == "map" and self.is_seen:
                self._redraw()

    def narrow_to(self, resource: str | None) -> None:
        """Have sizes be those of one resource; None for all of the store."""
        if resource == self._resource:
            return
        self._resource = resource
        self._data.pop("sizes", None)
        self._errors.pop("sizes", None)
        if self.kind == "sizes" and self.is_seen:
            self.show()

    @property
    def is_seen(self) -> bool:
        """Whether the picture is on the screen."""
        return self.display and bool(self.size)

    def findings_changed(self) -> None:
        """Drift is drawn anew, where it is seen."""
        if self.kind in ("map", "drift") and self.is_seen:
            self._redraw()

    def store_changed(self) -> None:
        """Nothing that is known is true any more; what is seen is asked for again."""
        self._data.clear()
        self._errors.clear()
        self._plotted = None
        if self.is_seen:
            self.show()

    # Drawing

    def _redraw(self) -> None:
        self._title_said.say(self._title())
        self._legend_said.say(self._legend())
        if self.kind != "map":
            self._pointed_said.say([])
        self.plot.draw_again()

    def _title(self) -> list[Line]:
        if self.kind in self._errors:
            return error_lines(self._errors[self.kind])
        if self.kind == "drift":
            return [line("drift by resource, as far as it is known", "title")]
        data = self._data.get(self.kind)
        if data is None:
            return [line(f"{words.TITLES[self.kind]}: working …", "quiet")]
        resource = self._resource if self.kind == "sizes" else None
        if self.kind == "map":
            title = words.map_title(
                shown=len(data.paths), total=data.total, explained=data.explained
            )
            if not self._at or self._at in self._points:
                return [title]
            return [title, line("the file under the cursor is not on it", "quiet")]
        return [
            words.histogram_title(
                self.kind, total=data.total, sampled=data.sampled, resource=resource
            )
        ]

    def _legend(self) -> list[Line]:
        if self.kind != "map" or self._grouped is None or "map" not in self._data:
            return []
        width = max(self.size.width - 2, 20)
        return words.legend_lines(self._grouped, width=width, letters=self._letters)

    @property
    def _ascii(self) -> bool:
        return bool(getattr(self.app, "ascii", False))

    @property
    def _letters(self) -> bool:
        return self._ascii or self.app.no_color

    def _draw(self, width: int, height: int) -> Sequence[Line]:
        draw: dict[str, Callable[[int, int], Sequence[Line]]] = {
            "map": self._draw_map,
            "drift": self._draw_drift,
        }
        if width < 1 or height < 1:
            return ()
        return draw.get(self.kind, self._draw_histogram)(width, height)

    def _draw_map(self, width: int, height: int) -> Sequence[Line]:
        found: VectorMap | None = self._data.get("map")
        if found is None or self._grouped is None:
            return ()
        picture = self._plotted
        if picture is None or (picture.width, picture.height) != (width, height):
            groups = self._grouped.groups
            picture = words.plotted(found.xs, found.ys, groups, width=width, height=height)
            self._plotted = picture
        point = self._points.get(self._at)
        drifted = self._drifted_points(found)
        cells = picture.cells
        return words.map_lines(
            picture,
            drifted={cells[number] for number in drifted},
            at=cells[point] if point is not None else None,
            letters=self._letters,
        )

    def _drifted_points(self, found: "VectorMap") -> frozenset[int]:
        version = self._desk.findings.version
        if self._drifted[0] != version:
            of_path = self._desk.findings.of_path
            drifted = frozenset(
                number
                for number, path in enumerate(found.paths)
                if any(finding.severity != "I" for finding in of_path(path))
            )
            self._drifted = (version, drifted)
        return self._drifted[1]

    def _draw_histogram(self, width: int, height: int) -> Sequence[Line]:
        found: Histogram | None = self._data.get(self.kind)
        if found is None:
            return ()
        return words.histogram_lines(
            found.edges,
            found.counts,
            unit=found.unit,
            width=width,
            height=height,
            ascii_only=self._ascii,
        )

    def _draw_drift(self, width: int, height: int) -> Sequence[Line]:
        of_resource = self._desk.findings.of_resource
        resources = [
            (one.resource, one.chunks, of_resource(one.resource)) for one in self.resources
        ]
        return words.drift_lines(resources, width=width, height=height, ascii_only=self._ascii)

    # Pointing

    def _inside(self, x: int, y: int) -> Sequence[int]:
        picture = self._plotted
        if self.kind != "map" or picture is None or "map" not in self._data:
            return ()
        return picture.members.get(picture.cell_of(x, y), ())

    @on(Plot.Pointed)
    def _pointed(self, event: Plot.Pointed) -> None:
        event.stop()
        if self.kind == "map" and "map" in self._data:
            inside, found = self._inside(event.x, event.y), self._data["map"]
            paths = [found.paths[number] for number in inside]
            resource = found.resources[inside[0]] if inside else ""
            self._pointed_said.say([words.cell_line(paths, resource)])

    @on(Plot.Chosen)
    def _chosen(self, event: Plot.Chosen) -> None:
        event.stop()
        inside = self._inside(event.x, event.y)
        if inside:
            self.post_message(self.Pointed(self._data["map"].paths[inside[0]]))
