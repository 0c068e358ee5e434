"""What the tree of Browse asks of the store: the words of its rows, and everything in one go each.

Words are read a page at a time as the rows come in sight. One rule: no row waits for what is not
read yet, but is drawn again once it is.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct

from filestore.browse import InspectedStore
from tui.formatting import chunks as texts
from tui.formatting import documents
from tui.formatting.lines import Line
from tui.state.tree import TreeRows, depth, is_folder, own_name
from tui.views.context import ViewContext

if TYPE_CHECKING:
    from filestore.browse import ChunkRow, DocumentRow, ResourceRow, SectionRow

MOST_ROWS: Final = 10_000
"""Rows that are kept; beyond that all are dropped and fetched again."""
_AT_ONCE: Final = 64
"""Documents that are read at once."""


class RowsChanged(Protocol):
    """Draws rows again."""

    def __call__(self, found: Collection[int], *, is_fresh: bool) -> None:
        """Draw them again.

        Args:
            found: The ids of files, sections or documents that are known now.
            is_fresh: Whether nothing else is known any more.
        """


class TreeLabels:
    """What is known of the rows, and how they are written."""

    def __init__(self, host: ViewContext, changed: "RowsChanged") -> None:
        """Nothing is known yet.

        Args:
            host: The frame.
            changed: Is called with what is known now.
        """
        self._host = host
        self._changed = changed
        self.ascii_only = False
        """Whether the screen shows no more than ASCII."""
        self.resources: dict[str, ResourceRow] = {}
        """All that are known, by name."""
        self.opened_folders: set[str] = set()
        """Of a store in place."""
        self._files: dict[int, ChunkRow | SectionRow] = {}
        self._documents: dict[int, DocumentRow] = {}

    @property
    def is_in_place(self) -> bool:
        """Whether the rows are documents, and their sections."""
        return not self._host.findings.tree.folder

    def path_of(self, key: object) -> str:
        """Of the file, or the document, of a row; "" where it has none, or is not known yet."""
        match key:
            case int():
                row = self._files.get(key)
                return row.path if row is not None else ""
            case ("r", str(name)) if self.is_in_place and name in self.resources:
                document = self._documents.get(self.resources[name].document)
                return document.path if document is not None else ""
        return ""

    def forget(self) -> None:
        """Read everything again."""
        self._files.clear()
        self._documents.clear()

    # Reading

    def fetch(self, ids: Sequence[int]) -> None:
        """Read some files, or some sections."""
        if self.is_in_place:
            self._host.task_manager.read(
                lambda store: store.listing.sections(ids), self._take, group="", urgent=True
            )
            return
        # Of a document, what is known of its first file says its name.
        wanted = tuple(dict.fromkeys(map(abs, ids)))
        self._host.task_manager.read(
            lambda store: store.listing.chunks(wanted), self._take, group="", urgent=True
        )

    def _take(self, found: "Mapping[int, ChunkRow] | Mapping[int, SectionRow]") -> None:
        is_fresh = len(self._files) + len(found) > MOST_ROWS
        if is_fresh:
            self._files.clear()
        self._files.update(found)
        self._changed(found.keys(), is_fresh=is_fresh)

    def fetch_documents(self, names: Sequence[str]) -> None:
        """Read what the rows of some documents in place say, if these are any."""
        if not self.is_in_place:
            return
        rows = (self.resources[name] for name in names if name in self.resources)
        ids = [row.document for row in rows if row.document not in (0, *self._documents)]
        for first in range(0, len(ids), _AT_ONCE):
            self._read_documents(ids[first : first + _AT_ONCE])

    def _read_documents(self, ids: Sequence[int]) -> None:
        def take_documents(found: "Mapping[int, DocumentRow]") -> None:
            is_fresh = len(self._documents) + len(found) > MOST_ROWS
            if is_fresh:
                self._documents.clear()
            self._documents.update(found)
            self._changed(found.keys(), is_fresh=is_fresh)

        self._host.task_manager.read(
            lambda store: store.listing.documents(ids), take_documents, group="", urgent=True
        )

    # Writing

    def label(self, kind: Literal["r", "c"], key: str | int, model: TreeRows) -> Line | None:
        """The words of a row; None where nothing is known of it."""
        if isinstance(key, int):
            from filestore.browse import SectionRow

            known = self._files.get(abs(key))
            if known is None:
                return None
            index = model.index_of(key)
            resource = model.resource_of(index) if index is not None else ""
            if isinstance(known, SectionRow):
                return documents.section_row(
                    known, depth=0 if model.is_filtered else depth(resource)
                )
            if key < 0:
                return texts.document_row(known, self.resources[resource])
            return texts.chunk_row(known, resource, self._host.findings.index.of_row(known.path))
        row = self.resources.get(key)
        if row is None:
            return None
        if self.is_in_place:
            return self._entry_label(row, model)
        return texts.resource_row(
            row,
            self._host.findings.index.of_resource(key),
            is_open=model.is_open(key),
            shown=model.count(key) if model.is_filtered else None,
            ascii_only=self.ascii_only,
        )

    def _entry_label(self, row: "ResourceRow", model: TreeRows) -> Line:
        name = row.resource
        # What a filter leaves stands in no folder, and so says where it lies.
        shown = name if model.is_filtered else own_name(name)
        level = 0 if model.is_filtered else depth(name)
        if is_folder(name):
            return documents.folder_row(
                row,
                shown,
                self._host.findings.index.of_resource(name),
                depth=level,
                is_open=name in self.opened_folders,
                ascii_only=self.ascii_only,
            )
        known = self._documents.get(row.document)
        return documents.document_row(
            row,
            known,
            shown,
            self._host.findings.index.of_row(known.path) if known is not None else (),
            depth=level,
            is_open=model.is_open(name),
            ascii_only=self.ascii_only,
            shown=model.count(name) if model.is_filtered else None,
        )


def partly_shown(
    resources: "Mapping[str, ResourceRow]", matches: Mapping[str, Sequence[int]]
) -> set[str]:
    """The documents of which a filter leaves some sections only."""
    return {
        name
        for name, ids in matches.items()
        if name in resources and len(ids) < resources[name].chunks
    }


class Renewed(Struct, frozen=True, kw_only=True):
    """Everything of the tree, read in one go."""

    resources: "Sequence[ResourceRow]"
    opened: "Mapping[str, array[int]]"
    place: tuple[str, int] | None
    """Resource and file of the path under the cursor, as they are now."""
    matches: "Mapping[str, array[int]] | None"


class Place(Struct, frozen=True, kw_only=True):
    """Where a file stands in the tree."""

    resource: str
    file: int
    """Its id; of a document in place that of a section, 0 for the document itself."""
    ids: "array[int]"
    """The rows below the resource."""


def place_of(store: InspectedStore, path: str, line: int, section: int) -> Place | None:
    """Where a file stands; None for one that the catalog does not have.

    Args:
        store: Whose.
        path: Relative to the store root.
        line: Of a document in place, the section with this line is meant; 0 for none.
        section: The same by its id; 0 for none.
    """
    listing = store.listing
    found = listing.place_of(path)
    if found is None:
        return None
    resource, file = found
    if store.places.is_in_place:
        file = section or (listing.section_at(path, line) if line else 0)
    return Place(resource=resource, file=file, ids=listing.outline(resource))


def matches(store: InspectedStore, text: str) -> "Mapping[str, array[int]]":
    """What a filter leaves.

    Raises:
        UsageError: It is a regular expression, and an invalid one.
    """
    from filestore.browse import Wanted

    return store.listing.matching(Wanted.parse(text))


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
        opened={name: listing.outline(name) for name in opened if name in there},
        place=listing.place_of(path) if path else None,
        matches=matches(store, text) if text else None,
    )
