"""Source code in pieces: its outline becomes a tree of parts.

A part that fits is one piece; of one that does not, the head and the members are pieces, and small
neighbours are joined again. The path of a piece is what the parts in it have in common.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.chunking import Symbol
from filestore.chunking._repeats import Span
from filestore.chunking._splitting import (
    VISIBLE,
    Measure,
    TokenLimits,
    clean_title,
    common_path,
    split_at,
    split_text,
    windows,
)

Titles = tuple[str, ...]

_MAX_DEPTH: Final = 12
_SMALL_SHARE: Final = 4  # a function under budget / 4 goes with its neighbours
_TINY_SHARE: Final = 8  # a head under budget / 8 is never alone
_INDENTATIONS: Final = 6  # that are distinguished where a function is split

_LINE: Final = re.compile(r"^([ \t]*)(\S{1,8})", re.MULTILINE)
_CONTINUATION: Final = re.compile(
    r"[)}\]>]|(?:else|elif|elsif|except|rescue|catch|finally|ensure|end|then|fi|done|esac)\b"
)
"""What goes on with the statement above it."""


class _Part(Struct, kw_only=True):
    """A part of the code: its head, and the parts inside it."""

    start: int
    end: int
    """Of the head."""
    level: int
    titles: Titles
    inner: "list[_Part]" = field(default_factory=list)
    head_tokens: int = 0
    tokens: int = 0
    """Of the head and everything inside."""
    stop: int = 0
    """End of everything inside."""
    shared: Titles = ()
    """What the paths of the head and everything inside have in common."""


class _Group(Struct, frozen=True, kw_only=True):
    """What becomes one piece."""

    start: int
    end: int
    tokens: int
    titles: Titles
    is_head: bool = False
    is_fragment: bool = False
    """Belongs to something that was split: joined with tiny neighbours only."""


def code_spans(measure: Measure, outline: Iterable[Symbol]) -> Iterator[tuple[int, int, Titles]]:
    """Splits source code: start and end of each piece, and the names around it."""
    parts = _parts(measure.text, outline)
    root = _Part(start=0, end=0, level=-1, titles=())
    path = [root]
    for part in parts:
        while path[-1].level >= max(part.level, 0):
            path.pop()
        if part.level == 0:
            root.end = part.end  # what is before the first name is the head of the file
            continue
        path[-1].inner.append(part)
        path.append(part)
    _count(measure, root)
    for group in _packed(measure, root):
        room = _room(measure, group.titles)
        spans = [(group.start, group.end)]
        if measure.tokens(group.start, group.end) > room:
            spans = _split_lines(measure, spans[0], room)
        for start, end in spans:
            yield start, end, _path(group.titles)


def _parts(text: str, outline: Iterable[Symbol]) -> list[_Part]:
    """Parts that partition the text, each from a line start on, none blank."""
    parts = [_Part(start=0, end=0, level=0, titles=())]
    path: list[tuple[int, str]] = []
    for symbol in outline:
        # The start of the line there, or of the next that is not blank; the end without one.
        visible = VISIBLE.search(text, text.rfind("\n", 0, max(symbol.start, 0)) + 1)
        start = text.rfind("\n", 0, visible.start()) + 1 if visible else len(text)
        level = min(max(symbol.level, 1), _MAX_DEPTH)
        if start < parts[-1].start or start >= len(text):
            continue
        is_shared = start == parts[-1].start and bool(path)
        # Of several next to each other on one line, none names it.
        name = "" if is_shared and path[-1][0] >= level else clean_title(symbol.title)
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, name))
        if is_shared or not VISIBLE.search(text, parts[-1].start, start):
            last = parts.pop()
            level = min(level, last.level) if is_shared else level
            start = last.start
        parts.append(
            _Part(start=start, end=0, level=level, titles=tuple(name for _, name in path if name))
        )
    for part, following in pairwise(parts):
        part.end = following.start
    parts[-1].end = len(text)
    return parts


def _path(titles: Titles) -> Titles:
    """Names from the outside in, without the ones that the next one begins with."""
    kept = [
        name
        for name, inner in pairwise(titles)
        if not inner.startswith((f"{name}.", f"{name}:", f"{name}#"))
    ]
    return (*kept, *titles[-1:])


def _room(measure: Measure, titles: Titles) -> int:
    return measure.room(_path(titles))


def _count(measure: Measure, part: _Part) -> None:
    if part.start < part.end:
        part.head_tokens = measure.spaced_tokens(part.start, part.end)
    part.tokens, part.stop, part.shared = part.head_tokens, part.end, part.titles
    for inner in part.inner:
        _count(measure, inner)
        is_first = part.start == part.end and inner is part.inner[0]
        part.shared = inner.shared if is_first else common_path([part.shared, inner.shared])
        part.tokens += inner.tokens
        part.stop = inner.stop


def _packed(measure: Measure, part: _Part) -> list[_Group]:
    """The pieces of a part."""
    whole = _Group(start=part.start, end=part.stop, tokens=part.tokens, titles=part.shared)
    if whole.tokens <= _room(measure, whole.titles):
        return [whole]
    if not part.inner:
        return _fragments(measure, part)
    inner = part.inner
    groups: list[_Group] = []
    if part.start < part.end:
        first = part.inner[0]
        is_tiny = part.head_tokens * _TINY_SHARE < measure.budget
        # A tiny head goes with a first member that has to be split anyway.
        if is_tiny and part.head_tokens + first.tokens > _room(measure, first.titles):
            whole_first = replace(
                first,
                start=part.start,
                head_tokens=part.head_tokens + first.head_tokens,
                tokens=part.head_tokens + first.tokens,
            )
            inner = [whole_first, *inner[1:]]
        elif part.head_tokens > _room(measure, part.titles):
            groups += _fragments(measure, part)
        else:
            groups.append(
                _Group(
                    start=part.start,
                    end=part.end,
                    tokens=part.head_tokens,
                    titles=part.titles,
                    is_head=part.level > 0,
                )
            )
    for member in inner:
        packed = _packed(measure, member)
        if len(packed) > 1:
            packed = [replace(group, is_fragment=True) for group in packed]
        groups += packed
    # Small neighbours are joined, so is the head of a class with its first member.
    joined: list[_Group] = []
    for group in groups:
        both = _together(measure, joined[-1], group) if joined else None
        if both:
            joined[-1] = both
        else:
            joined.append(group)
    return joined


def _fragments(measure: Measure, part: _Part) -> list[_Group]:
    spans = _split_lines(measure, (part.start, part.end), _room(measure, part.titles))
    return [
        _Group(
            start=start,
            end=end,
            tokens=measure.spaced_tokens(start, end),
            titles=part.titles,
            is_fragment=True,
        )
        for start, end in spans
    ]


def _together(measure: Measure, first: _Group, second: _Group) -> _Group | None:
    tokens = first.tokens + second.tokens
    is_led = _is_small_next_to(measure, first, second)
    is_trailed = _is_small_next_to(measure, second, first)
    is_fragment = first.is_fragment or second.is_fragment
    is_small = min(first.tokens, second.tokens) * _SMALL_SHARE < measure.budget
    if not (is_led or is_trailed or (not is_fragment and (is_small or first.is_head))):
        return None
    titles = common_path([first.titles, second.titles])
    if is_led or is_trailed:
        titles = second.titles if is_led else first.titles
    if tokens > _room(measure, titles):
        return None
    return _Group(
        start=first.start, end=second.end, tokens=tokens, titles=titles, is_fragment=is_fragment
    )


def _is_small_next_to(measure: Measure, small: _Group, group: _Group) -> bool:
    """Whether it is small next to the other, and belongs to what is around the other."""
    is_small = small.tokens * _SMALL_SHARE < measure.budget and small.tokens * 2 < group.tokens
    return is_small and group.titles[: len(small.titles)] == small.titles


def _split_lines(measure: Measure, span: Span, room: int) -> list[Span]:
    """Splits where it reads best: at blank lines, then at statements, the outermost first."""
    lines: list[tuple[int, int]] = []
    after_blank: list[int] = []
    every: list[int] = []
    line_end = span[0]
    for line in _LINE.finditer(measure.text, *span):
        every.append(line.start())
        if not _CONTINUATION.match(line[2]):
            lines.append((line.start(), len(line[1].expandtabs(8))))
            if line_end < line.start():
                after_blank.append(line.start())
        line_end = measure.text.find("\n", line.end(), span[1]) + 1 or span[1]
    widths = sorted({width for _, width in lines})[:_INDENTATIONS]
    by_width = [[start for start, width in lines if width <= limit] for limit in widths]
    spans = _split_at_best([after_blank, *by_width, every], measure, span, (room, room))
    joined: list[tuple[Span, int]] = []
    for start, end in spans:
        tokens = measure.spaced_tokens(start, end)
        if joined:
            (before, _), used = joined[-1]
            is_small = min(used, tokens) * _SMALL_SHARE < measure.budget
            # The sum leaves out blank lines beyond the first between the two.
            if is_small and used + tokens <= room and measure.tokens(before, end) <= room:
                joined[-1] = ((before, end), used + tokens)
                continue
        joined.append(((start, end), tokens))
    return [span for span, _ in joined]


def _split_at_best(
    tiers: Sequence[Sequence[int]], measure: Measure, span: Span, limits: TokenLimits
) -> list[Span]:
    for position, boundaries in enumerate(tiers):
        inside = boundaries[bisect_right(boundaries, span[0]) : bisect_left(boundaries, span[1])]
        if inside:
            split_between = partial(_split_at_best, tiers[position + 1 :])
            return split_at(measure, span, inside, limits, split_between=split_between)
    spans: list[Span] = []
    for window in windows(measure.text, span):
        spans += split_text(measure, window, (limits[1] if spans else limits[0], limits[1]))
    return spans
