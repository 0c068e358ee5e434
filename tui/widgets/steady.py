"""Screens that settle: one size at a time, none too large to draw, and one answer.

One rule: of two pending sizes of a screen the older one is dropped. Textual lays the screen out for
each, sends it a resize again, and so switches between the two for ever. Two are pending where a
terminal is resized while a screen opens, and always where it has no size: then Textual begins with
25 lines and goes on with 24.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.events import Event, InputEvent, Key, Paste, Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

MOST: Final = Size(2000, 1000)
"""More than any monitor shows; a terminal may claim 65,535 by 65,535, which no memory holds."""


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


class MainScreen(Steady, Screen[Any]):
    """The one with the pages."""


def drawable(size: Size) -> Size:
    """As much of a terminal as is drawn on."""
    return Size(min(max(1, size.width), MOST.width), min(max(1, size.height), MOST.height))


class Palette(Steady, CommandPalette):
    """One that stays with the size of the terminal, and looks for nothing once it is left."""

    def _gather_commands(self, search_value: str) -> Any:
        return None if self.is_left else super()._gather_commands(search_value)


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

    async def on_event(self, event: Event) -> None:
        """Hold back a key that is new; one that came up to here has been everywhere."""
        is_typed = isinstance(event, Key | Paste)
        is_input = isinstance(event, InputEvent | Paste)
        if is_input and not self.is_seen and not _is_urgent(event):
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
        self.is_seen = False
        self._held.clear()

    def take_keys(self) -> None:
        """Take keys again, once the screen is drawn."""
        self.call_after_refresh(self._now_seen)

    def _now_seen(self) -> None:
        self.is_seen = True
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

    def let_keys_go(self, page: Widget) -> None:
        """The page is there, and has the focus."""
        if self._awaited is page:
            self._awaited = None
            self.call_later(self._hand_on)

    async def _hand_on(self) -> None:
        # Without a screen the program is ending.
        while self._held and self._taken_by is None and self.screen_stack and not self._is_awaiting:
            event, taker = self._held.popleft(), self.focused or self.screen
            await super().on_event(event)
            self._number += 1
            self._follow(taker, _ROUNDS)

    @property
    def _is_awaiting(self) -> bool:
        # What lies over the pages has keys of its own.
        return self._awaited is not None and len(self.screen_stack) == 1

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
