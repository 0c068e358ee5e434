"""Which texts are lists of links or tables of contents: they lead to what answers. Pure.

One rule: a few lines of a list make none; of a text that also says something, that counts.
"""

import re
from bisect import insort
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from filestore.search.ranking import Ranked

LISTED_SHARE: Final = 0.25
"""Of the score of a list, where the words are not in its names: behind whatever is a text."""
_FEWEST: Final = 3
_MOST_SAID: Final = 0.25
"""Of the lines of a list so many are none of its entries."""
_SIGNS: Final = ("](", "[[", "....", "://", ". . .")
"""One of these is in each entry, and in few texts as often as a list has entries."""
_LONGEST: Final = 300
"""Characters of an entry."""
_DOTS: Final = ("....", ". . .")
_PAGES: Final = "0123456789ivxlcIVXLC \t"


@cache
def _entry() -> re.Pattern[str]:
    # A bullet, links, and a few words beside them; what is taken is never given back.
    link = (
        r"!?\[\[[^\]\n]{1,200}+\]\]|!?\[[^\]\n]{0,200}+\]\([^)\n]{0,300}+\)"
        r"|<?https?://[^\s>]{1,300}+>?"
    )
    mark = r"[ \t>]*+(?:[-*+•|]|\d{1,4}[.)])?+[ \t]*+(?:\[[ xX]\][ \t]++)?+"
    return re.compile(
        rf"{mark}(?:[*_`]{{0,2}}+(?>{link})[*_`]{{0,2}}+[ \t,;|·•—–-]*+)++[^\n.!?]{{0,60}}+"
    )


def is_entry(line: str) -> bool:
    """Whether a line is a link with little beside it, or leads by dots to a page."""
    if len(line) > _LONGEST or not any(sign in line for sign in _SIGNS):
        return False
    return line.rstrip(_PAGES).endswith(_DOTS) or _entry().fullmatch(line) is not None


def is_list(text: str) -> bool:
    """Whether a text is little more than links, or the entries of a table of contents."""
    if sum(map(text.count, _SIGNS)) < _FEWEST:
        return False
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    entries = sum(map(is_entry, lines))
    return entries >= _FEWEST and len(lines) - entries <= _MOST_SAID * len(lines)


def demoted(score: float, named: float) -> float:
    """The score of a list.

    Args:
        score: As it was found.
        named: How much of what is asked stands in its names, 0 to 1.
    """
    return min(score, score * (LISTED_SHARE + (1 - LISTED_SHARE) * named))


def put_back(lists: "list[Ranked]", ranked: "Ranked") -> None:
    """Keep a list for its place in the order, worst first."""
    insort(lists, ranked, key=lambda one: one[1])


def merged(
    ranked: "Sequence[Ranked]", lists: "list[Ranked]", *, is_last: bool
) -> "Iterator[Ranked]":
    """Texts in order, with the lists that are put back meanwhile.

    Args:
        ranked: Best first.
        lists: Worst first; emptied from behind.
        is_last: Whether lists follow where no text is left.
    """
    for one in ranked:
        while lists and lists[-1][1] > one[1]:
            yield lists.pop()
        yield one
    while is_last and lists:
        yield lists.pop()
