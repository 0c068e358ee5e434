"""A line to type on, in which nothing that was pasted, or found again, steers the terminal."""

from textual.widgets import Input

from tui.words.lines import one_line


class Field(Input):
    """An input whose value is one line that is safe for a terminal, whatever is put in it."""

    def validate_value(self, value: str) -> str:
        """The value as it may be shown."""
        return one_line(value)
