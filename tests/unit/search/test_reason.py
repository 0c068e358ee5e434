"""Why a text is a hit, in the words of the query."""

import os
from typing import Any

import pytest

from filestore.fulltext import Marker, parse_query
from filestore.search.answer import reason

TITLE, HEADINGS, NAME = "Cancel an order", ("Cancel an order", "After delivery"), "orders_2024"
TEXT = "Once delivered, write to the office. Since 3.11 refunds are quick. The lease was renewed."


def told(query: str, meaning: float | None = None, question: str | None = None) -> str:
    """The reason of one hit."""
    marker = Marker(parse_query(query))
    return reason(
        marker,
        title=TITLE,
        headings=HEADINGS,
        name=NAME,
        text=TEXT,
        marks=marker.marks(TEXT),
        question=question,
        meaning=meaning,
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("refunds", "'refunds' in the text"),
        ("cancelling orders", "both words in the title"),
        ("cancel refund", "'cancel' in the title; 'refund' in the text"),
        ("cancel delivery", "'cancel' in the title; 'delivery' in the heading"),
        ("how do I cancel?", "'cancel' in the title"),
        ("orders_2024", "'orders_2024' in the file name"),
        ("3.11", "'3.11' in the text"),
        ('"the office"', 'the phrase "the office" in the text'),
        ("office refund lease quick", "all 4 words in the text"),
        ("office refund lease quick xyzzy", "4 of 5 words in the text"),
        ("xyzzy", ""),
    ],
)
def test_words_and_where_they_are(query: str, expected: str) -> None:
    """Each word is named once, where it says most."""
    assert told(query) == expected


def test_a_name_that_is_no_utf_8() -> None:
    """What is read of it is looked at where it is."""
    text = "A lease."
    marker = Marker(parse_query("report lease"))
    name = os.fsdecode(b"\xff report \xfe")
    asked: dict[str, Any] = {"marks": marker.marks(text), "question": None, "meaning": None}
    found = reason(marker, title=name, headings=[name], name=name, text=text, **asked)
    assert found == "'report' in the title; 'lease' in the text"


def test_meaning_and_questions() -> None:
    """Meaning is a share, behind the words."""
    assert told("xyzzy", 0.636) == "meaning 64 %"
    assert told("refunds", 0.5) == "'refunds' in the text; meaning 50 %"
    assert told("xyzzy", None, "Who pays?") == "a question that it answers"


def test_a_long_query_gives_one_short_line() -> None:
    """What was pasted is not repeated."""
    assert len(told("x" * 5_000 + " office")) < 120
    assert "\n" not in told("office\nlease")
