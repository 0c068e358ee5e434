"""Formatting: values of the store into lines of text. Pure; knows no Textual, no Rich.

Here a line itself: spans, each with a role; the line of progress; command lines quoted for a shell.
One rule: every text of a line is safe for a terminal, whatever the file, name or key it came from,
and a command line that is shown can be pasted or says how many names it leaves out.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, get_args

from msgspec import Struct

# The functions, not the modules of the same names that the package also has.
from filestore.browse import safe_text, shown_path

if TYPE_CHECKING:
    from filestore import FilestoreError

Role = Literal[
    "text", "title", "quiet", "good", "note", "warning", "error", "key", "mark", "match",
    "added", "removed", "hunk", "heading", "code", "emphasis", "link",
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
    line: int = 0
    """Of the file that is shown, in which it begins; 0 for none."""
    leads_to: str | tuple[str, int] = ""
    """A link as it is written, or a file and its line; "" for nowhere."""
    keeps_end: bool = False
    """Whether it is cut at its beginning, as a path that others share it with."""


Line = tuple[Span, ...]
"""One line, from left to right."""


def line(text: object, role: Role = "text") -> Line:
    """One line of one part, made safe for a terminal."""
    return (span(text, role),)


def span(text: object, role: Role = "text", *, keeps_end: bool = False) -> Span:
    """Text with one role, made safe for a terminal and kept on one line."""
    return Span(one_line(text), role, keeps_end=keeps_end)


def one_line(text: object) -> str:
    """Any value as one line that is safe for a terminal."""
    return safe_text(str(text), keep_newlines=False)


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def field(label: str, value: object, role: Role = "text") -> Line:
    """A value behind its label."""
    return (span(f"{label:<{LABEL_WIDTH}}", "quiet"), span(value, role))


def arrow(*, is_open: bool) -> str:
    """The sign before a row that opens: whether it is open."""
    return "▾ " if is_open else "▸ "


def error_lines(
    error: "FilestoreError", role: Role = "error", *, is_whole: bool = False
) -> list[Line]:
    """What went wrong, what to do about it, and where it is whole all the rest."""
    lines = [line(shown_path(one), role) for one in error.message.splitlines() or [""]]
    lines += [line(one) for one in error.remedy_lines]
    if is_whole and error.detail:
        lines += [(), *(line(one, "quiet") for one in error.detail.splitlines())]
    return lines


def more_lines(total: int, shown: int) -> list[Line]:
    """Below the first ones of a longer list."""
    return [line(f"  … {total - shown:,} more", "quiet")] if total > shown else []


def cut(text: str, length: int) -> str:
    """A text, shortened where it is longer."""
    # What joins two letters would be at an edge, and be shown.
    return (
        text if len(text) <= length else text[: max(length - 3, 0)].rstrip("\u200c\u200d") + "..."
    )


def end_of(path: str, most: int) -> str:
    """The end of a path, whole names where one fits."""
    if len(path) <= most:
        return path
    kept = ""
    for name in reversed(path.split("/")):
        longer = f"{name}/{kept}" if kept else name
        if len(longer) > most - 2:
            break
        kept = longer
    return f"…/{kept}" if kept else f"…{path[1 - most :]}"


def plain(lines: Sequence[Line]) -> str:
    """The text alone, a line each."""
    return "\n".join("".join(span.text for span in one) for one in lines)


MOST_NAMED: Final = 10
"""Names behind one option of a command line that is shown, not copied."""
_WORD: Final = re.compile(r"(?:\$'(?:\\.|[^'\\])*'|'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\])+")
"""A word as `quoted` writes it, or as a person typed it."""


def quoted(word: str) -> str:
    r"""A word for a shell; one that would steer a terminal is written as ``$'\xNN'``."""
    if shown_path(word) == word:
        return shlex.quote(word)
    escaped = ""
    for one in word:
        if one in "\\'":
            escaped += f"\\{one}"
        elif shown_path(one) == one:
            escaped += one
        else:
            is_undecoded = "\udc80" <= one <= "\udcff"
            data = one.encode("utf-8", "surrogateescape" if is_undecoded else "surrogatepass")
            escaped += "".join(f"\\x{byte:02x}" for byte in data)
    return f"$'{escaped}'"


def all_quoted(words: Iterable[str]) -> str:
    """Words for a shell, one after the other."""
    return " ".join(map(quoted, words))


def shortened(command: str) -> str:
    """A command line to be looked at: of very many names, the first ones and how many more."""
    words = [found.group() for found in _WORD.finditer(command)]
    shown: list[str] = []
    for is_name, group in groupby(words, key=lambda word: not word.startswith(("-", "&&"))):
        run = list(group)
        more = len(run) - MOST_NAMED
        shown += run
        if is_name and more > 1:
            shown[-more:] = [f"… and {more:,} more"]
    return " ".join(shown) if len(shown) < len(words) else command


_SURE_AFTER_S: Final = 0.5
"""Before this, no rate is shown."""


def progress_line(
    stage: str, *, done: int, total: int | None, elapsed_s: float, width: int = 24
) -> Line:
    """One line of progress.

    Args:
        stage: What is being done.
        done: How many are done.
        total: How many there are; None while unknown.
        elapsed_s: The time so far.
        width: Of the bar.
    """
    rate = done / elapsed_s if elapsed_s >= _SURE_AFTER_S else 0.0
    words = [stage or "beginning"]
    if total:
        words.append(f"{min(done, total):,}/{total:,}")
    elif done:
        words.append(f"{done:,}")
    if rate:
        words.append(f"{rate:,.0f}/s" if rate >= 1 else "less than 1/s")
    if rate and total:
        words.append(f"{duration(max(0, total - done) / rate)} left")
    if not total:
        return (span("  ".join(words)),)
    # A bar that every terminal can show.
    full = width * min(done, total) // total
    bar = Span(f"[{'#' * full}{'.' * (width - full)}] ", "note")
    return (bar, span("  ".join(words)))


def duration(seconds: float) -> str:
    """A time to wait, as roughly as it is known."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
