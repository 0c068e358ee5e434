"""Markdown drawn for a width: safe, whole, each word on the line of its file."""

import re
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.browse import read_blocks
from tests.unit.tui.formatting.test_chunks import about
from tui.formatting import plain
from tui.formatting.chunks import FIRST_PART
from tui.views.context import Target
from tui.views.prepared import prepared_file
from tui.views.rendered import rendered
from tui.widgets.drawing import cells

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
    return plain(rendered(read_blocks(text), width)).split("\n")


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


WORDS = st.sampled_from(
    ["w{}\n", "w{} ", "**w{}** ", "`w{}` ", "[w{}](x.md) ", "[[x|w{}]]\n", "# w{}\n", "- w{}\n",
     "> w{}\n", "```\nw{}\n```\n", "\n", "w{}  \n", "[w{}]: http://x\n", "    w{}\n",
     "| w{} | b |\n|---|---|\n| 1 | 2 |\n\n", "<div>w{}</div>\n\n", "1. w{}\n", "a `b\nc` w{} "]
)  # fmt: skip


@given(st.lists(WORDS, max_size=25), st.integers(20, 90))
def test_every_word_is_there_and_knows_its_line(parts, width):
    """Whatever is around a word, it is shown, and its span names the line that the file has it on,
    or in code over several lines one above."""
    text = "".join(part.format(number) for number, part in enumerate(parts))
    written = text.split("\n")
    spans = [span for line in rendered(read_blocks(text, first=1), width) for span in line]
    for number, part in enumerate(parts):
        if "{}" in part:
            word = re.compile(rf"\bw{number}\b")
            found = [span.line for span in spans if word.search(span.text)]
            assert found, (text, number)
            (there,) = [at for at, line in enumerate(written, start=1) if word.search(line)]
            assert there in found or "`" in text or "<div>" in text, (text, number, found)


def test_links_keep_where_they_lead():
    """A link, one of a note, a reference, and the definition that it names."""
    text = "[a](b.md#c) [[d#e|f]] [g][h] ![i](j.png)\n\n[h]: k.md\n"
    spans = [span for line in rendered(read_blocks(text), 60) for span in line if span.leads_to]
    assert [(span.text, span.leads_to, span.line) for span in spans] == [
        ("a", "b.md#c", 1), ("f", "[[d#e]]", 1), ("g", "k.md", 1), ("[image: i]", "j.png", 1),
        ("k.md", "k.md", 3),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["a.py", "b.json", "Makefile", "c.log"])
def test_what_is_no_markdown_keeps_its_lines(name):
    """Source code and logs are read as they are written: no line joins another, # is no heading."""
    text = "# note\ndef f():\n    return 1\n\n\n1. x\n"
    lines = rendered(read_blocks(text, first=5, of=name), 60)
    assert plain(lines).replace("\n  ", "\n") == f"  {text.rstrip()}"
    assert [line[-1].line for line in lines] == [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("name", ["", "a.md", "b.txt", "c.csv", "d.pdf"])
def test_what_is_made_of_rows_and_pages_is_markdown(name):
    """Rows are a table and words of a paragraph flow, whatever document they were read of."""
    found = read_blocks("| a |\n| - |\n| b |\n\nOne\nand one.\n", of=name)
    assert [one.kind for one in found] == ["table", "prose"]


@pytest.mark.parametrize("hostile", ["[" * 50_000, "![[" * 20_000, "> " * 20_000, "*a " * 20_000])
def test_a_text_made_to_take_long_does_not(hostile):
    """What the parser would need minutes for is shown as it is written."""
    begun = time.process_time()
    assert "the end" in "".join(drawn(f"{hostile} the end", 200_000))
    assert time.process_time() - begun < 2


def prepared(text, width=60, **target):
    """A document of this text, made ready for the screen."""
    note = about(path="a.md", kind="document", body=text, raw=text)
    store = SimpleNamespace(about_file=lambda _: note)
    return prepared_file(store, Target(path="a.md", **target), lambda _: "", "text", width)


@pytest.mark.parametrize(
    "repeated",
    ["# a\n", "a\n===\n", "- a\n", "1. a\n", "|a|b|\n|-|-|\n", "a\n\n", "[a]: b\n", "`a`&lt;\n"],
)
def test_a_document_of_one_thing_is_soon_ready(repeated):
    """Blocks, lines and the outline take as long as the text is, whatever it repeats."""
    begun = time.process_time()
    assert prepared(repeated * (FIRST_PART // len(repeated))).lines
    assert time.process_time() - begun < 10


@given(st.lists(WORDS, max_size=25), st.integers(20, 90), st.integers(1, 40))
def test_the_outline_leads_to_the_headings(parts, width, wanted):
    """A heading, and the line that is asked for, are where the first span of that line is."""
    text = "".join(part.format(number) for number, part in enumerate(parts))
    found = prepared(text, width, top=wanted)
    firsts = [max((span.line for span in line), default=0) for line in found.lines]
    headings = [one for one in read_blocks(text) if one.kind == "heading"]
    assert [title for _, title, _ in found.outline] == [one.title for one in headings]
    lines = [at for _, _, at in found.outline] + [found.top]
    for at, line in zip(lines, [*(one.line for one in headings), wanted], strict=True):
        assert at == next((n for n, last in enumerate(firsts) if last >= line), 0)


def test_a_table_keeps_to_its_width():
    """Long cells go on below themselves, and every word of them is there."""
    rows = "".join(f"| {'word ' * n}end{n} | b{n} |\n" for n in range(1, 20))
    shown = rendered(read_blocks(f"| a | c |\n|---|---|\n{rows}"), 30)
    assert max(map(cells, shown)) <= 30
    for number in range(1, 20):
        assert f"end{number} " in plain(shown)


def test_a_link_says_where_it_leads():
    """Links are text with their address, not hidden behind it."""
    assert "go (http://example.org/x)" in " ".join(drawn("[go](http://example.org/x)"))


def test_nothing_of_a_text_is_left_out():
    """Markup of HTML and pictures, which a terminal cannot show, are there as words."""
    said = "\n".join(drawn('a <b>c</b>\n\n<div id="x">\nraw\n</div>\n\n![a map](m.png) ![](n.png)'))
    for expected in ("a <b>c</b>", '<div id="x">', "raw", "[image: a map]", "[image: n.png]"):
        assert expected in said
