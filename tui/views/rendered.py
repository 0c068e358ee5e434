"""A document drawn for a width: its blocks as lines whose spans know their line and target.

One rule: whatever Markdown turns into characters is made safe here: an entity is a control
character only once it is parsed.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tui.formatting import Line, Role, Span, one_line
from tui.widgets.drawing import cells, wrapped

if TYPE_CHECKING:
    from filestore.browse import Block, Run

NARROWEST: Final = 12
_LEAST: Final = 4
"""Cells of a column."""
_BETWEEN: Final = " │ "
_SIGNS: Final = {"> ": "▌ ", "- ": "• "}
_ROLES: Final[dict[str, Role]] = {"strong": "title", "emphasis": "emphasis", "code": "code"}


def rendered(found: "Iterable[Block]", width: int) -> list[Line]:
    """The lines of a document.

    Args:
        found: Its blocks, in order.
        width: In cells; tables and rules keep to it, all else is wrapped by who shows it.
    """
    lines: list[Line] = []
    width = max(width, NARROWEST)
    last = 0
    for block in found:
        if lines and block.line - last > 1:
            lines.append(())
        marks = [_SIGNS.get(mark, mark) for mark in block.marks]
        before = "".join(marks)
        rest = "".join(mark if mark == _SIGNS["> "] else " " * len(mark) for mark in marks)
        room = width - len(before)
        for number, body in enumerate(_bodies(block, room)):
            # The first span is a label, so that what goes on stands below the words.
            sign = (before if not number else rest) + ("  " if block.kind == "code" else "")
            if block.kind == "heading" and not number:
                sign += "#" * block.level + " "
            lines.append((Span(sign, "quiet", block.line), *body))
        last = max((span.line for one in lines[-1:] for span in one), default=block.line)
        last = max(last, block.line)
    return lines


def _bodies(block: "Block", room: int) -> list[Line]:
    if block.kind == "rule":
        return [(Span("─" * room, "quiet", block.line),)]
    if block.kind == "table":
        return _table(block, room)
    base: dict[str, Role] = {"heading": "heading", "code": "code"}
    return [_spans(one, base.get(block.kind, "text")) for one in block.lines]


def _spans(words: "Sequence[Run]", base: Role = "text") -> Line:
    spans: list[Span] = []
    for run in words:
        text = one_line(run.text.expandtabs(4) if base == "code" else run.text)
        role = _ROLES.get(run.style, base)
        if not run.target:
            spans.append(Span(text, role, run.line))
            continue
        spans.append(Span(text, "link", run.line, run.target))
        if "://" in run.target and run.target != run.text:
            spans.append(Span(f" ({one_line(run.target)})", "quiet", run.line, run.target))
    return tuple(spans)


def _table(block: "Block", room: int) -> list[Line]:
    """Its rows, with what does not fit a cell below it."""
    rows = [
        [_spans(cell, "text" if number else "title") for cell in row]
        for number, row in enumerate(block.rows)
    ]
    columns = max(map(len, rows), default=0)
    widths = [
        max((cells(row[at]) for row in rows if at < len(row)), default=0) for at in range(columns)
    ]
    room -= len(_BETWEEN) * (columns - 1)
    while sum(widths) > room and max(widths) > _LEAST:
        # The widest gives way to the others.
        widest = max(widths)
        others = [width for width in widths if width < widest]
        many = widths.count(widest)
        fair = max((room - sum(others)) // many, max(others, default=0), _LEAST)
        widths = [min(width, fair, widest - 1) if width == widest else width for width in widths]
    lines: list[Line] = []
    for number, row in enumerate(rows):
        columns_of_row = [wrapped([cell], width) for cell, width in zip(row, widths, strict=False)]
        height = max(map(len, columns_of_row), default=0)
        for at in range(height):
            made: list[Span] = []
            for column, (parts, width) in enumerate(zip(columns_of_row, widths, strict=False)):
                part = parts[at] if at < len(parts) else ()
                made += [Span(_BETWEEN, "quiet")] if column else []
                made += [*part, Span(" " * (width - cells(part)))]
            lines.append(tuple(made))
        if not number:
            lines.append((Span("─┼─".join("─" * width for width in widths), "quiet"),))
    return lines
