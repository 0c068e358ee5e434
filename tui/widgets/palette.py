"""The palette of actions, as Textual has it."""

from typing import Any

from textual.command import CommandPalette

from tui.widgets.steady import Steady


class Palette(Steady, CommandPalette):
    """One that stays with the size of the terminal, and looks for nothing once it is left."""

    def _gather_commands(self, search_value: str) -> Any:
        return None if self.is_left else super()._gather_commands(search_value)
