"""Splits a text into pieces that each make a good file: whole sections, tables, code that fits.

One rule: the pieces partition the text, character for character, whatever it holds. Block structure
comes from markdown-it (block level only), over-long blocks are split by semantic-text-splitter, and
every size is then verified. A size is counted without the white space around a piece, plus its
heading path.
"""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from filestore.chunking import Section, Symbol, blanked_data, count_tokens, without_data
from filestore.chunking._code_parts import code_spans
from filestore.chunking._repeats import Repeat, Span, active, after, before, repeats_of
from filestore.chunking._splitting import (
    LINE_END,
    VISIBLE,
    Block,
    Draft,
    Kind,
    Measure,
    Unit,
    clean_title,
    common_titles,
    folded,
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

_BLANKS: Final = re.compile(r" {2,}")
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


def split(
    text: str,
    *,
    syntax: Literal["text", "markdown", "code"],
    budget: int,
    count_tokens: Callable[[str], int] = count_tokens,
    title: str = "",
    outline: Sequence[Symbol] = (),
) -> list[Section]:
    """Splits a text into sections that partition it; lines and pages are not known here.

    The first piece starts at 0, each starts where the one before ended, the last ends with the
    text. No piece is only white space, unless the whole text is.

    Args:
        text: Any string.
        syntax: How the text marks its structure.
        budget: Most tokens of a piece and its heading path together; exceeded only where a single
            character has more.
        count_tokens: Called a few times per block, never per character.
        title: What the whole text is called; goes before the heading path of every piece.
        outline: The sections of code, in the order of their starts; other syntaxes mark theirs.

    Returns:
        The pieces in order; none for an empty text.

    Raises:
        ValueError: The budget is below 1.
    """
    if budget < 1:
        raise ValueError(f"the token budget of a piece must be at least 1, not {budget}")
    written, plain = text, blanked_data(text)
    if plain is not text:
        # Data has no place in what is embedded, so it takes none of the budget, either.
        text, count_visible = plain, count_tokens
        count_tokens = lambda some: count_visible(_BLANKS.sub(" ", some))  # noqa: E731
    measure = Measure(
        text=text,
        budget=budget,
        count_tokens=count_tokens,
        title=clean_title(title),
        keeps_title=syntax == "code",
    )
    if not text or text.isspace():
        return [Section(start=0, end=len(text), headings=measure.headings(()))] if text else []
    if syntax == "code":
        pieces = list(code_spans(measure, outline))
        repeats: list[Repeat] = []
    else:
        blocks = markdown_blocks(text) if syntax == "markdown" else paragraphs(text)
        pieces = list(text_spans(measure, blocks))
        repeats = [repeat for block in blocks for repeat in block.repeats]
    sections = [
        Section(start=start, end=end, headings=measure.headings(titles))
        for start, end, titles in pieces
    ]
    rooms = [measure.room(titles) for _, _, titles in pieces]
    return _repeated(written, sections, repeats, rooms, count_tokens) if repeats else sections


def _repeated(
    text: str,
    sections: list[Section],
    repeats: Iterable[Repeat],
    rooms: Sequence[int],
    count_tokens: Callable[[str], int],
) -> list[Section]:
    """Sections with what they say again, where both sides of a cut have the room."""
    waiting, open_ones = deque(repeats), list[Repeat]()

    def fits(section: Section, room: int) -> bool:
        whole = f"{section.before}{text[section.start : section.end]}{section.after}"
        return count_tokens(without_data(whole).strip()) <= room

    for number, (section, following) in enumerate(pairwise(tuple(sections))):
        cut = section.end
        while waiting and waiting[0].start <= cut:
            open_ones.append(waiting.popleft())
        open_ones = [one for one in open_ones if one.end > cut]
        if not (needed := active(open_ones, cut)):
            continue
        closed = replace(sections[number], after=after(text, needed, cut))
        opened = replace(following, before=before(text, needed))
        if fits(closed, rooms[number]) and fits(opened, rooms[number + 1]):
            sections[number : number + 2] = closed, opened
    return sections


@cache
def markdown_parser(nesting: int, *, has_tables: bool = False) -> "MarkdownIt":
    """A parser of CommonMark, for every thread: each has a third of a megabyte, freed late.

    Args:
        nesting: How deep block quotes and lists may be nested.
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
        # Only "\n" ends a line here; the parser knows no other once carriage returns are gone.
        part = text[start:end].replace("\r", " ")
        found = _plain_blocks(part, start)
        if found is None:
            found = _parsed_by_parser(part, start)
        if end == len(text):
            return [*blocks, *found]
        if found and found[-1].start == start:
            length *= 2
            continue
        blocks += found[:-1]
        start, length = (found[-1].start if found else end), stretch
    return blocks


def section_named(text: str, heading: str) -> Span | None:
    """The first section with a heading, up to the next one of its level or above.

    Args:
        text: Markdown.
        heading: As it is written, as it is read, or as the end of an address has it; one below
            another as ``Outer > Inner``.
    """
    headings = [one for one in markdown_blocks(text) if one.kind == "heading"]
    for is_exact in (True, False):
        above: list[Block] = []
        for number, block in enumerate(headings):
            above = [*(one for one in above if one.level < block.level), block]
            if is_headed([one.title for one in above], heading, is_exact=is_exact):
                behind = (one.start for one in headings[number + 1 :] if one.level <= block.level)
                return block.start, next(behind, len(text))
    return None


def is_headed(titles: Sequence[str], heading: str, *, is_exact: bool = False) -> bool:
    """Whether headings, from the outermost in, end with one that is written ``Outer > Inner``."""
    wanted = [one.strip() for one in heading.split(" > ")]
    found = list(titles[-len(wanted) :])
    if is_exact or found == wanted:
        return found == wanted
    words = [folded(one).strip() for one in wanted]
    return bool(words[-1]) and [folded(one).strip() for one in found] == words


NO_MARKUP: Final = re.compile(r"[^\n\r\0\\`*_!\[\]<&]*")
"""A line, or the start of one, whose characters are what it says."""
_PLAIN_HEADING: Final = re.compile(r"(#{1,6})[ \t]([^#]*)")


def _plain_blocks(text: str, offset: int) -> list[Block] | None:
    """The blocks of a text of plain paragraphs and headings; None for any other.

    The parser finds the same in twenty times the time. A line that begins with a letter is prose
    whatever is before it, and one that is neither blank nor a heading ends the search.
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


def _parsed_by_parser(text: str, offset: int) -> list[Block]:
    parser = markdown_parser(_MAX_NESTING, has_tables=True)
    tokens: list[Token] = []
    parser.block.parse(text, parser, {}, tokens)
    starts = [offset, *(offset + line_end.end() for line_end in LINE_END.finditer(text))]
    if starts[-1] < offset + len(text):
        starts.append(offset + len(text))
    boundaries = [
        starts[token.map[0]]
        for token in tokens
        if token.map and token.level == 1 and token.type == "list_item_open"
    ]
    blocks: list[Block] = []
    repeats = list(repeats_of(tokens, text, starts, offset))
    openings = [repeat.lines[0] for repeat in repeats]
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
            again = repeats[bisect_left(openings, start) : bisect_left(openings, end)]
            blocks.append(
                Block(start=start, kind=kind, boundaries=tuple(items), repeats=tuple(again))
            )
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
                repeats=tuple(one for one in block.repeats if one.start < end and one.end > start),
            )


def text_spans(
    measure: Measure, blocks: Sequence[Block]
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """The pieces of a text: start, end, and the headings around all that is in it."""
    drafts: list[Draft] = []
    for section in sections_of(units_of(measure, visible_blocks(measure.text, blocks))):
        drafts.extend(pack(measure, section))
    for draft in join_small(measure, drafts):
        for start, end in verified_spans(measure, draft):
            held = [unit for unit in draft.units if unit.start < end and unit.end > start]
            yield start, end, common_titles(held)


def sections_of(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    """Headings in a row with everything up to the next heading."""
    section: list[Unit] = []
    for unit in units:
        if section and unit.kind == "heading" and section[-1].kind != "heading":
            yield section
            section = []
        section.append(unit)
    yield section
