"""Workbooks, books and other office documents: text, tables, places and metadata; hostile ones."""

import random

import pytest

from filestore.extract import ExtractionError, for_name
from filestore.extract._office import marks
from tests.system.extract.damage import changed, read_soundly
from tests.system.extract.office_files import (
    RICH_TEXT,
    book,
    open_document,
    packed,
    row,
    slide,
    table,
    workbook,
)

HIDDEN = (
    '<style:style style:name="off" style:family="table">'
    '<style:table-properties table:display="false"/></style:style>'
)


def read(data, name):
    extractor = for_name(name)
    assert extractor.isolated
    return extractor.extract(data, name=name)


def places(found):
    """What begins at each page."""
    return {page.number: found.text[page.start :].partition("\n")[0] for page in found.pages}


def plain_workbook():
    return workbook(
        {
            "Sales": row(1, A="Sales 2024") + row(3, A="Date", B="Units") + row(4, A="May", B=12),
            "Secret": row(1, A="nobody"),
            "Costs": row(9, B="Boat", D="Euro") + row(10, B="small", C="x", D=3.5),
        },
        hidden=["Secret"],
    )


@pytest.mark.parametrize("suffix", ["xlsx", "xlsm"])
def test_a_workbook_is_a_section_a_sheet(suffix):
    found = read(packed(plain_workbook()), f"fleet.{suffix}")
    assert found.metadata == {"title": "Boats", "author": "Ann Writer"}
    assert found.title == "Boats"
    assert places(found) == {1: "## Sales", 2: "## Costs"}
    assert "Sales 2024\n\n| Date | Units |\n| --- | --- |\n| May | 12 |\n" in found.text
    assert "| Boat |  | Euro |\n| --- | --- | --- |\n| small | x | 3.5 |\n" in found.text
    assert "nobody" not in found.text


def test_the_name_of_a_single_sheet_is_its_heading():
    assert read(packed(workbook({"Costs": row(1, A="x", B="y")})), "a.xlsx").text.startswith(
        "## Costs\n\n| x | y |"
    )


def test_an_open_document_workbook_is_a_section_a_sheet():
    body = table("Costs", ["Boat", "Euro"], ["small", "12"]) + table("No", ["x"], style="off")
    found = read(packed(open_document("spreadsheet", body, styles=HIDDEN)), "a.ods")
    assert found.text == "## Costs\n\n| Boat | Euro |\n| --- | --- |\n| small | 12 |\n\n"
    assert found.metadata == {"title": "Boats", "author": "Ann Writer"}
    assert places(found) == {1: "## Costs"}


def test_slides_of_an_open_document_presentation_have_their_numbers():
    body = slide("point", title="First") + slide("no title") + slide("last", title="Third")
    found = read(packed(open_document("presentation", body)), "a.odp")
    assert places(found) == {1: "## First", 2: "## Slide 2", 3: "## Third"}
    assert found.text.index("point") < found.text.index("no title") < found.text.index("last")


def test_an_open_document_text():
    body = '<text:h text:outline-level="2">Mooring</text:h><text:p>Use two lines.</text:p>'
    found = read(packed(open_document("text", body)), "a.odt")
    assert found.text.strip() == "## Mooring\n\nUse two lines."
    assert found.title == "Boats"


def test_numbered_headings_are_no_items_and_hidden_text_is_out():
    """What a program writes for a numbered heading, and for text that a style hides."""
    styles = (
        '<style:style style:name="off" style:family="text">'
        '<style:text-properties text:display="none"/></style:style>'
    )
    body = (
        '<text:list><text:list-item><text:h text:outline-level="1">Mooring</text:h>'
        "</text:list-item></text:list>"
        '<text:p>Use <text:span text:style-name="off">GONE</text:span>two lines.</text:p>'
        "<text:list><text:list-item><text:p>bow</text:p></text:list-item></text:list>"
    )
    found = read(packed(open_document("text", body, styles=styles)), "a.odt")
    assert found.text.strip() == "# Mooring\n\nUse two lines.\n\n- bow"


def test_a_book_is_its_sections_without_the_navigation():
    note = '<p>A note<a href="s2.xhtml#n">1</a></p>'
    found = read(packed(book(f"<h1>One</h1>{note}", "<h1>Two</h1><p id='n'>end</p>")), "a.epub")
    assert found.text.strip() == "# One\n\nA note[1]\n\n# Two\n\nend"
    assert places(found) == {1: "# One", 2: "# Two"}
    assert found.metadata == {"title": "Boats", "author": "Ann Writer"}


@pytest.mark.parametrize("name", ["a.rtf", "old.doc"])
def test_rich_text(name):
    """Also under the name that Word once gave it."""
    found = read(RICH_TEXT, name)
    assert found.text.startswith("# Mooring\n\nUse two lines.\n\n| Boat | Euro |\n| --- | --- |\n")
    assert found.metadata == {"title": "Rules for the été", "author": "Ann Writer"}


# ---- too much, or made to do harm ----------------------------------------------------------------


def test_a_cell_in_the_last_row_costs_one_line():
    far = row(1, A="x", B="y") + row(2, A="1", B="2") + row(1_048_576, A="last", B="3")
    found = read(packed(workbook({"Far": far})), "a.xlsx")
    assert len(found.text) < 100
    assert "| last | 3 |" in found.text


def test_what_is_beyond_the_most_of_a_sheet_is_counted(monkeypatch):
    monkeypatch.setattr(marks, "MAX_ROWS", 50)
    far = row(1, A="x", B="y", XFD="far") + "".join(row(n, A=n, B="é") for n in range(2, 350))
    found = read(packed(workbook({"Far": far, "Next": row(1, A="next")})), "a.xlsx")
    assert "[Left out of this sheet, rows: 299, cells far right: 1]\n\n## Next" in found.text
    assert "| 50 | é |" in found.text


REPEATED = (
    '<table:table table:name="S"><table:table-row table:number-rows-repeated="1048576">'
    '<table:table-cell table:number-columns-repeated="16384" office:value-type="string">'
    "<text:p>boom</text:p></table:table-cell></table:table-row></table:table>"
)
BILLION = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


def hostile():
    deep = workbook({"S": row(1, A="x")})
    deep["xl/worksheets/s1.xml"] = "<a>" * 20_000 + "</a>" * 20_000
    entities = workbook({"S": row(1, A="x")})
    entities["xl/workbook.xml"] = BILLION + entities["xl/workbook.xml"]
    large = workbook({"S": row(1, A="x")})
    large["xl/worksheets/s1.xml"] = b" " * 70_000_000
    outside = workbook({"S": row(1, A="x")}) | {"../../evil.xml": "x"}
    yield "deep.xlsx", packed(deep)
    yield "entities.xlsx", packed(entities)
    yield "large.xlsx", packed(large)
    yield "outside.xlsx", packed(outside)
    yield "repeated.ods", packed(open_document("spreadsheet", REPEATED))
    yield "bomb.epub", packed(book("<p>x</p>") | {"in/s1.xhtml": b"a" * 80_000_000})
    yield "none.epub", packed({"mimetype": "application/epub+zip"})
    yield "deep.rtf", b"{\\rtf1 " + b"{" * 500_000
    yield "binary.rtf", b"{\\rtf1 {\\pict\\bin2000000000 x}"
    yield "ole.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 4_096
    yield "ole.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4_096)
    yield "page.xls", b"<html><table><tr><td>1</td></tr></table></html>"
    yield "empty.ppt", b""
    yield "a-pdf.doc", b"%PDF-1.4"


@pytest.mark.parametrize(("name", "data"), list(hostile()), ids=[name for name, _ in hostile()])
def test_what_is_made_to_do_harm_is_refused_in_one_sentence(name, data):
    with pytest.raises(ExtractionError) as refusal:
        read(data, name)
    assert refusal.value.message.startswith(name)
    assert "\n" not in refusal.value.message
    assert refusal.value.remedy


def sound():
    yield "a.xlsx", plain_workbook()
    yield "a.ods", open_document("spreadsheet", table("Costs", ["Boat", "Euro"], ["small", "1"]))
    yield "a.odp", open_document("presentation", slide("point", title="First"))
    yield "a.odt", open_document("text", "<text:p>words</text:p>")
    yield "a.epub", book("<h1>One</h1>", "<p>Two</p>")


@pytest.mark.parametrize(("name", "parts"), list(sound()), ids=[name for name, _ in sound()])
def test_damaged_packages_are_read_or_refused(name, parts):
    """Damage in a part, with sound checksums around it, and in the bytes of the file."""
    generator = random.Random(name)
    for _ in range(40):
        part = generator.choice(sorted(parts))
        content = parts[part].encode()
        read_soundly(for_name(name), packed(parts | {part: changed(generator, content)}), name)
        read_soundly(for_name(name), changed(generator, packed(parts)), name)


def test_damaged_rich_text_is_read_or_refused():
    generator = random.Random(1)
    for _ in range(80):
        read_soundly(for_name("a.rtf"), changed(generator, RICH_TEXT), "a.rtf")
