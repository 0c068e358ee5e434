"""Blocks packed into pieces, counted against the budget, and split where they read best."""

import math
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise, takewhile
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.chunking._repeats import Repeat, Span, active, after, before

HEADING_SEPARATOR: Final = " > "
"""Joins a heading path where it is counted and embedded."""

_SMALL_SHARE: Final = 6  # under budget / 6 a piece is a poor chunk
_TITLE_LIMIT: Final = 1_000  # characters
_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")

Kind = Literal["heading", "prose", "lines", "nested"]


class Block(Struct, frozen=True, kw_only=True):
    start: int
    kind: Kind
    level: int = 0
    """1 to 6 for a heading, else 0."""
    title: str = ""
    boundaries: tuple[int, ...] = ()
    """Where the items of a list start."""
    repeats: tuple[Repeat, ...] = ()
    """What a cut inside it needs."""


class Unit(Struct, frozen=True, kw_only=True):
    """What packing moves: a block, a window of a huge one, or a part of one that was split."""

    start: int
    end: int
    tokens: int
    kind: Kind
    depth: int
    """Level of the heading this is under, or is."""
    titles: tuple[str, ...]
    boundaries: tuple[int, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    final: bool = False
    """Split already; not to be split again."""


class Draft(Struct, frozen=True, kw_only=True):
    units: tuple[Unit, ...]

    @property
    def tokens(self) -> int:
        return sum(unit.tokens for unit in self.units)

    @property
    def titles(self) -> tuple[str, ...]:
        return common_titles(self.units)

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


def common_titles(units: Sequence[Unit]) -> tuple[str, ...]:
    """What the paths of some text begin with in common; of headings alone, theirs."""
    paths = [unit.titles for unit in units if unit.kind != "heading"]
    return common_path(paths or [unit.titles for unit in units])


def common_path(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What some paths begin with in common."""
    alike = takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
    return tuple(names[0] for names in alike)


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

    def repeated_tokens(self, repeats: Sequence[Repeat], start: int, end: int, stop: int) -> int:
        """Tokens of what a piece says again, of a block that ends at ``stop``."""
        if not repeats:
            return 0
        again = before(self.text, active(repeats, start))
        closing = after(self.text, active(repeats, end), end) if end < stop else ""
        return self.count_tokens(f"{again}{closing}")

    def is_small(self, tokens: int) -> bool:
        return tokens * _SMALL_SHARE < self.budget

    def headings(self, titles: tuple[str, ...]) -> tuple[str, ...]:
        return self._path(titles)[0]

    def room(self, titles: tuple[str, ...]) -> int:
        return self._path(titles)[1]

    def _path(self, titles: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        known = self.paths.get(titles)
        if known is None:
            first = titles[0] if titles else ""
            # The words of one may be in the other, as a page's title often names the site, too.
            shorter, longer = sorted((folded(self.title), folded(first)), key=len)
            is_named = bool(shorter.strip()) and shorter in longer and not self.keeps_title
            path = (self.title, *titles) if self.title and not is_named else titles
            shortened = _shorten(path, self.budget // 2, self.count_tokens)
            taken = self.count_tokens(HEADING_SEPARATOR.join(shortened)) if shortened else 0
            known = self.paths[titles] = (shortened, self.budget - taken)
        return known


def clean_title(title: str) -> str:
    """A title on one line, of a sane length."""
    return " ".join(title[:_TITLE_LIMIT].split())


def folded(title: str) -> str:
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


_EVENNESS: Final = 1.1  # slack over equal parts, so that natural boundaries are found
_WORD_LIMIT: Final = 40
_FILL: Final = 0.95  # of a limit, as characters only estimate tokens
_WINDOW: Final = 32_768  # the splitting library is superlinear in what it is given at once

VISIBLE: Final = re.compile(r"\S")
LINE_END: Final = re.compile(r"\n")
_SENTENCE_END: Final = re.compile(r"[.!?][\"')\]»”’]*\s|[。！？]")
_SENTENCE_CLOSED: Final = re.compile(r"[.!?:;…。！？][\"')\]»”’*_`]*$")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

TokenLimits = tuple[int, int]
"""Most tokens of the first part, and of every other."""
Split = Callable[[Measure, Span, TokenLimits], list[Span]]


def split_unit(measure: Measure, unit: Unit, *, first: int, is_led: bool = True) -> list[Unit]:
    """A block in parts: the first of at most ``first`` tokens, the others filling a piece each.

    Args:
        measure: The text and how to count it.
        unit: The block.
        first: The room for its first part, in tokens.
        is_led: Whether that must hold something, as headings wait for it. Else the first part may
            be larger, for a piece of its own, where a row or a sentence would be cut.
    """
    room = measure.room(unit.titles)
    closing, reserve = _reserved(measure, unit.repeats)
    if reserve * 2 > room:
        unit = replace(unit, repeats=())
        closing = reserve = 0
    limits = (max(first - closing, 1), room - reserve)
    span = (unit.start, unit.end)
    boundaries = unit.boundaries
    if unit.kind == "lines":
        ends = LINE_END.finditer(measure.text, unit.start, unit.end)
        boundaries = tuple(line_end.end() for line_end in ends)
        if unit.repeats:
            # Neither a header nor a fence is a piece without what it is for.
            repeat = unit.repeats[0]
            boundaries = tuple(one for one in boundaries if repeat.start < one < repeat.end)
    if boundaries and not is_led:
        row = measure.spaced_tokens(unit.start, boundaries[0])
        limits = (limits[1], limits[1]) if limits[0] < row <= limits[1] else limits
    split_between = split_markdown if unit.kind == "nested" else split_text
    if boundaries:
        spans = split_at(measure, span, boundaries, limits, split_between=split_between)
    else:
        spans = split_between(measure, span, limits)
        if not is_led and unit.kind == "prose" and _is_in_sentence(measure.text, spans[0][1]):
            spans = split_between(measure, span, (limits[1], limits[1]))
    return [
        replace(
            unit,
            start=start,
            end=end,
            tokens=measure.spaced_tokens(start, end)
            + measure.repeated_tokens(unit.repeats, start, end, unit.end),
            kind=unit.kind if start == unit.start or unit.kind != "heading" else "prose",
            boundaries=(),
            final=True,
        )
        for start, end in spans
    ]


def _reserved(measure: Measure, repeats: Iterable[Repeat]) -> tuple[int, int]:
    """The most tokens of what closes a part of a block, and of all that a part says again."""
    open_ones: list[tuple[int, int]] = []
    most_closing = most = 0
    for repeat in repeats:
        while open_ones and open_ones[-1][0] <= repeat.start:
            open_ones.pop()
        closing = measure.count_tokens(repeat.closing) if repeat.closing else 0
        tokens = measure.count_tokens(measure.text[slice(*repeat.lines)]) + closing
        open_ones.append((repeat.end, tokens + (open_ones[-1][1] if open_ones else 0)))
        most_closing, most = max(most_closing, closing), max(most, open_ones[-1][1])
    return most_closing, most


def _is_in_sentence(text: str, offset: int) -> bool:
    """Whether a cut there is in the middle of a sentence."""
    before_it = text[max(0, offset - _WORD_LIMIT) : offset].rstrip()
    return offset < len(text) and not _SENTENCE_CLOSED.search(before_it)


def _even_share(tokens: int, first: int, room: int) -> int:
    """Tokens of the first part, so that the parts come out even and none is tiny."""
    parts = 1 + math.ceil(max(tokens - _FILL * first, 0) / (_FILL * room))
    return max(min(first, int(tokens / parts * _EVENNESS)), 1)


def split_at(
    measure: Measure,
    span: Span,
    boundaries: Sequence[int],
    limits: TokenLimits,
    *,
    split_between: Split,
) -> list[Span]:
    """Splits into even parts at boundaries, and what lies between two and is over its limit.

    Args:
        measure: The text and how to count it.
        span: What to split.
        boundaries: Where a split does least harm, ascending.
        limits: Most tokens of the first part, and of every other.
        split_between: Cuts the text between two boundaries.
    """
    (start, end), (first, room) = span, limits
    boundaries = [*tidy_offsets(measure.text, start, end, boundaries), end]
    tokens = measure.spaced_tokens(start, end)
    shares = (_even_share(tokens, first, room), _even_share(tokens, room, room))
    width = (end - start) / max(tokens, 1)
    spans: list[Span] = []
    index = 0
    while start < end:
        share = shares[1 if spans else 0]
        fitting = _fitting(measure, start, boundaries, index, share, share * width)
        stop = boundaries[max(fitting - 1, index)]
        if fitting > index:
            spans.append((start, stop))
        else:
            rest = (room if spans else first, room)
            spans.extend(split_between(measure, (start, stop), rest))
        start, index = stop, max(fitting, index + 1)
    return spans


def _fitting(
    measure: Measure, start: int, boundaries: Sequence[int], index: int, limit: int, reach: float
) -> int:
    """How many boundaries, counted from the first of all, can be reached within the limit.

    ``reach`` is how far the limit goes by the average, in characters: near there the search starts.
    """

    def fits(candidate: int) -> bool:
        return measure.spaced_tokens(start, boundaries[candidate]) <= limit

    guess = max(bisect_left(boundaries, start + reach), index + 1) - 1
    low, high, step = index, len(boundaries), 1
    if fits(guess):
        low = guess + 1
        while low < high and fits(min(low + step, high) - 1):
            low = min(low + step, high)
            step *= 2
        high = min(low + step - 1, high)
    else:
        high = guess
        while low < high and not fits(max(high - step, low)):
            high = max(high - step, low)
            step *= 2
        low = max(high - step + 1, low)
    return bisect_left(range(high), True, lo=low, key=lambda candidate: not fits(candidate))


def _split_naturally(
    measure: Measure, span: Span, limits: TokenLimits, *, is_markdown: bool
) -> list[Span]:
    """Splits running text where it reads best, and again where a part still has too many tokens."""
    first, room = limits
    done: list[Span] = []
    pending = [span]
    while pending:
        start, end = pending.pop()
        tokens = measure.spaced_tokens(start, end)
        limit = room if done else first
        if tokens <= limit:
            done.append((start, end))
            continue
        share = _even_share(tokens, limit, room)
        capacity = int(_FILL * len(measure.text[start:end].strip()) * share / tokens)
        offsets = _natural_offsets(measure.text, (start, end), capacity, is_markdown=is_markdown)
        stretch = measure.text[start:end]
        visible = len(stretch.strip())
        if not offsets and visible > 1:
            # The last resort, where nothing but single characters is left to tell apart.
            middle = start + len(stretch) - len(stretch.lstrip()) + visible // 2
            offsets = tidy_offsets(measure.text, start, end, [middle])
        if not offsets:
            done.append((start, end))
            continue
        # The first part may be the small one; what follows it is split into even parts by itself.
        kept = offsets if limit == room else offsets[:1]
        pending.extend(reversed(spans_between(start, end, kept)))
    return done


split_text: Final[Split] = partial(_split_naturally, is_markdown=False)
split_markdown: Final[Split] = partial(_split_naturally, is_markdown=True)


def windows(text: str, span: Span, boundaries: Sequence[int] = ()) -> list[Span]:
    """A stretch in parts small enough for the library: split at boundaries, lines or words."""
    offsets: list[int] = []
    start, end = span
    while end - start > _WINDOW:
        half, stop = start + _WINDOW // 2, start + _WINDOW
        boundary = boundaries[bisect_right(boundaries, stop) - 1] if boundaries else -1
        found = (boundary, text.rfind("\n", half, stop) + 1, text.rfind(" ", half, stop) + 1)
        start = next((offset for offset in found if offset > half), stop)
        offsets.append(start)
    return spans_between(*span, tidy_offsets(text, *span, offsets))


def _off_word(text: str, offset: int) -> int:
    """The offset, or the white space shortly before it where it would fall inside a word."""
    if text[offset - 1].isspace() or text[offset].isspace():
        return offset
    before = max(text.rfind(space, offset - _WORD_LIMIT, offset) for space in " \n")
    return before + 1 or offset


def _natural_offsets(text: str, span: Span, capacity: int, *, is_markdown: bool) -> list[int]:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    stretch = text[span[0] : span[1]]
    visible = stretch.strip()
    if capacity < 1 or len(visible) <= capacity:
        return []
    start = span[0] + len(stretch) - len(stretch.lstrip())
    # The library takes UTF-8 only; a placeholder of the same length keeps the offsets.
    visible = _SURROGATE.sub("\ufffd", visible)
    splitter = MarkdownSplitter if is_markdown else TextSplitter
    if not is_markdown:
        ends = _SENTENCE_END.findall(visible)
        lines = visible.count("\n") + 1
        is_prose = len(visible) >= 40 * lines and len(ends) * 400 >= len(visible)
        # Where sentences run over line ends, a line end is no good place to split.
        if is_prose and sum(end.endswith("\n") for end in ends) * 2 < lines:
            visible = visible.replace("\n", " ")
    chunks = splitter(capacity, trim=False).chunk_indices(visible)
    offsets = [_off_word(text, start + offset) for offset, _ in chunks[1:]]
    if not is_markdown and is_prose:
        offsets = _off_sentences(text, start, offsets)
    return tidy_offsets(text, span[0], span[1], offsets)


def _off_sentences(text: str, start: int, offsets: Sequence[int]) -> list[int]:
    """Offsets, those inside a sentence moved to where it begins, unless that is far away."""
    found: list[int] = []
    for offset in offsets:
        least = (start + offset) // 2
        if _is_in_sentence(text, offset):
            ends = [one.end() for one in _SENTENCE_END.finditer(text, least, offset)]
            # Behind a full stop that is one of an abbreviation there is a small letter.
            offset = next((one for one in reversed(ends) if not text[one].islower()), offset)
        found.append(offset)
        start = offset
    return found


def tidy_offsets(text: str, start: int, end: int, offsets: Iterable[int]) -> list[int]:
    """Moves offsets so that no part is only white space and each starts at a line's indentation.

    White space at an offset goes to the part before, but what follows its last line end to the part
    after. Offsets must ascend.
    """
    tidy: list[int] = []
    done = start
    for offset in offsets:
        if offset <= done:
            continue
        visible = VISIBLE.search(text, offset, end)
        if visible is None:
            break
        left = offset
        while left > done and text[left - 1].isspace():
            left -= 1
        if left > start:
            line_end = text.rfind("\n", left, visible.start())
            tidy.append(line_end + 1 if line_end >= 0 else visible.start())
        done = visible.start()
    return tidy


def spans_between(start: int, end: int, offsets: Sequence[int]) -> list[Span]:
    return list(pairwise([start, *offsets, end]))


_WORTHWHILE_SHARE: Final = 3  # a split block starts in the open piece if budget / 3 is left there


def pack(measure: Measure, section: Sequence[Unit]) -> list[Draft]:
    """Fills pieces in order, splitting only what fits no piece or would leave a poor one behind."""
    drafts: list[Draft] = []
    current: list[Unit] = []
    used = 0
    pending = deque(section)
    while pending:
        unit = pending.popleft()
        room = measure.room(common_titles([*current, unit]))
        if used + unit.tokens <= room or (not current and unit.final):
            current.append(unit)
            used += unit.tokens
        elif _is_split_here(measure, current, unit, used=used, left=room - used):
            is_led = bool(current) and all(other.kind == "heading" for other in current)
            parts = split_unit(measure, unit, first=room - used, is_led=is_led)
            pending.extendleft(reversed(parts))
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
    """Joins poor chunks with the section below or next to them, forwards, else backwards."""
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
    # The tail of a section is alone: joined on, it would give its path to another section.
    is_tail = draft.depth > 0 and not draft.opens_section
    belongs = following.depth >= draft.depth and not following.opens_chapter
    return measure.is_small(draft.tokens) and belongs and not is_tail


def _fit(measure: Measure, first: Draft, second: Draft) -> bool:
    both = common_titles([*first.units, *second.units])
    return first.tokens + second.tokens <= measure.room(both)


def verified_spans(measure: Measure, draft: Draft) -> list[Span]:
    """A draft as it is, or split between blocks: together they may hold more tokens than apart."""
    start, end = draft.units[0].start, draft.units[-1].end
    if len(draft.units) == 1 or measure.tokens(start, end) <= measure.room(draft.titles):
        return [(start, end)]
    paths = {unit.titles[:depth] for unit in draft.units for depth in range(len(unit.titles) + 1)}
    room = min(map(measure.room, paths))
    boundaries = [unit.start for unit in draft.units[1:]]
    return split_at(measure, (start, end), boundaries, (room, room), split_between=split_markdown)
