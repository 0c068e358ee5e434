"""A plan on the screen: its steps with a box each, beside them what one does."""

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer

from filestore import Left, Step
from tui.model.plan_choice import StepKey
from tui.model.plan_rows import BatchRows, Kind, PlanRows
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane
from tui.words.lines import Line, line
from tui.words.plans import kind_lines, left_lines, step_lines

PREVIEW_S: Final = 0.03
"""After the cursor came to rest."""


class PlanPane(Horizontal):
    """Steps to choose from. Instead of one, words may be shown: a report, a refusal."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "mark", show=False)]

    class Moved(Message):
        """The cursor came to another row."""

    class Toggled(Message):
        """Other steps are chosen than before."""

    class Read(Message):
        """A step is to be read."""

    def __init__(self, said: Sequence[Line], *, id: str) -> None:
        super().__init__(id=id)
        self.plan_rows: PlanRows | None = None
        self._said = said
        self._resting: Timer | None = None
        self.steps = VirtualRows(id="plan-rows", marked_with=self._chosen_with)
        self.text = TextPane(id="plan-detail")

    def compose(self) -> ComposeResult:
        """The steps, and what one does."""
        yield self.steps
        yield self.text

    def on_mount(self) -> None:
        """Say what can be done here."""
        self._show_detail()

    def show(self, rows: PlanRows, said: Sequence[Line]) -> None:
        """List the steps of a plan, the cursor staying on its step, or on the first one.

        Args:
            rows: The steps.
            said: Shown where there are none.
        """
        at = self.steps.cursor_key
        if at is None or rows.index_of(at) is None:
            at = rows.first_step()
        self.plan_rows, self._said = rows, said
        self.steps.marks = rows.chosen
        self.steps.show(rows, at=at)
        self._show_detail()

    def clear(self, said: Sequence[Line]) -> None:
        """List nothing, and say why."""
        self.plan_rows = None
        self.steps.marks = set()
        self.steps.show(BatchRows(()))
        self.tell(said)

    def tell(self, lines: Sequence[Line]) -> None:
        """Say something in place of the step under the cursor, until it moves."""
        self._said = lines
        self._show_said()

    @property
    def current(self) -> Step | Left | None:
        """What is under the cursor; None for a heading, and for nothing."""
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

    def _chosen_with(self, key: Hashable) -> Collection[StepKey]:
        return self.plan_rows.chosen_with(key) if self.plan_rows is not None else ()

    @on(VirtualRows.Highlighted)
    def _row_changed(self, event: VirtualRows.Highlighted) -> None:
        event.stop()
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(PREVIEW_S, self._show_detail)
        self.post_message(self.Moved())

    @on(VirtualRows.Marked)
    def _marks_changed(self, event: VirtualRows.Marked) -> None:
        event.stop()
        if self.plan_rows is None or event.marks is not self.plan_rows.chosen:
            return
        self.plan_rows.recount_by(event.added, event.removed)
        event.rows.loaded(0, len(self.plan_rows))
        self._show_detail()
        self.post_message(self.Toggled())

    @on(VirtualRows.Chosen)
    def _row_entered(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        if isinstance(event.key, Kind) and self.plan_rows is not None:
            name = event.key.name
            self.plan_rows.set_open(name, is_open=not self.plan_rows.is_open(name))
            event.rows.changed()
        else:
            self.post_message(self.Read())

    def _show_said(self) -> None:
        self.text.show(self._said, key="said")

    def _show_detail(self) -> None:
        key = self.steps.cursor_key
        if self.plan_rows is None or key is None:
            self._show_said()
        else:
            self.text.show(_lines_of(self.plan_rows, key), key=repr(key))


def _lines_of(rows: PlanRows, key: Hashable) -> Sequence[Line]:
    found, plan = rows.at(key), rows.plan
    if isinstance(found, Left):
        return left_lines(found)
    if isinstance(found, Step):
        number = rows.number_of(found.key)
        return step_lines(found, number=number, total=len(plan.steps), model=plan.model)
    kind = key.name if isinstance(key, Kind) else ""
    if not rows.steps_of(kind):
        return [line("what no step mends; each one says what you can do", "title")]
    return kind_lines(kind, rows.steps_of(kind), chosen=rows.chosen_of(kind))
