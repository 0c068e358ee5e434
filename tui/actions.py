"""Every action of the inspector, once: keys, help, command line, and when it is unavailable.

Bindings, footer, help, command log and documentation are made from this table and the
screen's state when a key is pressed. Pure. One rule: an action has a command line that does the
same, or the reason why there is none; a refusal says what to do instead, or which key shows why.
`tests/reference.py` writes KEYS.md of it.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal

from msgspec import Struct

from filestore import CODES
from filestore.browse import useless_error
from tui.formatting import all_quoted, quoted

Place = Literal["everywhere", "lists", "browse", "verify", "repair"]
MOST_PATHS: Final = 20
"""Paths named in a command line: beyond that, no command line is offered."""


class ActionContext(Struct, frozen=True, kw_only=True):
    """The screen's state when a key is pressed."""

    place: Place = "browse"
    path: str = ""
    """Of the file under the cursor, relative to the store root; "" where there is none."""
    piece: str = ""
    """Of a document of several chunks under the cursor: the path of the one that is read."""
    line: int = 0
    """The first one of the section under the cursor; 0 for all of the file."""
    resource: str = ""
    """Under the cursor; of a store in place, a folder."""
    code: str = ""
    """Of the finding under the cursor."""
    query: str = ""
    mode: str = "hybrid"
    kind: str = ""
    """Of the files that the search kept to; "" for all."""
    level: str = "fast"
    """Of the last verification."""
    codes: tuple[str, ...] = ()
    """Of the marked findings; of the one under the cursor where none is marked."""
    paths: tuple[str, ...] = ()
    """Of the marked findings; of the one under the cursor where none is marked."""
    marked: int = 0
    """Rows of Browse that are marked."""
    steps: int = 0
    """Of the plan that are chosen."""
    planned: int = 0
    """Steps of the plan, chosen or not."""
    truth: bool = False
    """Whether the plan may write files."""
    can_undo: str = ""
    """The number of the change that can be undone; "" for none."""
    can_redo: str = ""
    busy: str = ""
    """The long work under way; "" for none."""
    stoppable: str = ""
    """What can be stopped: the work, else a question; "" for nothing."""
    read_only: str = ""
    """Why nothing may be written; "" where it may."""
    no_enrich: str = ""
    """Why nothing can be enriched; "" where it can."""
    is_written: bool = True
    """Whether the files of the store are chunk files, which commands write."""
    store: str = ""
    """What names the store on a command line; "" where the working folder does."""


Words = Callable[[ActionContext], str]


# Command lines, without the program's name


def fixed(words: str) -> Words:
    """A command line without anything from the screen."""
    return lambda _: words


def show(now: ActionContext) -> str:
    """Show the file, or the section, or list the resource."""
    if now.path:
        return f"show {_place(now)}"
    return f"ls {quoted(now.resource)}" if now.resource else "ls"


def about(now: ActionContext) -> str:
    """Tell what the file, the resource, or the store is about."""
    named = now.path or now.resource
    return f"about {quoted(named)}" if named else "about"


def with_resource(words: str) -> Words:
    """A command line for the resource, or for all of them."""
    return lambda now: f"{words} {quoted(now.resource)}" if now.resource else words


def _place(now: ActionContext) -> str:
    path = now.path or now.piece or "PATH"
    return quoted(f"{path}:{now.line}" if now.line else path)


def search(now: ActionContext) -> str:
    """Ask the question."""
    mode = "" if now.mode == "hybrid" else f" --mode {now.mode}"
    mode += f" --kind {now.kind}" if now.kind else ""
    return f"search{mode} {quoted(now.query or 'QUERY')}"


def chosen(now: ActionContext) -> str:
    """The options that name what is marked."""
    only = f" --only {all_quoted(now.codes)}" if now.codes else ""
    paths = f" --path {all_quoted(now.paths)}" if now.paths else ""
    return f"{only}{paths}{' --write-files' if now.truth else ''}"


def plan(now: ActionContext) -> str:
    """Plan the repair of what is marked; "" for too many to name."""
    # What is marked in Browse is known only once it is asked for.
    is_known = len(now.paths) <= MOST_PATHS and not now.marked
    return f"repair --plan{chosen(now)}" if is_known else ""


def apply(now: ActionContext) -> str:
    """Repair what is marked; "" for too many to name."""
    return f"repair --yes{chosen(now)}" if len(now.paths) <= MOST_PATHS else ""


# Why not


def no_file(now: ActionContext) -> str:
    """There is no file under the cursor."""
    return "" if now.path else "no file under the cursor"


def no_text(now: ActionContext) -> str:
    """There is no file under the cursor, and none is read of a document there."""
    return "" if now.piece else no_file(now)


def no_view(now: ActionContext) -> str:
    """There is no text to be looked at, nor a document of which one is being read."""
    return "" if now.resource and now.is_written else no_text(now)


def no_finding(now: ActionContext) -> str:
    """There is no finding to plan for."""
    is_some = now.codes or now.paths or now.marked
    return "" if is_some else "nothing is marked and no finding is under the cursor"


def useless(command: str) -> str:
    """It would write files as this command does, and those of the store are documents."""
    return useless_error(command).in_one_line


def no_conflict(now: ActionContext) -> str:
    """The finding has no two sides, or to take one removes a document in place."""
    if not (now.code and CODES[now.code].sides):
        return "only conflicts and duplicates have two sides: put the cursor on one of them"
    return "" if now.is_written or now.code != "duplicate" else useless("repair")


def no_steps(now: ActionContext) -> str:
    """Nothing is there to be applied."""
    if now.busy or now.steps:
        return busy(now)
    if now.planned:
        return "no step is chosen: space chooses one, a all"
    return "no step is chosen: mark findings in Verify and press p"


def idle(now: ActionContext) -> str:
    """Nothing is running."""
    return "" if now.busy or now.stoppable else "nothing is running"


def no_enrich(now: ActionContext) -> str:
    """Something is running, or nothing can be made."""
    return busy(now) or now.no_enrich


def busy(now: ActionContext) -> str:
    """Something is running."""
    return f"{now.busy} is running: w shows it, x stops it" if now.busy else ""


class Action(Struct, frozen=True):
    """One thing a person can do."""

    place: Place
    name: str
    """Done by the method `do_<name>` of the page it belongs to, or of the app."""
    bound_to: str
    """Its keys, with spaces between."""
    title: str
    """A word or two, for the footer and the help."""
    help: str
    """A sentence without its full stop."""
    same: Words | str
    """The command line that does the same, without the program's name; or why there is none."""
    refusal: Words | None = None
    """Why it cannot be done now; "" where it can."""
    writes: bool = False
    """Whether it changes files or the sidecar: refused in a read-only session."""
    asks: bool = False
    """Whether it asks first, so that only the answer is logged."""
    footer: int = 0
    """The higher, the sooner it is in the footer; 0 is only under `?`."""
    rare: bool = False
    """Whether the footer has it only where it can be done."""

    @property
    def keys(self) -> list[str]:
        """As Textual names them; the first one is shown."""
        return self.bound_to.split()


def refusal(action: Action, now: ActionContext) -> str:
    """Why an action cannot be done now; "" where it can."""
    if action.writes and now.read_only:
        return now.read_only
    return action.refusal(now) if action.refusal is not None else ""


def command_line(action: Action, now: ActionContext) -> str:
    """The command line that does the same as an action; "" where there is none."""
    if isinstance(action.same, str):
        return ""
    words = action.same(now)
    store = f"--store {quoted(now.store)} " if now.store else ""
    return f"filestore {store}{words}" if words else ""


def find(place: Place, name: str) -> Action:
    """The action of a place.

    Raises:
        KeyError: It has none of this name.
    """
    return _BY_NAME[place, name]


def of_place(place: Place) -> list[Action]:
    """The actions that a place has of its own."""
    return [action for action in ACTIONS if action.place == place]


def available(place: Place) -> list[Action]:
    """What can be pressed on a page: its own first, then what is everywhere."""
    return [*of_place(place), *of_place("everywhere")]


def key_label(key: str) -> str:
    """A key as it is printed on it."""
    return _KEY_LABELS.get(key, key.replace("ctrl+", "^"))


_everywhere, _lists = partial(Action, "everywhere"), partial(Action, "lists")
_browse, _verify = partial(Action, "browse"), partial(Action, "verify")
_repair = partial(Action, "repair")
ON_SCREEN: Final = "it changes the screen alone"
"""Why what moves or shows something has no command line."""

# Name, keys, title, help, and the command line that does the same or why there is none.
ACTIONS: Final[tuple[Action, ...]] = (
    # The pages
    _everywhere("browse", "1", "browse", "show documents and chunks",
        fixed("ls")),
    _everywhere("verify", "2", "verify", "show findings", fixed("status")),
    _everywhere("repair", "3", "repair", "show the plan, and what can be undone", plan),
    # Everywhere
    _everywhere("help", "question_mark f1", "help", "show the keys of this page",
        fixed("--help"), footer=100, asks=True),
    _everywhere("palette", "ctrl+p", "palette", "find an action by name", ON_SCREEN),
    _everywhere("prompt", "colon", "command",
        "type a command; a number goes to the file of that vector id",
        "what is typed is a command line itself"),
    _everywhere("edit", "e", "edit",
        "open the file in $VISUAL or $EDITOR, at the line in view; then check it again",
        "your editor is a command of its own; 'filestore sync' indexes what it changed",
        refusal=lambda now: no_text(now) or now.read_only, footer=60),
    _everywhere("sync", "i", "sync",
        "sync the index with the files: every repair that writes no file; asks before it forgets "
        "the text of a deleted one",
        fixed("sync"), refusal=busy, footer=50, writes=True),
    _everywhere("undo", "u z", "undo", "undo the last change of files",
        lambda now: f"undo {now.can_undo}".rstrip(), refusal=busy,
        writes=True),
    _everywhere("redo", "U Z", "redo", "redo the change that was undone",
        lambda now: f"redo {now.can_redo}".rstrip(), refusal=busy,
        writes=True),
    _everywhere("look_again", "ctrl+r f5", "look again",
        "look for drift again, also after the index was rebuilt", fixed("status")),
    _everywhere("tasks", "w", "tasks", "show running and finished tasks", ON_SCREEN),
    _everywhere("stop", "x", "stop",
        "stop the running task, as Ctrl-C stops a command: what was done stays",
        "Ctrl-C, in the terminal where the command runs", refusal=idle),
    _everywhere("log", "at", "log", "show the command lines of everything done", ON_SCREEN),
    _everywhere("errors", "E", "errors", "show errors in full", ON_SCREEN),
    _everywhere("copy", "y", "copy",
        "copy the path; in Browse, the paths of what is marked, or of the document's chunks",
        show, footer=30),
    _everywhere("copy_as", "Y", "copy as",
        "copy path, absolute path, path:line, Markdown link, vector id, text or command line",
        show, asks=True),
    _everywhere("theme", "T", "theme",
        "choose colours: dark, light, for the colour-blind, without colour", ON_SCREEN),
    _everywhere("zoom", "plus", "zoom", "zoom this part to the whole screen, and back", ON_SCREEN),
    _everywhere("next_part", "tab", "next part", "go to the next part of the screen", ON_SCREEN),
    _everywhere("previous_part", "shift+tab", "previous part", "go to the previous part",
        ON_SCREEN),
    _everywhere("back", "escape", "back",
        "leave one level: the marks, the filter, the search, the panel", ON_SCREEN),
    _everywhere("stores", "ctrl+s", "stores", "leave this store for one that was opened before",
        "another store is another command: filestore tui --store DIR"),
    _everywhere("suspend", "ctrl+z", "suspend", "go to the shell; its 'fg' comes back",
        "it only leaves the screen"),
    _everywhere("quit", "q ctrl+q", "quit", "quit; asks first while a task is running",
        "it closes the screen"),
    # Browse
    _browse("open", "l right", "open",
        "open the folder or document, or read the text; enter does the same",
        show, footer=90),
    _browse("close", "h left", "close",
        "close the folder or document, or go up to it", ON_SCREEN),
    _browse("close_all", "minus", "close all",
        "close every document; once more, every folder", ON_SCREEN),
    _browse("open_all", "equals_sign", "open all",
        "open every folder; once more, every document", ON_SCREEN),
    _browse("filter", "slash", "filter",
        "filter by name, title or heading, best first, also by letters in order; !text excludes, ~ "
        "is a regular expression; in the text, find words in it",
        "'filestore ls' prints every name, for any filter of the shell", footer=70),
    _browse("columns", "comma", "columns",
        "choose what the list is sorted by, and its columns", ON_SCREEN, footer=36, asks=True),
    _browse("search", "s", "search",
        "search the whole store; v: by meaning, k: by words, otherwise both", search, footer=80,
        asks=True),
    _browse("mode", "ctrl+t", "mode", "search by meaning, by words, or by both", search,
        asks=True),
    _browse("text", "t", "text", "read the passage; again, all of the document", show),
    _browse("outline", "number_sign", "outline", "choose a heading of the text, and go there",
        ON_SCREEN, footer=44, asks=True),
    _browse("jump_back", "ctrl+o alt+left", "go back", "go back to where the last jump began",
        ON_SCREEN),
    _browse("jump_forward", "ctrl+right_square_bracket alt+right", "go forward",
        "go on to what was come back from", ON_SCREEN),
    _browse("raw", "o", "raw file", "show the whole file as it is on disk",
        lambda now: f"show {_place(now)}", refusal=no_view),
    _browse("original", "O", "original",
        "open the document it was made from, at its line, in the editor or as the desktop does",
        lambda now: f"open {_place(now)}", refusal=no_text, footer=39),
    _browse("facts", "f", "facts",
        "show metadata, links, questions, provenance, vectors and hashes", show, footer=40),
    _browse("neighbours", "b", "neighbours",
        "show the nearest passages with their cosine; enter goes there",
        lambda now: f"similar {_place(now)}", refusal=no_view, footer=45),
    _browse("family", "c", "family",
        "show the summaries above a file and what a summary was made from; enter goes there",
        about, refusal=no_view),
    _browse("map", "m", "map",
        "show the map of the vectors, coloured by folder, and back; arrows go to the next point in "
        "their direction, enter opens it",
        "the map is for the screen; 'filestore serve' has it for programs", footer=35),
    _browse("enrich", "M", "enrich",
        "make questions (offline: keys) and summaries of the document; asks first, with the price",
        with_resource("enrich"), refusal=no_enrich, footer=38, writes=True, asks=True),
    _browse("refresh", "R", "refresh",
        "make again the summaries and questions of it that are out of date; asks first, with the "
        "price",
        with_resource("enrich --refresh"), refusal=no_enrich, footer=37, writes=True, asks=True),
    _browse("move", "r", "move",
        "move the file, and write the links to it and in it so that they lead on; asks first",
        lambda now: f"mv {quoted(now.path or 'PATH')} NEW",
        refusal=lambda now: busy(now) or no_file(now), footer=36, writes=True, asks=True),
    _browse("reindex", "I", "re-index",
        "read the originals of what is marked, or of the document, again, and merge; asks first",
        with_resource("update"), refusal=busy, writes=True, asks=True),
    _browse("export", "X", "export",
        "write what is marked, or the document, in a form of other programs",
        lambda now: f"export FORM TARGET {quoted(now.resource or 'DOCUMENT')}", asks=True),
    _browse("remove", "d delete", "remove",
        "remove the marked documents, or the one under the cursor; asks first; of a person's own "
        "files it copies the command of the shell",
        lambda now: f"rm {quoted(now.resource or 'DOCUMENT')}",
        refusal=busy, writes=True, asks=True),
    _browse("next_chunk", "right_square_bracket", "next chunk",
        "go to the next chunk or passage in reading order", ON_SCREEN, refusal=no_file),
    _browse("previous_chunk", "left_square_bracket", "previous chunk",
        "go to the previous chunk or passage in reading order", ON_SCREEN, refusal=no_file),
    _browse("plan", "p", "plan repair",
        "plan a repair of what is marked, or of this file, document or folder", plan,
        refusal=no_finding),
    # Verify
    _verify("evidence", "l right", "evidence",
        "open the group, or read the evidence; enter does the same", show, footer=90),
    _verify("close_group", "h left", "close", "close the group, or go up to it", ON_SCREEN),
    _verify("verify_fast", "r", "verify", "compare names and stats of everything",
        fixed("verify --level fast"), refusal=busy, footer=75),
    _verify("level", "V", "level", "verify fast, full or deep",
        lambda now: f"verify --level {now.level}", refusal=busy,
        footer=74, asks=True),
    _verify("filter", "slash", "filter",
        "filter findings; !text excludes, ~ is a regular expression",
        "'filestore verify --json' prints every finding, for any filter of the shell", footer=70),
    _verify("severity", "f", "severity", "show errors, warnings or notes only",
        "'filestore verify --json' says the severity of every finding", footer=40),
    _verify("codes", "c", "codes", "choose the code to be shown",
        "'filestore verify --json' says the code of every finding"),
    _verify("sort", "S", "sort", "order by code, path or severity", ON_SCREEN),
    _verify("plan", "p", "plan repair",
        "plan a repair of what is marked, or of the finding under the cursor", plan,
        refusal=no_finding, footer=80),
    _verify("side", "t", "choose a side",
        "show both sides of a conflict or a duplicate, and choose one",
        lambda now: f"repair --ours {quoted(now.path)}" if now.path else "", refusal=no_conflict,
        footer=85, rare=True, asks=True),
    _verify("show_file", "o", "show file", "go to the file in Browse", show, refusal=no_file),
    # Repair
    _repair("open", "l right", "open", "open the group, or read the step; enter does the same",
        ON_SCREEN),
    _repair("close", "h left", "close", "close the group, or go up to it", ON_SCREEN),
    _repair("apply", "A", "apply", "apply the chosen steps, after a confirmation", apply,
        refusal=no_steps, footer=90, writes=True),
    _repair("plan_again", "r", "plan again", "make the plan again, as the store is now", plan,
        refusal=busy, footer=70),
    _repair("plan_all", "p", "plan all", "plan a repair of everything found",
        fixed("repair --plan"), refusal=busy, footer=60),
    _repair("truth", "t", "files", "plan again with, or without, steps that write files",
        lambda now: f"repair --plan --write-files{chosen(now).replace(' --write-files', '')}",
        footer=50),
    _repair("batches", "b", "changes",
        "show the changes that can be undone and redone; then those of programs; then the plan",
        fixed("undo --list"), footer=40),
    # Lists: their widget binds these itself
    _lists("move", "down up j k", "move", "a row down or up", ON_SCREEN),
    _lists("page", "pagedown pageup ctrl+d ctrl+u", "page", "a page, or half of one, down or up",
        ON_SCREEN),
    _lists("ends", "home end g G", "ends", "the first row, the last row", ON_SCREEN),
    _lists("choose", "enter", "enter",
        "open what is under the cursor; in a text, follow the link, or show a letter for each; a "
        "click does the same", show),
    _lists("mark", "space", "mark", "mark the row; in Repair, choose the step", ON_SCREEN),
    _lists("mark_range", "v shift+down shift+up", "range", "mark from here to where you go",
        ON_SCREEN),
    _lists("mark_all", "a", "all", "mark every row that is shown", ON_SCREEN),
    _lists("next_match", "n N", "matches",
        "the next match in the text, or point of the map; the one before", ON_SCREEN),
)  # fmt: skip
"""In the order in which the help shows them."""

_BY_NAME: Final = {(action.place, action.name): action for action in ACTIONS}
_KEY_LABELS: Final = {
    "question_mark": "?", "colon": ":", "at": "@", "comma": ",", "plus": "+", "minus": "-",
    "equals_sign": "=", "slash": "/", "right_square_bracket": "]", "left_square_bracket": "[",
    "number_sign": "#", "ctrl+right_square_bracket": "^]",
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "ctrl+p": "^p",
}  # fmt: skip
