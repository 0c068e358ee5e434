"""Dates as people and programs write them, as stretches of time. Pure.

A day, a month or a year is a stretch: what lies in it is equal to it. One rule: a time without a
zone is one of UTC.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from msgspec import Struct

from filestore.core.errors import UsageError
from filestore.core.safe_text import brief

_ISO: Final = (
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})(?:[T ](?P<time>[0-9:.]{5,15})"
    r" ?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    """Compiled on first use: that takes milliseconds, and a stamp needs none of it."""
    return re.compile(expression, re.IGNORECASE | re.ASCII)


_LEAST: Final = timedelta(microseconds=1)

Span = tuple[datetime, datetime]
"""The first moment of a day, a month or a year, and the first behind it."""


def is_iso(text: str) -> bool:
    """Whether a text is written as a date of ISO 8601, be it one of the calendar or not."""
    return _pattern(_ISO).fullmatch(text) is not None


def asked_span(option: str, text: str) -> Span:
    """The time that an option names.

    Raises:
        UsageError: It is no date.
    """
    if (span := iso_span(text)) is None:
        raise UsageError(
            f"{option} takes a date, found {brief(text)}",
            remedy=f"{option} 2026, 2026-05, 2026-05-03 or 2026-05-03T14:30Z",
        )
    return span


def iso_span(text: str) -> Span | None:
    """The time that a date of ISO 8601 is, to the day, month or year; None for any other text."""
    found = _pattern(_ISO).fullmatch(text)
    if found is None:
        return None
    year, month, day = (int(found[part] or 0) for part in ("year", "month", "day"))
    try:
        first = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if found["time"]:
            zone = (found["zone"] or "Z").replace("Z", "+00:00")
            at = datetime.fromisoformat(f"{text[:10]}T{found['time']}{zone}").astimezone(UTC)
            return at, at + _LEAST
    except (ValueError, OverflowError):
        return None
    try:
        if day:
            return first, first + timedelta(days=1)
        later = 1 if not month or month == 12 else 0
        return first, first.replace(year=year + later, month=(month % 12 if month else 0) + 1)
    except (ValueError, OverflowError):
        # The last day that there is.
        return first, datetime.max.replace(tzinfo=UTC)


class Moment(Struct, frozen=True, order=True):
    """A date that a file says, or that is known of it."""

    at_s: float
    """When it begins, in seconds since 1970."""
    day: str
    """In ISO 8601 and UTC, as far as it is known: 2026-05-03, 2026-05 or 2026."""


_LONGEST: Final = 60
_EPOCH: Final = r"([0-9]{9,10}(?:\.[0-9]{1,9})?)|([0-9]{13})"
"""In seconds, or in milliseconds."""
_MONTHS: Final[Mapping[str, int]] = {
    name: number
    for number, name in enumerate(
        (
            *("january", "february", "march", "april", "may", "june", "july"),
            *("august", "september", "october", "november", "december"),
        ),
        start=1,
    )
}
_ORDINAL: Final = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th|\.)?"
_MONTH: Final = r"(?P<month>[A-Za-z]{3,9})\.?"
_YEAR: Final = r"(?P<year>[0-9]{4})"
_REST: Final = r"(?![0-9]).{0,40}"
_WEEKDAY: Final = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_WRITTEN: Final = (
    rf"{_YEAR}([-/.])(?P<month>[0-9]{{1,2}})\2(?P<day>[0-9]{{1,2}}){_REST}",
    r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
    rf"{_WEEKDAY}{_MONTH} {_ORDINAL},? {_YEAR}{_REST}",
    rf"{_WEEKDAY}{_ORDINAL} {_MONTH},? {_YEAR}{_REST}",
)
"""2026/5/3, 20260503, May 3, 2026 and 3 May 2026; a time behind them is passed over. Numbers of
day and month before the year are in no order that all agree on, and are no date."""


def read_date(text: str) -> Moment | None:
    """A date of frontmatter, in whatever of many forms; None for what is none."""
    text = text.strip().strip("[]").strip()
    if not text or len(text) > _LONGEST:
        return None
    if (span := iso_span(text)) is not None:
        return Moment(span[0].timestamp(), text if len(text) < 10 else span[0].date().isoformat())
    if (number := _pattern(_EPOCH).fullmatch(text)) is not None:
        return moment(float(number[1]) if number[1] else int(number[2]) / 1000)
    for form in _WRITTEN:
        if (found := _pattern(form).fullmatch(text)) is not None:
            name = found["month"].lower()
            names = (number for month, number in _MONTHS.items() if month.startswith(name))
            month = int(name) if name.isdigit() else next(names, 0)
            with suppress(ValueError):
                day = datetime(int(found["year"]), month, int(found["day"]), tzinfo=UTC)
                return Moment(day.timestamp(), day.date().isoformat())
    return None


def moment(seconds: float) -> Moment | None:
    """A moment in seconds since 1970; None outside of the calendar."""
    try:
        return Moment(seconds, datetime.fromtimestamp(seconds, UTC).date().isoformat())
    except (ValueError, OverflowError, OSError):
        return None
