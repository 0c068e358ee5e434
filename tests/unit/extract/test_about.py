"""What a document says about itself: title, other names, description and tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract import for_name
from filestore.extract.about import (
    MAX_DESCRIPTION,
    MAX_NAME,
    MAX_TITLE,
    MOST_NAMES,
    about,
)

MARKUP = st.text(st.sampled_from("#[]()<>`&;:/-_ \n\taé1\u0301🙂'\"=.,"), max_size=60)


def said(text, name="folder/a note.md"):
    return about(for_name(name).extract(text.encode(), name=name), name=name)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Said\n---\n# Heading", "Said"),
        ("---\nTitle: Said\n---\n# Heading", "Said"),
        ("---\ntitle: 2024\n---\nwords", "2024"),
        ("words\n\n## Sub\n\n# Heading *one* ##", "Heading one"),
        ("words\n\n# Deep [link](x.md) #\n", "Deep link"),
        ("Below\n=====\nwords", "Below"),
        ("```\n# comment\n```\n\n# After code", "After code"),
        ("#tag is no heading\n\n# Real", "Real"),
        ("---\ntitle: [broken\nkey: x\n---\nwords\n\n# Heading", "[broken"),
        ("---\n<<: x\nkey: x\n---\nwords\n\n# Heading", "Heading"),
        (f"# {'long ' * 400}", None),
    ],
)
def test_title_is_what_the_document_says(text, title):
    """Metadata first, then the first heading, of level 1 where there is one."""
    found = said(text)
    assert found.title == found.heading_title
    assert found.title == title if title else len(found.title) <= MAX_TITLE


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f/a note.md", "words"),
        ("f/a note.md", "## A part\n\nwords\n\nAnother\n-------\n"),
        ("f/a note.txt", "# words"),
        ("a note.py", "x = 1"),
    ],
)
def test_without_a_title_the_name_is_one(name, text):
    """But not where texts are embedded: a renamed file says the same."""
    found = said(text, name)
    assert (found.title, found.heading_title) == ("a note", "")


@pytest.mark.parametrize(
    ("name", "title"), [(".hidden", ".hidden"), ("Makefile", "Makefile"), ("v1.2.md", "v1.2")]
)
def test_a_name_loses_its_suffix_only(name, title):
    """And keeps what else has a dot."""
    assert said("words", name).title == title


@pytest.mark.parametrize(
    ("line", "aliases"),
    [
        ("aliases: [One, Two words]", ("One", "Two words")),
        ("alias: One, Two words", ("One", "Two words")),
        ("aliases:\n- One\n- 2\n- [no]\n- {no: x}\n- one", ("One", "2")),
        ("aliases:", ()),
        ("aliases: {a: b}", ()),
    ],
)
def test_aliases_are_a_list_or_a_text(line, aliases):
    """In every form that notes have, each name once."""
    assert said(f"---\n{line}\n---\nwords").aliases == aliases


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags: [one, '#two', three words]", ("one", "two", "three words")),
        ("tags: one two", ("one", "two")),
        ("tags: one, two words", ("one", "two words")),
        ("tag: '#one #two'", ("one", "two")),
        ("tags: [2024, One, one]", ("2024", "One")),
    ],
)
def test_tags_of_the_metadata(line, tags):
    """A list, or a text with commas or blanks; `#` is no part of a tag."""
    assert said(f"---\n{line}\n---\nwords").tags == tags


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#one and #two-b, (#three_c) *#four*.", ("one", "two-b", "three_c", "four")),
        ("#y1984 #1984 #2024-01", ("y1984", "2024-01")),
        ("#in/ner/ #日本語。#नमस्ते #e\u0301te", ("in/ner", "日本語", "नमस्ते", "e\u0301te")),
        ("# Heading\n## Two\n\n- #item\n> #quoted\n\n| #cell |", ("item", "quoted", "cell")),
        ("word#no `#no` ``#no`` \\#no ##no &#39; &#x27;", ()),
        ("```\n#no\n```\n\ntext\n\n    #no\n", ()),
        ("[a](#no) [b](x.md#no) [[#no]] [[x#no|y]] ![[#no]] https://x.org/(#no <a href='#no'>", ()),
        ("[a #yes](x.md)\n\n[r]: #no", ("yes",)),
        ("#Same #same #SAME", ("Same",)),
        ("#- #_ #/ #", ()),
        (f"#{'a' * MAX_NAME} #{'b' * (MAX_NAME + 1)}", ("a" * MAX_NAME,)),
    ],
)
def test_tags_in_the_text(text, tags):
    """As Obsidian reads them, and never out of code, links or entities."""
    assert said(f"x\n\n{text}").tags == tags


def test_a_document_that_is_no_note_has_no_tags_in_its_text():
    """What has a `#` there is a number, a comment or a colour."""
    assert not said("#one #two", "a.txt").tags
    assert not said("<p>#one and <b>#two</b></p>", "a.html").tags


def test_nested_tags_count_as_those_around_them():
    """Whoever filters by a subject means what lies below it; nothing is told twice."""
    text = "---\ntags: [a/b/c]\nalias: N\nsummary: two\n  lines\n---\n#a/d"
    assert list(said(text, "n.md").pairs()) == [
        ("description", "two lines"),
        ("aliases", "N"),
        ("tags", "a/b/c"),
        ("tags", "a"),
        ("tags", "a/b"),
        ("tags", "a/d"),
    ]


def test_a_frontmatter_that_cannot_be_read_costs_no_tag_of_the_text():
    """The body says what it says."""
    assert "topic" in said("---\ntitle: [broken\n---\nwords #topic").tags


def test_links_in_the_metadata_stand_above_the_text():
    """On line 0, wherever in the metadata; what is no name in brackets is no link there."""
    head = '---\nup: "[[Map]]"\nsee: ["[[One|1]]", {deep: "[[Two]]"}, "[a](b.md)"]\n---\n'
    found = [(one.target, one.line) for one in said(f"{head}\n[[Three]]").links]
    assert found == [("Map", 0), ("One", 0), ("Two", 0), ("Three", 2)]


def test_the_first_heading_of_a_page_is_its_title():
    """What was made into Markdown has headings as notes have."""
    assert said("<h2>Below</h2><p>words</p>", "a.html").heading_title == "Below"


def test_links_of_notes_and_other_documents():
    """Names in brackets count in notes; code and plain text have no links."""
    for name, count in (("n.md", 2), ("n.txt", 0), ("n.py", 0)):
        assert len(said("x = [[a]] [b](c.md)", name).links) == count


@given(text=MARKUP)
def test_whatever_the_text_what_is_said_is_small(text):
    """Nothing raises; every name is on one line, not empty, not too long, and there once."""
    found = said(f"x{text}")
    names = [*found.tags, *found.aliases]
    assert all(name == " ".join(name.split()) and 0 < len(name) <= MAX_NAME for name in names)
    assert len({tag.casefold() for tag in found.tags}) == len(found.tags)
    assert found.title


@given(text=MARKUP, tag=st.from_regex(r"[a-z][a-z0-9_-]{0,8}(/[a-z0-9]{1,4}){0,2}", fullmatch=True))
def test_a_tag_on_a_line_of_its_own_is_found(text, tag):
    """Whatever stands above it, unless that opens code that does not end, or a tag of markup."""
    if "`" in text or "<" in text or "[" in text:
        return
    assert tag in said(f"{text}\n\nwords\n\n#{tag}\n").tags


@pytest.mark.parametrize(
    "unit", ["#", "#a", "#a/", "\n#a", "# ", "<a", "://", "#a ", "a#", "\n    #"]
)
def test_a_megabyte_of_markup_is_read(unit):
    """In a time that grows as the text does, into as much as may be kept."""
    found = said("x\n" + unit * (1_000_000 // len(unit)))
    assert len(found.tags) <= MOST_NAMES
    assert len(list(found.pairs())) <= MOST_NAMES * 10
    assert len(found.description) <= MAX_DESCRIPTION


def test_many_names_are_cut():
    """So many, and no more."""
    text = " ".join(f"#tag{n}" for n in range(2 * MOST_NAMES))
    assert len(said(text).tags) == MOST_NAMES
