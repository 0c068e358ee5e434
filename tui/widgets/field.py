"""Lines to type on, in which nothing that was pasted, or found again, steers the terminal."""

from textual.events import Key
from textual.widget import Widget
from textual.widgets import Input

from tui.words.lines import one_line


class Field(Input):
    """An input whose value is one line that is safe for a terminal, whatever is put in it."""

    def validate_value(self, value: str) -> str:
        """The value as it may be shown."""
        return one_line(value)


class Entry(Field):
    """A field that enter ends: the keys behind it, however soon they come, go to something else."""

    def __init__(self, *, then: Widget, placeholder: str, id: str) -> None:
        """Nothing is typed yet.

        Args:
            then: What has the keys after enter.
            placeholder: What is seen while nothing is typed.
            id: Of the widget.
        """
        super().__init__(placeholder=placeholder, id=id)
        self._then = then

    @property
    def is_typing(self) -> bool:
        """Whether keys come here."""
        return self.is_attached and self.screen.focused is self

    async def _on_key(self, event: Key) -> None:
        if not self.is_typing:
            # It was on its way here when enter came.
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
