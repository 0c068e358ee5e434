"""The command line of the screen: what is typed is done by a page, or run as the program runs it.

One rule: what may change something is run only after a person saw what it does and pressed y.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct, field

from filestore import FilestoreError
from filestore.browse import NOTHING, did_you_mean
from tui.app.menus import Menus
from tui.formatting import Line, all_quoted, line, shortened
from tui.formatting import reports as texts
from tui.views.dialogs import ConfirmScreen, Panel, PromptScreen
from tui.workers.tasks import Handlers, Job, Task


class Typed(Struct, frozen=True, kw_only=True):
    """A command that was typed."""

    name: str
    """The command, where a page does it; "vector" for a number, "path" for a file, "run" for what
    the program does, "" for nothing."""
    words: tuple[str, ...] = ()
    """What follows, without options; all words of what the program does."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Options, without dashes, each with the words behind it."""
    problem: str = ""
    """Why it cannot be used; "" where it can."""

    def values(self, option: str) -> tuple[str, ...]:
        """The words behind an option; none where it is not there."""
        return self.options.get(option, ())


MANY: Final = frozenset({"only", "path", "ours", "theirs", "remove"})
"""Options of `repair` that take words until the next option."""
OPTIONS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(
        ("sync", "search", "show", "ls", "status", "help", "stores", "quit"), frozenset[str]()
    ),
    **dict.fromkeys(("undo", "redo"), frozenset({"list"})),
    "open": frozenset({"chunk"}),
    "verify": frozenset({"level"}),
    "repair": frozenset({"write-files", "plan", "yes", *MANY}),
}
"""What pages do, and the options that they take; with others, the program does it."""
ENDLESS: Final = frozenset({"mcp", "serve", "tui", "watch"})
"""Commands that run until they are stopped, and keep a terminal for that."""
ONLY_LOOK: Final = frozenset(
    [
        "about", "add", "backend list", "backend show", "changes", "compare", "convert", "demo",
        "duplicates", "embedder compare", "embedder list", "embeddings export", "embeddings info",
        "evaluate", "export", "git status", "init", "links", "log", "ls", "reconstruct", "search",
        "show", "similar", "status", "token list", "verify",
    ]
)  # fmt: skip
"""Commands that change nothing that is in the store: they run at once."""
PLANS: Final = ("--plan", "--list")
"""Options with which a command only shows what it would do."""
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+").fullmatch
_SHORT: Final = {"q": "quit", "wq": "quit", "h": "help"}


def parse(text: str) -> Typed:
    """A line that was typed as a command, with or without the program's name in front."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        first, _, query = text.strip().removeprefix("filestore ").partition(" ")
        if first == "search":
            # Words of a language have apostrophes.
            return Typed(name="search", words=(query.strip(),))
        return Typed(name="run", problem=str(error).lower())
    if words[:1] == ["filestore"]:
        words = words[1:]
    if not words:
        return Typed(name="")
    first, rest = _SHORT.get(words[0], words[0]), words[1:]
    if first.isdecimal() and first.isascii() and not rest:
        return Typed(name="vector", words=(first,))
    if first in OPTIONS:
        return _command(first, rest)
    if not rest and "/" in first:
        return Typed(name="path", words=(first,))
    return Typed(name="run", words=(first, *rest))


def _command(name: str, rest: list[str]) -> Typed:
    if name == "search":
        # A query may well begin with a dash.
        return Typed(name=name, words=(" ".join(rest),) if rest else ())
    words: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
    last = ""
    for word in rest:
        if word.startswith("--"):
            last, _, value = word[2:].partition("=")
            last = "write-files" if last == "truth" else last
            options[last] = (*options.get(last, ()), *([value] if value else ()))
        elif last in MANY or last == "level":
            options[last] = (*options[last], word)
        else:
            words.append(word)
    if not OPTIONS[name].issuperset(options):
        return Typed(name="run", words=(name, *rest))
    words += options.get("level", ())
    return Typed(name=name, words=tuple(words), options=options)


def completed(text: str, options: Mapping[str, Sequence[str]], root: str) -> str | None:
    """A line whose last word is completed: a command, an action or option of one, or a path."""
    before, space, last = text.rpartition(" ")
    words = before.removeprefix("filestore").split()
    found: list[str] = sorted({*options, *OPTIONS}) if not words else []
    if words:
        actions = [name.partition(" ")[2] for name in options if name.startswith(f"{words[0]} ")]
        found = [*actions, *options.get(_name(words, options), ())]
    matching = (one for one in found if last and one.startswith(last) and " " not in one)
    word = next(matching, "") or (_path(root, last) if words and _PLAIN(last) else "")
    return f"{before}{space}{word}" if word else None


def _path(root: str, begun: str) -> str:
    """The first path that begins with this and is typed without quotes; "" for none."""
    from glob import glob

    path = min(filter(_PLAIN, glob(f"{begun}*", root_dir=root)), default="")
    return path + "/" * (path != "" and os.path.isdir(os.path.join(root, path)))


def _name(words: Sequence[str], options: Mapping[str, Sequence[str]]) -> str:
    """The command, or action of a command, that words begin with; "" for none."""
    names = (" ".join(words[:2]), words[0])
    return next((name for name in names if name in options), "")


class Commands(Menus):
    """Menus with a command line."""

    prompts: list[str]
    """Command lines that were typed, oldest first."""
    _known: Mapping[str, Sequence[str]]
    """The options of every command, once they were asked for."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.prompts, self._known = [], {}

    def do_prompt(self) -> None:
        """Type a command."""
        self._with_options(lambda _: None)
        prompt = PromptScreen(
            ":",
            hint="a command, a vector id, a path",
            earlier=self.prompts,
            complete=lambda text: completed(text, self._known, self.root),
        )
        self.push_screen(prompt, self._typed)

    def _with_options(self, then: Callable[[Mapping[str, Sequence[str]]], None]) -> None:
        """Call a function with the options of every command."""
        if self._known:
            then(self._known)
            return

        def take(found: Mapping[str, Sequence[str]]) -> None:
            self._known = found
            then(found)

        self.task_manager.ask(Job(name="options"), Handlers(then=take), group="")

    def _typed(self, text: str | None) -> None:
        """Do what was typed on the command line."""
        if not text or not text.strip():
            return
        self.prompts = [*(one for one in self.prompts if one != text), text]
        typed = parse(text)
        if typed.problem:
            self.notify(typed.problem, severity="warning")
            return
        first = typed.words[0] if typed.words else ""
        doing: dict[str, Callable[[], None]] = {
            "vector": lambda: self._open_vector(int(first)),
            "path": lambda: self.open_named(first),
            "show": lambda: self.open_named(first) if first else self.go("browse"),
            "ls": lambda: self.go("browse"),
            # An editor takes the terminal, which the panel of a command cannot give.
            "open": lambda: self.open_hit(" ".join(typed.words), chunk="chunk" in typed.options),
            "search": lambda: self.on_page("browse", lambda view: view.search_for(first)),
            "status": lambda: self.action_do("everywhere", "look_again"),
            "verify": lambda: self.on_page("verify", lambda view: view.verify(first or "fast")),
            "sync": lambda: self.action_do("everywhere", "sync"),
            "repair": lambda: self._repair(typed),
            "undo": lambda: self._undo_or_redo(typed),
            "redo": lambda: self._undo_or_redo(typed),
            "help": self.do_help,
            "stores": lambda: self.action_do("everywhere", "stores"),
            "quit": self.do_quit,
            "run": lambda: self.run_command(typed.words),
            "": lambda: None,
        }
        doing[typed.name]()

    def open_named(self, text: str) -> None:
        """Show what a person named: a file, an original, or the section with a line."""
        self.task_manager.read(
            lambda store: store.named(text),
            lambda found: self.on_page("browse", lambda view: view.open_path(*found)),
            group="named",
            # What is not indexed may be there all the same, or Browse says that it is not.
            failed=lambda _: self.open_path(text),
            urgent=True,
        )

    def _open_vector(self, vector: int) -> None:
        def take(path: str | None) -> None:
            if path is None:
                self.notify(f"no file has the vector {vector}", severity="warning")
            else:
                self.open_named(path)

        self.task_manager.read(
            lambda store: store.listing.path_of_vector(vector), take, group="vector"
        )

    def _repair(self, typed: Typed) -> None:
        options = ("path", "paths"), ("ours", "ours"), ("theirs", "theirs"), ("remove", "remove")
        named = {argument: typed.values(option) for option, argument in options}
        self.task_manager.read(
            lambda store: store.policy(
                truth="write-files" in typed.options, only=typed.values("only"), **named
            ),
            lambda policy: self.on_page("repair", lambda view: view.plan_for(None, policy)),
            group="policy",
        )

    def _undo_or_redo(self, typed: Typed) -> None:
        if "list" in typed.options:
            self.on_page("repair", lambda view: view.show_changes())
        elif typed.words:
            self.run_command((typed.name, *typed.words))
        else:
            self.action_do("everywhere", typed.name)

    # Commands of the program

    def run_command(self, words: Sequence[str], about: Sequence[Line] = ()) -> None:
        """Run a command of the program; what may change something asks first, with its plan.

        Args:
            words: Without the program's name.
            about: What it does, where it has no plan.
        """
        self._with_options(partial(self._run_known, words, about))

    def _run_known(
        self, words: Sequence[str], about: Sequence[Line], options: Mapping[str, Sequence[str]]
    ) -> None:
        name = _name(words, options)
        if not name:
            hint = did_you_mean(words[0], [*options, *OPTIONS]) or "; ? shows the keys"
            self.notify(f"no command is called {words[0]}{hint}", severity="warning")
        elif words[0] in ENDLESS and "--help" not in words:
            what = f"{words[0]} runs until it is stopped, in a terminal of its own; its command"
            self.copy_text(self._line_of(words), what=what)
        elif name in ONLY_LOOK or not {*PLANS, "--help", "-h"}.isdisjoint(words):
            self._run(words, is_writing=name in ("add", "init"))
        elif self.read_only:
            self.notify(self.read_only, severity="warning")
        else:
            words = [word for word in words if word != "--yes"]
            plan = next((one for one in PLANS if one in options[name]), "")
            yes = "--yes" if "--yes" in options[name] else ""
            place = len(name.split())

            def with_option(option: str) -> list[str]:
                # Not at the end: behind -- it would be a name.
                return [*words[:place], *filter(None, [option]), *words[place:]]

            def confirm(lines: Sequence[Line], option: str = yes) -> None:
                self.push_screen(
                    ConfirmScreen(shortened(self._line_of(words)), lines),
                    lambda wanted: begin(with_option(option)) if wanted else None,
                )

            def begin(words: list[str]) -> None:
                self._run(words, is_writing=True, refused=partial(confirm, option=yes))

            if plan:
                self._run(with_option(plan), planned=confirm)
            else:
                # It asks itself where it has to, with what it would take.
                confirm(about or [line("it may change the store")], "")

    def _line_of(self, words: Sequence[str]) -> str:
        return f"filestore {self.store_option}{all_quoted(words)}"

    def _run(
        self,
        words: Sequence[str],
        *,
        is_writing: bool = False,
        planned: Callable[[Sequence[Line]], None] | None = None,
        refused: Callable[[Sequence[Line]], None] | None = None,
    ) -> None:
        """Run a command in a child process, and show what it prints.

        Args:
            words: Without the program's name.
            is_writing: Whether it may change the store.
            planned: Called with what it printed instead of showing that, where it ended well.
            refused: The same where it refused for want of --yes.
        """
        title = self._line_of(words)
        if planned is None:
            self.note(title)

        def ended(code: int) -> None:
            if code:
                task.outcome = f"exit code {code}"
            lines = texts.printed_lines(task.printed)
            if is_writing:
                self.look_again()
            if planned is not None and list(task.printed)[:1] == [NOTHING]:
                self.notify(NOTHING)
            elif planned is not None and code in (0, 1):
                planned(lines)
            elif refused is not None and code and any("add --yes" in one for one in task.printed):
                if panel.is_current:
                    panel.dismiss()
                refused(lines[:1])
            elif planned is not None:
                self.push_screen(panel)

        def failed(error: FilestoreError) -> None:
            self.fail(error)
            self.look_again()

        task: Task = self.task_manager.work(
            Job(name="run", arguments={"words": tuple(words)}),
            Handlers(then=ended, failed=failed, stopped=self.look_again),
            title=shortened(all_quoted(words)),
            writes=is_writing,
        )
        panel = Panel(
            shortened(title),
            lambda: texts.run_lines(task.printed, task.progress(), task.outcome),
            live=True,
            whole=lambda: "\n".join(task.printed),
        )
        if planned is None:
            self.push_screen(panel)
