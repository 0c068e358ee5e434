"""What a row calls a chunk file, from its first bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse.rows import OPENING_BYTES, first_words


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("# Renames\n\nA renamed file.\n", "Renames"),
        ("---\nsource: a.md\nheadings: [Guide]\n---\n\n## Escapes\n\nMore.\n", "Escapes"),
        ("\ufeff---\r\nkind: chunk\r\n---\r\nWords   of\tit\r\n", "Words of it"),
        ("- first item\n- second\n", "first item"),
        ("```python\nimport os\n```\n", "import os"),
        ("***\n\n> quoted\n", "quoted"),
        ("1) one\n", "one"),
        ("| a | b |\n", "a | b |"),
        ("-----\nplain\n", "plain"),
        ("---\nnever: ended\n", ""),
        ("", ""),
        ("\n \n", ""),
        ("a" * 200, "a" * 80 + "…"),
        ("word " * 40, ("word " * 16).strip() + "…"),
    ],
)
def test_the_first_words_are_those_of_the_text(data, words):
    """Frontmatter and the signs of Markdown are left out; long ones end between words."""
    assert first_words(data.encode()) == words


def test_a_character_cut_in_two_is_left_out():
    """What is looked at may end in the middle of one."""
    assert first_words("wörter é".encode()[:-1]) == "wörter"


@given(st.binary(max_size=200))
def test_any_bytes_give_words_on_one_line(data):
    """Nothing is too odd, and nothing of it breaks a row."""
    words = first_words(data[:OPENING_BYTES])
    assert len(words) <= 81
    assert len(words.splitlines()) <= 1
