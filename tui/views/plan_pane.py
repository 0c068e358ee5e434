"""A plan on the screen: its steps with a box each, beside them what one does."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer

from filestore import Step
from filestore.browse import Left
from tui.formatting.lines import Line, line
from tui.formatting.plans import kind_lines, left_lines, step_lines
from tui.state.plan_rows import Kind, PlanRows
from tui.state.rows import Listed
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane

PREVIEW_S: Final = 0.03
"""After the cursor came to rest."""


class PlanPane(Horizontal):
    """Steps to choose from; marking one chooses it. A report or an error may be shown instead."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "mark", show=False)]

    def __init__(self, message: Sequence[Line], *, id: str) -> None:
        super().__init__(id=id)
        self.plan_rows: PlanRows | None = None
        self._message = message
        self._resting: Timer | None = None
        self.steps = VirtualRows(
            id="plan-rows",
            marked_with=lambda key: self.plan_rows.chosen_with(key) if self.plan_rows else (),
        )
        self.text = TextPane(id="plan-detail", classes="beside")

    def compose(self) -> ComposeResult:
        """The steps, and what one does."""
        yield self.steps
        yield self.text

    def on_mount(self) -> None:
        """Show the first message."""
        self._show_detail()

    def show(self, rows: PlanRows, message: Sequence[Line]) -> None:
        """List the steps of a plan, the cursor staying on its step, or on the first one.

        Args:
            rows: The steps.
            message: Shown where there are none.
        """
        at = self.steps.cursor_key
        if at is None or rows.index_of(at) is None:
            at = rows.first_step()
        self.plan_rows, self._message = rows, message
        self.steps.marks = rows.chosen
        self.steps.show(rows, at=at)
        self._show_detail()

    def clear(self, message: Sequence[Line]) -> None:
        """List nothing, and show why."""
        self.plan_rows = None
        self.steps.marks = set()
        self.steps.show(Listed())
        self.show_message(message)

    def show_message(self, lines: Sequence[Line]) -> None:
        """Show a message in place of the step, until the cursor moves."""
        self._message = lines
        self.text.show(lines, key="message")

    @property
    def current(self) -> Step | Left | None:
        """What is under the cursor; None for a heading or an empty list."""
        key = self.steps.cursor_key
        return self.plan_rows.at(key) if self.plan_rows is not None and key is not None else None

    @property
    def path(self) -> str:
        """The file of what is under the cursor; "" for what has none."""
        found = self.current
        if isinstance(found, Left):
            return found.finding.path
        return found.path if found is not None and not found.part else ""

    def action_mark(self) -> None:
        """Choose or leave the step that is read, without going back to the list."""
        at = self.steps.cursor_key
        self.steps.action_mark()
        if at is not None:
            self.steps.move_to(at)

    @on(VirtualRows.Highlighted)
    def _row_changed(self) -> None:
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(PREVIEW_S, self._show_detail)

    @on(VirtualRows.Marked)
    def _marks_changed(self, event: VirtualRows.Marked) -> None:
        if self.plan_rows is None or event.marks is not self.plan_rows.chosen:
            event.stop()
            return
        self.plan_rows.recount_by(event.added, event.removed)
        self.steps.loaded(0, len(self.plan_rows))
        self._show_detail()

    def open_group(self) -> bool:
        """Open the group under the cursor; whether it is one."""
        key = self.steps.cursor_key
        if isinstance(key, Kind):
            self._set_open(key, is_open=True)
        return isinstance(key, Kind)

    def close_group(self) -> None:
        """Close the group under the cursor, or go up to it from one of its rows."""
        key = self.steps.cursor_key
        if isinstance(key, Kind):
            self._set_open(key, is_open=False)
        elif self.plan_rows is not None and key is not None:
            self.steps.move_to(self.plan_rows.group_of(key))

    def _set_open(self, group: Kind, *, is_open: bool) -> None:
        if self.plan_rows is not None:
            self.plan_rows.set_open(group.name, is_open=is_open)
            self.steps.changed()

    @on(VirtualRows.Chosen)
    def _row_entered(self, event: VirtualRows.Chosen) -> None:
        if isinstance(event.key, Kind) and self.plan_rows is not None:
            event.stop()
            self._set_open(event.key, is_open=not self.plan_rows.is_open(event.key.name))

    def _show_detail(self) -> None:
        rows, key = self.plan_rows, self.steps.cursor_key
        if rows is None or key is None:
            self.text.show(self._message, key="message")
            return
        found, plan = rows.at(key), rows.plan
        kind = key.name if isinstance(key, Kind) else ""
        if isinstance(found, Left):
            lines = left_lines(found)
        elif isinstance(found, Step):
            number = rows.number_of(found.key)
            lines = step_lines(found, number=number, total=len(plan.steps), model=plan.model)
        elif rows.steps_of(kind):
            lines = kind_lines(kind, rows.steps_of(kind), chosen=rows.chosen_of(kind))
        else:
            lines = [line("what no step repairs; each one says what you can do", "title")]
        self.text.show(lines, key=repr(key))
