"""A few things to choose from, or one to confirm, laid over the page."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.formatting.lines import one_line
from tui.widgets.steady import Steady
from tui.widgets.styles import PlainBar


class Choice(Struct, frozen=True, kw_only=True):
    """One thing that can be chosen."""

    name: str
    title: str
    about: str = ""
    why_not: str = ""
    """Why it cannot be chosen; "" where it can."""


class ChoiceScreen(Steady, ModalScreen[str | None]):
    """Choices under a question; gives the name of the chosen one, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "leave"),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(self, question: str, choices: Sequence[Choice], *, at: str = "") -> None:
        super().__init__()
        self._question = question
        self._choices = choices
        self._at = at

    def compose(self) -> ComposeResult:
        """The question, and what can be chosen."""
        with Vertical(classes="box"):
            yield Static(Text(one_line(self._question), style="bold"))
            yield OptionList(*(self._option(choice) for choice in self._choices))
            yield Static(Text("enter chooses, esc cancels", style="dim"))

    @staticmethod
    def _option(choice: Choice) -> Option:
        text = Text(one_line(choice.title), style="bold")
        for more in (choice.about, choice.why_not):
            if more:
                text.append(f"  {one_line(more)}", style="dim not bold")
        return Option(text, id=choice.name, disabled=bool(choice.why_not))

    def begin(self) -> None:
        """Begin on the choice that holds now."""
        options = self.query_one(OptionList)
        names = [choice.name for choice in self._choices]
        first = next((n for n, one in enumerate(self._choices) if not one.why_not), None)
        options.highlighted = names.index(self._at) if self._at in names else first
        if getattr(self.app, "ascii", False):
            options.vertical_scrollbar.renderer = PlainBar  # type: ignore[misc] # as documented
        options.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_down(self) -> None:
        """Go to the next one."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """Go to the one before."""
        self.query_one(OptionList).action_cursor_up()
