"""Every action of the inspector, once: keys, words, command line, and when it cannot be done.

Bindings, footer, help, palette, command log and documentation are made from this table. Pure. One
rule: an action has a command line that does the same, or says why there is none.
"""

from dataclasses import dataclass
from typing import Final

from tui import situations as of
from tui.situations import Place, Situation, Words
from tui.words.commands import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing a person can do."""

    name: str
    """Done by the method `do_<name>` of the page it belongs to, or of the app."""
    keys: tuple[str, ...]
    """As Textual names them; the first one is shown. None: only in the palette."""
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
    asks: bool = False
    """Whether it asks first, so that only the answer is logged."""
    footer: int = 0
    """The higher, the sooner it is in the footer; 0 is only under `?`."""


def refusal(action: Action, now: Situation) -> str:
    """Why an action cannot be done now; "" where it can."""
    if action.writes and now.read_only:
        return now.read_only
    return action.refusal(now) if action.refusal is not None else ""


def command_line(action: Action, now: Situation) -> str:
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


_MOVES: Final = "it only moves about on the screen"
_LOOKS: Final = "it only changes what the screen shows"

ACTIONS: Final[tuple[Action, ...]] = (
    # The pages
    Action(
        name="browse", keys=("1",), title="browse", place="everywhere",
        help="show resources and chunks", command=of.said("ls"),
    ),
    Action(
        name="verify", keys=("2",), title="verify", place="everywhere",
        help="show what was found", command=of.said("status"),
    ),
    Action(
        name="repair", keys=("3",), title="repair", place="everywhere",
        help="show the plan, and what can be undone", command=of.plan,
    ),
    # Everywhere
    Action(
        name="help", keys=("question_mark", "f1"), title="help", place="everywhere",
        help="show the keys of this page", command=of.said("--help"), footer=100, asks=True,
    ),
    Action(
        name="palette", keys=("ctrl+p",), title="palette", place="everywhere",
        help="find an action by its words", no_command=_LOOKS,
    ),
    Action(
        name="prompt", keys=("colon",), title="command", place="everywhere",
        help="type a command; a number goes to the file of that vector id",
        no_command="what is typed is a command line itself",
    ),
    Action(
        name="edit", keys=("e",), title="edit", place="everywhere", footer=60,
        help="open the file in $VISUAL or $EDITOR, then look at it again",
        no_command="your editor is a command of its own; 'filestore sync' follows what it changed",
        refusal=of.no_editor,
    ),
    Action(
        name="sync", keys=("i",), title="sync", place="everywhere", footer=50, writes=True,
        help="bring the index in step with the files: every repair that writes no file",
        command=of.said("sync"), refusal=of.busy,
    ),
    Action(
        name="undo", keys=("u", "z"), title="undo", place="everywhere", writes=True,
        help="put back what files held before the last change", command=of.undo,
        refusal=of.nothing_to_undo,
    ),
    Action(
        name="redo", keys=("U", "Z"), title="redo", place="everywhere", writes=True,
        help="make the change again that was undone", command=of.redo,
        refusal=of.nothing_to_redo,
    ),
    Action(
        name="look_again", keys=("ctrl+r", "f5"), title="look again", place="everywhere",
        help="find out the drift anew, also where the index was made again",
        command=of.said("status"),
    ),
    Action(
        name="tasks", keys=("w",), title="tasks", place="everywhere",
        help="show what is under way, and what ended", no_command=_LOOKS,
    ),
    Action(
        name="stop", keys=("x",), title="stop", place="everywhere",
        help="stop what is under way, as Ctrl-C stops a command: what was done stays",
        no_command="Ctrl-C, in the terminal where the command runs", refusal=of.idle,
    ),
    Action(
        name="log", keys=("at",), title="log", place="everywhere",
        help="show the command line of everything that was done", no_command=_LOOKS,
    ),
    Action(
        name="errors", keys=("E",), title="errors", place="everywhere",
        help="show what went wrong, whole", no_command=_LOOKS,
    ),
    Action(
        name="copy", keys=("y",), title="copy", place="everywhere", footer=30,
        help="copy path, vector id, text or command line",
        command=of.show, asks=True,
    ),
    Action(
        name="copy_command", keys=("Y",), title="copy command", place="everywhere",
        help="copy the command line that shows or does what is under the cursor",
        no_command="it copies the command line itself",
    ),
    Action(
        name="theme", keys=("T",), title="theme", place="everywhere",
        help="choose colours: dark, light, for the colour-blind, without colour",
        no_command=_LOOKS,
    ),
    Action(
        name="zoom", keys=("plus",), title="zoom", place="everywhere",
        help="give the whole screen to this part, and back", no_command=_LOOKS,
    ),
    Action(
        name="next_part", keys=("tab",), title="next part", place="everywhere",
        help="go on to the next part of the screen", no_command=_MOVES,
    ),
    Action(
        name="previous_part", keys=("shift+tab",), title="previous part", place="everywhere",
        help="go back to the part before", no_command=_MOVES,
    ),
    Action(
        name="back", keys=("escape",), title="back", place="everywhere",
        help="leave one level: the marks, the filter, the search, the panel",
        no_command=_MOVES,
    ),
    Action(
        name="quit", keys=("q", "ctrl+q"), title="quit", place="everywhere",
        help="end the inspector; it asks where something is under way",
        no_command="it ends the screen",
    ),
    # Browse
    Action(
        name="open", keys=("l", "right"), title="open", place="browse", footer=90,
        help="open the resource, or read the chunk; enter does the same", command=of.show,
    ),
    Action(
        name="close", keys=("h", "left"), title="close", place="browse",
        help="close the resource, or go up to it", no_command=_MOVES,
    ),
    Action(
        name="close_all", keys=("minus",), title="close all", place="browse",
        help="close every resource", no_command=_MOVES,
    ),
    Action(
        name="open_all", keys=("equals_sign",), title="open all", place="browse",
        help="open every resource", no_command=_MOVES,
    ),
    Action(
        name="filter", keys=("slash",), title="filter", place="browse", footer=70,
        help="show only names that contain something; !words the others, ~ a regular expression",
        no_command="'filestore ls' prints every name, for any filter of the shell",
    ),
    Action(
        name="search", keys=("s",), title="search", place="browse", footer=80,
        help="search the whole store; v: by meaning, k: by words, otherwise both",
        command=of.search, asks=True,
    ),
    Action(
        name="mode", keys=("ctrl+t",), title="mode", place="browse",
        help="search by meaning, by words, or by both", command=of.search, asks=True,
    ),
    Action(
        name="text", keys=("t",), title="text", place="browse",
        help="read the chunk", command=of.show, refusal=of.no_file,
    ),
    Action(
        name="raw", keys=("o",), title="raw file", place="browse",
        help="show the whole file as it is on disk", command=of.show, refusal=of.no_file,
    ),
    Action(
        name="facts", keys=("f",), title="facts", place="browse", footer=40,
        help="show metadata, questions, where it came from, its vectors and hashes",
        command=of.show,
    ),
    Action(
        name="neighbours", keys=("b",), title="neighbours", place="browse", footer=45,
        help="show the nearest texts with their cosine; enter goes there",
        no_command="no command asks for the neighbours of a file; 'search' takes words",
        refusal=of.no_file,
    ),
    Action(
        name="picture", keys=("m",), title="map", place="browse", footer=35,
        help="go through the pictures: map of the vectors, sizes, similarity, drift",
        no_command="a picture is for the screen; 'ls --json' and 'status --json' have the numbers",
    ),
    Action(
        name="next_chunk", keys=("right_square_bracket",), title="next chunk", place="browse",
        help="go to the next chunk in reading order", no_command=_MOVES, refusal=of.no_file,
    ),
    Action(
        name="previous_chunk", keys=("left_square_bracket",), title="previous chunk",
        place="browse",
        help="go to the chunk before in reading order", no_command=_MOVES, refusal=of.no_file,
    ),
    Action(
        name="plan", keys=("p",), title="plan repair", place="browse",
        help="show what would mend this file", command=of.plan, refusal=of.no_finding,
    ),
    # Verify
    Action(
        name="evidence", keys=("l", "right"), title="evidence", place="verify", footer=90,
        help="open the group, or read the evidence; enter does the same", command=of.show,
    ),
    Action(
        name="close_group", keys=("h", "left"), title="close", place="verify",
        help="close the group, or go up to it", no_command=_MOVES,
    ),
    Action(
        name="verify_fast", keys=("r",), title="verify", place="verify", footer=75,
        help="compare names and stats of everything", command=of.said("verify --level fast"),
        refusal=of.busy,
    ),
    Action(
        name="level", keys=("V",), title="level", place="verify", footer=74,
        help="verify fast, full or deep", command=of.verify, refusal=of.busy, asks=True,
    ),
    Action(
        name="filter", keys=("slash",), title="filter", place="verify", footer=70,
        help="show only findings that contain something; !words the others, ~ an expression",
        no_command="'filestore verify --json' prints every finding, for any filter of the shell",
    ),
    Action(
        name="severity", keys=("f",), title="severity", place="verify", footer=40,
        help="show errors, warnings or notes only",
        no_command="'filestore verify --json' says the severity of every finding",
    ),
    Action(
        name="codes", keys=("c",), title="codes", place="verify",
        help="choose the code to be shown",
        no_command="'filestore verify --json' says the code of every finding",
    ),
    Action(
        name="sort", keys=("S",), title="sort", place="verify",
        help="order by code, path or severity", no_command=_LOOKS,
    ),
    Action(
        name="plan", keys=("p",), title="plan repair", place="verify", footer=80,
        help="show what would mend what is marked, or what is under the cursor",
        command=of.plan, refusal=of.no_finding,
    ),
    Action(
        name="side", keys=("t",), title="choose a side", place="verify",
        help="show both sides of a conflict or a duplicate, and choose",
        command=lambda now: f"repair --ours {quoted(now.path)}" if now.path else "",
        refusal=of.no_conflict, asks=True,
    ),
    Action(
        name="show_file", keys=("o",), title="show file", place="verify",
        help="go to the file in Browse", command=of.show, refusal=of.no_file,
    ),
    # Repair
    Action(
        name="apply", keys=("A",), title="apply", place="repair", footer=90, writes=True,
        help="apply the chosen steps, after one more question", command=of.apply,
        refusal=of.no_steps,
    ),
    Action(
        name="plan_again", keys=("r",), title="plan again", place="repair", footer=70,
        help="make the plan anew, as the store is now", command=of.plan, refusal=of.busy,
    ),
    Action(
        name="plan_all", keys=("p",), title="plan all", place="repair", footer=60,
        help="show what would mend everything that was found", command=of.said("repair --plan"),
        refusal=of.busy,
    ),
    Action(
        name="truth", keys=("t",), title="files", place="repair", footer=50,
        help="choose, or leave, all steps that write files",
        command=lambda now: f"repair --plan --truth{of.chosen(now).replace(' --truth', '')}",
    ),
    Action(
        name="batches", keys=("b",), title="changes", place="repair", footer=40,
        help="show the changes that can be undone and redone", command=of.said("undo --list"),
    ),
    # Lists: their widget binds these itself
    Action(
        name="move", keys=("down", "up", "j", "k"), title="move", place="lists",
        help="a row down or up", no_command=_MOVES,
    ),
    Action(
        name="page", keys=("pagedown", "pageup", "ctrl+d", "ctrl+u"), title="page",
        place="lists", help="a page, or half of one, down or up", no_command=_MOVES,
    ),
    Action(
        name="ends", keys=("home", "end", "g", "G"), title="ends", place="lists",
        help="the first row, the last row", no_command=_MOVES,
    ),
    Action(
        name="choose", keys=("enter",), title="enter", place="lists",
        help="open what is under the cursor; a double click does the same", command=of.show,
    ),
    Action(
        name="mark", keys=("space",), title="mark", place="lists",
        help="mark the row; in Repair, choose the step", no_command=_LOOKS,
    ),
    Action(
        name="mark_range", keys=("v", "shift+down", "shift+up"), title="range", place="lists",
        help="mark from here to where you go", no_command=_LOOKS,
    ),
    Action(
        name="mark_all", keys=("a",), title="all", place="lists",
        help="mark every row that is shown", no_command=_LOOKS,
    ),
    Action(
        name="next_match", keys=("n", "N"), title="matches", place="lists",
        help="the next match in the text, the one before", no_command=_MOVES,
    ),
)  # fmt: skip
"""In the order in which the help shows them."""

_BY_NAME: Final = {(action.place, action.name): action for action in ACTIONS}
_KEY_LABELS: Final = {
    "question_mark": "?", "colon": ":", "at": "@", "plus": "+", "minus": "-",
    "equals_sign": "=", "slash": "/", "right_square_bracket": "]", "left_square_bracket": "[",
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "ctrl+p": "^p",
}  # fmt: skip
