"""Sheets of a workbook as Markdown: the rows of one grid into tables with a header, and notes.

Pure. One rule: a value stays in its column, whatever rows and columns are left out around it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_Row = list[str]
_FIGURE: Final = re.compile(r"[-+(]?\W{0,3}[0-9][0-9.,:/%TZ\s-]*\W{0,4}")
_YEAR: Final = re.compile("(?:19|20)[0-9]{2}")


def tidied(text: str) -> str:
    """A sheet as tables that begin with their header, without what is empty around them.

    Args:
        text: The sheet as one or more tables of Markdown, cells parted by a bar in spaces.
    """
    blocks: list[str] = []
    rows: list[_Row] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            if line.strip():
                blocks += tables(rows)
                rows = []
                blocks.append(line)
        elif not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line[2:-2].split(" | ")])
    blocks += tables(rows)
    return "\n\n".join(blocks)


def tables(rows: Sequence[_Row]) -> Iterator[str]:
    """Tables, and single cells above and between them as paragraphs; cells are Markdown."""
    table: list[_Row] = []
    after_gap = True
    for at, row in enumerate(rows):
        filled = [cell for cell in row if cell]
        if not filled:
            after_gap = True
            continue
        following = rows[at + 1] if at + 1 < len(rows) else []
        is_alone = len(filled) == 1 and (after_gap and not any(following))
        heads = after_gap and len(filled) > 1 and any(following) and not any(map(_figure, filled))
        if heads or is_alone or (len(filled) == 1 and not table):
            if table and (heads or not _is_within(row, table)):
                yield _table(table)
                table = []
            if len(filled) == 1 and not table:
                yield filled[0]
                continue
        table.append(row)
        after_gap = False
    if table:
        yield _table(table)


def _is_within(row: _Row, table: Sequence[_Row]) -> bool:
    """Whether the only cell of a row is a figure below others."""
    place = next(at for at, cell in enumerate(row) if cell)
    return _figure(row[place]) and any(len(above) > place and above[place] for above in table)


def _table(rows: Sequence[_Row]) -> str:
    used = [at for row in rows for at, cell in enumerate(row) if cell]
    first, end = min(used), max(used) + 1
    grid = [row[first:end] + [""] * (end - max(first, len(row))) for row in rows]
    if end - first == 1:
        return "\n\n".join(row[0] for row in grid)
    if len(grid) > 1 and _is_headless(*grid[:2]):
        grid.insert(0, [""] * (end - first))
    head, *body = ("| " + " | ".join(row) + " |" for row in grid)
    return "\n".join([head, "| " + " | ".join(["---"] * (end - first)) + " |", *body])


def _is_headless(first: _Row, second: _Row) -> bool:
    """Whether a first row has figures where the next has, and so names no columns."""
    figures = [cell for cell in first if _figure(cell)]
    alike = all(_figure(one) == _figure(other) for one, other in zip(first, second, strict=True))
    return bool(figures) and alike and not all(map(_YEAR.fullmatch, figures))


def _figure(cell: str) -> bool:
    return _FIGURE.fullmatch(cell) is not None
