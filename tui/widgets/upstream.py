"""What this program does otherwise than Textual 8.2, which it is written for, and why.

Keys in the order in which they are typed: each waits until the one before was everywhere.

Screens settle: one size at a time, none too large to draw, and one answer. One rule: of two pending
sizes of a screen the older one is dropped. Textual lays the screen out for each, sends it a resize
again, and so switches between the two for ever. Two are pending where a terminal is resized while a
screen opens, and always where it has no size: then Textual begins with 25 lines and goes on with
24.

The terminal: what it sends, as keys, sizes and the mouse. Textual reads it in a thread that ends at
the first byte that is not UTF-8 and at the first number that is not a character; no key works after
that. What it does not know, such as the late reply to the program before, it types as keys. One
rule: no input ends the thread; input without meaning is dropped.
"""

import contextlib
import os
import re
import selectors
import termios
import time
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from textual import constants
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Event, InputEvent, Key, Paste, Resize, ScreenResume
from textual.geometry import Size
from textual.keys import Keys
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.style import Style as VisualStyle
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import OptionList

# Screens

MOST: Final = Size(2000, 1000)
"""More than any monitor shows; a terminal may claim 65,535 by 65,535, which no memory holds."""


def drawable(size: Size) -> Size:
    """As much of a terminal as is drawn on."""
    return Size(min(max(1, size.width), MOST.width), min(max(1, size.height), MOST.height))


class Delay:
    """A timer of which only the last beginning counts."""

    def __init__(self, owner: MessagePump) -> None:
        self._owner = owner
        self._timer: Timer | None = None

    def begin(self, after_s: float, function: Callable[[], object]) -> None:
        """Call a function after some seconds, and no earlier one that still waits."""
        self.stop()
        self._timer = self._owner.set_timer(after_s, function)

    def stop(self) -> None:
        """Call nothing."""
        if self._timer is not None:
            self._timer.stop()


class Steady:
    """Mixed in before the class of a screen; dismissed once, whatever events still arrive."""

    is_seen_first: ClassVar[bool] = False
    """Whether keys that were pressed before it is seen are not for it."""
    is_left = False
    """Whether it was answered: keys right behind the answer are not for it."""

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


class Options(OptionList):
    """A list whose chosen row is reversed without colours; Textual leaves that style out."""

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> VisualStyle:
        """The style of a row, or another part."""
        style = super().get_visual_style(*component_classes, partial=partial)
        is_chosen = "option-list--option-highlighted" in component_classes
        return style + VisualStyle(reverse=True) if is_chosen and self.app.no_color else style


class MainScreen(Steady, Screen[Any]):
    """The one with the pages. Nothing of it is styled or drawn twice before it is first seen."""

    _was_seen = False

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Keep the styles of the first time: each part got its own when it was made."""
        event.refresh_styles = event.refresh_styles and self._was_seen
        self._was_seen = True

    def _compositor_refresh(self) -> None:
        """Draw nothing while drawing is held back: Textual would draw it, then drop it."""
        if not self.app._batch_count:
            super()._compositor_refresh()


# Keys

AT_ONCE: Final = frozenset({"ctrl+c", "ctrl+q"})
"""Keys that wait for none: they end what hangs."""
_ROUNDS: Final = 2
"""A key goes up from its widget; then so does what the widget, or the action, sent on for it."""
_LOST_S: Final = 0.1
"""How often to check whether the widget that has the key is still there."""


@dataclass
class Followed(Message):
    """Goes the way of a key, right behind it: when it is here, the key has been everywhere."""

    number: int
    """Of the key."""
    rounds: int
    """That are left after this one."""


class KeysInOrder(App[int]):
    """Holds keys back while one is under way, or while the page that they are for is made."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._held: deque[Event] = deque()
        self._number = 0
        """Of the last key that was handed on."""
        self._taken_by: Widget | None = None
        """The widget that has the key under way; None for none."""
        self._awaited: Widget | None = None
        """The page that is being made."""
        self._checking: Timer | None = None
        self.is_seen = True
        """Whether there is something that keys and the mouse can act on."""
        self._keeps_keys = False
        """Whether what is typed until then is for it."""

    def refresh_css(self, animate: bool = True) -> None:
        """Style everything anew; before there is a screen, only take the colours of the theme.

        Textual would parse every style sheet for that, and again for the first screen.
        """
        if self._screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    async def on_event(self, event: Event) -> None:
        """Hold back a key that is new; one that came up to here has been everywhere."""
        is_typed = isinstance(event, Key | Paste)
        is_input = isinstance(event, InputEvent | Paste)
        is_kept = self.is_seen or (is_typed and self._keeps_keys)
        if is_input and not is_kept and not _is_urgent(event):
            return
        if is_typed and not event.is_forwarded and not _is_urgent(event):
            self._held.append(event)
            await self._hand_on()
            if self._held and self._checking is None:
                self._checking = self.set_timer(_LOST_S, self._check)
        else:
            await super().on_event(event)

    def drop_keys(self) -> None:
        """Drop what is typed and clicked until `take_keys`: what it would act on is not seen."""
        self.is_seen = self._keeps_keys = False
        self._held.clear()

    def hold_keys(self) -> None:
        """Hold all that is typed until `take_keys`, in its order: half a word is other keys."""
        self.is_seen, self._keeps_keys = False, True

    def take_keys(self) -> None:
        """Take keys again, once the screen is drawn."""
        self.call_after_refresh(self._now_seen)

    def _now_seen(self) -> None:
        self.is_seen = True
        self.call_later(self._hand_on)
        if self.screen_stack and isinstance(self.screen, Steady):
            self.screen.ask()

    def push_screen(self, screen: Any, *more: Any, **named: Any) -> Any:
        """Lay a screen over this one; see `Steady.is_seen_first`."""
        is_seen_first = isinstance(screen, Steady) and screen.is_seen_first
        if is_seen_first:
            self.drop_keys()
        pushed = super().push_screen(screen, *more, **named)
        if is_seen_first:
            self.take_keys()
        return pushed

    def hold_keys_for(self, page: Widget) -> None:
        """Hold keys back until `let_keys_go`: they are for a page that is not there yet."""
        self._awaited = page

    async def complete(self) -> None:
        """Mount what the screen began without, and a key may need."""

    def let_keys_go(self, page: Widget) -> None:
        """The page is there, and has the focus."""
        if self._awaited is page:
            self._awaited = None
            self.call_later(self._hand_on)

    async def _hand_on(self) -> None:
        # Without a screen the program is ending; what lies over the pages has keys of its own.
        while self._held and self._taken_by is None and self.screen_stack:
            is_making = self._awaited is not None and len(self.screen_stack) == 1
            if is_making or not self.is_seen:
                break
            event = self._held.popleft()
            await self.complete()
            taker = self.focused or self.screen
            await super().on_event(event)
            self._number += 1
            self._follow(taker, _ROUNDS)

    def _follow(self, taker: Widget, rounds: int) -> None:
        """Send a message behind the key, from the widget that has it."""
        is_sent = (
            rounds > 0
            and taker.is_attached
            and taker.post_message(Followed(number=self._number, rounds=rounds - 1))
        )
        self._taken_by = taker if is_sent else None

    async def on_followed(self, message: Followed) -> None:
        """Go on with the next round, or with the next key."""
        if message.number == self._number and self._taken_by is not None:
            self._follow(self._taken_by, message.rounds)
            await self._hand_on()

    async def _check(self) -> None:
        """Go on where the widget went away, and the message with it."""
        self._checking = None
        if self._taken_by is not None and not self._taken_by.is_attached:
            self._taken_by = None
        await self._hand_on()
        if self._held:
            self._checking = self.set_timer(_LOST_S, self._check)


def _is_urgent(event: Event) -> bool:
    return isinstance(event, Key) and event.key in AT_ONCE


# The terminal

_EVERY_S: Final = 0.1
"""How often to check whether an escape was a key by itself, and whether to end."""
_GONE_WITHIN_S: Final = 5.0
"""How long the hang-up thread may take to end the inspector once the terminal is gone."""
_MOST_CELLS: Final = 65_535
"""A terminal has no more columns or rows."""
_REMOTE_ESCAPE_S: Final = 0.3
"""How long the rest of a sequence may take behind its escape, over a network."""
_WHOLE_S: Final = 2.0
"""How long a sequence may take to become whole; then it is dropped, and keys are keys again."""
_ESCAPE: Final = "\x1b"
_BEGINS: Final = "\x1b\x90\x98\x9b-\x9f"
"""What begins a sequence; the last ones are an escape and a letter in one."""
_CONTROL: Final = f"\x00-\x1f\x7f{_BEGINS}"
_NOT_UTF8: Final = re.compile(
    # Behind another that is none it may be of the same letter, but for the end of a string.
    "(?:(?<![\udc80-\udcff])|(?<=[\0-\x7f]\udc9c))([\udc90\udc98\udc9b-\udc9f])|[\udc80-\udcff]"
)
_STRING: Final = rf"(?:\x1b\](?=[0-9lLI])|\x9d|\x1b[PX^_]|[\x90\x98\x9e\x9f])[^{_CONTROL}]*"
_WHOLE: Final = re.compile(
    # A string ends with its terminator, and with whatever else cannot be in it.
    rf"(?P<reply>{_STRING}(?:\x07|\x1b\\|\x9c|(?=[{_CONTROL}])(?!\x1b\Z))|\x1b\\|\x9c)"
    r"|(?P<sequence>(?:\x1b\[|\x9b)(?:"
    r"M[^\x00-\x1f]{3}|M[^\x00-\x1f]{0,2}(?=[\x00-\x1f])"  # the mouse of old
    r"|\[(?:[ -~]|(?=[^ -~]))|\d+\$"  # keys of the Linux console, and of rxvt
    r"|(?![M\[])[ -?]*(?:[@-~]|(?=[^ -~])))"
    r"|\x1bO(?:[ -~]|(?=[^ -~])))"
    rf"|(?P<key>[^{_BEGINS}]+|\x1b(?=[{_BEGINS}])|\x1b[^{_BEGINS}\[O\]PX^_\\]|\x1b\](?=[^0-9lLI]))",
    re.DOTALL,
)
_BEHIND_ESCAPE: Final = re.compile(r"\[[0-?A-Z]|\][0-9lLI]|[PX^_][!-~]|O[ -~]\Z")
"""The rest of a sequence that came so late that its escape was taken for a key."""
_OPENING: Final = frozenset("[]PX^_")
"""By itself behind an escape, a key or the next piece of a sequence."""


class Parser(XTermParser):
    """Drops input without meaning."""

    _types = True
    """Whether single characters are keys, and not what is left of an unknown sequence."""

    def take(self, text: str, *, is_sequence: bool = False) -> "list[Message]":
        """The events of keys, or of one sequence, which is whole: nothing more is awaited."""
        self._types = not is_sequence
        events = list(self.feed(text))
        if self._timeout_time is not None:
            self._timeout_time = 0.0
            events += self.tick()
        return events

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> list[Key]:
        if len(sequence) == 1 and not self._types:
            return []
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

    def __init__(
        self,
        driver: Driver,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._decode = getincrementaldecoder("utf-8")("surrogateescape").decode
        self._parser = Parser(driver._debug)
        self._take: Callable[[Any], None] = driver.process_message
        self._clock = clock
        is_remote = "SSH_CONNECTION" in environment and "ESCDELAY" not in environment
        self._escape_s = _REMOTE_ESCAPE_S if is_remote else constants.ESCAPE_DELAY
        self._rest = ""
        """The beginning of a sequence that is not whole yet."""
        self._until = 0.0
        """When the rest is dropped, and how long an escape waits for one."""
        self._escaped_until = 0.0
        """How long what an escape began may still come behind it."""
        self._opening = ""
        """What came by itself behind that escape, and was taken for a key, too."""
        self._is_pasted = False

    def feed(self, sent: bytes) -> None:
        """Take what was sent; what is not UTF-8 becomes replacement characters."""
        # A byte that is not UTF-8: the beginning of a sequence in eight bits, or no character.
        came = _NOT_UTF8.sub(
            lambda match: chr(ord(match[1]) - 0xDC00) if match[1] else "\ufffd", self._decode(sent)
        )
        if not came:
            return
        now = self._clock()
        # A person types one character at a time, which prolongs nothing.
        opening = self._opening if len(came) > 1 else ""
        is_behind = now < self._escaped_until
        if is_behind and _BEHIND_ESCAPE.match(opening + came):
            came = _ESCAPE + opening + came
        self._opening = came if is_behind and came in _OPENING else ""
        self._escaped_until = self._escaped_until if self._opening else 0.0
        is_new = len(came) > 1 or self._rest in ("", _ESCAPE)
        text, at = self._rest + came, 0
        while whole := _WHOLE.match(text, at):
            at = whole.end()
            sent_text = f"\x1b[{whole[0][1:]}" if whole[0][0] == "\x9b" else whole[0]
            if whole["key"] is None and sent_text in (BRACKETED_PASTE_START, BRACKETED_PASTE_END):
                self._is_pasted = sent_text == BRACKETED_PASTE_START
            elif whole["reply"] is not None or (self._is_pasted and sent_text[0] == _ESCAPE):
                continue
            is_sequence = whole["sequence"] is not None
            for event in self._parser.take(sent_text, is_sequence=is_sequence):
                self._take(event)
        self._rest = text[at:]
        if self._rest == _ESCAPE:
            self._until = now + self._escape_s
        elif self._rest and is_new:
            self._until = now + _WHOLE_S
            if not self._rest.startswith(("\x1b[", "\x9b")):
                # Of a string nothing is needed but that it has begun, and may be about to end.
                self._rest = self._rest[:3] + _ESCAPE * (self._rest[3:].endswith(_ESCAPE))

    def tick(self) -> None:
        """Take an escape for a key, and drop what began, now that nothing followed it."""
        now = self._clock()
        if not self._rest or now < self._until:
            return
        is_escape, self._rest = self._rest.endswith(_ESCAPE), ""
        if is_escape:
            self._escaped_until = now + _WHOLE_S
            # Whose end was lost, a paste would take every key.
            self._is_pasted = False
            for text in (BRACKETED_PASTE_END, _ESCAPE):
                for event in self._parser.take(text, is_sequence=text != _ESCAPE):
                    self._take(event)


class TerminalDriver(LinuxDriver):
    """Reads from a terminal, and gives it back."""

    @property
    def is_lent(self) -> bool:
        """Whether another program has the terminal, such as an editor."""
        return not self._auto_restart

    def resume_application_mode(self) -> None:
        """Take the terminal again; what was typed meanwhile was not for this screen."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        super().resume_application_mode()

    def give_back(self) -> None:
        """Restore the terminal from any thread, where the main one does not come to it."""
        # Textual leaves this out where it cannot handle signals, as in any other thread.
        self._disable_mouse_support()
        self.suspend_application_mode()

    def _run_input_thread(self) -> None:
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
