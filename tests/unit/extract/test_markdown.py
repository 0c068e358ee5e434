"""Markdown: the body exact, foreign frontmatter as metadata, and its abuse harmless."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.extract import ExtractionError
from filestore.extract._markdown import (
    FRONTMATTER_ERROR,
    MarkdownExtractor,
    first_title,
    read_frontmatter,
)


def extract(text):
    return MarkdownExtractor().extract(text.encode(), name="page.md")


@pytest.mark.parametrize(
    "head",
    [
        "---\ntitle: Moor\ntags: [a, b]\n---\n",
        '+++\ntitle = "Moor"\ntags = ["a", "b"]\n+++\n',
        '{\n"title": "Moor",\n"tags": ["a", "b"]\n}\n',
    ],
)
def test_frontmatter_of_every_syntax_becomes_metadata(head):
    """YAML, TOML and JSON give the same metadata, and the body keeps its outer white space."""
    document = extract(head + "\n  body \n\n")
    assert document.metadata == {"title": "Moor", "tags": ["a", "b"]}
    assert document.text == "\n  body \n\n"
    assert document.syntax == "markdown"


@settings(deadline=None)
@given(body=st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t -#`")))
def test_body_is_exact(body):
    """Whatever the body, it comes back character for character."""
    if body.isspace() or not body or body.startswith("\ufeff"):
        return
    document = extract("---\na: 1\n---\n" + body)
    assert document.text == body
    assert document.metadata["a"] == 1


def test_values_become_json():
    """Dates and times are ISO text, NaN is text, keys are text, huge numbers are text."""
    head = "d: 2024-01-02\nt: 2024-01-02T10:00:00Z\nn: .nan\n1: x\nh: 99999999999999999999"
    assert extract(f"---\n{head}\n---\nx").metadata == {
        "d": "2024-01-02",
        "t": "2024-01-02T10:00:00+00:00",
        "n": "nan",
        "1": "x",
        "h": "99999999999999999999",
    }


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("---\na: &x 1\nb: *x\n---\n", "anchors"),
        ("---\n<<: {a: 1}\n---\n", "merge"),
        ("---\na: !!python/object/apply:os.system [ls]\n---\n", "tags"),
        # libyaml may end it before our own limit does.
        ("---\na: " + "[" * 30_000 + "\n---\n", "deeper|not valid YAML"),
        ("+++\na = " + "[" * 30_000 + "\n+++\n", "deeper"),
        ('{\n"a": ' + "[" * 30_000 + "\n}\n", "deeper"),
        ("+++\n" + ".".join("a" * 20_000) + " = 1\n+++\n", "deeper"),
        ("---\na: " + "x" * 70_000 + "\n---\n", "larger"),
        ("---\na: [\n---\n", "not valid YAML"),
        ("---\nd: 2024-13-45\n---\n", "not valid YAML"),
        ("---\n? [a]\n: b\n---\n", "not valid YAML"),
        ("+++\na = \n+++\n", "not valid TOML"),
    ],
)
def test_bad_frontmatter_keeps_the_document(head, message):
    """A frontmatter that is broken or hostile stays in the text and is reported in a few words."""
    document = extract(head + "body\n")
    assert document.text == head + "body\n"
    assert re.search(message, document.metadata[FRONTMATTER_ERROR])
    assert len(document.metadata[FRONTMATTER_ERROR]) < 200


@pytest.mark.parametrize(
    "text", ["---\nprose, no mapping\n---\nmore\n", "---\nno end\n", "a\n---\nb\n"]
)
def test_rules_are_no_frontmatter(text):
    """Horizontal rules around prose are left alone without a complaint."""
    assert read_frontmatter(text) == ({}, 0)


def test_only_frontmatter_is_empty():
    """A file with metadata and no body holds nothing to store."""
    with pytest.raises(ExtractionError, match="only frontmatter"):
        extract("---\na: 1\n---\n\n")


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("text\n\n# The *best* `one` [here](u) #\n", "The best one here"),
        ("Under\nlined *title*\n=====\n", "Under lined title"),
        ("```\n# not this\n```\n# this\n", "this"),
        ("    # not this\n\n## nor this\n", ""),
        ("#\n# second\n", "second"),
    ],
)
def test_title_is_the_first_heading_of_level_one(body, title):
    """ATX and setext headings count, those in code do not, markup is left out."""
    assert first_title(body) == title
    assert extract(body).metadata.get("title", "") == title


def test_declared_title_wins():
    """The frontmatter's title is taken before a heading, as text."""
    assert extract("---\ntitle: 1984\n---\n# Other\n").metadata["title"] == "1984"
