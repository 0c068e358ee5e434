"""The screen where no store can be opened: why, and the ways on."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from filestore import FilestoreError
from tui.formatting.frame import start_lines
from tui.widgets.steady import Steady
from tui.widgets.text import TextPane


class StartScreen(Steady, ModalScreen[str]):
    """Returns what to do: "make", "example", "retry" or "quit"."""

    is_seen_first = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "way('make')", "make a store"),
        Binding("x", "way('example')", "open the example"),
        Binding("r", "way('retry')", "try again"),
        Binding("q,escape,ctrl+q", "way('quit')", "quit"),
    ]

    def __init__(self, error: FilestoreError, *, absent: bool) -> None:
        super().__init__()
        self.error = error
        self._absent = absent
        # Held here: a key may end the screen before it has its parts.
        self._pane = TextPane()

    def compose(self) -> ComposeResult:
        """The error, its remedy, and the keys."""
        with Vertical(classes="box wide", id="start"):
            yield self._pane

    def begin(self) -> None:
        """Show what is wrong."""
        self._pane.show(start_lines(self.error, absent=self._absent), key="start")
        self._pane.focus()

    def action_way(self, way: str) -> None:
        """Take a way on; a store is only made where there is none."""
        if self._absent or way in ("retry", "quit"):
            self.dismiss(way)
