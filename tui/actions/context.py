"""The screen's state when a key is pressed; and from it, command lines and refusals.

Pure. One rule: a refusal says what to do instead, or which key shows why.
"""

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from filestore import CODES
from filestore.browse import in_place_error
from tui.formatting.lines import all_quoted, quoted

Place = Literal["everywhere", "lists", "browse", "verify", "repair"]
MOST_PATHS: Final = 20
"""Paths named in a command line: beyond that, no command line is offered."""


class ActionContext(Struct, frozen=True, kw_only=True):
    """The screen's state when a key is pressed."""

    place: Place = "browse"
    path: str = ""
    """Of the file under the cursor, relative to the store root; "" where there is none."""
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
    in_place: bool = False
    """Whether the documents of the store are its files, which nothing writes."""
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


def enrich(now: ActionContext) -> str:
    """Enrich the resource, or all of them."""
    return f"enrich {quoted(now.resource)}" if now.resource else "enrich"


def refresh(now: ActionContext) -> str:
    """Make again what is out of date of the resource, or of all of them."""
    return f"enrich --refresh {quoted(now.resource)}" if now.resource else "enrich --refresh"


def similar(now: ActionContext) -> str:
    """Ask for what is similar to the file, or to the section."""
    return f"similar {_place(now)}"


def _place(now: ActionContext) -> str:
    return quoted(f"{now.path or 'PATH'}:{now.line}" if now.line else now.path or "PATH")


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


def no_editor(now: ActionContext) -> str:
    """No editor can be opened on the file."""
    return no_file(now) or now.read_only


def no_finding(now: ActionContext) -> str:
    """There is no finding to plan for."""
    return "" if now.codes or now.marked else "nothing is marked and no finding is under the cursor"


def documents_in_place(command: str) -> str:
    """It would write files as this command does, and those of the store are documents."""
    error = in_place_error(command)
    return f"{error.message}: {error.remedy}"


def no_conflict(now: ActionContext) -> str:
    """The finding has no two sides."""
    if now.code and CODES[now.code].sides:
        return ""
    return "only conflicts and duplicates have two sides: put the cursor on one of them"


def no_steps(now: ActionContext) -> str:
    """Nothing is there to be applied."""
    if now.busy:
        return f"{now.busy} is running: w shows it, x stops it"
    if now.steps:
        return ""
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
