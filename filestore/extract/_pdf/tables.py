"""Tables of PDF pages: which boxes that another reader found are some, and what is in their cells.

The other reader says where cells are, and no word of its own is taken: ours are put into the cells
by their places. One rule: a page is changed only if each character of the lines that a table
replaces is in the table, and nothing here knows a PDF library.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.extract._pdf.lines import (
    Line,
    Measures,
    PageLines,
    has_leader,
    is_bullet,
    is_sparse,
)
from filestore.extract._pdf.words import Words, joined

_FEWEST_ROWS: Final = 2
_FARTHEST_ROW: Final = 4  # lines from one row of a table to the next; farther apart are headings
_MOST_COLUMNS: Final = 60
_NARROW: Final = 12.0  # font sizes: a piece of a row that looks like a cell
_WIDE: Final = 0.75  # font sizes a character: wider than any font
_SAME_ROW: Final = 0.5  # of the font size, between the bottoms of two words of a row
_ROW_PITCH: Final = 0.95  # of the usual distance between rows
_ROW_LEADING: Final = 1.45  # font sizes: farther apart are no lines of one cell
_FILLED: Final = 0.3  # of all cells
_PROSE_WORDS: Final = 8
_RUN_WORDS: Final = 4
_WORD_SPACE: Final = 0.5  # of the font size
_PROSE_LOWER: Final = 0.6  # of the words of a sentence
_LONG_CELL: Final = 60  # characters: of two columns one is prose next to its margin
_CODE: Final = 0.8  # of the words
_LEADERS: Final = 0.3  # of the rows

_NUMBER: Final = re.compile(r"[(+\-–−$€£¥#]*\d[\d.,:/'’%\-–]*[)%]?")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


class Box(Struct, frozen=True):
    """A region of a page, in points from the bottom left."""

    left: float
    bottom: float
    right: float
    top: float


class Grid(Struct, frozen=True):
    """A table as the other reader sees it: its region, and the boxes of its cells by row."""

    box: Box
    rows: tuple[tuple[Box | None, ...], ...]


class _Row(Struct, frozen=True):
    cells: tuple[tuple[Line, ...], ...]
    """The words of each cell."""

    @property
    def texts(self) -> list[str]:
        return [" ".join(word.text for word in cell) for cell in self.cells]

    @property
    def filled(self) -> int:
        return sum(map(bool, self.cells))

    @property
    def bottom(self) -> float:
        return min(word.bottom for cell in self.cells for word in cell)


def may_hold_table(page: PageLines, measures: Measures) -> bool:
    """Whether some rows of a page look like rows of cells: a cheap look before a dear one."""
    above = None
    order = sorted(page.lines, key=lambda line: -line.bottom)
    for number, row in enumerate(_visual(order)):
        if any(has_leader(line.text) for line in row):
            continue
        narrow = sum(line.width < _NARROW * line.size for line in row)
        apart = len(row) > 2 or (len(row) == 2 and narrow and not is_bullet(row[0].text))
        if apart or any(_has_gaps(line, measures) for line in row):
            if above is not None and number - above <= _FARTHEST_ROW:
                return True
            above = number
    return False


def _has_gaps(line: Line, measures: Measures) -> bool:
    tokens = line.text.split()
    if len(tokens) < 2:
        return False
    numbers = sum(any(map(str.isdigit, token)) for token in tokens)
    wide = line.width > _WIDE * max(line.size, 1.0) * len(line.text)
    return wide or numbers > len(tokens) / 2 > 1 or is_sparse(line, measures)


def _visual(words: Sequence[Line]) -> list[list[Line]]:
    """Words from top to bottom, put together where they are on one base line."""
    rows: list[list[Line]] = []
    for word in words:
        size = max(word.size, 1.0)
        if rows and abs(rows[-1][0].bottom - word.bottom) < _SAME_ROW * size:
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda word: word.left) for row in rows]


def with_tables(
    page: PageLines, words: Sequence[Line], grids: Sequence[Grid], measures: Measures
) -> PageLines:
    """The page with a line for each of its tables in place of what that holds.

    Args:
        page: As it was read.
        words: Its words, each as a line of its own.
        grids: Where the other reader sees tables.
        measures: What is usual in the document.
    """
    of_line = _words_of(page.lines, words)
    lines: dict[int, tuple[Line, ...]] = {}
    taken: set[int] = set()
    for grid in grids:
        inside = [word for word in words if _within(word, grid.box)]
        rows = _trimmed(_rows(inside, grid))
        own = {id(word) for row in rows for cell in row.cells for word in cell}
        touched = [n for n, found in enumerate(of_line) if any(id(w) in own for w in found)]
        if _is_table(rows, measures) and not own & taken and _is_whole(page, touched, of_line):
            taken |= own
            for number in touched:
                lines.setdefault(number, ())
            lines[touched[0]] += (_table_line(rows),)
    for number, tables in lines.items():
        runs = groupby(of_line[number], key=lambda word: id(word) in taken)
        rest = [_rest(page.lines[number], list(run)) for inside, run in runs if not inside]
        lines[number] = (*tables, *rest)
    whole = (lines.get(number, (line,)) for number, line in enumerate(page.lines))
    return replace(page, lines=tuple(line for some in whole for line in some))


def _words_of(lines: Sequence[Line], words: Sequence[Line]) -> list[list[Line]]:
    """The words of each line: both are in the order of the file."""
    found: list[list[Line]] = []
    rest = iter(words)
    for line in lines:
        length = _letters([line]).total()
        own: list[Line] = []
        while length > 0 and (word := next(rest, None)) is not None:
            own.append(word)
            length -= _letters([word]).total()
        found.append(own)
    return found


def _is_whole(page: PageLines, touched: Sequence[int], of_line: Sequence[Sequence[Line]]) -> bool:
    """Whether the words of some lines are all that the lines hold."""
    return all(_letters([page.lines[n]]) == _letters(of_line[n]) for n in touched)


def _middle(word: Line) -> tuple[float, float]:
    return (word.left + word.right) / 2, word.bottom + word.size * 0.4


def _within(word: Line, box: Box) -> bool:
    x, y = _middle(word)
    return box.left - 2 <= x <= box.right + 2 and box.bottom - 1 <= y <= box.top + 1


def _rows(words: Sequence[Line], grid: Grid) -> list[_Row]:
    """The words of a table in its cells, by row."""
    count = max((len(row) for row in grid.rows), default=0)
    if not words or not 2 <= count <= _MOST_COLUMNS or any(map(_is_mirrored, words)):
        return []
    columns = _columns(grid, count)
    tops = [max((box.top for box in row if box is not None), default=None) for row in grid.rows]
    found: defaultdict[int, list[tuple[tuple[Line, ...], ...]]] = defaultdict(list)
    for line in _visual(sorted(words, key=lambda word: -word.bottom)):
        level = median(_middle(word)[1] for word in line)
        above = (n for n, top in enumerate(tops) if top is not None and top >= level)
        number = max(above, default=0)
        cells: list[list[Line]] = [[] for _ in range(count)]
        for word in line:
            cells[_column(word, grid.rows[number], columns)].append(word)
        for cell in [cell for cell in cells if len(cell) > 1 and _is_number(cell)]:
            # Two numbers are two values, even where the other reader put them into one cell.
            alone, cell[1:] = cell[1:], []
            for word in alone:
                cells[_column(word, (), columns)].append(word)
        found[number].append(tuple(map(tuple, cells)))
    firsts = [_middle(_first_word(found[number][0]))[1] for number in sorted(found)]
    pitch = median([one - other for one, other in pairwise(firsts)] or [0.0])
    return [row for number in sorted(found) for row in _parted(found[number], pitch)]


def _first_word(line: Sequence[Sequence[Line]]) -> Line:
    return next(word for cell in line for word in cell)


def _is_mirrored(word: Line) -> bool:
    return not word.text.isascii() and _RIGHT_TO_LEFT.search(word.text) is not None


def _columns(grid: Grid, count: int) -> list[tuple[float, float]]:
    """From where to where the cells of each column usually reach."""
    columns: list[tuple[float, float]] = []
    for column in range(count):
        boxes = [row[column] for row in grid.rows if column < len(row)]
        wide = [box for box in boxes if box is not None and box.right > box.left]
        wide = wide or [box for box in boxes if box is not None]
        left = median([box.left for box in wide]) if wide else grid.box.right
        right = median([box.right for box in wide]) if wide else grid.box.right
        columns.append((left, max(left, right)))
    return columns


def _column(word: Line, boxes: Sequence[Box | None], columns: Sequence[tuple[float, float]]) -> int:
    """The column of a word: that of the cell around it, else the nearest one."""
    x, y = _middle(word)
    for column, box in enumerate(boxes):
        if box is not None and box.left - 1 <= x <= box.right + 1 and box.bottom <= y <= box.top:
            return column
    return min(
        range(len(columns)),
        key=lambda column: (
            max(columns[column][0] - word.right, word.left - columns[column][1]),
            abs(sum(columns[column]) / 2 - x),
        ),
    )


def _parted(lines: Sequence[tuple[tuple[Line, ...], ...]], pitch: float) -> list[_Row]:
    """The rows that the lines of one row of the other reader are.

    A number is never continued by another; and a line with a label and a value is a row if it is
    farther from the line above than lines of one cell are.
    """
    rows: list[list[tuple[tuple[Line, ...], ...]]] = []
    for line in lines:
        numbers = {n for n, cell in enumerate(line) if _is_number(cell)}
        if rows and not any(_is_number(other[n]) for other in rows[-1] for n in numbers):
            distance = _first_word(rows[-1][-1]).bottom - _first_word(line).bottom
            far = distance >= _ROW_LEADING * max(_first_word(line).size, 1.0)
            as_rows = bool(numbers - {0}) and 0 < _ROW_PITCH * pitch <= distance
            if not (line[0] and sum(map(bool, line)) > 1 and (far or as_rows)):
                rows[-1].append(line)
                continue
        rows.append([line])
    return [
        _Row(tuple(tuple(word for line in row for word in line[n]) for n in range(len(row[0]))))
        for row in rows
    ]


def _is_number(cell: Sequence[Line]) -> bool:
    return bool(cell) and all(_NUMBER.fullmatch(word.text[:40]) for word in cell)


def _trimmed(rows: list[_Row]) -> list[_Row]:
    """The rows without prose above and below them."""
    start, end = 0, len(rows)
    while start < end and _is_apart(rows[start]):
        start += 1
    while start < end and _is_apart(rows[end - 1]):
        end -= 1
    return rows[start:end]


def _is_apart(row: _Row) -> bool:
    """Whether a row at the edge of a table is a caption, a note, or a line of prose."""
    texts = list(filter(None, row.texts))
    words = " ".join(texts).split()
    if len(texts) == 1:
        return len(row.cells) > 2 or len(words) >= _PROSE_WORDS
    if len(words) >= _RUN_WORDS and _is_run(row):
        return True
    lower = sum(word.islower() for word in words)
    return (
        len(words) >= _PROSE_WORDS
        and lower >= _PROSE_LOWER * len(words)
        and not any(any(map(str.isdigit, word)) for word in words)
    )


def _is_run(row: _Row) -> bool:
    """Whether the cells follow one another in a line, no farther apart than two words."""
    cells = [cell for cell in row.cells if cell]
    return all(
        abs(one[-1].bottom - other[0].bottom) < _SAME_ROW * max(other[0].size, 1.0)
        and other[0].left - one[-1].right < _WORD_SPACE * max(other[0].size, 1.0)
        for one, other in pairwise(cells)
    )


def _is_table(rows: Sequence[_Row], measures: Measures) -> bool:
    """Whether rows are a table: no contents, no prose, no code, no axis of a chart."""
    if len(rows) < _FEWEST_ROWS or max(row.filled for row in rows) < 2:
        return False
    cells = [cell for row in rows for cell in row.cells]
    filled = [cell for cell in cells if cell]
    texts = [" ".join(word.text for word in cell) for cell in filled]
    if len(filled) < _FILLED * len(cells) or not any(map(_WORD.search, texts)):
        return False
    words = [word for cell in filled for word in cell]
    if not measures.typewriter and sum(w.typewriter for w in words) > _CODE * len(words):
        return False
    if sum(has_leader(" ".join(row.texts)) for row in rows) > _LEADERS * len(rows):
        return False
    return not _is_contents(rows) and not _is_prose(rows)


def _is_contents(rows: Sequence[_Row]) -> bool:
    """Whether titles are followed by pages that only rise."""
    last = [row.texts[-1] for row in rows]
    pages = [int(text) for text in last if text.isascii() and text.isdigit() and len(text) < 6]
    rising = all(one <= other for one, other in pairwise(pages))
    titles = sum(len(" ".join(row.texts[:-1])) > 8 for row in rows)
    return (
        len(rows[0].cells) <= 3
        and len(pages) > 2
        and len(pages) >= 0.8 * len(rows)
        and rising
        and pages[-1] - pages[0] > len(pages) // 2
        and titles >= 0.7 * len(rows)
        and not any(_is_number(row.cells[n]) for row in rows for n in range(1, len(row.cells) - 1))
    )


def _is_prose(rows: Sequence[_Row]) -> bool:
    """Whether the cells are lines of sentences: columns, or text next to its margin."""
    columns = len(rows[0].cells)
    texts = [[row.texts[n] for row in rows if row.cells[n]] for n in range(columns)]
    full = [column for column in texts if column]
    if len(full) < 2:
        return True
    long = [column for column in full if median(map(len, column)) >= _LONG_CELL]
    if len(long) == len(full):
        return True
    numbers = sum(bool(_NUMBER.fullmatch(text[:40])) for column in full for text in column)
    alone = sum(row.filled == 1 for row in rows)
    if len(full) == 2 and not numbers:
        open_ends = sum(_goes_on(column) for column in full)
        return bool(long) or alone > 0.4 * len(rows) or open_ends > 0.2 * len(rows)
    if not numbers:
        return sum(map(_goes_on, full)) > 0.3 * sum(map(len, full))
    return len(full) == 2 and bool(long) and alone > 0.4 * len(rows)


def _goes_on(column: Sequence[str]) -> int:
    """How many cells begin as the middle of a sentence, and follow one that has not ended."""
    return sum(
        after[:1].islower() and len(before.split()) > 3 and before[-1] not in ".:;!?"
        for before, after in pairwise(column)
    )


def _letters(lines: Sequence[Line]) -> Counter[str]:
    return Counter("".join(line.text + "-" * line.hyphen for line in lines).replace(" ", ""))


def _rest(line: Line, words: Sequence[Line]) -> Line:
    text = " ".join(word.text + "-" * word.hyphen for word in words[:-1])
    return replace(
        line,
        text=f"{text} {words[-1].text}".strip(),
        left=words[0].left,
        right=words[-1].right,
        hyphen=words[-1].hyphen,
    )


def _table_line(rows: Sequence[_Row]) -> Line:
    words = [word for row in rows for cell in row.cells for word in cell]
    columns = range(len(rows[0].cells))
    lefts = [min((w.left for row in rows for w in row.cells[n]), default=0.0) for n in columns]
    return Line(
        text=" ".join(word.text for word in words),
        page=words[0].page,
        left=min(word.left for word in words),
        right=max(word.right for word in words),
        bottom=max(word.bottom for word in words),
        size=median(word.size for word in words),
        table=tuple(row.cells for row in rows),
        columns=tuple(lefts),
    )


def repeats_header(first: Line, line: Line, words: Words) -> bool:
    """Whether a table begins with the row that another page began it with."""
    return row_text(first.table[0], words) == row_text(line.table[0], words)


def row_text(row: Sequence[Sequence[Line]], words: Words) -> str:
    """A row as Markdown."""
    return f"| {' | '.join(_cell_text(cell, words) for cell in row)} |"


def _cell_text(cell: Sequence[Line], words: Words) -> str:
    text = ""
    for before, word in zip((None, *cell), cell, strict=False):
        if before is not None:
            same_line = abs(before.bottom - word.bottom) < _SAME_ROW * max(word.size, 1.0)
            hyphen = before.hyphen and not same_line
            text += "-" if before.hyphen and same_line else ""
            text += " " if same_line else joined(text, word.text, hyphen=hyphen, words=words)
        text += word.text
    if cell and cell[-1].hyphen:
        text += "-"
    return text.replace("\\", "\\\\").replace("|", "\\|")
