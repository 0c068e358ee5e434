"""Data among words: pictures, keys and files in Base64 or hex say nothing, all else stays."""

import base64
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunking import blanked_data, data_spans, without_data

_SOME = random.Random(11)
_LONG = base64.b64encode(_SOME.randbytes(900)).decode()


def _lines(width, before="", end="\n"):
    return "".join(f"{before}{_LONG[at : at + width]}{end}" for at in range(0, len(_LONG), width))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a ![alt words](data:image/png;base64,{_LONG}) b", "a ![alt words]() b"),
        (f"[p]: data:image/png;base64,{_LONG} 'title'\n", "[p]:  'title'\n"),
        ('<img alt="a dog" src="data:image/gif;base64,R0lGOD=">', '<img alt="a dog" src="">'),
        ("a { background: url(data:image/svg+xml,%3Csvg%3E) }", "a { background: url() }"),
        ("a { background: url('DATA:;base64,aGk=') }", "a { background: url('') }"),
        (f"ssh-rsa {_LONG} me@host", "ssh-rsa  me@host"),
        (f"dump {_SOME.randbytes(200).hex()} end", "dump  end"),
        (f"-- BEGIN KEY --\n{_lines(64)}-- END KEY --\n", "-- BEGIN KEY --\n\n-- END KEY --\n"),
        (f"> On it:\n{_lines(75, '> ')}\nBest", "> On it:\n\n\nBest"),
        (f"a\r\n\r\n{_lines(60, end=chr(13) + chr(10))}\r\nb", "a\r\n\r\n\n\r\nb"),
    ],
)
def test_data_is_no_text(text, left):
    """Alternative texts, titles and what stands around it stay, each at its place."""
    assert without_data(text) == left
    blank = blanked_data(text)
    assert len(blank) == len(text)
    assert [place for place, sign in enumerate(text) if sign == "\n"] == [
        place for place, sign in enumerate(blank) if sign == "\n"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The data: all of it, and metadata:image/x,y.",
        f"sum {_SOME.randbytes(64).hex()} of the file",
        f"{'=' * 400}\n{'-' * 400}\n{'_' * 400}",
        f"see {'a-long-name-' * 40}2024",
        "word" * 100,
        "\n".join(["a" * 60] * 9),
        "\n".join(
            f"{number} apples and {number} pears for {number} people" for number in range(90)
        ),
        "文字" * 300,
    ],
)
def test_words_are_no_data(text):
    """Digests, rules, long names and tables are found by what they are."""
    assert data_spans(text) == []


@given(text=st.text(st.sampled_from("aA9+/=_- \n>:,;(data)")).map(lambda some: some * 20))
def test_what_is_left_is_what_stands_outside(text):
    """Stretches are in order and apart, and both views of the text agree."""
    spans = data_spans(text)
    assert all(end < start for (_, end), (start, _) in pairwise(spans))
    kept = "".join(sign for at, sign in enumerate(text) if not any(a <= at < b for a, b in spans))
    assert without_data(text) == kept
