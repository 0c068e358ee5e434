"""Finds the blocks of a text: paragraphs, headings, fences, tables, lists; and their sections."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.chunking._splitting import (
    LINE_END,
    VISIBLE,
    Block,
    Draft,
    Kind,
    Measure,
    Unit,
    join_small,
    pack,
    verified_spans,
    windows,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TITLE_LIMIT: Final = 1_000
_MAX_NESTING: Final = 60  # of block quotes and lists; deeper ones end at the end of the text
_STRETCH: Final = 1 << 20  # characters

_BLANK_LINES: Final = re.compile(r"\n\s*\n")
_KINDS: Final[dict[str, Kind]] = {
    "heading_open": "heading",
    "fence": "lines",
    "code_block": "lines",
    "html_block": "lines",
    "table_open": "lines",
    "bullet_list_open": "nested",
    "ordered_list_open": "nested",
    "blockquote_open": "nested",
}


@cache
def markdown_parser(nesting: int, *, has_tables: bool = False) -> "MarkdownIt":
    """A parser of CommonMark, for every thread: each has a third of a megabyte, freed late.

    Args:
        nesting: How deep block quotes and lists may stand in each other.
        has_tables: Whether tables are blocks, and definitions of links are not.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": nesting})
    if has_tables:
        parser.enable("table").disable("reference")
    # It puts its rules in order when it first needs them, which two threads must not do at once.
    parser.parse("*")
    return parser


def paragraphs(text: str) -> list[Block]:
    """A text that is no Markdown, cut at its empty lines."""
    starts = [0, *(blank.end() for blank in _BLANK_LINES.finditer(text))]
    return [Block(start=start, kind="prose") for start in starts]


def markdown_blocks(text: str, *, stretch: int = _STRETCH) -> list[Block]:
    """The outermost blocks of a Markdown text, each with its start.

    The parser's tokens take many times the room of the text, so it gets a stretch at a time. No
    block depends on one before it; the last of a stretch may go on behind it, and is read again.

    Args:
        text: Any string.
        stretch: How many characters are parsed at once; more where one block is longer.
    """
    blocks: list[Block] = []
    start, length = 0, stretch
    while start < len(text):
        end = text.find("\n", start + length - 1) + 1 or len(text)
        found = _parsed(text[start:end], start)
        if end == len(text):
            return [*blocks, *found]
        if found and found[-1].start == start:
            length *= 2
            continue
        blocks += found[:-1]
        start, length = (found[-1].start if found else end), stretch
    return blocks


NO_MARKUP: Final = re.compile(r"[^\n\r\0\\`*_!\[\]<&]*")
"""A line, or the start of one, whose characters are what it says."""
_PLAIN_HEADING: Final = re.compile(r"(#{1,6})[ \t]([^#]*)")


def _plain_blocks(text: str, offset: int) -> list[Block] | None:
    """The blocks of a text of plain paragraphs and headings; None for any other.

    The parser finds the same in twenty times the time. A line that begins with a letter is prose
    whatever stands before it, and one that is neither blank nor a heading ends the search.
    """
    blocks: list[Block] = []
    in_prose, start = False, offset
    for line in text.split("\n"):
        if line[:1].isalpha():
            if not in_prose:
                blocks.append(Block(start=start, kind="prose"))
            in_prose = True
        elif heading := _PLAIN_HEADING.fullmatch(line):
            level, title = len(heading[1]), _title(heading[2].strip()[:_TITLE_LIMIT])
            blocks.append(Block(start=start, kind="heading", level=level, title=title))
            in_prose = False
        elif line.strip(" \t"):
            return None
        else:
            in_prose = False
        start += len(line) + 1
    return blocks


def _title(written: str) -> str:
    """The words of a heading on one line, without its markup."""
    if NO_MARKUP.fullmatch(written):
        return " ".join(written.split())
    parser = markdown_parser(_MAX_NESTING, has_tables=True)
    words = (
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in parser.parseInline(written)[0].children or ()
        if child.type != "html_inline"
    )
    return " ".join("".join(words).split())


def _parsed(text: str, offset: int) -> list[Block]:
    """The outermost blocks of a text that stands at an offset of another."""
    # Only "\n" ends a line here; the block parser knows no other once carriage returns are gone.
    text = text.replace("\r", " ")
    found = _plain_blocks(text, offset)
    return _parsed_by_parser(text, offset) if found is None else found


def _parsed_by_parser(text: str, offset: int) -> list[Block]:
    parser = markdown_parser(_MAX_NESTING, has_tables=True)
    tokens: list[Token] = []
    parser.block.parse(text, parser, {}, tokens)
    starts = [offset, *(offset + line_end.end() for line_end in LINE_END.finditer(text))]
    boundaries = [
        starts[token.map[0]]
        for token in tokens
        if token.map and token.level == 1 and token.type == "list_item_open"
    ]
    blocks: list[Block] = []
    for position, token in enumerate(tokens):
        if token.map is None or token.level:
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        kind = _KINDS.get(token.type, "prose")
        if kind == "heading":
            title = _title(tokens[position + 1].content[:_TITLE_LIMIT])
            blocks.append(Block(start=start, kind=kind, level=int(token.tag[1:]), title=title))
        else:
            items = boundaries[bisect_left(boundaries, start) : bisect_left(boundaries, end)]
            blocks.append(Block(start=start, kind=kind, boundaries=tuple(items)))
    return blocks


def visible_blocks(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Blocks that partition the text: blank ones go to the one before, the first starts at 0."""
    ends = [*(block.start for block in blocks[1:]), len(text)]
    seen = [
        block
        for block, end in zip(blocks, ends, strict=True)
        if VISIBLE.search(text, block.start, end)
    ]
    seen = seen or [Block(start=0, kind="prose")]
    if VISIBLE.search(text, 0, seen[0].start):
        return [Block(start=0, kind="prose"), *seen]
    return [replace(seen[0], start=0), *seen[1:]]


def units_of(measure: Measure, blocks: Sequence[Block]) -> Iterator[Unit]:
    """The blocks with their heading paths and sizes, huge ones in windows."""
    outline: list[tuple[int, str]] = []
    ends = [*(block.start for block in blocks[1:]), len(measure.text)]
    for block, block_end in zip(blocks, ends, strict=True):
        if block.level:
            while outline and outline[-1][0] >= block.level:
                outline.pop()
            outline.append((block.level, block.title))
        for start, end in windows(measure.text, (block.start, block_end), block.boundaries):
            yield Unit(
                start=start,
                end=end,
                tokens=measure.spaced_tokens(start, end),
                # What follows the first window of an endless heading is no heading.
                kind=block.kind if start == block.start or not block.level else "prose",
                depth=outline[-1][0] if outline else 0,
                titles=tuple(title for _, title in outline if title),
                boundaries=block.boundaries[
                    bisect_right(block.boundaries, start) : bisect_left(block.boundaries, end)
                ],
            )


def text_spans(measure: Measure, is_markdown: bool) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """The pieces of a text: start, end, and the headings around the start."""
    blocks = markdown_blocks(measure.text) if is_markdown else paragraphs(measure.text)
    drafts: list[Draft] = []
    for section in sections_of(units_of(measure, visible_blocks(measure.text, blocks))):
        drafts.extend(pack(measure, section))
    for draft in join_small(measure, drafts):
        starts = [unit.start for unit in draft.units]
        for start, end in verified_spans(measure, draft):
            yield start, end, draft.units[bisect_right(starts, start) - 1].titles


def sections_of(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    """Headings in a row with everything up to the next heading."""
    section: list[Unit] = []
    for unit in units:
        if section and unit.kind == "heading" and section[-1].kind != "heading":
            yield section
            section = []
        section.append(unit)
    yield section
