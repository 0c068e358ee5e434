"""Verify: what was found, live while it is found, with the evidence beside it."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Input

from filestore import CODES, UsageError
from tui.desk import Desk, View
from tui.modals.choosing import Choice, ChoiceScreen
from tui.model.finding_rows import (
    ORDERS,
    SEVERITIES,
    Filter,
    FindingRows,
    Grouped,
    RowKey,
    matcher,
    worst_first,
)
from tui.situations import MOST_PATHS, Place, Situation
from tui.views.evidence import Following
from tui.views.verifying import Verifying
from tui.widgets.caption import Caption
from tui.widgets.field import Field
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane
from tui.words.findings import (
    SEVERITY,
    counts_line,
    empty_lines,
    filters_line,
    group_evidence_lines,
    not_checked_line,
)
from tui.words.levels import LEVELS
from tui.words.lines import Span, line

TYPING_S: Final = 0.06
"""How long typing pauses before the filter is taken up."""
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
    VerifyView #evidence { width: 1fr; height: 1fr; border-left: solid $panel; padding: 0 1; }
    VerifyView #finding-filter { display: none; height: 1; border: none; padding: 0 1; }
    VerifyView #finding-filter.open { display: block; }
    VerifyView #evidence:focus { border-left: thick $primary; }
    .-ascii VerifyView #evidence { border-left: ascii $panel; }
    .-ascii VerifyView #evidence:focus { border-left: ascii $primary; }
    .-narrow VerifyView #evidence { display: none; }
    .-narrow VerifyView.-evidence #evidence { display: block; }
    .-narrow VerifyView.-evidence #findings { display: none; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._rows = FindingRows(desk.findings)
        self._verifying = Verifying(desk)
        self._following: Following
        self._drawing: Timer | None = None
        self._typing: Timer | None = None
        self._is_stale = False
        self._is_working_out = False
        self._mistake = ""
        """Why the filter as it was typed last cannot be used."""
        self._seen = -1
        """Of `Findings.reshaped`, when evidence was last looked for."""

    def compose(self) -> ComposeResult:
        """What was looked at and found, the filter, the list, the evidence."""
        yield Caption(id="verify-head")
        yield Field(id="finding-filter", placeholder="words, !words to leave out, ~expression")
        with Horizontal(id="verify-panes"):
            yield VirtualRows(id="findings", marked_with=self._rows.members)
            yield TextPane(id="evidence")

    def on_mount(self) -> None:
        """Show what is known."""
        self._following = Following(self.desk, self.evidence)
        self._rows.ascii_only = self.list.is_ascii
        self.list.marks = self.desk.findings.marked
        self.list.show(self._rows)
        self._drawing = self.set_interval(DRAWING_S, self._draw_progress, pause=True)
        self.call_after_refresh(self._take_up)

    @property
    def list(self) -> VirtualRows:
        """The findings."""
        return self.query_one("#findings", VirtualRows)

    @property
    def evidence(self) -> TextPane:
        """What shows the finding under the cursor."""
        return self.query_one("#evidence", TextPane)

    # What the frame asks

    def situation(self) -> Situation:
        """What is under the cursor, or marked."""
        key = self._cursor
        under = self._rows.finding(key) if key is not None and len(key) > 1 else None
        codes, paths = self._meant()
        level = self.desk.findings.looked.level
        return Situation(
            place="verify",
            path=_openable(under.path) if under is not None else "",
            code=under.code if under is not None else "",
            level=level if level in {one.name for one in LEVELS} else "fast",
            codes=codes,
            paths=paths,
        )

    def _meant(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Codes and paths of what is marked, or under the cursor; whole codes need no paths."""
        marked = self.desk.findings.marked
        if not marked:
            key = self._cursor
            if key is None:
                return (), ()
            return (key[0],), (key[1],) if len(key) > 1 and key[1] else ()
        codes = self._rows.marked_codes()
        known = self.desk.findings.by_code()
        if len(marked) == sum(known[code] for code in codes):
            return codes, ()
        # Whoever sees one too many knows that these are not all; sorting a million is for nobody.
        paths = (key[1] for key in marked if key[1])
        return codes, tuple(sorted(set(islice(paths, MOST_PATHS + 1))))

    def entered(self) -> None:
        """Take up what came meanwhile, and be ready for keys."""
        if self._is_stale:
            self.findings_changed()
        self._focus_list()

    def store_changed(self) -> None:
        """Evidence may be another one now."""
        if self.is_mounted:
            self._following.again()

    def findings_changed(self) -> None:
        """Show them as they are now; the cursor stays on what it is on."""
        self._is_stale = not (self.is_mounted and self.display)
        if self._is_stale:
            return
        self._take_up()
        if self._seen != self.desk.findings.reshaped:
            self._seen = self.desk.findings.reshaped
            self._following.again()

    def saved(self) -> Mapping[str, Any]:
        """The filter and the order."""
        shown = self._rows.filter
        return {
            "order": self._rows.order,
            "text": shown.text,
            "severities": shown.severities,
            "code": shown.code,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take up filter and order."""
        if saved.get("order") in ORDERS:
            self._rows.order = saved["order"]
        shown = Filter()
        if isinstance(saved.get("text"), str):
            shown = replace(shown, text=saved["text"])
        if saved.get("severities") in SEVERITIES:
            shown = replace(shown, severities=saved["severities"])
        if saved.get("code") in CODES:
            shown = replace(shown, code=saved["code"])
        self._filter(shown)

    # Verifying

    def verify(self, level: str) -> None:
        """Begin to verify, and show what is found as it is found."""
        self._verifying.begin(level)
        if self._drawing is not None:
            self._drawing.resume()
        self._draw()

    def _draw_progress(self) -> None:
        self._verifying.tick()
        if not self._verifying.is_running and self._drawing is not None:
            self._drawing.pause()
        self._draw()

    # Actions

    def do_verify_fast(self) -> None:
        """Verify at once."""
        self.verify("fast")

    def do_level(self) -> None:
        """Ask how thoroughly."""
        choices = [
            Choice(name=level.name, title=level.name, about=f"{level.reads}; {level.costs}")
            for level in LEVELS
        ]
        at = self.desk.findings.looked.level
        self.app.push_screen(
            ChoiceScreen("Verify how thoroughly?", choices, at=at), self._take_level
        )

    def _take_level(self, level: str | None) -> None:
        if level is not None:
            self.verify(level)

    def do_severity(self) -> None:
        """Go on to the next choice of severities."""
        at = SEVERITIES.index(self._rows.filter.severities)
        severities = SEVERITIES[(at + 1) % len(SEVERITIES)]
        self._filter(replace(self._rows.filter, severities=severities))

    def do_codes(self) -> None:
        """Ask which code is to be shown."""
        known = self.desk.findings.by_code()
        choices = [Choice(name=_ALL, title=_ALL)]
        for code in worst_first(known):
            sign, word, _ = SEVERITY[CODES[code].severity]
            about = f"{known[code]:,}  {CODES[code].severity} {sign} {word}"
            choices.append(Choice(name=code, title=code, about=about))
        self.app.push_screen(
            ChoiceScreen("Show which code?", choices, at=self._rows.filter.code), self._take_code
        )

    def _take_code(self, code: str | None) -> None:
        if code is not None:
            self._filter(replace(self._rows.filter, code="" if code == _ALL else code))

    def do_sort(self) -> None:
        """Go on to the next order."""
        at = ORDERS.index(self._rows.order)
        self._rows.order = ORDERS[(at + 1) % len(ORDERS)]
        self._take_up()

    def do_evidence(self) -> None:
        """Open the group, or go to the evidence."""
        key = self._cursor
        if key is None:
            return
        if len(key) == 1:
            self._set_open(key[0], to=True)
        else:
            self._focus_evidence()

    def do_close_group(self) -> None:
        """Close the group, or go up to it; leave the evidence."""
        key = self._cursor
        if self.evidence.has_focus:
            self._focus_list()
        elif key is not None and len(key) == 1:
            self._set_open(key[0], to=False)
        elif key is not None:
            self.list.move_to((key[0],))

    def do_plan(self) -> None:
        """Have a plan made for what is marked, or for what is under the cursor."""
        findings = self.desk.findings
        meant = findings.marked_findings()
        if not meant and self._cursor is not None:
            found = map(findings.get, self._rows.members(self._cursor))
            meant = [one for one in found if one is not None]
        self.desk.plan(meant)

    def do_side(self) -> None:
        """Show both sides of what is under the cursor."""
        finding = self._rows.finding(self._cursor)
        if finding is not None:
            self.desk.choose_side(finding)

    def do_show_file(self) -> None:
        """Show the file in Browse."""
        path = self.situation().path
        if path.startswith("chunked/"):
            self.desk.open_path(path)
        else:
            self.desk.say("Browse shows the files below chunked/ only", severity="warning")

    def do_back(self) -> None:
        """Leave the evidence; then the marks, the filter, one after the other."""
        shown = self._rows.filter
        if self._box.has_focus:
            self._leave_box(text="")
        elif self.evidence.has_focus:
            self._focus_list()
        elif self.desk.findings.marked:
            self.desk.findings.marked.clear()
            self._rows.recount()
            self._take_up()
        elif shown.text or self._box.has_class("open"):
            self._leave_box(text="")
        elif not shown.is_all:
            self._filter(Filter())

    # The filter

    def do_filter(self) -> None:
        """Open the box to type a filter in."""
        self._box.add_class("open")
        self._box.value = self._rows.filter.text
        self._box.focus()

    @property
    def _box(self) -> Input:
        return self.query_one("#finding-filter", Input)

    @on(Input.Changed, "#finding-filter")
    def _typed(self) -> None:
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(TYPING_S, self._take_typed)

    def _take_typed(self) -> None:
        if self._box.has_class("open"):
            self._filter(replace(self._rows.filter, text=self._box.value))

    @on(Input.Submitted, "#finding-filter")
    def _submitted(self) -> None:
        self._leave_box(text=self._box.value)

    def _leave_box(self, *, text: str) -> None:
        self._box.remove_class("open")
        self._filter(replace(self._rows.filter, text=text))
        self._focus_list()

    def _filter(self, shown: Filter) -> None:
        try:
            matcher(shown.text)
        except UsageError as error:
            # Half an expression is no mistake while it is typed: what was shown stays.
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
        key = self.list.cursor_key if self.is_mounted else None
        return key if isinstance(key, tuple) else None

    @on(VirtualRows.Highlighted)
    def _moved(self) -> None:
        key = self._cursor
        self._rows.held = key[0] if key is not None and len(key) > 1 else ""
        self._show_evidence()
        self.desk.situation_changed()

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        key = event.key
        if isinstance(key, tuple) and len(key) == 1:
            self._set_open(key[0], to=not self._rows.is_open(key[0]))
        else:
            self._focus_evidence()

    def _set_open(self, code: str, *, to: bool) -> None:
        self._rows.set_open(code, to=to)
        self.list.changed()

    @on(VirtualRows.Marked)
    def _marked(self) -> None:
        self._rows.recount()
        # How many are marked stands in the rows of the groups.
        self.list.forget_drawn()
        self._draw()
        self.desk.situation_changed()

    def _take_up(self) -> None:
        """Show rows, marks and head as they are now; very many rows once they are worked out."""
        if self._rows.is_much:
            self._work_out()
        else:
            self._rows.refresh()
        if not self.is_mounted:
            return
        self.list.changed()
        self._draw()
        if self._cursor is None:
            self._show_evidence()

    def _work_out(self) -> None:
        """Have the rows worked out aside, one draft after the other."""
        if not self._is_working_out:
            self._is_working_out = True
            draft = self._rows.draft()
            self.desk.backstage.read(
                lambda _: draft.worked_out(),
                self._worked_out,
                group="finding rows",
                failed=lambda _: self._worked_out(draft.worked_out()),
            )

    def _worked_out(self, grouped: Grouped) -> None:
        self._is_working_out = False
        self._rows.take(grouped)
        self._take_up()

    def _show_evidence(self) -> None:
        key = self._cursor
        finding = self._rows.finding(key)
        if key is None or finding is None:
            looked = self.desk.findings.looked
            is_known = bool(looked.level) and not looked.is_running and not looked.was_stopped
            is_filtered = len(self.desk.findings) > 0
            self._following.say(empty_lines(is_filtered=is_filtered, is_known=is_known), key="")
        elif len(key) == 1:
            members = len(self._rows.members(key))
            self._following.say(group_evidence_lines(finding, members), key=key[0])
        else:
            self._following.follow(finding)

    # Parts of the page

    def action_match(self, by: int) -> None:
        """Show another match of the filter in the evidence, also while the list has the keys."""
        self.evidence.action_match(by)

    def action_other_part(self) -> None:
        """Go from the list to the evidence, and back."""
        if self.evidence.has_focus:
            self._focus_list()
        else:
            self._focus_evidence()

    def _focus_list(self) -> None:
        self.remove_class("-evidence")
        self.call_after_refresh(self.list.focus)

    def _focus_evidence(self) -> None:
        # On a narrow screen it is not there before: what is not shown takes no focus.
        self.add_class("-evidence")
        self.call_after_refresh(self.evidence.focus)

    def on_descendant_focus(self) -> None:
        """On a narrow screen, show the part that a click or a key went to."""
        self.set_class(self.evidence.has_focus, "-evidence")
        self._draw()

    # The head

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        findings, shown = self.desk.findings, self._rows.filter
        counts = counts_line(findings.by_severity(), marked=len(findings.marked))
        order = Span(f"by {self._rows.order}", "quiet")
        if self.evidence.has_focus:
            order = Span("reading the evidence: esc goes back", "key")
        head = [self._verifying.line(), (*counts, order)]
        if not findings.looked.is_running:
            head.append(not_checked_line(findings.looked.level, findings.looked.not_checked))
        if self._mistake:
            head.append(line(self._mistake, "warning"))
        elif not shown.is_all:
            shown_here = self._rows.shown
            head.append(filters_line(shown.text, shown.severities, shown.code, shown=shown_here))
        self.query_one("#verify-head", Caption).say(head)


def _openable(path: str) -> str:
    """A path that an editor can open; the sidecar and folders are not for editing."""
    return "" if path.startswith(".sidecar") or path == "chunked" else path
