"""Every action of the inspector, once: keys, help, command line, and when it is unavailable.

Bindings, footer, help, palette, command log and documentation are made from this table. Pure. One
rule: an action has a command line that does the same, or the reason why there is none.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from tui.actions import context as of
from tui.actions.context import ActionContext, Place, Words
from tui.formatting.lines import quoted


class Action(Struct, frozen=True, kw_only=True):
    """One thing a person can do."""

    name: str
    """Done by the method `do_<name>` of the page it belongs to, or of the app."""
    keys: tuple[str, ...]
    """As Textual names them; the first one is shown."""
    title: str
    """A word or two, for the footer and the palette."""
    help: str
    """A sentence without its full stop."""
    place: Place
    command: Words | None = None
    """The command line that does the same, without the program's name."""
    no_command: str = ""
    """Why there is none."""
    refusal: Words | None = None
    """Why it cannot be done now; "" where it can."""
    writes: bool = False
    """Whether it changes files or the sidecar: refused in a read-only session."""
    not_in_place: str = ""
    """The command whose refusal says why this is not done where documents are indexed in place, as
    it is about writing files of the store; "" where it is done."""
    asks: bool = False
    """Whether it asks first, so that only the answer is logged."""
    footer: int = 0
    """The higher, the sooner it is in the footer; 0 is only under `?`."""


def refusal(action: Action, now: ActionContext) -> str:
    """Why an action cannot be done now; "" where it can."""
    if action.writes and now.read_only:
        return now.read_only
    if action.not_in_place and now.in_place:
        return of.documents_in_place(action.not_in_place)
    return action.refusal(now) if action.refusal is not None else ""


def command_line(action: Action, now: ActionContext) -> str:
    """The command line that does the same as an action; "" where there is none."""
    if action.command is None:
        return ""
    words = action.command(now)
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


def _actions_of(place: Place) -> Callable[..., Action]:
    """What makes the actions of a place."""

    def action(
        name: str, keys: str, title: str, help: str, same: Words | str, **more: Any
    ) -> Action:
        return Action(
            place=place,
            name=name,
            keys=tuple(keys.split()),
            title=title,
            help=help,
            command=None if isinstance(same, str) else same,
            no_command=same if isinstance(same, str) else "",
            **more,
        )

    return action


_everywhere, _lists = _actions_of("everywhere"), _actions_of("lists")
_browse, _verify, _repair = _actions_of("browse"), _actions_of("verify"), _actions_of("repair")
_MOVES: Final = "it only moves on the screen"
_LOOKS: Final = "it only changes what the screen shows"

# Name, keys, title, help, and the command line that does the same or why there is none.
ACTIONS: Final[tuple[Action, ...]] = (
    # The pages
    _everywhere("browse", "1", "browse", "show resources and chunks, or documents",
        of.fixed("ls")),
    _everywhere("verify", "2", "verify", "show findings", of.fixed("status")),
    _everywhere("repair", "3", "repair", "show the plan, and what can be undone", of.plan),
    # Everywhere
    _everywhere("help", "question_mark f1", "help", "show the keys of this page",
        of.fixed("--help"), footer=100, asks=True),
    _everywhere("palette", "ctrl+p", "palette", "find an action by name", _LOOKS),
    _everywhere("prompt", "colon", "command",
        "type a command; a number goes to the file of that vector id",
        "what is typed is a command line itself"),
    _everywhere("edit", "e", "edit",
        "open the file in $VISUAL or $EDITOR, at the line that is meant; then look at it again",
        "your editor is a command of its own; 'filestore sync' indexes what it changed",
        refusal=of.no_editor, footer=60),
    _everywhere("sync", "i", "sync",
        "sync the index with the files: every repair that writes no file; asks before it forgets "
        "the text of a deleted one",
        of.fixed("sync"), refusal=of.busy, footer=50, writes=True),
    _everywhere("undo", "u z", "undo", "undo the last change of files",
        lambda now: f"undo {now.can_undo}".rstrip(), refusal=of.busy,
        writes=True, not_in_place="undo"),
    _everywhere("redo", "U Z", "redo", "redo the change that was undone",
        lambda now: f"redo {now.can_redo}".rstrip(), refusal=of.busy,
        writes=True, not_in_place="undo"),
    _everywhere("look_again", "ctrl+r f5", "look again",
        "look for drift again, also after the index was rebuilt", of.fixed("status")),
    _everywhere("tasks", "w", "tasks", "show running and finished tasks", _LOOKS),
    _everywhere("stop", "x", "stop",
        "stop the running task, as Ctrl-C stops a command: what was done stays",
        "Ctrl-C, in the terminal where the command runs", refusal=of.idle),
    _everywhere("log", "at", "log", "show the command lines of everything done", _LOOKS),
    _everywhere("errors", "E", "errors", "show errors in full", _LOOKS),
    _everywhere("copy", "y", "copy",
        "copy path, vector id, text or command line; in Browse, the paths of what is marked",
        of.show,
        footer=30, asks=True),
    _everywhere("copy_command", "Y", "copy command",
        "copy the command line that shows or does what is under the cursor",
        "it copies the command line itself"),
    _everywhere("theme", "T", "theme",
        "choose colours: dark, light, for the colour-blind, without colour", _LOOKS),
    _everywhere("zoom", "plus", "zoom", "zoom this part to the whole screen, and back", _LOOKS),
    _everywhere("next_part", "tab", "next part", "go to the next part of the screen", _MOVES),
    _everywhere("previous_part", "shift+tab", "previous part", "go to the previous part", _MOVES),
    _everywhere("back", "escape", "back",
        "leave one level: the marks, the filter, the search, the panel", _MOVES),
    _everywhere("quit", "q ctrl+q", "quit", "quit; asks first while a task is running",
        "it closes the screen"),
    # Browse
    _browse("open", "l right", "open",
        "open the resource, folder or document, or read the text; enter does the same",
        of.show, footer=90),
    _browse("close", "h left", "close",
        "close the resource, folder or document, or go up to it", _MOVES),
    _browse("close_all", "minus", "close all",
        "close every resource or document; once more, every folder", _MOVES),
    _browse("open_all", "equals_sign", "open all",
        "open every resource or folder; once more, every document", _MOVES),
    _browse("filter", "slash", "filter",
        "filter by name, title or heading; !text excludes, ~ is a regular expression",
        "'filestore ls' prints every name, for any filter of the shell", footer=70),
    _browse("search", "s", "search",
        "search the whole store; v: by meaning, k: by words, otherwise both", of.search, footer=80,
        asks=True),
    _browse("mode", "ctrl+t", "mode", "search by meaning, by words, or by both", of.search,
        asks=True),
    _browse("text", "t", "text", "read the chunk, or the section", of.show, refusal=of.no_file),
    _browse("raw", "o", "raw file", "show the whole file as it is on disk", of.show,
        refusal=of.no_file),
    _browse("facts", "f", "facts",
        "show metadata, links, questions, provenance, vectors and hashes", of.show, footer=40),
    _browse("neighbours", "b", "neighbours",
        "show the nearest texts with their cosine; enter goes there",
        of.similar, refusal=of.no_file, footer=45),
    _browse("family", "c", "tree",
        "show the summaries above a file and what a summary was made from; enter goes there",
        of.about, refusal=of.no_file),
    _browse("summaries", "S", "summaries",
        "browse the tree of summaries in place of the files, and back",
        of.about, footer=42),
    _browse("map", "m", "map",
        "show the map of the vectors, coloured by folder, and back; arrows go to the next text in "
        "their direction, enter opens it",
        "the map is for the screen; 'filestore serve' has it for programs", footer=35),
    _browse("enrich", "M", "enrich",
        "make questions (offline: keys) and summaries of the resource; asks first, with the price",
        of.enrich, refusal=of.no_enrich, footer=38, writes=True, asks=True),
    _browse("refresh", "R", "refresh",
        "make again the summaries and questions of it that are out of date; asks first, with the "
        "price",
        of.refresh, refusal=of.no_enrich, footer=37, writes=True, asks=True),
    _browse("next_chunk", "right_square_bracket", "next chunk",
        "go to the next chunk or section in reading order", _MOVES, refusal=of.no_file),
    _browse("previous_chunk", "left_square_bracket", "previous chunk",
        "go to the previous chunk or section in reading order", _MOVES, refusal=of.no_file),
    _browse("plan", "p", "plan repair", "plan a repair of what is marked, or of this file", of.plan,
        refusal=of.no_finding),
    # Verify
    _verify("evidence", "l right", "evidence",
        "open the group, or read the evidence; enter does the same", of.show, footer=90),
    _verify("close_group", "h left", "close", "close the group, or go up to it", _MOVES),
    _verify("verify_fast", "r", "verify", "compare names and stats of everything",
        of.fixed("verify --level fast"), refusal=of.busy, footer=75),
    _verify("level", "V", "level", "verify fast, full or deep",
        lambda now: f"verify --level {now.level}", refusal=of.busy,
        footer=74, asks=True),
    _verify("filter", "slash", "filter",
        "filter findings; !text excludes, ~ is a regular expression",
        "'filestore verify --json' prints every finding, for any filter of the shell", footer=70),
    _verify("severity", "f", "severity", "show errors, warnings or notes only",
        "'filestore verify --json' says the severity of every finding", footer=40),
    _verify("codes", "c", "codes", "choose the code to be shown",
        "'filestore verify --json' says the code of every finding"),
    _verify("sort", "S", "sort", "order by code, path or severity", _LOOKS),
    _verify("plan", "p", "plan repair",
        "plan a repair of what is marked, or of the finding under the cursor", of.plan,
        refusal=of.no_finding, footer=80),
    _verify("side", "t", "choose a side",
        "show both sides of a conflict or a duplicate, and choose one",
        lambda now: f"repair --ours {quoted(now.path)}" if now.path else "", refusal=of.no_conflict,
        not_in_place="repair", asks=True),
    _verify("show_file", "o", "show file", "go to the file in Browse", of.show, refusal=of.no_file),
    # Repair
    _repair("open", "l right", "open", "open the group, or read the step; enter does the same",
        _LOOKS),
    _repair("close", "h left", "close", "close the group, or go up to it", _MOVES),
    _repair("apply", "A", "apply", "apply the chosen steps, after a confirmation", of.apply,
        refusal=of.no_steps, footer=90, writes=True),
    _repair("plan_again", "r", "plan again", "make the plan again, as the store is now", of.plan,
        refusal=of.busy, footer=70),
    _repair("plan_all", "p", "plan all", "plan a repair of everything found",
        of.fixed("repair --plan"), refusal=of.busy, footer=60),
    _repair("truth", "t", "files", "plan again with, or without, steps that write files",
        lambda now: f"repair --plan --write-files{of.chosen(now).replace(' --write-files', '')}",
        not_in_place="repair", footer=50),
    _repair("batches", "b", "changes", "show the changes that can be undone and redone",
        of.fixed("undo --list"), footer=40, not_in_place="undo"),
    # Lists: their widget binds these itself
    _lists("move", "down up j k", "move", "a row down or up", _MOVES),
    _lists("page", "pagedown pageup ctrl+d ctrl+u", "page", "a page, or half of one, down or up",
        _MOVES),
    _lists("ends", "home end g G", "ends", "the first row, the last row", _MOVES),
    _lists("choose", "enter", "enter",
        "open what is under the cursor; a double click does the same", of.show),
    _lists("mark", "space", "mark", "mark the row; in Repair, choose the step", _LOOKS),
    _lists("mark_range", "v shift+down shift+up", "range", "mark from here to where you go",
        _LOOKS),
    _lists("mark_all", "a", "all", "mark every row that is shown", _LOOKS),
    _lists("next_match", "n N", "matches", "the next match in the text, the one before", _MOVES),
)  # fmt: skip
"""In the order in which the help shows them."""

_BY_NAME: Final = {(action.place, action.name): action for action in ACTIONS}
_KEY_LABELS: Final = {
    "question_mark": "?", "colon": ":", "at": "@", "plus": "+", "minus": "-",
    "equals_sign": "=", "slash": "/", "right_square_bracket": "]", "left_square_bracket": "[",
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "ctrl+p": "^p",
}  # fmt: skip
