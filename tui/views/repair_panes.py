"""The panes of Repair: a plan, its steps with a box each; and the changes made, to undo them."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeGuard

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from filestore import Step
from filestore.browse import Left
from tui.formatting import Line, error_lines, line, plain
from tui.formatting import reports as texts
from tui.formatting.plans import kind_lines, left_lines, step_lines
from tui.state.lists import PlanRows
from tui.state.rows import Listed, Way
from tui.views.context import ViewContext
from tui.views.dialogs import ConfirmScreen
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane
from tui.widgets.upstream import Delay
from tui.workers.tasks import Handlers, Job

if TYPE_CHECKING:
    from filestore import FilestoreError, UndoResult
    from filestore.browse import Group

PREVIEW_S: Final = 0.03
"""After the cursor came to rest."""


class PlanPane(Horizontal):
    """Steps to choose from; marking one chooses it. A report or an error may be shown instead."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "mark", show=False)]

    def __init__(self, message: Sequence[Line], *, id: str) -> None:
        super().__init__(id=id, classes="-empty")
        self.plan_rows: PlanRows | None = None
        self._message = message
        self._resting = Delay(self)
        self.steps = VirtualRows(
            id="plan-rows",
            signs=False,
            marked_with=lambda key: self.plan_rows.chosen_with(key) if self.plan_rows else (),
        )
        self.text = TextPane(id="plan-detail", classes="aside")

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
            # The first step that is shown; the first row where none is.
            at = rows.key(min(len(rows), 2) - 1) if len(rows) else None
        self.plan_rows, self._message = rows, message
        self.steps.marks = rows.chosen
        self.steps.show(rows, at=at)
        self.set_class(not len(rows), "-empty")
        self._show_detail()

    def clear(self, message: Sequence[Line]) -> None:
        """List nothing, and show why."""
        self.plan_rows = None
        self.steps.marks = set()
        self.steps.show(Listed())
        self.add_class("-empty")
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
    def is_on_heading(self) -> bool:
        """Whether the cursor is on the heading of a group."""
        return _is_group(self.steps.cursor_key)

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
        self._resting.begin(PREVIEW_S, self._show_detail)

    @on(VirtualRows.Marked)
    def _marks_changed(self, event: VirtualRows.Marked) -> None:
        if self.plan_rows is None or event.marks is not self.plan_rows.chosen:
            event.stop()
            return
        self.plan_rows.recount_by(event.added, event.removed)
        self.steps.loaded(0, len(self.plan_rows))
        self._show_detail()

    def _show_detail(self) -> None:
        rows, key = self.plan_rows, self.steps.cursor_key
        if rows is None or key is None:
            self.text.show(self._message, key="message")
            return
        found, plan = rows.at(key), rows.plan
        kind = key[0] if _is_group(key) else ""
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


def _is_group(way: Hashable) -> TypeGuard[Way]:
    """Whether a row is the heading of a group."""
    return isinstance(way, tuple) and len(way) == 1


JOBS: Final[dict[texts.Side, str]] = {"before": "undo", "after": "redo"}


class Changes(Horizontal):
    """The list of changes, newest first, and what undoing the one under the cursor does.

    Undo and redo find the change, ask, and do it.
    """

    def __init__(self, host: ViewContext, *, show: Callable[[Sequence[Line]], None]) -> None:
        """List nothing yet; `show` receives what was done, or why it was refused."""
        super().__init__(id="changes")
        self._host = host
        self._show_lines = show
        self._groups: dict[Hashable, Group] = {}
        self.of_programs = False
        """Whether those of people are left out."""
        self.has_programs = False
        """Whether any is of a program, as far as they were read."""
        self._message: Sequence[Line] = ()
        self.list = VirtualRows(id="changes-rows", marking=False)
        self.text = TextPane(id="changes-detail", classes="aside")

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
        self.has_programs = any(group.by is not None for group in groups)
        self._groups = {
            group.id: group
            for group in newest_first
            if not self.of_programs or group.by is not None
        }
        rows = [(key, texts.batch_line(group)) for key, group in self._groups.items()]
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
            whose = " of a program" if self.of_programs else ""
            self.text.show([line(f"no change{whose} is kept", "quiet")])
        else:
            self.text.show(texts.batch_lines(group), key=group.id)
            self._host.task_manager.read(
                lambda store: store.diff_of_undo(group.id),
                partial(self._show_diff, group),
                group="diff of a change",
                failed=lambda _: None,
            )

    def _show_diff(self, group: "Group", diff: str) -> None:
        if group is self.current and not self._message and diff:
            self.text.show(texts.batch_lines(group, diff), key=group.id)

    # Undo and redo

    def undo_or_redo(self, side: texts.Side, *, listed: bool) -> None:
        """Ask about the change under the cursor where the list is seen; else the one in turn."""
        group = self.current if listed else None
        self._host.task_manager.read(
            lambda store: (store.batches(), store.next_undo_redo()),
            partial(self._ask, side, group.id if group is not None else ""),
            group="turn",
            urgent=True,
        )

    def _ask(
        self, side: texts.Side, identifier: str, kept: "tuple[Sequence[Group], tuple[str, str]]"
    ) -> None:
        groups, (undo, redo) = kept
        wanted = identifier or (undo if side == "before" else redo)
        group = next((one for one in groups if one.id == wanted), None)
        if group is None:
            self._host.notify(f"there is nothing to {JOBS[side]}", severity="warning")
        elif group.problem:
            self._host.notify(group.problem, severity="error")
        else:
            files = texts.file_changes(group, side)
            question = ConfirmScreen(
                texts.undo_scope(group, side),
                [line(group.what, "quiet"), *texts.file_change_lines(files)],
                removes=sum(fate == "goes" for _, fate in files),
            )
            identifier = group.id
            self.app.push_screen(question, lambda yes: self._do(side, identifier) if yes else None)

    def _do(self, side: texts.Side, identifier: str) -> None:
        job = JOBS[side]
        self._host.note(f"filestore {self._host.store_option}{job} {identifier}")

        def ended(lines: Sequence[Line]) -> None:
            self._show_lines(lines)
            self._host.look_again()

        def refused(error: "FilestoreError") -> None:
            self._host.fail(error)
            ended(error_lines(error, is_whole=True))

        def done(result: "UndoResult | None") -> None:
            lines = texts.undo_lines(result, side=side)
            self._host.notify(plain(lines[:1]))
            ended(lines)

        what = line("stopped: either all files of the change were restored, or none", "note")

        self._host.task_manager.work(
            Job(name=job, arguments={"identifier": identifier}),
            Handlers(then=done, failed=refused, stopped=partial(ended, [what])),
            title=f"{job} {identifier}",
            writes=True,
        )
