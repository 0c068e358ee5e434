"""PDF files, made up byte by byte, read with the PDF library: documents and refusals."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.extract._pdf import PdfExtractor, reading
from filestore.extract.base import Document, ExtractionError
from tests.advice import advised, all_words

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "documents"
PROSE = "This line of prose reaches from the left margin to the right one, as lines do"


@dataclass(kw_only=True)
class Pdf:
    """A PDF in the making; `objects` are numbered from 1."""

    objects: list[bytes] = field(default_factory=lambda: [b"", b"", FONT])
    kids: list[int] = field(default_factory=list)
    root: bytes = b""
    trailer: bytes = b""
    pages: bytes | None = None

    def add(self, content):
        self.objects.append(content)
        return len(self.objects)

    def page(self, *rows, extra=b""):
        """Adds a page; a row is (x, y, size, text)."""
        stream = b"\n".join(
            b"BT /F1 %d Tf %d %d Td (%b) Tj ET" % (size, x, y, escaped(text))
            for x, y, size, text in rows
        )
        content = self.add(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
        number = self.add(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> %b >>" % (content, extra)
        )
        self.kids.append(number)
        return number

    def outline(self, *entries):
        """Adds an outline of one level; an entry is (title, number of the page object)."""
        first = len(self.objects) + 2
        root = self.add(b"<< /First %d 0 R /Count %d >>" % (first, len(entries)))
        for place, (title, page) in enumerate(entries):
            following = first + place + 1 if place + 1 < len(entries) else 0
            self.add(
                b"<< /Title (%b) /Parent %d 0 R /Dest [%d 0 R /Fit] %b >>"
                % (title, root, page, b"/Next %d 0 R" % following if following else b"")
            )
        self.root += b" /Outlines %d 0 R" % root

    def data(self):
        kids = b" ".join(b"%d 0 R" % kid for kid in self.kids)
        self.objects[0] = b"<< /Type /Catalog /Pages 2 0 R %b >>" % self.root
        self.objects[1] = self.pages or (
            b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, len(self.kids))
        )
        body = bytearray(b"%PDF-1.4\n")
        offsets = []
        for number, content in enumerate(self.objects, 1):
            offsets.append(len(body))
            body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
        table = len(body)
        body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
        body += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
        body += b"trailer\n<< /Size %d /Root 1 0 R %b >>\n" % (len(offsets) + 1, self.trailer)
        return bytes(body + b"startxref\n%d\n%%%%EOF\n" % table)


FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def escaped(text):
    data = text.encode("cp1252")
    return data.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def handbook():
    """Two chapters on three pages, with an outline, a header and page numbers."""
    pdf = Pdf()
    numbers = []
    for page, title in enumerate(("1 Peat", "", "2 Water")):
        rows = [(72, 800, 9, "Moor Handbook"), (300, 30, 9, str(page + 1))]
        if title:
            rows.append((72, 760, 16, title))
        rows += [(72, 730 - 12 * row, 10, PROSE) for row in range(3)]
        rows.append((72, 694, 10, f"and ends, in case {'abc'[page]}."))
        numbers.append(pdf.page(*rows))
    pdf.outline((b"Peat", numbers[0]), (b"Water", numbers[2]), (b"Nowhere", numbers[1]))
    info = pdf.add(
        b"<< /Title (On Moors) /Author (Jane Doe) /Subject (Peat) /Keywords (wet, brown)"
        b" /CreationDate (D:20240131120000+01'00') >>"
    )
    pdf.trailer = b"/Info %d 0 R" % info
    return pdf


def extract(data, name="moor.pdf"):
    return PdfExtractor().extract(data, name=name)


def assert_sound(document):
    text = document.text
    assert text.strip()
    assert "\r" not in text
    assert "\0" not in text
    text.encode("utf-8")
    json.dumps(dict(document.metadata), allow_nan=False)
    offsets = [page.start for page in document.pages]
    numbers = [page.number for page in document.pages]
    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)
    assert numbers == sorted(set(numbers))
    assert document.metadata["page_count"] >= len(numbers) > 0


def test_handbook():
    """Headings come from the outline, headers and page numbers go, pages are where they start."""
    document = extract(handbook().data())
    assert_sound(document)
    flowing = " ".join([PROSE] * 3)
    assert document.text == (
        f"# 1 Peat\n\n{flowing} and ends, in case a.\n\n"
        f"{flowing} and ends, in case b.\n\n"
        f"# 2 Water\n\n{flowing} and ends, in case c.\n"
    )
    assert [page.number for page in document.pages] == [1, 2, 3]
    assert document.text[document.pages[2].start :].startswith("# 2 Water")
    assert document.syntax == "markdown"
    assert document.extractor == "pdf/5"


def test_metadata():
    """Title, author, subject, key words, date and number of pages are as the file says."""
    document = extract(handbook().data())
    assert document.title == "On Moors"
    assert document.metadata == {
        "title": "On Moors",
        "author": "Jane Doe",
        "subject": "Peat",
        "keywords": ["wet", "brown"],
        "date": "2024-01-31T12:00:00+01:00",
        "page_count": 3,
    }


@pytest.mark.parametrize(
    "title", ["thesis.doc", "Microsoft Word - thesis.doc", "untitled", "moor", "(anonymous)", "42"]
)
def test_senseless_titles_are_not_told(title):
    """File names and what programs fill in give way to the largest line of the first page."""
    pdf = Pdf()
    rows = [(72, 600 - 12 * row, 10, PROSE) for row in range(12)]
    pdf.page((72, 700, 24, "The Book of Peat"), *rows)
    pdf.trailer = b"/Info %d 0 R" % pdf.add(b"<< /Title (%b) >>" % escaped(title))
    document = extract(pdf.data())
    assert "title" not in document.metadata
    assert document.title == "The Book of Peat"


def test_same_bytes_give_the_same_document():
    """Reading twice gives equal documents."""
    assert extract(handbook().data()) == extract(handbook().data())


def test_empty_pages_have_no_place():
    """A page without text is counted, but starts nowhere."""
    pdf = Pdf()
    for text in ("First page.", None, "Third page."):
        pdf.page(*([(72, 700, 10, text)] if text else []))
    document = extract(pdf.data())
    assert [page.number for page in document.pages] == [1, 3]
    assert document.metadata["page_count"] == 3


def test_two_columns_are_read_one_after_the_other():
    """The right column comes after the left one, and a paragraph flows from one to the other."""
    left = [
        (72, 700 - 12 * row, 10, f"left {'abc'[row]} of a narrow column, it") for row in range(3)
    ]
    right = [
        (320, 700 - 12 * row, 10, f"right {'abc'[row]} of a narrow column, it") for row in range(3)
    ]
    pdf = Pdf()
    pdf.page(*left, *right)
    text = extract(pdf.data()).text
    assert text.index("left c") < text.index("right a") < text.index("right c")


def test_columns_drawn_row_by_row():
    """The left column comes before the right one; a heading above both comes first."""
    pdf = Pdf()
    rows = [(72, 760, 16, "Of moors")]
    for row in range(8):
        letter = "abcdefgh"[row]
        rows.append((72, 700 - 12 * row, 10, f"left {letter} of a column of prose which"))
        rows.append((320, 700 - 12 * row, 10, f"right {letter} of a column of prose and"))
    pdf.page(*rows)
    text = extract(pdf.data()).text
    assert text.index("Of moors") < text.index("left a") < text.index("left h")
    assert text.index("left h") < text.index("right a") < text.index("right h")


def test_rows_of_labels_and_values_stay_rows():
    """A value stays next to its label, however wide the gap."""
    pdf = Pdf()
    names = ("Depth", "Colour", "Weight", "Water", "Age", "Place")
    pdf.page(
        *[(72, 700 - 14 * n, 10, name) for n, name in enumerate(names)],
        *[(320, 700 - 14 * n, 10, f"value of {name}") for n, name in enumerate(names)],
    )
    text = extract(pdf.data()).text
    assert text.index("Depth") < text.index("Age") or "| Depth | value of Depth |" in text


def test_numbers_of_lines_in_the_margin_are_no_text():
    """Numbers that count the lines go, also where the file draws them with their line."""
    pdf = Pdf()
    rows = []
    for row in range(12):
        rows.append((50, 700 - 14 * row, 8, str(row + 1)))
        rows.append((80, 700 - 14 * row, 10, PROSE))
    pdf.page(*rows)
    text = extract(pdf.data()).text
    assert not any(character.isdigit() for character in text)
    assert text.count(PROSE) == 12


def tagged():
    """Two headings that look like their paragraph; one name is that of the file's own making."""
    pdf = Pdf()
    stream = b"\n".join(
        b"/%b <</MCID %d>> BDC BT /F1 10 Tf 72 %d Td (%b) Tj ET EMC" % row
        for row in (
            (b"H1", 0, 700, b"On moors"),
            (b"P", 1, 688, PROSE.encode()),
            (b"Kapitel", 2, 676, b"Peat"),
            (b"P", 3, 664, PROSE.encode()),
        )
    )
    content = pdf.add(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    page = pdf.add(
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /StructParents 0"
        b" /Resources << /Font << /F1 3 0 R >> >> >>" % content
    )
    pdf.kids.append(page)
    root = len(pdf.objects) + 5
    kinds = (b"H1", b"P", b"Kapitel", b"P")
    elements = [
        pdf.add(b"<< /S /%b /P %d 0 R /Pg %d 0 R /K %d >>" % (kind, root, page, mark))
        for mark, kind in enumerate(kinds)
    ]
    listed = b" ".join(b"%d 0 R" % number for number in elements)
    pdf.add(
        b"<< /Type /StructTreeRoot /K [%b] /ParentTree << /Nums [0 [%b]] >>"
        b" /RoleMap << /Kapitel /H2 >> >>" % (listed, listed)
    )
    pdf.root = b"/StructTreeRoot %d 0 R /MarkInfo << /Marked true >>" % root
    return pdf


def test_tags_are_headings():
    """Also under a name of the file's own, and where nothing of the look says so."""
    text = extract(tagged().data()).text
    assert text == f"# On moors\n\n{PROSE}\n\n## Peat\n\n{PROSE}\n"


def test_a_structure_that_holds_itself_ends():
    """An element that is its own child names a heading once, or none."""
    pdf = tagged()
    root = len(pdf.objects)
    element = pdf.objects[root - 2]
    pdf.objects[root - 2] = element.replace(b"/K 3", b"/K [%d 0 R 3]" % (root - 1))
    assert "# On moors" in extract(pdf.data()).text


def filled_form():
    """A label with a value, a ticked box, a note on the page, and what nobody is to see."""
    pdf = Pdf()
    first = len(pdf.objects) + 1
    widget = b"<< /Type /Annot /Subtype /Widget /F 4 /FT %b /T (%b) /Rect [%b] %b >>"
    pdf.add(widget % (b"/Tx", b"name", b"150 696 300 712", b"/V (Jane Doe)"))
    state = b"/V /On /AS /On /AP << /N << /On 3 0 R /Off 3 0 R >> >>"
    pdf.add(widget % (b"/Btn", b"wet", b"150 676 160 686", state))
    pdf.add(widget % (b"/Tx", b"key", b"150 640 300 656", b"/V (secret) /Ff 8192"))
    pdf.add(
        b"<< /Type /Annot /Subtype /FreeText /F 4 /Rect [60 500 300 515] /DA (/F1 10 Tf)"
        b" /Contents (Ask the warden) >>"
    )
    listed = b" ".join(b"%d 0 R" % n for n in range(first, first + 4))
    rows = [(72, 700, 10, "Name:"), (72, 680, 10, "Wet:"), (72, 450, 10, "Thank you.")]
    pdf.page(*rows, extra=b"/Annots [%b]" % listed)
    pdf.root = b"/AcroForm << /Fields [%b] /DR << >> >>" % listed
    return pdf.data()


def test_what_was_filled_in_is_text():
    """Values follow their labels, a note is where it was written, a password is nowhere."""
    text = extract(filled_form()).text
    assert "Name: Jane Doe" in text
    assert "Wet: ☒" in text
    assert text.index("Wet:") < text.index("Ask the warden") < text.index("Thank you.")
    assert "secret" not in text


def test_a_page_that_is_a_picture_is_named():
    """The record says which page is not read, and what reads it."""
    pdf = Pdf()
    pdf.page((72, 700, 10, PROSE))
    image = pdf.add(
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8"
        b" /ColorSpace /DeviceGray /Length 1 >>\nstream\nx\nendstream"
    )
    content = pdf.add(b"<< /Length 30 >>\nstream\nq 595 0 0 842 0 0 cm /I Do Q   \nendstream")
    scanned = pdf.add(
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
        b" /Resources << /XObject << /I %d 0 R >> >> >>" % (content, image)
    )
    pdf.kids.append(scanned)
    pdf.page()
    document = extract(pdf.data())
    assert document.remarks == (
        "page 2 is a picture: run OCR on it with 'ocrmypdf --skip-text in.pdf out.pdf'",
    )


def test_a_page_of_signs_is_not_read():
    """A font that does not say its letters gives signs; a file of nothing else is refused."""
    signs = "% & 4 ! # ' ( ) $ + / = ~ ^ % & 4 ! # ' ( ) $ + / = ~ ^ % & 4 ! # ' ( ) $ + / = ~"
    pdf = Pdf()
    pdf.page(*[(72, 700 - 12 * n, 10, signs) for n in range(5)])
    with pytest.raises(ExtractionError, match="font") as caught:
        extract(pdf.data())
    assert "ocrmypdf --force-ocr" in all_words(caught.value)
    pdf.page((72, 700, 10, PROSE))
    document = extract(pdf.data())
    assert document.text == f"{PROSE}\n"
    assert document.remarks[0].startswith("page 1 is in a font")


def test_no_pdf():
    """Other formats under the name of a PDF are told from damaged PDFs."""
    with pytest.raises(ExtractionError, match=r"moor\.pdf is not a PDF"):
        extract(b"\x89PNG\r\n\x1a\n and so on")


@pytest.mark.parametrize("data", [b"", b" \n\t"])
def test_empty_file(data):
    """A file without bytes is called empty."""
    with pytest.raises(ExtractionError, match="empty"):
        extract(data)


def test_pictures_only():
    """A scan without text is told to be one, with what to do."""
    pdf = Pdf()
    picture = pdf.add(
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray"
        b" /BitsPerComponent 8 /Length 1 >>\nstream\nA\nendstream"
    )
    stream = b"q 500 0 0 700 40 60 cm /I Do Q"
    content = pdf.add(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    for _ in range(2):
        pdf.kids.append(
            pdf.add(
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
                b" /Resources << /XObject << /I %d 0 R >> >> >>" % (content, picture)
            )
        )
    with pytest.raises(ExtractionError, match="has 2 pages of pictures and no text") as caught:
        extract(pdf.data())
    assert "ocrmypdf" in all_words(caught.value)


def test_blank_pages():
    """Pages with nothing on them are called empty."""
    pdf = Pdf()
    pdf.page()
    with pytest.raises(ExtractionError, match="empty"):
        extract(pdf.data())


def test_no_pages():
    """A document without pages is called damaged."""
    with pytest.raises(ExtractionError, match="damaged or cut off") as caught:
        extract(Pdf().data())
    assert "qpdf" in all_words(caught.value)


def test_too_many_pages(monkeypatch):
    """More pages than the limit are refused with both numbers."""
    monkeypatch.setattr(reading, "MAX_PAGES", 2)
    with pytest.raises(ExtractionError, match="has 3 pages: expected at most 2"):
        extract(handbook().data())


def test_too_much_text(monkeypatch):
    """More text than the limit is refused."""
    monkeypatch.setattr(reading, "MAX_CHARACTERS", 300)
    with pytest.raises(ExtractionError, match="more text than can be read at once"):
        extract(handbook().data())


def test_looping_page_tree():
    """A page tree that contains itself ends."""
    pdf = Pdf()
    pdf.page((72, 700, 10, "A page in a loop."))
    pdf.pages = b"<< /Type /Pages /Kids [2 0 R %d 0 R 2 0 R] /Count 3 >>" % pdf.kids[0]
    outcome = extracted_or_refused(pdf.data())
    assert isinstance(outcome, ExtractionError) or "A page in a loop." in outcome.text


def test_looping_outline():
    """An outline whose entries follow or contain themselves ends, and its heading is found."""
    pdf = Pdf()
    page = pdf.page((72, 700, 14, "Peat"), (72, 670, 10, PROSE), (72, 658, 10, "and ends."))
    root = len(pdf.objects) + 1
    pdf.add(b"<< /First %d 0 R /Count 9 >>" % (root + 1))
    pdf.add(
        b"<< /Title (Peat) /Dest [%d 0 R /Fit] /First %d 0 R /Next %d 0 R >>"
        % (page, root + 1, root + 2)
    )
    pdf.add(b"<< /Title (Bog) /Dest [%d 0 R /Fit] /Next %d 0 R >>" % (page, root + 1))
    pdf.root = b" /Outlines %d 0 R" % root
    assert extract(pdf.data()).text.startswith("# Peat\n")


def extracted_or_refused(data):
    try:
        document = extract(data)
    except ExtractionError as error:
        return error
    assert isinstance(document, Document)
    assert_sound(document)
    return document


def assert_read_or_refused(data):
    outcome = extracted_or_refused(data)
    if isinstance(outcome, ExtractionError):
        assert "moor.pdf" in outcome.message
        assert advised(outcome)


RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WHOLE = handbook().data()


@RELAXED
@given(end=st.integers(0, len(WHOLE)))
def test_truncated_files_are_read_or_refused(end):
    """However short a file is cut, there is a sound document or an error that says so."""
    assert_read_or_refused(WHOLE[:end])


@st.composite
def mutated(draw):
    data = bytearray(WHOLE)
    for _ in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 10)))
        data[start:end] = draw(
            st.binary(max_size=4)
            | st.sampled_from([b"2 0 R", b"<<", b">>", b"[", b"99999999", b"-1", b"(", b"/Next"])
        )
    return bytes(data)


@RELAXED
@given(data=mutated())
def test_mutated_files_are_read_or_refused(data):
    """However a file is damaged, there is a sound document or an error, nothing else."""
    assert_read_or_refused(data)


def sample(name):
    path = SAMPLES / name
    if not path.exists():
        pytest.skip("the sample documents are not here")
    return path.read_bytes()


def test_encrypted():
    """A file with a password is told to have one, with a command that takes it away."""
    data = sample("libreoffice-writer-password.pdf")
    with pytest.raises(ExtractionError, match="encrypted") as caught:
        extract(data)
    assert "qpdf" in all_words(caught.value)


def test_right_to_left():
    """Arabic reads in the order it is spoken, beside English in its own."""
    text = extract(sample("habibi.pdf")).text
    assert "\u062d\u064e\u0628\u064a\u0628\u064a" in text
    assert "habibi" in text


def test_real_columns():
    """Real two-column prose flows, without broken words or page numbers."""
    document = extract(sample("multicolumn.pdf"))
    assert_sound(document)
    assert "consectetuer adipiscing elit. Ut purus elit" in document.text
    assert "Nam feugiat lacus vel est." in document.text
    assert document.title == "Two-Column Document with Lorem Ipsum"


def test_real_outline():
    """The outline of a real document gives its headings, though they share three names."""
    rows = extract(sample("pdflatex-outline.pdf")).text.splitlines()
    headings = [row for row in rows if row.startswith("#")]
    assert headings[:4] == ["# 1 Foo", "# 2 Bar", "# 3 Baz", "# 4 Foo"]
    assert len(headings) == 9


def inventory():
    """A page with a table between two paragraphs."""
    pdf = Pdf()
    rows = [
        ("Item", "Shelf", "Expected", "Counted"),
        ("Nuts", "", "", "289"),
        ("Bolts", "A-1", "450", ""),
    ]
    rows += [(f"Screws {n}", f"B-{n}", "120", "") for n in range(4)]
    drawn = [
        (50 + 120 * column, 640 - 16 * row, 10, cell)
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
        if cell
    ]
    pdf.page((50, 720, 10, PROSE), (50, 706, 10, PROSE), *drawn, (50, 480, 10, f"{PROSE}."))
    return pdf.data()


def test_a_table_has_its_cells_in_their_columns():
    """Empty cells included, and no word of the page is lost."""
    text = extract(inventory()).text
    assert "| Item | Shelf | Expected | Counted |\n| --- | --- | --- | --- |\n" in text
    assert "| Nuts |  |  | 289 |\n| Bolts | A-1 | 450 |  |\n" in text
    assert text.count(PROSE) == 3


def test_a_second_reader_that_fails_changes_nothing(monkeypatch):
    """Whatever it raises: what its Rust panics with is no Exception."""
    import liteparse

    class PanicError(BaseException):
        pass

    def fail(self, data):
        raise PanicError

    monkeypatch.setattr(liteparse.LiteParse, "parse", fail)
    text = extract(inventory()).text
    assert "| --- |" not in text
    assert "289" in text
