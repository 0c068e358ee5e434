"""Fills pieces with blocks, section by section: none poor, no heading left alone."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from filestore.chunking._measure import Draft, Measure, Span, Unit
from filestore.chunking._splitting import split_at, split_markdown, split_unit

_WORTHWHILE_SHARE: Final = 3  # a split block starts in the open piece if budget / 3 is left there


def pack(measure: Measure, section: Sequence[Unit]) -> list[Draft]:
    """Fills pieces in order, splitting only what fits no piece or would leave a poor one behind."""
    drafts: list[Draft] = []
    current: list[Unit] = []
    used = 0
    pending = deque(section)
    while pending:
        unit = pending.popleft()
        room = measure.room((current or [unit])[0].titles)
        if used + unit.tokens <= room or (not current and unit.final):
            current.append(unit)
            used += unit.tokens
        elif _is_split_here(measure, current, unit, used=used, left=room - used):
            pending.extendleft(reversed(split_unit(measure, unit, first=room - used)))
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
    """Joins poor chunks with the section below or beside them, forwards, else backwards."""
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
    # The tail of a section stands alone: joined on, it would give its path to another section.
    is_tail = draft.depth > 0 and not draft.opens_section
    belongs = following.depth >= draft.depth and not following.opens_chapter
    return measure.is_small(draft.tokens) and belongs and not is_tail


def _fit(measure: Measure, first: Draft, second: Draft) -> bool:
    return first.tokens + second.tokens <= measure.room(first.titles)


def verified_spans(measure: Measure, draft: Draft) -> list[Span]:
    """A draft as it is, or split between blocks: together they may hold more tokens than apart."""
    start, end = draft.units[0].start, draft.units[-1].end
    if len(draft.units) == 1 or measure.tokens(start, end) <= measure.room(draft.titles):
        return [(start, end)]
    room = min(measure.room(unit.titles) for unit in draft.units)
    boundaries = [unit.start for unit in draft.units[1:]]
    return split_at(measure, (start, end), boundaries, (room, room), split_between=split_markdown)
