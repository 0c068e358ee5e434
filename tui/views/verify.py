"""Verify: what was found, live while it is found, with its evidence."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, ClassVar, Final

from msgspec.structs import asdict, replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from filestore import CODES, UsageError
from filestore.browse import NameFilter
from tui.actions import MOST_PATHS, ActionContext, Place
from tui.formatting import Span, line
from tui.formatting import findings as texts
from tui.state.findings import key_of
from tui.state.lists import (
    ORDERS,
    SEVERITIES,
    Filter,
    FindingGroups,
    FindingRows,
    RowKey,
    worst_first,
)
from tui.views.context import View, ViewContext, line_named
from tui.views.dialogs import Choice, ChoiceScreen
from tui.views.verify_panes import EvidenceLoader, VerifyRun
from tui.widgets.bars import Caption
from tui.widgets.rows import VirtualRows
from tui.widgets.text import Field, TextPane
from tui.widgets.upstream import Delay

TYPING_S: Final = 0.06
"""How long typing pauses before the filter is applied."""
DRAWING_S: Final = 0.2
"""How often progress is drawn."""
_ALL: Final = "all codes"


class VerifyView(View):
    """The findings in groups, filtered and marked; their evidence; and the verification itself."""

    place: ClassVar[Place] = "verify"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "other_part", show=False),
        Binding("n", "match(1)", show=False),
        Binding("N", "match(-1)", show=False),
    ]
    SCOPED_CSS = False  # the width of the screen decides
    DEFAULT_CSS = """
    VerifyView { layout: vertical; height: 1fr; }
    VerifyView #verify-panes { height: 1fr; }
    VerifyView #findings { width: 1fr; height: 1fr; }
    VerifyView #evidence { width: 1fr; height: 1fr; }
    VerifyView #finding-filter { display: none; height: 1; border: none; padding: 0 1; }
    VerifyView #finding-filter.open { display: block; }
    .-narrow VerifyView #evidence { display: none; }
    .-narrow VerifyView.-reading #evidence { display: block; }
    .-narrow VerifyView.-reading #findings { display: none; }
    """

    def __init__(self, host: ViewContext) -> None:
        super().__init__(host)
        self._rows = FindingRows(host.findings)
        self._verifying = VerifyRun(host)
        self._head = Caption(id="verify-head")
        self._box = Field(id="finding-filter", placeholder="text, !text to exclude, ~expression")
        self.list = VirtualRows(id="findings", marked_with=self._rows.members)
        self.evidence = TextPane(id="evidence", classes="aside")
        self._following = EvidenceLoader(host, self.evidence)
        self._drawing = Delay(self)
        self._typing = Delay(self)
        self._is_stale = False
        self._is_working_out = False
        self._mistake = ""
        """Why the filter cannot be used as typed."""
        self._seen = -1
        """Value of `Findings.reshaped` when the evidence was last read."""

    def compose(self) -> ComposeResult:
        """The last check, the filter, the list, the evidence."""
        yield self._head
        yield self._box
        with Horizontal(id="verify-panes"):
            yield self.list
            yield self.evidence

    def on_mount(self) -> None:
        """Show what is known."""
        self.list.marks = self.host.findings.marked
        self.list.show(self._rows)
        self.call_after_refresh(self._take_up)

    # What the frame asks

    def action_context(self) -> ActionContext:
        """What is under the cursor, or marked."""
        key = self._cursor
        under = self._rows.finding(key) if key is not None and len(key) > 1 else None
        path = under.path if under is not None else ""
        # The sidecar and folders are not for editing.
        tree = self.host.findings.tree
        is_part = path == tree.sidecar or path.startswith(f"{tree.sidecar}/")
        is_editable = not is_part and path not in (tree.pathspec, ".")
        # Of what is marked, or under the cursor; whole codes need no paths.
        codes: tuple[str, ...] = (key[0],) if key is not None else ()
        paths: tuple[str, ...] = (key[1],) if key is not None and len(key) > 1 and key[1] else ()
        marked = self.host.findings.marked
        if marked:
            codes, paths = self._rows.marked_codes(), ()
            known = self.host.findings.by_code()
            if len(marked) != sum(known[code] for code in codes):
                # One more than a command line may name is enough to tell that there are too many.
                some = islice((one[1] for one in marked if one[1]), MOST_PATHS + 1)
                paths = tuple(sorted(set(some)))
        level = self.host.findings.coverage.level
        return ActionContext(
            place="verify",
            path=path if is_editable else "",
            code=under.code if under is not None else "",
            level=level if level in texts.LEVELS else "fast",
            codes=codes,
            paths=paths,
        )

    def line_to_edit(self) -> int:
        """The line that the finding under the cursor names."""
        finding = self._rows.finding(self._cursor)
        return line_named(finding.detail) if finding is not None else 0

    def entered(self) -> None:
        """Show what came meanwhile, and focus the list."""
        if self._is_stale:
            self.findings_changed()
        self.show_part(is_reading=False)

    def point_at(self, paths: Iterable[str]) -> None:
        """Put the cursor on the first finding of some files or folders, where it is shown."""
        inside = self.host.findings.index.inside
        for finding in chain.from_iterable(map(inside, paths)):
            key = key_of(finding)
            group = key[:1]
            if self._rows.index_of(group) is not None and not self._rows.is_open(group):
                self.list.toggle(group)
            if self.list.move_to(key):
                return

    def store_changed(self) -> None:
        """Read the evidence again."""
        if self.is_mounted:
            self._following.again()

    def findings_changed(self) -> None:
        """Show the findings as they are now; the cursor stays where it is."""
        self._is_stale = not (self.is_mounted and self.display)
        if self._is_stale:
            return
        self._take_up()
        if self._seen != self.host.findings.reshaped:
            self._seen = self.host.findings.reshaped
            self._following.again()

    def saved(self) -> Mapping[str, Any]:
        """The filter and the order."""
        return {"order": self._rows.order, **asdict(self._rows.filter)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take up filter and order."""
        if saved.get("order") in ORDERS:
            self._rows.order = saved["order"]
        text, severities, code = saved.get("text"), saved.get("severities"), saved.get("code")
        shown = Filter(
            text=text if isinstance(text, str) else "",
            severities=severities if severities in SEVERITIES else SEVERITIES[0],
            code=code if isinstance(code, str) and code in CODES else "",
        )
        self._filter(shown)

    # VerifyRun

    def verify(self, level: str) -> None:
        """Begin to verify, and show what is found as it is found."""
        self._verifying.begin(level)
        self._draw_progress()

    def _draw_progress(self) -> None:
        """Draw how far it is, again and again until it ends."""
        self._verifying.tick()
        if self._verifying.is_running:
            self._drawing.begin(DRAWING_S, self._draw_progress)
        self._draw()

    # Actions

    def do_verify_fast(self) -> None:
        """Verify at once."""
        self.verify("fast")

    def do_level(self) -> None:
        """Ask how thoroughly."""
        choices = [Choice(name, name, about) for name, about in texts.LEVELS.items()]
        self.app.push_screen(
            ChoiceScreen("Verify how thoroughly?", choices, at=self.host.findings.coverage.level),
            lambda level: self.verify(level) if level is not None else None,
        )

    def do_severity(self) -> None:
        """Go on to the next choice of severities."""
        at = SEVERITIES.index(self._rows.filter.severities)
        severities = SEVERITIES[(at + 1) % len(SEVERITIES)]
        self._filter(replace(self._rows.filter, severities=severities))

    def do_codes(self) -> None:
        """Ask which code is to be shown."""
        known = self.host.findings.by_code()
        choices = [Choice(_ALL, _ALL)]
        for code in worst_first(known):
            sign, word, _ = texts.SEVERITY[CODES[code].severity]
            about = f"{known[code]:,}  {CODES[code].severity} {sign} {word}"
            choices.append(Choice(code, code, about))

        def take(code: str | None) -> None:
            """Show the chosen code, or all of them."""
            if code is not None:
                self._filter(replace(self._rows.filter, code="" if code == _ALL else code))

        self.app.push_screen(
            ChoiceScreen("Show which code?", choices, at=self._rows.filter.code), take
        )

    def do_sort(self) -> None:
        """Go on to the next order."""
        self._rows.order = ORDERS[(ORDERS.index(self._rows.order) + 1) % len(ORDERS)]
        self._take_up()

    def do_evidence(self) -> None:
        """Open the group, or go to the evidence."""
        key = self._cursor
        if key is not None and len(key) > 1:
            self.show_part(is_reading=True)
        else:
            self.list.open()

    def do_close_group(self) -> None:
        """Close the group, or go up to it; leave the evidence."""
        if self.is_reading:
            self.show_part(is_reading=False)
        else:
            self.list.close()

    def do_plan(self) -> None:
        """Plan a repair of what is marked, or of what is under the cursor."""
        findings = self.host.findings
        chosen = findings.marked_findings()
        if not chosen and self._cursor is not None:
            found = map(findings.index.known.get, self._rows.members(self._cursor))
            chosen = [one for one in found if one is not None]
        self.host.plan(chosen)

    def do_side(self) -> None:
        """Show both sides of what is under the cursor."""
        finding = self._rows.finding(self._cursor)
        if finding is not None:
            self.host.choose_side(finding)

    def do_show_file(self) -> None:
        """Show the file in Browse."""
        path = self.action_context().path
        if self.host.findings.tree.holds(path):
            self.host.open_path(path)
        else:
            below = self.host.findings.tree.folder
            what = f"the files below {below}/" if below else "documents"
            self.host.notify(f"Browse shows {what} only", severity="warning")

    def do_back(self) -> None:
        """Leave the evidence; then clear the marks; then the filter."""
        shown = self._rows.filter
        if self._box.has_focus:
            self._leave_box(text="")
        elif self.is_reading:
            self.show_part(is_reading=False)
        elif self.host.findings.marked:
            self.host.findings.marked.clear()
            self._rows.recount()
            self._take_up()
        elif shown.text or self._box.has_class("open"):
            self._leave_box(text="")
        elif shown != Filter():
            self._filter(Filter())

    # The filter

    def do_filter(self) -> None:
        """Open the box to type a filter in."""
        self._box.add_class("open")
        self._box.value = self._rows.filter.text
        self.screen.set_focus(self._box)

    @on(Input.Changed, "#finding-filter")
    def _typed(self) -> None:
        def take_typed() -> None:
            if self._box.has_class("open"):
                self._filter(replace(self._rows.filter, text=self._box.value))

        self._typing.begin(TYPING_S, take_typed)

    @on(Input.Submitted, "#finding-filter")
    def _submitted(self) -> None:
        self._leave_box(text=self._box.value)

    def _leave_box(self, *, text: str) -> None:
        self._box.remove_class("open")
        self._filter(replace(self._rows.filter, text=text))
        self.show_part(is_reading=False)

    def _filter(self, shown: Filter) -> None:
        try:
            NameFilter.parse(shown.text)
        except UsageError as error:
            # Half an expression is no error while it is typed: the rows stay as they are.
            self._mistake = error.message
            self._draw()
            return
        self._rows.filter, self._mistake = shown, ""
        self._take_up()
        if self.is_mounted:
            self._following.seek("" if shown.text.startswith(("!", "~")) else shown.text)

    # Cursor, groups and marks

    @property
    def _cursor(self) -> RowKey | None:
        key = self.list.cursor_key
        return key if isinstance(key, tuple) else None

    @on(VirtualRows.Highlighted)
    def _moved(self) -> None:
        key = self._cursor
        self._rows.held = key[0] if key is not None and len(key) > 1 else ""
        self._show_evidence()
        self.host.context_changed()

    @on(VirtualRows.Chosen)
    def _chosen(self) -> None:
        self.show_part(is_reading=True)

    @on(VirtualRows.Marked)
    def _marked(self) -> None:
        self._rows.recount()
        # The rows of the groups show how many are marked.
        self.list.forget_drawn()
        self._draw()
        self.host.context_changed()

    def _take_up(self) -> None:
        """Show rows, marks and head as they are now; very many rows once they are computed."""
        if self._rows.is_much:
            # Compute the rows in another thread, one draft at a time.
            if not self._is_working_out:
                self._is_working_out = True
                draft = self._rows.draft()
                self.host.task_manager.read(
                    lambda _: draft(),
                    self._worked_out,
                    group="finding rows",
                    failed=lambda _: self._worked_out(draft()),
                )
        else:
            self._rows.refresh()
        if not self.is_mounted:
            return
        self.list.changed()
        self._draw()
        if self._cursor is None:
            self._show_evidence()

    def _worked_out(self, grouped: FindingGroups) -> None:
        self._is_working_out = False
        self._rows.take_groups(grouped)
        self._take_up()

    def _show_evidence(self) -> None:
        key = self._cursor
        finding = self._rows.finding(key)
        if key is None or finding is None:
            coverage = self.host.findings.coverage
            is_known = bool(coverage.level) and not coverage.is_running and not coverage.was_stopped
            is_filtered = len(self.host.findings) > 0
            self._following.show(
                texts.empty_lines(is_filtered=is_filtered, is_known=is_known), key=""
            )
        elif len(key) == 1:
            members = len(self._rows.members(key))
            self._following.show(texts.group_evidence_lines(finding, members), key=key[0])
        else:
            self._following.follow(finding)

    # Parts of the page

    def action_match(self, by: int) -> None:
        """Show another match of the filter in the evidence, also while the list has the keys."""
        self.evidence.action_match(by)

    @property
    def parts(self) -> Sequence[Widget]:
        """The list, and the evidence."""
        return self.list, self.evidence

    def on_descendant_focus(self) -> None:
        """On a narrow screen, show the part that a click or a key went to."""
        self.set_class(self.is_reading, "-reading")
        self._draw()

    # The head

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        findings, shown = self.host.findings, self._rows.filter
        counts = texts.counts_line(findings.index.severities, marked=len(findings.marked))
        order = Span(f"by {self._rows.order}", "quiet")
        if self.is_reading:
            order = Span("reading the evidence: esc goes back", "key")
        head = [self._verifying.line(), (*counts, order)]
        if self._mistake:
            head.append(line(self._mistake, "warning"))
        elif shown != Filter():
            shown_here = self._rows.shown
            head.append(
                texts.filters_line(shown.text, shown.severities, shown.code, shown=shown_here)
            )
        if not findings.coverage.is_running:
            # The last one: it may be cut.
            coverage = findings.coverage
            head.append(texts.not_checked_line(coverage.level, coverage.not_checked))
        self._head.show(head)
