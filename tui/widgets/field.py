"""Input fields whose text is always safe for a terminal."""

from textual.events import Key
from textual.widget import Widget
from textual.widgets import Input

from tui.formatting.lines import one_line


class Field(Input):
    """An input whose value is one line that is safe for a terminal, whatever is put in it."""

    def validate_value(self, value: str) -> str:
        """The value, made safe."""
        return one_line(value)


class Entry(Field):
    """A field that loses the focus with enter: keys typed ahead go to another widget."""

    def __init__(self, *, then: Widget, placeholder: str, id: str) -> None:
        """Nothing is typed yet.

        Args:
            then: What gets the focus after enter.
            placeholder: Shown while nothing is typed.
            id: Of the widget.
        """
        super().__init__(placeholder=placeholder, id=id)
        self._then = then

    @property
    def is_typing(self) -> bool:
        """Whether it has the focus."""
        return self.is_attached and self.screen.focused is self

    async def _on_key(self, event: Key) -> None:
        if not self.is_typing:
            # The key was on its way when enter moved the focus.
            self._take(event)
            self.app.post_message(Key(event.key, event.character))
        elif event.key == "enter":
            self._take(event)
            await self.action_submit()
            self.screen.set_focus(self._then)

    @staticmethod
    def _take(event: Key) -> None:
        event.stop()
        event.prevent_default()
