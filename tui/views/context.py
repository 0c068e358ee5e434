"""What the frame of the inspector offers its views, and what it asks of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol

from msgspec import Struct
from textual.binding import Binding
from textual.message import Message
from textual.widget import Widget

from filestore import FilestoreError, Finding
from filestore.browse import InspectorOptions
from tui.actions import Action, ActionContext, Place, of_place
from tui.formatting import Line
from tui.state.findings import Findings
from tui.workers.task_manager import TaskManager

Severity = Literal["information", "warning", "error"]


class ViewContext(Protocol):
    """The frame, as far as a view uses it."""

    root: str
    """The folder of the store."""
    task_manager: TaskManager
    """Reads, questions and long work; never on the screen's own thread."""
    findings: Findings
    """Everything found so far, for all views."""
    read_only: str
    """Why nothing may be written; "" where it may."""
    own: InspectorOptions
    """What the user's settings say of the inspector."""

    @property
    def store_option(self) -> str:
        """What names the store on a command line, with a space behind it; "" where nothing need."""

    def keys_of(self, action: Action) -> Sequence[str]:
        """The keys of an action: the user's, else its own."""

    def notify(self, message: str, *, severity: Severity = ...) -> None:
        """Show a notification of a line or two; made safe here."""

    def fail(self, error: FilestoreError) -> None:
        """Show an error and its remedy; `E` shows it in full."""

    def copy_text(self, text: str, *, what: str) -> None:
        """Copy a text, and show how."""

    def note(self, command: str) -> None:
        """Put a command line into the log of what was done."""

    def run_command(self, words: Sequence[str], about: Sequence[Line] = ()) -> None:
        """Run a command of the program, once it is confirmed; `about` is for one without a plan."""

    def go(self, place: Place) -> None:
        """Show a view."""

    def open_path(self, path: str) -> None:
        """Show a file in Browse, the cursor on it."""

    def plan(self, findings: Sequence[Finding]) -> None:
        """Plan a repair of these in Repair findings."""

    def choose_side(self, finding: Finding) -> None:
        """Show both sides of a conflict or of a duplicate, to choose one."""

    def open_hit(self, hit: str, *, chunk: bool = False, own: str = "") -> None:
        """Open the original of what a search found; `own` is a file that has to have one."""

    def edit(self, path: str, *, line: int = 0) -> None:
        """Open a file in the user's editor, at a line; or show why not; then check it again."""

    def verified(self, found: Sequence[Finding], level: str, not_checked: tuple[str, ...]) -> None:
        """Take what a verification after a repair found, and what it left out."""

    def look_again(self) -> None:
        """The store may have changed: check it again, and update the views."""

    def findings_changed(self) -> None:
        """Notify every view that the findings changed."""

    def context_changed(self) -> None:
        """Draw the footer again: another row, other marks, another plan."""


def bindings_of(place: Place) -> list[Binding]:
    """The keys of a place, each asking the frame for its action."""
    return [
        Binding(
            ",".join(action.keys),
            f"app.do('{place}', '{action.name}')",
            action.title,
            show=False,
            id=f"{place}.{action.name}",
        )
        for action in of_place(place)
    ]


_NO_MARKS: Final = Binding("space,v,a,shift+up,shift+down", "no_marks", show=False)
"""A list with rows to mark takes these keys before."""
_NO_MATCH: Final = Binding("n,N", "no_match", show=False)
"""A page that goes through matches takes these keys before, while it has some."""


@dataclass
class Jumped(Message):
    """A person goes to a file that a page, or a part of it, names."""

    path: str
    line: int = 0
    """Of a document in place: to the section with this line; 0 for all of it."""


class Target(Struct, frozen=True, kw_only=True):
    """What to show: a file by path or by its id in the catalog, or a resource."""

    path: str = ""
    file: int = 0
    resource: str | None = None
    line: int = 0
    """Of a document in place: the section with this line is shown; 0 for the whole document."""
    text: str = ""
    """The same where there are no lines, or one has many sections: the one with this text."""
    top: int = 0
    """The line of the file to begin with."""
    heading: str = ""
    """The heading to begin with."""


class Visit(Struct, frozen=True):
    """What was shown, and where, to come back to."""

    target: Target
    section: str
    """The way to look."""
    at: tuple[int, int]
    """The line and the character in sight first."""


class View(Widget):
    """One of the three pages. Its actions are its methods `do_<name>`."""

    place: ClassVar[Place]

    def __init_subclass__(cls, **named: Any) -> None:
        # A page written as two classes has its keys in the first: those of the second hide them.
        if "place" in cls.__dict__:
            own = cls.__dict__.get("BINDINGS", ())
            cls.BINDINGS = [*bindings_of(cls.place), *own, _NO_MARKS, _NO_MATCH]
        super().__init_subclass__(**named)

    def __init__(self, host: ViewContext) -> None:
        super().__init__(id=self.place)
        self.host = host

    def action_context(self) -> ActionContext:
        """This page's state now; the frame fills in what it knows itself."""
        raise NotImplementedError

    @property
    def is_complete(self) -> bool:
        """Whether it has its unseen parts, too."""
        return True

    async def complete(self) -> None:
        """Mount the parts that are not seen at first."""

    def line_to_edit(self) -> int:
        """The line of the file under the cursor to edit, from 1; 0 for none."""
        return 0

    def command(self) -> str | None:
        """The command line of what is shown, where the page knows better than its actions do."""
        return None

    def action_no_marks(self) -> None:
        """Say what the keys of marks are for, where the part with the focus takes none."""
        self.host.notify("only rows of the list on the left are marked: go there with esc")

    def action_no_match(self) -> None:
        """Say what is gone through, where there is none of it."""
        self.host.notify("no match in this text: n and N go through those of a search or filter")

    @property
    def parts(self) -> Sequence[Widget]:
        """The list of the page, and the text next to it; they take turns where there is no room."""
        raise NotImplementedError

    @property
    def is_reading(self) -> bool:
        """Whether the text has the focus."""
        return self.parts[-1].has_focus

    def show_part(self, *, is_reading: bool) -> None:
        """Give the text the focus, or the list."""
        self.set_class(is_reading, "-reading")
        # At once: the next key may be here already.
        self.screen.set_focus(self.parts[-1 if is_reading else 0])

    def action_other_part(self) -> None:
        """Go to the text next to the list, or back."""
        self.show_part(is_reading=not self.is_reading)

    def entered(self) -> None:
        """The page is shown: take the focus, load what was left for now."""

    def store_changed(self) -> None:
        """The catalog has another generation: read what is shown again, keep cursor and marks."""

    def findings_changed(self) -> None:
        """The findings changed; cursor and marks stay where they are."""

    def saved(self) -> Mapping[str, Any]:
        """What the next session restores, as JSON values."""
        return {}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore what `saved` gave once; anything may be missing, or of a wrong type."""


_NAMED: Final = re.compile(r"\blines? (\d{1,9})\b")


def line_named(detail: str) -> int:
    """The first line that the words of a finding name; 0 for none."""
    named = _NAMED.search(detail)
    return int(named.group(1)) if named is not None else 0
