"""Screens that settle: one size at a time, none too large to draw, and one answer.

One rule: of two pending sizes of a screen the older one is dropped. Textual lays the screen out for
each, sends it a resize again, and so switches between the two for ever. Two are pending where a
terminal is resized while a screen opens, and always where it has no size: then Textual begins with
25 lines and goes on with 24.
"""

from typing import Any, ClassVar, Final

from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen

MOST: Final = Size(2000, 1000)
"""More than any monitor shows; a terminal may claim 65,535 by 65,535, which no memory holds."""


class Steady:
    """Mixed in before the class of a screen; dismissed once, whatever events still arrive."""

    is_seen_first: ClassVar[bool] = False
    """Whether keys that were pressed before it is seen are not meant for it."""
    is_left = False
    """Whether it was answered: keys right behind the answer are not meant for it."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Dismiss it with a result, unless that was done or another screen lies over it."""
        assert isinstance(self, Screen)
        # For Textual, a screen that is visible below a question is current, too.
        if self.is_left or self.app.screen is not self:
            return AwaitComplete()
        self.is_left = True
        return Screen.dismiss(self, result)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Do nothing once it is dismissed, or the inspector ends."""
        assert isinstance(self, Screen)
        is_over = self.is_left or not self.is_attached
        return False if is_over else Screen.check_action(self, action, parameters)

    def on_mount(self) -> None:
        """Begin, unless it or the inspector ends just now.

        From then on Textual makes no more widgets, whichever were made before.
        """
        assert isinstance(self, Screen)
        if self.is_attached and self.app.is_running and not self.is_left:
            self.begin()

    def begin(self) -> None:
        """Show what there is to show; its widgets are there."""

    def ask(self) -> None:
        """Say which keys answer: from now on they are taken, where it has to be seen first."""

    def on_resize(self, event: Resize) -> None:
        """Drop a size that the terminal does not have any more."""
        assert isinstance(self, Screen)
        if event.size != self.app.size:
            event.stop()
            event.prevent_default()


class MainScreen(Steady, Screen[Any]):
    """The one with the pages."""


def drawable(size: Size) -> Size:
    """As much of a terminal as is drawn on."""
    return Size(min(max(1, size.width), MOST.width), min(max(1, size.height), MOST.height))


class Palette(Steady, CommandPalette):
    """One that stays with the size of the terminal, and looks for nothing once it is left."""

    def _gather_commands(self, search_value: str) -> Any:
        return None if self.is_left else super()._gather_commands(search_value)
