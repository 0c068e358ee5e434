"""Made-up PDFs with known headings, and some without any, for `documents.py`.

The halves are chosen by a hash of the name: rules were tried on "tuning" alone.
"""

import io
import random
from dataclasses import dataclass

from tests.bench.table_gold import WORDS, Gold, sentence

BY_LOOK = [
    "large",
    "large-numbered",
    "bold",
    "bold-numbered",
    "bold-tight",
    "bold-slightly-larger",
    "numbered",
    "articles",
    "times",
    "columns",
    "chapters",
    "memo",
    "long-titles",
    "deep",
    "colon-free",
    "justified",
]
NAMED = ["outline", "outline-same-size", "tagged", "tagged-plain", "tagged-roles"]
NONE = [
    "letter",
    "novel",
    "list",
    "numbered-list",
    "code",
    "form",
    "references",
    "verse",
    "emphasis",
    "lead-ins",
    "captions",
    "columns-of-prose",
    "row-by-row",
    "notes",
]


@dataclass(frozen=True)
class Headed(Gold):
    """One file: its headings as (level, text) in order, in place of tables."""

    style: str = ""

    @property
    def headings(self):
        return self.tables


def title(chance, words=None):
    count = words or chance.randint(1, 5)
    said = " ".join(chance.choice(WORDS) for _ in range(count))
    return said[0].upper() + said[1:]


def plan(chance, *, numbered=False, deepest=2, prefix=""):
    """Headings of a document with their paragraphs: (level, text, paragraphs)."""
    parts = []
    for first in range(1, chance.randint(4, 6)):
        numbers = [first]
        for level in range(1, deepest + 1):
            if level > 1:
                numbers = [*numbers[: level - 1], 1]
            for n in range(1 if level == 1 else chance.randint(1, 2)):
                if level > 1:
                    numbers[level - 1] = n + 1
                label = f"{prefix}{'.'.join(map(str, numbers))} " if numbered else ""
                said = [prose(chance) for _ in range(chance.randint(1, 3))]
                parts.append((level, f"{label}{title(chance)}", said))
    return parts


def prose(chance, sentences=None):
    count = sentences or chance.randint(2, 6)
    return " ".join(sentence(chance, chance.randint(6, 18)) for _ in range(count))


def pdf(name, story, *, columns=1, on_page=None):
    from reportlab.lib.pagesizes import A4
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

    stream = io.BytesIO()
    document = BaseDocTemplate(stream, pagesize=A4, invariant=1)
    width, height = A4
    wide = (width - 120 - 20 * (columns - 1)) / columns
    frames = [Frame(60 + n * (wide + 20), 60, wide, height - 120) for n in range(columns)]
    later = on_page or (lambda canvas, document: None)
    document.addPageTemplates([PageTemplate(frames=frames, onPage=later)])
    document.build(story)
    return stream.getvalue()


def styles(style, chance):
    from reportlab.lib.styles import ParagraphStyle

    times = style in ("times", "articles") or chance.random() < 0.3
    plain, heavy = ("Times-Roman", "Times-Bold") if times else ("Helvetica", "Helvetica-Bold")
    size = chance.choice((9, 10, 11))
    body = ParagraphStyle(
        "body",
        fontName=plain,
        fontSize=size,
        leading=size * 1.2,
        spaceAfter=size * 0.6,
        alignment=4 if style == "justified" else 0,
    )
    heads = []
    for level in range(3):
        larger = {
            "large": 8 - 3 * level,
            "large-numbered": 6 - 2 * level,
            "chapters": 10 - 4 * level,
            "columns": 3 - level,
            "memo": 6,
            "bold-slightly-larger": 1,
            "justified": 4 - 2 * level,
        }.get(style, 0)
        weight = plain if style in ("numbered", "articles") else heavy
        if style in ("large", "chapters", "memo") and chance.random() < 0.5:
            weight = plain
        before = 0 if style == "bold-tight" else size * 1.2
        heads.append(
            ParagraphStyle(
                f"h{level}",
                fontName=weight,
                fontSize=size + larger,
                leading=(size + larger) * 1.2,
                spaceBefore=before,
                spaceAfter=0 if style == "bold-tight" else size * 0.6,
                keepWithNext=1,
            )
        )
    return body, heads


def with_headings(style, number):
    from reportlab.platypus import PageBreak, Paragraph, Spacer

    name = f"{style}-{number}"
    chance = random.Random(name)
    body, heads = styles(style, chance)
    numbered = style in ("large-numbered", "bold-numbered", "numbered", "articles", "deep")
    deepest = {"deep": 3, "memo": 1, "articles": 1}.get(style, 2)
    prefix = "Article " if style == "articles" else ""
    parts = plan(chance, numbered=numbered, deepest=deepest, prefix=prefix)
    if style == "memo":
        parts = [(1, text, [sentence(chance, 7)]) for _, text, _ in parts[:3]]
    if style == "long-titles":
        parts = [(level, title(chance, 14), said) for level, _, said in parts]
    story = []
    for level, text, said in parts:
        if style == "chapters" and level == 1 and story:
            story.append(PageBreak())
        story.append(Paragraph(text, heads[level - 1]))
        for paragraph in said:
            story.append(Paragraph(paragraph, body))
        if style == "bold-tight":
            story[-1:] = [Paragraph(said[-1], body.clone("last", spaceAfter=0)), Spacer(1, 0.1)]
    on_page = watermark if number == 2 else running if number == 1 else None
    data = pdf(name, story, columns=2 if style == "columns" else 1, on_page=on_page)
    headings = [(level, text) for level, text, _ in parts]
    return Headed(name, data, headings, style)


def watermark(canvas, document):
    canvas.saveState()
    canvas.setFont("Helvetica-Bold", 64)
    canvas.translate(200, 300)
    canvas.rotate(45)
    canvas.drawString(0, 0, "DRAFT")
    canvas.restoreState()


def running(canvas, document):
    canvas.setFont("Helvetica", 8)
    canvas.drawString(60, 815, "Harbour survey, annual series")
    canvas.drawRightString(535, 30, str(document.page))


def outlined(style, number):
    from reportlab.platypus import Paragraph

    name = f"{style}-{number}"
    chance = random.Random(name)
    body, heads = styles("bold" if style == "outline-same-size" else "large", chance)
    if style == "outline-same-size":
        heads = [body] * 3
    parts = plan(chance, numbered=number % 2 == 0)

    class Marked(Paragraph):
        def draw(self):
            super().draw()
            self.canv.bookmarkPage(self.key)
            self.canv.addOutlineEntry(self.text, self.key, self.level, 0)

    story = []
    for n, (level, text, said) in enumerate(parts):
        heading = Marked(text, heads[level - 1])
        heading.key, heading.level, heading.text = f"k{n}", level - 1, text
        story.append(heading)
        # What looks like a heading and is none, as the outline says.
        story.append(Paragraph(f"<b>{title(chance)}</b>", body))
        story += [Paragraph(paragraph, body) for paragraph in said]
    return Headed(name, pdf(name, story), [(level, text) for level, text, _ in parts], style)


def tagged(style, number):
    """A tagged file, written by hand: no writer of the standard packages tags."""
    from reportlab.lib.utils import simpleSplit

    name = f"{style}-{number}"
    chance = random.Random(name)
    parts = plan(chance, numbered=number % 2 == 0)
    pages, elements = [[]], []
    top = 780
    for level, text, said in parts:
        role = f"Heading{level}" if style == "tagged-roles" else f"H{level}"
        for kind, whole in [(role, text), *(("P", paragraph) for paragraph in said)]:
            heading = kind != "P" and style != "tagged-plain"
            font, size = ("F2", 16 - 2 * level) if heading else ("F1", 10)
            width = 300 if kind != "P" else 460
            lines = simpleSplit(whole, "Helvetica-Bold" if heading else "Helvetica", size, width)
            if top - 14 * len(lines) < 60:
                pages.append([])
                top = 780
            page = pages[-1]
            mark = sum(one[0] == len(pages) - 1 for one in elements)
            page.append(f"/{kind} <</MCID {mark}>> BDC")
            for line in lines:
                page.append(f"BT /{font} {size} Tf 60 {top} Td ({line}) Tj ET")
                top -= 12 if kind == "P" else size * 1.2
            page.append("EMC")
            elements.append((len(pages) - 1, mark, kind))
            top -= 8
    return Headed(name, written(pages, elements), [part[:2] for part in parts], style)


def written(pages, elements):
    """The bytes of a tagged PDF: pages as lists of operators, elements as (page, mark, kind)."""
    count = len(pages)
    first_page, first_element = 6, 6 + 2 * count
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /StructTreeRoot 3 0 R /MarkInfo << /Marked true >> >>",
        f"<< /Type /Pages /Count {count} /Kids ["
        + " ".join(f"{first_page + 2 * n} 0 R" for n in range(count))
        + "] >>",
        "<< /Type /StructTreeRoot /RoleMap << /Heading1 /H1 /Heading2 /H2 >> /K ["
        + " ".join(f"{first_element + n} 0 R" for n in range(len(elements)))
        + "] /ParentTree << /Nums ["
        + " ".join(
            f"{page} ["
            + " ".join(
                f"{first_element + n} 0 R" for n, one in enumerate(elements) if one[0] == page
            )
            + "]"
            for page in range(count)
        )
        + "] >> >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
    ]
    for number, page in enumerate(pages):
        stream = "\n".join(page)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /StructParents {number}"
            f" /Contents {first_page + 2 * number + 1} 0 R"
            " /Resources << /Font << /F1 4 0 R /F2 5 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    for page, mark, kind in elements:
        objects.append(
            f"<< /Type /StructElem /S /{kind} /P 3 0 R /Pg {first_page + 2 * page} 0 R /K {mark} >>"
        )
    body = "%PDF-1.5\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    return (
        f"{body}xref\n0 {len(offsets) + 1}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {len(offsets) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    ).encode("latin-1")


def said_without(style, chance, n):
    """The text of one paragraph of a document without headings."""
    text = prose(chance)
    if style == "emphasis":
        words = text.split()
        start = chance.randrange(len(words) - 4)
        words[start] = f"<b>{words[start]}"
        end = min(len(words) - 1, start + chance.choice((2, 20)))
        words[end] += "</b>"
        return " ".join(words)
    verse = [
        " ".join(chance.choice(WORDS) for _ in range(chance.randint(4, 6))) + "," for _ in range(4)
    ]
    item = sentence(chance, chance.randint(3, 25))
    return {
        "list": f"• {item}",
        "numbered-list": f"{n + 1}. {item}",
        "form": f"{title(chance, 2)}: {chance.choice(WORDS)} {n}",
        "references": f"[{n + 1}] A. Miller. {item} Vol. {n}, pp. {n}–{n + 9}, 2019.",
        "verse": "<br/>".join(verse),
        "lead-ins": f"<b>{title(chance, 2)}.</b> {text}",
    }.get(style, text)


def without_headings(style, number):
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph, Preformatted, Spacer

    name = f"none-{style}-{number}"
    chance = random.Random(name)
    body, _ = styles("times" if number == 1 else "bold", chance)
    if style == "row-by-row":
        return Headed(name, row_by_row(chance), [], style)
    small = body.clone("small", fontSize=7, leading=8)
    mono = ParagraphStyle("mono", fontName="Courier", fontSize=9, leading=11)
    story = []
    if style == "letter":
        story = [Paragraph(title(chance, 2), body) for _ in range(4)]
        story.append(Paragraph("Dear reader,", body))
    for n in range(4 if style == "letter" else chance.randint(12, 30)):
        if style == "code":
            story.append(Preformatted(f"value_{n} = call({n})\nif value_{n}:\n    stop()", mono))
        if style == "captions":
            story.append(Spacer(1, 60))
            story.append(Paragraph(f"<b>Figure {n + 1}: {title(chance)}</b>", body))
        if style == "notes" and n % 4 == 0:
            story.append(Paragraph(f"{n // 4 + 1} {sentence(chance, 14)}", small))
        story.append(Paragraph(said_without(style, chance, n), body))
    columns = 2 if style == "columns-of-prose" else 1
    return Headed(name, pdf(name, story, columns=columns), [], style)


def row_by_row(chance):
    """Two columns of prose, drawn one row after the other."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.utils import simpleSplit
    from reportlab.pdfgen import canvas

    stream = io.BytesIO()
    page = canvas.Canvas(stream, pagesize=A4, invariant=1)
    sides = [simpleSplit(prose(chance, 16), "Helvetica", 10, 225) for _ in range(2)]
    page.setFont("Helvetica", 10)
    for n, (left, right) in enumerate(zip(*sides, strict=False)):
        page.drawString(60, 780 - 12 * n, left)
        page.drawString(310, 780 - 12 * n, right)
    page.showPage()
    page.save()
    return stream.getvalue()


def gold(variants=3):
    """Every file of the set, those with headings first."""
    makers = [(BY_LOOK, with_headings), (["outline", "outline-same-size"], outlined)]
    makers += [(["tagged", "tagged-plain", "tagged-roles"], tagged), (NONE, without_headings)]
    return [make(style, n) for names, make in makers for style in names for n in range(variants)]
