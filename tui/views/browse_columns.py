"""The rows of the left side of Browse, in columns, and the order that they are in.

Names and numbers come from the catalog, words a page at a time as the rows come in sight. One rule:
the cursor stays on its file, also where a rebuilt catalog gave it another number.
"""

from array import array
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from textual import on
from textual.message import Message
from textual.timer import Timer

from filestore import FilestoreError
from filestore.browse import DocumentFiles, InspectedStore, Row, natural_key
from tui.formatting import Line, line
from tui.formatting import rows as texts
from tui.formatting.rows import folder_above, is_folder, own_name, way_of
from tui.state.rows import Document, Pending, TreeRows, Way
from tui.views.browse_rows import Below, Node, TreeList, marked_line, rows_below
from tui.views.context import Target, ViewContext
from tui.widgets.rows import VirtualRows

if TYPE_CHECKING:
    from filestore.browse import Counts, Measure

MOST_ROWS: Final = 10_000
"""Rows whose words are kept; beyond that all are dropped and read again."""


class ResourceRows(TreeList):
    """The rows of resources and their files, in columns; see `BrowseTree`."""

    @dataclass
    class Arrived(Message):
        """The cursor is on the file asked for, or stays if the catalog does not have it."""

        path: str
        left_on: Target | None
        """What the cursor is on if no key moved it: that file, or what it was on before."""

    def __init__(self, host: ViewContext) -> None:
        model = TreeRows(
            self.label,
            self.rows_below,
            self.seek,
            self.fetch,
            can_open=self._can_open,
            is_heading=lambda way: isinstance(way[-1], str),
            # Folders inside one that is closed stay as they are.
            keeps=lambda way: is_folder(way[-1]),
            columns=self._columns,
        )
        rows = VirtualRows(id="browse-tree", marked_with=self.marked_with)
        super().__init__("browse", host, rows, model)
        self.resources: dict[str, Row] = {}
        """All that are known; of a store in place folders and documents."""
        self._inside: dict[str, list[Any]] = {}
        """Folder to what is in it, summaries of several documents first; "" for the top."""
        self._of_folders: Mapping[str, Sequence[Row]] = {}
        """These summaries."""
        self._documents: dict[Document, array[int]] = {}
        """The files of each document that is shown."""
        self._read: dict[str | int, Row] = {}
        """What was read for rows that came in sight."""
        self._summaries: dict[Way, Row] = {}
        """What is known of each row of the tree of summaries."""
        self._matches: Mapping[str, array[int]] = {}
        self._measures: dict[str, Measure] = {}
        """Size and date of what came in sight, or of all where these are sorted by."""
        self._measured_all = False
        self.order = ""
        """One of `texts.SORTS`, after "-" the other order; "" for the order of the store."""
        self._chosen: list[str] | None = None
        """The columns that were chosen here; None for those of the settings."""
        self._counts: Counts | None = None
        self._is_whole = False
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
        self._first: Sequence[Row] | None = None
        """The first page, which may come before there is a place to show it."""

    def _ask(
        self,
        question: Callable[[InspectedStore], Any],
        then: Callable[[Any], None],
        group: str = "resources",
        *,
        urgent: bool = False,
    ) -> None:
        self.host.task_manager.read(
            question, then, group=group, failed=self._take_absence, urgent=urgent
        )

    @property
    def has_sections(self) -> bool:
        """Whether the rows are documents, and their sections."""
        return self.host.findings.tree.has_sections

    @property
    def is_known(self) -> bool:
        """Whether the resources are known, or known to be unreadable."""
        return self._is_whole or self._absence is not None

    # What is under the cursor

    @property
    def resource(self) -> str | None:
        """The resource that the cursor is on or below."""
        return _resource_of(self.key) if self.key is not None else None

    @property
    def path(self) -> str:
        """Of the file under the cursor; "" for a resource, and while it is not known."""
        match self.key:
            case (*_, Node(path)):
                return path
            case (*_, key) if key in self._read:
                return self._read[key].path
        return ""

    @property
    def target(self) -> Target | None:
        """What to show for the row under the cursor."""
        key = self.key
        if key is None:
            return None
        if isinstance(key[-1], Node):
            return Target(path=key[-1].path)
        if isinstance(key[-1], int):
            read = self._read.get(key[-1])
            # Of a summary in place nothing is a section.
            if self.has_sections and read is not None and read.kind == "summary":
                return Target(path=read.path)
            return Target(file=key[-1])
        name = _resource_of(key)
        if self.has_sections and not is_folder(name):
            return Target(path=self.path) if self.path else None
        return Target(resource=name)

    def marked_with(self, way: Hashable) -> Collection[Hashable]:
        """What is marked with a row: nothing while its file is not known."""
        match way:
            case (*_, Pending()):
                return ()
            case (*_, Document() as document):
                return self._documents.get(document, ())
            case (*_, int(file)) | (*_, Node(file)):
                return (file,)
        return (way,)

    # What the rows are

    def rows_below(self, way: Way) -> Sequence[Any] | int:
        """The names in a folder, the files of a document; of a resource how many it has."""
        key = way[-1]
        if isinstance(key, Node):
            return self._summaries[way].children
        if isinstance(key, Document):
            return self._documents[key]
        return self._inside[key] if key in self._inside else self.resources[key].children

    def _can_open(self, way: Way) -> bool:
        """Not a summary that is above itself."""
        row = self._summaries.get(way)
        return row.children > 0 and not _is_circle(way) if row else isinstance(way[-1], str)

    def _keys(self, way: Way, found: Below) -> Sequence[Any]:
        """The keys of what is below a resource or a summary."""
        if isinstance(found, array):
            return found
        keys: list[Any] = []
        for one in found:
            if isinstance(one, DocumentFiles):
                keys.append(Document(one.ids[0]))
                self._documents[keys[-1]] = one.ids
            elif isinstance(one, Row):
                keys.append(Node(one.path))
                self._summaries[*way, keys[-1]] = one
            else:
                keys.append(one)
        return keys

    def seek(self, way: Way) -> None:
        """Read what is below a resource or a summary; folders come with all of them."""

        def take_below(found: Below) -> None:
            if not self.model.is_filtered and self.model.take(way, self._keys(way, found)):
                self.rows.changed()
                self.post_message(self.Pointed())

        if not is_folder(way[-1]):
            self.host.task_manager.read(
                lambda store: rows_below(store, way[-1]),
                take_below,
                group=f"below {way}",
                urgent=True,
            )

    def fetch(self, ways: Sequence[Way]) -> None:
        """Read some files, sections, or documents in place."""
        keys = [way[-1] for way in ways]
        # What is known of its first file says the name of a document.
        files = [key.first if isinstance(key, Document) else key for key in keys]
        files = [key for key in dict.fromkeys(files) if isinstance(key, int)]
        files = [key for key in files if key not in self._read]
        known = (self.resources[key] for key in keys if key in self.resources)
        names = {row.id: row.resource for row in known if row.id and row.resource not in self._read}

        def take_rows(found: "Mapping[int, Row]") -> None:
            rows = {names.get(one, one): row for one, row in found.items()}
            if len(self._read) + len(rows) > MOST_ROWS:
                self._read.clear()
                self.model.forget()
            self._read.update(rows)
            self.rows.loaded(0, len(self.model))
            if self.key is not None and self.key[-1] in rows:
                self.post_message(self.Pointed())

        def read(question: Callable[[InspectedStore], Any], then: Any = take_rows) -> None:
            self.host.task_manager.read(question, then, group="", urgent=True)

        unmeasured = [
            key
            for key in keys
            if isinstance(key, str) and not is_folder(key) and key not in self._measures
        ]
        if unmeasured:
            read(lambda store: store.listing.measures(unmeasured), self._take_measures)

        if names:
            read(lambda store: store.listing.documents(list(names)))
        elif files and self.has_sections:
            read(lambda store: store.listing.sections(files))
        elif files:
            read(lambda store: store.listing.chunks(files))

    def _take_measures(self, found: "Mapping[str, Measure]") -> None:
        self._measures.update(found)
        self.rows.loaded(0, len(self.model))

    def label(self, way: Way) -> Line | None:
        """The words of a row; None while nothing is known of it."""
        key = way[-1]
        if isinstance(key, Document):
            read, resource = self._read.get(key.first), self.resources.get(_resource_of(way))
            return texts.heading_row(read, resource) if read and resource else None
        shown = self._shown(way)
        if shown is not None and isinstance(key, Node):
            return texts.summary_row(shown[0], self.host.findings.tree, shown[1])
        return texts.file_row(*shown) if shown is not None else None

    def _columns(self, way: Way, room: int) -> Line:
        shown = None if isinstance(way[-1], Document | Node) else self._shown(way)
        if shown is None:
            return ()
        has_drift = len(self.host.findings) > 0
        wanted = [one for one in self.chosen_columns if one != "drift" or has_drift]
        chosen, measure = texts.columns_for(room, wanted), self._measures.get(way[-1])
        return texts.columns(*shown, measure, chosen)

    def _shown(self, way: Way) -> tuple["Row", texts.Shown] | None:
        """A row, and how it is shown; None while nothing is known of it."""
        key, is_filtered = way[-1], self.model.is_filtered
        name = _resource_of(way)
        resource, index = self.resources.get(name), self.host.findings.index
        if isinstance(key, Node):
            above = self._summaries.get(way[:-1])
            return self._summaries[way], texts.Shown(
                depth=len(way) - 1,
                is_open=self.model.is_open(way),
                is_circle=_is_circle(way),
                title_above=above.title if above is not None else own_name(name),
                findings=index.of_row(key.path),
            )
        read, by_title = self._read.get(key), self.order.endswith("title")
        if not isinstance(key, str):
            if read is None:
                return None
            # What a filter leaves is in no folder, and so says where it lies.
            shown = texts.Shown(name=name, depth=0 if is_filtered else len(way) - 2)
            if read.kind == "summary" and self.has_sections:
                shown = replace(shown, name="", findings=index.of_row(read.path))
            elif self.has_sections:
                at = self.model.index_of(way)
                above = self._read.get(self.model.key(at - 1)[-1]) if at else None
                place = above and (above.kind, above.path, above.headings)
                is_second = place == ("section", read.path, read.headings)
                shown = replace(shown, goes_on=is_second)
            else:
                shown = replace(shown, findings=index.of_row(read.path), by_title=by_title)
            if resource is not None and len(way) > 2 and isinstance(way[-2], Document):
                shown = replace(shown, name=f"{name}/{texts.document_name(read, resource)}")
            return read, shown
        if resource is None:
            if name:
                return None
            resource = Row(kind="folder", resource="")
        shown = texts.Shown(
            name=(name or "(all documents)") if is_filtered else own_name(name),
            depth=len(way) - 1,
            is_open=self.model.is_open(way),
            matches=len(self._matches[name]) if is_filtered and name else None,
            by_title=by_title,
        )
        if resource.kind != "document":
            return resource, replace(shown, severities=index.of_resource(name))
        if read is None:
            return resource, shown
        shown = replace(shown, findings=index.of_row(read.path))
        return replace(read, children=resource.children), shown

    def _take_resources(
        self, found: "Sequence[Row]", known: Mapping[Way, Sequence[Any]] | None = None
    ) -> None:
        self.resources = {row.resource: row for row in found}
        self._inside = {"": []}
        for name in self.resources:
            above = folder_above(name) if self.has_sections else ""
            self._inside.setdefault(above, []).append(name)
        if self.order:
            for names in self._inside.values():
                names.sort(key=self._rank, reverse=self.order.startswith("-"))
                names.sort(key=lambda name: not is_folder(name))
        for folder, rows in self._of_folders.items():
            if folder in self._inside:
                self._inside[folder][:0] = self._keys(way_of(folder) if folder else (), rows)
        self.model.replace(self._inside[""], known)
        self.changed()

    # The order, and the columns

    @property
    def chosen_columns(self) -> Sequence[str]:
        """Of `texts.COLUMNS`: those chosen here, or of the settings, or all."""
        if self._chosen is not None:
            return self._chosen
        return self.host.own.columns or tuple(texts.COLUMNS)

    def toggle_column(self, name: str) -> None:
        """Show a column, as the last one, or hide it."""
        shown = self.chosen_columns
        self._chosen = [one for one in shown if one != name]
        if name not in shown:
            self._chosen.append(name)
        self.rows.changed()

    def sort(self, order: str) -> None:
        """Put resources, folders and documents in another order; see `order`."""
        self.order = order
        needs = order.removeprefix("-") in ("size", "date")
        if needs and not self._measured_all:

            def take(found: "Mapping[str, Measure]") -> None:
                self._measured_all = True
                self._measures.update(found)
                self.sort(self.order)

            self._ask(lambda store: store.listing.measures(), take, "measures")
        else:
            self._take_resources(list(self.resources.values()))

    def _sort_again(self) -> None:
        """Once more is known."""
        if self.order and not self._measured_all:
            self.sort(self.order)

    def _rank(self, name: str) -> tuple[Any, ...]:
        """What names of one folder are sorted by, folders always first."""
        by, row = self.order.removeprefix("-"), self.resources[name]
        measure, found = self._measures.get(name), self.host.findings.index
        value: Any = 0
        if by == "title":
            value = (self._read.get(name, row).title or own_name(name)).casefold()
        elif by in ("size", "date"):
            value = ((measure.size_bytes or 0, measure.day) if measure else (0, ""))[by == "date"]
        elif by == "sections":
            value = row.children
        elif by == "drift":
            known = found.of_resource(name)
            value = tuple(known[severity] for severity in "EWI")
        return value, natural_key(name)

    # Reading

    def _take_absence(self, error: FilestoreError) -> None:
        """There is no catalog, or none that can be read."""
        self._absence = error
        self._read.clear()
        self._take_resources(())

    def _count(self) -> None:
        def take(counts: "Counts") -> None:
            """Show the numbers."""
            self._counts = counts
            self.show_count()

        self._ask(lambda store: store.listing.counts(), take, "counts")

    @on(VirtualRows.Marked)
    def show_count(self) -> None:
        """Show how much there is, how much is marked, and what is not indexed."""
        if self._filtering is not None:
            return
        is_filtered, known = self.model.is_filtered, self._counts
        total = len(self.model.tops)
        if self.has_sections and not is_filtered:
            total = sum(row.kind == "document" for row in self.resources.values())
            total = known.resources if known else total
        counts = texts.count_line(
            shown=sum(map(len, self._matches.values())) if is_filtered else 0,
            resources=total,
            chunks=known.chunks if known is not None else None,
            filtered=self.filter if is_filtered else "",
            has_sections=self.has_sections,
        )
        problem = [line(self._problem, "error")] if self._problem else []
        how_many = [counts] if self._absence is None else []
        marked = [marked_line(len(self.rows.marks))] if self.rows.marks else []
        self.caption.show([*problem, *how_many, *marked, *self.index_lines()])

    def index_lines(self) -> list[Line]:
        """How many files are not indexed, and the key that indexes them; nothing where all are."""
        if self._absence is not None:
            return texts.absence_lines(self._absence)
        files = self.host.findings.by_code().get("untracked", 0)
        return texts.unindexed_lines(files, is_short=bool(self.resources))

    def findings_changed(self) -> None:
        """Draw the findings of the rows again."""
        self.rows.loaded(0, len(self.model))
        self.show_count()


def _is_circle(way: Way) -> bool:
    """Whether a row names what is above it."""
    return way[-1] in way[:-1]


def _resource_of(way: Way) -> str:
    """The resource, folder or document that a row is, or is below; "" for the outermost folder."""
    return next((key for key in reversed(way) if isinstance(key, str)), "")
