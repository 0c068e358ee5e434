"""Keys in the order in which they are typed: each waits until the one before was everywhere."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from textual.app import App
from textual.events import Event, InputEvent, Key, Paste
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from tui.views.dialogs import Steady

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
            event, taker = self._held.popleft(), self.focused or self.screen
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
