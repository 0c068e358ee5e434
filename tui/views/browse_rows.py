"""What a list with a filter is, what the tree asks the store, and what is done with marked rows.

One rule: a marked resource means every file of it, read from the catalog and never on the screen's
thread.
"""

from array import array
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from filestore import UsageError
from filestore.browse import DocumentFiles, InspectedStore
from tui.formatting import Line, Span, count, span
from tui.state.rows import TreeRows, Way
from tui.views.context import ViewContext
from tui.widgets.bars import Caption
from tui.widgets.rows import MOST_MARKED, VirtualRows
from tui.widgets.text import LineField
from tui.widgets.upstream import Delay

if TYPE_CHECKING:
    from filestore.browse import Row

FILTER_S: Final = 0.06
"""How long typing pauses before a filter is applied."""

Below = Sequence["int | DocumentFiles | Row"]
"""What the store has below a resource, its summaries first, or below one of these."""


class Node(Struct, frozen=True):
    """The key of a file in the tree of summaries, whose way is what leads to it there."""

    path: str


class Located(Struct, frozen=True, kw_only=True):
    """Where a file is in the tree."""

    resource: str
    """Or the folder of several documents in place, of a summary of these; "" for the outermost."""
    file: int
    """Its id; of a document in place that of a section, 0 for the document itself."""
    way: Sequence[str]
    """Of a summary: what leads to it below the resource, itself the last."""
    below: Sequence[Below]
    """What is below the resource, nothing of a folder, and below each of these but the last."""


class Renewed(Struct, frozen=True, kw_only=True):
    """Everything of the tree, read in one go."""

    resources: "Sequence[Row]"
    of_folders: "Mapping[str, Sequence[Row]]"
    """The summaries of several documents in place, by folder."""
    below: Mapping[Way, Below]
    place: tuple[str, int] | None
    """Resource and file of the path under the cursor, as they are now."""
    matches: "Mapping[str, array[int]] | None"


class TreeList(Vertical):
    """Rows that open and close, above them a box in which a filter is typed, below a caption."""

    DEFAULT_CSS: ClassVar[str] = """
    TreeList, TreeList > VirtualRows { height: 1fr; }
    TreeList > LineField.filter { display: none; height: 1; border: none; padding: 0 1; }
    TreeList > LineField.filter.-open { display: block; }
    """

    class Pointed(Message):
        """The cursor is on something else, or what it is on became known."""

    def __init__(self, name: str, host: ViewContext, rows: VirtualRows, model: TreeRows) -> None:
        """Put the parts together; their ids begin with the name."""
        super().__init__(id=f"{name}-list")
        self.host = host
        self.rows = rows
        self.model = model
        rows.show(model)
        self.filter = ""
        """The filter that is applied; "" for none."""
        self.input = LineField(then=rows, placeholder="words   !not   ~regex", id=f"{name}-filter")
        """Where a filter is typed."""
        self.input.add_class("filter")
        self.caption = Caption(id=f"{name}-count")
        self._typing = Delay(self)

    def compose(self) -> ComposeResult:
        """The filter, the rows, the numbers."""
        yield self.input
        yield self.rows
        yield self.caption

    def show_count(self) -> None:
        """Show how much there is."""
        raise NotImplementedError

    # The filter

    def begin_filter(self) -> None:
        """Let a filter be typed."""
        self.input.add_class("-open")
        # At once: the next key may be here already.
        self.screen.set_focus(self.input)

    def put_filter(self, text: str) -> None:
        """Show a filter as if it had been typed, without applying it; "" for no box."""
        with self.input.prevent(Input.Changed):
            self.input.value = text
        self.input.set_class(bool(text), "-open")

    def filter_typed(self, text: str) -> None:
        """Apply a filter."""
        raise NotImplementedError

    @on(Input.Changed)
    def _typing_goes_on(self) -> None:
        self._typing.begin(FILTER_S, lambda: self.filter_typed(self.input.value.strip()))

    # What is under the cursor

    @property
    def key(self) -> Way | None:
        """Of the row under the cursor."""
        key = self.rows.cursor_key
        return key if isinstance(key, tuple) else None

    def changed(self) -> None:
        """Draw the rows again: some came, or went."""
        self.rows.changed()
        self._toggled()

    @on(VirtualRows.Toggled)
    def _toggled(self) -> None:
        self.show_count()
        self.post_message(self.Pointed())


# What the tree of files asks of the store


def rows_below(store: InspectedStore, key: Hashable) -> Below:
    """What is below a resource, or below a summary."""
    if isinstance(key, Node):
        return store.summaries.children(key.path)
    name = str(key)
    found, roots = store.listing.rows_below(name), store.summaries.roots(name)
    return [*roots, *found] if roots else found


def located(store: InspectedStore, path: str, line: int, section: int) -> Located | None:
    """Where a file is; None for one that the catalog does not have."""
    listing = store.listing
    found = listing.place_of(path)
    if found is None:
        return None
    resource, file = found
    if store.places.tree.has_sections:
        file = section or (listing.section_at(path, line) if line else 0)
    way = store.summaries.way_to(path)
    if f"{resource}/" in (folders := store.summaries.of_folders()) or (not resource and folders):
        resource = f"{resource}/" if resource else ""
    below = [rows_below(store, key) for key in (resource, *map(Node, way[:-1]))]
    return Located(resource=resource, file=file, way=way, below=below)


def matches(store: InspectedStore, text: str) -> "Mapping[str, array[int]]":
    """What a filter leaves.

    Raises:
        UsageError: It is a regular expression, and an invalid one.
    """
    from filestore.browse import NameFilter

    return store.listing.matching(NameFilter.parse(text))


def renewed(store: InspectedStore, opened: Sequence[Way], path: str, text: str) -> Renewed:
    """Everything of the tree.

    Args:
        store: Whose.
        opened: The resources and summaries that show what is below them.
        path: Of the file under the cursor; "" for none.
        text: The filter; "" for none.
    """
    listing = store.listing
    resources = listing.resources()
    there = {row.resource for row in resources}
    return Renewed(
        resources=resources,
        of_folders=store.summaries.of_folders(),
        below={
            way: rows_below(store, way[-1])
            for way in opened
            if isinstance(way[-1], Node) or way[-1] in there
        },
        place=listing.place_of(path) if path else None,
        matches=matches(store, text) if text else None,
    )


PAGE = 500
"""Files that are asked for at once."""


def marked_line(number: int) -> Line:
    """Below a list: how many rows are marked, and what can be done with them."""
    keys = "y copies, p plans, esc clears"
    return (span(f"{number:,} marked  ", "mark"), Span(keys, "quiet"))


def marked_paths(store: InspectedStore, keys: Sequence[Hashable]) -> Sequence[str]:
    """The paths of marked rows, in reading order within each resource.

    Raises:
        UsageError: They are too many.
    """
    found: dict[str, None] = {}
    for key in keys:
        match key:
            case str(path):
                found[path] = None
            case (*_, str(name)):
                found |= dict.fromkeys(_of_ids(store, store.listing.chunk_ids(name)))
    found |= dict.fromkeys(_of_ids(store, [key for key in keys if isinstance(key, int)]))
    return tuple(found)


def _of_ids(store: InspectedStore, ids: Sequence[int]) -> Sequence[str]:
    if len(ids) > MOST_MARKED:
        raise UsageError(
            f"{count(len(ids), 'file')} are too many to take one by one",
            remedy="p in Repair plans a repair of everything; 'filestore ls' prints every path",
        )
    found: list[str] = []
    for first in range(0, len(ids), PAGE):
        found += store.listing.paths(ids[first : first + PAGE])
    return found
