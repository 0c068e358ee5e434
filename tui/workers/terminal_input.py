"""What a terminal sends, as keys, sizes and the mouse.

Textual reads it in a thread that ends at the first byte that is not UTF-8 and at the first number
that is not a character; no key works after that. One rule: no input ends the thread; input without
meaning is dropped.
"""

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.keys import Keys

if TYPE_CHECKING:
    from textual.message import Message

_EVERY_S: Final = 0.1
"""How often to check whether an escape was a key by itself, and whether to end."""
_GONE_WITHIN_S: Final = 5.0
"""How long the hang-up thread may take to end the inspector once the terminal is gone."""
_MOST_CELLS: Final = 65_535
"""A terminal has no more columns or rows."""


class Parser(XTermParser):
    """Drops input without meaning."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> list[Key]:
        try:
            keys = list(super()._sequence_to_key_events(sequence, alt))
        except (ValueError, OverflowError):
            # A number that is no character, or unexpected parts of it.
            return [Key(Keys.Ignore, sequence)]
        # Half of a character, which no file and no terminal takes.
        is_half = any("\ud800" <= (key.character or "") <= "\udfff" for key in keys)
        return [Key(Keys.Ignore, sequence)] if is_half else keys

    def parse_mouse_code(self, code: str) -> "Message | None":
        """The event, or None where it is on no cell of the screen."""
        try:
            event: Any = super().parse_mouse_code(code)
        except (ArithmeticError, ValueError):
            # A screen without a pixel.
            return None
        is_far = event is not None and max(event.screen_x, event.screen_y) > _MOST_CELLS
        return None if is_far else event


class Keyboard:
    """Bytes in, events out."""

    def __init__(self, driver: Driver) -> None:
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._parser = Parser(driver._debug)
        self._take: Callable[[Any], None] = driver.process_message

    def feed(self, sent: bytes) -> None:
        """Take what was sent; what is not UTF-8 becomes replacement characters."""
        text = self._decode(sent)
        # To the parser an empty text is the end.
        for event in self._parser.feed(text) if text else ():
            self._take(event)

    def tick(self) -> None:
        """Process what is complete now that nothing followed it."""
        for event in self._parser.tick():
            self._take(event)


class TerminalDriver(LinuxDriver):
    """Reads from a terminal."""

    def _run_input_thread(self) -> None:
        self.run_input_thread()

    def run_input_thread(self) -> None:
        """Read until it is over."""
        keyboard = Keyboard(self)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_EVERY_S):
                    keyboard.feed(self._read())
                keyboard.tick()

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            # The terminal is gone: the hang-up thread ends the inspector.
            if self.exit_event.wait(_GONE_WITHIN_S):
                return b""
            raise
