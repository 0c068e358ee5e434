"""The other left side of Browse: the tree of summaries, and a filter.

What is below a row is read when it is opened, what it is called when it comes in sight. One rule:
the store is asked in the reading thread, and what comes too late is dropped.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from filestore import FilestoreError
from tui.formatting import Line, error_lines
from tui.formatting import rows as texts
from tui.formatting.chunks import family_lines
from tui.formatting.rows import family_rows
from tui.state.rows import Listed, TreeRows, Way
from tui.views.browse_rows import TreeList
from tui.views.context import Jumped, Target, ViewContext
from tui.widgets.bars import Caption
from tui.widgets.rows import VirtualRows

if TYPE_CHECKING:
    from filestore.browse import Family, InspectedStore, Row, StorePath

MOST_TITLES: Final = 20_000
"""Titles that are kept; beyond that all are dropped and read again."""
MOST_OPENED: Final = 50_000
"""Rows that `open_all` goes on to open."""


class BrowseSummaries(TreeList):
    """Resources, their roots, and what these were made from; with a filter summaries at the top.

    The key of a resource is its name, of a summary or text its path. Nothing is opened below
    itself, so circles end where they close.
    """

    DEFAULT_CSS: ClassVar[str] = "BrowseSummaries { display: none; }"

    def __init__(self, host: ViewContext) -> None:
        model = TreeRows(
            self.label,
            lambda _: 1,  # something that is not known yet
            self.seek,
            self.fetch,
            can_open=self.can_open,
            is_heading=self._is_resource,
        )
        rows = VirtualRows(id="browse-summaries", marking=False)
        super().__init__("browse-summary", host, rows, model)
        self._rows: dict[Way, Row] = {}
        """What is known of each row, but for its title."""
        self._titles: dict[StorePath, str] = {}
        self.problem: list[Line] = []
        """Why the tree, or the filter, cannot be used."""
        self._going_to: Way = ()
        """Where the cursor goes once what is above it is known."""
        self.is_known = False
        """Whether the tree was read, or cannot be."""

    # What is under the cursor

    def _row(self, way: Way | None) -> "Row | None":
        return self._rows.get(way) if way is not None else None

    @property
    def resource(self) -> str | None:
        """The resource that the cursor is on or below; None for what a filter found."""
        return self.key[0] if self.key is not None and not self.filter else None

    @property
    def path(self) -> str:
        """Of the file under the cursor; "" for a resource."""
        row = self._row(self.key)
        return row.path if row is not None else ""

    @property
    def target(self) -> Target | None:
        """What to show for the row under the cursor."""
        if self.path:
            return Target(path=self.path)
        return Target(resource=self.resource) if self.resource is not None else None

    # What the rows are

    def seek(self, way: Way) -> None:
        """Read the roots of a resource, or what a summary was made from."""
        row = self._rows[way]

        def take_below(found: "Sequence[Row]") -> None:
            self._rows.update({(*way, one.path): one for one in found})
            self.model.take(way, [one.path for one in found])
            self.changed()
            self._go_on()

        self.host.task_manager.read(
            lambda store: (
                store.summaries.children(row.path)
                if row.path
                else store.summaries.roots(row.resource)
            ),
            take_below,
            group=f"below {way}",
            failed=self._fail,
            urgent=True,
        )

    def fetch(self, ways: Sequence[Way]) -> None:
        """Read the titles of some files."""
        paths = [row.path for way in ways if (row := self._row(way)) is not None and row.path]
        wanted = [path for path in paths if path not in self._titles]

        def take_titles(found: "Mapping[StorePath, str]") -> None:
            if len(self._titles) + len(found) > MOST_TITLES:
                self._titles.clear()
                self.model.forget()
            self._titles.update(found)
            self.rows.loaded(0, len(self.model))

        if wanted:
            self.host.task_manager.read(
                lambda store: store.summaries.titles(wanted),
                take_titles,
                group="",
                failed=lambda _: None,
                urgent=True,
            )

    def can_open(self, way: Way) -> bool:
        row = self._row(way)
        return row is not None and row.children > 0 and not self._is_circle(way)

    def _is_resource(self, way: Way) -> bool:
        row = self._row(way)
        return row is not None and not row.path

    def _is_circle(self, way: Way) -> bool:
        """Whether a row names what is above it."""
        return way[-1] in way[0 if self.filter else 1 : -1]

    def label(self, way: Way) -> Line | None:
        """The words of a row; None where nothing is known of it."""
        row, above = self._row(way), self._row(way[:-1])
        if row is None:
            return None
        shown = texts.Shown(
            depth=len(way) - 1,
            is_open=self.model.is_open(way),
            is_circle=self._is_circle(way),
            title_above=self._titles.get(above.path, "") if above is not None else "",
            ascii_only=self.rows.is_ascii,
        )
        titled = replace(row, title=self._titles.get(row.path, ""))
        return texts.summary_row(titled, self.host.findings.tree, shown)

    def show_count(self) -> None:
        """Show how much there is."""
        rows = [self._rows[name,] for name in self.model.tops]
        if self.problem:
            self.caption.show(self.problem)
        elif self.filter:
            self.caption.show([texts.found_line(texts.summaries(len(rows)), self.filter)])
        else:
            self.caption.show(
                texts.summaries_lines(
                    resources=len(rows),
                    total=sum(row.children for row in rows),
                    stale=sum(row.stale for row in rows),
                )
            )

    # Reading

    def read(self) -> None:
        """Read the resources, or what the filter leaves; what is open is read again."""
        text = self.filter
        self.host.task_manager.read(
            partial(_tops, text=text),
            partial(self._take_tops, text),
            group="summaries",
            failed=self._fail,
            urgent=True,
        )

    def _take_tops(self, text: str, found: "Sequence[Row]") -> None:
        if text == self.filter:
            self.problem = []
            self._show_tops(found)
            self._go_on()

    def _show_tops(self, found: "Sequence[Row]") -> None:
        self.is_known = True
        self._titles.clear()
        self._rows = {(row.path or row.resource,): row for row in found}
        self.model.replace([key for (key,) in self._rows], {})
        self.changed()

    def _fail(self, error: FilestoreError) -> None:
        self.problem = error_lines(error)
        self._show_tops(())

    # Opening and closing

    @on(VirtualRows.Toggled)
    def _stay(self) -> None:
        self._going_to = ()

    def close_all(self) -> None:
        """Show the top alone; the cursor goes to what it was below."""
        key = self.key
        self.model.close_all()
        self.changed()
        if key is not None:
            self.rows.move_to(key[:1])

    def open_all(self) -> None:
        """Open one level more of everything shown."""
        rows = map(self.model.key, range(min(len(self.model), MOST_OPENED)))
        self.model.open_each([way for way in rows if self.can_open(way)])
        self.changed()

    def open_path(self, path: str, resource: str | None = None) -> None:
        """Put the cursor on a file, what leads to it opened; else on a resource."""

        def take(found: "tuple[str, Sequence[str]] | None") -> None:
            """Go there."""
            if found is not None:
                self._go((found[0], *found[1]))
            elif resource is not None:
                self.open_resource(resource)

        self.host.task_manager.read(
            lambda store: store.summaries.way_to(path),
            take,
            group="way",
            failed=lambda _: None,
            urgent=True,
        )

    def open_resource(self, name: str) -> None:
        """Put the cursor on a resource, its roots shown."""
        self._go((name,))

    def _go(self, way: Way) -> None:
        if self.filter:
            self.show_all()
        self._going_to = way
        self.model.open_each([way[:end] for end in range(1, max(len(way), 2))])
        self.changed()
        self._go_on()

    def _go_on(self) -> None:
        """Go as far on the way as is known; further once more is."""
        wanted = self._going_to
        for end in range(len(wanted), 0, -1):
            place = self.model.index_of(wanted[:end])
            if place is None:
                continue
            self.rows.move_to(wanted[:end])
            if end == len(wanted) or self.model.knows_below(wanted[:end]):
                # It is there, or it is not there any more.
                self._going_to = ()
            else:
                # Not in sight before, so it was not asked for.
                self.model.want(place, place + 2)
            return

    # The filter

    def show_all(self, *, back: bool = False) -> None:
        """Clear the filter; the cursor stays on its file, or goes back to the top."""
        path = "" if back else self.path
        self.put_filter("")
        if self.filter:
            self.filter = ""
            self.model.close_all()
            self.read()
            if path:
                self.open_path(path)

    def filter_typed(self, text: str) -> None:
        """Read what a filter leaves, unless it is the one that is shown."""
        if text != self.filter:
            if bool(text) != bool(self.filter):
                self.model.close_all()
            self.filter = text
            self.read()

    # The store changed

    def store_changed(self) -> None:
        """Read everything again, where it was read before; what is open stays open."""
        if self.is_known:
            self.read()


def _tops(store: "InspectedStore", text: str) -> "Sequence[Row]":
    """The resources that have summaries; with a filter the summaries that it leaves.

    Raises:
        UsageError: It is a regular expression, and an invalid one.
    """
    from filestore.browse import NameFilter

    if text:
        return store.summaries.matching(NameFilter.parse(text))
    return store.summaries.resources()


class FamilyPane(Vertical):
    """Why it is out of date, and a list: summaries above, the file itself, its children."""

    DEFAULT_CSS: ClassVar[str] = "FamilyPane VirtualRows { height: 1fr; }"

    def __init__(self, host: ViewContext) -> None:
        super().__init__(id="browse-family")
        self._host = host
        self._path = ""
        self._shown: str | None = None
        """The file that is listed, or asked for."""
        self.rows = VirtualRows(id="browse-family-rows", marking=False)
        self._caption = Caption(id="browse-family-title", most=4)

    def compose(self) -> ComposeResult:
        """What is the matter, and the list."""
        yield self._caption
        yield self.rows

    def point_at(self, path: str, *, is_seen: bool) -> None:
        """Show this file's family, at once where it is seen; "" for none."""
        self._path = path
        if is_seen:
            self.show()

    def show(self) -> None:
        """Read what is to be shown, unless it is."""
        path = self._path
        if path == self._shown:
            return
        self._shown = path
        if not path:
            self._draw((), None)
            return

        def take_family(family: "Family | None") -> None:
            if path == self._path:
                self._draw(family_lines(family), family)

        def fail(error: FilestoreError) -> None:
            if path == self._path:
                self._shown = None
                self._draw(error_lines(error), None)

        self._host.task_manager.read(
            lambda store: store.summaries.family(path),
            take_family,
            group="family",
            failed=fail,
            urgent=True,
        )

    def store_changed(self) -> None:
        """Read it again when it is shown next."""
        self._shown = None

    def _draw(self, lines: Sequence[Line], family: "Family | None") -> None:
        self._caption.show(lines)
        listed = family_rows(family, self._host.findings.tree) if family is not None else ()
        self.rows.show(Listed(listed), at=family.node.path if family is not None else None)

    @on(VirtualRows.Highlighted)
    def _highlighted(self, event: VirtualRows.Highlighted) -> None:
        event.stop()

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        if str(event.key) != self._path:
            self.post_message(Jumped(str(event.key)))
