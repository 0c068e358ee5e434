"""Words that markup parts are read as one, where they stand."""

import time

import pytest

from filestore.fulltext import Marker, parse_query
from filestore.fulltext._analysis import parted_words


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("caf&eacute;", "café"),
        ("na&#239;ve", "naïve"),
        ("&Eacute;cole", "École"),
        ("z&#xfc;rich", "zürich"),
        ("im**possi**ble", "impossible"),
        ("*half*way", "halfway"),
        ("CO<sub>2</sub>", "CO2"),
        ('<b class="x">W</b>ord', "Word"),
        ("cross&shy;road", "crossroad"),
        ("cross\u00adroad", "crossroad"),
        ("zero\u200dwidth\u200bword", "zerowidthword"),
        ("long<wbr>name", "longname"),
        ("snake\\_case", "snake_case"),
        ("~~dis~~appear", "disappear"),
        ("B&amp;Q", "B&Q"),
    ],
)
def test_what_is_read_is_found_where_it_stands(written, read):
    """In a line of its own, and between other words."""
    text = f"First line.\nThen {written}, and more.\n"
    assert list(parted_words(text)) == [(17, 17 + len(written), read)]
    if "&" not in read:
        (mark,) = Marker(parse_query(read.lower(), "plain")).marks(text)
        assert text[mark.start : mark.end] == written


@pytest.mark.parametrize(
    "text",
    [
        "**bold** and *it*",
        "* item\n* item",
        "a < b && c > d",
        "f(*args, **kwargs)",
        "R &amp; D",
        "x",
    ],
)
def test_markup_around_words_parts_none(text):
    """Nothing is made of it."""
    assert list(parted_words(text)) == []


@pytest.mark.parametrize(
    "text", ["a*" * 100_000, "&a;" * 60_000, "*" * 200_000, "a<b " * 50_000, "a" * 200_000 + "*b"]
)
def test_whatever_the_text_it_takes_no_time(text):
    """It is linear in the text, whoever wrote it."""
    started = time.thread_time()
    list(parted_words(text))
    assert time.thread_time() - started < 5
