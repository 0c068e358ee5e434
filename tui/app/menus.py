"""What is laid over the pages, and what is the same on all of them: editing, copying, syncing."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from msgspec.structs import replace

from filestore import Finding
from filestore.browse import InspectedStore, opened_at, program_for, run_program, shown_path
from tui import actions
from tui.actions import ActionContext, Place
from tui.app.frame import Frame
from tui.formatting import Line, all_quoted, count, error_lines, line, shortened
from tui.formatting import reports as texts
from tui.views.dialogs import Choice, ChoiceScreen, HelpScreen, Panel, PromptScreen
from tui.widgets.drawing import THEMES
from tui.workers import terminal
from tui.workers.tasks import Handlers, Job

if TYPE_CHECKING:
    from filestore import SyncReport


class Menus(Frame):
    """A frame with everything that is laid over its pages."""

    next_store = ""
    """What is to be opened once this store is left; "" for nothing."""

    # Panels

    def do_help(self, *, is_typing: bool = False) -> None:
        """Show the keys of this page, one line an action; the chosen one is done."""
        choices, now = [], self.action_context()
        for action in (*actions.available(self.page), *actions.of_place("lists")):
            keys = " ".join(map(actions.key_label, self.keys_of(action)))
            reason = actions.refusal(action, now)
            about = f"not now, {reason}" if reason else action.help
            if about.partition(" ")[0] != action.title.partition(" ")[0]:
                about = f"{action.title}: {about}"
            name = f"{action.place}.{action.name}"
            choices.append(Choice(name, f"{keys:<13}", about, also=action.title))

        def do(name: str | None) -> None:
            place, _, action = (name or "").partition(".")
            if place in ("everywhere", self.page):
                self.action_do(cast("Place", place), action)

        self.push_screen(HelpScreen("Keys", choices, is_typing=is_typing), do)

    def do_palette(self) -> None:
        """Find an action by name."""
        self.do_help(is_typing=True)

    def do_log(self) -> None:
        """Show the command lines of what was done."""
        done = self.commands_done

        def whole() -> str:
            return "\n".join(f"{texts.clock(at)}  {command}" for at, command in done)

        self.push_screen(Panel("Log", lambda: texts.log_lines(done), whole=whole))

    def do_errors(self) -> None:
        """Show what went wrong."""

        def all_errors() -> list[Line]:
            if not self.errors:
                return [line("nothing went wrong", "quiet")]
            lines: list[Line] = []
            for at, error in reversed(self.errors):
                lines += [line(texts.clock(at), "quiet"), *error_lines(error, is_whole=True), ()]
            return lines

        self.push_screen(Panel("Errors", all_errors))

    def do_tasks(self) -> None:
        """Show what is running."""
        self.push_screen(Panel("Tasks", self._task_lines, live=True))

    def _task_lines(self) -> list[Line]:
        tasks = self.task_manager.tasks
        if not tasks:
            return [line("nothing done yet", "quiet")]
        lines: list[Line] = []
        for task in reversed(tasks):
            lines += texts.task_lines(
                task.title,
                task.state,
                () if task.is_over else task.progress(),
                task.outcome,
                started=texts.clock(time.time() - (time.monotonic() - task.started_s)),
                writes=task.writes,
            )
        return lines

    # Colours, copies

    def do_theme(self) -> None:
        """Choose colours; those under the cursor are seen at once."""
        choices = [Choice(theme.name, theme.name) for theme in THEMES]
        before = self.theme

        def take_theme(name: str | None) -> None:
            self.theme = name or before

        self.push_screen(ChoiceScreen("Colours", choices, at=before, tried=take_theme), take_theme)

    def do_copy(self) -> None:
        """Copy the path, or those of what is marked; without one, choose what to copy."""
        now = self.action_context()
        if now.path or now.piece or now.marked:
            self._copy("path", now, "")
        else:
            self.do_copy_as()

    def do_copy_as(self) -> None:
        """Choose what to copy; paths are those of what is marked, where something is."""
        now, at = self.action_context(), self.view.line_to_edit()
        no_text = actions.no_text(now)
        no_path = "" if now.marked else no_text
        line = f"{now.path or now.piece}:{at}" if at else ""
        about = now.path or f"of the chunks of {now.resource}"
        about = f"of {count(now.marked, 'marked row')}" if now.marked else about
        no_line = no_text or ("" if line else "no line is read")
        choices = (
            Choice("path", "path", about, no_path, "p"),
            Choice("absolute", "absolute path", "", no_path, "a"),
            Choice("line", "path:line", line, no_line, "l"),
            Choice("link", "Markdown link", "", no_path, "m"),
            Choice("vector", "vector id", "", no_text, "v"),
            Choice("text", "text", "of the chunk", no_text, "t"),
            Choice("command", "command line", shortened(self._command(now)), "", "c"),
        )
        question = ChoiceScreen("Copy", choices)
        self.push_screen(question, lambda name: self._copy(name or "", now, line))

    def _command(self, now: ActionContext) -> str:
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

    def _copy(self, name: str, now: ActionContext, line: str) -> None:
        if name == "line":
            self.copy_text(line, what="the path with its line")
        elif name == "command":
            self.copy_text(self._command(now), what="the command line")
        elif name in ("path", "absolute", "link"):
            ways: dict[str, Callable[[str], str]] = {
                "path": str,
                "absolute": partial(os.path.join, self.root),
                "link": _markdown_link,
            }
            written = ways[name]
            if now.marked or not now.path:
                self.page_of("browse").copy_marked(written)
            else:
                what = "the link" if name == "link" else "the path"
                self.copy_text(written(now.path), what=what)
        elif name in ("text", "vector"):

            def read(store: InspectedStore) -> str:
                """The text of the chunk, or its vector ids."""
                about = store.about_file(now.path or now.piece)
                ids = " ".join(str(one.id) for one in about.vectors)
                return about.body if name == "text" else ids

            what = "the text" if name == "text" else "the vector id"
            self.task_manager.read(read, partial(self.copy_text, what=what), group="copy")

    def on_text_selected(self) -> None:
        """Copy what the mouse selected, as a terminal does."""
        text = self.screen.get_selected_text()
        if text:
            self.copy_text(text, what=count(len(text), "character"))

    def copy_text(self, text: str, *, what: str) -> None:
        """Copy a text, and show how; no terminal confirms it."""
        if not text:
            self.notify(f"{what}: there is nothing to copy", severity="warning")
            return

        def write(sequence: str) -> None:
            """Write to the terminal."""
            if self._driver is not None:
                self._driver.write(sequence)

        def copy() -> None:
            """Copy in a thread: a program of the desktop may take its time."""
            way = terminal.copy(
                text,
                write=lambda sequence: self.post(partial(write, sequence)),
                environment=self.options.environment,
            )

            def copied() -> None:
                self.notify(f"{what}: {way}")
                if way.startswith("not copied"):
                    self.push_screen(
                        PromptScreen("save to ", hint="a new file"), partial(self._save, text)
                    )

            self.post(copied)

        self.run_worker(copy, thread=True)

    def _save(self, text: str, path: str | None) -> None:
        """Save what could not be copied; never overwrites a file."""
        if not path:
            return
        try:
            with open(
                os.path.expanduser(path), "x", encoding="utf-8", errors="surrogateescape"
            ) as file:
                file.write(text)
        except OSError as error:
            self.notify(f"not saved: {path}: {error.strerror}", severity="error")
        else:
            self.notify(f"saved to {path}")

    # Files and the index

    def do_edit(self) -> None:
        """Open the file under the cursor in the user's editor, then check it again."""
        now = self.action_context()
        self.edit(now.path or now.piece, line=self.view.line_to_edit())

    def open_hit(self, hit: str, *, chunk: bool = False, own: str = "") -> None:
        """Open what `filestore open` opens, at its line; see `ViewContext`."""

        def locate(store: InspectedStore) -> tuple[str, int | None]:
            place = store.locate(hit, chunk=chunk)
            return place.document, place.line

        def open_it(found: tuple[str, int | None]) -> None:
            if found[0] == own:
                self.notify("its original is not known, or may not be looked at")
            else:
                self.edit(found[0], line=found[1] or 0)

        self.task_manager.read(locate, open_it, group="original", urgent=True)

    def edit(self, path: str, *, line: int = 0) -> None:
        """Open a file in the user's editor, or show why not; then check it again."""
        path = self.findings.index.moved_to(path) or path
        now = replace(self.action_context(), path=path)
        refused = actions.refusal(actions.find("everywhere", "edit"), now)
        if not refused and not os.path.lexists(os.path.join(self.root, path)):
            refused = f"{path} is gone: there is nothing to edit"
        command = program_for(path, self.options.environment)
        if refused or command.problem:
            self.notify(refused or command.problem, severity="warning")
            return
        if command.warning:
            self.notify(command.warning, severity="warning")
        self.note(all_quoted(_editing(command.words, path, line)))
        # What was typed while the editor came up was for the editor.
        self.drop_keys()
        problem, program = "", command.words[0]
        with self.suspend():
            try:
                done = run_program(_editing(command.words, os.path.join(self.root, path), line))
            except OSError as error:
                problem = f"{program}: {error.strerror or error}"
            else:
                if done.returncode:
                    problem = f"{program} ended with {done.returncode}"
        self.refresh(repaint=True, layout=True)
        self.take_keys()
        if problem:
            self.notify(problem, severity="error")

        def edited(found: Sequence[Finding]) -> None:
            self.view.store_changed()
            drifted = [one for one in found if one.safe]
            if drifted:
                self.notify(f"{drifted[0].code}: {drifted[0].detail}; i syncs the index")
            elif found:
                self.notify(f"{found[0].code}: {found[0].detail}", severity="warning")
            else:
                self.notify("the file has not changed since it was indexed")

        self.check([path], edited)

    def do_sync(self) -> None:
        """Sync the index; ask first where that would forget the texts of deleted files."""
        gone = [one.path for one in self.findings if one.code == "missing"]
        if not gone:
            # What was deleted since the last look stays known.
            self._take_sync((), "forget")
            return
        choices = [
            Choice("keep", "keep them in the index", "to restore or remove later"),
            Choice("forget", "remove them from it", "their passages are forgotten"),
        ]
        named = f"{count(len(gone), 'file')} deleted: {shown_path(gone[0])}{' …' * (len(gone) > 1)}"
        self.push_screen(ChoiceScreen(named, choices), partial(self._take_sync, gone))

    def _take_sync(self, gone: Sequence[str], choice: str | None) -> None:
        if choice == "forget":
            self._sync("sync", Job(name="sync_but", arguments={"forget": tuple(gone)}))
        elif choice == "keep":
            codes = sorted({one.code for one in self.findings if one.safe} - {"missing"})
            command = f"repair --only {' '.join(codes)}" if codes else ""
            self._sync(command, Job(name="sync_but", arguments={"forget": ()}))

    def _sync(self, command: str, job: Job) -> None:
        if command:
            self.note(f"filestore {self.store_option}{command}")

        def synced(report: "SyncReport") -> None:
            self.notify(texts.sync_summary(report))
            self.look_again()

        self.task_manager.work(
            job,
            Handlers(then=synced, stopped=self.look_again),
            title=command or "sync",
            writes=True,
        )

    def do_quit(self) -> None:
        """Quit; ask first while files are being written."""
        self.leave_for("")

    def leave_for(self, store: str) -> None:
        """Quit for another store, "" for none; ask first while files are being written."""
        self.next_store = store
        task = self.task_manager.busy
        if task is None or not task.writes:
            self.exit(0)
            return
        choices = [
            Choice("stay", "stay", "and let it finish"),
            Choice("stop", "stop it and quit", "what was done stays"),
        ]
        self.push_screen(
            ChoiceScreen(f"{task.title} is running", choices),
            lambda name: self.exit(0) if name == "stop" else None,
        )


# What is copied, and the editor


def _markdown_link(path: str) -> str:
    """A link to a file, from the root of the store, as every reader of Markdown takes it."""
    title = os.path.splitext(os.path.basename(path))[0]
    for sign in "\\[]":
        title = title.replace(sign, f"\\{sign}")
    return f"[{title}]({quote(path, errors='surrogateescape')})"


def _editing(words: tuple[str, ...], path: str, line: int) -> tuple[str, ...]:
    """The editor's command, at a line where it is known how it takes one."""
    return opened_at(words, path, line or None) or (*words, path)
