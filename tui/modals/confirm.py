"""The last question before something is written: what, how much, and where it ends.

One rule: what removes a file takes a typed yes; everything else enter or y.
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

from tui.widgets.text import TextPane
from tui.words.lines import Line, one_line

YES: Final = "yes"
MOST_LINES: Final = 12
"""In sight at once; the rest is scrolled to."""
TYPING_S: Final = 0.4
"""How long after a y the rest of the word may come."""
WIDTH: Final = 56
"""Of a line, where the screen is not narrow."""


class ConfirmScreen(ModalScreen[bool]):
    """Says what is about to happen, and gives whether a person wants it."""

    DEFAULT_CSS = """
    ConfirmScreen .question { text-style: bold; height: auto; }
    ConfirmScreen TextPane { margin: 1 0; background: $surface; }
    ConfirmScreen .hint { height: auto; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "leave"),
        Binding("n,q", "answer(False)", show=False),
        Binding("enter", "answer(True)", show=False),
        Binding("y", "letter('y')", show=False),
        Binding("e", "letter('e')", show=False),
        Binding("s", "letter('s')", show=False),
    ]

    def __init__(self, question: str, lines: Sequence[Line], *, removes: int = 0) -> None:
        """Take what is asked.

        Args:
            question: With counts and scope.
            lines: What a person should have seen before.
            removes: How many files go by it.
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
                yield Input(placeholder=f"type {YES} to go on", compact=True)
            yield Static(self._hint(), classes="hint", markup=False)

    def _hint(self) -> str:
        if self._removes:
            files = "a file" if self._removes == 1 else f"{self._removes:,} files"
            return f"{files} will be removed: type {YES} and press enter; esc leaves"
        return "enter or y does it, esc leaves"

    def on_mount(self) -> None:
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
            hint = f"that is no {YES}: type {YES} to go on, or press esc to leave"
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

    def action_answer(self, wanted: bool) -> None:
        """Take the answer of a key; a removal is not confirmed by one."""
        if wanted and self._removes:
            self.query_one(Input).focus()
            return
        if self._typing is not None:
            self._typing.stop()
        if self.is_current:
            self.dismiss(wanted)


def _height(line: Line) -> int:
    """How many lines of the screen a line takes, about."""
    return 1 + sum(len(span.text) for span in line) // WIDTH
