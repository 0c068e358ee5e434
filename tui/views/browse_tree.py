"""The left side of Browse: resources, those that are opened with their files, and a filter.

Names and numbers come from the catalog, a page at a time as they come in sight. One rule: the
cursor stays on its file, also where a rebuilt catalog gave it another number.
"""

from array import array
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual import on
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from filestore import FilestoreError
from tui.formatting import chunks as texts
from tui.formatting.lines import Line, line
from tui.state.tree import TreeRows, folder_above, folders_above, in_sight, is_folder
from tui.views.browse_detail import Target
from tui.views.browse_labels import (
    Place,
    Renewed,
    TreeLabels,
    matches,
    partly_shown,
    place_of,
    renewed,
)
from tui.views.browse_work import markable, marked_line
from tui.views.context import ViewContext
from tui.widgets.rows import FilteredRows, VirtualRows

if TYPE_CHECKING:
    from filestore.browse import Counts, ResourceRow

FIRST_PAGE: Final = 64
FILTERING_S: Final = 0.2
"""How long an answer takes before the caption shows that the filter is running."""
MOST_REOPENED: Final = 200
"""Opened resources whose files are read again at once; others when they come in sight."""


class BrowseTree(FilteredRows):
    """Filter, tree, and how much there is."""

    class Pointed(Message):
        """The cursor is on something else, or what it is on became known."""

    class Chosen(Message):
        """A person wants to read the file under the cursor."""

    @dataclass
    class Arrived(Message):
        """The cursor is on the file asked for, or stays if the catalog does not have it."""

        path: str
        left_on: Target | None
        """What the cursor is on if no key moved it: that file, or what it was on before."""

    def __init__(self, host: ViewContext) -> None:
        rows = VirtualRows(
            id="browse-tree",
            marked_with=lambda key: (
                self.model.files_of(key) if isinstance(key, int) else markable(key)
            ),
        )
        super().__init__("browse", rows)
        self._host = host
        self._all: Sequence[ResourceRow] = ()
        """Resources; of a store in place documents and folders, also those that are not shown."""
        self._labels = TreeLabels(host, self._take_rows)
        self._counts: Counts | None = None
        self._is_whole = False
        self._filter = ""
        self._problem = ""
        self._filtering: Timer | None = None
        """Set while the answer to a filter is awaited."""
        self._unfiltered_key: Hashable | None = None
        """What the cursor was on before the filter."""
        self._absence: FilestoreError | None = None
        """Why the catalog cannot be read."""
        self._wanted = ("", 0, 0)
        """Where the cursor is to go once there is such a row: path, line, section."""
        self._opened_before: tuple[str, ...] = ()
        """Resources to be opened once they are known."""
        self.model = TreeRows(
            lambda kind, key: self._labels.label(kind, key, self.model),
            self._labels.fetch,
            self._seek,
            self._labels.fetch_documents,
        )
        self._first: Sequence[ResourceRow] | None = None
        """The first page, which may come before there is a place to show it."""
        self._host.task_manager.read(
            lambda store: store.listing.resources(limit=FIRST_PAGE),
            self._take_first,
            group="resources",
            failed=self._take_absence,
            urgent=True,
        )

    def on_mount(self) -> None:
        """Show the first resources at once, then all of them."""
        self._labels.ascii_only = bool(getattr(self.app, "ascii", False))
        self.rows.show(self.model)
        if self._first is not None:
            self._take_first(self._first)

    @property
    def resources(self) -> "Sequence[ResourceRow]":
        """All resources that are known."""
        return tuple(self._all)

    @property
    def is_known(self) -> bool:
        """Whether the resources are known, or known to be unreadable."""
        return self._is_whole or self._absence is not None

    # What is under the cursor

    @property
    def key(self) -> Hashable | None:
        """Of the row under the cursor."""
        return self.rows.cursor_key

    @property
    def resource(self) -> str | None:
        """The resource that the cursor is on or below."""
        index = self.model.index_of(self.key) if self.key is not None else None
        return self.model.resource_of(index) if index is not None else None

    @property
    def path(self) -> str:
        """Of the file under the cursor; "" for a resource, and while it is not known."""
        return self._labels.path_of(self.key)

    @property
    def target(self) -> Target | None:
        """What to show for the row under the cursor."""
        key = self.key
        if isinstance(key, int) and key > 0:
            return Target(file=key)
        name = self.resource
        if name is not None and self._labels.is_in_place and not is_folder(name):
            path = self.path
            return Target(path=path) if path else None
        return Target(resource=name) if name is not None else None

    # Reading

    def _take_absence(self, error: FilestoreError) -> None:
        """There is no catalog, or none that can be read."""
        self._absence = error
        self._labels.forget()
        self._take_resources(())

    def _take_first(self, found: "Sequence[ResourceRow]") -> None:
        if self.rows.rows is not self.model:
            self._first = found
            return
        if not self._is_whole:
            self._take_resources(found)
        # Of documents in place the first page is what lies in no folder.
        if len(found) < FIRST_PAGE and not self._labels.is_in_place:
            self._take_whole(found)
        else:
            self._host.task_manager.read(
                lambda store: store.listing.resources(),
                self._take_whole,
                group="resources",
                failed=self._take_absence,
            )

    def _take_whole(self, found: "Sequence[ResourceRow]") -> None:
        self._is_whole = True
        self._absence = None
        self._take_resources(found)
        # Open what was open the last time.
        self._labels.opened_folders.update(filter(is_folder, self._opened_before))
        self._show_resources()
        for name in self._opened_before:
            self.model.open(name)
        self._opened_before = ()
        if self._filter:
            self.set_filter(self._filter)
        if self._wanted[0]:
            self.open_path(*self._wanted)
        self.rows.changed()
        self._count()

    def _take_resources(self, found: "Sequence[ResourceRow]") -> None:
        self._all = found
        self._labels.resources = {row.resource: row for row in found}
        self._show_resources()
        self.rows.changed()
        self._show_count()
        self.post_message(self.Pointed())

    def _show_resources(self) -> None:
        """Show all resources, but for what lies in folders that are closed."""
        shown = in_sight(self._all, self._labels.opened_folders)
        self.model.replace(
            [(row.resource, 0 if is_folder(row.resource) else row.chunks) for row in shown]
        )

    def _count(self) -> None:
        def take(counts: "Counts") -> None:
            """Show the numbers."""
            self._counts = counts
            self._show_count()

        self._host.task_manager.read(
            lambda store: store.listing.counts(),
            take,
            group="counts",
            failed=self._take_absence,
        )

    def _show_count(self) -> None:
        matches, known = self.model.is_filtered, self._counts
        names = self.model.resources
        shown = sum(self.model.count(name) for name in names) if matches else 0
        filtered = self._filter if matches else ""
        total, in_place = len(names), self._labels.is_in_place
        if in_place and not matches:
            total = sum(not is_folder(row.resource) for row in self._all)
            total = known.resources if known else total
        counts = texts.count_line(
            shown=shown,
            resources=total,
            chunks=known.chunks if known is not None else None,
            filtered=filtered,
            in_place=in_place,
        )
        problem = [line(self._problem, "error")] if self._problem else []
        how_many = [counts] if self._absence is None else []
        marked = [marked_line(len(self.rows.marks))] if self.rows.marks else []
        self.caption.show([*problem, *how_many, *marked, *self.index_lines()])

    @on(VirtualRows.Marked)
    def _marked(self) -> None:
        self._show_count()

    def index_lines(self) -> list[Line]:
        """How many files are not indexed, and the key that indexes them; nothing where all are."""
        if self._absence is not None:
            return texts.absence_lines(self._absence)
        files = self._host.findings.by_code().get("untracked", 0)
        return texts.unindexed_lines(files, is_short=bool(self._all))

    def _seek(self, name: str) -> None:
        def take_ids(ids: "array[int]") -> None:
            if self.model.open(name, ids):
                self.rows.changed()
                self.post_message(self.Pointed())

        self._host.task_manager.read(
            lambda store: store.listing.outline(name),
            take_ids,
            group=f"files of {name}",
            urgent=True,
        )

    def _take_rows(self, found: Collection[int], *, is_fresh: bool) -> None:
        if is_fresh:
            self.model.forget()
        self.rows.loaded(0, len(self.model))
        key = self.key
        if key in found or (isinstance(key, tuple) and self._labels.is_in_place):
            self.post_message(self.Pointed())

    # Drawing again

    def findings_changed(self) -> None:
        """Draw the findings of the rows again."""
        self.rows.loaded(0, len(self.model))
        if self._filtering is None:
            self._show_count()

    # Opening and closing

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        match event.key:
            case ("r", str(name)):
                self.toggle(name)
            case _:
                self.post_message(self.Chosen())

    def toggle(self, name: str) -> None:
        """Open a resource or a folder, or close it."""
        if is_folder(name) and self._labels.is_in_place:
            self._labels.opened_folders ^= {name}
            self._show_resources()
        elif self.model.is_open(name):
            self.model.close(name)
        else:
            self.model.open(name)
        self.rows.changed()

    def _is_open(self, name: str) -> bool:
        return name in self._labels.opened_folders or self.model.is_open(name)

    def open(self) -> bool:
        """Open the resource under the cursor; False where that is none, or is open."""
        match self.key:
            case ("r", str(name)) if not self._is_open(name):
                self.toggle(name)
                return True
        return False

    def close(self) -> None:
        """Close the resource under the cursor, or go up to it."""
        key = self.key
        if key is None:
            return
        above = self.model.parent_of(key)
        if above is not None:
            self.rows.move_to(above)
        elif isinstance(key, tuple) and self._is_open(str(key[1])):
            self.toggle(str(key[1]))
        elif isinstance(key, tuple) and self._labels.is_in_place:
            self.rows.move_to(("r", folder_above(str(key[1]))))

    def close_all(self) -> None:
        """Close every resource, then every folder; the cursor goes to the one it was in."""
        name = self.resource
        if self._labels.opened_folders and not self.model.opened:
            self._labels.opened_folders.clear()
            self._show_resources()
            name = f"{name.partition('/')[0]}/" if name and "/" in name else name
        self.model.close_all()
        self.rows.changed()
        if name is not None:
            self.rows.move_to(("r", name))

    def open_all(self) -> None:
        """Open every folder; where these are open, every resource."""
        folders = {name for name in self._labels.resources if is_folder(name)}
        if self._labels.is_in_place and not folders <= self._labels.opened_folders:
            self._labels.opened_folders = folders
            self._show_resources()
        else:
            self.model.open_all()
        self.rows.changed()

    def open_path(self, path: str, line: int = 0, section: int = 0) -> None:
        """Put the cursor on a file, its resource opened, if the catalog has it.

        Args:
            path: The file.
            line: Of a document in place: to the section with this line; 0 for the document itself.
            section: The same by its id.
        """
        self._wanted = (path, line, section)
        arrive = partial(self._arrive, path, self.target)
        self._host.task_manager.read(
            lambda store: place_of(store, path, line, section),
            arrive,
            group="place",
            failed=lambda _: arrive(None),
            urgent=True,
        )

    def _arrive(self, path: str, before: Target | None, found: Place | None) -> None:
        while found is not None:
            is_there = self._reveal(found)
            self.rows.changed()
            key = found.file or ("r", found.resource)
            if (is_there and self.rows.move_to(key)) or not self.model.is_filtered:
                break
            # The filter hides it.
            self.show_all()
        if found is None or self._is_whole:
            self._wanted = ("", 0, 0)
        left_on = before if found is None else self.target
        self.post_message(self.Arrived(path, left_on=left_on))

    def _reveal(self, found: Place) -> bool:
        """Have a resource shown with its files, a document in place below its folders."""
        name = found.resource
        if not self._labels.is_in_place:
            return self.model.open(name, found.ids)
        folders = set(folders_above(name))
        if not self.model.is_filtered and not folders <= self._labels.opened_folders:
            self._labels.opened_folders |= folders
            self._show_resources()
        if found.file:
            return self.model.open(name, found.ids)
        return self.model.index_of(("r", name)) is not None

    # The filter

    def set_filter(self, text: str) -> None:
        """Show only what matches a filter."""
        self.put_filter(text)
        self.filter_typed(text)

    def show_all(self, *, back: bool = False) -> None:
        """Clear the filter.

        Args:
            back: Whether the cursor returns to what it was on before, as it does in any case
                where the filter left nothing.
        """
        self._problem = ""
        self._end_filtering()
        self.put_filter("")
        self._filter = ""
        if self.model.is_filtered:
            self._unfilter(back=back)
        self._show_count()

    def _unfilter(self, *, back: bool) -> None:
        key, path = self.key, self.path
        self.model.unfiltered()
        self.rows.changed()
        if back or key is None:
            if self._unfiltered_key is not None:
                self.rows.move_to(self._unfiltered_key)
        elif not self.rows.move_to(key) and path:
            # Its resource was opened by the filter alone.
            self.open_path(path)
        self._unfiltered_key = None

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if not self.input.value.strip():
            self.show_all(back=True)

    def filter_typed(self, text: str) -> None:
        """Ask for what matches a filter."""
        self._filter = text
        if not text:
            self._take_matches("", None)
            return
        if self._filtering is None:
            self._filtering = self.set_interval(
                FILTERING_S,
                lambda: self.caption.show([texts.filtering_line(self._filter)]),
            )

        def bad_filter(error: FilestoreError) -> None:
            self._problem = error.message
            self._end_filtering()
            self._show_count()

        self._host.task_manager.read(
            lambda store: matches(store, text),
            partial(self._take_matches, text),
            group="filter",
            failed=bad_filter,
        )

    def _take_matches(self, text: str, found: "Mapping[str, array[int]] | None") -> None:
        if text != self._filter:
            return
        self._problem = ""
        self._end_filtering()
        if found is not None:
            if not self.model.is_filtered:
                self._unfiltered_key = self.key
            self._show_matches(found)
            self.rows.changed()
        elif self.model.is_filtered:
            self._unfilter(back=True)
        self._show_count()
        self.post_message(self.Pointed())

    def _show_matches(self, found: "Mapping[str, array[int]]") -> None:
        # A document that fits as a whole need not show what is in it.
        partly = partly_shown(self._labels.resources, found)
        self.model.filtered(found, partly if self._labels.is_in_place else None)

    def _end_filtering(self) -> None:
        """The answer is there, or not wanted any more."""
        if self._filtering is not None:
            self._filtering.stop()
            self._filtering = None

    # The store changed

    def store_changed(self) -> None:
        """Read everything again; what is open stays open, the cursor where it is."""
        path, text = self.path, self._filter
        opened = self.model.opened[:MOST_REOPENED]
        self._host.task_manager.read(
            lambda store: renewed(store, opened, path, text),
            self._renew,
            group="resources",
            failed=self._take_absence,
        )

    def _renew(self, found: Renewed) -> None:
        key = self.key
        is_on_file = isinstance(key, int)
        self._absence = None
        self._labels.forget()
        self._is_whole = True
        self._all = found.resources
        self._labels.resources = {row.resource: row for row in found.resources}
        self._show_resources()
        self.model.renew(found.opened)
        if found.matches is not None and self._filter:
            self._show_matches(found.matches)
        self.rows.changed()
        if (
            is_on_file
            and not self._labels.is_in_place
            and found.place is not None
            and found.place[1] != key
        ):
            self.rows.move_to(found.place[1])
        self._count()
        self._show_count()
        self.post_message(self.Pointed())

    # What is kept

    def saved(self) -> dict[str, Any]:
        """What is open, where the cursor is, what is filtered."""
        folders = sorted(self._labels.opened_folders)
        opened = [*folders, *self.model.opened][:MOST_REOPENED]
        return {"opened": opened, "path": self.path, "filter": self._filter}

    def restore(self, *, opened: Sequence[str], path: str, text: str) -> None:
        """Open this again, once it is known."""
        self._opened_before = tuple(opened)
        self._wanted = (path, 0, 0)
        self._filter = text
