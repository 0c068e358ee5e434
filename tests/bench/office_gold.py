"""Made-up Word documents, decks and workbooks of known content, and what is found of it.

The halves are chosen by a hash of the name: rules were tried on "tuning" alone. Where LibreOffice
is installed, it writes the older and the open formats of the same files.
"""

import hashlib
import io
import os
import random
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import mean
from xml.sax.saxutils import escape

from tests.bench.table_gold import WORDS

OTHER_FORMATS = {
    "docx": ("odt", "doc", "rtf", "epub", "docm"),
    "pptx": ("odp", "ppt", "pptm"),
    "xlsx": ("ods", "xls", "xlsm"),
}
_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"


@dataclass(frozen=True)
class Gold:
    """One file, and what a reader of it sees."""

    name: str
    data: bytes
    words: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    """With their numbers."""
    tables: list[list[list[str]]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    """Of items, each with the first words behind it."""
    hidden: list[str] = field(default_factory=list)
    """What nobody sees."""

    @property
    def half(self) -> str:
        stem = self.name.partition(".")[0]
        return "tuning" if hashlib.sha256(stem.encode()).digest()[0] % 2 else "confirming"


class _Writer:
    """Text by chance, kept as it is written."""

    def __init__(self, name):
        self.chance = random.Random(name)
        self.gold = Gold(name=name, data=b"")

    def text(self, least, most):
        words = [self.chance.choice(WORDS) for _ in range(self.chance.randint(least, most))]
        words[-1] += str(self.chance.randint(100, 9_999))
        self.gold.words.extend(words)
        return " ".join(words)

    def table(self):
        columns = self.chance.randint(2, 5)
        rows = [[self.text(1, 1) for _ in range(columns)]]
        for _ in range(self.chance.randint(2, 6)):
            rows.append(
                [self.text(1, 2) if self.chance.random() > 0.2 else "" for _ in range(columns)]
            )
            rows[-1][0] = rows[-1][0] or self.text(1, 1)
        self.gold.tables.append(rows)
        return rows


# ---- Word ----------------------------------------------------------------------------------------

_LISTS = {
    "plain": [("decimal", "%1."), ("lowerLetter", "%2."), ("lowerRoman", "%3.")],
    "contract": [("decimal", "Article %1."), ("lowerLetter", "(%2)"), ("lowerRoman", "(%3)")],
    "standard": [("upperLetter", "%1)"), ("decimal", "%1.%2"), ("decimal", "%1.%2.%3")],
    "bullets": [("bullet", "•")] * 3,
}
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")


def _counted(levels, counts):
    def sign(match):
        form, count = levels[int(match[1]) - 1][0], counts[int(match[1]) - 1]
        letter = chr(96 + count)
        roman = "x" * (count // 10) + _ROMAN[count % 10]
        forms = {"lowerLetter": letter, "upperLetter": letter.upper(), "lowerRoman": roman}
        return forms.get(form, str(count))

    return re.sub("%([1-9])", sign, levels[len(counts) - 1][1])


def word(name, kind, number_headings):
    """A Word document with headings, a list of some kind, tables, notes and page headers."""
    writer = _Writer(name)
    chance, gold = writer.chance, writer.gold
    body, above = [], [0, 0, 0]
    header, footer = writer.text(2, 3), writer.text(2, 3)
    for _ in range(chance.randint(4, 8)):
        level = min(chance.randint(1, 3), 1 + sum(1 for one in above if one))
        above = [*above[: level - 1], above[level - 1] + 1, *[0] * (3 - level)]
        label = ".".join(map(str, above[:level])) + " " if number_headings else ""
        text = writer.text(1, 3)
        gold.headings.append(label + text)
        body.append(_paragraph(text, style=f"Heading{level}"))
        for _ in range(chance.randint(1, 3)):
            body.append(_paragraph(writer.text(8, 30)))
        if chance.random() < 0.6:
            body.extend(_list(writer, kind))
        if chance.random() < 0.5:
            body.append(_table(writer))
        if chance.random() < 0.3:
            secret = f"secret{chance.randint(1000, 9999)}"
            gold.hidden.append(secret)
            body.append(_paragraph(secret, look="<w:vanish/>"))
    hyphen = f"part{chance.randint(10, 99)}-{chance.randint(10, 99)}"
    gold.words.append(hyphen)
    body.append(_paragraph(hyphen).replace("-", "</w:t><w:noBreakHyphen/><w:t>"))
    return replace(gold, data=_document(body, kind, number_headings, header, footer))


def _paragraph(text, style="", layout="", look=""):
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return (
        f"<w:p><w:pPr>{named}{layout}</w:pPr><w:r><w:rPr>{look}</w:rPr>"
        f'<w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'
    )


def _list(writer, kind):
    # All lists of a document are one, which goes on counting.
    counts = writer.__dict__.setdefault("counts", [])
    level = 0
    for at in range(writer.chance.randint(3, 7)):
        level = 0 if not at else min(2, max(0, level + writer.chance.randint(-1, 1)))
        counts[level:] = [counts[level] + 1 if level < len(counts) else 1]
        text = writer.text(2, 5)
        if kind != "bullets":
            writer.gold.labels.append(f"{_counted(_LISTS[kind], counts)} {text}")
        layout = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="2"/></w:numPr>'
        yield _paragraph(text, layout=layout)


def _table(writer):
    rows = writer.table()
    merged = writer.chance.random() < 0.4 and len(rows) > 3
    cells = []
    for at, row in enumerate(rows):
        line = []
        for column, text in enumerate(row):
            down = ""
            if merged and column == 0 and at in (1, 2):
                down = '<w:vMerge w:val="restart"/>' if at == 1 else "<w:vMerge/>"
                if at == 2:
                    for lost in row[0].split():
                        writer.gold.words.remove(lost)
                    row[0] = text = ""
            wide = f'<w:tcPr><w:tcW w:w="2000" w:type="dxa"/>{down}</w:tcPr>'
            line.append(f"<w:tc>{wide}{_paragraph(text)}</w:tc>")
        cells.append(f"<w:tr>{''.join(line)}</w:tr>")
    grid = '<w:gridCol w:w="2000"/>' * len(rows[0])
    return (
        '<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/></w:tblPr>'
        f"<w:tblGrid>{grid}</w:tblGrid>{''.join(cells)}</w:tbl>{_paragraph('')}"
    )


def _document(body, kind, number_headings, header, footer):
    def levels(forms):
        return "".join(
            f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
            f'<w:lvlText w:val="{text}"/></w:lvl>'
            for at, (form, text) in enumerate(forms)
        )

    outline = [("decimal", "%1"), ("decimal", "%1.%2"), ("decimal", "%1.%2.%3")]
    numbers = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr>' * number_headings
    contents = {
        "document": f"<w:body>{''.join(body)}<w:sectPr>"
        '<w:headerReference w:type="default" r:id="header"/>'
        '<w:footerReference w:type="default" r:id="footer"/></w:sectPr></w:body>',
        "styles": '<w:style w:type="paragraph" w:default="1" w:styleId="Normal">'
        '<w:name w:val="Normal"/></w:style>'
        + "".join(
            f'<w:style w:type="paragraph" w:styleId="Heading{at + 1}"><w:name'
            f' w:val="heading {at + 1}"/><w:pPr>{numbers.format(at)}<w:outlineLvl w:val="{at}"/>'
            "</w:pPr></w:style>"
            for at in range(3)
        ),
        "numbering": f'<w:abstractNum w:abstractNumId="1">{levels(outline)}</w:abstractNum>'
        f'<w:abstractNum w:abstractNumId="2">{levels(_LISTS[kind])}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="2"/></w:num>',
        "header": _paragraph(header),
        "footer": _paragraph(footer),
    }
    roots = {"header": "hdr", "footer": "ftr"}
    types = "".join(
        f'<Override PartName="/word/{part}.xml" ContentType="{_TYPE}.{part}{main}+xml"/>'
        for part in contents
        for main in [".main" * (part == "document")]
    )
    links = "".join(
        f'<Relationship Id="{part}" Type="{_OFFICE}/{part}" Target="{part}.xml"/>'
        for part in list(contents)[1:]
    )
    relationships = f'<Relationships xmlns="{_PACKAGE}/relationships">{{}}</Relationships>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f"{types}</Types>",
        "_rels/.rels": relationships.format(
            f'<Relationship Id="r" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/>'
        ),
        "word/_rels/document.xml.rels": relationships.format(links),
    }
    for part, content in contents.items():
        root = roots.get(part, part)
        parts[f"word/{part}.xml"] = (
            f'<w:{root} xmlns:w="{_MAIN}" xmlns:r="{_OFFICE}">{content}</w:{root}>'
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as container:
        for part, content in parts.items():
            container.writestr(part, content)
    return packed.getvalue()


# ---- decks and workbooks -------------------------------------------------------------------------


def deck(name):
    """Slides with bullets, a table, a chart or notes."""
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    writer = _Writer(name)
    made = Presentation()
    for _ in range(writer.chance.randint(3, 6)):
        slide = made.slides.add_slide(made.slide_layouts[5])
        title = writer.text(1, 3)
        writer.gold.headings.append(title)
        slide.shapes.title.text = title
        kind = writer.chance.choice(("text", "table", "chart"))
        place = (Inches(1), Inches(2), Inches(6), Inches(3))
        if kind == "text":
            slide.shapes.add_textbox(*place).text_frame.text = writer.text(6, 15)
        elif kind == "table":
            rows = writer.table()
            table = slide.shapes.add_table(len(rows), len(rows[0]), *place).table
            for at, row in enumerate(rows):
                for column, text in enumerate(row):
                    table.cell(at, column).text = text
        else:
            data = CategoryChartData()
            data.categories = [writer.text(1, 1) for _ in range(3)]
            figures = [writer.chance.randint(1, 99) for _ in range(3)]
            series = writer.text(1, 1)
            data.add_series(series, figures)
            rows = [
                [one.label, str(figure)]
                for one, figure in zip(data.categories, figures, strict=True)
            ]
            writer.gold.tables.append([["", series], *rows])
            kind = XL_CHART_TYPE.COLUMN_CLUSTERED
            chart = slide.shapes.add_chart(kind, *place, data).chart
            chart.has_title = True
            chart.chart_title.text_frame.text = writer.text(1, 2)
        if writer.chance.random() < 0.4:
            slide.notes_slide.notes_text_frame.text = writer.text(4, 9)
    packed = io.BytesIO()
    made.save(packed)
    return replace(writer.gold, data=packed.getvalue())


def workbook(name):
    """Sheets with a table each, dates, shares and a hidden sheet."""
    import datetime

    from xlsxwriter import Workbook

    writer = _Writer(name)
    packed = io.BytesIO()
    book = Workbook(packed, {"in_memory": True})
    date = book.add_format({"num_format": "yyyy-mm-dd"})
    share = book.add_format({"num_format": "0%"})
    for number in range(writer.chance.randint(1, 3)):
        title = f"{writer.chance.choice(WORDS)} {number}"
        writer.gold.headings.append(title)
        sheet = book.add_worksheet(title)
        rows = writer.table()
        rows[0] += ["Date", "Share"]
        top, left = writer.chance.randint(0, 3), writer.chance.randint(0, 2)
        for row in rows[1:]:
            row += [
                f"2024-{writer.chance.randint(1, 12):02}-11",
                f"{writer.chance.randint(1, 99)}%",
            ]
        for at, row in enumerate(rows):
            for column, text in enumerate(row):
                place = (top + at, left + column)
                if at and column == len(row) - 2:
                    sheet.write_datetime(*place, datetime.datetime.fromisoformat(text), date)
                elif at and column == len(row) - 1:
                    sheet.write_number(*place, int(text[:-1]) / 100, share)
                elif text:
                    sheet.write_string(*place, text)
    secret = f"secret{writer.chance.randint(1000, 9999)}"
    writer.gold.hidden.append(secret)
    hidden = book.add_worksheet("Hidden")
    hidden.hide()
    hidden.write(0, 0, secret)
    book.close()
    return replace(writer.gold, data=packed.getvalue())


def gold(count=12):
    """Every kind of file, half of the documents with numbered headings."""
    files = [
        word(f"{kind}-{number}.docx", kind, bool(number % 2))
        for kind in _LISTS
        for number in range(count // 2)
    ]
    files += [deck(f"deck-{number}.pptx") for number in range(count)]
    return files + [workbook(f"book-{number}.xlsx") for number in range(count)]


def converted(files):
    """The same files in other formats, as LibreOffice writes them; none where it is missing."""
    program = shutil.which("soffice")
    if program is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        for one in files:
            with open(os.path.join(folder, one.name), "wb") as file:
                file.write(one.data)
        for suffix, others in OTHER_FORMATS.items():
            chosen = [one for one in files if one.name.endswith(suffix)]
            for other in others:
                out = os.path.join(folder, other)
                command = [program, f"-env:UserInstallation=file://{folder}/profile", "--headless"]
                command += ["--convert-to", other, "--outdir", out]
                command += [os.path.join(folder, one.name) for one in chosen]
                subprocess.run(command, check=False, capture_output=True, timeout=600)
                for one in chosen:
                    path = os.path.join(out, one.name.replace(suffix, other))
                    if os.path.exists(path):
                        with open(path, "rb") as file:
                            yield replace(one, name=os.path.basename(path), data=file.read())


# ---- what is found -------------------------------------------------------------------------------


def plain(text):
    return " ".join(re.sub(r"[*_\\#|[\]]|<br>", " ", text).split())


def shares(one, text):
    """Of one file: how much of its words, headings, tables and labels is in a text."""
    from tests.bench.documents import said_tables, score

    said = plain(text)
    wanted, found = Counter(one.words), Counter(said.split())
    result = {"words": (wanted & found).total() / max(1, wanted.total())}
    if one.headings:
        lines = {plain(line) for line in text.splitlines() if line.startswith("#")}
        result["headings"] = mean(heading in lines for heading in one.headings)
    if one.tables:
        result["tables"] = score(one.tables, said_tables(text))
    if one.labels:
        result["labels"] = mean(label in said for label in one.labels)
    if one.hidden:
        result["hidden"] = mean(secret in said for secret in one.hidden)
    return result


def rows(files, readers):
    """Means a format, half and reader, as lines of a table."""
    columns = ("words", "headings", "tables", "labels", "hidden")
    yield f"{'':28}" + "".join(f"{name:>10}" for name in ("files", *columns, "refused"))
    kinds = dict.fromkeys(one.name.rpartition(".")[2] for one in files)
    for kind in kinds:
        for half in ("tuning", "confirming"):
            chosen = [o for o in files if o.name.endswith(f".{kind}") and o.half == half]
            for reader, read in readers.items():
                results, refused = [], 0
                for one in chosen:
                    try:
                        results.append(shares(one, read(one)))
                    except Exception as error:
                        refused += 1
                        print(f"  {one.name} by {reader}: {error}")
                line = f"{kind:6}{half:12}{reader:10}{len(chosen):10}"
                for column in columns:
                    values = [result[column] for result in results if column in result]
                    line += f"{mean(values):10.3f}" if values else f"{'–':>10}"
                yield line + f"{refused:10}"


def office_lines(*, others):
    """The table of all formats, ours beside anydoc alone."""
    from anydoc import format_from_bytes, to_markdown_bytes

    from filestore.extract import for_name

    made = gold()
    readers = {
        "ours": lambda one: for_name(one.name).extract(one.data, name=one.name).text,
        "anydoc": lambda one: to_markdown_bytes(one.data, format_from_bytes(one.data)),
    }
    return rows([*made, *(converted(made) if others else ())], readers)
