"""The passage of a text that answers best: a few consecutive sentences, list items or lines. Pure.

One rule: a passage is a slice of its text as a person reads it, so that its words stand in the text
in this order, and whoever looks for the slice finds it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.extract.markdown_read import Markdown
from filestore.fulltext import Mark
from filestore.search.units import MOST_CHARACTERS, Unit, is_entry, units_of

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder

NEAREST_UNITS: Final = 64
"""So many sentences of a text are embedded to find the one that is nearest to a question."""
_HEADING_SHARE: Final = 0.4
"""A heading is shown beside the passage, so one that begins with it is worth less."""
_ENTRY_SHARE: Final = 0.4
"""A link with little beside it leads to what answers: it is worth less than a text."""
_TOLD_SHARE: Final = 0.1
"""Words that tell less than this part of the best one are not marked beside it, and where only such
words match, nothing does."""
_REPEATED: Final = 0.1
_PER_UNIT: Final = 0.02
"""What a further sentence must at least add."""
_ELLIPSIS: Final = "…"
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
    """The passage in which most of what was asked for stands together; None where nothing does.

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
    if found is None or found[3] < max(weights) * _TOLD_SHARE:
        return None
    _, units, first, most = found
    told = [one for one in marks if weights[one.term] >= most * _TOLD_SHARE]
    return _passage(text, units, first, told)


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
    return Passage(start=start, end=end, text=text[start:end] + _ELLIPSIS * goes_on)


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
        # A picture without a word: what stands beside it, or else how it is written.
        for at in (*range(first + 1, len(units)), *range(first - 1, -1, -1)):
            if text.read(units[at].start, units[at].end).text:
                return _passage(text, units[at : at + 1], 0, marks)
        return as_written(text.text)
    before, after = (_ELLIPSIS * is_cut for is_cut in units[first].is_cut)
    shown = f"{before}{read.text}{after}"
    inside = [
        (read.place(mark.start) + len(before), read.place(mark.end) + len(before))
        for mark in marks
        if mark.start >= start and mark.end <= end
    ]
    joined = _joined([(a, b) for a, b in inside if a < b])
    return Passage(start=start, end=end, text=shown, marks=joined)


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
