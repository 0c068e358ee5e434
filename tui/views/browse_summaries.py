"""The other left side of Browse: the tree of summaries, and a filter.

What stands below a row is read when it is opened, what it is called when it comes in sight. One
rule: the store is asked in the reading thread, and what comes too late is dropped.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.message import Message

from filestore import FilestoreError
from tui.formatting import summaries as texts
from tui.formatting.chunks import error_lines
from tui.formatting.lines import Line
from tui.state.summary_rows import SummaryRows, Way
from tui.views.browse_detail import Target
from tui.views.context import ViewContext
from tui.widgets.rows import FilteredRows, VirtualRows

if TYPE_CHECKING:
    from filestore.browse import (
        InspectedStore,
        StorePath,
        SummarisedResource,
        TreeNode,
    )

MOST_TITLES: Final = 20_000
"""Titles that are kept; beyond that all are dropped and read again."""


class BrowseSummaries(FilteredRows):
    """Filter, tree, and how much there is."""

    DEFAULT_CSS: ClassVar[str] = "BrowseSummaries { display: none; }"

    class Pointed(Message):
        """The cursor is on something else."""

    class Chosen(Message):
        """A person wants to read the file under the cursor."""

    def __init__(self, host: ViewContext) -> None:
        super().__init__("browse-summary", VirtualRows(id="browse-summaries", marking=False))
        self._host = host
        self._resources: dict[str, SummarisedResource] = {}
        self._titles: dict[StorePath, str] = {}
        self._filter = ""
        self._problem: list[Line] = []
        self._going_to: Way = ()
        """Where the cursor goes once what is above it is known."""
        self.is_known = False
        """Whether the tree was read."""
        self.model = SummaryRows(self._label, self._seek, self._fetch)

    def on_mount(self) -> None:
        """Nothing is there until it is asked for."""
        self.rows.show(self.model)

    # What is under the cursor

    @property
    def key(self) -> Way | None:
        """Of the row under the cursor."""
        key = self.rows.cursor_key
        return key if isinstance(key, tuple) else None

    @property
    def resource(self) -> str | None:
        """The resource that the cursor is on or below; None for what a filter found."""
        key = self.key
        return key[1] if key is not None and key[0] == "r" else None

    @property
    def path(self) -> str:
        """Of the file under the cursor; "" for a resource."""
        node = self.model.node(self.rows.cursor_key)
        return node.path if node is not None else ""

    @property
    def target(self) -> Target | None:
        """What to show for the row under the cursor."""
        path, name = self.path, self.resource
        if path:
            return Target(path=path)
        return Target(resource=name) if name is not None else None

    # Reading

    def read(self) -> None:
        """Read the resources, or what the filter leaves; what is open is read again."""
        text = self._filter
        self._host.task_manager.read(
            partial(_tops, text=text),
            partial(self._take_tops, text),
            group="summaries",
            failed=self._fail,
            urgent=True,
        )

    def _take_tops(
        self, text: str, found: "Sequence[SummarisedResource] | Sequence[TreeNode]"
    ) -> None:
        if text != self._filter:
            return
        from filestore.browse import SummarisedResource, TreeNode

        self._problem = []
        if not text:
            rows = [one for one in found if isinstance(one, SummarisedResource)]
            self._resources = {row.resource: row for row in rows}
            self.model.replace([(("r", row.resource), None) for row in rows])
        else:
            nodes = [one for one in found if isinstance(one, TreeNode)]
            self.model.replace([(("f", node.path), node) for node in nodes])
        self.is_known = True
        self._titles.clear()
        self._changed()
        if self._going_to:
            self._go_on()

    def _fail(self, error: FilestoreError) -> None:
        self.is_known = True
        self._problem = error_lines(error)
        self._resources = {}
        self.model.replace([])
        self._changed()

    def _seek(self, way: Way) -> None:
        def take_below(nodes: "Sequence[TreeNode]") -> None:
            self.model.take(way, nodes)
            self._changed()
            if self._going_to:
                self._go_on()

        self._host.task_manager.read(
            partial(_nodes_below, way=way),
            take_below,
            group=f"below {way}",
            failed=self._fail,
            urgent=True,
        )

    def _fetch(self, paths: "Sequence[StorePath]") -> None:
        wanted = [path for path in paths if path not in self._titles]
        if wanted:
            self._host.task_manager.read(
                lambda store: store.summaries.titles(wanted),
                self._take_titles,
                group="",
                failed=lambda _: None,
                urgent=True,
            )

    def _take_titles(self, found: "Mapping[StorePath, str]") -> None:
        if len(self._titles) + len(found) > MOST_TITLES:
            self._titles.clear()
            self.model.forget_words()
        self._titles.update(found)
        self.rows.loaded(0, len(self.model))

    # Drawing

    def _label(self, way: Way) -> Line | None:
        ascii_only = bool(getattr(self.app, "ascii", False))
        is_open = self.model.is_open(way)
        node = self.model.node(way)
        if node is None:
            row = self._resources.get(way[1])
            return texts.resource_row(row, is_open=is_open, ascii_only=ascii_only) if row else None
        above = self.model.node(way[:-1])
        return texts.node_row(
            node,
            self._titles.get(node.path, ""),
            self._host.findings.tree,
            depth=len(way) - 2,
            above=self._titles.get(above.path, "") if above is not None else "",
            is_open=is_open,
            is_circle=self.model.is_circle(way),
            ascii_only=ascii_only,
        )

    def _changed(self) -> None:
        self.rows.changed()
        rows = self._resources.values()
        if self._problem:
            self.caption.show(self._problem)
        elif self._filter:
            self.caption.show([texts.found_line(self.model.top_count, self._filter)])
        else:
            self.caption.show(
                texts.count_lines(
                    resources=len(rows),
                    summaries=sum(row.summaries for row in rows),
                    stale=sum(row.stale for row in rows),
                )
            )
        self.post_message(self.Pointed())

    def nothing_lines(self) -> Sequence[Line]:
        """What is shown while there is no tree."""
        if not self.is_known or self._problem or self._filter:
            return ()
        return texts.nothing_lines()

    # Opening and closing

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        if self.model.node(event.key) is None:
            self.toggle(event.key)
        else:
            self.post_message(self.Chosen())

    def toggle(self, key: Hashable) -> None:
        """Open a row, or close it."""
        self._going_to = ()
        if self.model.is_open(key):
            self.model.close(key)
        elif isinstance(key, tuple):
            self.model.open(key)
        self._changed()

    def open(self) -> bool:
        """Open the row under the cursor; False where nothing is below it, or is shown."""
        key = self.key
        if key is None or not self.model.open(key):
            return False
        self._changed()
        return True

    def close(self) -> None:
        """Close the row under the cursor, or go up from it."""
        key = self.key
        if self.model.is_open(key):
            self.toggle(key)
            return
        above = self.model.parent_of(key)
        if above is not None:
            self.rows.move_to(above)

    def close_all(self) -> None:
        """Show the top alone; the cursor goes to what it was below."""
        key = self.key
        self.model.close_all()
        self._changed()
        if key is not None:
            self.rows.move_to(key[:2])

    def open_all(self) -> None:
        """Open one level more of everything shown."""
        self.model.open_all()
        self._changed()

    def open_path(self, path: str, resource: str | None = None) -> None:
        """Put the cursor on a file, what leads to it opened; else on a resource."""

        def take(found: "tuple[str, Sequence[str]] | None") -> None:
            """Go there."""
            if found is not None:
                self._take_way(found)
            elif resource is not None:
                self.open_resource(resource)

        self._host.task_manager.read(
            lambda store: store.summaries.way_to(path),
            take,
            group="way",
            failed=lambda _: None,
            urgent=True,
        )

    def open_resource(self, name: str) -> None:
        """Put the cursor on a resource, its roots shown."""
        self._take_way((name, ()))

    def _take_way(self, found: "tuple[str, Sequence[str]]") -> None:
        name, way = found
        if self._filter:
            self.show_all()
        self._going_to = ("r", name, *way)
        self.model.open_each([self._going_to[:end] for end in range(2, len(self._going_to))])
        if not way:
            self.model.open_each([self._going_to])
        self._changed()
        self._go_on()

    def _go_on(self) -> None:
        """Go as far on the way as is known; further once more is."""
        wanted = self._going_to
        if self.rows.move_to(wanted):
            self._going_to = ()
            return
        for end in range(len(wanted) - 1, 1, -1):
            place = self.model.index_of(wanted[:end])
            if place is None:
                continue
            self.rows.move_to(wanted[:end])
            if self.model.has_children_of(wanted[:end]):
                # It is not there any more.
                self._going_to = ()
            else:
                # Not in sight before, so nobody asked for it.
                self.model.want(place, place + 1)
            return

    # The filter

    @property
    def is_filtered(self) -> bool:
        """Whether only what a filter found is shown."""
        return bool(self._filter)

    def show_all(self, *, back: bool = False) -> None:
        """Clear the filter; the cursor stays on its file, or goes back to the top."""
        path = "" if back else self.path
        self.put_filter("")
        if self._filter:
            self._filter = ""
            self.model.close_all()
            self.read()
            if path:
                self.open_path(path)

    def filter_typed(self, text: str) -> None:
        """Read what a filter leaves, unless it is the one that is shown."""
        if text != self._filter:
            if bool(text) != bool(self._filter):
                self.model.close_all()
            self._filter = text
            self.read()

    # The store changed

    def store_changed(self) -> None:
        """Read everything again, where it was read before; what is open stays open."""
        if self.is_known:
            self.read()


def _tops(
    store: "InspectedStore", text: str
) -> "Sequence[SummarisedResource] | Sequence[TreeNode]":
    """The resources that have summaries; with a filter the summaries that it leaves.

    Raises:
        UsageError: It is a regular expression, and an invalid one.
    """
    from filestore.browse import Wanted

    return store.summaries.matching(Wanted.parse(text)) if text else store.summaries.resources()


def _nodes_below(store: "InspectedStore", way: Way) -> "Sequence[TreeNode]":
    if way[0] == "r" and len(way) == 2:
        return store.summaries.roots(way[1])
    return store.summaries.children(way[-1])
