"""The lines of PDF pages: their sizes and distances, and the blocks that they make.

A PDF knows neither paragraphs nor words that were broken; both follow from where lines start and
end. One rule: lines are joined only where the next word would not have fitted, as prose is set,
and nothing here knows the PDF library, so that every decision can be tried with lines made up.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

DEFAULT_LEADING: Final = 1.2
"""From one line to the next, in font sizes, where the document does not show it."""

_LEADERS: Final = (". . . .", "....", "……", "… …", "· · · ·", "····", "______")
_LEADER_RUN: Final = re.compile(
    r"\s*(?:(?:\. ?){4,}+|(?:… ?){2,}+|(?:· ?){4,}+|_{6,})\s*(?=\w{1,6}$)"
)
_WIDE: Final = re.compile(r"[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]")
_SPARSE: Final = 1.45  # this many times the usual width of a character means gaps between columns
_MONOSPACED_SHARE: Final = 0.6  # a document mostly in a typewriter font is not mostly code
_SAMPLED_PAGES: Final = 100
_SAME_ROW: Final = 0.35  # of the font size, between the bottoms of two pieces of one line


Turn = Literal["none", "quarter", "slanted"]


class Line(Struct, frozen=True):
    """One line as it is on a page; lengths are in points, from the bottom left."""

    text: str
    """Without white space around it, and without the hyphen that breaks its last word."""
    page: int
    """From 0."""
    left: float
    right: float
    """Of right-to-left text both are mirrored, so that `left` is where reading starts."""
    bottom: float
    size: float
    """Of the font in the middle of the line."""
    typewriter: bool = False
    """Whether it is set in a monospaced font from start to end."""
    hyphen: bool = False
    """Whether a hyphen followed the text, which may belong to the word or to the line break."""
    table: "tuple[tuple[tuple[Line, ...], ...], ...]" = ()
    """Where it is a whole table: the words of each cell, by row."""
    columns: tuple[float, ...] = ()
    """Where the columns of the table start."""
    spaced: bool = False
    """Whether white space followed the text."""
    bold: bool = False
    """Whether it is set in a bold font from start to end."""
    turn: Turn = "none"
    """How the letters are turned on the page."""
    tag: tuple[int, int] = (0, 0)
    """Of a heading in the structure of the file: its level from 1, and its number on the page."""

    @property
    def width(self) -> float:
        """From its start to its end."""
        return self.right - self.left


class PageLines(Struct, frozen=True, kw_only=True):
    """What is on one page."""

    height: float
    lines: tuple[Line, ...]
    width: float = 0.0
    fields: tuple[Line, ...] = ()
    """What was filled in or written on top; with the label, where the file has only that."""
    by_rows: bool = False
    """Whether the file may draw columns, or numbers of lines, one row after the other."""
    unread: str = ""
    """Why the page has text that is not read; empty where it has none."""


class Measures(Struct, frozen=True, kw_only=True):
    """What is usual in a document."""

    size: float
    """Of the font that most characters are in."""
    leading: float
    """From one line of a paragraph to the next, in font sizes."""
    advance: float
    """Of one character, in font sizes."""
    typewriter: bool
    """Whether it is set in a monospaced font as a whole."""


def measure(pages: Sequence[PageLines]) -> Measures:
    """Finds what is usual among the lines of a document, of a long one from a part of its pages."""
    sizes: Counter[float] = Counter()
    distances: Counter[float] = Counter()
    advances: list[float] = []
    typewriter = count = 0
    for page in pages[:: max(1, len(pages) // _SAMPLED_PAGES)]:
        count += len(page.lines)
        for line in page.lines:
            length = len(line.text)
            typewriter += line.typewriter
            sizes[line.size] += length
            if length >= 20 and line.right > line.left:
                advances.append(_advance(line))
        for before, line in pairwise(page.lines):
            size = line.size
            distance = (before.bottom - line.bottom) / (size if size > 1.0 else 1.0)
            if 0.8 < distance < 2.2 and abs(before.size - size) < 0.1 * size:
                distances[distance] += 1
    # Few values differ, and to round one takes longer than to count it.
    sizes = _counted(sizes, lambda size: round(size * 2) / 2)
    leadings = _counted(distances, lambda distance: round(distance, 2))
    return Measures(
        size=max(sizes, key=lambda size: (sizes[size], -size), default=10.0) or 10.0,
        leading=max(leadings, key=lambda key: (leadings[key], -key), default=DEFAULT_LEADING),
        advance=median(advances) if advances else 0.5,
        typewriter=typewriter > _MONOSPACED_SHARE * count,
    )


def _counted(counts: Mapping[float, int], rounded: Callable[[float], float]) -> Counter[float]:
    """The counts of the rounded values."""
    whole: Counter[float] = Counter()
    for value, count in counts.items():
        whole[rounded(value)] += count
    return whole


def _advance(line: Line) -> float:
    size = line.size if line.size > 1.0 else 1.0
    return (line.right - line.left) / (units(line.text) * size)


def units(text: str) -> int:
    """The length of a text in columns: East Asian characters take two."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))


def is_sparse(line: Line, measures: Measures) -> bool:
    """Whether there are gaps in a line, as between columns of a table, or dots that fill them."""
    if " " not in line.text or line.table:
        return False
    return _advance(line) > _SPARSE * measures.advance or has_leader(line.text)


def has_leader(text: str) -> bool:
    """Whether dots lead the eye to a page number, as in a table of contents."""
    # Almost every line has no part of one, which is quicker to see.
    dotted = "." in text and (".." in text or ". ." in text)
    if (
        not dotted
        and "___" not in text
        and (text.isascii() or ("…" not in text and "·" not in text))
    ):
        return False
    return any(leader in text for leader in _LEADERS)


def without_leader(text: str) -> str:
    """The text with one sign for the dots before the page number."""
    return _LEADER_RUN.sub(" … ", text) if has_leader(text) else text


def joined_pieces(lines: Sequence[Line]) -> list[Line]:
    """Puts together what is in one row but was broken up by raised or lowered characters."""
    whole: list[Line] = []
    for line in lines:
        before = whole[-1] if whole else None
        size = max(before.size, line.size) if before else line.size
        if (
            before is None
            or before.hyphen
            or abs(before.bottom - line.bottom) >= _SAME_ROW * size
            or not -0.3 * size <= line.left - before.right < 1.2 * size
        ):
            whole.append(line)
            continue
        numbers = before.text[-1].isdigit() and line.text[0].isdigit()
        space = " " if numbers or line.left - before.right > 0.2 * line.size else ""
        whole[-1] = replace(
            before,
            text=f"{before.text}{space}{line.text}",
            right=line.right,
            size=size,
            typewriter=before.typewriter and line.typewriter,
            hyphen=line.hyphen,
            spaced=line.spaced,
            bold=before.bold and line.bold,
        )
    return whole


Relation = Literal["flow", "line", "gap"]
Kind = Literal["text", "code", "heading", "table"]

BULLETS: Final = "•◦▪‣∙●○■□◾⁃➢➤►▶◆◇"
_BULLET: Final = re.compile(rf"(?:[{BULLETS}]|[*\-–—] )\s*")
_NUMBERED: Final = re.compile(r"(?:\(?(?:[0-9]{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]|\[[0-9]{1,3}\]) ?\S?")
_ITEM_STARTS: Final = frozenset(BULLETS + "*-–—[")
_SENTENCE_END: Final = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")
_FULL_SENTENCE_END: Final = re.compile(r"[.!?。！？][\"'”’)\]]*$")

_LONGEST_END: Final = 12
_FULL_SHARE: Final = 0.3  # of the lines of prose reach the margin
_LONG_SHARE: Final = 0.55  # of the way to the margin: no line of an address or a verse
_FEW_FLOWS: Final = 2
_MANY_FLOWS: Final = 6
_OPEN_SHARE: Final = 0.7  # of the lines of a long block end within a sentence: no verse
_RECENT_LINES: Final = 50

_LOOSE: Final = 1.15  # times the usual leading: more is the space between paragraphs
_TABLE_LOOSE: Final = 2.2  # rows of a table are further apart
_CODE_LOOSE: Final = 3.8  # font sizes: over two empty lines of code
_SAME_SIZE: Final = 0.12
_INDENT: Final = 0.6  # font sizes
_NARROWEST: Final = 9.0  # font sizes: narrower columns are cells
_COLUMN: Final = 4.0  # font sizes: lines that start this near each other share a column


class Heading(Struct, frozen=True, kw_only=True):
    """A line, or several, that are a heading."""

    level: int
    """From 1."""
    lines: int


class Block(Struct, kw_only=True):
    """Lines that belong together."""

    kind: Kind
    lines: list[Line]
    flows: list[bool] = field(default_factory=list)
    """Before each line but the first: whether the text flows on into it."""
    level: int = 0
    """Of a heading."""
    limit: float = 0.0
    """How far to the right the lines of its column reach."""

    @property
    def full(self) -> bool:
        """Whether the last line leaves no room for another word."""
        return _reaches(self.lines[-1], self.limit, "")

    def add(self, line: Line, *, flows: bool) -> None:
        """Puts another line to the end."""
        self.lines.append(line)
        self.flows.append(flows)


def is_bullet(text: str) -> bool:
    """Whether a line starts an item of a list that is not numbered."""
    return _BULLET.match(text) is not None


def without_bullet(text: str) -> str:
    """The text of an item after its bullet."""
    return _BULLET.sub("", text, count=1)


def is_item(text: str) -> bool:
    """Whether a line starts an item of any list."""
    if text[0] not in _ITEM_STARTS and "." not in text[:6] and ")" not in text[:6]:
        return False  # almost every line, without a search
    return is_bullet(text) or _NUMBERED.match(text) is not None


def page_blocks(
    lines: Sequence[Line], headings: Mapping[int, Heading], measures: Measures
) -> list[Block]:
    """Cuts the lines of one page into blocks.

    Args:
        lines: In reading order.
        headings: By the position of their first line.
        measures: What is usual in the document.
    """
    blocks: list[Block] = []
    sparse = [is_sparse(line, measures) for line in lines]
    limits = _limits(lines, sparse)
    position = 0
    while position < len(lines):
        heading = headings.get(position)
        if heading is not None:
            taken = list(lines[position : position + heading.lines])
            blocks.append(
                Block(
                    kind="heading",
                    lines=taken,
                    flows=[True] * (len(taken) - 1),
                    level=heading.level,
                )
            )
            position += len(taken)
            continue
        line = lines[position]
        if line.table:
            blocks.append(Block(kind="table", lines=[line]))
            position += 1
            continue
        limit = limits[position - 1] if position else 0.0
        gaps = sparse[position] + sparse[position - 1]
        _place(blocks, line, limit, measures, gaps)
        blocks[-1].limit = limits[position]
        position += 1
    for block in blocks:
        if block.kind == "text":
            _rejoin(block, measures)
    return blocks


def _rejoin(block: Block, measures: Measures) -> None:
    """Lets lines flow on that end in the middle of a sentence, as of text without a straight edge.

    Verses keep their lines, as few of them reach the margin.
    """
    count = len(block.flows)
    full = sum(block.flows) / max(1, count)
    open_ends = sum(
        not line.text[0].isupper() and (before.hyphen or before.text[-1].isalnum())
        for before, line in pairwise(block.lines)
    )
    if count >= _MANY_FLOWS and open_ends >= _OPEN_SHARE * count:
        full = 1.0
    for place, flows in enumerate(block.flows):
        before, line = block.lines[place : place + 2]
        if flows or not line.text[0].islower() or _ends(_SENTENCE_END, before):
            continue
        long = before.width >= _LONG_SHARE * (block.limit - before.left)
        enough = _FULL_SHARE if before.text[-1] != "," else 2 * _FULL_SHARE
        if (full >= enough or (count <= _FEW_FLOWS and before.text[-1] != ",")) and long:
            sparse = is_sparse(before, measures) or is_sparse(line, measures)
            block.flows[place] = not sparse and not is_item(line.text)


def _place(blocks: list[Block], line: Line, limit: float, measures: Measures, sparse: int) -> None:
    """Adds a line to the last block, or starts another with it.

    Args:
        blocks: Those of the page so far.
        line: The next one.
        limit: How far to the right the lines of the column before it reach.
        measures: What is usual in the document.
        sparse: How many of the line and the one before it have gaps.
    """
    code = line.typewriter and not measures.typewriter
    last = blocks[-1] if blocks and blocks[-1].kind in ("text", "code") else None
    if last is not None and (code or last.kind == "text"):
        relation = _relation(last, line, limit, measures, sparse)
        flows = relation == "flow"
        # A line within a paragraph may be nothing but a long name in the font of code.
        before = last.lines[-1]
        aligned = abs(before.left - line.left) < 1 and not before.text.endswith(":")
        within = code and last.kind == "text" and flows and aligned
        if relation != "gap" and (within or code == (last.kind == "code")):
            last.add(line, flows=flows)
            return
    blocks.append(Block(kind="code" if code else "text", lines=[line]))


def _relation(block: Block, line: Line, limit: float, measures: Measures, sparse: int) -> Relation:
    before = block.lines[-1]
    distance = before.bottom - line.bottom
    if block.kind == "code":
        return "line" if -0.5 * line.size < distance < _CODE_LOOSE * line.size else "gap"
    if not _same_size(before, line):
        return "gap"
    if sparse == 2 and 0 <= distance < _TABLE_LOOSE * measures.leading * line.size:
        return "line"
    if not 0 <= distance <= _LOOSE * measures.leading * line.size:
        return "gap"
    if sparse:
        # The first line of a paragraph next to a table looks like any other line of the table.
        return "line"
    before = block.lines[-1]
    indent = line.left - before.left
    first = len(block.lines) == 1
    if is_item(line.text):
        # A number at the start of a line may be a word of a sentence.
        recent = block.lines[-_RECENT_LINES:]
        started = any(is_item(other.text) and other.left >= line.left - 1 for other in recent)
        if started or is_bullet(line.text) or _ends(_SENTENCE_END, before):
            return "gap"
    if indent > _INDENT * line.size and (
        not first or (_ends(_SENTENCE_END, before) and not is_item(before.text))
    ):
        return "gap"
    if indent < -_INDENT * line.size and not first:
        return "gap"
    if before.width < _NARROWEST * before.size or not _reaches(before, limit, line.text):
        return "line"
    return "flow"


def _same_size(before: Line, line: Line) -> bool:
    one, other = before.size, line.size
    return one == other or abs(one - other) <= _SAME_SIZE * max(one, other)


def _ends(end: re.Pattern[str], line: Line) -> bool:
    return end.search(line.text[-_LONGEST_END:]) is not None


def _reaches(line: Line, limit: float, following: str) -> bool:
    """Whether the first word of the following text would not have fitted on the line.

    Where that text is not known, a word of usual length replaces it.
    """
    if line.hyphen:
        return True
    word = following.partition(" ")[0] if following else "however"
    character = (line.right - line.left) / len(line.text)
    return line.right + (len(word) + 1) * character * 0.9 >= limit


def _limits(lines: Sequence[Line], sparse: Sequence[bool]) -> list[float]:
    """For each line how far to the right the lines of its column and font reach."""
    reach: dict[tuple[int, int], float] = {}
    keys: list[tuple[int, int]] = []
    for line, gaps in zip(lines, sparse, strict=True):
        size = line.size if line.size > 1.0 else 1.0
        key = (round(line.size), int(line.left // (_COLUMN * size)))
        keys.append(key)
        if not gaps and not line.table and line.right > reach.get(key, 0.0):
            reach[key] = line.right
    widest = {
        (size, column): max(reach.get((size, column + offset), 0.0) for offset in (-1, 0, 1))
        for size, column in set(keys)
    }
    return [widest[key] for key in keys]


def flowing_on(blocks_of_pages: Iterable[Sequence[Block]]) -> Iterator[Block]:
    """All blocks in order, a paragraph that a page or a column ends put together again.

    Notes at the foot of the page go before such a paragraph, so that it can flow on.
    """
    held: list[Block] = []
    for blocks in blocks_of_pages:
        for block in blocks:
            if held and _goes_on(held[0], block):
                target = held.pop(0)
                target.add(block.lines[0], flows=block.kind == "text")
                target.lines += block.lines[1:]
                target.flows += block.flows
                target.limit = block.limit
                yield from held
                held = [target]
            elif held and _is_note(block, held[0]):
                held.append(block)
            else:
                yield from held
                held = [block]
    yield from held


def _goes_on(block: Block, following: Block) -> bool:
    if block.kind == "text" and block.full:
        before, line = block.lines[-1], following.lines[0]
        moved = line.page == before.page + 1 or (
            line.page == before.page and line.bottom > before.bottom + 2 * line.size
        )
        if following.kind != "text" or not moved or is_item(line.text) or has_leader(line.text):
            return False
        if not _same_size(before, line):
            return False
        if before.hyphen:
            return line.text[:1].isalpha()
        if before.width < 2 * _NARROWEST * before.size or _ends(_FULL_SENTENCE_END, before):
            return False
        start = line.text.lstrip("“‘\"'(")[:1]
        return start.islower() or (bool(start) and start.isalpha() and not start.isupper())
    if block.kind == following.kind == "table":
        before, line = block.lines[-1], following.lines[0]
        near = [
            abs(one - other) <= _COLUMN / 2 * max(line.size, 1.0)
            for one, other in zip(before.columns, line.columns, strict=False)
        ]
        return (
            line.page == before.page + 1 and len(line.columns) == len(before.columns) and all(near)
        )
    both = block.kind == following.kind == "code"
    return both and following.lines[0].page == block.lines[-1].page + 1


def _is_note(block: Block, paragraph: Block) -> bool:
    """Whether it may be a note below a paragraph that is still open."""
    if block.kind != "text" or paragraph.kind != "text" or not paragraph.full:
        return False
    line, before = block.lines[0], paragraph.lines[-1]
    # On the page where it starts, so that pages stay in order.
    return (
        line.page == paragraph.lines[0].page
        and line.bottom < before.bottom
        and line.size < (1 - _SAME_SIZE) * before.size
    )
