"""Dates of frontmatter, in the forms that people and programs give them."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.dates import Moment, iso_span, moment, read_date

DAY = "2026-05-03"


@pytest.mark.parametrize(
    "written",
    [
        *("2026-05-03", "2026-5-3", "2026/05/03", "2026.05.03", "20260503", "[[2026-05-03]]"),
        *("May 3, 2026", "3 May 2026", "Sunday, May 3rd, 2026", "Sun, 03 May 2026 10:00:00 +0000"),
        *("2026-05-03T14:30", "2026-05-03T14:30:59.123456789Z", "2026-05-03 14:30:00 +0200"),
        *("2026-05-03T23:30-00:00", "2026-05-04T01:00+02:00", "2026-05-03 (a Sunday)"),
        *("1777777777", "1777777777.5", "1777777777000"),
    ],
)
def test_one_day_in_many_forms(written: str) -> None:
    found = read_date(written)
    assert found is not None
    assert found.day == DAY


@pytest.mark.parametrize(
    "written",
    [
        *("", "yesterday", "0000-01-01", "2026-13-01", "2026-02-30", "03/05/2026", "Mai 3, 2026"),
        *("May 32, 2026", "2026-05-03-04" * 9, "12", "true", "null", "9" * 400, "-1", "2026-0"),
    ],
)
def test_what_is_no_date(written: str) -> None:
    assert read_date(written) is None


def test_what_is_known_only_to_the_month() -> None:
    assert read_date("2026-05") == Moment(read_date("2026-05-01").at_s, "2026-05")  # type: ignore[union-attr]
    assert read_date("9999").day == "9999"  # type: ignore[union-attr]
    assert read_date("0001").day == "0001"  # type: ignore[union-attr]


@given(st.dates())
def test_every_day_of_the_calendar(day: date) -> None:
    forms = (day.isoformat(), day.strftime("%B ") + f"{day.day}, {day.year:04}", f"{day:%Y%m%d}")
    for written in forms if day.year > 999 else forms[:1]:
        found = read_date(written)
        assert found is not None
        assert found.day == day.isoformat()
        assert moment(found.at_s) == found


@given(st.text(max_size=80) | st.from_regex(r"[0-9A-Za-z:/,.\- TZ+]{1,70}", fullmatch=True))
def test_any_text_is_a_date_or_none(text: str) -> None:
    found = read_date(text)
    assert found is None or iso_span(found.day) is not None


@given(st.floats() | st.integers())
def test_any_number_is_a_moment_or_none(seconds: float) -> None:
    found = moment(seconds)
    assert found is None or iso_span(found.day) is not None
