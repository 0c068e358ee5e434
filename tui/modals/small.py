"""What stands in place of everything where the screen is too small for it."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize, ScreenResume
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

LEAST: Final = Size(60, 16)


class SmallScreen(ModalScreen[None]):
    """Says how much room is needed, and goes away once it is there; keys do nothing meanwhile."""

    DEFAULT_CSS = """
    SmallScreen { align: center middle; background: $background; }
    SmallScreen Static { width: auto; max-width: 100%; text-align: center; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "app.do('everywhere', 'quit')", show=False, priority=True)
    ]

    def compose(self) -> ComposeResult:
        """How much room there is, and how much is needed."""
        yield Static(self._words(), markup=False)

    def _words(self) -> str:
        now, least = self.app.size, LEAST
        return (
            f"{now.width} by {now.height} is too small\n"
            f"{least.width} by {least.height} is needed\nq quits"
        )

    def on_resize(self, _: Resize) -> None:
        """Say it anew, or go."""
        self._mind_size()

    def on_screen_resume(self, _: ScreenResume) -> None:
        """Go where something lay over this while the room came back."""
        self._mind_size()

    def _mind_size(self) -> None:
        if is_too_small(self.app.size):
            self.query_one(Static).update(self._words())
        elif self.is_current:
            size = self.app.size
            self.dismiss(None)
            # Screens that lay below another one were not told.
            for screen in self.app.screen_stack:
                screen.post_message(Resize(size, size))


def is_too_small(size: Size) -> bool:
    """Whether the pages have no room."""
    return size.width < LEAST.width or size.height < LEAST.height
