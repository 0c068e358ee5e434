"""Made-up PDFs with tables of known cells, and pages of prose without any, for `documents.py`.

The halves are chosen by a hash of the name: rules were tried on "tuning" alone.
"""

import hashlib
import io
import random
from dataclasses import dataclass

WORDS = [
    "valley",
    "mill",
    "pump",
    "report",
    "council",
    "field",
    "harbour",
    "annual",
    "level",
    "water",
    "ledger",
    "grain",
    "timber",
    "north",
    "winter",
    "survey",
    "bridge",
    "market",
    "county",
    "energy",
    "copper",
    "steel",
    "cotton",
    "import",
    "export",
    "rate",
    "share",
]
STYLES = [
    "bordered",
    "borderless",
    "rules",
    "merged",
    "invoice",
    "statement",
    "pages",
    "empty",
    "right",
    "wrapped",
    "narrow",
    "zebra",
    "times",
    "small",
    "headless",
    "years",
    "mixed",
]
PROSE = [
    "plain",
    "columns",
    "contents",
    "margin",
    "code",
    "list",
    "letter",
    "references",
    "glossary",
    "formulas",
]


@dataclass(frozen=True)
class Gold:
    """One file: its bytes and the cells of its tables; an empty cell is an empty text."""

    name: str
    data: bytes
    tables: list[list[list[str]]]

    @property
    def half(self):
        """Whether rules may be tried on it."""
        odd = hashlib.sha256(self.name.encode()).digest()[0] % 2
        return "confirming" if odd else "tuning"


def sentence(chance, words=12):
    said = " ".join(chance.choice(WORDS) for _ in range(words))
    return f"{said[0].upper()}{said[1:]}."


def cells(chance, style, rows):
    """The cells of one table: a header, labels, numbers."""
    if style == "years":
        head = ["Region", *[str(2015 + n) for n in range(6)]]
    else:
        names = ["Item", "Place", "Opening", "Received", "Sold", "Closing", "Change"]
        count = {"narrow": 2, "invoice": 5, "statement": 5}.get(style, chance.randint(3, 7))
        head = names[:count]
        if style == "invoice":
            head = ["Pos", "Description", "Qty", "Unit price", "Total"]
        if style == "statement":
            head = ["Date", "Details", "Debit", "Credit", "Balance"]
    table = [head]
    for row in range(rows):
        label = f"{chance.choice(WORDS).title()} {chance.choice(WORDS)}"
        line = [label]
        if style == "invoice":
            line = [str(row + 1), f"{label} of {row + 3} kg"]
        elif style == "statement":
            line = [f"{row + 1:02d}/03/2024", label]
        elif style == "mixed":
            line = [label, chance.choice(WORDS)]
        if style == "wrapped":
            line = [sentence(chance, 9)]
        while len(line) < len(head):
            number = chance.choice(
                (f"{chance.randint(1, 999)}", f"{chance.randint(1, 9999):,}.{row % 10}0", f"{row}%")
            )
            empty = style in ("empty", "statement") and chance.random() < 0.4
            line.append("" if empty and len(line) > 1 else number)
        table.append(line)
    return table


def pdf(name, story, chance, *, two_columns=False):
    from reportlab.lib.pagesizes import A4
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

    stream = io.BytesIO()
    document = BaseDocTemplate(stream, pagesize=A4, title=name, invariant=1)
    width, height = A4
    frames = [Frame(60, 60, width - 120, height - 120)]
    if two_columns:
        half = (width - 140) / 2
        frames = [Frame(60, 60, half, height - 120), Frame(80 + half, 60, half, height - 120)]
    document.addPageTemplates([PageTemplate(frames=frames)])
    document.build(story)
    return stream.getvalue()


def with_table(style, number):
    from reportlab.lib import colors
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, Spacer, Table

    name = f"{style}-{number}"
    chance = random.Random(name)
    body = getSampleStyleSheet()["BodyText"]
    rows = chance.randint(60, 90) if style == "pages" else chance.randint(4, 14)
    table = cells(chance, style, rows)
    shown = [list(row) for row in table]
    if style == "headless":
        shown = table = table[1:]
    if style == "wrapped":
        shown = [[Paragraph(row[0], body), *row[1:]] for row in table]
    font = "Times-Roman" if style == "times" else "Helvetica"
    size = 6 if style == "small" else 9
    look = [("FONT", (0, 0), (-1, -1), font, size), ("VALIGN", (0, 0), (-1, -1), "TOP")]
    look.append(("ALIGN", (1 if style != "invoice" else 2, 0), (-1, -1), "RIGHT"))
    if style in ("bordered", "merged", "wrapped", "pages", "narrow") or (
        style == "mixed" and number % 2
    ):
        look.append(("GRID", (0, 0), (-1, -1), 0.5, colors.black))
    if style in ("rules", "invoice", "statement", "years"):
        look.append(("LINEBELOW", (0, 0), (-1, 0), 0.8, colors.black))
        look.append(("LINEABOVE", (0, 0), (-1, 0), 0.8, colors.black))
    if style == "zebra":
        look.append(("ROWBACKGROUNDS", (0, 0), (-1, -1), [colors.white, colors.lightgrey]))
    if style == "merged":
        for start in range(1, len(shown) - 1, 2):
            look.append(("SPAN", (0, start), (0, start + 1)))
            shown[start + 1][0] = ""
            table[start + 1] = ["", *table[start + 1][1:]]
    if style == "borderless" and number % 2:
        look = [one for one in look if one[0] != "ALIGN"]
    widths = [150, *[45] * (len(shown[0]) - 1)] if style == "wrapped" else None
    if style == "borderless" or style == "empty":
        widths = [440 / len(shown[0])] * len(shown[0])
    drawn = Table(shown, style=look, colWidths=widths, repeatRows=1 if style == "pages" else 0)
    above = [Paragraph(sentence(chance, 60), body) for _ in range(number % 3)]
    below = [Paragraph(sentence(chance, 70), body) for _ in range(2)]
    story = [*above, Spacer(1, 14), drawn, Spacer(1, 14), *below]
    return Gold(name, pdf(name, story, chance), [table])


def without_table(style, number):
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, Preformatted, Spacer, Table

    name = f"prose-{style}-{number}"
    chance = random.Random(name)
    sheet = getSampleStyleSheet()
    body = sheet["BodyText"]
    story = []
    for n in range(40):
        text = sentence(chance, chance.randint(30, 90))
        if style == "contents":
            dots = ". " * chance.randint(20, 30)
            text = f"{n + 1} {sentence(chance, 4)[:-1]} {dots} {n * 3 + 1}"
        if style == "list":
            text = f"{n + 1}. {sentence(chance, chance.randint(3, 20))}"
        if style == "references":
            text = f"[{n + 1}] A. Miller, {sentence(chance, 9)} Vol. {n}, pp. {n}–{n + 9}, 2019."
        if style == "formulas":
            text = f"{sentence(chance, 20)}<br/>x = {n} + y / {n + 2}     ({n + 1})"
        if style == "letter":
            text = sentence(chance, chance.randint(3, 12))
        if style == "code":
            lines = [f"{'    ' * (k % 3)}value_{k} = call({k}, {n})  # {k}" for k in range(6)]
            story.append(Preformatted("\n".join(lines), sheet["Code"]))
        if style in ("margin", "glossary"):
            words = 2 if style == "margin" else 1
            side = " ".join(chance.choice(WORDS) for _ in range(words)).title()
            story.append(Table([[Paragraph(side, body), Paragraph(text, body)]], [90, 350]))
        else:
            story.append(Paragraph(text, body))
        story.append(Spacer(1, 4))
    data = pdf(name, story, chance, two_columns=style == "columns" or number == 2)
    return Gold(name, data, [])


def gold(variants=5):
    """Every file of the set, tables first."""
    made = [with_table(style, n) for style in STYLES for n in range(variants)]
    return made + [without_table(style, n) for style in PROSE for n in range(3)]
