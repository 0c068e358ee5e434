"""Lines of text in spans, each with a role; used by all formatting."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from msgspec import Struct

# The function, not the module of the same name that the package also has.
from filestore.browse import safe_text

Role = Literal[
    "text", "title", "quiet", "good", "note", "warning", "error", "key", "mark", "match",
    "added", "removed", "hunk",
    "hue0", "hue1", "hue2", "hue3", "hue4", "hue5", "hue6", "hue7",
]  # fmt: skip
"""The role of a span; the theme gives it a style, and shape shows it too, never colour
alone. The hues distinguish things without an order."""
ROLES: Final[tuple[str, ...]] = get_args(Role)
LABEL_WIDTH: Final = 11


class Span(Struct, frozen=True):
    """Text with one role."""

    text: str
    role: Role = "text"


Line = tuple[Span, ...]
"""One line, from left to right."""


def line(text: object, role: Role = "text") -> Line:
    """One line of one part, made safe for a terminal."""
    return (span(text, role),)


def span(text: object, role: Role = "text") -> Span:
    """Text with one role, made safe for a terminal and kept on one line."""
    return Span(one_line(text), role)


def one_line(text: object) -> str:
    """Any value as one line that is safe for a terminal."""
    return safe_text(str(text), keep_newlines=False)


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def field(label: str, value: object, role: Role = "text") -> Line:
    """A value behind its label."""
    return (span(f"{label:<{LABEL_WIDTH}}", "quiet"), span(value, role))


def cut(text: str, length: int) -> str:
    """A text, shortened where it is longer."""
    # What joins two letters would stand at an edge, and be shown.
    return (
        text if len(text) <= length else text[: max(length - 3, 0)].rstrip("\u200c\u200d") + "..."
    )


def plain(lines: Sequence[Line]) -> str:
    """The text alone, a line each."""
    return "\n".join("".join(span.text for span in one) for one in lines)
