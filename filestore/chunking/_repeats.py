"""What a piece says again where a block was cut: a table's header, a fence, the item above.

One rule: every line that is repeated is one of the text above the cut, so that a reader can tell
it from what a person wrote.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from markdown_it.token import Token

Span = tuple[int, int]
"""Half-open, in characters."""

_NO_PREFIX: Final = re.compile(r"[^\s>]")
_VISIBLE: Final = re.compile(r"\S")


class Repeat(Struct, frozen=True, kw_only=True):
    """What goes before a piece that starts inside a block."""

    start: int
    """The first cut that needs it."""
    end: int
    """The first one behind that does not."""
    lines: Span
    """The lines that are repeated."""
    closing: str = ""
    """The line that closes the piece before, with its line end; of a fence only."""


def repeats_of(
    tokens: Sequence["Token"], text: str, starts: Sequence[int], offset: int
) -> Iterator[Repeat]:
    """The repeats of the blocks of a text, outer ones first.

    Args:
        tokens: The parser's, in order.
        text: What it parsed.
        starts: Where the lines of it start, counted from ``offset``.
        offset: Where the text itself starts.
    """

    def place(line: int) -> int:
        return starts[line] if line < len(starts) else offset + len(text)

    for number, token in enumerate(tokens):
        if token.map is None:
            continue
        (first, last), lines, closing = token.map, 0, ""
        end = place(last)
        if token.type == "list_item_open" and tokens[number + 1].type == "paragraph_open":
            lines = (tokens[number + 1].map or [first, first])[1] - first
        elif token.type == "table_open":
            lines = 2
        elif token.type == "fence":
            lines = 1
            opening = text[place(first) - offset : place(first + 1) - offset]
            prefix = opening[: opening.find(token.markup)]
            closing = f"{_NO_PREFIX.sub(' ', prefix)}{token.markup}\n"
            written = text[place(last - 1) - offset : end - offset].lstrip(" \t>").rstrip()
            if last - 1 > first and not written.strip(token.markup[0]):
                end = place(last - 1)
        start = place(first + lines)
        if lines and _VISIBLE.search(text, start - offset, max(end, start) - offset):
            yield Repeat(start=start, end=end, lines=(place(first), start), closing=closing)


def active(repeats: Iterable[Repeat], cut: int) -> list[Repeat]:
    """The ones a cut needs, in the order of the text."""
    return [one for one in repeats if one.start <= cut < one.end]


def before(text: str, needed: Iterable[Repeat]) -> str:
    """What goes before a piece; an item that starts on the line of another is there once."""
    lines: list[str] = []
    done = -1
    for start, end in sorted(one.lines for one in needed):
        lines.append(text[max(start, done) : end])
        done = max(end, done)
    return "".join(lines)


def after(text: str, needed: Iterable[Repeat], cut: int) -> str:
    """What closes the piece that a cut ends."""
    closing = "".join(one.closing for one in needed)
    return f"\n{closing}" if closing and text[cut - 1] != "\n" else closing
