"""The left side of Browse: resources, opened ones with their files, and a filter.

Names and numbers come from the catalog, words a page at a time as the rows come in sight. One rule:
the cursor stays on its file, also where a rebuilt catalog gave it another number.
"""

from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual import on
from textual.widgets import Input

from filestore import FilestoreError
from tui.formatting import rows as texts
from tui.formatting.rows import is_folder, way_of
from tui.state.rows import Document, Way
from tui.views.browse_columns import ResourceRows
from tui.views.browse_rows import Located, Node, Renewed, located, matches, renewed
from tui.views.context import Target, ViewContext

if TYPE_CHECKING:
    from filestore.browse import Row

FIRST_PAGE: Final = 64
NO_SUMMARIES: Final["Mapping[str, Sequence[Row]]"] = {}
FILTERING_S: Final = 0.2
"""How long an answer takes before the caption shows that the filter is running."""
MOST_REOPENED: Final = 200
"""Opened resources whose files are read again at once; others when they come in sight."""


class BrowseTree(ResourceRows):
    """Resources and their files; of a store in place folders, documents and their sections.

    The key of a resource, folder or document is its name, of a file or section its id.
    """

    def __init__(self, host: ViewContext) -> None:
        super().__init__(host)
        self._ask(
            lambda store: store.listing.resources(limit=FIRST_PAGE), self._take_first, urgent=True
        )

    def on_mount(self) -> None:
        """Show the first resources at once, then all of them."""
        if self._first is not None:
            self._take_first(self._first)

    def _take_first(self, found: "Sequence[Row]") -> None:
        if not self.rows.is_attached:
            self._first = found
            return
        if not self._is_whole:
            self._take_resources(found)
        # Of documents in place the first page is what lies in no folder.
        if len(found) < FIRST_PAGE and not self.has_sections:
            self._take_whole(found)
        else:
            # The first ones are painted before the others take time from it.
            self.call_after_refresh(
                self._ask,
                lambda store: (store.listing.resources(), store.summaries.of_folders()),
                lambda found: self._take_whole(*found),
            )

    def _take_whole(
        self, found: "Sequence[Row]", of_folders: "Mapping[str, Sequence[Row]]" = NO_SUMMARIES
    ) -> None:
        self._is_whole = True
        self._of_folders = of_folders
        self._absence = None
        self._take_resources(found)
        # Open what was open the last time.
        self.model.open_each(self.way(name) for name in self._opened_before)
        self._opened_before = ()
        self._sort_again()
        if self.filter:
            self.put_filter(self.filter)
            self.filter_typed(self.filter)
        self._open_wanted()
        self.rows.changed()
        self._count()

    def _open_wanted(self) -> None:
        """Go to a file that was opened before its row was there."""
        if self._wanted[0]:
            self.open_path(*self._wanted)

    # Opening and closing

    def _opened_folders(self) -> list[Way]:
        return [way for way in self.model.opened if is_folder(way[-1])] if self.has_sections else []

    def close_all(self) -> None:
        """Close every resource, then every folder; the cursor goes to the one it was in."""
        key, folders = self.key, self._opened_folders()
        is_last = self.model.is_filtered or len(folders) == len(self.model.opened)
        self.model.close_all()
        if not is_last:
            self.model.open_each(folders)
        self.rows.changed()
        if key is not None:
            names = [one for one in key if isinstance(one, str)]
            self.rows.move_to(tuple(names[:1] if is_last else names))

    def open_all(self) -> None:
        """Open every folder; where these are open, every resource."""
        ways: list[Way] = [(name,) for name in self.model.tops]
        if self.has_sections and not self.model.is_filtered:
            every = list(map(way_of, self.resources))
            folders = [way for way in every if is_folder(way[-1])]
            ways = folders if len(self._opened_folders()) < len(folders) else every
        self.model.open_each(ways)
        self.rows.changed()

    def way(self, name: str) -> Way:
        """The way to a resource, a folder, or a document."""
        return way_of(name) if self.has_sections and not self.model.is_filtered else (name,)

    def _way_to(self, name: str, file: int) -> Way:
        """The way to a file of a resource; 0 for the resource itself."""
        way = self.way(name)
        below = self.model.rows_below(way)
        for document in below if isinstance(below, list) else ():
            if isinstance(document, Document) and file in self._documents[document]:
                return (*way, document, file)
        return (*way, file) if file else way

    def open_path(self, path: str, line: int = 0, section: int = 0) -> None:
        """Put the cursor on a file, its resource opened, if the catalog has it.

        Args:
            path: The file.
            line: Of a document in place: to the section with this line; 0 for the document itself.
            section: The same by its id.
        """
        self._wanted = (path, line, section)
        arrive = partial(self._arrive, path, self.target)
        self.host.task_manager.read(
            lambda store: located(store, path, line, section),
            arrive,
            group="place",
            failed=lambda _: arrive(None),
            urgent=True,
        )

    def _arrive(self, path: str, before: Target | None, found: Located | None) -> None:
        while found is not None:
            way: Way = self.way(found.resource) if found.resource else ()
            if not self.model.is_filtered:
                self.model.open_each([way[:end] for end in range(1, len(way))])
            is_open = bool(found.file or found.way) and (not way or self.model.open(way))
            if is_open and not self.model.is_filtered:
                for below, step in zip(found.below, (*found.way, ""), strict=False):
                    if way and not is_folder(way[-1]):
                        self.model.open(way)
                        self.model.take(way, self._keys(way, below))
                    way = (*way, Node(step)) if step else way
            self.rows.changed()
            if self.model.is_filtered or not found.way:
                way = self._way_to(found.resource, found.file)
            is_there = self.rows.move_to(way)
            if is_there or not self.model.is_filtered:
                break
            # The filter hides it.
            self.show_all()
        if found is None or self._is_whole:
            self._wanted = ("", 0, 0)
        left_on = before if found is None else self.target
        self.post_message(self.Arrived(path, left_on=left_on))

    # The filter

    def show_all(self, *, back: bool = False) -> None:
        """Clear the filter.

        Args:
            back: Whether the cursor returns to what it was on before, as it does in any case
                where the filter left nothing.
        """
        self._problem = ""
        self._end_filtering()
        self.put_filter("")
        self.filter = ""
        if self.model.is_filtered:
            self._unfilter(back=back)
        self.show_count()

    def _unfilter(self, *, back: bool) -> None:
        key, path = self.key, self.path
        self.model.unfiltered()
        self.rows.changed()
        if back or key is None:
            if self._unfiltered_key is not None:
                self.rows.move_to(self._unfiltered_key)
        else:
            file = key[-1] if isinstance(key[-1], int) else 0
            if not self.rows.move_to(self._way_to(key[0], file)) and path:
                # Its resource was opened by the filter alone.
                self.open_path(path)
        self._unfiltered_key = None

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if not self.input.value.strip():
            self.show_all(back=True)

    def begin_filter(self) -> None:
        """Have the names read while the first letter is typed: no name has this in it."""
        super().begin_filter()
        self.host.task_manager.read(
            lambda store: matches(store, "\0"), lambda _: None, group="filter"
        )

    def filter_typed(self, text: str) -> None:
        """Ask for what matches a filter."""
        self.filter = text
        if not text:
            self._take_matches("", None)
            return
        if self._filtering is None:
            self._filtering = self.set_interval(
                FILTERING_S, lambda: self.caption.show([texts.filtering_line(self.filter)])
            )

        def bad_filter(error: FilestoreError) -> None:
            self._problem = error.message
            self._end_filtering()
            self.show_count()

        self.host.task_manager.read(
            lambda store: matches(store, text),
            partial(self._take_matches, text),
            group="filter",
            failed=bad_filter,
        )

    def _take_matches(self, text: str, found: "Mapping[str, array[int]] | None") -> None:
        if text != self.filter:
            return
        self._problem = ""
        self._end_filtering()
        if found is not None:
            if not self.model.is_filtered:
                self._unfiltered_key = self.key
            self._show_matches(found)
        elif self.model.is_filtered:
            self._unfilter(back=True)
        self.changed()

    def _show_matches(self, found: "Mapping[str, array[int]]") -> None:
        self._matches = found
        known = self.resources
        self.model.filtered(
            found,
            # A document that fits as a whole need not show what is in it.
            [
                name
                for name, ids in found.items()
                if not self.has_sections
                or name not in known
                or len(ids) < known[name].children
                or (len(ids) > 0 and known[name].id not in ids)
            ],
        )

    def _end_filtering(self) -> None:
        """The answer is there, or not wanted any more."""
        if self._filtering is not None:
            self._filtering.stop()
            self._filtering = None

    # The store changed

    def store_changed(self) -> None:
        """Read everything again; what is open stays open, the cursor where it is."""
        path, text = self.path, self.filter
        ways = [way for way in self.model.opened if isinstance(way[-1], str | Node)]
        opened = [way for way in ways if not is_folder(way[-1])][:MOST_REOPENED]
        self._ask(lambda store: renewed(store, opened, path, text), self._renew)

    def _renew(self, found: Renewed) -> None:
        key = self.key
        self._absence = None
        self._read.clear()
        self._measures.clear()
        self._measured_all = False
        self._is_whole = True
        self._summaries.clear()
        self._of_folders = found.of_folders
        known = {way: self._keys(way, below) for way, below in found.below.items()}
        if found.matches is not None and self.filter:
            self._show_matches(found.matches)
        self._take_resources(found.resources, known)
        there = {row.resource for row in found.resources}
        # Of what is gone, resources are marked no more; files are found to be gone when used.
        for mark in [mark for mark in self.rows.marks if isinstance(mark, tuple)]:
            name = mark[-1]
            if isinstance(name, str) and not is_folder(name) and name not in there:
                self.rows.marks.discard(mark)
        if key is not None and isinstance(key[-1], int) and not self.has_sections and found.place:
            self.rows.move_to(self._way_to(*found.place))
        self._sort_again()
        self._open_wanted()
        self._count()

    # What is kept

    def saved(self) -> dict[str, Any]:
        """What is open, where the cursor is, what is filtered."""
        opened = [way[-1] for way in self.model.opened if isinstance(way[-1], str)]
        opened.sort(key=lambda name: not is_folder(name))
        return {
            "opened": opened[:MOST_REOPENED],
            "path": self.path,
            "filter": self.filter,
            "order": self.order,
            "columns": self._chosen,
        }

    def restore(self, saved: Mapping[str, Any], *, opened: Sequence[str], path: str) -> None:
        """Open this again, once it is known."""
        text, order, columns = saved.get("filter"), saved.get("order"), saved.get("columns")
        if isinstance(order, str) and order.removeprefix("-") in texts.SORTS:
            self.order = order
        if isinstance(columns, list):
            self._chosen = [one for one in columns if one in texts.COLUMNS]
        self._opened_before = tuple(opened)
        self._wanted = (path, 0, 0)
        self.filter = text if isinstance(text, str) else ""
