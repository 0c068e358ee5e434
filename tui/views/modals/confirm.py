"""The last question before something is written: what, and how much.

One rule: what removes a file takes a typed yes, everything else a y. Enter alone cancels: whoever
presses it out of habit, or twice, writes nothing.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Input, Static

from tui.formatting.lines import Line, one_line
from tui.widgets.steady import Steady
from tui.widgets.text import TextPane

YES: Final = "yes"
MOST_LINES: Final = 12
"""In sight at once; the rest is scrolled to."""
TYPING_S: Final = 0.4
"""How long after a y the rest of the word may come."""
WIDTH: Final = 56
"""Of a line, where the screen is not narrow."""


class ConfirmScreen(Steady, ModalScreen[bool]):
    """Shows what is about to happen; its result is whether the user confirmed."""

    is_seen_first = True
    DEFAULT_CSS = """
    ConfirmScreen .question { text-style: bold; height: auto; }
    ConfirmScreen TextPane { margin: 1 0; background: $surface; }
    ConfirmScreen .hint { height: auto; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "leave"),
        Binding("n,q", "answer(False)", show=False),
        Binding("enter", "enter", show=False),
        Binding("y", "letter('y')", show=False),
        Binding("e", "letter('e')", show=False),
        Binding("s", "letter('s')", show=False),
    ]

    def __init__(self, question: str, lines: Sequence[Line], *, removes: int = 0) -> None:
        """Prepare the question.

        Args:
            question: With counts and scope.
            lines: The details.
            removes: How many files are removed.
        """
        super().__init__()
        self._question = question
        self._lines = lines
        self._removes = removes
        self._letters = ""
        self._typing: Timer | None = None

    def compose(self) -> ComposeResult:
        """The question, what it means, and how to answer."""
        with Vertical(classes="box"):
            yield Static(one_line(self._question), classes="question", markup=False)
            yield TextPane()
            if self._removes:
                yield Input(placeholder=f"type {YES} to continue", compact=True)
            hint = "y confirms; enter or esc cancels"
            if self._removes:
                files = "a file" if self._removes == 1 else f"{self._removes:,} files"
                hint = f"{files} will be removed: type {YES} and press enter; esc cancels"
            yield Static(hint, classes="hint", markup=False)

    def begin(self) -> None:
        """Show what it means; begin where the answer is given."""
        pane = self.query_one(TextPane)
        pane.styles.height = min(sum(map(_height, self._lines)) or 1, MOST_LINES)
        pane.show(self._lines)
        (self.query_one(Input) if self._removes else pane).focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        if event.value.strip().lower() == YES:
            self.dismiss(True)
        else:
            hint = f"type {YES} to continue, or press esc to cancel"
            self.query_one(".hint", Static).update(hint)

    def action_letter(self, letter: str) -> None:
        """Take a y, or the whole word: its other letters must not reach the page as keys."""
        if self._removes:
            self.query_one(Input).focus()
        elif YES.startswith(self._letters + letter):
            self._letters += letter
            if self._typing is not None:
                self._typing.stop()
            self._typing = self.set_timer(TYPING_S, lambda: self.action_answer(True))

    def action_enter(self) -> None:
        """Cancel, unless y was typed before; where yes is to be typed, go there."""
        if self._removes:
            self.query_one(Input).focus()
        else:
            self.action_answer(bool(self._letters))

    def action_answer(self, wanted: bool) -> None:
        """Take the answer of a key; a removal is not confirmed by one."""
        if self._typing is not None:
            self._typing.stop()
        if self.is_current:
            self.dismiss(wanted)
            if not wanted:
                self.notify("cancelled: nothing was written")


def _height(line: Line) -> int:
    """How many lines of the screen a line takes, about."""
    return 1 + sum(len(span.text) for span in line) // WIDTH
