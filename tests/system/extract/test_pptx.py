"""PowerPoint presentations: a section a slide, in reading order; broken shapes cost themselves."""

import io
import re
import zipfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import MSO_SHAPE
from pptx.util import Inches

from filestore.extract import ExtractionError
from filestore.extract._office.pptx import PptxExtractor
from tests.advice import advised
from tests.system.extract.damage import RELAXED, damage_parts, read_soundly

TITLE, CONTENT, TITLE_ONLY, BLANK = 0, 1, 5, 6


def extract(data, name="deck.pptx"):
    return PptxExtractor().extract(data, name=name)


def saved(deck):
    packed = io.BytesIO()
    deck.save(packed)
    return packed.getvalue()


def document(deck):
    return extract(saved(deck))


def parts_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        return {name: container.read(name) for name in container.namelist()}


def zipped(parts):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as container:
        for name, content in parts.items():
            container.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


def deck():
    made = Presentation()
    made.core_properties.title = ""
    return made


def slide(made, layout=TITLE_ONLY, title=None):
    added = made.slides.add_slide(made.slide_layouts[layout])
    if title is not None:
        added.shapes.title.text = title
    return added


def box(on, text, left=1.0, top=1.0):
    added = on.shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(1))
    added.text_frame.text = text
    return added


# ---- what a reader sees --------------------------------------------------------------------------


def test_one_section_a_slide():
    """Each slide is a section and a page; without a title it has its number."""
    made = deck()
    slide(made, title="Moor\nand heath")
    box(slide(made, BLANK), "Peat")
    found = document(made)
    assert found.text == "## Moor and heath\n\n## Slide 2\n\nPeat\n"
    assert [(page.number, found.text[page.start :].split("\n")[0]) for page in found.pages] == [
        (1, "## Moor and heath"),
        (2, "## Slide 2"),
    ]
    assert found.title == found.metadata["title"] == "Moor and heath"
    assert (found.extractor, found.syntax) == ("pptx/3", "markdown")


def test_shapes_come_in_reading_order():
    """Shapes read from the top, those in a row from the left, however they were made."""
    made = deck()
    on = slide(made, BLANK)
    for text, left, top in (("d", 1, 5), ("c", 5, 1.9), ("b", 1, 2), ("a", 3, 0)):
        box(on, text, left, top)
    assert document(made).text == "## Slide 1\n\na\n\nb\n\nc\n\nd\n"


def test_groups_are_walked():
    """Shapes in groups within groups are read, where the group stands."""
    made = deck()
    on = slide(made, BLANK)
    box(on, "last", 1, 6)
    group = on.shapes.add_group_shape()
    for level in range(30):
        text = group.shapes.add_textbox(Inches(1), Inches(1 + level / 10), Inches(1), Inches(1))
        text.text_frame.text = f"level {level}"
        group = group.shapes.add_group_shape()
    text = document(made).text
    assert [int(level) for level in re.findall(r"level (\d+)", text)] == list(range(30))
    assert text.endswith("last\n")


def test_bullets_nest_and_prose_does_not():
    """Paragraphs with a bullet of their layout are a nested list; those without are prose."""
    made = deck()
    on = slide(made, CONTENT, "List")
    frame = on.placeholders[1].text_frame
    frame.text = "one"
    for text, level in (("deep", 1), ("deeper", 2), ("two", 0)):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = text, level
    first = slide(made, TITLE, "Start")
    first.placeholders[1].text = "A subtitle"
    assert document(made).text == (
        "## List\n\n- one\n  - deep\n    - deeper\n- two\n\n## Start\n\nA subtitle\n"
    )


def test_own_bullets_count():
    """A paragraph's own bullet or number makes a list of a text box, and none ends one."""
    made = deck()
    frame = box(slide(made, BLANK), "a").text_frame
    for text in ("b", "c"):
        frame.add_paragraph().text = text
    marks = ("<a:buAutoNum type='arabicPeriod'/>",) * 2 + ("<a:buNone/>",)
    data = saved(made)
    for text, mark in zip("abc", marks, strict=True):
        parts = parts_of(data)
        part = parts["ppt/slides/slide1.xml"].decode()
        part = re.sub(
            rf"<a:p>(?:<a:pPr/>)?<a:r><a:t>{text}<",
            f"<a:p><a:pPr>{mark}</a:pPr><a:r><a:t>{text}<",
            part,
        )
        data = zipped(parts | {"ppt/slides/slide1.xml": part.encode()})
    assert extract(data).text == "## Slide 1\n\n1. a\n2. b\n\nc\n"


def test_links_tables_and_markup():
    """Links keep their address, tables their cells, and text that looks like markup stays text."""
    made = deck()
    on = slide(made, BLANK)
    frame = box(on, "# no heading <b>", 1, 0).text_frame
    run = frame.add_paragraph().add_run()
    run.text, run.hyperlink.address = "here", "https://example.org/?a=1&b=2"
    cells = on.shapes.add_table(3, 2, Inches(1), Inches(3), Inches(4), Inches(1)).table
    for number, text in enumerate(("A|B", "C", "d", "e\nf", "g", "")):
        cells.cell(number // 2, number % 2).text = text
    cells.cell(2, 0).merge(cells.cell(2, 1))
    assert document(made).text == (
        "## Slide 1\n\n\\# no heading <b>\n\n[here](https://example.org/?a=1&b=2)\n\n"
        "| A\\|B | C |\n| --- | --- |\n| d | e f |\n| g |  |\n"
    )


def test_charts_are_tables():
    """A chart gives its title, its categories and series with their values; points give both."""
    made = deck()
    figures = CategoryChartData()
    figures.categories = ["East", "West"]
    figures.add_series("2023", (19.2, 0.1 + 0.2))
    figures.add_series("2024", (None, 4))
    place = (Inches(1), Inches(1), Inches(4), Inches(3))
    chart = (
        slide(made, BLANK).shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, figures).chart
    )
    chart.has_title = True
    chart.chart_title.text_frame.text = "Sales"
    points = XyChartData()
    series = points.add_series("run")
    series.add_data_point(1.5, 2)
    slide(made, BLANK).shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *place, points)
    assert document(made).text == (
        "## Slide 1\n\n[Chart: Sales]\n\n|  | 2023 | 2024 |\n| --- | --- | --- |\n"
        "| East | 19.2 |  |\n| West | 0.3 | 4 |\n\n"
        "## Slide 2\n\n|  | run |\n| --- | --- |\n| 1.5 | 2 |\n"
    )


def test_long_charts_are_cut_and_say_so():
    """A chart with thousands of points gives the first ones and how many more there are."""
    made = deck()
    figures = CategoryChartData()
    figures.categories = [f"day {day}" for day in range(300)]
    figures.add_series("x", range(300))
    place = (Inches(1), Inches(1), Inches(4), Inches(3))
    slide(made, BLANK).shapes.add_chart(XL_CHART_TYPE.LINE, *place, figures)
    text = document(made).text
    assert "| day 199 | 199 |" in text
    assert "day 200" not in text
    assert "[100 more points]" in text


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def test_pictures_are_their_description():
    """A picture is its description; a name that only a program gave is nothing."""
    made = deck()
    on = slide(made, title="Pictures")
    for top, description in ((1, "A bog\nin May"), (2, "IMG_0001.png")):
        added = on.shapes.add_picture(io.BytesIO(PNG), Inches(1), Inches(top))
        added.element.nvPicPr.cNvPr.set("descr", description)
    assert document(made).text == "## Pictures\n\n[Image: A bog in May]\n"


def test_notes_and_hidden_slides_are_marked():
    """Speaker notes stand under a heading of their own; a hidden slide is kept and says so."""
    made = deck()
    on = slide(made, title="Moor")
    on.notes_slide.notes_text_frame.text = "Say hello.\nThen wait."
    hidden = slide(made, title="Spare")
    hidden.element.set("show", "0")
    assert document(made).text == (
        "## Moor\n\n### Notes\n\nSay hello.\n\nThen wait.\n\n## Spare\n\n[Hidden slide]\n"
    )


def test_running_footers_are_left_out():
    """Dates, footers and slide numbers are not part of the text."""
    made = deck()
    on = slide(made, title="Moor")
    for number, kind in enumerate(("dt", "ftr", "sldNum")):
        footer = box(on, f"FURNITURE {number}")
        footer.element.nvSpPr.nvPr.get_or_add_ph().set("type", kind)
    assert "FURNITURE" not in document(made).text


def test_properties_become_metadata():
    """The properties are metadata; a title that PowerPoint made up gives way to the first slide."""
    made = deck()
    made.core_properties.title = "PowerPoint Presentation"
    made.core_properties.author = "Ann Bee"
    made.core_properties.keywords = "peat, bog"
    slide(made, title="Moor")
    found = document(made)
    assert found.title == "Moor"
    assert found.metadata["author"] == "Ann Bee"
    assert found.metadata["keywords"] == ["peat", "bog"]
    made.core_properties.title = "Of Moors"
    assert document(made).title == "Of Moors"


def test_equations_and_alternatives():
    """An equation in its new form is LaTeX; what old programs would show instead is left out."""
    made = deck()
    box(slide(made, BLANK), "HERE")
    parts = parts_of(saved(made))
    part = parts["ppt/slides/slide1.xml"].decode()
    shape = re.search(r"<p:sp>.*</p:sp>", part, re.S)[0]
    math = (
        '<a14:m xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"><m:oMath'
        ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:sSup>'
        "<m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup>"
        "</m:sSup></m:oMath></a14:m>"
    )
    both = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice Requires='a14'>{re.sub(r'<a:r>.*</a:r>', math, shape, flags=re.S)}</mc:Choice>"
        f"<mc:Fallback>{shape}</mc:Fallback></mc:AlternateContent>"
    )
    data = zipped(parts | {"ppt/slides/slide1.xml": part.replace(shape, both).encode()})
    assert extract(data).text == "## Slide 1\n\n$x^{2}$\n"


def test_strict_form_reads_the_same():
    """A deck in the strict form of the standard gives what the usual form gives."""
    usual = rich()
    strict = {
        name: re.sub(
            rb"http://schemas\.openxmlformats\.org/(presentationml|drawingml|officeDocument)/2006/",
            rb"http://purl.oclc.org/ooxml/\1/",
            content,
        )
        for name, content in parts_of(usual).items()
    }
    assert b"purl.oclc.org" in strict["ppt/slides/slide1.xml"]
    assert extract(zipped(strict)) == extract(usual)


# ---- broken and hostile --------------------------------------------------------------------------


@cache
def rich():
    made = deck()
    on = slide(made, CONTENT, "Moor")
    on.placeholders[1].text_frame.text = "one"
    on.notes_slide.notes_text_frame.text = "note"
    box(on, "box", 1, 5)
    on.shapes.add_shape(MSO_SHAPE.OVAL, Inches(5), Inches(5), Inches(1), Inches(1)).text = "oval"
    other = slide(made, title="Heath")
    other.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table.cell(
        0, 0
    ).text = "c"
    figures = CategoryChartData()
    figures.categories = ["East"]
    figures.add_series("2023", (1,))
    place = (Inches(1), Inches(4), Inches(4), Inches(3))
    other.shapes.add_chart(XL_CHART_TYPE.PIE, *place, figures)
    return saved(made)


def refusal(data, name="deck.pptx"):
    with pytest.raises(ExtractionError) as caught:
        extract(data, name)
    assert caught.value.message.startswith(name)
    assert advised(caught.value)
    return caught.value.message


def test_shapes_that_cannot_be_read_are_counted():
    """A shape that breaks the library costs itself: the rest is read, and the loss is told."""
    parts = parts_of(rich())
    chart = next(name for name in parts if re.fullmatch(r"ppt/charts/chart\d*\.xml", name))
    broken = {name: content for name, content in parts.items() if name != chart}
    found = extract(zipped(broken))
    assert found.metadata["unread_shapes"] == 1
    assert "| c |  |" in found.text
    assert "- one" in found.text


def test_slides_that_are_gone_are_counted():
    """A slide that the deck lists but does not have is told, and the others keep their numbers."""
    parts = parts_of(rich())
    del parts["ppt/slides/slide1.xml"]
    found = extract(zipped(parts))
    assert found.metadata["unread_slides"] == 1
    assert [page.number for page in found.pages] == [2]
    assert found.text.startswith("## Heath\n")


@pytest.mark.parametrize(
    "part", ["ppt/presentation.xml", "ppt/slides/slide1.xml", "ppt/_rels/presentation.xml.rels"]
)
def test_entities_are_refused(part):
    """A part that defines entities is refused before anything parses it."""
    parts = parts_of(rich())
    bomb = b'<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]>'
    parts[part] = parts[part].replace(b"?>", b"?>" + bomb, 1)
    assert f"{part} has a document type or entity definition" in refusal(zipped(parts))


def test_other_files_are_named():
    """A Word document, an old presentation and a deck without text are told apart."""
    assert "found a Word document" in refusal(zipped({"word/document.xml": b"<x/>"}))
    assert "older than Office 2007" in refusal(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    made = deck()
    slide(made, BLANK)
    assert "found 1 slides without any" in refusal(saved(made))


def test_slides_that_link_to_each_other_are_read():
    """A long chain of slides that lead to the next one is no obstacle."""
    made = deck()
    slides = [slide(made, title=f"Step {number}") for number in range(120)]
    for here, there in zip(slides, slides[1:] + slides[:1], strict=True):
        box(here, "next").click_action.target_slide = there
    assert len(document(made).pages) == 120


def assert_sound(data):
    found = read_soundly(PptxExtractor(), data, "deck.pptx")
    assert found is None or all(found.text.startswith("## ", one.start) for one in found.pages)


@RELAXED
@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_decks_are_refused(share):
    """A deck cut off anywhere is refused, with a sentence that says so."""
    data = rich()
    assert refusal(data[: int(len(data) * share)])


@RELAXED
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes_never_crash(edits):
    """Changed bytes give a sound document or an `ExtractionError`."""
    data = bytearray(rich())
    for share, value in edits:
        data[int((len(data) - 1) * share)] = value
    assert_sound(bytes(data))


@RELAXED
@given(data=st.data())
def test_damaged_parts_never_crash(data):
    """Elements and values that PowerPoint never writes give a document or an `ExtractionError`."""
    parts = parts_of(rich())
    names = [
        name
        for name in parts
        if re.match(r"ppt/(?:slides|charts|notesSlides|presentation|_rels)|\[Content|_rels", name)
        and name.endswith((".xml", ".rels"))
    ]
    damage_parts(data, parts, names, ("<p:sp/>", "<a:p/>"))
    assert_sound(zipped(parts))


def test_sample_deck_reads_well():
    """A real deck gives its table, chart, nested shapes, bullets and picture descriptions."""
    path = Path(__file__).resolve().parents[4] / "shared" / "data" / "documents" / "test.pptx"
    if not path.exists():
        pytest.skip("there is no test.pptx in shared/data/documents beside the checkout")
    found = extract(path.read_bytes())
    assert [page.number for page in found.pages] == [1, 2, 3, 4, 5, 6]
    assert "| 7 | 8 | 9 | 1b92870d-e3b5-4e65-8153-919f4ff45592 | 11 | 12 |" in found.text
    assert "[Chart: a3f6004b-6f4f-4ea8-bee3-3741f4dc385f]" in found.text
    assert "This is a nested shape with content in 2 shapes" in found.text
    assert "- Comment 2:\n  - Sub comment 2" in found.text
    assert "[Image: This phrase of the caption is Human-written.]" in found.text
    assert found.metadata.get("unread_shapes") is None
