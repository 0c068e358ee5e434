"""Which lines of a PDF are headings, and which are running headers, footers and page numbers.

One rule: a heading is a line of the page, by the outline or by its size where there is none; an
entry of the outline that is nowhere on its page is left out. A line is no text only if it lies at
the edge of its page, apart from the text, and other pages have the same there, but for numbers.
"""

import re
import string
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from filestore.extract._pdf.lines import Heading, Line, Measures, PageLines, is_bullet, is_sparse

DEEPEST: Final = 6

_MOST_LINES: Final = 3
_LONGEST: Final = 200  # characters
_LARGER: Final = 1.15  # times the usual size, for a heading
_TITLE_LARGER: Final = 1.3
_BELOW_TITLE: Final = 0.75  # of the size of the title: the author and the date, not a section
_HEADING_SHARE: Final = 4  # where more than a fourth of all lines is large, size says nothing
_FEW_LINES: Final = 12
_COMMON_SHARE: Final = 0.15  # of all characters: a size that common is one of the text's
_LINE_SPACE: Final = 1.6  # font sizes, between the lines of one heading
_SMALLER: Final = 0.93  # times the usual size: no bold heading is smaller
_LONG_LINE: Final = 60  # characters: that of a paragraph
_LONGEST_BOLD: Final = 120  # characters
_LONGEST_NUMBERED: Final = 80
_APART_LINES: Final = 1.25  # times the usual leading: more than between lines of a paragraph
_FARTHEST_TEXT: Final = 5.0  # font sizes, from a heading to its text
_FEWEST_NUMBERED: Final = 2
_SHORT: Final = 0.8  # of where the longest line ends
_RISING: Final = 0.8  # of the numbers
_SECTION: Final = re.compile(
    r"(?:(?i:chapter|section|article|appendix|part|clause|kapitel|abschnitt|artikel|teil|§)\s*)?"
    r"([0-9]{1,3}(?:\.[0-9]{1,3}){0,4})(?:[.:)]|\s*[—–-])?\s+(?=\S)"
)
_NOT_HEADING: Final = re.compile(
    r"[,;]$|[^0-9.][.:]$|[^\W\d_]{3}[.!?] +[^\W\d_]"
    r"|^(?:fig(?:ure)?|table|abb(?:ildung)?|tab(?:elle)?|listing|tableau|note|source|quelle)\b",
    re.IGNORECASE,
)
_ENDED: Final = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")

_NUMBERING: Final = re.compile(
    r"(?:(?i:chapter|appendix|section|part|kapitel|anhang|abschnitt|teil|chapitre|annexe)\s+)?"
    r"(?:[0-9]{1,4}|[A-Z]|[IVXLC]{1,7})(?:\.[0-9]{1,4})*[.:)]?\s+(?:[—–-]\s+)?"
)
_NUMBERING_LENGTH: Final = 30  # characters: `Appendix XVIII.12.3: `
_SIGNS: Final = string.punctuation + string.whitespace
_HEAD_LENGTH: Final = 3  # characters at its start that distinguish almost every line from a title
_NO_TITLE: Final = re.compile(
    r"(?:tableof)?contents|inhalt(?:sverzeichnis)?|sommaire|índice|index|abstract|preface|vorwort"
    r"|introduction|einleitung|[a-z]*[0-9]+"
)
_LETTERS: Final = re.compile(r"[^\W\d_]{2}|[\u2e80-\u9fff\uac00-\ud7a3]")
_NOT_WORD: Final = re.compile(r"[\W_]+")


class OutlineEntry(Struct, frozen=True, kw_only=True):
    """One entry of the outline, which readers show next to the pages."""

    title: str
    level: int
    """From 1."""
    page: int
    """From 0."""


def find_headings(
    pages: Sequence[PageLines], outline: Sequence[OutlineEntry], measures: Measures
) -> dict[int, dict[int, Heading]]:
    """The headings of every page.

    Args:
        pages: Without running headers.
        outline: In its own order; empty where the document has none.
        measures: What is usual in the document.

    Returns:
        By page, and by the position of their first line.
    """
    tagged = _by_tags(pages)
    if tagged:
        return tagged
    found: defaultdict[int, dict[int, Heading]] = defaultdict(dict)
    by_page = sorted(outline, key=lambda entry: entry.page)
    for page, group in groupby(by_page, key=lambda entry: entry.page):
        left = [(entry, _keys(entry.title)) for entry in group]
        # A destination may be the very end of the page before.
        for number in (page, page + 1):
            if left and 0 <= number < len(pages):
                left = _match_all(left, pages[number].lines, found[number])
    by_outline = {number: headings for number, headings in found.items() if headings}
    return by_outline or _by_look(pages, measures)


class _Place(Struct, frozen=True, kw_only=True):
    """Where the text of a title is."""

    position: int
    lines: int
    size: float


def _match_all(
    entries: Sequence[tuple[OutlineEntry, frozenset[str]]],
    lines: Sequence[Line],
    headings: dict[int, Heading],
) -> list[tuple[OutlineEntry, frozenset[str]]]:
    """Adds the entries that are on a page to its headings, and returns the others."""
    wanted = frozenset().union(*(keys for _, keys in entries))
    index = _index(lines, wanted)
    missing: list[tuple[OutlineEntry, frozenset[str]]] = []
    after = -1
    for entry, keys in entries:
        places = [one for key in sorted(keys) for one in index.get(key, ())]
        # In the largest font below the title before it.
        place = max(
            (one for one in places if one.position not in headings),
            key=lambda one: (one.position > after, one.size, one.lines == 1, -one.position),
            default=None,
        )
        if place is None:
            missing.append((entry, keys))
            continue
        headings[place.position] = Heading(level=min(entry.level, DEEPEST), lines=place.lines)
        after = place.position + place.lines - 1
    return missing


def _index(lines: Sequence[Line], wanted: frozenset[str]) -> dict[str, list[_Place]]:
    """Where on a page each of the wanted texts is, as one line or as up to three."""
    index: defaultdict[str, list[_Place]] = defaultdict(list)
    longest = 2 * max(map(len, wanted)) + _NUMBERING_LENGTH
    starts = frozenset(key[:length] for key in wanted for length in (1, _HEAD_LENGTH))
    for position, line in enumerate(lines):
        if line.table or not _may_start(line.text, starts, longest):
            continue
        text = ""
        for count in range(1, min(_MOST_LINES, len(lines) - position) + 1):
            other = lines[position + count - 1]
            if count > 1:
                # The next line of a heading; `Chapter 1` may be far above its name.
                above = lines[position + count - 2]
                if above.bottom <= other.bottom or above.typewriter != other.typewriter:
                    break
            text = f"{text} {other.text}" if text else other.text
            if len(text) > longest:
                break
            keys = _keys(text)
            for key in keys & wanted:
                index[key].append(_Place(position=position, lines=count, size=line.size))
            so_far = tuple(keys)
            if any(key.startswith(so_far) for key in wanted):
                continue
            if _NUMBERING.fullmatch(f"{text} ") is None:  # else the heading's number alone
                break
    return index


def _may_start(text: str, starts: frozenset[str], longest: int) -> bool:
    """Whether a title may start here; a quick check, as almost every line is none."""
    if len(text) > longest:
        return False
    # With one character more, for that may be an accent of the one before.
    head = text.lstrip(_SIGNS)[: _HEAD_LENGTH + 1]
    if not head or not head.isascii():
        return True
    start = head[:_HEAD_LENGTH]
    if len(start) < _HEAD_LENGTH or not start.isalnum():
        start = head[0]
    return start.lower() in starts or _NUMBERING.match(f"{text[:_NUMBERING_LENGTH]} ") is not None


def _keys(text: str) -> frozenset[str]:
    """What is compared: letters and digits only, with and without the number of the section."""
    keys = {_key(text)}
    unnumbered = _NUMBERING.sub("", text, count=1)
    if unnumbered != text:
        keys.add(_key(unnumbered))
    return frozenset(filter(None, keys))


def _key(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    folded = text.casefold()
    return _NOT_WORD.sub("", folded) or "".join(folded.split())


def _by_tags(pages: Sequence[PageLines]) -> dict[int, dict[int, Heading]]:
    """What the structure of the file calls a heading."""
    found: defaultdict[int, dict[int, Heading]] = defaultdict(dict)
    for number, page in enumerate(pages):
        runs = groupby(enumerate(page.lines), key=lambda item: item[1].tag)
        for (level, _), run in runs:
            lines = list(run)
            if level and any(_LETTERS.search(line.text) for _, line in lines):
                found[number][lines[0][0]] = Heading(level=level, lines=len(lines))
    return dict(found)


class _Candidate(NamedTuple):
    """Lines that look like a heading."""

    page: int
    position: int
    lines: Sequence[Line]
    by_number: bool
    """Whether nothing but a number makes it one."""

    @property
    def number(self) -> tuple[int, ...]:
        """Of its section; empty where it has none."""
        found = _SECTION.match(self.lines[0].text)
        return tuple(map(int, found[1].split("."))) if found else ()

    @property
    def rank(self) -> tuple[float, bool, int]:
        """What orders the levels: the larger first, then the heavier, then by its number."""
        first = self.lines[0]
        return -_rounded(first), not first.bold, max(1, len(self.number))


def _by_look(pages: Sequence[PageLines], measures: Measures) -> dict[int, dict[int, Heading]]:
    """Lines larger or bolder than the text, or numbered; the larger, the higher."""
    usual = replace(measures, size=_text_size(pages, measures))
    total = sum(len(page.lines) for page in pages)
    candidates: list[_Candidate] = []
    for some in (_large, _standing_out):
        found = [
            _Candidate(number, position, run, some is _standing_out and not run[0].bold)
            for number, page in enumerate(pages)
            for position, run in some(page.lines, usual, first_page=number == 0)
        ]
        count = sum(len(one.lines) for one in found)
        if total <= _FEW_LINES or count * _HEADING_SHARE <= total:
            candidates += found
    candidates = _in_sequence(candidates)
    ranks = sorted({one.rank for one in candidates})
    levels = {rank: min(level, DEEPEST) for level, rank in enumerate(ranks, 1)}
    by_page: defaultdict[int, dict[int, Heading]] = defaultdict(dict)
    for one in candidates:
        by_page[one.page][one.position] = Heading(level=levels[one.rank], lines=len(one.lines))
    return dict(by_page)


def _in_sequence(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """The candidates; of those with nothing but a number none, unless the numbers rise."""
    numbers = [one.number for one in candidates if one.by_number]
    rising = sum(one < other for one, other in pairwise(numbers))
    if len(numbers) >= _FEWEST_NUMBERED and rising >= _RISING * (len(numbers) - 1):
        return list(candidates)
    return [one for one in candidates if not one.by_number]


def _text_size(pages: Sequence[PageLines], measures: Measures) -> float:
    """The largest size that much of the text is in; lines on their own are no text."""
    characters: Counter[float] = Counter()
    long: set[float] = set()
    for page in pages:
        for size, run in groupby(page.lines, key=_rounded):
            lines = list(run)
            characters[size] += sum(len(line.text) for line in lines)
            if len(lines) > _MOST_LINES or len(lines[0].text) > _LONG_LINE:
                long.add(size)
    common = _COMMON_SHARE * characters.total()
    sizes = [size for size, count in characters.items() if count >= common and size in long]
    return max(measures.size, max(sizes, default=0.0))


def _rounded(line: Line) -> float:
    return round(line.size * 2) / 2


def _standing_out(
    lines: Sequence[Line], measures: Measures, *, first_page: bool
) -> Iterator[tuple[int, Sequence[Line]]]:
    """Runs of lines about as large as the text that are bold or numbered, with text below them."""
    del first_page
    apart = _APART_LINES * measures.leading
    widest = max((line.right for line in lines if not line.table), default=0.0)
    position = 0
    while position < len(lines):
        end = position + 1
        first = lines[position]
        while first.bold and end < len(lines) and _continues(lines[end - 1], lines[end], apart):
            end += 1
        run = lines[position:end]
        above = lines[position - 1] if position else None
        below = lines[end] if end < len(lines) else None
        if _is_heading_style(run, measures) and below is not None and not below.table:
            before = above.bottom - first.bottom if above else 0.0
            after = run[-1].bottom - below.bottom
            # Also at the top of a page or a column.
            free = before <= 0 or before >= apart * first.size
            # A cell has others next to it.
            in_row = any(
                abs(other.bottom - first.bottom) < first.size / 2
                for other in (above, below)
                if other
            )
            if first.bold:
                # As near as a line of a paragraph, it is short and a sentence ends above.
                short = run[-1].right < _SHORT * widest
                ended = free or above is None or (short and _ENDED.search(above.text))
                apart_below = after >= apart * first.size
                going_on = below.text[0].islower() and not apart_below
                fits = ended and not going_on and (not below.bold or _deeper(first, below))
            else:
                fits = free and after >= apart * first.size and not _SECTION.match(below.text)
            if fits and not in_row and 0 < after < _FARTHEST_TEXT * first.size:
                yield position, run
        position = end


def _continues(line: Line, following: Line, apart: float) -> bool:
    """Whether a bold line is the rest of the bold one above it."""
    return (
        following.bold
        and _rounded(line) == _rounded(following)
        and 0 < line.bottom - following.bottom < apart * line.size
        and not _SECTION.match(following.text)
    )


def _deeper(line: Line, following: Line) -> bool:
    """Whether a heading follows another, as 2.1 follows 2."""
    return _SECTION.match(following.text) is not None or following.size != line.size


def _is_heading_style(run: Sequence[Line], measures: Measures) -> bool:
    first, text = run[0], " ".join(line.text for line in run)
    section = _SECTION.match(text)
    title = text[section.end() :] if section else text
    return (
        (first.bold or section is not None)
        and len(run) <= _MOST_LINES
        and _SMALLER * measures.size <= first.size < _LARGER * measures.size
        and len(text) <= (_LONGEST_BOLD if first.bold else _LONGEST_NUMBERED)
        and not (first.typewriter and not measures.typewriter)
        and not (first.table or run[-1].hyphen or first.turn != "none")
        and not title[:1].islower()
        and _LETTERS.search(title) is not None
        and _NOT_HEADING.search(text) is None
        and not is_bullet(text)
        and not any(is_sparse(line, measures) for line in run)
    )


def _large(
    lines: Sequence[Line], measures: Measures, *, first_page: bool
) -> Iterator[tuple[int, Sequence[Line]]]:
    """Runs of lines in one size, larger than that of the text, short enough to be headings."""
    position, before = 0, 0.0
    while position < len(lines):
        end = position + 1
        while end < len(lines):
            above, line = lines[end - 1], lines[end]
            same = _rounded(above) == _rounded(line) and above.typewriter == line.typewriter
            if not same or not 0 < above.bottom - line.bottom < _LINE_SPACE * line.size:
                break
            end += 1
        run = lines[position:end]
        first, size = run[0], run[0].size
        if (
            size >= _LARGER * measures.size
            and len(run) <= _MOST_LINES
            and sum(len(line.text) for line in run) <= _LONGEST
            and not first.typewriter
            and not first.table
            and not is_bullet(first.text)
            and any(_LETTERS.search(line.text) for line in run)
            and not any(is_sparse(line, measures) for line in run)
            and not (first_page and size < _BELOW_TITLE * before)
        ):
            before = size
            yield position, run
        else:
            before = before if size > _LARGER * measures.size else 0.0
        position = end


def evident_title(
    pages: Sequence[PageLines], outline: Sequence[OutlineEntry], measures: Measures
) -> str:
    """What the document calls itself: the one root of its outline, or the largest text up front."""
    roots = [entry for entry in outline if entry.level == 1]
    if len(roots) == 1 and len(outline) > 2 and roots[0].page <= 1:
        return " ".join(roots[0].title.split())
    if not pages:
        return ""
    large = [run for _, run in _large(pages[0].lines, measures, first_page=True)]
    best = max(large, key=lambda run: run[0].size, default=None)
    if best is None or best[0].size < _TITLE_LARGER * measures.size:
        return ""
    title = " ".join(line.text for line in best)
    return "" if _NO_TITLE.fullmatch(_key(title)) else title


_STAMP_LARGER: Final = 1.6  # times the size of the text
_MOST_SLANTED: Final = 2  # pages with the same words
_EDGE_LINES: Final = 3
_EDGE_SHARE: Final = 0.16  # of the height of the page, at the top and at the bottom
_APART: Final = 1.4  # font sizes between such a line and the text
_NUMBER_SHARE: Final = 0.22  # a bare page number may be further in
_LONGEST_LINE: Final = 160  # characters
_NEIGHBOURS: Final = 4  # pages: left and right pages have headers of their own
_FEWEST: Final = 3  # pages, for a line to be a running one
_SLOT_POINTS: Final = 4.0  # lines that near each other are in the same place
_SLOT_SHARE: Final = 0.5  # of the lines in a place are running ones: then all of them are
_LONE_NUMBER_SHARE: Final = 0.1  # of the height of the page

_ROMAN: Final = r"(?=[ivxlc])x{0,4}l?x{0,3}(?:ix|iv|v?i{0,3})"
_NUMBER: Final = re.compile(rf"(?<![^\W_])(?:[0-9]+|{_ROMAN})(?![^\W_])|[0-9]+", re.IGNORECASE)
_PAGE_NUMBER: Final = re.compile(
    rf"\W*(?:page|seite|p\.|s\.)?\s*(?:[0-9]{{1,5}}|{_ROMAN})\W*"
    r"(?:(?:of|von|/)\s*[0-9]{1,5})?\W*",
    re.IGNORECASE,
)


class _Edge(NamedTuple):
    """A line at the edge of a page."""

    page: int
    position: int
    """Among the lines of the page."""
    slot: tuple[bool, int]
    """Top or bottom, and how high."""
    key: str
    """The line without its numbers."""
    apart: bool
    """Whether there is space between it and the text."""


def without_furniture(pages: Sequence[PageLines]) -> list[PageLines]:
    """The pages without running headers, footers and page numbers.

    Args:
        pages: Every page of the document, so that repetition can be seen.

    Returns:
        The same pages; unchanged all of them, if nothing else is there.
    """
    kept = _without_stamps(pages)
    pages = kept if any(page.lines for page in kept) else pages
    edges = [edge for number, page in enumerate(pages) for edge in _edges(number, page)]
    running = _running(edges)
    gone: defaultdict[int, set[int]] = defaultdict(set)
    for edge in edges:
        page = pages[edge.page]
        line = page.lines[edge.position]
        share = line.bottom / page.height if page.height > 0 else 0.5
        outermost = share < _LONE_NUMBER_SHARE or share > 1 - _LONE_NUMBER_SHARE
        # Nothing but a page number at the very edge is none of the text, even on a single page.
        is_lone_number = edge.apart and outermost and _PAGE_NUMBER.fullmatch(line.text)
        if edge in running or is_lone_number:
            gone[edge.page].add(edge.position)
    kept = list(pages)
    for number, positions in gone.items():
        lines = enumerate(pages[number].lines)
        left = tuple(line for position, line in lines if position not in positions)
        kept[number] = replace(pages[number], lines=left)
    return kept if any(page.lines for page in kept) else list(pages)


def _without_stamps(pages: Sequence[PageLines]) -> list[PageLines]:
    """The pages without what is written across them or along their margins."""
    slanted = Counter(
        text for page in pages for text in {one.text for one in page.lines if one.turn == "slanted"}
    )
    kept: list[PageLines] = []
    for page in pages:
        level = [line for line in page.lines if line.turn == "none"]
        if not level or len(level) == len(page.lines):
            kept.append(page)
            continue
        left, right = min(line.left for line in level), max(line.right for line in level)
        size = _STAMP_LARGER * median(line.size for line in level)
        lines = tuple(
            line
            for line in page.lines
            if line.turn == "none"
            or (line.turn == "slanted" and line.size < size and slanted[line.text] < _MOST_SLANTED)
            or (line.turn == "quarter" and _is_among(line, left, right, page.width))
        )
        kept.append(replace(page, lines=lines))
    return kept


def _is_among(line: Line, left: float, right: float, width: float) -> bool:
    """Whether a line that runs up or down is where the text is, and not in a margin.

    Its `bottom` is counted from the one side or the other, as it runs up or down.
    """
    places = (line.bottom, width - line.bottom)
    return all(left < place < right for place in places)


def _edges(number: int, page: PageLines) -> list[_Edge]:
    """The outermost lines at the top and at the bottom of a page, inwards."""
    depths = [-line.bottom for line in page.lines]
    order = sorted(range(len(depths)), key=depths.__getitem__)
    found: list[_Edge] = []
    for top, outward in ((True, order), (False, order[::-1])):
        lines = [page.lines[position] for position in outward[: _EDGE_LINES + 1]]
        # How many come before the innermost wide gap among them.
        gaps = (
            count
            for count in range(_EDGE_LINES, 0, -1)
            if abs(lines[count].bottom - lines[count - 1].bottom)
            > _APART * max(lines[count - 1].size, lines[count].size)
        )
        apart = len(lines) if len(lines) <= _EDGE_LINES else next(gaps, 0)
        for place, line in enumerate(lines[: _edge_lines(lines, page.height, top=top)]):
            found.append(
                _Edge(
                    page=number,
                    position=outward[place],
                    slot=(top, round(line.bottom / _SLOT_POINTS)),
                    key=_NUMBER.sub("#", line.text).casefold(),
                    apart=place < apart,
                )
            )
    return found


def _edge_lines(outward: Sequence[Line], height: float, *, top: bool) -> int:
    """How many of the outermost lines are short and within the edge of the page."""
    for count, line in enumerate(outward[:_EDGE_LINES]):
        share = _NUMBER_SHARE if _PAGE_NUMBER.fullmatch(line.text[:_LONGEST_LINE]) else _EDGE_SHARE
        limit = height * ((1 - share) if top else share)
        outside = line.bottom > limit if top else line.bottom < limit
        if not outside or line.table or len(line.text) > _LONGEST_LINE:
            return count
    return min(_EDGE_LINES, len(outward))


def _running(edges: Sequence[_Edge]) -> set[_Edge]:
    """The lines that recur in their place, and all others in a place where most lines do."""
    spread: defaultdict[tuple[tuple[bool, int], str], list[int]] = defaultdict(list)
    for edge in edges:
        for slot in [(edge.slot[0], edge.slot[1] + offset) for offset in (-1, 0, 1)]:
            spread[slot, edge.key].append(edge.page)
    recurring = {edge for edge in edges if edge.apart and _recurs(edge, spread)}
    taken = Counter(edge.slot for edge in recurring)
    lines = Counter(edge.slot for edge in edges)
    slots = {
        slot
        for slot, count in taken.items()
        if count >= _FEWEST and count >= _SLOT_SHARE * lines[slot]
    }
    return recurring | {edge for edge in edges if edge.apart and edge.slot in slots}


def _recurs(edge: _Edge, spread: Mapping[tuple[tuple[bool, int], str], Sequence[int]]) -> bool:
    pages = spread[edge.slot, edge.key]
    if len(pages) < _FEWEST or len(set(pages[: 2 * _EDGE_LINES * _FEWEST])) < _FEWEST:
        return False
    before = bisect_left(pages, edge.page) - 1
    after = bisect_right(pages, edge.page)
    return (before >= 0 and edge.page - pages[before] <= _NEIGHBOURS) or (
        after < len(pages) and pages[after] - edge.page <= _NEIGHBOURS
    )
