"""What is laid over the page to be read: panels, too small a terminal, and why no store opens."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize, ScreenResume
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

from filestore import FilestoreError
from tui.formatting.frame import start_lines
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


LEAST: Final = Size(60, 16)


class SmallScreen(Steady, ModalScreen[None]):
    """Shows the size needed, and closes once the terminal has it; keys do nothing meanwhile."""

    DEFAULT_CSS = """
    SmallScreen { align: center middle; background: $background; overflow: hidden; }
    SmallScreen Static { width: auto; max-width: 100%; text-align: center; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c,ctrl+q", "app.do('everywhere', 'quit')", show=False, priority=True)
    ]

    def __init__(self) -> None:
        super().__init__()
        # Held here: a size may come as the inspector ends, which then makes no more widgets.
        self._shown = Static(markup=False)

    def compose(self) -> ComposeResult:
        """How much room there is, and how much is needed."""
        self._shown.update(self._words())
        yield self._shown

    def _words(self) -> str:
        now, least = self.app.size, LEAST
        return (
            f"{now.width} by {now.height} is too small\n"
            f"{least.width} by {least.height} is needed\nq quits"
        )

    def on_resize(self, _: Resize) -> None:
        """Update it, or close."""
        self._check_size()

    def on_screen_resume(self, _: ScreenResume) -> None:
        """Close if the terminal grew while another screen lay over this one."""
        self._check_size()

    def _check_size(self) -> None:
        if is_too_small(self.app.size):
            self._shown.update(self._words())
        elif self.app.screen is self:
            size = self.app.size
            self.dismiss(None)
            # Screens below another one got no resize.
            for screen in self.app.screen_stack:
                screen.post_message(Resize(size, size))


def is_too_small(size: Size) -> bool:
    """Whether the pages have no room."""
    return size.width < LEAST.width or size.height < LEAST.height


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
