"""The words of the rows of the tree, read a page at a time as they come in sight.

One rule: no row waits for what is not read yet, but is drawn again once it is.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

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
        self._host.task_manager.read(
            lambda store: store.listing.documents(ids), self._take_documents, group="", urgent=True
        )

    def _take_documents(self, found: "Mapping[int, DocumentRow]") -> None:
        is_fresh = len(self._documents) + len(found) > MOST_ROWS
        if is_fresh:
            self._documents.clear()
        self._documents.update(found)
        self._changed(found.keys(), is_fresh=is_fresh)

    # Writing

    def label(self, kind: Literal["r", "c"], key: str | int, model: TreeRows) -> Line | None:
        """The words of a row; None where nothing is known of it."""
        if isinstance(key, int):
            return self._file_label(key, model)
        row = self.resources.get(key)
        if row is None:
            return None
        if self.is_in_place:
            return self._entry_label(row, model)
        return texts.resource_row(
            row,
            self._host.findings.of_resource(key),
            is_open=model.is_open(key),
            shown=model.count(key) if model.is_filtered else None,
            ascii_only=self.ascii_only,
        )

    def _file_label(self, key: int, model: TreeRows) -> Line | None:
        from filestore.browse import SectionRow

        row = self._files.get(abs(key))
        if row is None:
            return None
        index = model.index_of(key)
        resource = model.resource_of(index) if index is not None else ""
        if isinstance(row, SectionRow):
            return documents.section_row(row, depth=0 if model.is_filtered else depth(resource))
        if key < 0:
            return texts.document_row(row, self.resources[resource])
        return texts.chunk_row(row, resource, self._host.findings.of_row(row.path))

    def _entry_label(self, row: "ResourceRow", model: TreeRows) -> Line:
        name = row.resource
        # What a filter leaves stands in no folder, and so says where it lies.
        shown = name if model.is_filtered else own_name(name)
        level = 0 if model.is_filtered else depth(name)
        if is_folder(name):
            return documents.folder_row(
                row,
                shown,
                self._host.findings.of_resource(name),
                depth=level,
                is_open=name in self.opened_folders,
                ascii_only=self.ascii_only,
            )
        known = self._documents.get(row.document)
        return documents.document_row(
            row,
            known,
            shown,
            self._host.findings.of_row(known.path) if known is not None else (),
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
