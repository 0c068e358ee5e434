"""Lines cut, wrapped and drawn by the cells that they take on the screen. Pure.

One rule: what is drawn has exactly the width asked for, whatever the characters.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.formatting.lines import Line, Role, Span

SIGNS: Final = str.maketrans({"…": "...", "·": "-", "–": "-", "×": "x", "●": "*"})
"""ASCII in place of our own symbols."""
TAB: Final = "    "
PLAIN: Final = Style.null()
_SIGNS_OF_DIFFS: Final = ("+", "-")
_MOST_CODES: Final = 8
"""Characters considered for one cell; more combining marks are cut."""


def cells(line: Line) -> int:
    """How wide a line is."""
    return sum(cell_len(_flat(span.text)) for span in line)


def in_ascii(line: Line) -> Line:
    """A line without signs that are not ASCII; spans with the role text stay as they are."""
    return tuple(
        span
        if span.role == "text" or span.text.isascii()
        else Span(span.text.translate(SIGNS), span.role)
        for span in line
    )


def hanging(line: Line) -> int:
    """The hanging indent of a line: below its text, not below its label or sign."""
    if len(line) < 2:
        return 0
    first = _flat(line[0].text)
    return cell_len(first) if first.endswith(" ") or first in _SIGNS_OF_DIFFS else 0


def fitted(line: Line, width: int, ellipsis: str) -> Line:
    """A line that is no wider than this, its end replaced by the ellipsis where it was."""
    line = tuple(Span(_flat(span.text[: width * _MOST_CODES + 1]), span.role) for span in line)
    if sum(cell_len(span.text) for span in line) <= width:
        return line
    room = max(width - len(ellipsis), 0)
    kept: list[Span] = []
    for span in line:
        size = cell_len(span.text)
        if size > room:
            text = set_cell_size(span.text, room)
            return (*kept, Span(text, span.role), Span(ellipsis[:width], "quiet"))
        kept.append(span)
        room -= size
    return (*kept, Span(ellipsis[:width], "quiet"))


def strip(line: Line, width: int, style_of: Callable[[Role], Style], rest: Style | None) -> Strip:
    """A line drawn.

    Args:
        line: No wider than the width.
        width: Of what is given.
        style_of: Its style.
        rest: How what is left beside it looks; None for like the widget.
    """
    drawn = [Segment(_flat(span.text), style_of(span.role)) for span in line if span.text]
    # Textual's own removal of colours fails on words without any style.
    return Strip(drawn).adjust_cell_length(width, rest or PLAIN)


def _flat(text: str) -> str:
    return text.replace("\t", TAB) if "\t" in text else text


class Wrapping:
    """Lines broken into rows of a width, a piece at a time, from the top.

    A row is where it begins: the number of its line and of its first character. Breaks stand
    after spaces where there are any.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        width: int,
        *,
        hanging: Callable[[Line], int] = lambda _: 0,
    ) -> None:
        """Nothing is broken yet.

        Args:
            lines: To be broken.
            width: Of a row, in cells.
            hanging: How far in the further rows of a line stand.
        """
        self.lines = lines
        self.width = max(width, 2)
        """Two, because there are characters that take as many."""
        self._hanging = hanging
        self._line_of = array("l")
        self._start_of = array("l")
        self._next = 0
        self._from = 0
        self._text: tuple[int, str] = (-1, "")

    @property
    def is_done(self) -> bool:
        """Whether all lines are broken."""
        return self._next >= len(self.lines)

    def __len__(self) -> int:
        """How many rows there are so far."""
        return len(self._line_of)

    def advance(self, rows: int) -> None:
        """Break lines until there are so many rows more, or no lines."""
        until = len(self) + rows
        while len(self) < until and not self.is_done:
            self._step()

    def advance_to(self, line: int, start: int) -> int:
        """Break lines until a character of a line has its row, which is returned."""
        while not self.is_done and (self._next, self._from) <= (line, start):
            self._step()
        return self.row_of(line, start)

    def row_of(self, line: int, start: int) -> int:
        """The row that a character of a line is on; the last one where it is beyond all."""
        at = bisect_left(self._line_of, line)
        end = bisect_left(self._line_of, line + 1, lo=at)
        row = bisect_left(self._start_of, start + 1, lo=at, hi=end) - 1
        return max(min(row, len(self) - 1), 0)

    def begins(self, row: int) -> tuple[int, int]:
        """The line and the character that a row begins with."""
        return self._line_of[row], self._start_of[row]

    def indent(self, row: int) -> int:
        """The cells that are left free before a row: its line began on another one."""
        line, start = self.begins(row)
        return self._indent_of(line) if start else 0

    def _indent_of(self, line: int) -> int:
        return min(self._hanging(self.lines[line]), self.width // 3)

    def ends(self, row: int) -> int:
        """The character of its line that a row ends before."""
        following = row + 1
        line = self._line_of[row]
        if following < len(self) and self._line_of[following] == line:
            return self._start_of[following]
        if following == len(self) and self._next == line:
            return self._from
        return len(self.text(line))

    def row(self, row: int) -> Line:
        """The text of a row."""
        line, start = self.begins(row)
        return tuple(cut_out(self.lines[line], start, self.ends(row)))

    def text(self, line: int) -> str:
        """The text of a whole line."""
        spans = self.lines[line]
        if len(spans) == 1:
            return spans[0].text
        if self._text[0] != line:
            self._text = (line, "".join(span.text for span in spans))
        return self._text[1]

    def _step(self) -> None:
        """Break off one row."""
        text = self.text(self._next)
        self._line_of.append(self._next)
        self._start_of.append(self._from)
        indent = self._indent_of(self._next) if self._from else 0
        end = _break(text, self._from, self.width - indent)
        if end >= len(text):
            self._next += 1
            self._from = 0
        else:
            self._from = end


def cut_out(line: Line, start: int, end: int) -> Iterator[Span]:
    """The part of a line between two of its characters."""
    for span in line:
        length = len(span.text)
        if start < length and end > 0:
            yield Span(span.text[max(start, 0) : end], span.role)
        start -= length
        end -= length
        if end <= 0:
            return


def _break(text: str, start: int, width: int) -> int:
    """Where the row that begins at a character ends."""
    window = text[start : start + width + 1]
    plain = window.isascii() and "\t" not in window
    end = start + (min(len(window), width) if plain else _fitting(text, start, width))
    if end >= len(text) or text[end] == " ":
        # The space goes with the row that it ends, where it cannot be seen.
        return min(end + 1, len(text))
    space = text.rfind(" ", start, end)
    return end if space < start else space + 1


def _fitting(text: str, start: int, width: int) -> int:
    """How many characters fit; one at least, with what stands above it."""
    window = text[start : start + width + 1]
    if cell_len(window) <= width:
        # Some take no cell at all.
        window = text[start : start + width * _MOST_CODES]
    if "\t" in window:
        size = 0
        for number, character in enumerate(window):
            size += len(TAB) if character == "\t" else cell_len(character)
            if size > width:
                return max(number, 1)
        return len(window)
    return max(len(chop_cells(window, width)[0]), 1) if cell_len(window) > width else len(window)
