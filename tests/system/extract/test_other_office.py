"""Workbooks, books and other office documents: text, tables, places and metadata; hostile ones."""

import random
import struct

import pytest

from filestore.extract import ExtractionError, for_name
from filestore.extract._office import marks
from tests.advice import advised
from tests.system.extract.damage import changed, read_soundly
from tests.system.extract.mail_files import compound
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

SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
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


def rich(body, *, styles=""):
    return rf"{{\rtf1\ansi{{\stylesheet{{\s0 Normal;}}{styles}}}\sectd {body}}}".encode()


def test_rich_text_whose_headings_are_styles():
    """As LibreOffice writes them: a name and no level."""
    body = r"\pard\plain\s1 Mooring\par\pard\plain\s2 At night\par\pard\plain\s0 words\par"
    styles = r"{\s1\sbasedon9\af6 Heading 1;}{\s2\af6 heading 2;}"
    assert read(rich(body, styles=styles), "a.rtf").text == "# Mooring\n\n## At night\n\nwords\n\n"


def test_hidden_rich_text_is_out():
    body = r"\pard seen {\v gone {\b gone}}here\v gone\'e9 \u233?\v0 , there \v gone\plain end\par"
    assert read(rich(body), "a.rtf").text.strip() == "seen here, there end"


def test_what_pages_of_rich_text_repeat_is_there_once():
    """Without what changes from page to page, and not where the text has it too."""
    page = r"{\field{\*\fldinst PAGE \\* MERGEFORMAT}{\fldrslt 3}}"
    body = (
        r"{\header\pard The Club\par}{\headerl\pard The Club\par}"
        rf"{{\footer Page {page} of \chpgn}}"
        r"{\footerf\pard Since 1902\par}\pard Use two lines.\par"
    )
    assert read(rich(body), "a.rtf").text == "The Club\n\nUse two lines.\n\nSince 1902\n\n"


def test_rich_text_of_many_groups_is_read_as_it_is():
    body = "{" * 300 + r"\v deep" + "}" * 300 + r"\pard words\par"
    assert "words" in read(rich(body), "a.rtf").text


def test_numbers_of_headings_in_lists_and_running_lines_of_an_open_document():
    item = "<text:list-item>{}</text:list-item>"
    head = '<text:list text:style-name="L">{}</text:list>'
    first = head.format(item.format("<text:h>Mooring</text:h>"))
    inner = '<text:h text:outline-level="2">At night</text:h>'
    second = head.format(item.format(f"<text:list>{item.format(inner)}</text:list>"))
    level = '<text:list-level-style-number text:level="{}" style:num-format="{}" {}/>'
    levels = level.format(1, "1", "") + level.format(
        2, "a", 'text:display-levels="2" style:num-suffix=")"'
    )
    styles = f'<text:list-style style:name="L">{levels}</text:list-style>'
    parts = open_document("text", f"{first}{first}{second}<text:p>words</text:p>", styles=styles)
    page = "<text:p>Page <text:page-number>3</text:page-number></text:p>"
    parts["styles.xml"] = parts["content.xml"].replace("content", "styles")
    start, end = (
        parts["styles.xml"].index("<office:body>"),
        parts["styles.xml"].index("</office:body>"),
    )
    parts["styles.xml"] = (
        parts["styles.xml"][:start]
        + "<office:master-styles><style:master-page><style:header><text:p>The Club</text:p>"
        + f"<text:p>words</text:p></style:header><style:footer>{page}</style:footer>"
        + "</style:master-page></office:master-styles>"
        + parts["styles.xml"][end + len("</office:body>") :]
    )
    found = read(packed(parts), "a.odt")
    assert (
        found.text.strip() == "The Club\n\n# 1 Mooring\n\n# 2 Mooring\n\n## 2.a) At night\n\nwords"
    )


def test_a_chart_of_a_slide_is_its_title_and_figures():
    spaces = open_document("presentation", "")["content.xml"].partition("<office:automatic")[0]
    chart = '<c:chart xmlns:c="urn:oasis:names:tc:opendocument:xmlns:chart:1.0"><c:title>'
    chart += f"<text:p>Sails</text:p></c:title>{table('local-table', ['', 'sold'], ['May', '12'])}"
    body = (
        '<draw:page><draw:frame><draw:object xmlns:xlink="http://www.w3.org/1999/xlink"'
        ' xlink:href="./Object 1"/></draw:frame><presentation:notes><draw:frame><draw:text-box>'
        "<text:p>said<text:page-number>7</text:page-number></text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page>"
    )
    parts = open_document("presentation", body)
    parts["Object 1/content.xml"] = f"{spaces}{chart}</c:chart></office:document-content>"
    found = read(packed(parts), "a.odp").text
    assert "[Chart: Sails]\n\n|  | sold |\n| --- | --- |\n| May | 12 |" in found
    assert "> said" in found
    assert "7" not in found


def commented_workbook():
    """A sheet and one that is only a chart, with notes, a thread and a box of text."""
    parts = workbook({"Sales": row(1, A="Boat", B="Units") + row(2, A="small", B=12), "Own": ""})
    office = "http://schemas.openxmlformats.org/officeDocument/2006"
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    links = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}'
    link = f'<Relationship Id="{{0}}" Type="{office}/relationships/{{0}}" Target="{{1}}"/>'
    targets = {"comments": "../c.xml", "threadedComment": "../t.xml", "drawing": "../d.xml"}
    ends = "</Relationships>"
    parts["xl/worksheets/_rels/s1.xml.rels"] = links.format(
        "".join(link.format(*each) for each in targets.items()) + ends
    )
    parts["xl/worksheets/_rels/s2.xml.rels"] = links.format(
        link.format("drawing", "../e.xml") + link.format("comments", "../gone.xml") + ends
    )
    parts["xl/c.xml"] = (
        f'<comments xmlns="{SHEETS}"><authors><author>Ann</author></authors><commentList>'
        '<comment ref="B2" authorId="0"><text><r><t>Ann:</t></r><r><t>\nin | repair</t></r></text>'
        '</comment><comment ref="A9" authorId="7"><text><t>stand-in</t></text></comment>'
        "</commentList></comments>"
    )
    answer = '<threadedComment ref="A9" personId="x"><text>{}</text></threadedComment>'
    parts["xl/t.xml"] = f'<T xmlns="urn:t">{answer.format("really?")}{answer.format("yes")}</T>'
    spaces = f'xmlns:d="{drawing}/spreadsheetDrawing" xmlns:a="{drawing}/main"'
    shapes = f"<d:wsDr {spaces}>{{}}</d:wsDr>"
    parts["xl/d.xml"] = shapes.format("<d:txBody><a:p><a:t>a box</a:t></a:p></d:txBody>")
    parts["xl/e.xml"] = shapes.format(
        f'<c:chart xmlns:c="{drawing}/chart" xmlns:r="{office}/relationships" r:id="chart"/>'
    )
    parts["xl/_rels/e.xml.rels"] = links.format(link.format("chart", "f.xml") + ends)
    parts["xl/f.xml"] = (
        f'<c:chartSpace xmlns:c="{drawing}/chart" xmlns:a="{drawing}/main"><c:chart><c:title>'
        "<a:t>Sails</a:t></c:title><c:ser><c:tx><c:v>sold | lent</c:v></c:tx><c:cat><c:pt"
        ' idx="0"><c:v>May</c:v></c:pt></c:cat><c:val><c:pt idx="0"><c:v>12</c:v></c:pt></c:val>'
        "</c:ser></c:chart></c:chartSpace>"
    )
    return parts


def test_charts_boxes_and_comments_of_a_workbook_are_behind_its_rows():
    found = read(packed(commented_workbook()), "a.xlsx")
    assert found.text == (
        "## Sales\n\n| Boat | Units |\n| --- | --- |\n| small | 12 |\n\na box\n\n"
        "[Comment at A9: really?]\n\n[Comment at A9: yes]\n\n"
        "[Comment at B2 by Ann: in | repair]\n\n"
        "## Own\n\n[Chart: Sails]\n\n|  | sold \\| lent |\n| --- | --- |\n| May | 12 |\n\n"
    )
    assert places(found) == {1: "## Sales", 2: "## Own"}


def test_comments_of_an_open_document_workbook_are_behind_its_rows():
    note = (
        '<office:annotation><dc:creator xmlns:dc="urn:dc">Ann</dc:creator>'
        "<text:p>in</text:p><text:p>repair</text:p></office:annotation>"
    )
    body = table("Costs", ["Boat", "Euro"], ["small", "12"])
    body = body.replace("<text:p>12", f"{note}<text:p>12")
    body = body.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="2">', 1)
    text = read(packed(open_document("spreadsheet", body)), "a.ods").text
    assert text.endswith("| small | 12 |\n\n[Comment at B3 by Ann: in repair]\n\n")


def test_headings_of_a_book_are_what_its_navigation_names_and_what_looks_alike():
    look = '<p class="a"><span class="b">{}</span></p>'
    section = look.format("One &amp; all") + look.format("Below") + "<p class='t'>words</p>" * 3
    hidden = "<p class='t'>seen <span class='no'>gone</span></p>"
    navigation = '<nav><ol><li><a href="s1.xhtml">One &#38; all</a></li></ol></nav>'
    parts = book(section + hidden, "<h1>Two</h1><p>One</p>", navigation=navigation)
    parts["in/look.css"] = ".a { margin: 1px }\n.no,\n.none { color: red; display: none; }"
    found = read(packed(parts), "a.epub").text
    assert found.startswith("# One & all\n\n## Below\n\nwords\n\n")
    assert "seen" in found
    assert "gone" not in found
    assert found.endswith("# Two\n\nOne\n\n")


def test_the_name_of_a_single_sheet_of_an_old_workbook_is_its_heading():
    def record(kind, data=b""):
        return struct.pack("<HH", kind, len(data)) + data

    def begin(kind):
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))

    def sheet(name, hidden, at):
        return record(0x85, struct.pack("<IBBBB", at, hidden, 0, len(name), 0) + name.encode())

    def label(row, column, text):
        data = struct.pack("<HHHHB", row, column, 0, len(text), 0) + text.encode()
        return record(0x204, data)

    cells = label(0, 0, "Boat") + label(0, 1, "Euro") + label(1, 0, "small") + label(1, 1, "x")
    globals_of = len(begin(5) + sheet("Fleet", 0, 0) + sheet("Secret", 1, 0) + record(0x0A))
    first = begin(0x10) + cells + record(0x0A)
    stream = begin(5) + sheet("Fleet", 0, globals_of) + sheet("Secret", 1, globals_of + len(first))
    stream += record(0x0A) + first + begin(0x10) + label(0, 0, "nobody") + record(0x0A)
    found = read(compound({"Workbook": stream.ljust(4_200, b"\0")}), "a.xls")
    assert found.text == "## Fleet\n\n| Boat | Euro |\n| --- | --- |\n| small | x |\n\n"


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


def with_sheet(sheet):
    return packed(workbook({"S": row(1, A="x")}) | {"xl/worksheets/s1.xml": sheet})


def with_entities():
    parts = workbook({"S": row(1, A="x")})
    return packed(parts | {"xl/workbook.xml": BILLION + parts["xl/workbook.xml"]})


# Made where they are used: some are large, and each process collects all tests.
HOSTILE = {
    "deep.xlsx": lambda: with_sheet("<a>" * 20_000 + "</a>" * 20_000),
    "entities.xlsx": with_entities,
    "large.xlsx": lambda: with_sheet(b" " * 70_000_000),
    "outside.xlsx": lambda: packed(workbook({"S": row(1, A="x")}) | {"../../evil.xml": "x"}),
    "repeated.ods": lambda: packed(open_document("spreadsheet", REPEATED)),
    "bomb.epub": lambda: packed(book("<p>x</p>") | {"in/s1.xhtml": b"a" * 80_000_000}),
    "none.epub": lambda: packed({"mimetype": "application/epub+zip"}),
    "deep.rtf": lambda: b"{\\rtf1 " + b"{" * 500_000,
    "binary.rtf": lambda: b"{\\rtf1 {\\pict\\bin2000000000 x}",
    "ole.xls": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 4_096,
    "ole.doc": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4_096),
    "page.xls": lambda: b"<html><table><tr><td>1</td></tr></table></html>",
    "empty.ppt": bytes,
    "a-pdf.doc": lambda: b"%PDF-1.4",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_made_to_do_harm_is_refused_in_one_sentence(name):
    data = HOSTILE[name]()
    with pytest.raises(ExtractionError) as refusal:
        read(data, name)
    assert refusal.value.message.startswith(name)
    assert "\n" not in refusal.value.message
    assert advised(refusal.value)


def sound():
    yield "a.xlsx", plain_workbook()
    yield "b.xlsx", commented_workbook()
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
