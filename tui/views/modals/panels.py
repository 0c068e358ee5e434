"""Panels over the page: help, the log of commands, errors, tasks. All are lines to read."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.formatting.lines import Line, plain
from tui.widgets.steady import Steady
from tui.widgets.text import TextPane

REFRESH_S = 0.25


class Panel(Steady, ModalScreen[None]):
    """Lines to read, refreshed while they are visible."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "close"),
        Binding("y", "copy", "copy"),
        Binding("x", "app.do('everywhere', 'stop')", "stop", show=False),
    ]

    def __init__(
        self,
        title: str,
        lines: Callable[[], Sequence[Line]],
        *,
        live: bool = False,
        whole: Callable[[], str] | None = None,
    ) -> None:
        """Prepare the panel.

        Args:
            title: Above the lines.
            lines: Makes them; called repeatedly if they are live.
            live: Whether they change while they are shown.
            whole: What is copied where the lines are shortened; None for the lines.
        """
        super().__init__()
        self._title = title
        self._lines = lines
        self._live = live
        self._whole = whole or (lambda: plain(lines()))

    def compose(self) -> ComposeResult:
        """The title, the lines, and how to leave."""
        with Vertical(classes="box wide"):
            yield Static(self._title, classes="panel-title", markup=False)
            yield TextPane()
            yield Static("esc closes, y copies it all", classes="panel-foot", markup=False)

    def begin(self) -> None:
        """Show the lines, and refresh them if they are live."""
        self._show()
        self.query_one(TextPane).focus()
        if self._live:
            self.set_interval(REFRESH_S, self._show)

    def _show(self) -> None:
        self.query_one(TextPane).show(self._lines(), key=self._title)

    def action_copy(self) -> None:
        """Copy all of it."""
        self.app.copy_text(self._whole(), what=self._title)  # type: ignore[attr-defined]
