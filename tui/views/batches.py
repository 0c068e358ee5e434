"""The changes that were made, to be undone and redone: their list, the question, and the doing."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from tui.backstage import Handlers, Job
from tui.desk import Desk
from tui.modals.confirm import ConfirmScreen
from tui.model.plan_rows import BatchRows
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane
from tui.words.lines import Line, line
from tui.words.reports import (
    Side,
    batch_lines,
    next_turn,
    refusal_lines,
    removals,
    turn_lines,
    turn_scope,
    turned_lines,
    turned_words,
    turns,
)

if TYPE_CHECKING:
    from filestore import FilestoreError, Group, Turned

Ask = Callable[[ConfirmScreen, Callable[[bool | None], None]], object]
JOBS: Final[dict[Side, str]] = {"before": "undo", "after": "redo"}


class Changes(Horizontal):
    """The list of changes, newest first, and what undoing the one under the cursor does."""

    def __init__(self, desk: Desk, *, id: str) -> None:
        super().__init__(id=id)
        self._desk = desk
        self._rows = BatchRows(())
        self._said: Sequence[Line] = ()
        self.list = VirtualRows(id="changes-rows", marking=False)
        self.text = TextPane(id="changes-detail")

    def compose(self) -> ComposeResult:
        """The list, and what is under the cursor."""
        yield self.list
        yield self.text

    def read(self) -> None:
        """Read the changes anew; the cursor stays on its change."""
        self._desk.backstage.read(lambda store: store.batches(), self._show, group="changes")

    def tell(self, lines: Sequence[Line]) -> None:
        """Say what was done, or why not, until the cursor moves."""
        self._said = lines
        self._show_detail()

    def _show(self, groups: "Sequence[Group]") -> None:
        at = self.list.cursor_key
        self._rows = BatchRows(groups)
        self.list.show(self._rows, at=at)
        self._show_detail()

    @on(VirtualRows.Highlighted)
    def _moved(self, event: VirtualRows.Highlighted) -> None:
        event.stop()
        self._said = ()
        self._show_detail()
        self._desk.situation_changed()

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        self.text.focus()

    @property
    def current(self) -> "Group | None":
        """The change under the cursor."""
        key = self.list.cursor_key
        return None if key is None else self._rows.at(key)

    def _show_detail(self) -> None:
        group = self.current
        if self._said:
            self.text.show(self._said, key="said")
            return
        lines = batch_lines(group) if group is not None else [line("no change is kept", "quiet")]
        self.text.show(lines, key=group.identifier if group is not None else "")


class Turning:
    """Undoing and redoing: the change is found, named in a question, and turned."""

    def __init__(self, desk: Desk, *, ask: Ask, told: Callable[[Sequence[Line]], None]) -> None:
        """Remember whom to ask and to tell.

        Args:
            desk: Where it is done.
            ask: Shows a question, and calls with its answer.
            told: Takes what was done, or why it was refused.
        """
        self._desk = desk
        self._ask_person = ask
        self._told = told

    def begin(self, side: Side, identifier: str = "") -> None:
        """Ask about a change; without a name the one that comes first."""
        self._desk.backstage.read(
            lambda store: store.batches(),
            partial(self._ask, side, identifier),
            group="turn",
            urgent=True,
        )

    def _ask(self, side: Side, identifier: str, groups: "Sequence[Group]") -> None:
        named = [group for group in groups if group.identifier == identifier]
        group = named[0] if named else next_turn(groups, side)
        if group is None:
            self._desk.say(f"there is nothing to {JOBS[side]}", severity="warning")
        elif group.problem:
            self._desk.say(group.problem, severity="error")
        else:
            question = ConfirmScreen(
                turn_scope(group, side),
                [line(group.what, "quiet"), *turn_lines(turns(group, side))],
                removes=removals(group, side),
            )
            self._ask_person(question, partial(self._answered, side, group.identifier))

    def _answered(self, side: Side, identifier: str, wanted: bool | None) -> None:
        if not wanted:
            return
        job = JOBS[side]
        command = f"filestore {self._desk.store_option}{job} {identifier}"
        self._desk.note(command)
        self._desk.backstage.work(
            Job(name=job, arguments={"identifier": identifier}),
            Handlers(then=partial(self._turned, side), failed=self._refused, stopped=self._stopped),
            title=f"{job} {identifier}",
            command=command,
            writes=True,
        )

    def _turned(self, side: Side, turned: "Turned | None") -> None:
        self._told(turned_lines(turned, side=side))
        self._desk.say(turned_words(turned, side=side))
        self._desk.look_again()

    def _refused(self, error: "FilestoreError") -> None:
        self._told(refusal_lines(error))
        self._desk.fail(error)
        self._desk.look_again()

    def _stopped(self) -> None:
        self._told([line("stopped: either all files of the change were put back, or none", "note")])
        self._desk.look_again()
