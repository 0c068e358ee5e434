"""The themes, and the styles of roles: colours of the theme, or shape alone without colours.

A theme may override any role with its variables ``role-<role>`` (a colour) and
``role-<role>-style`` ("bold", "underline" …). The styles are made once for a theme and background;
component classes, which Textual works out for each widget with each change of focus, would cost
three milliseconds a widget. One rule: without colours, what must be distinguished differs in shape.
Severity is shown by letter, sign and word everywhere; colours only help the eye. For the
colour-blind it runs from blue to orange, the axis that red-green blindness leaves, in hues near
those of Okabe and Ito (Color Universal Design, 2008), and errors and warnings differ in lightness.
"""

import dataclasses
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.color import Color, ColorParseError
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.theme import BUILTIN_THEMES, Theme

from tui.formatting import Line, Role, Span


class Look(Struct, frozen=True, kw_only=True):
    """The style of a role without one in the theme."""

    color: str = "$text"
    """A colour, or a variable of the theme."""
    style: str = ""
    """As Rich writes it: "bold underline"."""
    background: str = ""
    """Then the words are black or white on it, whatever their colour."""
    mono: str = ""
    """The style without colours."""


LOOKS: Final[dict[Role, Look]] = {
    "text": Look(),
    "title": Look(style="bold", mono="bold"),
    "quiet": Look(color="$text-muted"),
    "good": Look(color="$text-success"),
    "note": Look(color="$text-primary", mono="italic"),
    "warning": Look(color="$text-warning", mono="bold"),
    "error": Look(color="$text-error", style="bold", mono="bold underline"),
    "key": Look(color="$text-accent", style="bold", mono="bold"),
    "mark": Look(color="$text-accent", style="bold", mono="bold"),
    "match": Look(background="$warning", mono="reverse"),
    "added": Look(color="$text-success"),
    "removed": Look(color="$text-error", mono="underline"),
    "hunk": Look(color="$text-primary", style="bold", mono="bold"),
    "heading": Look(color="$text-primary", style="bold", mono="bold underline"),
    "code": Look(color="$text-success", mono="bold"),
    "emphasis": Look(style="italic", mono="italic"),
    "link": Look(color="$text-accent", style="underline", mono="underline"),
    # Distinct for the colour-blind, too (Okabe and Ito); their black is the colour of text.
    "hue0": Look(),
    "hue1": Look(color="#e69f00"),
    "hue2": Look(color="#56b4e9"),
    "hue3": Look(color="#009e73"),
    "hue4": Look(color="#f0e442"),
    "hue5": Look(color="#0072b2"),
    "hue6": Look(color="#d55e00"),
    "hue7": Look(color="#cc79a7"),
}
_LEAST_CONTRAST: Final = 3.0
"""Of a colour that the theme did not choose, to its background."""
_NUDGE: Final = 0.35
"""How far such a colour goes towards black or white where its contrast is less."""


class Palette:
    """The styles of all roles on one background of one theme."""

    def __init__(self, variables: Mapping[str, str], background: Color, *, no_color: bool) -> None:
        self._variables = variables
        self._background = background
        self._no_color = no_color
        self._styles: dict[Role, Style] = {}
        self.cursor = self._cursor("block-cursor", "reverse")
        """Of the row under the cursor of the list that has the focus."""
        self.resting = self._cursor("block-cursor-blurred", "underline")
        """Of the row under the cursor of a list that has it not."""

    def of(self, role: Role) -> Style:
        """How a role looks."""
        found = self._styles.get(role)
        if found is None:
            found = self._styles[role] = self._made(role)
        return found

    def on_cursor(self, role: Role) -> Style:
        """How a role looks under the cursor, whose colours are the same for all roles."""
        style = self.of(role)
        shape = Style(bold=style.bold, italic=style.italic, underline=style.underline)
        return self.cursor + shape

    def on_resting(self, role: Role) -> Style:
        """How a role looks under a cursor without the focus."""
        style = self.of(role)
        if style.bgcolor is not None:
            return style
        return style + self.resting.without_color + Style(bgcolor=self.resting.bgcolor)

    def _made(self, role: Role) -> Style:
        look = LOOKS[role]
        text = self._color("$text", self._background)
        if self._no_color:
            return Style.parse(look.mono) + Style.from_color(text.rich_color)
        style = Style.parse(self._variables.get(f"role-{role}-style", look.style))
        if look.background and f"role-{role}" not in self._variables:
            behind = self._color(look.background, self._background)
            ahead = behind + behind.get_contrast_text(1.0)
            return style + Style.from_color(ahead.rich_color, behind.rich_color)
        color = self._color(self._variables.get(f"role-{role}", look.color), self._background)
        if look.color.startswith("#"):
            color = _readable(color, self._background)
        return style + Style.from_color(color.rich_color)

    def _cursor(self, name: str, mono: str) -> Style:
        if self._no_color:
            text = self._color("$text", self._background)
            return Style.parse(mono) + Style.from_color(text.rich_color)
        behind = self._color(f"${name}-background", self._background)
        ahead = self._color(f"${name}-foreground", behind)
        style = Style.parse(self._variables.get(f"{name}-text-style", "none"))
        return style + Style.from_color(ahead.rich_color, behind.rich_color)

    def _color(self, value: str, background: Color) -> Color:
        """A colour as it is on a background, with everything that shines through."""
        while value.startswith("$"):
            value = self._variables.get(value[1:], "auto")
        if value.startswith("auto"):
            share = value[len("auto") :].strip().rstrip("%") or "100"
            return background + background.get_contrast_text(float(share) / 100)
        try:
            return background + Color.parse(value)
        except ColorParseError:
            # Themes of the terminal's own colours write "ansi_default 50%".
            return background + Color.parse(value.partition(" ")[0])


def _readable(color: Color, background: Color) -> Color:
    """A colour of enough contrast, by the ratio of WCAG 2."""
    while True:
        darker, lighter = sorted((_luminance(color), _luminance(background)))
        if (lighter + 0.05) / (darker + 0.05) >= _LEAST_CONTRAST:
            return color
        color = color.blend(background.get_contrast_text(1.0), _NUDGE)


def _luminance(color: Color) -> float:
    """Relative luminance as WCAG 2 has it, 0 to 1."""
    parts = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.normalized
    )
    return sum(part * weight for part, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))


class PlainBar(ScrollBarRender):
    """A scroll bar made of spaces alone."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


class Drawn(ScrollView):
    """Lines drawn one at a time in the styles of their roles; scrolling is never animated."""

    DEFAULT_CSS: ClassVar[str] = "Drawn { overflow-x: hidden; scrollbar-size-vertical: 1; }"
    ALLOW_SELECT = False
    MOVES: ClassVar[list[BindingType]] = [
        ("up,k", "move(-1)", "one line up"),
        ("down,j", "move(1)", "one line down"),
        ("pageup", "page(-1)", "a page up"),
        ("pagedown", "page(1)", "a page down"),
        ("ctrl+u", "page(-0.5)", "half a page up"),
        ("ctrl+d", "page(0.5)", "half a page down"),
        ("home,g", "first", "to the beginning"),
        ("end,G", "last", "to the end"),
    ]
    """The keys of what scrolls."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._palette: Palette | None = None
        self._palette_for: tuple[int, Color, bool] | None = None
        self._palette_variables: Mapping[str, str] = {}

    @property
    def palette(self) -> Palette:
        """The styles on the background that the widget has now."""
        variables, background = self.app.theme_variables, self.background_colors[1]
        made_for = (id(variables), background, self.app.no_color)
        if self._palette is None or self._palette_for != made_for:
            # Held, so that nothing else gets its identity.
            self._palette_variables = variables
            self._palette_for = made_for
            self._palette = Palette(variables, background, no_color=self.app.no_color)
        return self._palette

    def style_of(self, role: Role) -> Style:
        """How a role looks here."""
        return self.palette.of(role)

    @property
    def is_ascii(self) -> bool:
        """Whether the terminal shows nothing but ASCII; the app has it as `ascii`."""
        return bool(getattr(self.app, "ascii", False))

    def written(self, line: Line) -> Line:
        """A line in the characters that the terminal shows."""
        return in_ascii(line) if self.is_ascii else line

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scroll bar, without parts of blocks where there is nothing but ASCII."""
        bar = super().vertical_scrollbar
        if self.is_ascii:
            bar.renderer = PlainBar  # type: ignore[misc] # as its documentation says
        return bar

    @property
    def ellipsis(self) -> str:
        """In place of text that does not fit."""
        return "..." if self.is_ascii else "…"

    @property
    def page(self) -> int:
        """How many lines are in sight, at least one."""
        return max(self.scrollable_content_region.height, 1)

    def lines_of(self, pages: float) -> int:
        """How many lines to move for some pages, or a part of one: at least one line."""
        return int(pages * self.page) or (1 if pages > 0 else -1)

    def scroll_to(self, x: float | None = None, y: float | None = None, **options: Any) -> None:
        """Scroll at once, whatever is asked: a moving list cannot be read."""
        super().scroll_to(x, y, **{**options, "animate": False})

    def notify_style_update(self) -> None:
        """Forget what was drawn in other colours."""
        super().notify_style_update()
        self.forget_drawn()
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw some lines; what has no background of its own has that of the widget."""
        base = Style(bgcolor=self.background_colors[1].rich_color)
        return [drawn.apply_style(base) for drawn in super().render_lines(crop)]

    def forget_drawn(self) -> None:
        """Redraw everything the next time; a subclass that caches extends it."""


DARK: Final = "filestore-dark"
LIGHT: Final = "filestore-light"
MONO: Final = "filestore-mono"
ANSI: Final = "ansi"
_ANSI: Final = ["default", "yellow", "cyan", "green", "bright_yellow", "blue", "red", "magenta"]

_RESTING: Final = "block-cursor-blurred-background"
"""Behind the row under the cursor of a list without the focus; Textual's own, which shines
through, leaves too little contrast."""


def _severity(*, error: str, warning: str) -> dict[str, str]:
    """Colours of severity as they are: Textual makes them more alike, to be read on anything."""
    return {"role-error": error, "role-removed": error, "role-warning": warning}


THEMES: Final = (
    Theme(
        name=DARK, dark=True, primary="#7aa2f7", secondary="#9aa5ce", accent="#e0af68",
        foreground="#d5d9e8", background="#16181f", surface="#1d2029", panel="#2a2f3d",
        success="#9ece6a", warning="#e8b45a", error="#ff7a93",
        variables={_RESTING: "#2b3a5c"},
    ),
    Theme(
        name=LIGHT, dark=False, primary="#1f5fbf", secondary="#4c566a", accent="#8a5a00",
        foreground="#1c1f26", background="#fbfbfa", surface="#f1f1ee", panel="#dfe1e6",
        success="#1d6b2f", warning="#855300", error="#b3142e",
        variables={_RESTING: "#cfdcf2"},
    ),
    Theme(
        name="filestore-colour-blind-dark", dark=True, primary="#56b4e9", secondary="#a9b4c2",
        accent="#f0e442", foreground="#e6e6e6", background="#111318", surface="#191c23",
        panel="#2a2f3a", success="#56b4e9", warning="#f0e442", error="#ff9b3d",
        variables={_RESTING: "#1f3b50", **_severity(error="#ff9b3d", warning="#fff6b8")},
    ),
    Theme(
        name="filestore-colour-blind-light", dark=False, primary="#005a93", secondary="#4c566a",
        accent="#5b4a00", foreground="#1a1a1a", background="#ffffff", surface="#f3f3f3",
        panel="#dedede", success="#005a93", warning="#5b4a00", error="#a04000",
        variables={_RESTING: "#c9dfee", **_severity(error="#a04000", warning="#2a2400")},
    ),
    Theme(
        name=MONO, dark=True, primary="#ffffff", secondary="#c8c8c8", accent="#ffffff",
        foreground="#e4e4e4", background="#000000", surface="#000000", panel="#303030",
        success="#e4e4e4", warning="#ffffff", error="#ffffff",
        variables={_RESTING: "#404040"},
    ),
    # The terminal's own palette.
    dataclasses.replace(
        BUILTIN_THEMES["ansi-dark"],
        name=ANSI,
        variables=BUILTIN_THEMES["ansi-dark"].variables | {
            "text": "ansi_default", "text-muted": "ansi_bright_black", "text-success": "ansi_green",
            "text-primary": "ansi_blue", "text-warning": "ansi_yellow", "text-error": "ansi_red",
            "text-accent": "ansi_magenta", _RESTING: "ansi_bright_black",
            "block-cursor-blurred-foreground": "ansi_default",
            **{f"role-hue{number}": f"ansi_{color}" for number, color in enumerate(_ANSI)},
        },
    ),
)  # fmt: skip


def first_theme(environment: Mapping[str, str], saved: str) -> str:
    """The theme to begin with.

    `NO_COLOR` always means the one without: Textual turns colours to greys, and on the themes that
    take the terminal's own colours black on black.
    """
    if environment.get("NO_COLOR"):
        return MONO
    if saved in {theme.name for theme in THEMES}:
        return saved
    # COLORFGBG is foreground;background; 7 and 15 are light.
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in ("7", "15") else DARK


SIGNS: Final = str.maketrans({"…": "...", **dict(zip("·–×●•▌│─┼▾▸", "--x**||-+-+", strict=True))})
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
        else replace(span, text=span.text.translate(SIGNS))
        for span in line
    )


def hanging(line: Line) -> int:
    """The hanging indent of a line: below its text, not below its label or sign."""
    if len(line) < 2:
        return 0
    first = _flat(line[0].text)
    return cell_len(first) if first.endswith(" ") or first in _SIGNS_OF_DIFFS else 0


_LEAST_END: Final = 12
"""Cells of the end of a path: with less room, its beginning says more."""


def fitted(line: Line, width: int, ellipsis: str) -> Line:
    """A line that is no wider than this, its end replaced by the ellipsis where it was.

    Of a path that is too long the beginning is replaced: its end tells it from others.
    """
    most, before = width * _MOST_CODES + 1, 0
    parts: list[Span] = []
    for span in line:
        text = _flat(span.text[-most:] if span.keeps_end else span.text[:most])
        room = width - before - len(ellipsis)
        if span.keeps_end and cell_len(text) > room + len(ellipsis) and room >= _LEAST_END:
            # What follows has no room.
            return (*parts, Span(ellipsis + _end_of(text, room), span.role))
        parts.append(Span(text, span.role))
        before += cell_len(text)
    line = tuple(parts)
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


def _end_of(text: str, room: int) -> str:
    """The end of a text that fits."""
    at = len(text)
    while at and cell_len(text[at - 1]) <= room:
        at -= 1
        room -= cell_len(text[at])
    # What joins two letters would be at an edge, and be shown.
    return text[at:].lstrip("\u200c\u200d")


def strip(line: Line, width: int, style_of: Callable[[Role], Style], rest: Style | None) -> Strip:
    """A line drawn.

    Args:
        line: No wider than the width.
        width: Of what is given.
        style_of: Its style.
        rest: How the rest of the row looks; None for like the widget.
    """
    drawn = [Segment(_flat(span.text), style_of(span.role)) for span in line if span.text]
    # Textual's own removal of colours fails on words without any style.
    return Strip(drawn).adjust_cell_length(width, rest or PLAIN)


def _flat(text: str) -> str:
    return text.replace("\t", TAB) if "\t" in text else text


class Wrapping:
    """Lines broken into rows of a width, a piece at a time, from the top.

    A row is where it begins: the number of its line and of its first character. Breaks come
    after spaces where there are any.
    """

    def __init__(
        self, lines: Sequence[Line], width: int, *, hanging: Callable[[Line], int] = lambda _: 0
    ) -> None:
        """Nothing is broken yet.

        Args:
            lines: To be broken.
            width: Of a row, in cells.
            hanging: How far in the further rows of a line are.
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
        """Break lines until there are this many rows more, or no lines."""
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
        end = self.ends(row)
        found = []
        for span in self.lines[line]:
            length = len(span.text)
            if start < length and end > 0:
                text = span.text[max(start, 0) : end]
                found.append(Span(text, span.role, span.line, span.leads_to))
            start -= length
            end -= length
        return tuple(found)

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
        text, start = self.text(self._next), self._from
        self._line_of.append(self._next)
        self._start_of.append(start)
        hanging = self._indent_of(self._next)
        width = self.width - (hanging if start else 0)
        window = text[start : start + width + 1]
        plain = window.isascii() and "\t" not in window
        end = start + (min(len(window), width) if plain else _fitting(text, start, width))
        if end >= len(text) or text[end] == " ":
            # The space goes with the row that it ends, where it cannot be seen.
            end = min(end + 1, len(text))
        elif (space := text.rfind(" ", start if start else hanging, end)) >= 0:
            # A word longer than a row begins on the row of its label.
            end = space + 1
        if end >= len(text):
            self._next += 1
            self._from = 0
        else:
            self._from = end


def wrapped(lines: Sequence[Line], width: int) -> list[Line]:
    """Lines broken into rows, without the spaces that they are broken at."""
    wrapping = Wrapping(lines, width)
    while not wrapping.is_done:
        wrapping.advance(100)
    rows = [wrapping.row(number) for number in range(len(wrapping))]
    return [
        (*row[:-1], replace(row[-1], text=row[-1].text.rstrip(" "))) if row else () for row in rows
    ]


def _fitting(text: str, start: int, width: int) -> int:
    """How many characters fit; one at least, with what combines with it."""
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
