"""One line to type on, at the bottom of the screen: the command line, a file name."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from tui.widgets.steady import Steady
from tui.widgets.text import Field


class PromptScreen(Steady, ModalScreen[str | None]):
    """Gives what was typed, or None. Up and down go through what was typed before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave"),
        Binding("up", "earlier(-1)", "earlier", show=False),
        Binding("down", "earlier(1)", "later", show=False),
    ]

    def __init__(
        self,
        sign: str,
        *,
        hint: str = "",
        earlier: Sequence[str] = (),
        completions: Sequence[str] = (),
        value: str = "",
    ) -> None:
        super().__init__()
        self._sign = sign
        self._earlier = [*earlier, value]
        self._at = len(self._earlier) - 1
        # Held here: a key may come as the inspector ends, which then makes no more widgets.
        self._line = Field(
            value,
            placeholder=hint,
            suggester=SuggestFromList([*self._earlier, *completions]),
            compact=True,
            # Selected, what was typed ahead would be replaced by the next letter.
            select_on_focus=False,
        )

    def compose(self) -> ComposeResult:
        """The sign, and the line."""
        with Vertical(id="prompt"):
            yield Static(self._sign, markup=False, id="prompt-sign")
            yield self._line

    def begin(self) -> None:
        """Begin to type."""
        self._line.focus()

    def on_key(self, event: Key) -> None:
        """Take what is typed before the line has the focus."""
        line = self._line
        if line.has_focus:
            return
        if event.key == "enter":
            event.stop()
            self._give(line.value)
        elif event.character is not None and event.is_printable:
            event.stop()
            line.insert_text_at_cursor(event.character)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        self._give(event.value)

    def _give(self, text: str) -> None:
        # A key may still arrive while the line goes away.
        if self.is_current:
            self.dismiss(text)

    def action_earlier(self, step: int) -> None:
        """Take up a line that was typed before, or a later one."""
        self._at = min(max(self._at + step, 0), len(self._earlier) - 1)
        self._line.value = self._earlier[self._at]
        self._line.cursor_position = len(self._line.value)
