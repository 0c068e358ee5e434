"""The passage of a text that answers best: a few consecutive sentences or lines. Pure.

Prose is cut into sentences, all else into lines. One rule: a passage is a slice of its text, so
that whoever looks for it in the text finds it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from filestore.fulltext import Mark

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder

MOST_CHARACTERS: Final = 240
"""Of a passage: three lines of a terminal."""
NEAREST_UNITS: Final = 64
"""So many sentences of a text are embedded to find the one that is nearest to a question."""
_LONG_LINE: Final = 120
"""A longer line is prose, and cut into its sentences."""
_HEADING_SHARE: Final = 0.4
"""A heading is shown beside the passage, so one that begins with it is worth less."""
_TOLD_SHARE: Final = 0.1
"""Words that tell less than this part of the best one are not marked beside it, and where only such
words match, nothing does."""
_REPEATED: Final = 0.1
_PER_UNIT: Final = 0.02
"""What a further sentence must at least add."""
_HEADING: Final = re.compile(r"#{1,6}(?:\s|$)")
_TITLED: Final = re.compile(r"(#{1,6})[ \t]+(.*)")
_FENCE: Final = re.compile(r"(?:```|~~~)\S*\s*$|---+\s*$")
# One sign first, of which every one that is none is passed over quickly.
_SENTENCE_END: Final = re.compile(
    r"[.!?…。！？](?:(?<=[.!?…])[\"'”’)\]*_]*\s+(?=[\"'“‘(\[*_]*[^\Wa-z])"
    r"|(?<=[。！？])[」』）]*(?![。！？])\s*)"
)


class Unit(NamedTuple):
    """A sentence or line of a text; a tuple, because there are many."""

    start: int
    end: int
    block: int
    """The paragraph; a heading belongs to the one below it."""
    is_heading: bool


class Passage(Struct, frozen=True, kw_only=True):
    """A slice of a text."""

    start: int
    """In characters of the text."""
    text: str
    marks: tuple[tuple[int, int], ...] = ()
    """Start and end of each match, in characters of the passage; in order, none touch."""

    @property
    def end(self) -> int:
        """Where it ends in its text."""
        return self.start + len(self.text)


def units_of(text: str, start: int = 0, stop: int | None = None) -> list[Unit]:
    """The sentences and lines of a text, in order, without white space around them.

    No unit is longer than a passage may be.

    Args:
        text: The text.
        start: Where a line begins: what stands before it is passed over.
        stop: Where one ends; None for the end.
    """
    found: list[Unit] = []
    block, after_heading, end = 0, False, start - 1
    for line in (text[start:stop] if start or stop is not None else text).split("\n"):
        start = end + 1
        end = start + len(line)
        stripped = line.strip()
        if not stripped:
            block += not after_heading
            continue
        is_heading = False
        if stripped[0] in "#`~-":
            if _FENCE.match(stripped):
                continue
            is_heading = _HEADING.match(stripped) is not None
        block += is_heading
        after_heading = is_heading
        first = start if line[0] == stripped[0] else start + line.index(stripped[0])
        last = first + len(stripped)
        if last - first <= (MOST_CHARACTERS if is_heading else _LONG_LINE):
            found.append(Unit(first, last, block, is_heading))
        else:
            found += [Unit(*piece, block, is_heading) for piece in _sentences(text, first, last)]
    return found


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end of the sentences of a long line."""
    begun = start
    for stop in _SENTENCE_END.finditer(text, start, end):
        yield from _pieces(text, begun, stop.end())
        begun = stop.end()
    yield from _pieces(text, begun, end)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence, cut between words where it is longer than a passage."""
    while end - start > MOST_CHARACTERS:
        cut = text.rfind(" ", start + MOST_CHARACTERS // 2, start + MOST_CHARACTERS)
        cut = cut if cut > 0 else start + MOST_CHARACTERS
        yield from _trimmed(text, start, cut)
        start = cut
    yield from _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if stripped := piece.strip():
        first = start + piece.index(stripped[0])
        yield first, first + len(stripped)


def best(text: str, marks: Sequence[Mark], weights: Sequence[float]) -> Passage | None:
    """The passage in which most of what was asked for stands together; None where nothing does.

    Args:
        text: What it is a slice of.
        marks: Where the query matches, in order, as a `Marker` found them.
        weights: Of the query's terms.
    """
    found: tuple[float, list[Unit], int, float] | None = None
    at = 0
    while at < len(marks):
        start, stop = _around(text, marks[at].start)
        begun = at
        while at < len(marks) and marks[at].start < stop:
            at += 1
        at = max(at, begun + 1)
        units = units_of(text, start, stop)
        terms = _terms_of(units, marks[begun:at])
        for first, own in enumerate(terms):
            if own:
                score = _best_from(units, terms, first, weights)
                if found is None or score > found[0]:
                    found = score, units, first, max(weights[term] for term in own)
    if found is None or found[3] < max(weights) * _TOLD_SHARE:
        return None
    _, units, first, most = found
    told = [one for one in marks if weights[one.term] >= most * _TOLD_SHARE]
    return _passage(text, units, first, told)


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


def opening(text: str) -> Passage:
    """How a text begins, its headings left out where it has more; empty for an empty text."""
    units = units_of(text)
    if not units:
        return Passage(start=0, text="")
    first = next((at for at, unit in enumerate(units) if not unit.is_heading), 0)
    return _passage(text, units, first, ())


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

    def passage(self, text: str) -> Passage:
        """The passage that begins with the nearest sentence."""
        units = units_of(text)[:NEAREST_UNITS]
        if not units:
            return opening(text)
        texts = [text[unit.start : unit.end] for unit in units]
        scores = self._embedder.embed_documents(texts) @ self._question
        if float(scores.max()) <= 0:
            return opening(text)
        return _passage(text, units, int(scores.argmax()), ())


def _passage(text: str, units: Sequence[Unit], first: int, marks: Sequence[Mark]) -> Passage:
    """As much of a block as a passage holds, from a unit on."""
    start, end = units[first].start, units[first].end
    for unit in units[first + 1 :]:
        if unit.block != units[first].block or unit.end - start > MOST_CHARACTERS:
            break
        end = unit.end
    inside = [(mark.start - start, mark.end - start) for mark in marks]
    inside = [(a, b) for a, b in inside if a >= 0 and b <= end - start]
    return Passage(start=start, text=text[start:end], marks=_joined(inside))


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


def _joined(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans in order, those that overlap or touch as one."""
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)
