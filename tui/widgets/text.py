"""Text to read, wrapped, scrolled and searched, drawn a line at a time; fields to type text in.

A long text is wrapped a slice at a time, so that its first screen is there at once. One rule: the
place is a character of the text, not a row of the screen, so that a resize keeps it.
"""

import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.events import Click, Key
from textual.geometry import Region, Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from tui.formatting import Line, Span, one_line
from tui.widgets.drawing import PLAIN, TAB, Drawn, Wrapping, cells, hanging
from tui.widgets.upstream import Delay

_SHORT: Final = 2
"""Letters of a word that is marked only as a whole where longer ones are sought."""
_JOINERS: Final = re.compile("[\u200c\u200d\u00ad]")
_SLICE: Final = 100
"""Rows that are wrapped between two looks at the clock."""
_WORK_S: Final = 0.005
"""How long text is wrapped at once; some scripts take twenty times as long."""
_PAUSE_S: Final = 0.01
"""Between slices, for keys."""

_LETTERS: Final = "asdfjklghqwertyuiopzxcvbnmASDFJKLGHQWERTYUIOPZXCVBNM"

Match = tuple[int, int, int]
"""The line it is in, its first character and the one after its last."""
LeadsTo = str | tuple[str, int]
"""As of `Span`."""


class TextPane(Drawn, can_focus=True, inherit_bindings=False):
    """Lines, wrapped to its width; `n` and `N` go through what is searched in it."""

    ALLOW_SELECT = True
    DEFAULT_CSS: ClassVar[str] = "TextPane { scrollbar-gutter: stable; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *Drawn.MOVES,
        ("enter", "follow", "follow a link"),
        ("n", "match(1)", "to the next match"),
        ("N", "match(-1)", "to the match before"),
    ]

    @dataclass
    class Followed(Message):
        """A link is to be followed."""

        leads_to: LeadsTo

    class Moved(Message):
        """Another match was gone to."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._key = ""
        self._lines: Sequence[Line] = ()
        self._wrapping = Wrapping((), 0)
        """Of nothing before there is a width."""
        self._anchor = (0, 0)
        """The first line and character in sight, as the user chose them."""
        self._is_held = False
        """Set during a scroll that is not a choice of the user."""
        self._follows_end = False
        self._going_on = Delay(self)
        self._sought: Sequence[str] = ()
        self._matches: list[Match] = []
        self._current: int | None = None
        self._letters: dict[str, tuple[Match, LeadsTo]] = {}
        """The links in sight by the letters that follow them, while these are shown."""

    # What is shown

    @property
    def text_width(self) -> int:
        """The cells of a row; 0 before there is a screen."""
        return int(self.scrollable_content_region.width)

    def show(
        self, lines: Sequence[Line], *, key: str = "", at: tuple[int, int] | None = None
    ) -> None:
        """Show lines; the place is kept where the key is the same as before, else it is the top.

        Args:
            lines: Made safe before.
            key: What the text is about.
            at: The line and the character to begin with instead.
        """
        if key != self._key or not self._lines:
            self._anchor = (0, 0)
            self._sought = ()
            self._current = None
        self._anchor = at or self._anchor
        self._letters = {}
        self._key, self._lines = key, self._written(lines) if self.is_attached else lines
        self._wrapping = Wrapping((), 0)
        self._follows_end = False
        self._search()
        if self.is_attached:
            self._lay()

    def find(self, words: Sequence[str], *, stays: bool = False) -> int:
        """Show where words are, without regard to case; returns how often. None for no words.

        The first line with the most of new words is scrolled to, unless it is in sight or the
        place stays.
        """
        is_new = list(words) != list(self._sought)
        self._sought = words
        self._current = None if is_new else self._current
        self._search()
        if is_new and self._matches and not stays:
            self._to_match(self._best_match())
        self.refresh()
        return len(self._matches)

    @property
    def match(self) -> tuple[int, int]:
        """Which match was gone to last, from 1, 0 for none; and how many there are."""
        return (0 if self._current is None else self._current + 1), len(self._matches)

    @property
    def place(self) -> tuple[int, int]:
        """The line that is read and its character: of the match in sight, else the first ones."""
        top = self.scroll_offset.y
        if self._current is not None:
            line, start, _ = self._matches[self._current]
            if top <= self._wrapping.advance_to(line, start) < top + self.page:
                return line, start
        return self._begins(top)

    def go_to(self, line: int, character: int) -> None:
        """Begin with a character of a line."""
        self.action_move(self._wrapping.advance_to(line, character) - self.scroll_offset.y)

    @property
    def begins(self) -> tuple[int, int]:
        """The line and the character in sight first, to come back to."""
        return self._begins(self.scroll_offset.y)

    def line_of_file(self, place: tuple[int, int]) -> int:
        """The line of the file that is at a place, or below it; 0 for none."""
        line, start = place
        for number in range(line, min(line + self.page, len(self._lines))):
            found, at = 0, 0
            for span in self._lines[number]:
                found = span.line if span.line and (at <= start or not found) else found
                at += len(span.text)
            if found:
                return found
            start = 0
        return 0

    def _written(self, lines: Sequence[Line]) -> Sequence[Line]:
        return [self.written(line) for line in lines] if self.is_ascii else lines

    # Rows

    def _lay(self) -> None:
        """Wrap what is needed now, and scroll to the place."""
        self._going_on.stop()
        width = self.text_width
        if width > 0:
            self._wrapping = Wrapping(self._lines, width, hanging=hanging)
            self._wrapping.advance_to(*self._anchor)
            self._wrapping.advance(2 * self.page)
        self._measure()
        self._hold(self._wrapping.advance_to(*self._anchor))
        self.refresh()

    def _measure(self) -> None:
        """Take the height there is so far, and have the rest wrapped."""
        self.virtual_size = Size(0, len(self._wrapping))
        if not self._wrapping.is_done:
            self._going_on.begin(_PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        until_s = time.monotonic() + _WORK_S
        while not self._wrapping.is_done and time.monotonic() < until_s:
            self._wrapping.advance(_SLICE)
        self._measure()
        if self._follows_end:
            self._hold(len(self._wrapping))
            if self._wrapping.is_done:
                self._choose(self.scroll_offset.y)

    def _begins(self, row: int) -> tuple[int, int]:
        return self._wrapping.begins(row) if 0 <= row < len(self._wrapping) else (row, 0)

    def on_mount(self) -> None:
        """Show what was given before there was a screen."""
        if self._key or self._lines:
            self._lines = self._written(self._lines)
            self._lay()

    def on_resize(self) -> None:
        """Wrap again where the width changed."""
        if self._wrapping.width != max(self.text_width, 2):
            self._lay()

    # Drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw some lines of those in sight."""
        self._width = self.text_width
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of those in sight."""
        row = self.scroll_offset.y + y
        if row >= len(self._wrapping):
            return Strip.blank(self._width, PLAIN)
        line, start = self._begins(row)
        spans = self._wrapping.row(row)
        segments: Iterable[Segment]
        segments = [Segment(span.text, self.style_of(span.role)) for span in spans]
        if self._matches:
            segments = self._highlighted(segments, line, start)
        flat = [Segment(text.replace("\t", TAB), style) for text, style, _ in segments if text]
        if indent := self._wrapping.indent(row):
            flat.insert(0, Segment(" " * indent, self.style_of("text")))
        drawn = Strip(flat).adjust_cell_length(self._width, PLAIN)
        for letter, (match, _) in self._letters.items():
            if match[0] == line and start <= match[1] < self._wrapping.ends(row):
                at = self._cell(row, match[1])
                sign = Strip([Segment(letter, self.style_of("match"))])
                drawn = Strip.join([drawn.crop(0, at), sign, drawn.crop(at + 1)])
        chosen = self.text_selection
        if chosen is not None and (span_of := chosen.get_span(row)) is not None:
            first, last = span_of
            last = self._width if last == -1 else last
            look = self.palette.cursor
            middle = Strip([Segment(text, look) for text, _, _ in drawn.crop(first, last)])
            drawn = Strip.join([drawn.crop(0, first), middle, drawn.crop(last)])
        return drawn.adjust_cell_length(self._width, PLAIN).apply_offsets(0, row)

    def _cell(self, row: int, character: int) -> int:
        """In which cell of its row a character of its line is."""
        line, start = self._begins(row)
        before = self._wrapping.text(line)[start:character]
        return self._wrapping.indent(row) + cells((Span(before),))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What the mouse selected, without the ends of rows that no line ends with."""
        rows = len(self._wrapping)
        if not rows:
            return None
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else rows - 1
        found = ""
        for row in range(max(first, 0), min(last + 1, rows)):
            start, end = selection.get_span(row) or (0, -1)
            spans = (Span(" " * self._wrapping.indent(row)), *self._wrapping.row(row))
            drawn = Strip([Segment(span.text.replace("\t", TAB)) for span in spans])
            found += drawn.crop(start, None if end == -1 else end).text
            is_end = row + 1 >= rows or self._begins(row + 1)[1] == 0
            found += "\n" if is_end and row < last else ""
        return found, "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw it."""
        self.refresh()

    def _highlighted(self, segments: Iterable[Segment], line: int, start: int) -> Iterable[Segment]:
        """Segments of a line, from a character on, with the matches in them shown."""
        first = bisect_left(self._matches, (line, 0, 0))
        last = bisect_left(self._matches, (line + 1, 0, 0), lo=first)
        at = start
        for text, style, _ in segments:
            end, done = at + len(text), at
            for number in range(first, last):
                _, begins, ends = self._matches[number]
                begins, ends = max(begins, at), min(ends, end)
                if begins < ends:
                    yield Segment(text[done - at : begins - at], style)
                    look = self.style_of("match")
                    if number == self._current:
                        look = self.palette.cursor + Style(underline=True)
                    yield Segment(text[begins - at : ends - at], look)
                    done = ends
            yield Segment(text[done - at :], style)
            at = end

    # Place

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Remember the place, where the user scrolled."""
        super().watch_scroll_y(old_value, new_value)
        is_settled = self._wrapping.width == max(self.text_width, 2)
        if not self._is_held and is_settled:
            self._choose(self.scroll_offset.y)
            self._follows_end = False

    def _choose(self, row: int) -> None:
        self._anchor = self._begins(row)

    def _hold(self, row: int) -> None:
        self._is_held = True
        self.scroll_to(y=row, force=True)
        self._is_held = False

    def action_move(self, rows: int) -> None:
        """Go up or down."""
        self._follows_end = False
        self.scroll_to(y=self.scroll_offset.y + rows, force=True)

    def action_page(self, pages: float) -> None:
        """Go some pages up or down."""
        self.action_move(self.lines_of(pages))

    def action_first(self) -> None:
        """Go to the beginning."""
        self.action_move(-len(self._wrapping))

    def action_last(self) -> None:
        """Go to the end, and on with it while the text is still being wrapped."""
        self.action_move(len(self._wrapping))
        self._follows_end = not self._wrapping.is_done

    # Searching

    def action_match(self, direction: int) -> None:
        """Go to the next match or the one before, around the end; the key goes on without any."""
        if not self._matches:
            raise SkipAction
        if self._current is None:
            following = self._match_in_sight()
            self._to_match(following if direction > 0 else following - 1)
        else:
            self._to_match(self._current + direction)

    def _search(self) -> None:
        """Find where the words that are sought are; a line at a time."""
        self._matches = []
        # Joiners that one writes and another leaves out make no other word.
        words = sorted((_JOINERS.sub("", word) for word in self._sought), key=len, reverse=True)
        patterns = []
        for word in filter(None, words):
            spelt = f"{_JOINERS.pattern}*".join(map(re.escape, word))
            is_short = len(word) <= _SHORT < len(words[0]) and word.isascii() and word.isalpha()
            patterns.append(rf"\b{spelt}\b" if is_short else spelt)
        if patterns:
            pattern = re.compile("|".join(patterns), re.IGNORECASE)
            for number, line in enumerate(self._lines):
                for found in pattern.finditer("".join(span.text for span in line)):
                    self._matches.append((number, found.start(), found.end()))
        if self._current is not None and self._current >= len(self._matches):
            self._current = None

    def _best_match(self) -> int:
        """The first match of the line with the most of the words, from what is in sight on."""
        if len(self._sought) < 2:
            return self._match_in_sight()
        words: dict[int, set[str]] = {}
        for line, start, end in self._matches:
            text = "".join(span.text for span in self._lines[line])
            words.setdefault(line, set()).add(text[start:end].casefold())
        best = max(words, key=lambda line: len(words[line]))
        return bisect_left(self._matches, (best, 0, 0))

    # Links

    def action_follow(self) -> None:
        """Follow the link in sight; of several, the one whose letter is pressed next.

        Where none is, the key goes on.
        """
        found = self._links_in_sight()
        if not found:
            raise SkipAction
        if len(found) == 1:
            self.post_message(self.Followed(found[0][1]))
        else:
            self._letters = dict(zip(_LETTERS, found, strict=False))
            self.refresh()

    async def _on_key(self, event: Key) -> None:
        if self._letters:
            letters, self._letters = self._letters, {}
            self.refresh()
            event.stop()
            event.prevent_default()
            if event.character in letters:
                self.post_message(self.Followed(letters[event.character][1]))

    def on_click(self, event: Click) -> None:
        """Follow the link that was clicked."""
        # Two clicks would select all of the text.
        event.prevent_default()
        row = self.scroll_offset.y + event.y - self.gutter.top
        at = event.x - self.gutter.left
        for (line, start, end), leads_to in self._links_in_sight():
            if row < len(self._wrapping) and self._begins(row)[0] == line:
                first, last = max(start, self._begins(row)[1]), min(end, self._wrapping.ends(row))
                if first < last and self._cell(row, first) <= at < self._cell(row, last):
                    self.post_message(self.Followed(leads_to))
                    return

    def _links_in_sight(self) -> list[tuple[Match, LeadsTo]]:
        top = self.scroll_offset.y
        first, last = self._begins(top), self._begins(min(top + self.page, len(self._wrapping)) - 1)
        found: list[tuple[Match, LeadsTo]] = []
        for number in range(first[0], min(last[0] + 1, len(self._lines))):
            at = 0
            for span in self._lines[number]:
                end = at + len(span.text)
                is_seen = top <= self._wrapping.advance_to(number, at) < top + self.page
                if (
                    span.leads_to
                    and found
                    and found[-1][1] == span.leads_to
                    and (found[-1][0][::2] == (number, at))
                ):
                    found[-1] = (number, found[-1][0][1], end), span.leads_to
                elif span.leads_to and is_seen:
                    found.append(((number, at, end), span.leads_to))
                at = end
        return found

    def _match_in_sight(self) -> int:
        """The number of the first match that is not above what is in sight."""
        return bisect_left(self._matches, (*self._begins(self.scroll_offset.y), 0))

    def _to_match(self, number: int) -> None:
        self._current = number % len(self._matches)
        line, start, _ = self._matches[self._current]
        row, top = self._wrapping.advance_to(line, start), self.scroll_offset.y
        # More was wrapped on the way to the match.
        self.virtual_size = Size(0, len(self._wrapping))
        if not top <= row < top + self.page:
            self.action_move(row - self.page // 2 - top)
        self.refresh()
        self.post_message(self.Moved())


class Field(Input):
    """An input whose value is one line that is safe for a terminal, whatever is put in it."""

    def validate_value(self, value: str) -> str:
        """The value, made safe."""
        return one_line(value)


class LineField(Field):
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
        self.earlier: Sequence[str] = ()
        """What was typed before, oldest first: up takes it, down what is newer, then goes on."""

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
        elif event.key in ("up", "down"):
            self._take(event)
            every = [*self.earlier, ""]
            at = every.index(self.value) if self.value in every else len(self.earlier)
            to = at + (1 if event.key == "down" else -1)
            if to > len(self.earlier):
                self.screen.set_focus(self._then)
            elif to >= 0 and self.earlier:
                self.value = every[to]
                self.cursor_position = len(self.value)

    @staticmethod
    def _take(event: Key) -> None:
        event.stop()
        event.prevent_default()
