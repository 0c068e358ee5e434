"""The one count of tokens, by which every text is cut."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunking import _TOKEN, count_tokens


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_count_is_the_pattern_s_count(text: str) -> None:
    """ASCII text has as many tokens by the fast way as by the pattern that defines them."""
    assert count_tokens(text) == len(re.findall(_TOKEN, text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("  \n\t ", 0),
        ("word", 1),
        ("internationalisation", 3),
        ("12345", 3),
        ("a.b_c", 5),
        ("目录重建", 4),
        ("目录, and 7", 5),
        ("größe", 3),
    ],
)
def test_tokens_of_known_texts(text: str, tokens: int) -> None:
    """Letters go by sevens, digits by twos, ideographs and marks one by one."""
    assert count_tokens(text) == tokens


@given(text=st.text(), more=st.text())
def test_more_text_has_no_fewer_tokens(text: str, more: str) -> None:
    """The count is the same each time, and no smaller with more text."""
    count = count_tokens(text)
    assert count == count_tokens(text) >= 0
    assert count_tokens(f"{text} {more}") >= count
