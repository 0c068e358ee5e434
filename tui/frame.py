"""The frame: head and foot of the screen, the words said to a person, and the doing of actions.

One rule: an action is done in one place, `action_do`, which refuses it with its reason and logs
its command line; pages and apps only have the methods `do_<name>`.
"""

import contextlib
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, cast

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher

from filestore import FilestoreError, Finding
from tui import actions
from tui.actions import Action
from tui.backstage import Backstage
from tui.desk import View, bindings_of
from tui.modals.small import SmallScreen, is_too_small
from tui.model.findings import Findings
from tui.model.prompt import Typed
from tui.model.state import Saved
from tui.situations import Place, Situation
from tui.widgets.bar import Bar, Item
from tui.widgets.themes import THEMES, first_theme
from tui.words import frame as words
from tui.words.commands import quoted
from tui.words.lines import Line, one_line, span
from tui.words.progress import progress_line

FOOTER_KEYS: Final = 7
MOST_LOGGED: Final = 1_000
AGAIN_S: Final = 5.0
"""For so long the same error is not told again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the inspector was started."""

    store: str | None = None
    configuration: str
    read_only: str = ""
    """Why nothing may be written; "" where it may."""
    in_browser: bool = False
    ascii: bool = False
    mouse: bool = True
    page: Place | None = None
    select: str = ""
    """The file to begin with."""
    findings: tuple[Finding, ...] | None = None
    """Of an earlier verification, to be shown instead of looking again."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class Call(Message):
    """Something to be done on the screen's thread, from another one."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__()
        self.function = function


class Frame(App[int]):
    """Head, pages and foot of one store; what `Desk` says is mostly done here."""

    CSS_PATH = "tui.tcss"
    TITLE = "filestore"
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of("everywhere"),
        Binding("ctrl+c", "app.do('everywhere', 'quit')", show=False, priority=True),
    ]

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (90, "-normal"), (140, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]
        self.options = options
        self.saved = Saved()
        self.findings = Findings()
        self.root = ""
        self.read_only = options.read_only
        self.in_browser = options.in_browser
        self.ascii = options.ascii
        self.set_class(options.ascii, "-ascii")
        self.backstage: Backstage = None  # type: ignore[assignment] # once a store is found
        self.commands_done: list[tuple[float, str]] = []
        """When, and the command line of what was done then; oldest first."""
        self.errors: list[tuple[float, FilestoreError]] = []
        self.turnable = ("", "")
        """The changes that undo and redo would take; "" for none."""
        # Held here, since at the end, when they are saved, no screen has them any more.
        self.pages = ContentSwitcher(id="pages")
        """Holds the pages, also while another screen lies over them."""
        self._bars = {name: Bar(id=name) for name in ("head", "foot")}
        self.views: list[View] = []
        """The pages that were made."""
        self._said: dict[str, float] = {}
        """When which error was told the last time."""
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = first_theme(options.environment, "")

    def compose(self) -> ComposeResult:
        """Head, pages, foot."""
        yield self._bars["head"]
        yield self.pages
        yield self._bars["foot"]

    def get_default_screen(self) -> Screen[Any]:
        """The screen, as wide and high as it is: told later, everything on it is styled again."""
        screen = super().get_default_screen()
        for size, limits in (
            (self.size.width, self.HORIZONTAL_BREAKPOINTS),
            (self.size.height, self.VERTICAL_BREAKPOINTS),
        ):
            _, name = max(limit for limit in limits or () if limit[0] <= size)
            screen.add_class(name, update=False)
        return screen

    @property
    def store_option(self) -> str:
        """What names the store on a command line; see `Desk`."""
        return f"--store {quoted(self.options.store)} " if self.options.store else ""

    @property
    def page(self) -> Place:
        """The page that is seen."""
        return cast(Place, self.pages.current or "browse")

    @property
    def view(self) -> View:
        """The page that is seen."""
        return cast(View, self.page_of(self.page))

    # What whoever holds a store does: see `Desk` and `Inspector`

    def make_page(self, place: Place) -> View:
        """Make a page."""
        raise NotImplementedError

    def open_path(self, path: str) -> None:
        """Show a file in Browse."""
        raise NotImplementedError

    def plan(self, findings: Sequence[Finding]) -> None:
        """Show in Repair what would mend these."""
        raise NotImplementedError

    def choose_side(self, finding: Finding) -> None:
        """Show both sides of a conflict; the choice becomes a plan in Repair."""
        raise NotImplementedError

    def look_again(self) -> None:
        """The store may have changed: look at everything again."""
        raise NotImplementedError

    def check(self, paths: Iterable[str], then: Callable[[Sequence[Finding]], None]) -> None:
        """Look at some files alone, and show what is found."""
        raise NotImplementedError

    def obey(self, typed: Typed) -> None:
        """Do what was typed on the command line."""
        raise NotImplementedError

    # What views ask for: see `Desk`

    def post(self, function: Callable[[], None]) -> None:
        """Have something done on the screen's thread; from any thread."""
        self.post_message(Call(function))

    def on_call(self, message: Call) -> None:
        """Do what another thread asked for; a fault in it ends nothing else."""
        try:
            message.function()
        except Exception as error:  # the top of what a worker brought about
            self.fail(unexpected(error))

    def say(
        self, text: str, *, severity: Literal["information", "warning", "error"] = "information"
    ) -> None:
        """Say something for a moment."""
        safe = "\n".join(one_line(part) for part in text.splitlines())
        self.notify(
            safe, severity=severity, markup=False, timeout=4 if severity == "information" else 8
        )

    def fail(self, error: FilestoreError) -> None:
        """Say what went wrong, and keep it for `E`."""
        self.errors.append((time.time(), error))
        del self.errors[:-MOST_LOGGED]
        said, now = words.short_error(error), time.monotonic()
        if now - self._said.get(said, -AGAIN_S) >= AGAIN_S:
            self.say(said, severity="error")
        self._said = {one: at for one, at in self._said.items() if now - at < AGAIN_S}
        self._said[said] = now

    def note(self, command: str) -> None:
        """Put a command line into the log."""
        if not self.commands_done or self.commands_done[-1][1] != command:
            self.commands_done.append((time.time(), command))
            del self.commands_done[:-MOST_LOGGED]

    def go(self, place: Place) -> None:
        """Show a page."""
        view = self.page_of(place)
        self.pages.current = place
        if not view.is_mounted:
            # Keys that come before it has its parts are not for the page that was left.
            self.screen_stack[0].set_focus(None)
        self.when_ready(view, view.entered)
        self.draw()

    def page_of(self, place: Place) -> Any:
        """A page, made when it is first asked for: what is not looked at costs nothing."""
        for view in self.views:
            if view.place == place:
                return view
        view = self.make_page(place)
        view.restore(self.saved.views.get(place, {}))
        self.views.append(view)
        self.pages.mount(view)
        return view

    @staticmethod
    def when_ready(view: View, function: Callable[[], None]) -> None:
        """Have something done once a page has its parts."""
        if view.is_mounted:
            function()
        else:
            view.call_after_refresh(function)

    def situation_changed(self) -> None:
        """Draw the foot again, once all of this turn is done."""
        self.call_later(self.draw)

    def findings_changed(self) -> None:
        """Tell every page that the findings are others."""
        for view in self.views:
            view.findings_changed()
        self.draw()

    # Actions

    def situation(self) -> Situation:
        """What can be said of the screen now."""
        busy = self.backstage.busy if self.backstage is not None else None
        stoppable = self.backstage.stoppable if self.backstage is not None else None
        is_work = busy is not None and busy.title != "status" and not busy.is_question
        return replace(
            self.view.situation(),
            busy=busy.title if busy is not None and is_work else "",
            stoppable=stoppable.title if stoppable is not None else "",
            read_only=self.read_only,
            in_browser=self.in_browser,
            can_undo=self.turnable[0],
            can_redo=self.turnable[1],
            store=self.options.store or "",
        )

    def action_do(self, place: Place, name: str) -> None:
        """Do an action, or say why not."""
        if self.backstage is None or not self.views:
            return
        if place not in ("everywhere", self.page):
            # A key that was pressed on a page which another key had already left.
            return
        action, now = actions.find(place, name), self.situation()
        reason = actions.refusal(action, now)
        if reason:
            self.say(reason, severity="warning")
            return
        command = actions.command_line(action, now)
        if command and not action.writes and not action.asks:
            self.note(command)
        owner: Any = self if place == "everywhere" else self.view
        getattr(owner, f"do_{name}")()
        self.draw()

    def on_key(self, event: Key) -> None:
        """Keep a key for a page that is not there yet, so that what is typed ahead is not lost."""
        if self.backstage is None or len(self.screen_stack) > 1 or self.focused is not None:
            return
        place, view = self.page, self.view
        for action in actions.of_place(place):
            if event.key in action.keys:
                event.stop()
                self.when_ready(view, partial(self.action_do, place, action.name))

    def do_browse(self) -> None:
        """Show Browse."""
        self.go("browse")

    def do_verify(self) -> None:
        """Show Verify."""
        self.go("verify")

    def do_repair(self) -> None:
        """Show Repair."""
        self.go("repair")

    def do_stop(self) -> None:
        """Stop what is under way."""
        if self.backstage.stoppable is not None:
            self.backstage.stop(self.backstage.stoppable)

    def do_next_part(self) -> None:
        """Go on to the next part of the screen."""
        self.screen.focus_next()

    def do_previous_part(self) -> None:
        """Go back to the part before."""
        self.screen.focus_previous()

    def do_back(self) -> None:
        """Let the page leave one level."""
        leave = getattr(self.view, "do_back", None)
        if leave is not None:
            leave()

    def do_zoom(self) -> None:
        """Give the whole screen to one part."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif self.focused is not None:
            self.screen.maximize(self.focused)

    def _fatal_error(self) -> None:
        """Say in words what ended the inspector; Textual would print the values of variables."""
        error = self._exception or RuntimeError("unknown")
        said = "".join(traceback.format_exception(error))
        path = os.path.join(tempfile.gettempdir(), f"filestore-inspector-{os.getpid()}.txt")
        with contextlib.suppress(OSError), open(path, "x", encoding="utf-8") as file:
            file.write(said)
        self._exit_renderables.append(
            Text(
                f"the inspector failed: {type(error).__name__}: {one_line(error)}\n"
                "try: open it again; the store is not harmed, and 'filestore undo --list' tells\n"
                f"what was changed. Please report {path}"
            )
        )
        self._close_messages_no_wait()

    # Drawing

    def on_resize(self, event: Resize) -> None:
        """Have a notice in place of everything where there is no room for it."""
        if is_too_small(event.size):
            self.call_later(self._say_small)

    def _say_small(self) -> None:
        if not any(isinstance(screen, SmallScreen) for screen in self.screen_stack):
            self.push_screen(SmallScreen())

    def work_changed(self) -> None:
        """Work began, went on or ended."""
        self.draw_head()
        self.situation_changed()

    def draw(self) -> None:
        """Draw head and foot as things are now."""
        if self.views:
            self.draw_head()
            self._draw_foot()

    def draw_head(self) -> None:
        """Draw the head as things are now."""
        if not self.root or not self.views:
            return
        found = self.findings.by_severity()
        pages = [
            Item(
                line=words.page_name(name, title, current=name == self.page, found=found),
                press=name,
            )
            for name, title in words.PAGES
        ]
        names = [
            Item(line=(span(name, "title"),), gives_way=2 - number)
            for number, name in enumerate(("filestore", words.store_name(self.root)))
        ]
        self._bar("head").show([*names, *pages], self._working())

    def _working(self) -> Line:
        task = self.backstage.busy
        if task is None:
            running = self.findings.looked.is_running
            return words.standing(self.findings.clean, self.findings.by_severity(), running=running)
        seconds = time.monotonic() - task.started_s
        progress = progress_line(
            task.stage, done=task.done, total=task.total, elapsed_s=seconds, width=10
        )
        return (span(f"{task.title}  ", "title"), *progress, span("  w", "key"))

    def _draw_foot(self) -> None:
        now = self.situation()
        shown = [action for action in actions.available(self.page) if action.footer]
        shown.sort(key=lambda action: -action.footer)
        self._bar("foot").show([self._key_item(action, now) for action in shown[:FOOTER_KEYS]])

    @staticmethod
    def _key_item(action: Action, now: Situation) -> Item:
        label = actions.key_label(action.keys[0])
        refused = bool(actions.refusal(action, now))
        return Item(
            line=words.key_words(label, action.title, refused=refused),
            press=f"{action.place}.{action.name}",
        )

    def _bar(self, name: str) -> Bar:
        return self._bars[name]

    @on(Bar.Pressed)
    def _pressed(self, event: Bar.Pressed) -> None:
        place, _, name = event.press.rpartition(".")
        self.action_do(place or "everywhere", name)  # type: ignore[arg-type]


def unexpected(error: Exception) -> FilestoreError:
    """A fault of the inspector itself, as an error like others."""
    return FilestoreError(
        f"unexpected: {type(error).__name__}: {error}",
        remedy="the store is not harmed; E shows the whole, please report it",
        detail="".join(traceback.format_exception(error)),
    )
