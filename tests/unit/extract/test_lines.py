"""Lines of a document are those that an editor counts, whatever its encoding and line ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract import for_name
from filestore.extract.about import Lines
from filestore.extract.base import Document, ExtractionError

WORDS = st.sampled_from(["one", "two words", "é", "# Head", "---", "", "```", "- x", "日本"])
ENDS = ["\n", "\r\n"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32"]


def extracted(data: bytes, name: str) -> Document:
    """What an extractor makes of a file."""
    extractor = for_name(name)
    assert extractor is not None
    return extractor.extract(data, name=name)


@given(
    lines=st.lists(WORDS, min_size=1, max_size=20),
    end=st.sampled_from(ENDS),
    encoding=st.sampled_from(ENCODINGS),
    name=st.sampled_from(["n.md", "n.txt"]),
)
def test_every_word_stands_on_its_line(lines, end, encoding, name):
    """A mark put into any line of a file is found on that line."""
    for number in range(len(lines)):
        marked = [*lines[:number], "zebra", *lines[number + 1 :]]
        data = end.join(marked).encode(encoding)
        try:
            document = extracted(data, name)
        except ExtractionError:
            continue
        place = document.text.find("zebra")
        if place < 0:
            # In the frontmatter, which is no part of the text.
            continue
        found = Lines.of(document, data, name=name)
        assert found is not None
        assert found.span(place, place + 5) == (number + 1, number + 1)


def test_frontmatter_counts():
    """The text of a note begins below its frontmatter, on the line where it stands."""
    data = b"---\ntitle: A\ntags: [b]\n---\n\n# A\n\nwords\nmore\n"
    document = extracted(data, "n.md")
    lines = Lines.of(document, data, name="n.md")
    assert lines is not None
    place = document.text.index("words")
    assert lines.span(place, len(document.text)) == (8, 9)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param(b"a\rb\rzebra\r", 3, id="alone-they-end-lines"),
        pytest.param(b"a\rb\nzebra\n", 2, id="beside-LF-they-are-signs"),
        pytest.param(b"a\rb\r\nzebra\r\n", 2, id="beside-CRLF-too"),
    ],
)
def test_lone_carriage_returns(data, line):
    """A CR ends a line only in a file that has no other line ends, as in an editor."""
    document = extracted(data, "n.txt")
    lines = Lines.of(document, data, name="n.txt")
    assert lines is not None
    place = document.text.index("zebra")
    assert lines.span(place, place + 5) == (line, line)


def test_a_text_that_is_not_the_files_own_has_no_lines():
    """What was taken out of a page of HTML stands on no line of it."""
    data = b"<html><body><p>words</p></body></html>"
    document = extracted(data, "page.html")
    assert Lines.of(document, data, name="page.html") is None
