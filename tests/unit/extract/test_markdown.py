"""Markdown: the body exact, foreign frontmatter as metadata, and its abuse harmless."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.extract import ExtractionError
from filestore.extract.markdown import MarkdownExtractor, first_title


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
