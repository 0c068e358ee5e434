"""Normal forms of texts, also of such as no person writes."""

import re
import sys
import unicodedata
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.spelling import normalized

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


@given(st.sampled_from(get_args(Form)), st.lists(st.text()), st.integers(0, 2))
def test_a_text_has_the_form_that_unicode_gives_it(form: Form, words: list[str], many: int) -> None:
    """Also where a run of other signs has it looked at in parts."""
    text = ("-" * 1_000 * many).join(words)
    assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", get_args(Form))
def test_marks_alone_take_no_time_to_speak_of(form: Form) -> None:
    """In the order of Unicode each pair of them would be moved past all before: for hours."""
    marks = "\u0316\U0001d165\u0301\u0323" * 500_000
    found = normalized(form, f"a{marks} b")
    assert len(found) >= len(marks)
    assert found.endswith(" b")


def test_a_mark_is_no_letter() -> None:
    """Whatever is sorted belongs to a run that is looked for."""
    marks = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))]
    assert not re.findall(r"[\w\s]", "".join(marks))
