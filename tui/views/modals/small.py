"""Shown in place of everything where the terminal is too small."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize, ScreenResume
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.widgets.steady import Steady

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
