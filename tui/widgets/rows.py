"""A list of any number of rows that draws what is in sight and keeps its place.

Only rows in sight, and some around them, are fetched. One rule: a row is identified by its key; its
number is only where it is now.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from rich.style import Style
from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from tui.formatting import Span, count
from tui.state.rows import Listed, Marking, Rows, TreeRows
from tui.widgets.drawing import PLAIN, Drawn, cells, fitted, strip

MOST_MARKED: Final = 50_000
"""Rows that one key press may mark; more would block the screen."""
_REACH: Final = 64
"""Rows each side of the cursor that are remembered, to find its place when its row goes."""
_KEPT: Final = 512
"""Rows kept drawn."""
_BOLD: Final = Style(bold=True)


class VirtualRows(Drawn, can_focus=True, inherit_bindings=False):
    """A list over `Rows`. Moving, marking and the mouse are its own; what rows mean is not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *Drawn.MOVES,
        ("enter", "choose", "open the row"),
        ("space", "mark", "mark the row, or unmark it"),
        ("v", "range", "begin a range of marks, and end it"),
        ("shift+up", "extend(-1)", "extend the range up"),
        ("shift+down", "extend(1)", "extend the range down"),
        ("a", "mark_all", "mark all rows shown"),
        ("escape", "unmark", "clear the range, or all marks"),
    ]

    class Highlighted(Message):
        """The cursor came to another row."""

    @dataclass
    class Chosen(Message):
        """Enter, or a double click, on a row."""

        key: Hashable

    class Toggled(Message):
        """A row was opened, or closed."""

    @dataclass
    class Marked(Message):
        """Other rows are marked than before."""

        marks: set[Any]
        """The set of all marked keys."""
        added: Sequence[Any]
        """Keys that were not marked before."""
        removed: Sequence[Any]

    def __init__(
        self,
        *,
        id: str | None = None,
        marking: bool = True,
        signs: bool = True,
        marked_with: Callable[[Hashable], Collection[Hashable]] | None = None,
    ) -> None:
        """An empty list.

        Args:
            id: As of every widget.
            marking: Whether rows can be marked at all.
            signs: Whether marked rows are shown as such; the owner does where not.
            marked_with: Gives the keys that are marked with a row: of a heading those below it,
                none for a row that cannot be marked. None: each row by itself.
        """
        super().__init__(id=id)
        self.rows: Rows = Listed()
        """What is drawn from; see `show`."""
        self._is_waiting = False
        """Whether `show` was called before there was a screen."""
        self._first_at: Hashable | None = None
        self._cursor = 0
        self.cursor_key: Hashable | None = None
        """Of the row under the cursor; None in an empty list."""
        self._around: tuple[int, list[Hashable]] = (0, [])
        """The first row around the cursor, and the keys from it on, when the cursor was put."""
        self._can_mark = marking
        self._has_signs = marking and signs
        self._marked_with = marked_with or (lambda key: (key,))
        self._marking = Marking()
        self._strips: LRUCache[tuple[Hashable, int, int, bool], Strip] = LRUCache(_KEPT)
        self._wanted: tuple[int, int] | None = None
        self._top = 0
        """The first row in sight, as a person chose it last; sizes come and go."""
        self._follows_cursor = True
        """Whether the cursor was in sight then."""
        self._height = 0
        """Of the list then."""
        self._width = 0

    # What is shown

    @property
    def marks(self) -> set[Any]:
        """Keys of the marked rows; the owner may put its own set here, which is then used."""
        return self._marking.keys

    @marks.setter
    def marks(self, keys: set[Any]) -> None:
        """Have these keys be the marked ones, in this very set."""
        self._marking.end()
        self._marking.keys = keys
        self.refresh()

    def show(self, rows: Rows, *, at: Hashable | None = None) -> None:
        """Draw these rows, the cursor on a key; on the first row where that is not among them."""
        self.rows = rows
        self._first_at = at
        self._is_waiting = not self.is_attached
        if self._is_waiting:
            return
        self._marking.end()
        self.forget_drawn()
        self._measure()
        index = None if at is None else rows.index_of(at)
        self._put(index or 0, self._place_for(index or 0))

    def changed(self) -> None:
        """Rows came, went or moved: the cursor stays on its row, and the row on its line.

        Where the row is gone, the cursor goes to the one that took its place.
        """
        if not self.is_attached:
            return
        line = self._cursor - self.scroll_offset.y
        first, keys = self._around
        at = self._cursor - first
        # The row that the cursor was on; else the nearest one after it, else before it.
        places = map(self.rows.index_of, (*keys[at:], *reversed(keys[:at])))
        end = min(self._cursor, max(len(self.rows) - 1, 0))
        index = next((place for place in places if place is not None), end)
        self.forget_drawn()
        self._measure()
        self._put(index, index - line)
        if self._marking.begun_at is not None:
            self._draw_range()

    def loaded(self, first: int, last: int) -> None:
        """Rows were fetched."""
        self.forget_drawn()
        top = self.scroll_offset.y
        first, last = max(first, top), min(last, top + self.page)
        if first < last:
            self.refresh_lines(first, last - first)

    def move_to(self, key: Hashable) -> bool:
        """Put the cursor on a row, in sight; whether it is there."""
        index = self.rows.index_of(key)
        if index is None:
            return False
        self._move(index, self._place_for(index))
        return True

    # Rows below rows

    def toggle(self, key: Hashable) -> None:
        """Open a row, or close it."""
        if isinstance(self.rows, TreeRows) and isinstance(key, tuple):
            self.rows.toggle(key)
            self.changed()
            self.post_message(self.Toggled())

    def open(self) -> bool:
        """Open the row under the cursor; False where nothing is below it, or is shown."""
        return self._turn(is_open=False)

    def close(self) -> None:
        """Close the row under the cursor, or go up from it."""
        if not self._turn(is_open=True) and isinstance(self.cursor_key, tuple):
            self.move_to(self.cursor_key[:-1])

    def _turn(self, *, is_open: bool) -> bool:
        """Open or close the row under the cursor, where it can be and is not; whether it was."""
        rows, key = self.rows, self.cursor_key
        if not isinstance(rows, TreeRows) or not isinstance(key, tuple):
            return False
        turns = rows.can_open(key) and rows.is_open(key) == is_open
        if turns:
            self.toggle(key)
        return turns

    # Drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw some lines of those in sight."""
        self._width = self.scrollable_content_region.width
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of those in sight."""
        index = self.scroll_offset.y + y
        if index >= len(self.rows):
            return Strip.blank(self._width, PLAIN)
        key = self.rows.key(index)
        has_cursor = int(index == self._cursor) * (2 if self.has_focus else 1)
        marks = self._marking.keys
        with_it = self._marked_with(key) if marks and self._has_signs else ()
        is_marked = bool(with_it) and marks.issuperset(with_it)
        name = (key, self._width, has_cursor, is_marked)
        drawn = self._strips.get(name)
        if drawn is None:
            signs = ">" if has_cursor else " "
            if self._has_signs:
                signs += "*" if is_marked else " "
            words = self.rows.row(index)
            line = (Span(self.ellipsis, "quiet"),) if words is None else self.written(words)
            room = max(self._width - len(signs), 0)
            columns = self.written(self.rows.columns(index, room)) if words is not None else ()
            line = fitted(line, max(room - cells(columns), 0), self.ellipsis)
            gap = Span(" " * (room - cells(line) - cells(columns)))
            line = (Span(signs, "mark"), *line, *((gap, *columns) if columns else ()))
            palette = self.palette
            looks = (palette.of, palette.on_resting, palette.on_cursor)[has_cursor]
            rest = (None, palette.on_resting("text"), palette.cursor)[has_cursor]
            look = (lambda role: looks(role) + _BOLD) if is_marked else looks
            drawn = strip(line, self._width, look, rest)
            if words is not None:
                self._strips[name] = drawn
        return drawn

    def forget_drawn(self) -> None:
        """Redraw every row the next time."""
        self._strips.clear()

    # Place

    def on_mount(self) -> None:
        """Show what was given before there was a screen."""
        if self._is_waiting:
            self.show(self.rows, at=self._first_at)

    def on_resize(self) -> None:
        """Keep the first line, or the cursor where it would go out of sight."""
        top = self._in_sight(self._cursor, self._top) if self._follows_cursor else self._top
        self.scroll_to(y=top, force=True)
        self._height = self.page
        self._want()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for the rows that came in sight."""
        super().watch_scroll_y(old_value, new_value)
        top = self.scroll_offset.y
        if self._height == self.page:
            self._rest_at(top)
        self._want()

    def _rest_at(self, top: int) -> None:
        """Remember the place for when the size changes."""
        self._top = top
        self._follows_cursor = top <= self._cursor < top + self.page

    def _measure(self) -> None:
        self.virtual_size = Size(0, len(self.rows))
        self._wanted = None

    def _place_for(self, index: int) -> int:
        """The first line that has a row in sight; in the middle where it is not yet."""
        top, page = self.scroll_offset.y, self.page
        return top if top <= index < top + page else index - page // 2

    def _in_sight(self, index: int, top: int) -> int:
        """The first line nearest to this one that has a row in sight."""
        return min(max(top, index - self.page + 1), index)

    def _move(self, index: int, top: int | None = None) -> None:
        """Put the cursor on a row, drawing no more than is needed."""
        total = len(self.rows)
        if not total:
            return
        before, index = self._cursor, min(max(index, 0), total - 1)
        self._cursor = index
        self._scroll(self._in_sight(index, self.scroll_offset.y if top is None else top))
        self.refresh_lines(before)
        self.refresh_lines(index)
        self._post_cursor()
        if self._marking.begun_at is not None:
            self._draw_range()

    def _put(self, index: int, top: int) -> None:
        """Put the cursor on a row and a row on the first line, and draw everything."""
        self._cursor = min(max(index, 0), max(len(self.rows) - 1, 0))
        self._scroll(top)
        self.refresh()
        self._post_cursor()
        self._want()

    def _scroll(self, top: int) -> None:
        self.scroll_to(y=top, force=True)
        # Before the layout, nothing is in sight yet.
        self._rest_at(self.scroll_offset.y)

    def _post_cursor(self) -> None:
        """Take the key under the cursor, and post it if it changed."""
        key = self.rows.key(self._cursor) if len(self.rows) else None
        first, last = max(self._cursor - _REACH, 0), min(self._cursor + _REACH, len(self.rows))
        self._around = (first, [self.rows.key(index) for index in range(first, last)])
        if key != self.cursor_key:
            self.cursor_key = key
            self.post_message(self.Highlighted())

    def _want(self) -> None:
        """Have the rows in sight fetched, and a page each side."""
        top, page, total = self.scroll_offset.y, self.page, len(self.rows)
        wanted = (max(top - page, 0), min(top + 2 * page, total))
        if wanted != self._wanted and self.size:
            self._wanted = wanted
            self.rows.want(*wanted)

    # Keys

    def action_move(self, rows: int) -> None:
        """Go some rows up or down."""
        self._move(self._cursor + rows)

    def action_page(self, pages: float) -> None:
        """Go some pages up or down; the cursor stays on its line of the screen."""
        rows = self.lines_of(pages)
        self._move(self._cursor + rows, self.scroll_offset.y + rows)

    def action_first(self) -> None:
        """To the first row."""
        self._move(0)

    def action_last(self) -> None:
        """To the last row."""
        self._move(len(self.rows) - 1)

    def action_choose(self) -> None:
        """Choose the row under the cursor, or open it where it is a heading."""
        rows, key = self.rows, self.cursor_key
        if isinstance(rows, TreeRows) and isinstance(key, tuple) and rows.is_heading(key):
            self.toggle(key)
        elif key is not None:
            self.post_message(self.Chosen(key))

    def action_mark(self) -> None:
        """Mark the row or unmark it, and go to the next one."""
        self._marking.toggle(self._markable())
        self._marks_changed()
        self._move(self._cursor + 1)

    def action_range(self) -> None:
        """Begin a range of marks at the cursor, or end it."""
        self._markable()
        if self._marking.begun_at is None:
            self._marking.begin(self.cursor_key)
            self._draw_range()
        else:
            self._marking.end()

    def action_extend(self, rows: int) -> None:
        """Draw the range further, from the cursor where there is none."""
        self._markable()
        if self._marking.begun_at is None:
            self._marking.begin(self.cursor_key)
        self._move(self._cursor + rows)

    def action_mark_all(self) -> None:
        """Mark every row that is shown."""
        self._markable()
        if self._is_too_much(len(self.rows)):
            return
        self._marking.end()
        self._marking.add(self._keys(0, len(self.rows)))
        self._marks_changed()

    def action_unmark(self) -> None:
        """Take the range back, or all marks; let the key go on where there is nothing to."""
        if not self._can_mark or not self._marking.drop():
            raise SkipAction
        self._marks_changed()

    def _markable(self) -> Collection[Hashable]:
        """What is marked with the row under the cursor; the key goes on where nothing can be."""
        if not self._can_mark or self.cursor_key is None:
            raise SkipAction
        return self._marked_with(self.cursor_key)

    def _keys(self, first: int, last: int) -> set[Hashable]:
        found: set[Hashable] = set()
        for index in range(first, last):
            found.update(self._marked_with(self.rows.key(index)))
        return found

    def _draw_range(self) -> None:
        begun = self.rows.index_of(self._marking.begun_at)
        first, last = sorted((self._cursor if begun is None else begun, self._cursor))
        if self._is_too_much(last + 1 - first):
            self._marking.end()
            return
        self._marking.extend(self._keys(first, last + 1))
        self._marks_changed()

    def _is_too_much(self, rows: int) -> bool:
        if rows <= MOST_MARKED:
            return False
        limit = f"cannot mark {count(rows, 'row')}: at most {MOST_MARKED:,}"
        self.notify(limit, severity="warning", markup=False)
        return True

    def _marks_changed(self) -> None:
        self.refresh()
        self.post_message(self.Marked(self.marks, *self._marking.changes()))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the row; a double click chooses it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = self.scroll_offset.y + offset.y
        if index < len(self.rows):
            event.stop()
            self._move(index)
            if event.chain == 2:
                self.action_choose()
