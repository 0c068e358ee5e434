"""What can be said of the screen when a key is pressed; and from it, command lines and refusals.

Pure. One rule: a refusal says what to do instead, or which key shows why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from tui.words.commands import all_quoted, quoted

Place = Literal["everywhere", "lists", "browse", "verify", "repair"]
MOST_PATHS: Final = 20
"""Paths named in a command line: a longer one nobody reads, and a shorter one would do less."""
CONFLICTS: Final = frozenset({"ingest-conflict", "duplicate", "conflict-markers"})
"""Codes of findings that have two sides to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What can be said of the screen when a key is pressed."""

    place: Place = "browse"
    path: str = ""
    """Of the file under the cursor, relative to the store root; "" where there is none."""
    resource: str = ""
    code: str = ""
    """Of the finding under the cursor."""
    query: str = ""
    mode: str = "hybrid"
    level: str = "fast"
    """How thoroughly was looked the last time."""
    codes: tuple[str, ...] = ()
    """Of the marked findings; of the one under the cursor where none is marked."""
    paths: tuple[str, ...] = ()
    """Of the marked findings; of the one under the cursor where none is marked."""
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
    in_browser: bool = False
    store: str = ""
    """What names the store on a command line; "" where the working folder does."""


Words = Callable[[Situation], str]


# Words of command lines


def said(words: str) -> Words:
    """Always the same words."""
    return lambda _: words


def show(now: Situation) -> str:
    """Show the file, or list the resource."""
    if now.path:
        return f"show {quoted(now.path)}"
    return f"ls {quoted(now.resource)}" if now.resource else "ls"


def search(now: Situation) -> str:
    """Ask the question."""
    mode = "" if now.mode == "hybrid" else f" --mode {now.mode}"
    return f"search{mode} {quoted(now.query or 'QUERY')}"


def chosen(now: Situation) -> str:
    """The options that name what is marked."""
    only = f" --only {all_quoted(now.codes)}" if now.codes else ""
    paths = f" --path {all_quoted(now.paths)}" if now.paths else ""
    return f"{only}{paths}{' --truth' if now.truth else ''}"


def plan(now: Situation) -> str:
    """Plan the repair of what is marked; "" where that are too many to name."""
    return f"repair --plan{chosen(now)}" if len(now.paths) <= MOST_PATHS else ""


def apply(now: Situation) -> str:
    """Repair what is marked; "" where that are too many to name."""
    return f"repair --yes{chosen(now)}" if len(now.paths) <= MOST_PATHS else ""


def verify(now: Situation) -> str:
    """Verify as thoroughly as the last time."""
    return f"verify --level {now.level}"


def undo(now: Situation) -> str:
    """Undo the change that is next."""
    return f"undo {now.can_undo}".rstrip()


def redo(now: Situation) -> str:
    """Make the change again that is next."""
    return f"redo {now.can_redo}".rstrip()


# Why not


def no_file(now: Situation) -> str:
    """There is no file under the cursor."""
    return "" if now.path else "there is no file under the cursor"


def no_editor(now: Situation) -> str:
    """No editor can be opened on the file."""
    if now.in_browser:
        return "in a browser there is no terminal for an editor: edit the file where the store is"
    return no_file(now) or now.read_only


def no_finding(now: Situation) -> str:
    """There is no finding to plan for."""
    return "" if now.codes else "nothing is marked, and there is no finding under the cursor"


def no_conflict(now: Situation) -> str:
    """The finding has no two sides."""
    if now.code in CONFLICTS:
        return ""
    return "only conflicts and duplicates have two sides: put the cursor on one of them"


def no_steps(now: Situation) -> str:
    """Nothing is there to be applied."""
    if now.busy:
        return f"{now.busy} is under way: w shows it, x stops it"
    if now.steps:
        return ""
    if now.planned:
        return "no step is chosen: space chooses one, a all"
    return "no step is chosen: mark findings in Verify and press p"


def idle(now: Situation) -> str:
    """Nothing is under way."""
    return "" if now.busy or now.stoppable else "nothing is under way"


def busy(now: Situation) -> str:
    """Something is under way."""
    return f"{now.busy} is under way: w shows it, x stops it" if now.busy else ""


def nothing_to_undo(now: Situation) -> str:
    """Nothing can be undone now."""
    return busy(now) or ("" if now.can_undo else "no change is kept that could be undone")


def nothing_to_redo(now: Situation) -> str:
    """Nothing can be done again now."""
    return busy(now) or ("" if now.can_redo else "nothing was undone that could be done again")
