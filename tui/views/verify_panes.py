"""What Verify shows of one finding, both sides of a conflict, and a verification as it runs.

One rule: nothing is written here. A chosen side becomes a plan, which is seen before it is done.
"""

import time
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen

from filestore import FilestoreError, Finding
from filestore.browse import SideChoice, hunk_texts, hunks_choice, is_clean, shown_path
from tui import actions
from tui.formatting import Line, Role, Span, duration, error_lines, line, span
from tui.formatting import findings as texts
from tui.state.findings import FindingIndex, key_of
from tui.views.context import ViewContext, line_named
from tui.widgets.bars import Caption
from tui.widgets.drawing import wrapped
from tui.widgets.text import TextPane
from tui.widgets.upstream import Delay, Steady
from tui.workers.tasks import Handlers, Job, Task

if TYPE_CHECKING:
    from filestore import Checked
    from filestore.browse import Evidence, Neighbour, Side, Sides

FOLLOW_S: Final = 0.03
"""How long the cursor rests before evidence is read."""
NEIGHBOURS_S: Final = 0.25
"""How long until neighbours are asked for: they may cost an embedding."""
NEIGHBOURS: Final = 5


class EvidenceLoader:
    """Shows the evidence of one finding in a pane, as the store gives it."""

    def __init__(self, host: ViewContext, pane: TextPane) -> None:
        self._host = host
        self._pane = pane
        self._finding: Finding | None = None
        self._evidence: Evidence | None = None
        self._neighbours: dict[bool, Sequence[Neighbour]] = {}
        """By the stored vector at False, by the present text at True."""
        self._problems: list[FilestoreError] = []
        self._delay = Delay(pane)
        self._sought = ""

    def seek(self, text: str) -> None:
        """Mark a text in the evidence; "" for none."""
        self._sought = text
        self._pane.find(text)

    def show(self, lines: Sequence[Line], *, key: str) -> None:
        """Show lines about no single finding."""
        self._begin(None)
        self._pane.show(lines, key=key)

    def follow(self, finding: Finding) -> None:
        """Show the evidence of a finding, once the cursor rests on it."""
        if self._finding is not None and key_of(self._finding) == key_of(finding):
            return
        self._begin(finding)
        self._delay.begin(FOLLOW_S, self._read)

    def again(self) -> None:
        """Read the same evidence again: the store may have changed."""
        if self._evidence is not None:
            self._read()

    def _begin(self, finding: Finding | None) -> None:
        self._delay.stop()
        self._finding = finding
        self._evidence = None
        self._neighbours = {}
        self._problems = []

    def _read(self) -> None:
        finding = self._finding
        if finding is not None:
            self._draw()
            self._host.task_manager.read(
                lambda store: store.evidence(finding),
                partial(self._take, finding),
                group="evidence",
                failed=partial(self._missed, finding),
                urgent=True,
            )

    def _take(self, finding: Finding, evidence: "Evidence") -> None:
        if finding is not self._finding:
            return
        before, self._evidence = self._evidence, evidence
        self._draw()
        hashes = before and (before.indexed_hash, before.disk_hash)
        if hashes != (evidence.indexed_hash, evidence.disk_hash):
            self._problems = []
            tree = self._host.findings.tree
            is_text = finding.path.endswith(".md") or tree.has_sections
            if is_text and tree.holds(finding.path):
                self._delay.begin(NEIGHBOURS_S, self._ask_neighbours)

    def _missed(self, finding: Finding, error: FilestoreError) -> None:
        if finding is self._finding:
            if error.message not in [problem.message for problem in self._problems]:
                self._problems.append(error)
            self._draw()

    # Neighbours

    def _ask_neighbours(self) -> None:
        self._neighbours = {}
        if self._evidence is not None and self._evidence.indexed_hash:
            self._ask(now=False)
        if self._is_compared:
            self._ask(now=True)

    @property
    def _is_compared(self) -> bool:
        """Whether the vector of the present text may be another than the stored one."""
        found = self._evidence
        return (
            found is not None
            and bool(found.disk_hash)
            and (found.disk_hash != found.indexed_hash or found.finding.meaning.vector_in_doubt)
        )

    def _ask(self, *, now: bool) -> None:
        finding = self._finding
        if finding is None:
            return
        # Nothing is indexed under the name that a moved file has now.
        path = finding.other if finding.code == "moved" and not now else finding.path
        arguments = {"path": path, "count": NEIGHBOURS, "now": now}

        def take_neighbours(found: "Sequence[Neighbour]") -> None:
            if finding is self._finding:
                self._neighbours[now] = found
                self._draw()

        self._host.task_manager.ask(
            Job(name="neighbours", arguments=arguments),
            Handlers(then=take_neighbours, failed=partial(self._missed, finding)),
            group=f"evidence neighbours {'now' if now else 'then'}",
        )

    def _draw(self) -> None:
        finding = self._finding
        if finding is None:
            return
        known = self._evidence
        now = actions.ActionContext(
            code=finding.code, is_written=self._host.findings.tree.is_written
        )
        side = actions.find("verify", "side")
        key = "" if actions.no_conflict(now) else actions.key_label(self._host.keys_of(side)[0])
        if known is None:
            lines = texts.finding_lines(finding, side=key)
        else:
            lines = texts.evidence_lines(known, side=key)
        if self._neighbours:
            lines += texts.neighbour_lines(
                self._neighbours.get(False),
                self._neighbours.get(True),
                compared=self._is_compared,
                tree=self._host.findings.tree,
            )
        for problem in self._problems:
            lines += [(), *error_lines(problem, "warning")]
        self._pane.show(lines, key=str(key_of(finding)))
        self._pane.find(self._sought)


class VerifyRun:
    """Has the store verified, and the findings follow as they come. One run at a time."""

    def __init__(self, host: ViewContext) -> None:
        self._host = host
        self._run: Task | None = None
        self._level = ""
        self._has_begun = False

    @property
    def is_running(self) -> bool:
        """Whether one is running, or waits for its turn."""
        return self._run is not None and not self._run.is_over

    def begin(self, level: str) -> None:
        """Verify, unless that is running."""
        if self._run is not None and not self._run.is_over:
            self._host.notify(f"{self._run.title} is running: x stops it", severity="warning")
            return
        self._host.note(f"filestore {self._host.store_option}verify --level {level}")
        self._level, self._has_begun = level, False
        self._run = self._host.task_manager.work(
            Job(name="verify", arguments={"level": level}),
            Handlers(
                then=self._verified,
                failed=self._broken_off,
                found=self._found,
                stopped=self._broken_off,
            ),
            title=f"verify ({level})",
            writes=False,
        )

    def tick(self) -> None:
        """Take notice when its turn came: other work may have gone first."""
        if self._run is not None and self._run.state == "running":
            self._start()

    def _start(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._host.findings.begin(self._level)
            self._host.findings_changed()

    def _found(self, found: Sequence[Finding]) -> None:
        self._start()
        self._host.findings.add(found)
        self._host.findings_changed()

    def _verified(self, checked: "Checked") -> None:
        findings, tree = checked.findings, self._host.findings.tree
        # Which warnings were accepted is in the settings of the store.
        self._host.task_manager.read(
            lambda store: (
                FindingIndex.of(findings, tree),
                is_clean(findings, store.settings.accepted),
            ),
            partial(self._end, checked),
            group="",
            failed=lambda _: self._end(
                checked, (FindingIndex.of(findings, tree), is_clean(findings))
            ),
            urgent=True,
        )

    def _end(self, checked: "Checked", found: tuple[FindingIndex, bool]) -> None:
        self._has_begun = True
        left, level = checked.not_checked, checked.level
        coverage = texts.Coverage(level=level, at=_now(), checked=checked.checked, not_checked=left)
        self._host.findings.replace(found[0], coverage, clean=found[1])
        self._host.findings_changed()

    def _broken_off(self, error: FilestoreError | None = None) -> None:
        self._start()
        why = "the rest, since it was stopped" if error is None else "the rest, since it failed"
        self._host.findings.stop(at=_now(), why=why)
        self._host.findings_changed()
        if error is not None:
            self._host.fail(error)

    def line(self) -> Line:
        """Its progress; else the last check and its result."""
        run, findings = self._run, self._host.findings
        if run is not None and not run.is_over:
            # Without a total, the time that has passed shows that it goes on.
            passed = () if run.total else (Span(f"  {duration(run.elapsed_s)}", "quiet"),)
            return (*run.progress(title=run.title), *passed, Span("  x stops", "key"))
        notes = findings.index.severities["I"]
        return texts.looked_line(
            findings.coverage, found=len(findings), clean=findings.clean, notes=notes
        )


def _now() -> str:
    return time.strftime("%H:%M:%S")


# Both sides of a conflict or of a duplicate

SIDE_BY_SIDE: Final = 90
"""So wide the screen has to be for both sides next to each other."""
_ROLES: Final[dict[texts.Mark, tuple[Role, Role]]] = {
    "": ("text", "text"),
    "<": ("removed", "quiet"),
    ">": ("quiet", "added"),
    "|": ("removed", "added"),
}


class SidesScreen(Steady, ModalScreen[SideChoice | None]):
    """Two texts line by line; gives what was chosen, or None where it is left as it is."""

    DEFAULT_CSS = """
    SidesScreen { align: center middle; }
    SidesScreen > Vertical {
        width: 96%; height: 94%; padding: 0 1; border: round $primary; background: $surface;
    }
    SidesScreen TextPane { height: 1fr; background: $surface; }
    SidesScreen Caption { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1,left", "take('left')", "take the left side"),
        Binding("2,right", "take('right')", "take the right side"),
        Binding("3", "take('both')", "keep both"),
        Binding("4", "take('keep')", "leave this conflict as it is"),
        Binding("less_than_sign", "take_all('left')", "take the left side of the rest"),
        Binding("greater_than_sign", "take_all('right')", "take the right side of the rest"),
        Binding("b", "base", "show the common ancestor"),
        Binding("e", "edit", "edit by hand"),
        Binding("escape,q", "dismiss", "leave it as it is"),
    ]

    def __init__(self, host: ViewContext, finding: Finding) -> None:
        super().__init__()
        self._host = host
        self._finding = finding
        self._sides: Sides | None = None
        self._rows: Sequence[texts.Facing] = ()
        self._shows_base = False
        self._chosen: tuple[Side, ...] = ()
        """Of the conflicts of a file, in their order."""

    def compose(self) -> ComposeResult:
        """What it is about, both sides, and what can be chosen."""
        with Vertical():
            yield Caption(id="sides-title")
            yield Caption(id="sides-labels")
            yield TextPane(id="sides-text")
            yield Caption(id="sides-choices", most=8)

    def begin(self) -> None:
        """Have both sides read."""
        self.query_one("#sides-title", Caption).show(
            [line(shown_path(self._finding.path), "title")]
        )
        self.query_one(TextPane).focus()
        finding = self._finding

        def failed(error: FilestoreError) -> None:
            self._host.fail(error)
            if self.is_current:
                self.dismiss(None)

        self._host.task_manager.read(
            lambda store: store.sides(finding),
            self._show,
            group="sides",
            failed=failed,
            urgent=True,
        )

    def _show(self, sides: "Sides") -> None:
        if not self.is_attached:
            return
        self._sides = sides
        self._rows = texts.facing(sides.ours, sides.theirs or "")
        self._ask()

    def _ask(self) -> None:
        """Show the conflict that is to be decided, which is the first one without a choice."""
        if self._sides is None:
            return
        number, hunks = len(self._chosen), self._sides.hunks
        if len(hunks) > 1:
            self._rows = texts.facing(*hunk_texts(self._sides, number))
        self.query_one("#sides-title", Caption).show([texts.sides_title(self._sides, number)])
        self._draw()

    def on_resize(self, _: Resize) -> None:
        """Put the sides next to each other, or below each other where there is no room."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if self._sides is None or not self.is_attached:
            return
        left, right = line(self._sides.ours_label, "title"), line(self._sides.theirs_label, "title")
        pane = self.query_one(TextPane)
        width = pane.scrollable_content_region.width
        labels = self.query_one("#sides-labels", Caption)
        self.query_one("#sides-choices", Caption).show(
            texts.choice_lines(self._sides, width, chosen=len(self._chosen))
        )
        if self._shows_base and self._sides.base is not None:
            labels.show([line(texts.BASE_TITLE, "title")])
            pane.show(
                [line(text.expandtabs(texts.TAB)) for text in self._sides.base.splitlines()],
                key="base",
            )
        elif self.app.size.width < SIDE_BY_SIDE:
            labels.show([(Span("< ", "removed"), *left), (Span("> ", "added"), *right)])
            pane.show(texts.stacked_lines(self._rows), key="stacked")
        else:
            half = half_of(width)
            labels.show([(*_padded(left, half), Span("   "), *right)])
            pane.show(columns(self._rows, width), key="columns")

    def action_base(self) -> None:
        """Show the text that both sides began with, or both sides again."""
        if self._sides is None:
            return
        if self._sides.base is None:
            self._host.notify("no common ancestor available", severity="warning")
            return
        self._shows_base = not self._shows_base
        self._draw()

    # Choosing

    def action_take(self, side: str) -> None:
        """Take a side, or both."""
        if self._sides is None:
            return
        if len(self._sides.hunks) > 1:
            self._chosen += (texts.HUNKS[side],)
            if len(self._chosen) < len(self._sides.hunks):
                self._ask()
                return
        choice = texts.wanted_side(self._sides, side)
        if self._chosen:
            choice = hunks_choice(self._sides.path, self._chosen)
        if choice is None:
            self._host.notify("that cannot be chosen here: see the list below", severity="warning")
        else:
            self.dismiss(choice)

    def action_take_all(self, side: str) -> None:
        """Take one side of every conflict that is left."""
        left = len(self._sides.hunks) - len(self._chosen) if self._sides is not None else 0
        for _ in range(max(left, 1)):
            self.action_take(side)

    def action_edit(self) -> None:
        """Leave it, and open its file in an editor, whatever is under the cursor then."""
        path = self._finding.path if self._sides is None else self._sides.path
        at = line_named(self._finding.detail)
        if self._sides is not None and self._sides.hunks:
            at = self._sides.hunks[len(self._chosen)].lines[0]
        self.dismiss(None)
        self.app.call_later(self._host.edit, path, line=at)


def half_of(width: int) -> int:
    """How wide each side is; the mark is between them."""
    return max((width - 3) // 2, 2)


def columns(rows: Sequence[texts.Facing], width: int) -> list[Line]:
    """Both sides next to each other, each wrapped to its half."""
    half = half_of(width)
    found: list[Line] = []
    for row in rows:
        left, right = _ROLES[row.mark]
        sides = [
            wrapped([line(text.expandtabs(texts.TAB), role)], half)
            for text, role in ((row.left, left), (row.right, right))
        ]
        pairs = zip_longest(*sides)
        for number, (mine, other) in enumerate(pairs):
            mark = span(f" {row.mark if not number else ' '} ".rjust(3), "mark")
            found.append((*_padded(mine or (), half), mark, *_padded(other or (), half)))
    return found


def _padded(words: Line, width: int) -> Line:
    """A line exactly as wide as its side: a row may end in a space that has no room."""
    text, role = "".join(one.text for one in words), words[0].role if words else "text"
    return (Span(set_cell_size(text, width), role),)
