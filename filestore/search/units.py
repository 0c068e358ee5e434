"""A text in the pieces that a passage is made of: sentences, list items and lines. Pure.

Prose is cut into sentences, lists into their items, code, tables and all else into lines. One rule:
none of them is cut, unless it alone is longer than a passage may be, and then between words. A text
that is a list of links or a table of contents leads to what answers, and is told by its lines.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from filestore.extract.markdown_read import Markdown

if TYPE_CHECKING:
    pass

MOST_CHARACTERS: Final = 240
"""Of a passage: three lines of a terminal."""
_LONG_LINE: Final = 120
"""A longer line is prose, and cut into its sentences."""
_WRAPPED: Final = 40
"""A line of fewer bytes was ended on purpose."""
_ROOM: Final = MOST_CHARACTERS - 2
"""Of a part of what is too long: "…" stands on either side."""
_HEADING: Final = re.compile(r"#{1,6}(?:\s|$)")
_ITEM: Final = re.compile(r"(?:>[ \t]?)*(?:[-*+•]|\d{1,9}[.)])[ \t]+\S")
_ROW: Final = re.compile(r"\||[^\n]*? \| ")
_POINTS: Final = ".!?…؟۔։।॥།။።។"
"""Behind which a blank stands where they end a sentence."""
# One sign first, of which every one that is none is passed over quickly.
_SENTENCE_END: Final = re.compile(
    rf"[{_POINTS}。！？](?:(?<=[{_POINTS}])[\"'”’»)\]*_]*\s+(?=[\"'“‘«(\[*_!`<¿¡]*([^\W_]))"
    r"|(?<=[。！？])[」』）]*(?![。！？])\s*)"
)
_LAST_WORD: Final = re.compile(r"[^\s(\[\"'“‘«]{1,12}\Z")
_WITH_POINT: Final = (
    "abb al approx art bd bspw bzw ca cf ch dept dr ed eds eq etc evtl fig gen ggf inc jr lt ltd"
    " max min mr mrs ms mt nr op pp prof ref rev sec sr st str tel usw vgl vol vs"
    " гл др им напр проф рис см ср стр тел тыс ул"
)
_SHORTENED: Final = frozenset(_WITH_POINT.split())
"""Words that a point makes shorter: it ends no sentence."""
_JOINTS: Final = (re.compile(r"\s+"), re.compile(r"[,;:，、；：）」』】/&=]"))
"""Behind which what is too long is cut, where there is one; the first are better."""
_FOLLOWS: Final = re.compile(r"[\u0300-\u036f\u0e30-\u0e3a\u0e45-\u0e4e\u200d\ufe0f]")
"""What belongs to the sign before it."""


class Unit(NamedTuple):
    """A sentence, list item or line of a text; a tuple, because there are many."""

    start: int
    end: int
    block: int
    """The paragraph; a heading belongs to the one below it."""
    is_heading: bool
    is_cut: tuple[bool, bool] = (False, False)
    """Whether it is a part of what is too long, which goes on before and behind it."""


def units_of(text: Markdown, start: int = 0, stop: int | None = None) -> list[Unit]:
    """The sentences, list items and lines of a text, in order, without white space around them.

    None is read as more characters than a passage may have.

    Args:
        text: The text.
        start: Where a line begins: what stands before it is passed over.
        stop: Where one ends; None for the end.
    """
    found: list[Unit] = []
    for first, last, block, kind in _runs(text, start, len(text.text) if stop is None else stop):
        is_short = last - first <= _LONG_LINE and "\n" not in text.text[first:last]
        is_whole = is_short or kind == "line"
        is_one = is_whole or (kind != "prose" and text.fits(first, last, MOST_CHARACTERS))
        for at, end in [(first, last)] if is_one else _sentences(text, first, last):
            for a, b in _parts(text, at, end):
                found.append(Unit(a, b, block, kind == "heading", (a > at, b < end)))
    return found


def _runs(text: Markdown, start: int, stop: int) -> Iterator[tuple[int, int, int, str]]:
    """Lines that belong together: start, end, block, and what they are; in order."""
    block, after_heading, end = 0, False, start - 1
    first = last = 0
    kind = before = ""
    for line in text.text[start:stop].split("\n"):
        begun, end = end + 1, end + 1 + len(line)
        stripped = line.strip()
        if kind and stripped and _goes_on(kind, before, line):
            is_same = _kind_of(text, begun, end, stripped) == "prose"
        else:
            is_same = False
        if kind and not is_same:
            yield first, last, block, kind
            kind = ""
        if not stripped:
            block += not after_heading
            continue
        now = kind if is_same else _kind_of(text, begun, end, stripped)
        if not now:
            continue
        if not is_same:
            block += now == "heading"
            after_heading = now == "heading"
            first, kind = begun + line.index(stripped[0]), now
        last = begun + len(line.rstrip())
        before = line
    if kind:
        yield first, last, block, kind


def _kind_of(text: Markdown, start: int, end: int, stripped: str) -> str:
    """What a line is: heading, item, line or prose; "" for one that says nothing."""
    if text.is_silent(start, end):
        return ""
    if text.is_code(start, end):
        return "line"
    if stripped[0] == "#" and _HEADING.match(stripped):
        return "heading"
    if _ITEM.match(stripped):
        return "item"
    return "line" if "|" in stripped and _ROW.match(stripped) else "prose"


def _goes_on(kind: str, before: str, line: str) -> bool:
    """Whether a line of prose belongs to what stands in the line before it."""
    if kind == "item" and line[0] in " \t":
        return True
    is_wrapped = len(before if before.isascii() else before.encode()) >= _WRAPPED
    return kind in ("item", "prose") and is_wrapped and not before.endswith(("  ", "\\"))


def _sentences(text: Markdown, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end of the sentences of a run of lines."""
    begun = start
    for found in _SENTENCE_END.finditer(text.text, start, end):
        if _ends(text.text, begun, found) and not text.hides(begun, *found.span()):
            yield from _trimmed(text.text, begun, found.end())
            begun = found.end()
    yield from _trimmed(text.text, begun, end)


def _ends(text: str, begun: int, found: re.Match[str]) -> bool:
    """Whether a sign that may end a sentence does so."""
    if found[1] is None:
        return True
    if found[1].islower():
        return False
    if text[found.start()] != ".":
        return True
    match = _LAST_WORD.search(text, max(begun, found.start() - 13), found.start())
    word = match[0].lower() if match is not None else ""
    # A number that begins a sentence counts it; a letter, and what has a point in it, is shortened.
    counts = (
        word.isdigit() and len(word) < 3 and not text[begun : found.start() - len(word)].strip()
    )
    is_initial = len(word) == 1 and word.isalpha() and word.isascii()
    has_points = "." in word and len(word) < 6 and word[-1].isalnum()
    return not (counts or is_initial or word in _SHORTENED or has_points)


def _parts(text: Markdown, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence, in parts of about one length where it is longer than a passage."""
    if text.fits(start, end, MOST_CHARACTERS):
        yield start, end
        return
    while end - start > _ROOM:
        left = end - start
        cut = _cut(text, start, start + (left + 1) // 2 if left < 2 * _ROOM else start + _ROOM)
        yield from _trimmed(text.text, start, cut)
        start = cut
    yield from _trimmed(text.text, start, end)


def _cut(text: Markdown, start: int, most: int) -> int:
    """Where to cut, behind a start and not beyond a place."""
    least = start + (most - start) // 2
    for joint in _JOINTS:
        ends = [found.end() for found in joint.finditer(text.text, least, most)]
        if ends:
            cut = ends[-1]
            break
    else:
        cut = most
        while cut > least and _FOLLOWS.match(text.text, cut):
            cut -= 1
    for first, last, _ in text.edits(start, most):
        if first < cut < last:
            # Where a link leads is not cut in two.
            return last
    return cut


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if stripped := piece.strip():
        first = start + piece.index(stripped[0])
        yield first, first + len(stripped)


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
