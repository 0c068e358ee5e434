"""Which links a Markdown text has: every way to write one counts, code does not, abuse is cheap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract.links import MAX_LABEL, MAX_TARGET, MOST_LINKS, links
from filestore.extract.markdown_read import without_any_code, without_remarks

NAMES = st.text(st.sampled_from("abé 1/-_."), min_size=1, max_size=12).filter(
    lambda name: name == name.strip()
)
MARKUP = st.text(st.sampled_from("[]()!|#<>:`~\\^ \n\t-\"'ax/%$=!"), max_size=60)


def written(text, **options):
    return [(one.kind, one.target, one.heading, one.label) for one in links(text, **options)]


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("See [[name]].", ("wiki", "name", "", "")),
        ("[[name|a label]]", ("wiki", "name", "", "a label")),
        ("[[name#A heading]]", ("wiki", "name", "A heading", "")),
        ("[[folder/name#^block|label]]", ("wiki", "folder/name", "^block", "label")),
        ("[[#Below]]", ("wiki", "", "Below", "")),
        ("| [[name\\|label]] |", ("wiki", "name", "", "label")),
        ("[a](x.md)", ("markdown", "x.md", "", "a")),
        ('[a *b*](x.md#h "title")', ("markdown", "x.md", "h", "a *b*")),
        ("[a](<x y.md>)", ("markdown", "x y.md", "", "a")),
        ("[a](x%20y.md#a%20b)", ("markdown", "x%20y.md", "a b", "a")),
        ("[a](x.md?raw#h)", ("markdown", "x.md", "h", "a")),
        ("[two\nlines](x.md)", ("markdown", "x.md", "", "two lines")),
        ("[`code`](x.md)", ("markdown", "x.md", "", "`code`")),
        ("[a](#part)", ("markdown", "", "part", "a")),
        ("[[1]](x.md)", ("markdown", "x.md", "", "[1]")),
        ("[[x]](no destination)", ("wiki", "x", "", "")),
        ("[a][Ref]\n\n[ref]: x.md 'title'", ("markdown", "x.md", "", "a")),
        ("[Ref][]\n\n[ref]: <x y.md>", ("markdown", "x y.md", "", "Ref")),
        ("[ref]\n\n[ref]: x.md\n[ref]: y.md", ("markdown", "x.md", "", "ref")),
        ("[[name]]\n\n[name]: ../name.md 'Title'", ("wiki", "name", "", "")),
        ("[never]: x.md", ("markdown", "x.md", "", "never")),
        ("- item\n\n    [[name]] in the item", ("wiki", "name", "", "")),
        ("``[[code]]`` [[name]]", ("wiki", "name", "", "")),
        ("costs $5 [[name]] or $6, 7$ or (8$)", ("wiki", "name", "", "")),
        ("US$5 [[name]] CA$6", ("wiki", "name", "", "")),
        ("$5 each\n\n[[name]] for 6$", ("wiki", "name", "", "")),
        ("\\$a [[name]] b\\$", ("wiki", "name", "", "")),
        ("[see $x_1$](x.md)", ("markdown", "x.md", "", "see $x_1$")),
        ("[[a$b|c$]]", ("wiki", "a$b", "", "c$")),
        ("100%% [[name]]", ("wiki", "name", "", "")),
        ("a <!-- b [[name]]", ("wiki", "name", "", "")),
        ("a < b [[name]] c='d' > e", ("wiki", "name", "", "")),
        ('<b title="x">[[name]]</b>', ("wiki", "name", "", "")),
    ],
)
def test_every_way_to_write_a_link(text, link):
    """What a link leads to, its heading and its label are found however it is written."""
    assert written(text) == [link]


@pytest.mark.parametrize(
    "text",
    [
        "`[[name]]` and ``[a](x.md) ` ``",
        "```\n[[name]]\n```",
        "~~~\n[a](x.md)\n[[name]]",
        "Text.\n\n    [[name]]\n\n\t[a](x.md)\n",
        "\\[[name]]",
        "\\[a](x.md) [a\\](x.md)",
        "[a](https://x.org/y.md) [[https://x.org]] [b](mailto:a) <https://x.org> [c](//x/y)",
        "[ref]\n\n[ref]: https://x.org",
        "[^1]: note",
        "[[]] [[|label]] [a]() [a](<>) [] [ ] [x] [a][b]",
        "[[two\nlines]]",
        "<!-- [[name]] [a](x.md)\n\n[b]: y.md -->",
        "$x_{[[name]]} + [a](x.md)$ and $$\n[[name]]\n$$",
        "%% [[name]] %% and %%\n\n[a](x.md)\n\n%%",
        "<span title='[[name]]' data-x=\"[a](x.md)\">x</span>",
        "\\[\\[name]]",
        f"[[{'a' * (MAX_TARGET + 1)}]] [a]({'a' * (MAX_TARGET + 1)})",
    ],
)
def test_what_is_no_link_to_a_file(text):
    """Code, what is escaped, addresses elsewhere, and brackets that are only brackets."""
    assert not links(text)


def test_links_within_links_stand_where_they_start():
    """A picture in a label is a link of its own, shown in place; lines count from 1."""
    found = links("\n\n[![p](i.png)](outer.md)\n![[note]]\n\n[late][r]\n\n[r]: x.md\n")
    assert [(one.target, one.line, one.is_embed) for one in found] == [
        ("outer.md", 3, False),
        ("i.png", 3, True),
        ("note", 4, True),
        ("x.md", 6, False),
    ]


def test_names_in_brackets_are_links_in_notes_only():
    """A document that is no note has brackets for other reasons."""
    assert not links("[[1]] says", wiki=False)
    assert written("[[1]](x.md)", wiki=False) == [("markdown", "x.md", "", "[1]")]


@given(name=NAMES, label=NAMES, before=st.sampled_from(["", "word ", "- ", "> ", "**"]))
def test_a_link_is_found_as_it_was_written(name, label, before):
    """Whatever the name, the same name comes back, from either kind of link."""
    for kind, text in (("wiki", f"[[{name}|{label}]]"), ("markdown", f"[{label}](<{name}>)")):
        if kind == "markdown" and name.startswith("//"):
            continue
        assert written(f"one\n\n{before}{text}") == [(kind, name, "", " ".join(label.split()))]


@given(text=MARKUP)
def test_whatever_the_text_links_stand_in_it_in_order(text):
    """Nothing raises; lines ascend, and lie within the text; nothing is longer than it may be."""
    lines = [one.line for one in links(text)]
    assert lines == sorted(lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)
    assert all(one.target or one.heading for one in links(text))
    assert all(len(one.label) <= MAX_LABEL for one in links(text))


@given(text=MARKUP)
def test_blanks_in_place_of_code_move_nothing(text):
    """Every other character stays where it was, and so does every line end."""
    visible = without_remarks(without_any_code(text))
    assert len(visible) == len(text)
    assert all(new in (old, " ") for new, old in zip(visible, text, strict=True))
    assert visible.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "unit",
    [
        "[[",
        "[",
        "![",
        "[[a",
        "](",
        "[a](",
        "[a](b ",
        '[a](b "',
        "[a](<",
        "[a][",
        "[a]",
        "`",
        "\\",
        "[[a]]",
        "[a]: ",
        "[a]:\n",
        "\n[",
        "]",
        "[[[a]]",
        "$a ",
        "$$",
        "%%",
        "<!--",
        "<a ",
        "<a='>",
    ],
)
def test_much_markup_is_read(unit):
    """In a time that grows as the text does: with its square, no such test would ever end."""
    for head in ("", "[a]: x\n\n"):
        assert len(links(head + unit * (250_000 // len(unit)))) <= MOST_LINKS


@pytest.mark.parametrize(
    "text",
    [
        "[a]:" + " " * 1_000_000 + "<",
        "[a](" + " " * 1_000_000,
        "[a](b" + " " * 1_000_000,
        "[a](b" + "(c)" * 300_000,
        "[" * 500_000 + "]" * 500_000,
        "[a]: x\n" + ("[" + "a" * 998) * 1_000 + "]" * 1_000,
    ],
)
def test_a_megabyte_in_one_link_is_read(text):
    """No run of blanks or brackets is tried in every way in which it can be parted."""
    assert len(links(text)) <= 1
