"""Word documents: what a reader sees as Markdown, and hostile or broken ones refused."""

import io
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract import ExtractionError
from filestore.extract._office.docx import DocxExtractor
from tests.advice import advised
from tests.system.extract.damage import RELAXED, damage_parts, read_soundly

NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONSHIPS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
CORE_KIND = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
STYLES = """
<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/>
 <w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel"/>
 <w:basedOn w:val="berschrift1"/></w:style>
<w:style w:type="paragraph" w:styleId="Abschnitt"><w:name w:val="Abschnitt"/>
 <w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="Loop"/>
 <w:basedOn w:val="Loop"/></w:style>
<w:style w:type="paragraph" w:styleId="Punkt"><w:name w:val="List Bullet"/>
 <w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Quelltext"><w:name w:val="HTML Preformatted"/></w:style>
<w:style w:type="paragraph" w:styleId="Zitat"><w:name w:val="Quote"/></w:style>
<w:style w:type="character" w:styleId="Fett"><w:name w:val="Strong"/>
 <w:rPr><w:b/></w:rPr></w:style>
"""
NUMBERING = """
<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>
 <w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
"""
CONTINUED = """
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt
 w:val="decimal"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/></w:lvl>
</w:abstractNum>
<w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num>
<w:num w:numId="4"><w:abstractNumId w:val="2"/><w:lvlOverride w:ilvl="0"><w:startOverride
 w:val="7"/></w:lvlOverride></w:num>
"""
STRONG = '<w:rStyle w:val="Fett"/>'
CORE = """<cp:coreProperties
 xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">{}
</cp:coreProperties>"""


def zipped(parts):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as container:
        for name, content in parts.items():
            container.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def parts_of(body, *, links=(), core=None, **more):
    kinds = {"styles": STYLES, "numbering": NUMBERING} | more
    listed = [
        *((f"part-{kind}", kind, f"{kind}.xml", "") for kind in kinds),
        *((link, kind, target, ' TargetMode="External"') for link, kind, target in links),
    ]
    entries = "".join(
        f'<Relationship Id="{link}" Type="{OFFICE}/{kind}" Target="{target}"{mode}/>'
        for link, kind, target, mode in listed
    )
    core_link = f'<Relationship Id="rId2" Type="{CORE_KIND}" Target="docProps/core.xml"/>'
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f'<Relationships {RELATIONSHIPS}><Relationship Id="rId1"'
        f' Type="{OFFICE}/officeDocument" Target="word/document.xml"/>{core_link}</Relationships>',
        "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f"<Relationships {RELATIONSHIPS}>{entries}</Relationships>",
        "docProps/core.xml": CORE.format(core or ""),
    }
    for kind, content in kinds.items():
        parts[f"word/{kind}.xml"] = f"<w:{kind} {NAMESPACES}>{content}</w:{kind}>"
    return parts


def extract(data, name="report.docx"):
    return DocxExtractor().extract(data, name=name)


def document(body, **more):
    return extract(zipped(parts_of(body, **more)))


def text_of(body, **more):
    return document(body, **more).text


def run(text, look=""):
    return f'<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def p(text="", style="", layout="", inner=""):
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{layout}</w:pPr>{run(text) if text else ''}{inner}</w:p>"


def item(text, number=1, level=0):
    layout = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return p(text, layout=layout)


def table(*rows):
    cells = ("".join(f"<w:tc><w:tcPr/>{cell}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def picture(description, link='r:embed="nowhere"'):
    return (
        f'<w:r><w:drawing><wp:inline><wp:docPr id="1" name="Picture 1" descr="{description}"/>'
        "<a:graphic><a:graphicData><pic:pic><pic:blipFill>"
        f"<a:blip {link}/></pic:blipFill></pic:pic></a:graphicData></a:graphic>"
        "</wp:inline></w:drawing></w:r>"
    )


# ---- what a reader sees --------------------------------------------------------------------------


def test_headings_follow_the_outline():
    """Localised, derived and own heading styles get the level the outline gives them."""
    body = (
        p("Moor", "Titel")
        + p("Eins", "berschrift1")
        + p("Zwei", "Kapitel")
        + p("Drei", "Abschnitt")
        + p("Vier", layout='<w:outlineLvl w:val="1"/>')
        + p("Fünf", "Loop")
        + p("Sechs", "Heading2")
    )
    assert (
        text_of(body) == "# Moor\n\n# Eins\n\n# Zwei\n\n### Drei\n\n## Vier\n\nFünf\n\n## Sechs\n"
    )


def test_bold_headings_are_plain_and_bold_text_is_bold():
    """Bold and italic are marked in text, also from a character style, but not in headings."""
    body = (
        f'<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>{run("Peat", "<w:b/>")}</w:p>'
        f"<w:p>{run('very ', '<w:b/>')}{run('wet', '<w:b/>')}{run(' and ')}"
        f"{run('old', '<w:i/>')}{run(' ')}{run('ground', STRONG)}</w:p>"
    )
    assert text_of(body) == "# Peat\n\n**very wet** and *old* **ground**\n"


def test_lists_nest_and_count():
    """Bullets nest, numbers count, and a style that numbers its paragraphs is a list."""
    body = item("one") + item("inner", level=1) + item("two") + p("—") + item("a", 2) + item("b", 2)
    assert text_of(body) == "- one\n  - inner\n- two\n\n—\n\n1. a\n2. b\n"
    assert text_of(p("x", "Punkt") + p("y", "Punkt")) == "- x\n- y\n"


def test_numbers_go_on_after_an_interruption():
    """A numbered list that a paragraph interrupts goes on where it stopped; deeper ones restart."""
    inner = item("x", 3, 1) + item("y", 3, 1)
    body = item("a", 3) + inner + p("note") + item("b", 3) + p("note") + item("z", 3, 1)
    again = p("again") + item("c", 4) + p("note") + item("d", 4)
    text = text_of(body + again, numbering=NUMBERING + CONTINUED)
    assert text == (
        "1. a\n   - a. x\n   - b. y\n\nnote\n\n2. b\n\nnote\n\n- a. z\n\nagain\n\n"
        "7. c\n\nnote\n\n8. d\n"
    )


OUTLINE = """
<w:abstractNum w:abstractNumId="8">
 <w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:pStyle w:val="berschrift1"/><w:lvlText
 w:val="Part %1:"/></w:lvl>
 <w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>
 <w:lvl w:ilvl="2"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%3)"/></w:lvl>
 <w:lvl w:ilvl="3"><w:numFmt w:val="decimal"/><w:lvlText w:val="%4)"/></w:lvl>
</w:abstractNum>
<w:num w:numId="8"><w:abstractNumId w:val="8"/></w:num>
"""
NUMBERED = STYLES.replace(
    '<w:outlineLvl w:val="0"/>', '<w:outlineLvl w:val="0"/><w:numPr><w:numId w:val="8"/></w:numPr>'
)


def test_headings_and_items_have_the_labels_that_word_shows():
    """Numbers of headings come from their style; labels of items nest as deep as they are."""
    body = (
        p("Rent", "berschrift1")
        + item("The tenant pays", 8, 1)
        + item("in cash", 8, 2)
        + item("before noon", 8, 3)
        + item("at noon", 8, 3)
        + item("by transfer", 8, 2)
        + p("", "berschrift1")
        + p("Roof", "berschrift1")
        + item("The landlord repairs", 8, 1)
        + p("Sources", "berschrift1", '<w:numPr><w:numId w:val="0"/></w:numPr>')
    )
    found = document(body, styles=NUMBERED, numbering=NUMBERING + OUTLINE)
    assert found.text == (
        "# Part 1: Rent\n\n- 1.1 The tenant pays\n  - (a) in cash\n    1) before noon\n"
        "    2) at noon\n  - (b) by transfer\n\n# Part 3: Roof\n\n- 3.1 The landlord repairs\n\n"
        "# Sources\n"
    )
    assert found.title == "Rent"


def test_lists_next_to_each_other_count_by_themselves():
    """A list right behind another one starts with its own number; built-in styles nest."""
    body = item("a", 3) + item("b", 3) + item("c", 4)
    assert text_of(body, numbering=NUMBERING + CONTINUED) == "1. a\n2. b\n7. c\n"
    deeper = STYLES + STYLES[
        STYLES.index('<w:style w:type="paragraph" w:styleId="Punkt">') :
    ].replace("Punkt", "Punkt2").replace("List Bullet", "List Bullet 2")
    assert text_of(p("x", "Punkt") + p("y", "Punkt2"), styles=deeper) == "- x\n  - y\n"


def test_items_in_a_cell_keep_their_labels():
    """Within a row of a table a number is text."""
    text = text_of(
        table((p("Task"), p("Steps")), (p("Clean"), item("Open", 3) + item("Wipe", 3))),
        numbering=NUMBERING + CONTINUED,
    )
    assert text.endswith("| Clean | 1. Open; 2. Wipe |\n")


def test_tables_keep_their_columns():
    """A table is a Markdown table; cells merged downwards or across leave empty cells."""
    merged = (
        "<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr>" + p("A|B") + "</w:tc>"
        "<w:tc><w:tcPr/>" + p("C") + "</w:tc></w:tr>"
        "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>" + p() + "</w:tc>"
        "<w:tc><w:tcPr/>" + p("D") + p("E") + "</w:tc></w:tr>"
        "<w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>" + p("F") + "</w:tc></w:tr></w:tbl>"
    )
    assert text_of(merged) == "| A\\|B | C |\n| --- | --- |\n|  | D<br>E |\n| F |  |\n"


def test_rows_that_begin_later_and_merges_without_a_start():
    """A gap before a row is empty cells; a cell merged with none above it is shown."""
    late = "<w:tr><w:trPr><w:gridBefore w:val='1'/></w:trPr><w:tc>{}</w:tc></w:tr>"
    down = "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr>"
    rows = table((p("A"), p("B"))).removesuffix("</w:tbl>")
    rows += late.format(p("b")) + down.format(p("kept"), p("c")) + down.format(p("not"), p("d"))
    assert text_of(rows + "</w:tbl>") == (
        "| A | B |\n| --- | --- |\n|  | b |\n| kept | c |\n|  | d |\n"
    )


def test_table_within_a_table_is_kept():
    """What is in a nested table is there, as a table of its own."""
    inner = table((p("i"), p("ii")), (p("iii"), p("iv")))
    text = text_of(table((p("a"), p("b")), (p("c"), inner + p("d"))))
    assert "| i | ii |\n| --- | --- |\n| iii | iv |" in text
    assert re.findall(r"\b[abcd]\b", text) == ["a", "b", "c", "d"]


def test_links_lead_out():
    """Web links keep their address; a link to nowhere keeps its text."""
    link = '<w:hyperlink r:id="{}">{}</w:hyperlink>'
    body = (
        f"<w:p>{link.format('out', run('here'))}{run(' ')}{link.format('gone', run('there'))}</w:p>"
    )
    links = [("out", "hyperlink", "https://example.org/a?b=1&amp;c=(2)")]
    assert text_of(body, links=links) == "[here](https://example.org/a?b=1&c=%282%29) there\n"


def test_tracked_changes_read_as_accepted():
    """Insertions and moves to a place stay; deletions, moves away and hidden text are gone."""
    body = (
        f"<w:p>{run('stays ')}<w:del>{run('GONE')}<w:r><w:delText>GONE</w:delText></w:r></w:del>"
        f"<w:ins>{run('new ')}</w:ins><w:moveFrom>{run('GONE')}</w:moveFrom>"
        f"<w:moveTo>{run('moved')}</w:moveTo>{run('GONE', '<w:vanish/>')}</w:p>"
    )
    assert text_of(body) == "stays new moved\n"


def test_hidden_text_is_out_and_signs_are_words():
    """Text hidden by itself, by a style or with its row is gone, also from the title."""
    hidden = STYLES + (
        '<w:style w:type="paragraph" w:styleId="Off"><w:name w:val="Off"/>'
        "<w:rPr><w:vanish/></w:rPr></w:style>"
        '<w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/>'
        "<w:rPr><w:vanish/></w:rPr></w:style>"
    )
    off = "<w:tr><w:trPr><w:hidden/></w:trPr><w:tc>{}</w:tc></w:tr>".format(p("GONE"))
    body = (
        p("GONE", "Off")
        + f'<w:p><w:pPr><w:pStyle w:val="Kapitel"/></w:pPr>{run("GONE", "<w:vanish/>")}'
        + f"{run('Part')}<w:r><w:noBreakHyphen/><w:t>42</w:t></w:r></w:p>"
        + f"<w:p>{run('GONE', '<w:rStyle w:val=' + chr(34) + 'Secret' + chr(34) + '/>')}"
        + f"{run('co')}<w:r><w:softHyphen/></w:r>{run('ope' + chr(0xAD) + 'ration')}"
        + f"{run(' shown', '<w:vanish w:val=' + chr(34) + '0' + chr(34) + '/>')}</w:p>"
        + table((p("a"),), (p("b"),)).replace("</w:tbl>", off + "</w:tbl>")
    )
    found = document(body, styles=hidden)
    assert found.text == "# Part-42\n\ncooperation shown\n\n| a |\n| --- |\n| b |\n"
    assert found.title == "Part-42"


def field(instruction, result="9"):
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    return (
        f"{mark.format('begin')}<w:r><w:instrText> {instruction} </w:instrText></w:r>"
        f"{mark.format('separate')}{run(result)}{mark.format('end')}"
    )


def with_running(body, section, **running):
    """The parts of a document whose pages have headers and footers, by their names."""
    parts = parts_of(body + f"<w:sectPr>{section}</w:sectPr>", settings="")
    links = ""
    for name, content in running.items():
        kind = name.rstrip("0123456789")
        parts[f"word/{name}.xml"] = f"<w:hdr {NAMESPACES}>{content}</w:hdr>"
        links += f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{name}.xml"/>'
    listing = "word/_rels/document.xml.rels"
    parts[listing] = parts[listing].replace("</Relationships>", links + "</Relationships>")
    return parts


def reference(name, shown="default"):
    kind = name.rstrip("0123456789")
    return f'<w:{kind}Reference w:type="{shown}" r:id="{name}"/>'


def test_page_headers_and_footers_are_read_once():
    """Letterhead comes first, what is below the pages last; page numbers and repeats are out."""
    pages = f"<w:p>{run('Page ')}{field('PAGE')}{run(' of ')}{field('NUMPAGES')}</w:p>"
    own_format = field(r"PAGE \* MERGEFORMAT")
    of_company = f"<w:p>{run('VAT 220 | Page ')}{own_format}</w:p>"
    parts = with_running(
        p("Offer", "berschrift1")
        + p("Dear Ms Hall,")
        + p(layout="<w:sectPr>" + reference("header1") + "</w:sectPr>"),
        reference("header1")
        + reference("header2", "first")
        + reference("header3", "even")
        + reference("footer1")
        + "<w:titlePg/>",
        header1=p("Harbour Bakery Ltd") + p("Offer") + f"<w:p>{field('STYLEREF Title')}</w:p>",
        header2=table((p("Harbour Bakery Ltd"), p("4 Dock Road"))),
        header3=p("never shown"),
        footer1=pages + of_company,
    )
    found = extract(zipped(parts))
    assert found.text == (
        "Harbour Bakery Ltd\n\n4 Dock Road\n\n# Offer\n\nDear Ms Hall,\n\nVAT 220\n"
    )
    assert found.title == "Offer"
    parts["word/settings.xml"] = parts["word/settings.xml"].replace(
        "></w:settings>", "><w:evenAndOddHeaders/></w:settings>"
    )
    assert "never shown" in extract(zipped(parts)).text


CHART = (
    '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:chart>{}<c:plotArea>'
    "<c:barChart><c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>Euro</c:v></c:pt>"
    "</c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>May</c:v>"
    "</c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx='0'>"
    "<c:v>12</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea>"
    "</c:chart></c:chartSpace>"
)


@pytest.mark.parametrize(
    "title",
    [
        "<a:p><a:r><a:t>Sales</a:t></a:r></a:p>",
        "<c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>Sales</c:v></c:pt></c:strCache>"
        "</c:strRef></c:tx>",
    ],
)
def test_charts_are_their_title_and_figures(title):
    drawing = (
        "<w:r><w:drawing><wp:inline><a:graphic><a:graphicData><c:chart"
        ' xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" r:id="chart1"/>'
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )
    parts = with_running(p("See", inner=drawing) + p("end"), "", chart1="")
    parts["word/chart1.xml"] = CHART.format(f"<c:title>{title}</c:title>")
    assert extract(zipped(parts)).text == (
        "See\n\n[Chart: Sales]\n\n|  | Euro |\n| --- | --- |\n| May | 12 |\n\nend\n"
    )
    del parts["word/chart1.xml"]
    assert extract(zipped(parts)).text == "See\n\nend\n"


def including(*names):
    """The parts of a document that includes others, before them not there."""
    chunks = "".join(f'<w:altChunk r:id="{name}"/>' for name in names)
    parts = parts_of(p("before") + chunks + p("after"))
    links = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/aFChunk" Target="{name}"/>' for name in names
    )
    listing = "word/_rels/document.xml.rels"
    parts[listing] = parts[listing].replace("</Relationships>", links + "</Relationships>")
    return parts


def test_documents_within_the_document_are_read():
    """A page, a text and a document stand where they are included, those unread are counted."""
    parts = including("a.html", "b.txt", "c.docx", "d.docx", "e.png")
    parts["word/a.html"] = "<html><body><h2>Page</h2><p>of a site</p></body></html>"
    parts["word/b.txt"] = "plain"
    parts["word/c.docx"] = zipped(parts_of(p("inner", "Kapitel") + item("one")))
    parts["word/d.docx"] = b"damaged"
    parts["word/e.png"] = b"picture"
    found = extract(zipped(parts))
    assert found.text == ("before\n\n## Page\n\nof a site\n\nplain\n\n# inner\n\n- one\n\nafter\n")
    assert found.metadata["unread_parts"] == 2
    assert found.metadata["unread_archives"] == 1


def test_a_document_that_includes_documents_that_include_documents():
    """Only the first is followed, as one may include itself."""
    data = zipped(parts_of(p("deepest")))
    for _ in range(3):
        parts = including("a.docx")
        data = zipped(parts | {"word/a.docx": data})
    assert extract(data).text == "before\n\nbefore\n\nafter\n\nafter\n"


def test_notes_and_comments_stand_after_their_block():
    """A footnote, an endnote and a comment follow the paragraph or list they belong to."""
    mark = '<w:r><w:{} w:id="{}"/></w:r>'
    body = (
        p("Text", inner=mark.format("footnoteReference", 2) + mark.format("commentReference", 0))
        + item("one").replace("</w:p>", mark.format("endnoteReference", 5) + "</w:p>")
        + item("two")
        + p("End", inner=mark.format("footnoteReference", 99))
    )
    text = text_of(
        body,
        footnotes=f'<w:footnote w:type="separator" w:id="0">{p()}</w:footnote>'
        f'<w:footnote w:id="2">{p("foot")}{p("more")}</w:footnote>',
        endnotes=f'<w:endnote w:id="5">{p("end")}</w:endnote>',
        comments=f'<w:comment w:id="0" w:author="Ann">{p("Really?")}</w:comment>',
    )
    assert text == (
        "Text[^1]\n\n[^1]: foot more\n\n[Comment by Ann: Really?]\n\n"
        "- one[^2]\n- two\n\n[^2]: end\n\nEnd\n"
    )


def test_equations_become_latex():
    """Fractions, powers, roots, sums, brackets and matrices are readable LaTeX."""

    def r(text):
        return f"<m:r><m:t>{text}</m:t></m:r>"

    fraction = f"<m:f><m:num>{r('a')}</m:num><m:den>{r('b')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{r('x')}</m:e><m:sup>{r('2')}</m:sup></m:sSup>"
    root = f"<m:rad><m:deg/><m:e>{power}</m:e></m:rad>"
    total = (
        f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{r("i=1")}</m:sub>'
        f"<m:sup>{r('n')}</m:sup><m:e>{r('i')}</m:e></m:nary>"
    )
    cases = (
        f'<m:d><m:dPr><m:begChr m:val="{{"/><m:endChr m:val=""/></m:dPr><m:e>{fraction}</m:e></m:d>'
    )
    rows = f"<m:m><m:mr><m:e>{r('1')}</m:e><m:e>{r('0')}</m:e></m:mr></m:m>"
    body = (
        f"<w:p>{run('So ')}<m:oMath>{fraction}{r('=')}{root}</m:oMath></w:p>"
        f"<w:p><m:oMathPara><m:oMath>{total}{cases}{rows}</m:oMath></m:oMathPara></w:p>"
    )
    assert text_of(body) == (
        "So $\\frac{a}{b}=\\sqrt{x^{2}}$\n\n"
        "$$\\sum_{i=1}^{n} i\\{\\frac{a}{b}\\begin{matrix} 1 & 0 \\end{matrix}$$\n"
    )


def test_pictures_are_their_description():
    """A picture is its description, also one that lies elsewhere; without one it is nothing."""
    linked = [("far", "image", "https://127.0.0.1:9/x.png")]
    body = (
        p("See", inner=picture("A heath&#10;&#10;Description automatically generated"))
        + p("and", inner=picture("Far away", 'r:link="far"'))
        + p("none", inner=picture("image1.png"))
    )
    text = text_of(body, links=linked)
    assert text == "See [Image: A heath]\n\nand [Image: Far away]\n\nnone\n"
    assert "data:" not in text


def test_text_boxes_are_read_once():
    """What a text box says in its new and its old form stands once, after its paragraph."""
    box = f"<w:txbxContent>{p('In the box')}</w:txbxContent>"
    body = p(
        "Around",
        inner="<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:anchor>"
        f"<wps:txbx>{box}</wps:txbx></wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict>"
        f"<v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r>",
    )
    assert text_of(body + p("After")) == "Around\n\nIn the box\n\nAfter\n"


def test_fields_controls_and_ruby_keep_their_text():
    """Fields, content controls and ruby keep what they show; a table of contents goes."""
    contents = (
        '<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/>'
        f"</w:docPartObj></w:sdtPr><w:sdtContent>{p('Eins 3')}</w:sdtContent></w:sdt>"
    )
    body = (
        contents
        + p("Eins 3", "Verzeichnis1")
        + f'<w:p><w:fldSimple w:instr="SEQ">{run("Figure 1")}</w:fldSimple></w:p>'
        + f"<w:sdt><w:sdtContent>{p('control')}</w:sdtContent></w:sdt>"
        + f"<w:p><w:r><w:ruby><w:rt>{run('kan')}</w:rt><w:rubyBase>{run('漢')}</w:rubyBase>"
        "</w:ruby></w:r></w:p>"
    )
    assert text_of(body) == "Figure 1\n\ncontrol\n\n漢\n"


def test_code_and_quotes():
    """Code keeps its lines and spaces in a fence; a quotation is marked."""
    body = p("for x:", "Quelltext") + p("    y", "Quelltext") + p("Alas.", "Zitat") + p("So.")
    assert text_of(body) == "```\nfor x:\n    y\n```\n\n> Alas.\n\nSo.\n"


def test_properties_become_metadata():
    """The properties are metadata, in one order; a title no one gave is passed over."""
    core = (
        "<dcterms:created>2024-03-15T05:45:00Z</dcterms:created><dcterms:modified>soon"
        "</dcterms:modified><dc:creator>Ann Bee</dc:creator><dc:title> Of  Moors </dc:title>"
        "<cp:keywords>peat, bog; fen</cp:keywords><cp:category>Land</cp:category>"
    )
    found = document(p("Text"), core=core)
    assert found.title == "Of Moors"
    assert dict(found.metadata) == {
        "title": "Of Moors",
        "author": "Ann Bee",
        "keywords": ["peat", "bog", "fen"],
        "category": "Land",
        "created": "2024-03-15T05:45:00Z",
    }
    named = document(
        p("Kap", "berschrift1") + p("Moor", "Titel"), core="<dc:title>Document1</dc:title>"
    )
    assert named.title == named.metadata["title"] == "Moor"
    assert document(p("Text")).title == ""
    assert document(p("Moor", "Kapitel") + p("Text")).title == "Moor"
    assert document(p("Text") + p("Sources", "Kapitel")).title == ""


def test_strict_form_reads_the_same():
    """A document in the strict form of the standard gives what the usual form gives."""
    body = (
        p("Moor", "berschrift1")
        + item("one")
        + f'<w:p><w:hyperlink r:id="out">{run("here")}</w:hyperlink></w:p>'
        + p("See", inner=picture("A heath"))
        + table((p("a"), p("b")), (p("c"), p("http://purl.oclc.org/ooxml/drawingml/main")))
        + "<w:p><m:oMath><m:r><m:t>x</m:t></m:r></m:oMath></w:p>"
    )
    usual = parts_of(
        body, links=[("out", "hyperlink", "https://example.org")], core="<dc:title>T</dc:title>"
    )
    strict = {
        name: re.sub(
            r"http://schemas\.openxmlformats\.org/(wordprocessingml|drawingml|officeDocument)/2006/",
            r"http://purl.oclc.org/ooxml/\1/",
            content,
        )
        for name, content in usual.items()
    }
    assert "2006/main" not in strict["word/document.xml"]
    assert extract(zipped(strict)) == extract(zipped(usual))
    assert extract(zipped(usual)).text.startswith("# Moor\n\n- one\n\n[here](https://example.org)")


# ---- broken and hostile --------------------------------------------------------------------------


def refusal(data, name="report.docx"):
    with pytest.raises(ExtractionError) as caught:
        extract(data, name)
    assert caught.value.message.startswith(name)
    assert advised(caught.value)
    return caught.value.message


BOMB = '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("part", ["word/document.xml", "word/styles.xml", "docProps/core.xml"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(part, encoding):
    """A part that defines entities is refused before anything parses it, in any encoding."""
    parts = parts_of(p("Text"))
    parts[part] = (f'<?xml version="1.0" encoding="{encoding}"?>{BOMB}{parts[part]}').encode(
        encoding
    )
    assert f"{part} has a document type or entity definition" in refusal(zipped(parts))


def test_utf_16_is_read():
    """A part in the other encoding that the standard allows is read."""
    parts = parts_of(p("Grün"))
    parts["word/document.xml"] = parts["word/document.xml"].encode("utf-16")
    assert extract(zipped(parts)).text == "Grün\n"


def test_other_zip_files_are_named():
    """A workbook, a presentation or any other zip under this name is told apart."""
    assert "found an Excel workbook" in refusal(zipped({"xl/workbook.xml": "<workbook/>"}))
    assert "found another kind of zip" in refusal(zipped({"a.txt": "text"}))
    assert "OpenDocument" in refusal(zipped({"mimetype": "x", "content.xml": "<x/>"}))
    broken = parts_of(p("Text")) | {"word/document.xml": "<w:document><w:body>"}
    assert "expected well-formed XML in word/document.xml" in refusal(zipped(broken))


def test_document_without_text_is_empty():
    """A document of nothing but empty paragraphs is said to be empty."""
    assert "is empty" in refusal(zipped(parts_of(p() + p(" "))))


def test_deep_nesting_keeps_the_text():
    """Tables nested too deeply to be converted give their text, one paragraph after another."""
    body = p("core")
    for level in range(40):
        body = table((p(f"level {level}"), body))
    found = document(body)
    assert found.syntax == "text"
    assert "core" in found.text
    assert "level 39" in found.text


def test_links_between_parts_may_dangle():
    """Styles, lists and notes that a document points to but does not have are done without."""
    parts = parts_of(item("one", number=9) + p("two", "Nowhere"), links=[("x", "image", "NULL")])
    del parts["word/styles.xml"], parts["word/numbering.xml"], parts["docProps/core.xml"]
    assert extract(zipped(parts)).text == "one\n\ntwo\n"


RICH = (
    p("Moor", "Titel")
    + item("one")
    + p("T", inner='<w:r><w:footnoteReference w:id="2"/></w:r>' + picture("A heath"))
    + table((p("a"), p("b")), (p("c"), p("d")))
    + "<w:p><m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num></m:f></m:oMath></w:p>"
    + f'<w:p><w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>{run("x", "<w:b/>")}</w:p>'
)
RICH_PARTS = parts_of(
    RICH,
    footnotes=f'<w:footnote w:id="2">{p("foot")}</w:footnote>',
    core="<dc:title>Moor</dc:title>",
)
RICH_DATA = zipped(RICH_PARTS)


@RELAXED
@given(end=st.integers(0, len(RICH_DATA) - 1))
def test_truncated_documents_are_refused(end):
    """A document cut off anywhere is refused, with a sentence that says so."""
    assert refusal(RICH_DATA[:end])


@RELAXED
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(RICH_DATA) - 1), st.integers(0, 255)), min_size=1, max_size=8
    )
)
def test_flipped_bytes_never_crash(edits):
    """Changed bytes give a sound document or an `ExtractionError`."""
    data = bytearray(RICH_DATA)
    for place, value in edits:
        data[place] = value
    read_soundly(DocxExtractor(), bytes(data), "report.docx")


@RELAXED
@given(data=st.data())
def test_damaged_parts_never_crash(data):
    """Elements and values that no office program writes give a document or an `ExtractionError`."""
    parts = dict(RICH_PARTS)
    damage_parts(data, parts, sorted(parts), ("<w:p/>", "<w:tbl/>", "<w:tc>"))
    read_soundly(DocxExtractor(), zipped(parts), "report.docx")


def test_same_bytes_give_the_same_document():
    """Extracting twice gives equal text and metadata in equal order."""
    first, second = extract(RICH_DATA), extract(RICH_DATA)
    assert first == second
    assert list(first.metadata) == list(second.metadata)
    assert first.extractor == "docx/3"
    assert first.pages == ()


# ---- real documents ------------------------------------------------------------------------------

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "documents"


def sample(name):
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"there is no {name} in shared/data/documents beside the checkout")
    return extract(path.read_bytes(), name)


def test_sample_with_headings_table_and_picture():
    """A document from Word reads as its author sees it."""
    found = sample("test.docx")
    assert found.title.startswith("AutoGen: Enabling")
    assert found.metadata["author"] == "Adam Fourney"
    assert "\n# Abstract\n" in found.text
    assert "\n## d666f1f7-46cb-42bd-9a39-9a39cf2a509f\n" in found.text
    assert "| 13 | 14 | 49e168b7-d2ae-407f-a055-2167576f39a1 | 15 | 16 | 17 |" in found.text
    assert "[Image: " in found.text


def test_sample_with_comments():
    """Comments of a document from LibreOffice are there, after what they are about."""
    text = sample("test_with_comment.docx").text
    assert text.index("12df-321a") < text.index("# Introduction")
    assert "[Comment: Yet another comment in the doc. 55yiyi-asd09]" in text


def test_sample_with_equations():
    """Equations from Word are LaTeX, in their sentence or standing alone."""
    text = sample("equations.docx").text
    assert "For $m=1$," in text
    assert r"$$\frac{a}{λ}=\frac{m}{sin θ}=\frac{1}{sin 45.0^{∘}}=1.41.$$" in text
