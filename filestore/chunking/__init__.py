"""Splits a text into pieces that each make a good file: whole sections, tables, code that fits.

Pure: no disk, no model; tokens are counted by the function handed in. One rule: the pieces
partition the text, character for character, whatever it holds. Block structure comes from
markdown-it (block level only), over-long blocks are split by semantic-text-splitter, and every size
is then verified. A size is counted without the white space around a piece, plus its heading path.
Source code is split by the outline that comes with it, as no grammar is known here.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from filestore.chunking._code import code_spans
from filestore.chunking._splitting import HEADING_SEPARATOR as HEADING_SEPARATOR
from filestore.chunking._splitting import (
    Draft,
    Measure,
    Span,
    Unit,
    clean_title,
    split_at,
    split_markdown,
    split_unit,
)
from filestore.chunking.blocks import (
    markdown_blocks,
    paragraphs,
    sections_of,
    units_of,
    visible_blocks,
)
from filestore.core.encoded_data import blanked_data

CHUNKER: Final = "structure/2"
"""Name and version of what `split` makes; another output needs another version."""


_BLANKS: Final = re.compile(r" {2,}")


class Section(Struct, frozen=True, kw_only=True):
    """A named part without a heading: a class, a function."""

    start: int
    """Offset in characters; what leads up to it (comments, decorators) belongs to it."""
    level: int
    """1 for the outermost."""
    title: str
    """A name on one line, such as ``Reader`` or ``Reader.open``; empty where the text goes back to
    the section around, after the end of one inside it."""


class Piece(Struct, frozen=True, kw_only=True):
    """One stretch of the text, ``text[start:end]``."""

    start: int
    """In characters."""
    end: int
    """In characters; not included."""
    headings: tuple[str, ...]
    """Titles of the sections around the start, outermost first, with the heading it starts with.

    Plain text. The title of the text comes first, unless the first heading says the same. Outer
    titles are left out where the path would take more than half the budget. Of code that is several
    sections, the names around all of them; a name that the next begins with is left out.
    """


def room(budget: int, most: int | None) -> int:
    """The most tokens of a piece.

    Args:
        budget: What the settings allow.
        most: What the model embeds well; None for no limit.
    """
    return budget if most is None else min(budget, most)


def label(budget: int, *, most: int | None, counter: str, way: str = CHUNKER) -> str:
    """What a record says of how its text was split; another label means another split.

    Args:
        budget: See `room`.
        most: See `room`.
        counter: What counts tokens, in a word.
        way: Name and version of how.
    """
    return f"{way}:{room(budget, most)}:{counter}"


def way(label: str) -> str:
    """What of a label says how a text is split, without what counted the tokens."""
    return ":".join(label.split(":", 2)[:2])


def split(
    text: str,
    *,
    syntax: Literal["text", "markdown", "code"],
    budget: int,
    count_tokens: Callable[[str], int],
    title: str = "",
    outline: Sequence[Section] = (),
) -> list[Piece]:
    """Splits a text into pieces that partition it.

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
    plain = blanked_data(text)
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
        return [Piece(start=0, end=len(text), headings=measure.headings(()))] if text else []
    if syntax == "code":
        symbols = (
            (section.start, section.level, clean_title(section.title)) for section in outline
        )
        return [
            Piece(start=start, end=end, headings=measure.headings(titles))
            for start, end, titles in code_spans(measure, symbols)
        ]
    blocks = markdown_blocks(text) if syntax == "markdown" else paragraphs(text)
    drafts: list[Draft] = []
    for section in sections_of(units_of(measure, visible_blocks(text, blocks))):
        drafts.extend(pack(measure, section))
    return [piece for draft in join_small(measure, drafts) for piece in _pieces(measure, draft)]


def join(texts: Sequence[str]) -> str:
    """The text whose pieces these are, the inverse of `split`."""
    return "".join(texts)


def _pieces(measure: Measure, draft: Draft) -> Iterator[Piece]:
    starts = [unit.start for unit in draft.units]
    for start, end in verified_spans(measure, draft):
        titles = draft.units[bisect_right(starts, start) - 1].titles
        yield Piece(start=start, end=end, headings=measure.headings(titles))


_WORTHWHILE_SHARE: Final = 3  # a split block starts in the open piece if budget / 3 is left there


def pack(measure: Measure, section: Sequence[Unit]) -> list[Draft]:
    """Fills pieces in order, splitting only what fits no piece or would leave a poor one behind."""
    drafts: list[Draft] = []
    current: list[Unit] = []
    used = 0
    pending = deque(section)
    while pending:
        unit = pending.popleft()
        room = measure.room((current or [unit])[0].titles)
        if used + unit.tokens <= room or (not current and unit.final):
            current.append(unit)
            used += unit.tokens
        elif _is_split_here(measure, current, unit, used=used, left=room - used):
            pending.extendleft(reversed(split_unit(measure, unit, first=room - used)))
        else:
            closed = len(current) - _is_led_in(measure, current, unit)
            drafts.append(Draft(units=tuple(current[:closed])))
            pending.appendleft(unit)
            current = current[closed:]
            used = sum(kept.tokens for kept in current)
    drafts.append(Draft(units=tuple(current)))
    # Blocks move into a tiny last piece of the section from the one before it.
    while len(drafts) > 1 and measure.is_small(drafts[-1].tokens):
        before, last = drafts[-2:]
        moved = before.units[-1]
        rest = Draft(units=before.units[:-1])
        grown = Draft(units=(moved, *last.units))
        if not rest.units or rest.bare or measure.is_small(rest.tokens):
            break
        if grown.tokens > measure.room(grown.titles):
            break
        drafts[-2:] = [rest, grown]
    return drafts


def _is_split_here(
    measure: Measure, current: Sequence[Unit], unit: Unit, *, used: int, left: int
) -> bool:
    if not current:
        return True
    if unit.final or unit.kind == "heading" or measure.is_small(left):
        return False
    if all(other.kind == "heading" for other in current):
        return True
    if unit.tokens > measure.room(unit.titles):
        return left * _WORTHWHILE_SHARE >= measure.budget or measure.is_small(used)
    return measure.is_small(used) and unit.kind in ("prose", "nested")


def _is_led_in(measure: Measure, current: Sequence[Unit], unit: Unit) -> bool:
    """Whether the last block announces the next ("as follows:") and should go with it."""
    lead = current[-1]
    if lead.kind != "prose" or all(other.kind == "heading" for other in current[:-1]):
        return False
    announces = measure.text[lead.start : lead.end].rstrip().endswith(":")
    fits = lead.tokens + unit.tokens <= measure.room(lead.titles)
    return announces and fits and measure.is_small(lead.tokens)


def join_small(measure: Measure, drafts: Iterable[Draft]) -> list[Draft]:
    """Joins poor chunks with the section below or beside them, forwards, else backwards."""
    ahead: list[Draft] = []
    for draft in drafts:
        if ahead and _joins_next(measure, ahead[-1], draft):
            ahead[-1] = Draft(units=ahead[-1].units + draft.units)
        else:
            ahead.append(draft)
    joined: list[Draft] = []
    for draft in ahead:
        previous = joined[-1] if joined else None
        if previous and draft.opens_section and _fit(measure, previous, draft):
            belongs = draft.depth >= previous.depth and not draft.opens_chapter
            if draft.bare or (measure.is_small(draft.tokens) and belongs):
                joined[-1] = Draft(units=previous.units + draft.units)
                continue
        joined.append(draft)
    return joined


def _joins_next(measure: Measure, draft: Draft, following: Draft) -> bool:
    if not following.opens_section or not _fit(measure, draft, following):
        return False
    if draft.bare:
        return True
    # The tail of a section stands alone: joined on, it would give its path to another section.
    is_tail = draft.depth > 0 and not draft.opens_section
    belongs = following.depth >= draft.depth and not following.opens_chapter
    return measure.is_small(draft.tokens) and belongs and not is_tail


def _fit(measure: Measure, first: Draft, second: Draft) -> bool:
    return first.tokens + second.tokens <= measure.room(first.titles)


def verified_spans(measure: Measure, draft: Draft) -> list[Span]:
    """A draft as it is, or split between blocks: together they may hold more tokens than apart."""
    start, end = draft.units[0].start, draft.units[-1].end
    if len(draft.units) == 1 or measure.tokens(start, end) <= measure.room(draft.titles):
        return [(start, end)]
    room = min(measure.room(unit.titles) for unit in draft.units)
    boundaries = [unit.start for unit in draft.units[1:]]
    return split_at(measure, (start, end), boundaries, (room, room), split_between=split_markdown)
