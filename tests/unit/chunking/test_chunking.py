"""Pieces partition the text, keep to the budget, and read well each by itself."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filestore.chunking import Section, Symbol, join
from filestore.chunking._splitting import HEADING_SEPARATOR
from filestore.chunking.blocks import (
    _parsed_by_parser,
    _plain_blocks,
    markdown_blocks,
    split,
)

Syntax = Literal["text", "markdown", "code"]

SYNTAXES: tuple[Syntax, ...] = ("text", "markdown", "code")
BLOCKS = """
# One
## Two
### *Three* `x`
#
Title
=====
```
~~~py
    code
| a | b |
|---|---|
- item
  - nested
1. first
> quote
>>>> deep
<div>
<!--
[x]: /url
---
""".splitlines(keepends=True)
PROSE = ["A sentence. Another one! ", "word ", "Line.\n", "`", "*", "e\u0301", "漢字。", "🙂"]
ODDITIES = ["\n\n", "   ", "\t", "\u00a0", "\x0c", "\r", "\r\n", "\x00", "\u2028", "\u0085"]
FRAGMENTS = [*BLOCKS, *PROSE, *ODDITIES, "\ud800", "\ufeff"]
MARKDOWN_LIKE = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join)
ANY_CHARACTER = st.characters(exclude_categories=())
CODE_LIKE = st.lists(
    st.sampled_from(
        [
            "def f():\n",
            "    x = 1\n",
            "\tif y:\n",
            "\n",
            "}\n",
            "else:\n",
            "# c\n",
            "a",
            " ",
            "\x0c\n",
        ]
    ),
    max_size=80,
).map("".join)
OUTLINES = st.lists(
    st.builds(
        Symbol,
        start=st.integers(-2, 400),
        level=st.integers(-1, 15),
        title=st.sampled_from(["", "A", "A.b", "A.b.c", "B::c", "long name " * 20, "\n"]),
    ),
    max_size=12,
)
TITLES = st.one_of(st.sampled_from(["", "One", "guide.py", "title " * 50]), st.text(max_size=20))
ANY_TEXT = st.one_of(MARKDOWN_LIKE, st.text(ANY_CHARACTER, max_size=200))


def count_words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def pieces_of(text: str, budget: int = 40, syntax: Syntax = "markdown") -> list[Section]:
    return split(text, syntax=syntax, budget=budget, count_tokens=count_words)


def texts_of(text: str, budget: int = 40, syntax: Syntax = "markdown") -> list[str]:
    return [text[piece.start : piece.end] for piece in pieces_of(text, budget, syntax)]


def cost(text: str, piece: Section, count_tokens: Callable[[str], int] = count_words) -> int:
    path = HEADING_SEPARATOR.join(piece.headings)
    body = f"{piece.before}{text[piece.start : piece.end]}{piece.after}".strip()
    return count_tokens(body) + (count_tokens(path) if path else 0)


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


def assert_partition(text: str, pieces: list[Section]) -> None:
    texts = [text[piece.start : piece.end] for piece in pieces]
    assert join(texts) == text
    assert all(before.end == after.start for before, after in pairwise(pieces))
    assert all(texts)
    if not text.isspace():
        assert not any(piece.isspace() for piece in texts)


@settings(deadline=None)
@given(text=ANY_TEXT, syntax=st.sampled_from(SYNTAXES), budget=st.integers(1, 60))
@example(text="a\rb\n\r\n# c\r\n", syntax="markdown", budget=3)
@example(text="\x0c\n# a\n\n\u2028\n## b\n\x1c\nc", syntax="markdown", budget=2)
@example(text="> - # a\n\tb\n#c\n# d", syntax="markdown", budget=2)
def test_pieces_partition_any_text(text: str, syntax: Syntax, budget: int) -> None:
    """Joining the pieces gives back every text, and no piece is only white space."""
    assert_partition(text, pieces_of(text, budget, syntax))


@settings(deadline=None)
@given(text=ANY_TEXT, syntax=st.sampled_from(SYNTAXES), budget=st.integers(1, 60))
def test_pieces_keep_to_the_budget(text: str, syntax: Syntax, budget: int) -> None:
    """A piece and its heading path never cost more than the budget."""
    assert all(cost(text, piece) <= budget for piece in pieces_of(text, budget, syntax))


@settings(deadline=None)
@given(text=ANY_TEXT, syntax=st.sampled_from(SYNTAXES), budget=st.integers(1, 60))
@example(text="x\n\n\n\n# One\n# One\n", syntax="code", budget=15)
def test_budget_holds_for_a_counter_that_counts_white_space(
    text: str, syntax: Syntax, budget: int
) -> None:
    """Counting characters, where blank lines cost too, keeps to the budget as well."""
    pieces = split(text, syntax=syntax, budget=budget, count_tokens=len)
    assert_partition(text, pieces)
    assert all(cost(text, piece, len) <= budget for piece in pieces)


@settings(deadline=None)
@given(text=ANY_TEXT, syntax=st.sampled_from(SYNTAXES))
def test_a_character_over_the_budget_is_a_piece(text: str, syntax: Syntax) -> None:
    """Where every character costs more than the budget, each visible one is a piece."""
    pieces = split(text, syntax=syntax, budget=2, count_tokens=lambda part: 3 * len(part))
    assert_partition(text, pieces)
    visible = [len(text[piece.start : piece.end].strip()) for piece in pieces]
    assert all(length <= 1 for length in visible)


@settings(deadline=None)
@given(
    text=st.one_of(CODE_LIKE, ANY_TEXT),
    syntax=st.sampled_from(SYNTAXES),
    budget=st.integers(1, 60),
    title=TITLES,
    outline=OUTLINES,
    count_tokens=st.sampled_from([count_words, len]),
)
@example(
    text="a\nb\nc\n",
    syntax="code",
    budget=5,
    title="",
    outline=[Symbol(start=2, level=1, title="A"), Symbol(start=2, level=2, title="A.b")],
    count_tokens=len,
)
def test_any_title_and_outline_keep_partition_and_budget(
    text: str,
    syntax: Syntax,
    budget: int,
    title: str,
    outline: list[Symbol],
    count_tokens: Callable[[str], int],
) -> None:
    """Whatever the title and the outline say, pieces partition the text within the budget."""
    pieces = split(
        text,
        syntax=syntax,
        budget=budget,
        count_tokens=count_tokens,
        title=title,
        outline=outline,
    )
    assert_partition(text, pieces)
    for piece in pieces:
        size = len(text[piece.start : piece.end].strip())
        assert cost(text, piece, count_tokens) <= budget or size <= 1
        assert all(heading and "\n" not in heading for heading in piece.headings)


@settings(deadline=None)
@given(text=MARKDOWN_LIKE, syntax=st.sampled_from(SYNTAXES))
def test_splitting_twice_gives_the_same(text: str, syntax: Syntax) -> None:
    """The same input gives the same pieces."""
    assert pieces_of(text, 10, syntax) == pieces_of(text, 10, syntax)


@settings(deadline=None, max_examples=300)
@given(text=MARKDOWN_LIKE, stretch=st.integers(1, 120))
def test_stretches_change_no_block(text: str, stretch: int) -> None:
    """However much the parser gets at once: fences, lists, tables, HTML and quotes stay whole."""
    assert markdown_blocks(text, stretch=stretch) == markdown_blocks(text, stretch=len(text) + 1)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_an_empty_text_has_no_pieces(syntax: Syntax) -> None:
    """Nothing in, nothing out."""
    assert pieces_of("", syntax=syntax) == []


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_a_blank_text_is_one_piece(syntax: Syntax) -> None:
    """A text of white space alone is still partitioned."""
    assert pieces_of(" \n\n\t", syntax=syntax) == [Section(start=0, end=4, headings=())]


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_below_one_is_refused(budget: int) -> None:
    """A budget nothing fits into is an error that names it."""
    with pytest.raises(ValueError, match=f"not {budget}"):
        pieces_of("text", budget)


def test_headings_are_the_path_of_plain_titles() -> None:
    """Each piece knows its sections, outermost first, without markup."""
    titles = [
        "# Guide to `fs` & *more*",
        "## [Install](/x) it ##",
        "### On\\_Linux",
        "## Use",
        "# End",
    ]
    text = "".join(f"{title}\n\n{words(40)}\n\n" for title in titles)
    assert [piece.headings for piece in pieces_of(text, 60)] == [
        ("Guide to fs & more",),
        ("Guide to fs & more", "Install it"),
        ("Guide to fs & more", "Install it", "On_Linux"),
        ("Guide to fs & more", "Use"),
        ("End",),
    ]


def test_text_before_the_first_heading_has_no_path() -> None:
    """What stands outside every section says so, and is not joined to a chapter."""
    pieces = pieces_of("Preface.\n\n# One\n\nText.")
    assert [piece.headings for piece in pieces] == [(), ("One",)]


def test_underlined_headings_count() -> None:
    """Headings marked by a line below them open sections too."""
    text = f"Top\n===\n\n{words(30)}\n\nLower\nstill\n---\n\n{words(30)}"
    assert [piece.headings for piece in pieces_of(text)] == [("Top",), ("Top", "Lower still")]


@pytest.mark.parametrize("wrapped", ["```\n# not a heading\n```", "> # quoted", "- # listed"])
def test_headings_inside_other_blocks_open_no_section(wrapped: str) -> None:
    """A hash sign in code, a quote or a list is no section."""
    text = f"# Real\n\n{words(30)}\n\n{wrapped}\n\n{words(30)}"
    assert {piece.headings for piece in pieces_of(text)} == {("Real",)}


def test_a_long_path_takes_at_most_half_the_budget() -> None:
    """Outer titles give way first, then the words of the last one."""
    text = f"# {words(6, 'outer')}\n\n## {words(9, 'inner')}\n\n{words(40)}"
    assert {piece.headings for piece in pieces_of(text, 24)} == {
        (words(6, "outer"),),
        (words(9, "inner"),),
    }
    assert {piece.headings for piece in pieces_of(text, 10)} >= {(words(5, "inner"),)}


def test_a_heading_starts_a_new_piece() -> None:
    """Sections worth a file of their own are not mixed, even where both would fit."""
    text = f"## A\n\n{words(15)}\n\n## B\n\n{words(15)}\n"
    assert texts_of(text) == [f"## A\n\n{words(15)}\n\n", f"## B\n\n{words(15)}\n"]


def test_a_heading_goes_with_what_follows() -> None:
    """Headings in a row stay with the first text under them, even if it must be cut for that."""
    text = f"# A\n\n## B\n\n### C\n\n{words(38)}"
    first, *rest = texts_of(text)
    assert first.startswith("# A\n\n## B\n\n### C\n\nword word")
    assert rest


def test_a_heading_at_the_end_is_not_left_alone() -> None:
    """A last heading with nothing under it joins the section before."""
    text = f"# A\n\n{words(15)}\n\n# B\n"
    assert texts_of(text) == [text]


_HEADINGS = st.builds(
    lambda level, count, word: f"{'#' * level} {words(count, word)}",
    st.integers(1, 4),
    st.integers(1, 8),
    st.sampled_from(["rent", "attic", "notice"]),
)
_BELOW = st.one_of(
    st.sampled_from([1, 4, 20, 60, 150, 400]).map(words),
    st.sampled_from([3, 40, 120]).map(lambda count: f"{words(count)}. " * 3),
    st.lists(st.integers(1, 30), min_size=1, max_size=20).map(
        lambda counts: "\n".join(f"- {words(count)}" for count in counts)
    ),
    st.lists(st.integers(1, 12), min_size=1, max_size=30).map(
        lambda counts: "\n".join(
            ["| a | b |", "|---|---|", *(f"| x | {words(n)} |" for n in counts)]
        )
    ),
    st.integers(1, 40).map(lambda lines: "```\n" + "code(1)\n" * lines + "```"),
)


@settings(deadline=None, max_examples=60)
@given(
    blocks=st.lists(st.one_of(_HEADINGS, _HEADINGS, _BELOW), min_size=1, max_size=14),
    budget=st.sampled_from([120, 240, 512]),
)
def test_no_piece_ends_with_a_heading(blocks: list[str], budget: int) -> None:
    """A heading is with the text below it; only at the end of a document nothing is."""
    text = "\n\n".join([*blocks, "The end."])
    pieces = split(text, syntax="markdown", budget=budget, title="House rules")
    kinds = {block.start: block.kind for block in markdown_blocks(text)}
    for piece in pieces:
        last = max(start for start in kinds if start < piece.end)
        assert kinds[last] != "heading", text[piece.start : piece.end]


def test_small_sections_are_joined() -> None:
    """A section too small for a file goes with the sibling or subsection after it."""
    text = f"# A\n\nShort.\n\n## B\n\n{words(20)}\n\n## C\n\nTiny.\n\n## D\n\n{words(20)}\n"
    assert [part.split("\n", 1)[0] for part in texts_of(text)] == ["# A", "## C"]


def test_small_chapters_stay_apart() -> None:
    """A level-1 heading is never joined to the text before it."""
    assert texts_of("# A\n\nx\n\n# B\n\ny\n") == ["# A\n\nx\n\n", "# B\n\ny\n"]


def test_paragraphs_are_packed_whole() -> None:
    """Paragraphs fill a piece up to the budget and are not cut where they fit."""
    paragraph = words(10) + ".\n\n"
    assert texts_of(paragraph * 6) == [paragraph * 3, paragraph * 3]
    assert texts_of(paragraph * 6, syntax="text") == [paragraph * 3, paragraph * 3]


def test_no_crumb_is_left_at_the_end_of_a_section() -> None:
    """A last piece that would be tiny takes a block from the one before it."""
    text = f"{words(19)}\n\n{words(19)}\n\nthis is the end\n"
    assert texts_of(text) == [f"{words(19)}\n\n", f"{words(19)}\n\nthis is the end\n"]


def test_an_announcement_stays_with_what_it_announces() -> None:
    """A paragraph that ends in a colon goes with the block after it."""
    code = "```\n" + "x = 1\n" * 6 + "```\n"
    text = f"{words(25)}\n\nRun this:\n\n{code}"
    assert texts_of(text) == [f"{words(25)}\n\n", f"Run this:\n\n{code}"]


@pytest.mark.parametrize(
    "block",
    ["```py\n" + "x = y\n\n" * 8 + "```\n", "| a | b |\n|---|---|\n" + "| c | d |\n" * 3],
    ids=["code", "table"],
)
def test_code_and_tables_stay_whole_where_they_fit(block: str) -> None:
    """A block that fits one piece is in one piece."""
    assert block in [part.rstrip("\n") + "\n" for part in texts_of(f"{words(30)}\n\n{block}")]


def test_long_code_is_cut_between_lines() -> None:
    """Parts of a long code block hold whole lines with their indentation."""
    lines = ["```py", *(f"    value_{number} = {number}" for number in range(40)), "```"]
    parts = texts_of("\n".join(lines) + "\n")
    assert len(parts) > 2
    assert [line for part in parts for line in part.splitlines()] == lines


def test_long_tables_are_cut_between_rows() -> None:
    """Parts of a long table hold whole rows."""
    rows = ["| a | b |", "| --- | --- |", *(f"| {number} | two words |" for number in range(30))]
    parts = texts_of("\n".join(rows) + "\n")
    assert len(parts) > 2
    assert [line for part in parts for line in part.splitlines()] == rows


def test_long_lists_are_cut_between_items() -> None:
    """Parts of a long list begin with an item and keep its nested lines."""
    items = [f"- item {number}\n  with {words(8)}\n" for number in range(12)]
    parts = texts_of("".join(items))
    assert len(parts) > 2
    assert all(part.startswith("- item") for part in parts)


@pytest.mark.parametrize("syntax", ["text", "markdown"])
def test_long_paragraphs_are_cut_between_sentences(syntax: Syntax) -> None:
    """A paragraph over the budget is cut where a sentence ends, even in the middle of a line."""
    sentence = "The quick brown fox jumps over the lazy\ndog and runs. "
    parts = texts_of(sentence * 12, syntax=syntax)
    assert len(parts) > 2
    assert all(part.startswith("The") and part.rstrip().endswith("runs.") for part in parts)


def test_records_are_cut_between_lines() -> None:
    """Lines that are no prose, as of a log, are not cut in the middle."""
    lines = [f"2024-01-{day:02} worker started job {day} in queue" for day in range(1, 29)]
    parts = texts_of("\n".join(lines), syntax="text")
    assert len(parts) > 2
    assert [line for part in parts for line in part.splitlines()] == lines


def test_words_are_not_cut() -> None:
    """One endless sentence is cut between words."""
    parts = texts_of(words(300, "well-known"), budget=25)
    assert {word for part in parts for word in part.split()} == {"well-known"}


def test_parts_of_a_long_block_are_even() -> None:
    """A block slightly over the budget becomes two halves, not a whole and a crumb."""
    sizes = [count_words(part) for part in texts_of("One two three four. " * 22, budget=100)]
    assert len(sizes) == 2
    assert min(sizes) >= 40


def test_only_a_line_feed_ends_a_line() -> None:
    """A hash sign after another control character opens no section."""
    for separator in "\r\x0b\x0c\x1c\u0085\u2028\u2029":
        text = f"{words(30)}{separator}# B {words(20)}"
        assert {piece.headings for piece in pieces_of(text)} == {()}


def titled(text: str, title: str, syntax: Syntax = "markdown") -> list[tuple[str, ...]]:
    pieces = split(text, syntax=syntax, budget=40, count_tokens=count_words, title=title)
    return [piece.headings for piece in pieces]


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_the_title_goes_before_every_path(syntax: Syntax) -> None:
    """A piece far into a document still says which document it is from."""
    assert set(titled(f"{words(100)}\n", "The Guide", syntax)) == {("The Guide",)}
    assert titled(f"# Install\n\n{words(20)}\n", "The Guide") == [("The Guide", "Install")]


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("csv — File Reading — Python 3.11 documentation", "csv — File Reading"),
        ("moor", "The Moor"),
        ("THE_MOOR", "the moor"),
        ("A  title!", "`A` title"),
    ],
)
def test_a_title_is_not_said_twice(title: str, heading: str) -> None:
    """A first heading that holds the title's words, or the other way round, stands alone."""
    text = f"# {heading}\n\n{words(20)}\n\n## Part\n\n{words(20)}\n"
    plain = heading.replace("`", "")
    assert titled(text, title) == [(plain,), (plain, "Part")]


@pytest.mark.parametrize("heading", ["Moorland", "***", "Other"])
def test_another_heading_keeps_the_title(heading: str) -> None:
    """Part of a word is no word, and a heading without words says nothing."""
    [path] = titled(f"# {heading}\n\n{words(20)}\n", "Moor")
    assert path[0] == "Moor"


def test_a_long_title_gives_way_first() -> None:
    """Of a path over half the budget the title is left out before a heading is."""
    assert titled(f"# Part\n\n{words(20)}\n", words(30, "title")) == [("Part",)]


SOURCE = f'''"""Reads."""
import os

class Reader:
    """A reader."""

    def open(self):
        {words(8)}

        {words(8)}

    def close(self):
        {words(9)}
        if done:
            {words(9)}

LIMIT = 1

def small():
    pass

# Tiny indeed.
def tiny():
    pass
'''


def sections(source: str) -> list[Symbol]:
    names = {
        "class Reader": (1, "Reader"),
        "    def open": (2, "Reader.open"),
        "    def close": (2, "Reader.close"),
        "LIMIT": (1, ""),
        "def small": (1, "small"),
        "# Tiny": (1, "tiny"),
    }
    return [
        Symbol(start=source.index(f"\n{line}") + 1, level=level, title=title)
        for line, (level, title) in names.items()
    ]


def code_pieces(budget: int, title: str = "reader.py") -> list[tuple[tuple[str, ...], str]]:
    pieces = split(
        SOURCE,
        syntax="code",
        budget=budget,
        count_tokens=count_words,
        title=title,
        outline=sections(SOURCE),
    )
    assert_partition(SOURCE, pieces)
    return [(piece.headings, SOURCE[piece.start : piece.end]) for piece in pieces]


def test_code_that_fits_is_one_piece() -> None:
    """A short file is not cut, and its piece is called by the file alone."""
    assert code_pieces(200) == [(("reader.py",), SOURCE)]


def test_code_is_cut_at_functions_and_classes() -> None:
    """A class that fits is one piece under its name; small functions share one without a name."""
    pieces = code_pieces(80)
    assert [headings for headings, _ in pieces] == [("reader.py", "Reader"), ("reader.py",)]
    assert "import os" in pieces[0][1]
    assert pieces[1][1].startswith("def small")
    assert "# Tiny indeed.\ndef tiny" in pieces[1][1]


def test_a_class_over_the_budget_is_cut_at_its_methods() -> None:
    """The head of a class stays with its first method, the next one stands under its own name."""
    pieces = code_pieces(50)
    (first, opened), (second, closed), *_ = pieces
    assert "class Reader:" in opened
    assert "def open" in opened
    assert first[:2] in {("reader.py", "Reader"), ("reader.py", "Reader.open")}
    assert second == ("reader.py", "Reader.close")
    assert closed.startswith("    def close")


def test_a_function_over_the_budget_is_cut_at_blank_lines_then_statements() -> None:
    """Parts of a long function start at whole lines, every part under its name."""
    body = "".join(f"    {words(5, name)}\n    {words(5, name)}\n\n" for name in "abcd")
    text = f"def long():\n{body}"
    outline = [Symbol(start=0, level=1, title="long")]
    pieces = split(
        text, syntax="code", budget=28, count_tokens=count_words, title="x.py", outline=outline
    )
    assert {piece.headings for piece in pieces} == {("x.py", "long")}
    starts = [text[piece.start : piece.end].split()[0] for piece in pieces]
    assert starts[0] == "def"
    assert set(starts[1:]) <= set("abcd")
    assert all(text[: piece.start].endswith("\n\n") for piece in pieces[1:])


@settings(deadline=None)
@given(lines=st.lists(st.integers(1, 12).map(words), min_size=1, max_size=60), outline=OUTLINES)
def test_code_is_never_cut_inside_a_line_that_fits(lines: list[str], outline: list[Symbol]) -> None:
    """Every piece of code starts at a line start where no line alone is over the budget."""
    text = "\n".join(lines)
    pieces = split(text, syntax="code", budget=40, count_tokens=count_words, outline=outline)
    assert all(piece.start == 0 or text[piece.start - 1] == "\n" for piece in pieces)


def test_brackets_and_else_stay_with_what_they_end() -> None:
    """A piece of code does not begin with what only goes on with the statement before."""
    text = "".join(f"if a{number}:\n    {words(6)}\nelse:\n    {words(6)}\n" for number in range(9))
    parts = texts_of(text, 40, "code")
    assert len(parts) > 2
    assert all(part.startswith("if") for part in parts)


DEGENERATE = {
    "blank lines": "a" + "\n" * 300_000 + "b",
    "hashes": "#" * 300_000,
    "heading": "# " + "x " * 100_000,
    "line": "word " * 100_000,
    "word": "w" * 300_000,
    "spaces": "a" + " " * 300_000 + "b",
    "quotes": ">" * 5_000 + " a\n\n# b\n",
    "list": "- " * 5_000 + "a\n\n# b\n",
    "steps": "".join("  " * depth + "- a\n" for depth in range(300)),
    "fences": "```\n" * 9_999,
    "headings": "# a\n" * 5_000,
}


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("text", DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_texts_are_cut(text: str, syntax: Syntax) -> None:
    """Huge lines and deep nesting end in pieces within the budget, not in an error."""
    pieces = pieces_of(text, 256, syntax)
    assert_partition(text, pieces)
    assert max(cost(text, piece) for piece in pieces) <= 256


def test_tokens_are_counted_a_few_times_per_block() -> None:
    """The counter, slow for a real model, is not called for every word."""
    calls: list[int] = []

    def count(part: str) -> int:
        calls.append(len(part))
        return count_words(part)

    text = f"# A\n\n{words(60)}.\n\n" * 100
    pieces = split(text, syntax="markdown", budget=256, count_tokens=count)
    assert len(calls) <= 5 * len(pieces) + 500
    assert sum(calls) <= 10 * len(text)


_LINES = (
    "words of a pump",
    "a | b",
    "Ünder 1. one",
    "# Pump",
    "## A `b` *c* <i> [d](e) &amp; f\\g !",
    "### \t spaced  out \t ",
    "###### ",
    "#Pump",
    "# Pump #",
    "####### seven",
    "",
    " \t",
    " one blank",
    "    code",
    "- item",
    "1. item",
    "===",
    "---|---",
    "> said",
    "```",
    "<div>",
    "\x0b",
)


@given(st.lists(st.sampled_from(_LINES), max_size=8), st.integers(0, 99))
def test_plain_blocks_are_those_of_the_parser(lines: list[str], offset: int) -> None:
    """Whatever is found without the parser, it finds as well."""
    text = "\n".join(lines)
    found = _plain_blocks(text, offset)
    assert found is None or found == _parsed_by_parser(text, offset)


@given(st.text(st.sampled_from("#\n \tab|=-*`_[]<&>1."), max_size=30))
def test_plain_blocks_of_any_signs_are_those_of_the_parser(text: str) -> None:
    """Of texts of all signs that mark something."""
    found = _plain_blocks(text, 0)
    assert found is None or found == _parsed_by_parser(text, 0)
