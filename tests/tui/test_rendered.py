"""Markdown drawn for a width: safe, whole, and left when nobody waits for it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.views.rendered import parts, rendered

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
PIECES = st.sampled_from(
    [
        "# Title\n",
        "word ",
        "\n\n",
        "\n",
        "- item\n",
        "  1. deeper\n",
        "> quoted\n",
        "```sh\n",
        "```\n",
        "~~~\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "**bold** `code` ~~gone~~ ",
        "[text](http://x/&#27;) ",
        "![alt &#x9b;](y.png) ",
        "[![in](i.png)](z) ",
        "<kbd>K</kbd> </kbd> ",
        "<div>\x1b]0;t\x07</div>\n",
        "&#27;[31m &#x202e; &#0; &Tab; ",
        "\x1b[2J\x9b2J\u202e\x07 ",
        "[b]x[/b] [@click=q]y[/] ",
        "漢字 é 👩‍👩‍👧 ",
        "---\n",
        "    code\n",
        "[ref]: http://x\n",
        "\\\n",
    ]
)


def drawn(text, width=60):
    """What is on each line."""
    strips = rendered(text, width, wanted=lambda: True)
    return ["".join(segment.text for segment in strip) for strip in strips]


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(1, 100))
def test_no_text_steers_the_terminal(text, width):
    """Whatever a text holds, and whatever Markdown makes of it, no control character comes out."""
    for line in drawn(text, width):
        assert not UNSAFE.search(line), line


@given(st.text(max_size=200))
def test_any_text_can_be_drawn(text):
    """There is no text that cannot be shown as Markdown."""
    for line in drawn(text):
        assert not UNSAFE.search(line), line


@given(st.lists(PIECES, max_size=200).map("".join))
def test_parts_are_the_text(text):
    """Parts joined by an empty line have all the lines of the text, in their order."""
    found = parts(text)
    kept = [line for line in "\n".join(found).split("\n") if line.strip()]
    assert kept == [line for line in text.split("\n") if line.strip()]


def test_fenced_code_is_not_cut():
    """A long listing with empty lines stays one, so that its end is not taken for text."""
    listing = "```\n" + "code\n\n" * 3_000 + "```"
    assert parts(f"{listing}\n\n# After") == [listing, "# After"]


def test_a_link_says_where_it_leads():
    """Links are text with their address, not hidden behind it."""
    assert "go (http://example.org/x)" in " ".join(drawn("[go](http://example.org/x)"))


def test_nothing_of_a_text_is_left_out():
    """Markup of HTML and pictures, which a terminal cannot show, are there as words."""
    said = "\n".join(drawn('a <b>c</b>\n\n<div id="x">\nraw\n</div>\n\n![a map](m.png) ![](n.png)'))
    for expected in ("a <b>c</b>", '<div id="x">', "raw", "[image: a map]", "[image: n.png]"):
        assert expected in said


def test_words_keep_to_the_width():
    """Lines of words are no wider than the screen."""
    assert max(map(len, drawn("word " * 100, 33))) <= 33


@pytest.mark.parametrize("asked", [0, 2])
def test_what_nobody_waits_for_is_left(asked):
    """Drawing ends before the next part once nobody wants it."""
    answers = iter([True] * asked + [False] * 100)
    text = "\n\n".join("word " * 1_000 for _ in range(10))
    assert len(parts(text)) > asked
    assert rendered(text, 60, wanted=lambda: next(answers)) is None
    assert next(answers) is False
