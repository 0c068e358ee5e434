"""The words of Browse for documents in place, without a screen and without a store."""

import re

from hypothesis import given
from hypothesis import strategies as st

from filestore import Finding
from filestore.browse import DocumentRow, ResourceRow, SectionRow
from tui.formatting import documents
from tui.formatting.chunks import count_line
from tui.formatting.lines import plain

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\udcff\n\r\t"))
MODIFIED = Finding(code="modified", path="notes/May.md")
MAY = ResourceRow(resource="notes/May.md", source="", chunks=12, document=7)
READ = DocumentRow(
    id=7, path="notes/May.md", title="In May", sections=12, size_bytes=2_300, withheld=""
)
SECTION = SectionRow(
    id=7,
    path="notes/May.md",
    headings=("Garden", "Beans"),
    words="Sow them late.",
    line=14,
    page=0,
    size_bytes=310,
)


def document_line(known=READ, found=(), **changes):
    given_ = {"depth": 1, "is_open": False, "ascii_only": False, **changes}
    return plain([documents.document_row(MAY, known, "May.md", found, **given_)])


@given(TEXTS, TEXTS)
def test_no_word_steers_the_terminal(text, name):
    """Whatever a name, a title or a heading holds, no line has a control character."""
    row = ResourceRow(resource=name, source="", chunks=1)
    read = DocumentRow(id=1, path=name, title=text, sections=1, size_bytes=None, withheld=text)
    section = SectionRow(
        id=1, path=name, headings=(text,), words=text, line=0, page=2, size_bytes=1
    )
    lines = [
        documents.folder_row(row, name, {}, depth=99, is_open=True, ascii_only=True),
        documents.document_row(row, read, name, [], depth=0, is_open=True, ascii_only=True),
        documents.section_row(section, depth=3),
        count_line(shown=1, resources=2, chunks=3, filtered=text, in_place=True),
    ]
    for one in lines:
        for span in one:
            assert not UNSAFE.search(span.text), span


def test_a_document_says_its_title_how_many_sections_and_how_large():
    """Below its folder; what is not read yet is left out, what is found of it comes first."""
    assert document_line() == "  ▸ May.md  In May  12  2.3 KB"
    assert document_line(None) == "  ▸ May.md  12"
    assert document_line(found=[MODIFIED]).startswith("  ▸ May.md  E x modified  In May")
    assert document_line(shown=3, is_open=True).startswith("  ▾ May.md  In May  3 of 12")
    assert document_line(ascii_only=True).startswith("  + May.md")


def test_a_folder_says_how_many_documents_are_in_it():
    """And how much is found of them, by severity."""
    row = ResourceRow(resource="notes/", source="", chunks=1_200)
    shown = documents.folder_row(row, "notes/", {"E": 2}, depth=0, is_open=True, ascii_only=False)
    assert plain([shown]) == "▾ notes/  1,200 E2"


def test_a_section_says_its_headings_its_line_and_its_first_words():
    """One without headings is called by its first words; one of a PDF has a page."""
    assert plain([documents.section_row(SECTION, depth=0)]) == (
        "    Garden > Beans  :14  310 B  Sow them late."
    )
    bare = SectionRow(
        id=1, path="a.pdf", headings=(), words="As agreed", line=0, page=4, size_bytes=9
    )
    assert plain([documents.section_row(bare, depth=1)]) == "      As agreed  p. 4  9 B"
