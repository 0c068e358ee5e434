"""Repair: what would mend the store, chosen step by step, seen before it is done, and undone.

One rule: nothing is written here before a person saw what, and said yes to its counts.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus
from textual.timer import Timer
from textual.widget import Widget

from filestore import Policy
from tui.backstage import Handlers, Job, Task
from tui.desk import Desk, View
from tui.modals.confirm import ConfirmScreen
from tui.model.plan_choice import (
    Chosen,
    Request,
    StepKey,
    chosen_of,
    request_for,
)
from tui.model.plan_rows import PlanRows, prepared
from tui.situations import Place, Situation
from tui.views.batches import Changes, Turning
from tui.views.plan_pane import PlanPane
from tui.widgets.caption import Caption
from tui.words.lines import Line, count, cut, line
from tui.words.plans import (
    commands,
    no_plan_lines,
    plan_line,
    planning_lines,
    question_lines,
    removed_by,
    scope_of,
    totals_line,
)
from tui.words.progress import progress_line
from tui.words.reports import Side, refusal_lines, report_lines, report_words

if TYPE_CHECKING:
    from filestore import Choice, FilestoreError, Finding, Plan, RepairReport

PROGRESS_S: Final = 0.2
AT_ONCE: Final = 5_000
"""Steps; what is worked out about more of them is worked out aside."""
MOST_NAMED: Final = 200
"""Files named in a question."""
MOST_SHOWN: Final = 1_000
"""Characters of a command line."""
TOO_MANY: Final = "no command line names so many files: choose whole kinds"
MOST_WATCHED: Final = 2_000
"""Steps whose findings tell whether the plan still fits."""


class RepairView(View):
    """A plan and its steps; below it the command that does the same. Or the changes made so far."""

    place: ClassVar[Place] = "repair"
    # The screen's classes, above the page, say how wide it is.
    SCOPED_CSS: ClassVar[bool] = False
    DEFAULT_CSS = """
    RepairView { layout: vertical; width: 1fr; height: 1fr; }
    RepairView > #plan, RepairView > #changes { height: 1fr; }
    RepairView #plan-rows { width: 2fr; }
    RepairView #changes-rows { width: 4fr; }
    RepairView #plan-detail, RepairView #changes-detail {
        width: 3fr; border-left: solid $panel; padding: 0 1;
    }
    RepairView #plan-detail:focus, RepairView #changes-detail:focus {
        border-left: thick $primary;
    }
    .-ascii RepairView #plan-detail, .-ascii RepairView #changes-detail {
        border-left: ascii $panel;
    }
    .-ascii RepairView #plan-detail:focus, .-ascii RepairView #changes-detail:focus {
        border-left: ascii $primary;
    }
    RepairView > #plan-head { background: $panel; padding: 0 1; }
    RepairView > #plan-foot { background: $panel; padding: 0 1; }
    RepairView > #changes { display: none; }
    RepairView.-changes > #changes { display: block; }
    RepairView.-changes > #plan { display: none; }
    .-narrow RepairView #plan-rows, .-narrow RepairView #changes-rows { width: 1fr; }
    .-narrow RepairView #plan-detail, .-narrow RepairView #changes-detail {
        display: none; width: 1fr;
    }
    .-narrow RepairView.-reading #plan-detail, .-narrow RepairView.-reading #changes-detail {
        display: block;
    }
    .-narrow RepairView.-reading #plan-rows, .-narrow RepairView.-reading #changes-rows {
        display: none;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "other_part", show=False),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._request: Request | None = None
        """What the plan in sight was made for."""
        self._asked: Request | None = None
        """What a plan was asked for last; it may not be made yet."""
        self._begun_with: set[StepKey] = set()
        self._chosen: Chosen | None = None
        self._command = ""
        self._costs: Sequence[Line] = ()
        """What the chosen steps do, and the command for it; how far work is comes below."""
        self._seen: dict[str, frozenset[str]] = {}
        self._stale = ""
        self._writes_files = False
        """Whether the work under way does; to the sidecar alone, nothing is taken back."""
        self._job: Task | None = None
        self._ticking: Timer | None = None
        self._turning = Turning(desk, ask=self._ask, told=self._tell)
        self._head, self._foot = Caption(id="plan-head"), Caption(id="plan-foot")
        self._pane = PlanPane(no_plan_lines(), id="plan")
        self._changes = Changes(desk, id="changes")

    def compose(self) -> ComposeResult:
        """What the plan is of, its steps beside the one under the cursor, the command line."""
        yield self._head
        yield self._pane
        yield self._changes
        yield self._foot

    def on_mount(self) -> None:
        """Say what can be done here."""
        self._ticking = self.set_interval(PROGRESS_S, self._draw, pause=True)
        self._draw()

    @property
    def _rows(self) -> PlanRows | None:
        return self._pane.plan_rows

    # What the frame asks

    def situation(self) -> Situation:
        """What can be said of this page now."""
        now = Situation(place=self.place, path=self._pane.path)
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
            self._changes.list.focus()
        else:
            self._pane.steps.focus()

    def store_changed(self) -> None:
        """See whether the plan is one of this generation."""
        if self.has_class("-changes"):
            self._changes.read()
        if self._rows is not None and not self._is_working():
            self.desk.backstage.read(
                lambda store: store.listing().generation,
                self._compare_generation,
                group="plan-generation",
                failed=lambda _: None,
            )

    def _compare_generation(self, now: int) -> None:
        if self._rows is not None and now != self._rows.plan.generation:
            self._become_stale(
                f"the store is at generation {now}, planned was {self._rows.plan.generation}"
            )

    def findings_changed(self) -> None:
        """See whether what the plan mends is still found."""
        if self._rows is None or self._is_working() or self.desk.findings.looked.is_running:
            return
        if self._findings_of(self._seen) != self._seen:
            self._become_stale("what it mends changed since")

    def _become_stale(self, why: str) -> None:
        self._stale = why
        self._draw()

    def _findings_of(self, paths: Iterable[str]) -> dict[str, frozenset[str]]:
        known = self.desk.findings.of_path
        return {path: frozenset(one.code for one in known(path)) for path in paths}

    def command(self) -> str:
        """The command lines that apply what is chosen, each with the program's name."""
        return self._command if self._chosen is not None else ""

    # Planning

    def plan_for(
        self, findings: "Sequence[Finding] | None" = None, policy: Policy | None = None
    ) -> None:
        """Have it worked out what would mend some findings.

        Args:
            findings: None for all.
            policy: What is wanted; None for a plan that writes files only where these findings
                ask for it.
        """
        self._plan(request_for(findings, policy))

    def take_side(self, choice: "Choice | None") -> None:
        """Plan what a person chose in a conflict; nothing is written before it was seen."""
        if choice is None:
            return
        if choice.policy is None:
            self.desk.say(f"{choice.label}: {choice.command or 'nothing to do'}")
            return
        self.desk.go("repair")
        self.plan_for(None, choice.policy)

    def do_plan_all(self) -> None:
        """Plan what would mend everything."""
        self.plan_for()

    def do_plan_again(self) -> None:
        """Make the plan anew."""
        self._plan(self._asked or request_for(None, None))

    def do_truth(self) -> None:
        """Let files be written, or leave all of them alone; some steps are others then."""
        request = self._asked or request_for(None, None)
        self._plan(request.with_truth(not request.policy.truth))

    def _plan(self, request: Request) -> None:
        if self._job is not None and not self._job.is_over:
            if self._job.writes:
                self.desk.say(f"{self._job.title} is under way", severity="warning")
                return
            self.desk.backstage.stop(self._job)
        self._asked = request
        self.remove_class("-changes")
        arguments = {"policy": request.policy, "findings": request.findings, "level": None}
        truth = " --truth" if request.policy.truth else ""
        self._begin(
            self.desk.backstage.work(
                Job(name="plan", arguments=arguments),
                Handlers(
                    then=partial(self._planned, request),
                    failed=self._refused,
                    stopped=partial(self._stopped, "stopped: nothing was changed"),
                ),
                title=f"plan for {request.about}",
                command=f"filestore {self.desk.store_option}repair --plan{truth}",
                writes=False,
            )
        )
        if self._rows is None:
            self._pane.tell(planning_lines())

    def _planned(self, request: Request, plan: "Plan") -> None:
        before = self._rows if self._request is not None else None
        if before is None or self._request is None or not request.is_like(self._request):
            before = None
        prepare = partial(prepared, plan, request, before, self._begun_with)
        self._aside(plan, prepare, partial(self._show_plan, request))

    def _show_plan(self, request: Request, made: "tuple[PlanRows, set[StepKey]]") -> None:
        rows, self._begun_with = made
        self._request = request
        self._seen = self._findings_of([step.path for step in rows.plan.steps[:MOST_WATCHED]])
        self._stale = ""
        self._pane.show(rows, [line("nothing was found that needs mending", "good")])
        self._count()
        self._end()

    def _aside(self, plan: "Plan", work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Work something out about a plan: at once, or aside where it would keep a key waiting."""
        if len(plan.steps) <= AT_ONCE:
            then(work())
        else:
            self.desk.backstage.read(lambda _: work(), then, group="plan")

    def _count(self) -> None:
        """Work out what the chosen steps do, and the command for it."""
        self._chosen, self._costs = None, ()
        rows, request = self._rows, self._request
        if rows is None or request is None:
            return
        self._costs = [line("counting …", "quiet"), line("")]
        count_up = partial(
            _counted,
            rows.plan,
            frozenset(rows.chosen),
            is_whole=request.is_whole,
            whole=self._whole_codes(request),
            store=self.desk.store_option,
        )
        self._aside(rows.plan, count_up, self._take_costs)

    def _whole_codes(self, request: Request) -> frozenset[str]:
        """The codes of which the plan mends everything that is known."""
        asked = Counter(finding.code for finding in request.findings or ())
        known = self.desk.findings.by_code()
        return frozenset(code for code, number in asked.items() if number == known.get(code))

    def _take_costs(self, found: "tuple[Chosen, str]") -> None:
        self._chosen, self._command = found
        none = TOO_MANY if self._chosen.plan.steps else "no step is chosen"
        # As much of it as any screen shows: it may name thousands of files.
        command = line(cut(self._command or none, MOST_SHOWN), "note")
        self._costs = [command, totals_line(self._chosen.plan)]
        self._draw()
        self.desk.situation_changed()

    # Applying

    def do_apply(self) -> None:
        """Ask once more, with counts and scope; then apply what is chosen."""
        if self._chosen is None:
            if self._rows is not None:
                self.desk.say("what the steps do is still being counted", severity="warning")
            return
        plan = self._chosen.plan
        if self.desk.read_only:
            self.desk.say(self.desk.read_only, severity="warning")
        elif not plan.steps:
            self.desk.say("no step is chosen that can be applied", severity="warning")
        else:
            removed = [path for step in plan.steps for path in removed_by(step)]
            question = ConfirmScreen(scope_of(plan), self._question(plan), removes=len(removed))
            self._ask(question, partial(self._answered, plan, self.command()))

    def _ask(self, question: ConfirmScreen, answered: Callable[[bool | None], None]) -> None:
        self.app.push_screen(question, answered)

    def _question(self, plan: "Plan") -> list[Line]:
        """What a person should know before saying yes."""
        stale = f"{self._stale}: steps that no longer hold are skipped, and said"
        shown = question_lines(plan.steps, most=MOST_NAMED)
        kept = "what files hold now is kept first: u takes all of it back"
        return [
            *([line(stale, "warning")] if self._stale else []),
            *([*shown, line(kept, "note")] if shown else [line("only the sidecar is written")]),
        ]

    def _answered(self, plan: "Plan", command: str, wanted: bool | None) -> None:
        if not wanted:
            return
        title = f"repair, {count(len(plan.steps), 'step')}"
        self.desk.note(command or title)
        self._writes_files = any(step.truth for step in plan.steps)
        files = ", and u takes files back" if self._writes_files else ""
        self._begin(
            self.desk.backstage.work(
                Job(name="apply", arguments={"plan": plan}),
                Handlers(
                    then=self._applied,
                    failed=self._refused,
                    stopped=partial(
                        self._stopped, f"stopped safely: what was done until then stays{files}"
                    ),
                ),
                title=title,
                command=command or title,
                writes=True,
            )
        )

    def _applied(self, report: "RepairReport") -> None:
        self._forget_plan(report_lines(report, store=self.desk.store_option))
        self.desk.say(report_words(report))
        self.desk.verified(report.remaining, report.plan.level)
        self.desk.look_again()

    def _refused(self, error: "FilestoreError") -> None:
        self._tell(refusal_lines(error))
        self.desk.fail(error)
        self._after_work()

    def _stopped(self, words: str) -> None:
        self._tell([line(words, "note")])
        self._after_work()

    def _after_work(self) -> None:
        """What was applied before it ended has to be seen; whether the plan still fits, too."""
        wrote = self._job is not None and self._job.writes
        self._end()
        if wrote:
            self.desk.look_again()

    def _forget_plan(self, said: Sequence[Line]) -> None:
        self._stale = ""
        self._pane.clear(said)
        self._count()
        self._end()

    def _tell(self, lines: Sequence[Line]) -> None:
        """Show what was done, or why not, in place of a step until the cursor moves."""
        self._pane.tell(lines)
        if self.has_class("-changes"):
            self._changes.tell(lines)

    # Changes

    def do_batches(self) -> None:
        """Show the changes that were made, or the plan again."""
        self.toggle_class("-changes")
        self.remove_class("-reading")
        self.entered()
        self._draw()

    def do_undo(self) -> None:
        """Undo the change under the cursor of the list; else the last one."""
        self._turn("before")

    def do_redo(self) -> None:
        """Make the change again: the one under the cursor, or what was undone last."""
        self._turn("after")

    def _turn(self, side: Side) -> None:
        listed = self.display and self.has_class("-changes")
        group = self._changes.current if listed else None
        self._turning.begin(side, group.identifier if group is not None else "")

    def do_back(self) -> None:
        """Leave the text for the list, or the changes for the plan."""
        if self.has_class("-reading"):
            self._show_part(is_reading=False)
        elif self.has_class("-changes"):
            self.do_batches()
        else:
            self.entered()

    # The parts of the page

    def action_other_part(self) -> None:
        """Go to the text beside the list, or back; they take turns where there is no room."""
        self._show_part(is_reading=not self._is_reading())

    def _is_reading(self) -> bool:
        return self._pane.text.has_focus or self._changes.text.has_focus

    def _show_part(self, *, is_reading: bool) -> None:
        self.set_class(is_reading, "-reading")
        if self.has_class("-changes"):
            part: Widget = self._changes.text if is_reading else self._changes.list
        else:
            part = self._pane.text if is_reading else self._pane.steps
        part.focus()

    @on(DescendantFocus)
    def _focus_moved(self) -> None:
        self.set_class(self._is_reading(), "-reading")
        self._draw()

    @on(PlanPane.Moved)
    def _moved(self) -> None:
        self.desk.situation_changed()

    @on(PlanPane.Toggled)
    def _toggled(self) -> None:
        self._count()
        self._draw()
        self.desk.situation_changed()

    @on(PlanPane.Read)
    def _read(self) -> None:
        self._show_part(is_reading=True)

    # Work

    def _is_working(self) -> bool:
        return self._job is not None and not self._job.is_over

    def _begin(self, task: Task) -> None:
        self._job = task
        if self._ticking is not None:
            self._ticking.resume()
        self._draw()

    def _end(self) -> None:
        self._job = None
        if self._ticking is not None:
            self._ticking.pause()
        self._draw()
        self.desk.situation_changed()

    def _draw(self) -> None:
        """Say what the plan is of, what it does, and how far work is."""
        self._head.say([self._title()])
        working = [self._progress(self._job)] if self._job is not None else []
        self._foot.say([*self._costs, *working])

    def _title(self) -> Line:
        if self.has_class("-changes"):
            return line("changes that were made: u undoes, U redoes, b shows the plan", "title")
        if self._rows is None or self._request is None:
            return line("planning …" if self._is_working() else "no plan", "quiet")
        title = plan_line(self._rows.plan, about=self._request.about, stale=self._stale)
        if not self._pane.text.has_focus:
            return title
        return (*line("reading the step: space chooses it, esc goes back  ", "key"), *title)

    def _progress(self, task: Task) -> Line:
        done = progress_line(
            task.stage,
            done=task.done,
            total=task.total,
            elapsed_s=time.monotonic() - task.started_s,
        )
        safe = "x stops it"
        if task.writes:
            files = ", u takes files back" if self._writes_files else ""
            safe = f"x stops it safely{files}"
        return (*done, *line(f"  {safe}", "quiet"))


def _counted(
    plan: "Plan",
    chosen: Collection[StepKey],
    *,
    is_whole: bool,
    whole: Collection[str],
    store: str,
) -> tuple[Chosen, str]:
    found = commands(plan, chosen, is_whole=is_whole, whole=whole)
    return chosen_of(plan, chosen), " && ".join(f"filestore {store}{words}" for words in found)
