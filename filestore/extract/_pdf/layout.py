"""From the lines of a PDF to blocks: which lines flow on, which stand for themselves.

A PDF knows neither paragraphs nor words that were broken; both follow from where lines start and
end. One rule: lines are joined only where the next word would not have fitted, the way prose is
set; everything else keeps its lines.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field

from filestore.extract._pdf.lines import Line, Measures, has_leader, is_sparse

Relation = Literal["flow", "line", "gap"]
Kind = Literal["text", "code", "heading"]

BULLETS: Final = "•◦▪‣∙●○■□◾⁃➢➤►▶◆◇"
_BULLET: Final = re.compile(rf"(?:[{BULLETS}]|[*\-–—] )\s*")
_NUMBERED: Final = re.compile(r"(?:\(?(?:[0-9]{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]|\[[0-9]{1,3}\]) ?\S?")
_ITEM_STARTS: Final = frozenset(BULLETS + "*-–—[")
_SENTENCE_END: Final = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")
_FULL_SENTENCE_END: Final = re.compile(r"[.!?。！？][\"'”’)\]]*$")

_LONGEST_END: Final = 12
_RECENT_LINES: Final = 50

_LOOSE: Final = 1.15  # times the usual leading: more is the space between paragraphs
_TABLE_LOOSE: Final = 2.2  # rows of a table stand further apart
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
        limit = limits[position - 1] if position else 0.0
        gaps = sparse[position] + sparse[position - 1]
        _place(blocks, line, limit, measures, gaps)
        blocks[-1].limit = limits[position]
        position += 1
    return blocks


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
    last = blocks[-1] if blocks and blocks[-1].kind != "heading" else None
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
        return "line" if -0.5 * line.size < distance < _TABLE_LOOSE * line.size else "gap"
    if not _same_size(before, line):
        return "gap"
    if sparse == 2 and 0 <= distance < _TABLE_LOOSE * measures.leading * line.size:
        return "line"
    if not 0 <= distance <= _LOOSE * measures.leading * line.size:
        return "gap"
    if sparse:
        # The first line of a paragraph beside a table looks like any other line of the table.
        return "line"
    before = block.lines[-1]
    indent = line.left - before.left
    first = len(block.lines) == 1
    if is_item(line.text) and (is_bullet(line.text) or _may_start_item(block, line)):
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


def _may_start_item(block: Block, line: Line) -> bool:
    """Whether a number at the start of a line may be an item's, not a word of a sentence."""
    recent = block.lines[-_RECENT_LINES:]
    started = any(is_item(other.text) and other.left >= line.left - 1 for other in recent)
    return started or _ends(_SENTENCE_END, block.lines[-1])


def _reaches(line: Line, limit: float, following: str) -> bool:
    """Whether the first word of the following text would not have fitted on the line.

    Where that text is not known, a word of usual length stands for it.
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
        if not gaps and line.right > reach.get(key, 0.0):
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
