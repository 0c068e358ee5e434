"""The frame: header and footer of the screen, notifications, and the dispatch of actions.

One rule: an action is done in one place, `action_do`, which refuses it with its reason and logs
its command line; pages and apps only have the methods `do_<name>`.
"""

import asyncio
import contextlib
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, ClassVar, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.driver import Driver
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import MountError
from textual.widgets import ContentSwitcher
from textual.worker import WorkerFailed

from filestore import FilestoreError, Finding
from filestore.browse import InspectorOptions, shown_path
from tui import actions
from tui.actions import ActionContext, Place
from tui.formatting import line, one_line, quoted, span
from tui.formatting import reports as texts
from tui.formatting.rows import COLUMNS
from tui.state.findings import Findings
from tui.views.context import Severity, View, bindings_of
from tui.views.dialogs import Panel, SmallScreen, is_too_small
from tui.widgets.bars import Bar, Item
from tui.widgets.drawing import THEMES, first_theme
from tui.widgets.upstream import Delay, KeysInOrder, MainScreen, TerminalDriver, drawable
from tui.workers.faults import UnexpectedError, trace_of
from tui.workers.session_file import Saved
from tui.workers.task_manager import TaskManager

LEAST_FOOTER: Final = 6
"""Columns of a key with its title."""
MOST_LOGGED: Final = 1_000
AFTERWARDS_S: Final = 0.5
WORK_S: Final = 0.1
GIVEN_BACK_S: Final = 1.0
AGAIN_S: Final = 5.0
"""The same error is not shown again within this time."""


class Options(Struct, frozen=True, kw_only=True):
    """How the inspector was started."""

    store: str | None = None
    configuration: str
    read_only: str = ""
    """Why nothing may be written; "" where it may."""
    ascii: bool = False
    mouse: bool = True
    page: Place | None = None
    select: str = ""
    """The file to begin with."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass
class Call(Message):
    """A call to be made on the screen's thread, from another one."""

    function: Callable[[], None]


class Frame(KeysInOrder):
    """Header, pages and footer of one store; most of `ViewContext`."""

    CSS_PATH = "inspector.tcss"
    TITLE = "filestore"
    AUTO_FOCUS = None
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of("everywhere"),
        Binding("ctrl+c", "app.do('everywhere', 'quit')", show=False, priority=True),
        Binding("ctrl+z", "app.suspend_process", show=False, priority=True),
    ]

    def __init__(self, options: Options) -> None:
        # Else Textual makes greys of them; where none is wanted the terminal's own are left.
        is_bare = bool(options.environment.get("NO_COLOR")) or None
        super().__init__(driver_class=TerminalDriver, ansi_color=is_bare)
        self.fault = ""
        """The trace of the first fault of this program; "" for none."""
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (90, "-normal"), (140, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]
        self.options = options
        self.own = InspectorOptions()
        """What the user's settings say of the inspector."""
        self.saved, self.findings = Saved(), Findings()
        self.root = ""
        self.read_only = options.read_only
        self.ascii = options.ascii
        self.set_class(options.ascii, "-ascii")
        self.task_manager: TaskManager = None  # type: ignore[assignment] # once a store is found
        self.commands_done: list[tuple[float, str]] = []
        """When, and the command line of what was done then; oldest first."""
        self.errors: list[tuple[float, FilestoreError]] = []
        self.next_undo_redo = ("", "")
        """The changes that undo and redo would take; "" for none."""
        self.no_enrich = ""
        """Why nothing can be enriched; "" where it can, and while that is not known."""
        # Held here: when they are saved, at exit, no screen has them any more.
        self.pages = ContentSwitcher(id="pages")
        """Holds the pages, also while another screen lies over them."""
        self._head, self._footer = Bar(id="head"), Bar(id="footer")
        self.views: list[View] = []
        """The pages that were made."""
        self._work_timer: Timer | None = None
        self._expiring = Delay(self)
        self._error = ("", 0.0)
        """The last one of an error, and until when it is shown."""
        self._shown_errors: dict[str, float] = {}
        """When each error was last shown."""
        self.animation_level = "none"
        # The first layout uses this; the size itself comes later.
        first = Size(*self.console.size)
        if drawable(first) != first:
            self.console.size = drawable(first)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = first_theme(options.environment, "")

    def take_own(self, own: InspectorOptions) -> None:
        """Take up the user's settings."""
        known = {f"{action.place}.{action.name}" for action in actions.ACTIONS}
        for name in own.keys.keys() - known:
            self.notify(f"inspector.keys: no action is called {name}", severity="warning")
        for name in set(own.columns) - set(COLUMNS):
            self.notify(f"inspector.columns: no column is called {name}", severity="warning")
        self.own = own
        self.set_keymap({name: ",".join(keys) for name, keys in own.keys.items() if name in known})

    def keys_of(self, action: actions.Action) -> Sequence[str]:
        """The keys of an action: the user's, else its own."""
        return self.own.keys.get(f"{action.place}.{action.name}") or action.keys

    def compose(self) -> ComposeResult:
        """Header, pages, footer."""
        yield self._head
        yield self.pages
        yield self._footer

    def get_default_screen(self) -> Screen[Any]:
        """The screen at its size: set later, everything on it would be styled again."""
        screen = MainScreen(id="_default")
        for size, limits in (
            (self.size.width, self.HORIZONTAL_BREAKPOINTS),
            (self.size.height, self.VERTICAL_BREAKPOINTS),
        ):
            _, name = max(limit for limit in limits or () if limit[0] <= size)
            screen.add_class(name, update=False)
        return screen

    @property
    def store_option(self) -> str:
        """What names the store on a command line; see `ViewContext`."""
        return f"--store {quoted(self.options.store)} " if self.options.store else ""

    @property
    def page(self) -> Place:
        """The page that is seen."""
        return cast("Place", self.pages.current or "browse")

    @property
    def view(self) -> View:
        """The page that is seen."""
        return cast("View", self.page_of(self.page))

    # What a page with a store does: see `ViewContext` and `Inspector`

    def make_page(self, place: Place) -> View:
        """Make a page."""
        raise NotImplementedError

    def look_again(self) -> None:
        """The store may have changed: check everything again."""
        raise NotImplementedError

    def check(self, paths: Iterable[str], then: Callable[[Sequence[Finding]], None]) -> None:
        """Check some files alone, and show the findings."""
        raise NotImplementedError

    # What views ask for: see `ViewContext`

    def post(self, function: Callable[[], None]) -> None:
        """Call a function on the screen's thread; from any thread."""
        self.post_message(Call(function))

    def on_call(self, message: Call) -> None:
        """Make the call of another thread; a fault in it ends nothing else."""
        try:
            message.function()
        except Exception as error:  # the top of a call from a worker
            self.fail(
                UnexpectedError(
                    f"unexpected: {type(error).__name__}: {error}"
                    "; the store is not harmed; E shows the full error",
                    trace=trace_of(error),
                    detail="".join(traceback.format_exception(error)),
                )
            )

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Severity = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a notification in place of the one before, made safe for a terminal.

        An error stays above what follows it for as long as it is shown.
        """
        safe, now = "\n".join(map(shown_path, message.splitlines())), time.monotonic()
        timeout_s = timeout or (4.0 if severity == "information" else 8.0)
        error, until = self._error
        if severity == "error":
            self._error = safe, now + timeout_s
        elif now < until:
            safe, severity, timeout_s = f"{error}\n{safe}", "error", max(timeout_s, until - now)
        self.clear_notifications()
        super().notify(
            safe, title=one_line(title), severity=severity, timeout=timeout_s, markup=False
        )
        self._expiring.begin(timeout_s + AFTERWARDS_S, self._clear_expired)

    def _clear_expired(self) -> None:
        """Remove the notification once it has expired, and paint what was below it.

        Textual compares the layout with the one before to know what to paint. Asking for the
        place of a widget in between renews the one before, and the message stays on the terminal.
        """
        if self.screen_stack:
            self.clear_notifications()
            self.screen.refresh(layout=True)

    def fail(self, error: FilestoreError) -> None:
        """Show an error, and keep it for `E`."""
        if isinstance(error, UnexpectedError):
            self.fault = self.fault or error.trace
        self.errors.append((time.time(), error))
        del self.errors[:-MOST_LOGGED]
        message, now = shown_path(error.message), time.monotonic()
        message = "\n".join([message, *map(one_line, error.remedy_lines)])
        # Not twice on the screen, but never unseen: the time counts from when it was shown.
        self._shown_errors = {
            one: at for one, at in self._shown_errors.items() if now - at < AGAIN_S
        }
        if message not in self._shown_errors:
            self._shown_errors[message] = now
            before = "\nE shows the error before it" if now < self._error[1] else ""
            self.notify(message + before, severity="error")

    def note(self, command: str) -> None:
        """Put a command line into the log."""
        if not self.commands_done or self.commands_done[-1][1] != command:
            self.commands_done.append((time.time(), command))
            del self.commands_done[:-MOST_LOGGED]

    def go(self, place: Place) -> None:
        """Show a page."""
        view = self.page_of(place)
        self.pages.current = place
        if view.is_mounted:
            view.entered()
        else:
            self.screen_stack[0].set_focus(None)
            self.hold_keys_for(view)

            def enter(view: View) -> None:
                if view is self.view:
                    view.entered()
                self.let_keys_go(view)

            view.call_after_refresh(enter, view)
        self.draw()

    def page_of(self, place: Place) -> Any:
        """A page, made when it is first needed."""
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
        """Call a function once a page has its parts."""

        async def call() -> None:
            await view.complete()
            function()

        if view.is_mounted and view.is_complete:
            function()
        else:
            view.call_after_refresh(call)

    def on_page(self, place: Place, function: Callable[[Any], None]) -> None:
        """Show a page and call a function with it."""
        self.go(place)
        view = self.page_of(place)
        self.when_ready(view, partial(function, view))

    def open_path(self, path: str) -> None:
        """Show a file in Browse."""
        self.on_page("browse", lambda view: view.open_path(path))

    async def complete(self) -> None:
        """Give the page that is seen its unseen parts."""
        if self.views and self.view.is_mounted:
            await self.view.complete()

    def context_changed(self) -> None:
        """Draw the footer again, after the current handler."""
        self.call_later(self.draw)

    def findings_changed(self) -> None:
        """Update every page with new findings."""
        for view in self.views:
            view.findings_changed()
        self.draw()

    # Actions

    def action_context(self) -> ActionContext:
        """The screen's state now."""
        manager = self.task_manager
        busy, stoppable = (manager.busy, manager.stoppable) if manager else (None, None)
        is_work = busy is not None and busy.title != "status" and not busy.is_question
        return replace(
            self.view.action_context(),
            busy=busy.title if busy is not None and is_work else "",
            stoppable=stoppable.title if stoppable is not None else "",
            read_only=self.read_only,
            is_written=self.findings.tree.is_written,
            no_enrich=self.no_enrich,
            can_undo=self.next_undo_redo[0],
            can_redo=self.next_undo_redo[1],
            store=self.options.store or "",
        )

    def action_do(self, place: Place, name: str) -> None:
        """Run an action, or show why it is unavailable."""
        if self.task_manager is None or not self.views:
            if name == "quit":
                self.exit(0)
            return
        if place not in ("everywhere", self.page):
            # The page of this key was left by an earlier key.
            return
        action, now = actions.find(place, name), self.action_context()
        reason = actions.refusal(action, now)
        if reason:
            self.notify(reason, severity="warning")
            return
        command = actions.command_line(action, now)
        if command and not action.writes and not action.asks:
            self.note(command)
        owner: Any = self if place == "everywhere" else self.view
        if name in ("browse", "verify", "repair"):
            self.go(cast("Place", name))
            if name == "verify" and now.place == "browse" and now.paths:
                self.when_ready(self.view, partial(self.page_of("verify").point_at, now.paths))
        else:
            getattr(owner, f"do_{name}")()
        self.draw()

    def do_stop(self) -> None:
        """Stop what is running."""
        task = self.task_manager.stoppable
        if task is not None and task.state == "stopping":
            self.notify(f"{task.title} is already stopping")
        elif task is not None:
            self.task_manager.stop(task)

    def do_suspend(self) -> None:
        """Go to the shell; `fg` comes back."""
        self.action_suspend_process()

    @on(Driver.SignalResume)
    def _come_back(self) -> None:
        """Draw everything: the shell has written over it, and Textual draws what changed."""
        self.refresh(layout=True)

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
            self.when_ready(self.view, leave)

    def do_zoom(self) -> None:
        """Give the whole screen to one part."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif self.focused is not None:
            self.screen.maximize(self.focused)

    # Unexpected errors

    def keep_fault(self, error: BaseException) -> None:
        """Keep an unexpected error, to be reported at the end; from any thread."""
        self.fault = self.fault or trace_of(error)

    def thread_failed(self, error: BaseException) -> None:
        """Keep the error that ended a thread, and exit: something may wait for the thread."""
        self.keep_fault(error)
        self.post(self._end_failed)

    def _handle_exception(self, error: Exception) -> None:
        """Keep an uncaught error, and exit; Textual would print the values of variables."""
        if self._exit and isinstance(error, NoMatches | MountError):
            # A page that is removed while it is being mounted has no parts, or nothing around it.
            return
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        cause = error.error if isinstance(error, WorkerFailed) else error
        self.keep_fault(cause)
        self._end_failed()

    def panic(self, *renderables: object) -> None:
        """Exit without what Textual would print: it may quote a file."""
        self.fault = self.fault or "  error: panic"
        self._end_failed()

    def _end_failed(self) -> None:
        self._return_code = FilestoreError.exit_code
        self._close_messages_no_wait()

    def _keep_lost(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Keep the error of a task that nothing awaits."""
        error = context.get("exception")
        if isinstance(error, Exception):
            self.keep_fault(error)

    def leave(self, code: int) -> None:
        """End with an exit code; from any thread, also before there is a screen."""
        with contextlib.suppress(Exception):
            self.post(lambda: self.exit(code, return_code=code))

    def give_terminal_back(self) -> bool:
        """Restore the terminal, from any thread; False while another program has it."""
        driver = self._driver
        if not isinstance(driver, TerminalDriver) or driver.is_lent:
            return not isinstance(driver, TerminalDriver)
        # A terminal that takes nothing must not hold it up.
        giving = Thread(target=driver.give_back, daemon=True)
        giving.start()
        giving.join(GIVEN_BACK_S)
        return True

    def close_screen(self) -> None:
        """Restore the terminal where the exit itself failed."""
        if self._driver is not None:
            with contextlib.suppress(Exception):
                self._driver.close()

    # Drawing

    def on_resize(self, event: Resize) -> None:
        """Draw what fits, or show a notice in place of everything where there is no room for it."""
        size = drawable(event.size)
        if size != event.size:
            event.prevent_default()
            self.post_message(Resize(size, size))
            return
        if is_too_small(event.size):

            def show_too_small() -> None:
                if not any(isinstance(screen, SmallScreen) for screen in self.screen_stack):
                    self.push_screen(SmallScreen())

            self.call_later(show_too_small)
        # The footer has as many keys as fit.
        self.context_changed()

    def work_changed(self) -> None:
        """Draw the progress of work, at most ten times a second."""
        if self._work_timer is None:

            def draw_work() -> None:
                self._work_timer = None
                self.draw()

            self._work_timer = self.set_timer(WORK_S, draw_work)

    def draw(self) -> None:
        """Draw header and footer."""
        if self.views:
            self.draw_head()
            now = self.action_context()
            shown = sorted(actions.available(self.page), key=lambda action: -action.footer)
            items: list[Item] = []
            for action in shown[: self.size.width // LEAST_FOOTER]:
                refused = bool(actions.refusal(action, now))
                if not (refused and action.rare):
                    label = actions.key_label(self.keys_of(action)[0])
                    words = texts.key_words(label, action.title, refused=refused)
                    items.append(Item(words, f"{action.place}.{action.name}"))
            self._footer.show(items)

    def draw_head(self) -> None:
        """Draw the head as things are now."""
        if not self.root or not self.views:
            return
        found = self.findings.index.severities
        pages = [
            Item(texts.page_name(name, title, current=name == self.page, found=found), name)
            for name, title in texts.PAGES
        ]
        names = [
            Item(line(name, "title"), gives_way=2 - number)
            for number, name in enumerate(("filestore", texts.store_name(self.root)))
        ]
        running = self.findings.coverage.is_running
        right = texts.standing(self.findings.clean, found, running=running)
        task = self.task_manager.busy
        # At the end there is no screen any more.
        shown = self.screen_stack[-1] if self.screen_stack else None
        if task is not None and not (isinstance(shown, Panel) and shown.live):
            title = span(f" {task.title}  ", "title")
            right = (span("w", "key"), title, *task.progress(width=10))
        self._head.show([*names, *pages], right)

    @on(Bar.Pressed)
    async def _pressed(self, event: Bar.Pressed) -> None:
        await self.complete()
        place, _, name = event.press.rpartition(".")
        self.action_do(place or "everywhere", name)  # type: ignore[arg-type]
