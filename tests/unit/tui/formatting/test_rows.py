"""The words of rows, without a screen and without a store."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore import Finding
from filestore.browse import CHUNKS, Family, Measure, Row
from tui.formatting import chunks, plain, rows

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\udcff\n\r\t"))
MODIFIED = Finding(code="modified", path="notes/May.md")
MAY = Row(kind="document", resource="notes/May.md", path="notes/May.md", children=12, id=7)
READ = replace(MAY, title="In May", size_bytes=2_300)
SECTION = Row(
    kind="section",
    path="notes/May.md",
    headings=("Garden", "Beans"),
    title="Sow them late.",
    line=14,
    size_bytes=310,
)
TOP = "chunked/a/summary2.md"


def document_line(row=READ, **changes):
    return plain([rows.file_row(row, rows.Shown(name="May.md", depth=1, **changes))])


def node(path=TOP, **changes):
    return Row(**{"kind": "summary", "path": path, "level": 2, "children": 3, **changes})


@given(TEXTS, TEXTS, st.sampled_from(["fresh", "changed", "gone"]))
def test_no_word_steers_the_terminal(text, name, state):
    """Whatever a name, a title or a heading holds, no line has a control character."""
    odd = node(path=name, state=state, why=text, title=text)
    family = Family(node=odd, above=(odd,), children=(odd,))
    shown = rows.Shown(name=name, depth=99, title_above=text)
    lines = [
        rows.file_row(Row(kind="folder", resource=name, children=1), shown),
        rows.file_row(Row(kind="document", path=name, title=text, excluded=text), shown),
        rows.file_row(Row(kind="section", path=name, headings=(text,), title=text, page=2), shown),
        rows.heading_row(Row(kind="chunk", source=name), Row(kind="resource", source=text)),
        rows.summary_row(odd, CHUNKS, shown),
        *chunks.family_lines(family),
        *(line for _, line in rows.family_rows(family, CHUNKS)),
        rows.count_line(shown=1, resources=2, chunks=3, filtered=text, has_sections=True),
    ]
    for one in lines:
        for span in one:
            assert not UNSAFE.search(span.text), span


def columned(row, room, *, measure=None, **changes):
    """The columns of a row that are given some room."""
    chosen = rows.columns_for(room, tuple(rows.COLUMNS))
    return plain([rows.columns(row, rows.Shown(**changes), measure, chosen)])


def test_a_document_says_its_name_and_its_title():
    """Below its folder; of what a filter leaves, how much of it passes."""
    assert document_line() == "  ▸ May.md  In May"
    assert document_line(MAY) == "  ▸ May.md"
    assert document_line(by_title=True) == "  ▸ In May  May.md"
    assert document_line(matches=3, is_open=True) == "  ▾ May.md  In May  3 of 12"
    assert document_line(matches=12) == "  ▸ May.md  In May"


@pytest.mark.parametrize(
    ("title", "name"),
    [("May", "May.md"), ("may be", "notes/may-be.md"), ("How often", "chunk24-how-often.md")],
)
def test_a_title_does_not_repeat_its_path(title, name):
    """One that only says what the name does is left out."""
    assert rows.repeats(title, name)
    assert not rows.repeats(f"{title} and more", name)
    assert plain([rows.file_row(replace(READ, title=title), rows.Shown(name=name))]) == f"▸ {name}"


def test_columns_line_up_whatever_is_in_them():
    """Every row of a list has columns of one width, and the sign of drift is always there."""
    folder = Row(kind="folder", resource="notes/", children=1_200)
    for room in (20, 46, 60, 100, 190):
        drawn = [
            columned(READ, room, measure=Measure(2_300, "2026-05-03"), findings=[MODIFIED]),
            columned(folder, room, severities={"E": 2}),
            columned(SECTION, room),
            columned(replace(READ, excluded="conflict-markers", edited=True), room),
        ]
        assert len({len(one) for one in drawn}) == 1
        assert len(drawn[0]) <= max(room - 16, 5)
        assert drawn[0].split("E")[1].startswith(" x")
        assert "E2" in drawn[1]
    # The number of passages goes after the words of drift.
    assert rows.columns_for(47, ["sections", "drift"]) == ["sections", "drift"]
    assert columned(folder, 40, severities={"E": 2, "W": 1}).split() == ["1,200", "E2"]
    assert rows.columns_for(47, ["sections", "size"]) == ["sections", "size"]
    assert columned(READ, 100, measure=Measure(2_300, "2026-05-03")).split() == [
        "2.3", "KB", "2026-05-03", "12",
    ]  # fmt: skip
    assert columned(SECTION, 100).split() == ["310", "B", ":14"]


def test_a_section_says_its_heading_and_its_first_words():
    """As far in as its heading is deep; the second below one heading by its first words alone."""
    assert plain([rows.file_row(SECTION, rows.Shown())]) == "      Beans  Sow them late."
    again = plain([rows.file_row(SECTION, rows.Shown(goes_on=True))])
    assert again == "        Sow them late."
    bare = Row(kind="section", path="a.pdf", title="As agreed", page=4, size_bytes=9)
    assert plain([rows.file_row(bare, rows.Shown(depth=1))]) == "      As agreed"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "L2 Beans"),
        ({"why": "1 passage changed"}, "! stale  L2 Beans"),
        ({"state": "changed"}, "~ changed  L2 Beans"),
        ({"state": "gone"}, "x gone  L2 Beans"),
    ],
)
def test_a_summary_says_its_state_with_a_sign_and_a_word(changes, said):
    """Before the name, where a narrow screen does not cut it off."""
    row = plain([rows.summary_row(node(title="Beans", **changes), CHUNKS, rows.Shown())])
    assert row == f"▸ {said}  3 children"


def test_a_summary_that_is_above_itself_says_so():
    """It has no arrow: it is not opened again."""
    row = rows.summary_row(node(title="Beans"), CHUNKS, rows.Shown(is_circle=True, depth=1))
    assert plain([row]) == "    o is above already  L2 Beans  3 children"


def test_a_summary_does_not_repeat_what_stands_above_it():
    """Generated titles begin with that of the document; below it the rest is enough."""
    shown = rows.Shown(depth=1, title_above="Guide: a year")
    assert "L2 beans" in plain([rows.summary_row(node(title="Guide: beans"), CHUNKS, shown)])
