"""The changes that were made, to undo and redo them: their list, the question, the work."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.formatting.lines import Line, line
from tui.formatting.reports import (
    Side,
    batch_line,
    batch_lines,
    file_change_lines,
    file_changes,
    next_undo,
    refusal_lines,
    removals,
    undo_lines,
    undo_scope,
    undo_summary,
)
from tui.state.rows import Listed
from tui.views.context import View, ViewContext
from tui.views.questions import ConfirmScreen
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane
from tui.workers import Handlers, Job

if TYPE_CHECKING:
    from filestore import FilestoreError, UndoResult
    from filestore.browse import Group

JOBS: Final[dict[Side, str]] = {"before": "undo", "after": "redo"}


class Changes(Horizontal):
    """The list of changes, newest first, and what undoing the one under the cursor does."""

    def __init__(self, host: ViewContext, *, id: str) -> None:
        super().__init__(id=id)
        self._host = host
        self._groups: dict[Hashable, Group] = {}
        self._message: Sequence[Line] = ()
        self.list = VirtualRows(id="changes-rows", marking=False)
        self.text = TextPane(id="changes-detail", classes="beside")

    def compose(self) -> ComposeResult:
        """The list, and what is under the cursor."""
        yield self.list
        yield self.text

    def read(self) -> None:
        """Read the changes again; the cursor stays on its change."""
        self._host.task_manager.read(lambda store: store.batches(), self._show, group="changes")

    def show_message(self, lines: Sequence[Line]) -> None:
        """Show what was done, or why not, until the cursor moves."""
        self._message = lines
        self._show_detail()

    def _show(self, groups: "Sequence[Group]") -> None:
        newest_first = sorted(groups, key=lambda group: int(group.id), reverse=True)
        self._groups = {group.id: group for group in newest_first}
        rows = [(group.id, batch_line(group)) for group in newest_first]
        self.list.show(Listed(rows), at=self.list.cursor_key)
        self._show_detail()

    @on(VirtualRows.Highlighted)
    def _moved(self) -> None:
        self._message = ()
        self._show_detail()

    @property
    def current(self) -> "Group | None":
        """The change under the cursor."""
        return self._groups.get(self.list.cursor_key)

    def _show_detail(self) -> None:
        group = self.current
        if self._message:
            self.text.show(self._message, key="message")
        elif group is None:
            self.text.show([line("no change is kept", "quiet")])
        else:
            self.text.show(batch_lines(group), key=group.id)


class UndoActions:
    """Undo and redo: find the change, ask, do it."""

    def __init__(self, view: View, *, show: Callable[[Sequence[Line]], None]) -> None:
        """Do nothing yet; `show` receives what was done, or why it was refused."""
        self._view = view
        self._host = view.host
        self._show_lines = show

    def begin(self, side: Side, identifier: str = "") -> None:
        """Ask about a change; without a name the one that comes first."""
        self._host.task_manager.read(
            lambda store: store.batches(),
            partial(self._ask, side, identifier),
            group="turn",
            urgent=True,
        )

    def _ask(self, side: Side, identifier: str, groups: "Sequence[Group]") -> None:
        named = [group for group in groups if group.id == identifier]
        group = named[0] if named else next_undo(groups, side)
        if group is None:
            self._host.notify(f"there is nothing to {JOBS[side]}", severity="warning")
        elif group.problem:
            self._host.notify(group.problem, severity="error")
        else:
            question = ConfirmScreen(
                undo_scope(group, side),
                [line(group.what, "quiet"), *file_change_lines(file_changes(group, side))],
                removes=removals(group, side),
            )
            self._view.app.push_screen(question, partial(self._answered, side, group.id))

    def _answered(self, side: Side, identifier: str, wanted: bool | None) -> None:
        if not wanted:
            return
        job = JOBS[side]
        self._host.note(f"filestore {self._host.store_option}{job} {identifier}")

        def refused(error: "FilestoreError") -> None:
            self._show_lines(refusal_lines(error))
            self._host.fail(error)
            self._host.look_again()

        def stopped() -> None:
            self._show_lines(
                [line("stopped: either all files of the change were restored, or none", "note")]
            )
            self._host.look_again()

        self._host.task_manager.work(
            Job(name=job, arguments={"identifier": identifier}),
            Handlers(then=partial(self._done, side), failed=refused, stopped=stopped),
            title=f"{job} {identifier}",
            writes=True,
        )

    def _done(self, side: Side, result: "UndoResult | None") -> None:
        self._show_lines(undo_lines(result, side=side))
        self._host.notify(undo_summary(result, side=side))
        self._host.look_again()
