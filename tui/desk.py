"""What the frame of the inspector offers its views, and what it asks of them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from textual.binding import Binding
from textual.widget import Widget

from filestore import FilestoreError, Finding
from tui.actions import of_place
from tui.backstage import Backstage
from tui.model.findings import Findings
from tui.situations import Place, Situation


class Desk(Protocol):
    """What a view works at."""

    backstage: Backstage
    """Reads, questions and long work; never on the screen's own thread."""
    findings: Findings
    """Everything found so far, for all views."""
    root: str
    read_only: str
    """Why nothing may be written; "" where it may."""
    in_browser: bool

    @property
    def store_option(self) -> str:
        """What names the store on a command line, with a space behind it; "" where nothing need."""

    def say(self, text: str, *, severity: Literal["information", "warning", "error"] = ...) -> None:
        """Tell the person something in a line or two, for a moment. Made safe here."""

    def fail(self, error: FilestoreError) -> None:
        """Tell what went wrong and what to do; the log keeps it whole."""

    def note(self, command: str) -> None:
        """Put a command line into the log of what was done."""

    def go(self, place: Place) -> None:
        """Show a view."""

    def open_path(self, path: str) -> None:
        """Show a file in Browse, the cursor on it."""

    def plan(self, findings: Sequence[Finding]) -> None:
        """Show in Repair what would mend these findings."""

    def choose_side(self, finding: Finding) -> None:
        """Show both sides of a conflict or of a duplicate, to choose one."""

    def edit(self, path: str) -> None:
        """Open a file in the person's editor, or say why not; then look at it again."""

    def verified(self, found: Sequence[Finding], level: str) -> None:
        """Take what a verification of the whole found, after a repair, as what is known."""

    def look_again(self) -> None:
        """The store may have changed: have its drift found out again, and the views look anew."""

    def findings_changed(self) -> None:
        """Tell every view that the findings are not what they were."""

    def situation_changed(self) -> None:
        """Have the footer drawn again: another row, other marks, another plan."""


def bindings_of(place: Place) -> list[Binding]:
    """The keys of a place, each asking the frame for its action."""
    return [
        Binding(
            ",".join(action.keys), f"app.do('{place}', '{action.name}')", action.title, show=False
        )
        for action in of_place(place)
        if action.keys
    ]


class View(Widget):
    """One of the three pages. Its actions are its methods `do_<name>`."""

    place: ClassVar[Place]

    def __init_subclass__(cls, **named: Any) -> None:
        cls.BINDINGS = [*bindings_of(cls.place), *cls.__dict__.get("BINDINGS", ())]
        super().__init_subclass__(**named)

    def __init__(self, desk: Desk) -> None:
        super().__init__(id=self.place)
        self.desk = desk

    def situation(self) -> Situation:
        """What can be said of this page now; the frame fills in what it knows itself."""
        raise NotImplementedError

    def command(self) -> str | None:
        """The command line of what is shown, where the page knows better than its actions do."""
        return None

    def entered(self) -> None:
        """The page came to be seen: give something the focus, load what was left for then."""

    def store_changed(self) -> None:
        """The store was opened, or its catalog has another generation: read what is shown anew.

        The place is kept: cursor, marks, what is open.
        """

    def findings_changed(self) -> None:
        """The findings are not what they were; cursor and marks stay where they are."""

    def saved(self) -> Mapping[str, Any]:
        """What is to be found again the next time, as JSON values."""
        return {}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take up what `saved` gave some time ago; anything may be missing, or of a wrong type."""
