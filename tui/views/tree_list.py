"""A list of Browse whose rows open: a filter above, what there is below. Both trees are one."""

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from textual import on
from textual.message import Message

from filestore.browse import DocumentFiles, InspectedStore
from tui.formatting.lines import Line
from tui.state.rows import TreeRows, Way
from tui.views.context import ViewContext
from tui.widgets.rows import FilteredRows, VirtualRows

if TYPE_CHECKING:
    from filestore.browse import Row


Below = Sequence["int | DocumentFiles"]
"""What the store has below a resource."""


class Located(Struct, frozen=True, kw_only=True):
    """Where a file is in the tree."""

    resource: str
    file: int
    """Its id; of a document in place that of a section, 0 for the document itself."""
    below: Below


class Renewed(Struct, frozen=True, kw_only=True):
    """Everything of the tree, read in one go."""

    resources: "Sequence[Row]"
    below: Mapping[str, Below]
    place: tuple[str, int] | None
    """Resource and file of the path under the cursor, as they are now."""
    matches: "Mapping[str, array[int]] | None"


class TreeList(FilteredRows):
    """Rows that open and close; what they are, and what is below them, is for the subclass."""

    class Pointed(Message):
        """The cursor is on something else, or what it is on became known."""

    def __init__(self, name: str, host: ViewContext, rows: VirtualRows) -> None:
        super().__init__(name, rows)
        self.host = host
        self.filter = ""
        """The filter that is applied; "" for none."""
        self.model = TreeRows(
            self.label,
            self.below,
            self.seek,
            self.fetch,
            can_open=self.can_open,
            is_heading=lambda way: not self.is_file(way),
            keeps=self.keeps,
        )

    def on_mount(self) -> None:
        """Show what is known."""
        self.rows.show(self.model)

    # What the rows are

    def label(self, way: Way) -> Line | None:
        """The words of a row; None while nothing is known of it."""
        raise NotImplementedError

    def below(self, way: Way) -> Sequence[Any] | int:
        """What is below a row; while that is not known, how many rows."""
        raise NotImplementedError

    def seek(self, way: Way) -> None:
        """Read what is below a row, and hand it to the model."""
        raise NotImplementedError

    def fetch(self, ways: Sequence[Way]) -> None:
        """Read the words of some rows."""
        raise NotImplementedError

    def can_open(self, way: Way) -> bool:
        """Whether there is something below a row."""
        raise NotImplementedError

    def is_file(self, way: Way) -> bool:
        """Whether a row is read when it is chosen, not opened."""
        raise NotImplementedError

    def keeps(self, way: Way) -> bool:
        """Whether a row stays open while one above it is closed."""
        return False

    def show_count(self) -> None:
        """Show how much there is."""
        raise NotImplementedError

    # What is under the cursor

    @property
    def key(self) -> Way | None:
        """Of the row under the cursor."""
        key = self.rows.cursor_key
        return key if isinstance(key, tuple) else None

    @property
    def is_ascii(self) -> bool:
        """Whether the screen shows no more than ASCII."""
        return bool(getattr(self.app, "ascii", False))

    def changed(self) -> None:
        """Draw the rows again: some came, or went."""
        self.rows.changed()
        self.show_count()
        self.post_message(self.Pointed())

    @on(VirtualRows.Toggled)
    def _toggled(self) -> None:
        self.show_count()
        self.post_message(self.Pointed())

    def set_filter(self, text: str) -> None:
        """Show only what matches a filter."""
        self.put_filter(text)
        self.filter_typed(text)


# What the tree of files asks of the store


def located(store: InspectedStore, path: str, line: int, section: int) -> Located | None:
    """Where a file is; None for one that the catalog does not have."""
    listing = store.listing
    found = listing.place_of(path)
    if found is None:
        return None
    resource, file = found
    if store.places.tree.has_sections:
        file = section or (listing.section_at(path, line) if line else 0)
    return Located(resource=resource, file=file, below=listing.below(resource))


def matches(store: InspectedStore, text: str) -> "Mapping[str, array[int]]":
    """What a filter leaves.

    Raises:
        UsageError: It is a regular expression, and an invalid one.
    """
    from filestore.browse import NameFilter

    return store.listing.matching(NameFilter.parse(text))


def renewed(store: InspectedStore, opened: Sequence[str], path: str, text: str) -> Renewed:
    """Everything of the tree.

    Args:
        store: Whose.
        opened: The resources that show their files.
        path: Of the file under the cursor; "" for none.
        text: The filter; "" for none.
    """
    listing = store.listing
    resources = listing.resources()
    there = {row.resource for row in resources}
    return Renewed(
        resources=resources,
        below={name: listing.below(name) for name in opened if name in there},
        place=listing.place_of(path) if path else None,
        matches=matches(store, text) if text else None,
    )
