"""The passage of a text that answers best: a few consecutive sentences, list items or lines. Pure.

Prose is cut into sentences, lists into their items, code, tables and all else into lines. None of
them is cut, unless it alone is longer than a passage may be, and then between words. A text that is
a list of links or a table of contents leads to what answers, and is known by its lines. One rule: a
passage is a slice of its text as a person reads it, so that its words are in the text in this
order, and a search for the slice finds it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from filestore.extract.markdown_read import Markdown
from filestore.fulltext import Mark

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed import Embedder


MOST_CHARACTERS: Final = 240
"""Of a passage: three lines of a terminal."""
_LONG_LINE: Final = 120
"""A longer line is prose, and cut into its sentences."""
_WRAPPED: Final = 40
"""A line of fewer bytes was ended on purpose."""
_ROOM: Final = MOST_CHARACTERS - 2
"""Of a part of what is too long: "…" is on either side."""
HEADING: Final = re.compile(r"#{1,6}(?:\s|$)")
ITEM: Final = re.compile(r"(?:>[ \t]?)*(?:[-*+•]|\d{1,9}[.)])[ \t]+\S")
_ROW: Final = re.compile(r"\||[^\n]*? \| ")
_POINTS: Final = ".!?…؟۔։।॥།။።។"
"""Behind which a blank is where they end a sentence."""
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
        start: Where a line begins: what comes before it is passed over.
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
    if stripped[0] == "#" and HEADING.match(stripped):
        return "heading"
    if ITEM.match(stripped):
        return "item"
    return "line" if "|" in stripped and _ROW.match(stripped) else "prose"


def _goes_on(kind: str, before: str, line: str) -> bool:
    """Whether a line of prose belongs to what is in the line before it."""
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
_MOST_PROSE: Final = 0.25
"""This share of the lines of a list may be none of its entries."""
_SIGNS: Final = ("](", "[[", "....", "://", ". . .")
"""One of these is in each entry, and in few texts as often as a list has entries."""
_LONGEST: Final = 300
"""Characters of an entry."""
_DOTS: Final = ("....", ". . .")
_PAGES: Final = "0123456789ivxlcIVXLC \t"


@cache
def _entry() -> re.Pattern[str]:
    # A bullet, links, and a few words around them; what is taken is never given back.
    link = (
        r"!?\[\[[^\]\n]{1,200}+\]\]|!?\[[^\]\n]{0,200}+\]\([^)\n]{0,300}+\)"
        r"|<?https?://[^\s>]{1,300}+>?"
    )
    mark = r"[ \t>]*+(?:[-*+•|]|\d{1,4}[.)])?+[ \t]*+(?:\[[ xX]\][ \t]++)?+"
    return re.compile(
        rf"{mark}(?:[*_`]{{0,2}}+(?>{link})[*_`]{{0,2}}+[ \t,;|·•—–-]*+)++[^\n.!?]{{0,60}}+"
    )


def is_entry(line: str) -> bool:
    """Whether a line is a link with little else, or leads by dots to a page."""
    if len(line) > _LONGEST or not any(sign in line for sign in _SIGNS):
        return False
    return line.rstrip(_PAGES).endswith(_DOTS) or _entry().fullmatch(line) is not None


def is_list(text: str) -> bool:
    """Whether a text is little more than links, or the entries of a table of contents."""
    if sum(map(text.count, _SIGNS)) < _FEWEST:
        return False
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    entries = sum(map(is_entry, lines))
    return entries >= _FEWEST and len(lines) - entries <= _MOST_PROSE * len(lines)


NEAREST_UNITS: Final = 64
"""How many sentences of a text are embedded to find the one that is nearest to a question."""
_HEADING_SHARE: Final = 0.4
"""A heading is shown next to the passage, so one that begins with it is worth less."""
_ENTRY_SHARE: Final = 0.4
"""A link with little else leads to what answers: it is worth less than a text."""
_MARKED_SHARE: Final = 0.1
"""Words that tell less than this part of the best one are not marked with it, and where only such
words match, nothing does."""
_REPEATED: Final = 0.1
_PER_UNIT: Final = 0.02
"""What a further sentence must at least add."""
ELLIPSIS: Final = "…"
_TITLED: Final = re.compile(r"(#{1,6})[ \t]+(.*)")


class Passage(Struct, frozen=True, kw_only=True):
    """A slice of a text, as it is read."""

    start: int
    """In characters of the text."""
    end: int
    text: str
    """The slice without its markup, "…" where a sentence goes on."""
    marks: tuple[tuple[int, int], ...] = ()
    """Start and end of each match, in characters of the passage; in order, none touch."""


def best(text: Markdown, marks: Sequence[Mark], weights: Sequence[float]) -> Passage | None:
    """The passage in which most of what was asked for is together; None where nothing does.

    Args:
        text: What it is a slice of.
        marks: Where the query matches, in order, as a `Marker` found them.
        weights: Of the query's terms.
    """
    found: tuple[float, list[Unit], int, float] | None = None
    at = 0
    while at < len(marks):
        start, stop = _around(text.text, marks[at].start)
        begun = at
        while at < len(marks) and marks[at].start < stop:
            at += 1
        at = max(at, begun + 1)
        if found is not None and _most_of(marks[begun:at], weights) <= found[0]:
            continue
        units = units_of(text, start, stop)
        terms = _terms_of(units, marks[begun:at])
        for first, own in enumerate(terms):
            if own:
                score = _best_from(units, terms, first, weights)
                if is_entry(text.text[units[first].start : units[first].end]):
                    score *= _ENTRY_SHARE
                if found is None or score > found[0]:
                    found = score, units, first, max(weights[term] for term in own)
    if found is None or found[3] < max(weights) * _MARKED_SHARE:
        return None
    _, units, first, most = found
    kept = [one for one in marks if weights[one.term] >= most * _MARKED_SHARE]
    return _passage(text, units, first, kept)


def _most_of(marks: Sequence[Mark], weights: Sequence[float]) -> float:
    """More than any passage of a paragraph with these marks can score."""
    terms = {mark.term for mark in marks}
    return sum(weights[one] for one in terms) * (1 - _REPEATED) + _REPEATED * sum(
        weights[mark.term] for mark in marks
    )


def _around(text: str, place: int) -> tuple[int, int]:
    """Start and end of the paragraphs around a place that a passage could reach into.

    Blank lines are boundaries, but below a heading.
    """
    start = text.rfind("\n\n", 0, place + 1) + 2
    if start < 2:
        start = 0
    else:
        above = text.rfind("\n", 0, start - 2) + 1
        start = above if text.startswith("#", above) else start
    stop = text.find("\n\n", place)
    line = text.rfind("\n", 0, stop) + 1
    while stop >= 0 and text.startswith("#", line):
        line = stop + 2
        stop = text.find("\n\n", line)
    return start, len(text) if stop < 0 else stop


def _terms_of(units: Sequence[Unit], marks: Sequence[Mark]) -> list[list[int]]:
    """The terms that match in each unit, as often as they do."""
    terms: list[list[int]] = [[] for _ in units]
    at = 0
    for mark in marks:
        while at < len(units) and units[at].end <= mark.start:
            at += 1
        if at == len(units):
            break
        if mark.start >= units[at].start:
            terms[at].append(mark.term)
    return terms


def _best_from(
    units: Sequence[Unit],
    terms: Sequence[Sequence[int]],
    first: int,
    weights: Sequence[float],
) -> float:
    """The best score of the passages that begin with a unit."""
    best_score, total = 0.0, 0.0
    known: set[int] = set()
    for at in range(first, len(units)):
        unit = units[at]
        is_beyond = unit.end - units[first].start > MOST_CHARACTERS
        if at > first and (unit.block != units[first].block or is_beyond):
            break
        for term in terms[at]:
            total += weights[term] * (_REPEATED if term in known else 1.0)
            known.add(term)
        best_score = max(best_score, total - _PER_UNIT * (at - first))
    return best_score * _HEADING_SHARE if units[first].is_heading else best_score


def opening(text: Markdown) -> Passage:
    """How a text begins, its headings left out where it has more; empty for a blank text."""
    units, place = list[Unit](), 0
    while place < len(text.text) and not any(not unit.is_heading for unit in units):
        start, stop = _around(text.text, place)
        units = units_of(text, start, stop) or units
        place = stop + 1
    if not units:
        return as_written(text.text)
    first = next((at for at, unit in enumerate(units) if not unit.is_heading), 0)
    return _passage(text, units, first, ())


def as_written(text: str) -> Passage:
    """The beginning of a text in which nothing is to be read."""
    start = len(text) - len(text.lstrip())
    end = start + len(text[start : start + MOST_CHARACTERS - 1].rstrip())
    goes_on = bool(text[end:].strip())
    return Passage(start=start, end=end, text=text[start:end] + ELLIPSIS * goes_on)


class Nearest:
    """Finds the sentence of a text that is nearest to a question."""

    def __init__(self, embedder: "Embedder", question: "NDArray[float32]") -> None:
        """Take the question.

        Args:
            embedder: One that compares words: what knows meaning takes too long for each sentence.
            question: ``(dimension,) float32, of length 1``.
        """
        self._embedder = embedder
        self._question = question

    def passage(self, text: Markdown) -> Passage:
        """The passage that begins with the nearest sentence."""
        units = units_of(text)[:NEAREST_UNITS]
        if not units:
            return opening(text)
        texts = [text.text[unit.start : unit.end] for unit in units]
        scores = self._embedder.embed_documents(texts) @ self._question
        if float(scores.max()) <= 0:
            return opening(text)
        return _passage(text, units, int(scores.argmax()), ())


def _passage(text: Markdown, units: Sequence[Unit], first: int, marks: Sequence[Mark]) -> Passage:
    """As much of a block as a passage holds, from a unit on."""
    start, end = units[first].start, units[first].end
    for unit in units[first + 1 :]:
        if unit.block != units[first].block or any((*units[first].is_cut, *unit.is_cut)):
            break
        if not text.fits(start, unit.end, MOST_CHARACTERS):
            break
        end = unit.end
    read = text.read(start, end)
    if not read.text:
        # A picture without a word: what is next to it, or else how it is written.
        for at in (*range(first + 1, len(units)), *range(first - 1, -1, -1)):
            if text.read(units[at].start, units[at].end).text:
                return _passage(text, units[at : at + 1], 0, marks)
        return as_written(text.text)
    before, after = (ELLIPSIS * is_cut for is_cut in units[first].is_cut)
    shown = f"{before}{read.text}{after}"
    inside = [
        (read.place(mark.start) + len(before), read.place(mark.end) + len(before))
        for mark in marks
        if mark.start >= start and mark.end <= end
    ]
    joined: list[tuple[int, int]] = []
    for a, b in inside:
        if a < b and joined and a <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(b, joined[-1][1])
        elif a < b:
            joined.append((a, b))
    return Passage(start=start, end=end, text=shown, marks=tuple(joined))


def section_at(text: str, start: int, headings: Sequence[str]) -> tuple[str, ...]:
    """The headings above a place in a text of Markdown, from the outermost.

    Args:
        text: The body of a chunk.
        start: The place, in characters.
        headings: Those of the chunk, its first one included where it begins with one.
    """
    end = text.find("\n", start)
    found = tuple(headings)
    for found in trails(text[: len(text) if end < 0 else end], headings):  # noqa: B007 - the last
        pass
    return found


def trails(text: str, headings: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Of each heading in a text of Markdown those above it and itself; see `section_at`."""
    above: list[tuple[int, str]] = []
    outer: Sequence[str] | None = None
    fence = ""
    for line in text.split("\n"):
        opened = line.lstrip()[:3]
        if opened in ("```", "~~~") and fence in ("", opened):
            fence = "" if fence else opened
        found = None if fence else _TITLED.match(line)
        if found is None:
            continue
        level, title = len(found[1]), found[2].rstrip(" \t#")
        if outer is None:
            at = headings.index(title) if title in headings else min(level - 1, len(headings))
            outer = headings[:at]
        above = [one for one in above if one[0] < level] + [(level, title)]
        yield (*outer, *(title for _, title in above))
