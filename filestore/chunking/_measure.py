"""The values packing works on, and how their sizes are counted against the budget."""

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct, field

HEADING_SEPARATOR: Final = " > "
"""Joins a heading path where it is counted and embedded."""

_SMALL_SHARE: Final = 6  # under budget / 6 a piece is a poor chunk
_TITLE_LIMIT: Final = 1_000  # characters
_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")

Kind = Literal["heading", "prose", "lines", "nested"]
Span = tuple[int, int]
"""Half-open, in characters."""


class Block(Struct, frozen=True, kw_only=True):
    start: int
    kind: Kind
    level: int = 0
    """1 to 6 for a heading, else 0."""
    title: str = ""
    boundaries: tuple[int, ...] = ()
    """Where the items of a list start."""


class Unit(Struct, frozen=True, kw_only=True):
    """What packing moves: a block, a window of a huge one, or a part of one that was split."""

    start: int
    end: int
    tokens: int
    kind: Kind
    depth: int
    """Level of the heading this stands under, or is."""
    titles: tuple[str, ...]
    boundaries: tuple[int, ...] = ()
    final: bool = False
    """Split already; not to be split again."""


class Draft(Struct, frozen=True, kw_only=True):
    units: tuple[Unit, ...]

    @property
    def tokens(self) -> int:
        return sum(unit.tokens for unit in self.units)

    @property
    def titles(self) -> tuple[str, ...]:
        return self.units[0].titles

    @property
    def depth(self) -> int:
        return min(unit.depth for unit in self.units)

    @property
    def bare(self) -> bool:
        return all(unit.kind == "heading" for unit in self.units)

    @property
    def opens_section(self) -> bool:
        return self.units[0].kind == "heading"

    @property
    def opens_chapter(self) -> bool:
        return any(unit.kind == "heading" and unit.depth == 1 for unit in self.units)


class Measure(Struct, frozen=True, kw_only=True):
    """The text with its token counter and budget."""

    text: str
    budget: int
    count_tokens: Callable[[str], int]
    title: str = ""
    """Of the whole text; goes before every path."""
    keeps_title: bool = False
    """Even before a heading that says the same."""
    paths: dict[tuple[str, ...], tuple[tuple[str, ...], int]] = field(default_factory=dict)
    """Heading paths as they were shortened, and the room each leaves."""

    def tokens(self, start: int, end: int) -> int:
        return self.count_tokens(self.text[start:end].strip())

    def spaced_tokens(self, start: int, end: int) -> int:
        """Tokens of a block with its distance to the next, so that sums do not fall short."""
        stretch = self.text[start:end]
        visible = len(stretch.rstrip())
        return self.count_tokens(stretch[: visible + 2].lstrip())

    def is_small(self, tokens: int) -> bool:
        return tokens * _SMALL_SHARE < self.budget

    def headings(self, titles: tuple[str, ...]) -> tuple[str, ...]:
        return self._path(titles)[0]

    def room(self, titles: tuple[str, ...]) -> int:
        return self._path(titles)[1]

    def _path(self, titles: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        known = self.paths.get(titles)
        if known is None:
            path = titles
            if self.title and (
                not titles or self.keeps_title or not _say_the_same(self.title, titles[0])
            ):
                path = (self.title, *titles)
            shortened = _shorten(path, self.budget // 2, self.count_tokens)
            taken = self.count_tokens(HEADING_SEPARATOR.join(shortened)) if shortened else 0
            known = self.paths[titles] = (shortened, self.budget - taken)
        return known


def clean_title(title: str) -> str:
    """A title on one line, of a sane length."""
    return " ".join(title[:_TITLE_LIMIT].split())


def _say_the_same(title: str, heading: str) -> bool:
    """Whether the words of one are in the other, as a page's title often names the site too."""
    shorter, longer = sorted((_folded(title), _folded(heading)), key=len)
    return bool(shorter.strip()) and shorter in longer


def _folded(title: str) -> str:
    return f" {_BETWEEN_WORDS.sub(' ', title.casefold()).strip()} "


def _shorten(
    titles: tuple[str, ...], limit: int, count_tokens: Callable[[str], int]
) -> tuple[str, ...]:
    """The innermost titles that fit the limit, the last one clipped if it does not fit alone."""
    while len(titles) > 1 and count_tokens(HEADING_SEPARATOR.join(titles)) > limit:
        titles = titles[1:]
    if not titles or count_tokens(titles[0]) <= limit or len(titles) > 1:
        return titles
    words = titles[0].split()
    kept = bisect_left(
        range(len(words)),
        True,
        key=lambda last: count_tokens(" ".join(words[: last + 1])) > limit,
    )
    return (" ".join(words[:kept]),) if kept else ()
