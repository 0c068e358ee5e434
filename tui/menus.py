"""What is laid over the pages, and what is the same on all of them: editing, copying, syncing."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.command import Hit, Hits, Provider

from filestore import Finding
from tui import actions
from tui.actions import Action
from tui.backstage import Handlers, Job, Task, clipboard, editor
from tui.frame import Frame, Options
from tui.modals.choosing import Choice, ChoiceScreen
from tui.modals.panels import Panel
from tui.modals.prompt import PromptScreen
from tui.model import prompt
from tui.situations import Place, Situation
from tui.widgets.themes import THEMES
from tui.words import frame as words
from tui.words.commands import quoted
from tui.words.lines import Line, line
from tui.words.progress import progress_line

if TYPE_CHECKING:
    from filestore import SyncReport


class ActionsProvider(Provider):
    """The palette: every action that the page in sight has."""

    async def search(self, query: str) -> Hits:
        """The actions whose words fit."""
        matcher = self.matcher(query)
        for action in self._actions():
            score = max(matcher.match(action.title), matcher.match(action.help))
            if score > 0:
                yield self._hit(action, score)

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for action in self._actions():
            yield self._hit(action, 1)

    def _actions(self) -> list[Action]:
        return actions.available(self._frame.page)

    @property
    def _frame(self) -> "Menus":
        assert isinstance(self.app, Menus)
        return self.app

    def _hit(self, action: Action, score: float) -> Hit:
        frame = self._frame
        reason = actions.refusal(action, frame.situation())
        keys = actions.key_label(action.keys[0]) if action.keys else ""
        return Hit(
            score,
            f"{action.title}  {keys}",
            lambda: frame.action_do(action.place, action.name),
            text=action.title,
            help=f"not now: {reason}" if reason else action.help,
        )


class Menus(Frame):
    """A frame with everything that is laid over its pages."""

    COMMANDS: ClassVar = {ActionsProvider}

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.prompts: list[str] = []
        """Command lines that were typed, oldest first."""

    # Panels

    def do_help(self) -> None:
        """Show the keys of this page."""
        now = self.situation()
        places: list[tuple[str, Place]] = [
            (self.page.capitalize(), self.page),
            ("Everywhere", "everywhere"),
            ("Lists", "lists"),
        ]
        lines = words.help_lines(
            (title, [self._help_of(action, now) for action in actions.of_place(place)])
            for title, place in places
        )
        self.push_screen(Panel("Keys", lambda: lines))

    @staticmethod
    def _help_of(action: Action, now: Situation) -> tuple[str, str, str]:
        keys = " ".join(actions.key_label(key) for key in action.keys)
        command = actions.command_line(action, now) or action.no_command
        return keys, action.help, command

    def do_palette(self) -> None:
        """Find an action by its words."""
        self.action_command_palette()

    def action_command_palette(self) -> None:
        """Show the palette, with a hint in plain characters."""
        from textual.command import CommandPalette

        if not CommandPalette.is_open(self):  # type: ignore[arg-type] # of any result
            self.push_screen(CommandPalette(placeholder="words of an action"))

    def do_log(self) -> None:
        """Show the command lines of what was done."""
        self.push_screen(Panel("Log", lambda: words.log_lines(self.commands_done)))

    def do_errors(self) -> None:
        """Show what went wrong."""
        self.push_screen(Panel("Errors", self._error_lines))

    def _error_lines(self) -> list[Line]:
        if not self.errors:
            return [line("nothing went wrong", "quiet")]
        lines: list[Line] = []
        for at, error in reversed(self.errors):
            lines += [line(words.clock(at), "quiet"), *words.error_lines(error), ()]
        return lines

    def do_tasks(self) -> None:
        """Show what is under way."""
        self.push_screen(Panel("Tasks", self._task_lines, live=True))

    def _task_lines(self) -> list[Line]:
        tasks = self.backstage.tasks
        if not tasks:
            return [line("nothing was done yet", "quiet")]
        return [one for task in reversed(tasks) for one in _lines_of(task)]

    # Colours, copies

    def do_theme(self) -> None:
        """Choose colours."""
        choices = [Choice(name=theme.name, title=theme.name) for theme in THEMES]
        self.push_screen(ChoiceScreen("Colours", choices, at=self.theme), self._take_theme)

    def _take_theme(self, name: str | None) -> None:
        if name is not None:
            self.theme = name

    def do_copy(self) -> None:
        """Choose what to copy."""
        now = self.situation()
        nothing = "" if now.path else "there is no file under the cursor"
        self.push_screen(
            ChoiceScreen(
                "Copy",
                [
                    Choice(name="path", title="path", about=now.path, why_not=nothing),
                    Choice(name="vector", title="vector id", why_not=nothing),
                    Choice(name="text", title="text", about="of the chunk", why_not=nothing),
                    Choice(name="command", title="command line", about=self._command(now)),
                ],
            ),
            lambda name: self._copy(name or "", now),
        )

    def _command(self, now: Situation) -> str:
        """The command line of what is under the cursor."""
        own = self.view.command()
        if own is not None:
            return own
        name = "open" if now.place == "browse" else "plan"
        if now.place == "verify" and not now.codes:
            name = "level"
        if now.place == "browse" and now.query:
            name = "search"
        return actions.command_line(actions.find(now.place, name), now)

    def do_copy_command(self) -> None:
        """Copy the command line of what is under the cursor."""
        self.copy_text(self._command(self.situation()), what="the command line")

    def _copy(self, name: str, now: Situation) -> None:
        if name == "path":
            self.copy_text(now.path, what="the path")
        elif name == "command":
            self.do_copy_command()
        elif name == "text":
            self.backstage.read(
                lambda store: store.about(now.path).body,
                lambda text: self.copy_text(text, what="the text"),
                group="copy",
            )
        elif name == "vector":
            self.backstage.read(
                lambda store: " ".join(str(one.id) for one in store.about(now.path).vectors),
                lambda text: self.copy_text(text, what="the vector id"),
                group="copy",
            )

    def copy_text(self, text: str, *, what: str) -> None:
        """Copy a text, and say by what way; nobody can tell whether a terminal took it."""
        if not text:
            self.say(f"{what}: there is nothing to copy", severity="warning")
            return

        # A program of the desktop may take its time.
        self.run_worker(partial(self._copy_away, text, what), thread=True)

    def _copy_away(self, text: str, what: str) -> None:
        way = clipboard.copy(
            text,
            write=lambda sequence: self.post(partial(self._write_to_terminal, sequence)),
            environment=self.options.environment,
        )
        self.post(partial(self._copied, text, what, way))

    def _write_to_terminal(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)

    def _copied(self, text: str, what: str, way: str) -> None:
        self.say(f"{what}: {way}")
        if way.startswith("not copied"):
            self.push_screen(PromptScreen("save to ", hint="a new file"), partial(self._save, text))

    def _save(self, text: str, path: str | None) -> None:
        """Save what could not be copied; a file that is there is never overwritten."""
        if not path:
            return
        try:
            with open(
                os.path.expanduser(path), "x", encoding="utf-8", errors="surrogateescape"
            ) as file:
                file.write(text)
        except OSError as error:
            self.say(f"not saved: {path}: {error.strerror}", severity="error")
        else:
            self.say(f"saved to {path}")

    # Files and the index

    def do_edit(self) -> None:
        """Open the file under the cursor in the person's editor, then look at it again."""
        self.edit(self.situation().path)

    def edit(self, path: str) -> None:
        """Open a file in the person's editor, or say why not; then look at it again."""
        now = replace(self.situation(), path=path)
        refused = actions.refusal(actions.find("everywhere", "edit"), now)
        if refused:
            self.say(refused, severity="warning")
            return
        command = editor.command(self.options.environment)
        if command.problem:
            self.say(command.problem, severity="warning")
            return
        if command.warning:
            self.say(command.warning, severity="warning")
        file = os.path.join(self.root, path)
        self.note(f"{' '.join(command.words)} {quoted(path)}")
        with self.suspend():
            problem = _run([*command.words, file])
        self.refresh(repaint=True, layout=True)
        if problem:
            self.say(problem, severity="error")
        self.check([path], self._edited)

    def _edited(self, found: Sequence[Finding]) -> None:
        self.view.store_changed()
        drifted = [
            one for one in found if one.code in ("modified", "metadata-modified", "untracked")
        ]
        if drifted:
            self.say(f"{drifted[0].code}: {drifted[0].detail}; i brings the index in step")
        elif found:
            self.say(f"{found[0].code}: {found[0].detail}", severity="warning")
        else:
            self.say("the file is as it was indexed")

    def do_sync(self) -> None:
        """Bring the index in step."""
        self.sync(full=False, forget_missing=False)

    def sync(self, *, full: bool, forget_missing: bool) -> None:
        """Bring the index in step; see `Store.sync`."""
        options = "".join(
            f" --{name}"
            for name, wanted in (("full", full), ("forget-missing", forget_missing))
            if wanted
        )
        command = f"filestore {self.store_option}sync{options}"
        self.note(command)
        self.backstage.work(
            Job(name="sync", arguments={"full": full, "forget_missing": forget_missing}),
            Handlers(then=self._synced, stopped=self.look_again),
            title=f"sync{options}",
            command=command,
            writes=True,
        )

    def _synced(self, report: "SyncReport") -> None:
        from tui.words.reports import sync_words

        self.say(sync_words(report))
        self.look_again()

    # The command line

    def do_prompt(self) -> None:
        """Type a command."""
        self.push_screen(
            PromptScreen(
                ":",
                hint="a command, a vector id, a path",
                earlier=self.prompts,
                completions=prompt.COMPLETIONS,
            ),
            self._typed,
        )

    def _typed(self, text: str | None) -> None:
        if not text or not text.strip():
            return
        self.prompts = [*(one for one in self.prompts if one != text), text]
        typed = prompt.parse(text)
        if typed.problem:
            self.say(typed.problem, severity="warning")
        elif typed.name:
            self.obey(typed)

    def do_quit(self) -> None:
        """End, once the person knows what is still under way."""
        task = self.backstage.busy
        if task is None or not task.writes:
            self.exit(0)
            return
        choices = [
            Choice(name="stay", title="stay", about="and let it end"),
            Choice(
                name="stop",
                title="stop it and quit",
                about="what was done stays",
            ),
        ]
        self.push_screen(ChoiceScreen(f"{task.title} is under way", choices), self._take_quit)

    def _take_quit(self, name: str | None) -> None:
        if name == "stop":
            self.exit(0)


def _lines_of(task: Task) -> Iterator[Line]:
    seconds = (task.ended_s or time.monotonic()) - task.started_s
    progress = progress_line(task.stage, done=task.done, total=task.total, elapsed_s=seconds)
    started = words.clock(time.time() - (time.monotonic() - task.started_s))
    yield from words.task_lines(
        task.title,
        task.state,
        () if task.is_over else progress,
        task.outcome,
        started=started,
        writes=task.writes,
    )


def _run(command: Sequence[str]) -> str:
    """Run an editor in the terminal that was left to it; returns why it failed, or ""."""
    try:
        done = subprocess.run(command, check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    return "" if done.returncode == 0 else f"{command[0]} ended with {done.returncode}"
