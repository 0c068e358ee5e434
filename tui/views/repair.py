"""Repair: a plan, chosen step by step, reviewed, applied, and undone.

One rule: nothing is written here before the user saw it and confirmed its counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus
from textual.widget import Widget

from filestore import Policy
from tui.actions import ActionContext, Place
from tui.formatting import Line, count, cut, error_lines, line, plain, shortened
from tui.formatting import plans as texts
from tui.formatting.findings import diff_lines
from tui.formatting.reports import Side, report_lines
from tui.state.lists import (
    ChosenSteps,
    PlanRows,
    Request,
    StepKey,
    chosen_of,
    prepared,
    request_for,
)
from tui.views.context import View, ViewContext
from tui.views.dialogs import ConfirmScreen
from tui.views.repair_panes import Changes, PlanPane
from tui.widgets.bars import Caption
from tui.widgets.rows import VirtualRows
from tui.widgets.upstream import Delay
from tui.workers.tasks import Handlers, Job, Task

if TYPE_CHECKING:
    from filestore import FilestoreError, Finding, Plan, RepairReport
    from filestore.browse import SideChoice

PROGRESS_S: Final = 0.2
AT_ONCE: Final = 5_000
"""Steps; more are computed in another thread."""
MOST_NAMED: Final = 200
"""Files named in a question."""
MOST_SHOWN: Final = 1_000
"""Characters of a command line."""
TOO_MANY: Final = "too many files for one command line: choose whole groups"
MOST_WATCHED: Final = 2_000
"""Steps whose findings are watched to see whether the plan still fits."""


class RepairView(View):
    """A plan and its steps; below it the command that does the same. Or the changes made so far."""

    place: ClassVar[Place] = "repair"
    # The screen's classes, above the page, depend on its width.
    SCOPED_CSS: ClassVar[bool] = False
    DEFAULT_CSS = """
    RepairView { layout: vertical; width: 1fr; height: 1fr; }
    RepairView > #plan, RepairView > #changes { height: 1fr; }
    RepairView #plan-rows { width: 2fr; }
    RepairView #changes-rows { width: 4fr; }
    RepairView .aside { width: 3fr; }
    RepairView > #plan-head { background: $panel; padding: 0 1; }
    RepairView > #plan-footer { background: $panel; padding: 0 1; }
    RepairView > #changes { display: none; }
    RepairView.-changes > #changes { display: block; }
    RepairView.-changes > #plan { display: none; }
    .-narrow RepairView #plan-rows, .-narrow RepairView #changes-rows { width: 1fr; }
    .-narrow RepairView .aside { display: none; width: 1fr; }
    .-narrow RepairView.-reading .aside, .-narrow PlanPane.-empty .aside { display: block; }
    .-narrow PlanPane.-empty #plan-rows { width: 1; }
    .-narrow RepairView.-reading #plan-rows, .-narrow RepairView.-reading #changes-rows {
        display: none;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab,shift+tab", "other_part", show=False)]

    def __init__(self, host: ViewContext) -> None:
        super().__init__(host)
        self._request: Request | None = None
        """What the plan in sight was made for."""
        self._asked: Request | None = None
        """What the last plan was asked for; it may not be made yet."""
        self._is_choice = False
        """Whether the plan is for a choice that was just made: it is asked for at once."""
        self._begun_with: set[StepKey] = set()
        self._chosen: ChosenSteps | None = None
        self._command = ""
        self._costs: Sequence[Line] = ()
        """What the chosen steps do, and the command for it; how far work is comes below."""
        self._seen: dict[str, frozenset[str]] = {}
        self._stale = ""
        self._writes_files = False
        """Whether the running work writes files; otherwise there is nothing to undo."""
        self._job: Task | None = None
        self._ticking = Delay(self)
        self._head = Caption(id="plan-head", most=1)
        self._footer = Caption(id="plan-footer", most=3)
        self._pane = PlanPane(texts.NO_PLAN, id="plan")
        self._changes = Changes(host, show=self._show_message)

    def compose(self) -> ComposeResult:
        """What the plan is of, its steps and the one under the cursor, the command line."""
        yield self._head
        yield self._pane
        yield self._changes
        yield self._footer

    def on_mount(self) -> None:
        """Draw head and footer."""
        self._draw()

    @property
    def _rows(self) -> PlanRows | None:
        return self._pane.plan_rows

    # What the frame asks

    def action_context(self) -> ActionContext:
        """This page's state now."""
        now = ActionContext(place=self.place, path=self._pane.path)
        chosen = self._chosen
        if chosen is None:
            return now
        return replace(
            now,
            codes=chosen.codes,
            paths=chosen.paths,
            steps=len(chosen.plan.steps),
            planned=len(self._rows.plan.steps) if self._rows is not None else 0,
            truth=chosen.truth,
            level=chosen.plan.level,
        )

    def entered(self) -> None:
        """Give the list the focus, and read the changes where they are seen."""
        if self.has_class("-changes"):
            self._changes.read()
        self.screen.set_focus(self.parts[0])

    def store_changed(self) -> None:
        """Check whether the plan still fits the generation of the catalog."""
        if self.has_class("-changes"):
            self._changes.read()
        if self._rows is not None and not self._is_working():
            self.host.task_manager.read(
                lambda store: store.listing.generation,
                self._compare_generation,
                group="plan-generation",
                failed=lambda _: None,
            )

    def _compare_generation(self, now: int) -> None:
        planned = self._rows.plan.generation if self._rows is not None else now
        if now != planned:
            self._become_stale(
                f"the store has changed since this plan was made (generation {planned}, now {now})"
            )

    def findings_changed(self) -> None:
        """Check whether what the plan repairs is still found."""
        if self._rows is None or self._is_working() or self.host.findings.coverage.is_running:
            return
        if self._findings_of(self._seen) != self._seen:
            self._become_stale("what it repairs has changed since")

    def _become_stale(self, why: str) -> None:
        self._stale = why
        self._draw()

    def _findings_of(self, paths: Iterable[str]) -> dict[str, frozenset[str]]:
        known = self.host.findings.index.of_path
        return {path: frozenset(one.code for one in known(path)) for path in paths}

    def command(self) -> str:
        """The command lines that apply what is chosen, each with the program's name."""
        return self._command if self._chosen is not None else ""

    # Planning

    def plan_for(
        self, findings: "Sequence[Finding] | None" = None, policy: Policy | None = None
    ) -> None:
        """Plan a repair of some findings.

        Args:
            findings: None for all.
            policy: What is wanted; None for a plan that writes files only where these findings
                ask for it.
        """
        self._plan(request_for(findings, policy))

    def take_side(self, choice: "SideChoice") -> None:
        """Plan what a person chose in a conflict."""
        if choice.policy is None:
            self.host.notify(f"{choice.label}: {choice.command or 'nothing to do'}")
            return
        self.host.go("repair")
        self.plan_for(None, choice.policy)
        self._is_choice = True

    def do_plan_all(self) -> None:
        """Plan a repair of everything."""
        self.plan_for()

    def do_plan_again(self) -> None:
        """Make the plan again."""
        self._plan(self._asked or request_for(None, None))

    def do_truth(self) -> None:
        """Plan again, with or without steps that write files."""
        request = self._asked or request_for(None, None)
        self._plan(request.with_truth(not request.policy.truth))

    def _plan(self, request: Request) -> None:
        if self._job is not None and not self._job.is_over:
            if self._job.writes:
                self.host.notify(f"{self._job.title} is running", severity="warning")
                return
            self.host.task_manager.stop(self._job)
        self._asked, self._is_choice = request, False
        self.remove_class("-changes")
        arguments = {"policy": request.policy, "findings": request.findings}

        def show_plan(made: "tuple[PlanRows, set[StepKey]]") -> None:
            rows, self._begun_with = made
            self._request = request
            self._seen = self._findings_of([step.path for step in rows.plan.steps[:MOST_WATCHED]])
            self._stale = ""
            self._pane.show(rows, [line("nothing found needs repair", "good")])
            self._count()
            self._end()
            is_seen = self.display and self.screen.is_current
            if self._is_choice and is_seen and self._chosen and self._chosen.plan.steps:
                self.do_apply()

        def wanted(function: Callable[..., None]) -> Callable[..., None]:
            """The same, unless another plan was asked for since."""
            return lambda *given: function(*given) if self._job is task else None

        task = self.host.task_manager.work(
            Job(name="plan", arguments=arguments),
            Handlers(
                then=wanted(lambda plan: self._prepare(request, plan, wanted(show_plan))),
                failed=wanted(self._refused),
                stopped=wanted(partial(self._stopped, "stopped: nothing was changed")),
            ),
            title=f"plan for {request.about}",
            writes=False,
        )
        self._begin(task)
        if self._rows is None:
            self._pane.show_message(texts.PLANNING)

    def _prepare(self, request: Request, plan: "Plan", then: Callable[..., None]) -> None:
        old = self._request
        # Of an earlier plan for the same, whatever it may write, what was chosen stays so.
        is_like = old is not None and old.with_truth(False) == request.with_truth(False)
        before = self._rows if is_like else None
        prepare = partial(prepared, plan, request, before, self._begun_with)
        self._compute(plan, prepare, then, group="plan rows")

    def _compute(
        self, plan: "Plan", work: Callable[[], Any], then: Callable[[Any], None], *, group: str
    ) -> None:
        """Compute something about a plan: at once, or in a thread where it would delay a key."""
        if len(plan.steps) <= AT_ONCE:
            then(work())
        else:
            self.host.task_manager.read(lambda _: work(), then, group=group)

    def _count(self) -> None:
        """Compute what the chosen steps do, and the command for it."""
        self._chosen, self._costs = None, ()
        rows, request = self._rows, self._request
        if rows is None or request is None:
            return
        self._costs = [line("counting …", "quiet"), line("")]
        # The codes of which the plan repairs every known finding.
        asked = Counter(finding.code for finding in request.findings or ())
        known = self.host.findings.by_code()
        whole = frozenset(code for code, number in asked.items() if number == known.get(code))
        chosen, store = frozenset(rows.chosen), self.host.store_option

        def count_up() -> tuple[ChosenSteps, str]:
            found = texts.commands(rows.plan, chosen, is_whole=request.is_whole, whole=whole)
            words = " && ".join(f"filestore {store}{words}" for words in found)
            return chosen_of(rows.plan, chosen), words

        def take_costs(found: "tuple[ChosenSteps, str]") -> None:
            if rows is not self._rows:
                return
            self._chosen, self._command = found
            self._costs = [texts.totals_line(self._chosen.plan)]
            if self._chosen.plan.steps:
                command = cut(shortened(self._command) or TOO_MANY, MOST_SHOWN)
                self._costs.append(line(command, "note"))
            self._draw()
            self.host.context_changed()

        self._compute(rows.plan, count_up, take_costs, group="costs of the plan")

    # Applying

    def do_apply(self) -> None:
        """Ask once more, with counts and scope; then apply what is chosen."""
        if self._chosen is None:
            if self._rows is not None:
                self.host.notify("the steps are still being counted", severity="warning")
            return
        if self.host.read_only:
            self.host.notify(self.host.read_only, severity="warning")
            return
        plan = self._chosen.plan
        lines: list[Line] = []
        if self._stale:
            stale = f"{self._stale}: steps that no longer apply are skipped and reported"
            lines.append(line(stale, "warning"))
        shown = texts.question_lines(plan.steps, most=MOST_NAMED)
        kept = line("files are backed up first: u undoes all of it", "note")
        lines += [*shown, kept] if shown else [line("only the sidecar is written")]
        if self._is_choice:
            # The question lies over the plan.
            lines += chain.from_iterable([(), *diff_lines(one.diff)] for one in plan.steps)
        removed = [path for step in plan.steps for path in texts.removed_by(step)]
        question = ConfirmScreen(texts.scope(plan), lines, removes=len(removed))
        command = self.command()
        self.app.push_screen(question, lambda yes: self._apply(plan, command) if yes else None)

    def _apply(self, plan: "Plan", command: str) -> None:
        title = f"repair, {count(len(plan.steps), 'step')}"
        self.host.note(command or title)
        self._writes_files = any(step.truth for step in plan.steps)
        files = ", and u restores files" if self._writes_files else ""

        def applied(report: "RepairReport") -> None:
            message = report_lines(report, store=self.host.store_option)
            self._stale = ""
            self._pane.clear(message)
            self._count()
            self._end()
            self.host.notify(plain(message[:1]))
            self.host.verified(report.remaining, report.plan.level, report.not_checked)
            self.host.look_again()

        self._begin(
            self.host.task_manager.work(
                Job(name="apply", arguments={"plan": plan}),
                Handlers(
                    then=applied,
                    failed=self._refused,
                    stopped=partial(
                        self._stopped, f"stopped safely: what was done until then stays{files}"
                    ),
                ),
                title=title,
                writes=True,
            )
        )

    def _refused(self, error: "FilestoreError") -> None:
        self._show_message(error_lines(error, is_whole=True))
        self.host.fail(error)
        self._after_work()

    def _stopped(self, words: str) -> None:
        self._show_message([line(words, "note")])
        self._after_work()

    def _after_work(self) -> None:
        """Show what was applied before it ended, and whether the plan still fits."""
        wrote = self._job is not None and self._job.writes
        self._end()
        if wrote:
            self.host.look_again()

    def _show_message(self, lines: Sequence[Line]) -> None:
        """Show what was done, or why not, in place of a step until the cursor moves."""
        self._pane.show_message(lines)
        if self.has_class("-changes"):
            self._changes.show_message(lines)

    # Changes

    def do_batches(self) -> None:
        """Show the changes that were made, then those of programs where any are, then the plan."""
        shown, narrowed = self.has_class("-changes"), self._changes.of_programs
        goes_on = shown and not narrowed and self._changes.has_programs
        self.show_changes(not shown or goes_on, of_programs=goes_on)

    def show_changes(self, shown: bool = True, *, of_programs: bool = False) -> None:
        """Show the changes, all or those of programs; or the plan."""
        self._changes.of_programs = of_programs
        self.set_class(shown, "-changes")
        self.remove_class("-reading")
        self.entered()
        self._draw()

    def undo_or_redo(self, side: Side) -> None:
        """Undo ("before") or redo the change under the cursor of the list; else the last one."""
        self._changes.undo_or_redo(side, listed=self.display and self.has_class("-changes"))

    def do_open(self) -> None:
        """Open the group, or read what is under the cursor."""
        if self._pane.is_on_heading and not self.has_class("-changes"):
            self._pane.steps.open()
        elif not self.is_reading:
            self.show_part(is_reading=True)

    def do_close(self) -> None:
        """Go back to the list; there, go up to the group, or close it."""
        if self.is_reading:
            self.show_part(is_reading=False)
        elif not self.has_class("-changes"):
            self._pane.steps.close()

    def do_back(self) -> None:
        """Leave the text for the list, or the changes for the plan."""
        if self.has_class("-reading"):
            self.show_part(is_reading=False)
        else:
            self.show_changes(False)

    # The parts of the page

    @property
    def parts(self) -> Sequence[Widget]:
        """The list that is shown, and the text next to it."""
        if self.has_class("-changes"):
            return self._changes.list, self._changes.text
        return self._pane.steps, self._pane.text

    @on(DescendantFocus)
    def _focus_moved(self) -> None:
        self.set_class(self.is_reading, "-reading")
        self._draw()

    @on(VirtualRows.Highlighted)
    def _moved(self) -> None:
        self.host.context_changed()

    @on(VirtualRows.Marked)
    def _toggled(self) -> None:
        self._count()
        self._draw()
        self.host.context_changed()

    @on(VirtualRows.Chosen)
    def _read(self) -> None:
        self.show_part(is_reading=True)

    # Work

    def _is_working(self) -> bool:
        return self._job is not None and not self._job.is_over

    def _begin(self, task: Task) -> None:
        self._job = task
        self._draw()

    def _end(self) -> None:
        self._job = None
        self._draw()
        self.host.context_changed()

    def _draw(self) -> None:
        """Show what the plan is for, what it does, and the progress."""
        if self.has_class("-changes"):
            whose = " of programs" if self._changes.of_programs else ""
            more = "those of programs" if self._changes.has_programs and not whose else "the plan"
            title = line(f"changes{whose}: u undoes, U redoes, b shows {more}", "title")
        elif self._rows is None or self._request is None:
            title = line("planning …" if self._is_working() else "no plan", "quiet")
        else:
            title = texts.plan_line(self._rows.plan, about=self._request.about, stale=self._stale)
            if self._pane.text.has_focus:
                words = "reading the step: space chooses it, esc goes back  "
                title = (*line(words, "key"), *title)
        self._head.show([title])
        lines: list[Line] = []
        if self._job is not None:
            self._ticking.begin(PROGRESS_S, self._draw)
            files = ", u restores files" if self._writes_files else ""
            safe = f"x stops it safely{files}" if self._job.writes else "x stops it"
            lines.append((*self._job.progress(), *line(f"  {safe}", "quiet")))
        self._footer.show([*lines, *self._costs])
