"""The family of a file in the tree of summaries, which leads to each of its members."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from filestore import FilestoreError
from tui.formatting import Line, error_lines, line
from tui.formatting.chunks import family_lines
from tui.formatting.rows import family_rows
from tui.state.rows import Listed
from tui.views.context import Jumped, ViewContext
from tui.widgets.bars import Caption
from tui.widgets.rows import VirtualRows

if TYPE_CHECKING:
    from filestore.browse import Family


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
            self._draw([line("of a file: go to one in the list", "quiet")], None)
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
