"""Cuts a text into pieces that each make a good file: whole sections, tables, code where they fit.

Pure: no disk, no model; tokens are counted by the function handed in. One rule: the pieces
partition the text, character for character, whatever it holds. Block structure comes from
markdown-it (block level only), over-long blocks are cut by semantic-text-splitter, and every size
is then verified. A size is counted without the white space around a piece, plus its heading path.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from filestore.chunking._blocks import (
    markdown_blocks,
    paragraphs,
    sections_of,
    units_of,
    visible_blocks,
)
from filestore.chunking._measure import HEADING_SEPARATOR, Draft, Measure
from filestore.chunking._packing import join_small, pack, verified_spans

__all__ = ["CHUNKER", "HEADING_SEPARATOR", "Piece", "join", "split"]

CHUNKER: Final = "structure/1"
"""Name and version of what `split` makes; another output needs another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One stretch of the text, ``text[start:end]``."""

    start: int
    """In characters."""
    end: int
    """In characters; not included."""
    headings: tuple[str, ...]
    """Titles of the sections around the start, outermost first, with the heading it starts with.

    Plain text. Outer titles are left out where the path would take more than half the budget.
    """


def split(
    text: str,
    *,
    syntax: Literal["text", "markdown"],
    budget: int,
    count_tokens: Callable[[str], int],
) -> list[Piece]:
    """Cuts a text into pieces that partition it.

    The first piece starts at 0, each starts where the one before ended, the last ends with the
    text. No piece is only white space, unless the whole text is.

    Args:
        text: Any string.
        syntax: How the text marks its structure.
        budget: Most tokens of a piece and its heading path together; exceeded only where a single
            character has more.
        count_tokens: Called a few times per block, never per character.

    Returns:
        The pieces in order; none for an empty text.

    Raises:
        ValueError: The budget is below 1.
    """
    if budget < 1:
        raise ValueError(f"the token budget of a piece must be at least 1, not {budget}")
    if not text or text.isspace():
        return [Piece(start=0, end=len(text), headings=())] if text else []
    measure = Measure(text=text, budget=budget, count_tokens=count_tokens)
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
