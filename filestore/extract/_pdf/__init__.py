"""PDF files: their text as Markdown, with headings, tables, and the places of pages.

Puts the steps in order: read, take away what runs along the edges, find headings, put lines
together. One rule: all metadata comes from the file; where its text cannot be read, it says why.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct, field

from filestore.extract._pdf.fields import NO_MAP, unread_pages
from filestore.extract._pdf.headings import evident_title, find_headings, without_furniture
from filestore.extract._pdf.lines import (
    BULLETS,
    Block,
    Line,
    flowing_on,
    is_bullet,
    is_item,
    measure,
    page_blocks,
    without_bullet,
    without_leader,
)
from filestore.extract._pdf.reading import (
    arranged,
    has_pictures,
    opened,
    read_outline,
    read_pages,
    read_value,
)
from filestore.extract._pdf.tables import repeats_header, row_text
from filestore.extract._pdf.words import Words, joined, vocabulary
from filestore.extract.base import (
    Document,
    ExtractionError,
    Extractor,
    Page,
    document_text,
    json_value,
)
from filestore.extract.titles import NO_TITLE, checked_title

_DATE: Final = re.compile(
    r"(?:D:)?(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?)?)?)?"
    r"\s*(?:(Z)|([+-])(\d\d)'?(?:(\d\d)'?)?)?",
    re.ASCII,
)


class PdfExtractor(Extractor):
    """PDF: flowing text under the headings of its outline."""

    name = "pdf"
    version = 5
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Reads the pages and puts their lines together; see `Extractor.extract`."""
        with opened(data, name=name) as document:
            pages = read_pages(document, name=name)
            if not any(page.lines or page.fields for page in pages):
                if any(page.unread == NO_MAP for page in pages):
                    raise ExtractionError(
                        f"{name} cannot be read: its text is {NO_MAP}"
                        "; run OCR on it: ocrmypdf --force-ocr in.pdf out.pdf",
                    )
                raise _no_text_error(name, len(pages), pictures=has_pictures(document))
            remarks = unread_pages(pages)
            pages = arranged(pages, document, data)
            outline = read_outline(document)
            values: dict[str, Any] = {
                "title": checked_title(read_value(document, "Title"), name=name)
            }
            for key, entry in (("author", "Author"), ("subject", "Subject")):
                value = read_value(document, entry)
                values[key] = "" if NO_TITLE.fullmatch(value) else value
            keywords = re.split(r"[,;]", read_value(document, "Keywords"))
            values["keywords"] = [word.strip() for word in keywords if word.strip()]
            values["date"] = iso_date(read_value(document, "CreationDate"))
            values["page_count"] = len(pages)
            metadata = {key: value for key, value in values.items() if value}
        pages = without_furniture(pages)
        measures = measure(pages)
        headings = find_headings(pages, outline, measures)
        blocks = [
            page_blocks(page.lines, headings.get(number, {}), measures)
            for number, page in enumerate(pages)
        ]
        words = vocabulary(line for page in pages for line in page.lines)
        text, starts = to_markdown(flowing_on(blocks), words)
        title = metadata.get("title") or checked_title(
            evident_title(pages, outline, measures), name=name
        )
        return Document(
            text=document_text(text, name=name),
            syntax="markdown",
            metadata=json_value(metadata),
            extractor=self.label,
            title=title,
            pages=starts,
            remarks=remarks,
        )


def _no_text_error(name: str, count: int, *, pictures: bool) -> ExtractionError:
    pages = "1 page" if count == 1 else f"{count:,} pages"
    if pictures:
        return ExtractionError(
            f"{name} has {pages} of pictures and no text"
            ": run OCR on it first, for example: ocrmypdf in.pdf out.pdf",
        )
    return ExtractionError(
        f"{name} is empty: expected text, found {pages} without any",
        remedy="if its text is drawn, run OCR on it: ocrmypdf --force-ocr in.pdf out.pdf;"
        " or leave it out",
    )


def iso_date(value: str) -> str:
    """A date of PDF, `D:20240131120000+01'00'`, as ISO text; empty where it is none."""
    found = _DATE.fullmatch(value.strip())
    if found is None:
        return ""
    year, month, day, hour, minute, second, utc, sign, zone_hours, zone_minutes = found.groups()
    try:
        zone = None
        if utc:
            zone = UTC
        elif sign:
            offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes or 0))
            zone = timezone(-offset if sign == "-" else offset)
        moment = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            tzinfo=zone,
        )
    except ValueError:
        return ""
    if hour is not None:
        return moment.isoformat()
    return moment.date().isoformat() if day else "-".join(filter(None, (year, month)))


_STRUCTURE: Final = re.compile(
    r"#{1,6}(?:\s|$)|=+\s*$|-+\s*$|`{3}|~{3}|(?:\*\s*){3,}$|(?:_\s*){3,}$|(?:-\s*){3,}$|<[a-zA-Z/!?]|>"
)
_STRUCTURE_START: Final = frozenset("#=-`~*_<>")
_CLOSING: Final = re.compile(r"(?<=\s)#+$")
_DEEPEST_INDENT: Final = 60  # columns
_DEEPEST_ITEM: Final = 6
_EMPTY_LINE: Final = 1.6  # times the distance of two lines
_MOST_EMPTY: Final = 2
_TICKS: Final = re.compile(r"`+")


class _Output(Struct, kw_only=True):
    """The text so far."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    pages: list[Page] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def mark(self, line: Line) -> None:
        """Notes that a line starts here."""
        if not self.pages or self.pages[-1].number <= line.page:
            self.pages.append(Page(start=self.length, number=line.page + 1))


def to_markdown(blocks: Iterable[Block], words: Words) -> tuple[str, tuple[Page, ...]]:
    """Writes blocks as Markdown.

    Args:
        blocks: In order.
        words: Those of the document, to tell hyphens of words from hyphens of line ends.

    Returns:
        The text, and where its pages start.
    """
    output = _Output()
    before: Block | None = None
    lefts: list[float] = []
    for block in blocks:
        if before is not None:
            both = before.kind == block.kind == "text"
            tight = both and is_item(before.lines[0].text) and is_item(block.lines[0].text)
            output.write("\n" if tight else "\n\n")
        if block.kind == "table":
            _write_table(output, block, words)
        elif block.kind == "code":
            _write_code(output, block)
        else:
            heading = block.kind == "heading"
            lefts = _deeper(lefts, block)
            start = 0
            for end in range(1, len(block.lines) + 1):
                if end < len(block.lines) and (heading or block.flows[end - 1]):
                    continue
                if start:
                    output.write("\n")
                mark = f"{'#' * block.level} " if heading else ""
                if lefts and not start:
                    mark = _item_mark(block.lines[0], len(lefts) - 1)
                _write_flow(output, block.lines[start:end], mark, words)
                start = end
        before = block
    output.write("\n")
    return "".join(output.parts), tuple(output.pages)


def _deeper(lefts: Sequence[float], block: Block) -> list[float]:
    """Where the items around an item of a list start, and that itself; empty for other blocks."""
    line = block.lines[0]
    if block.kind != "text" or not is_item(line.text):
        return []
    room = line.size / 2
    return [*(left for left in lefts if left < line.left - room), line.left]


def _item_mark(line: Line, depth: int) -> str:
    """What an item of a list begins with; a dash is a sign of a list within another only."""
    sign = line.text[0] in BULLETS or (depth and is_bullet(line.text))
    return "  " * min(depth, _DEEPEST_ITEM) + ("- " if sign else "")


def _write_flow(output: _Output, lines: Sequence[Line], mark: str, words: Words) -> None:
    """Writes lines that flow on as one line."""
    first, last = lines[0], lines[-1]
    pieces = [without_leader(first.text)]
    if mark.endswith("- "):
        pieces[0] = without_bullet(first.text)
    for before, line in pairwise(lines):
        pieces[-1] += joined(
            before.text, line.text, hyphen=before.hyphen, words=words, spaced=before.spaced
        )
        pieces.append(line.text)
    if last.hyphen:
        pieces[-1] += "-"
    whole = "".join(pieces)
    if mark.startswith("#"):
        pieces[-1] = _CLOSING.sub(r"\\\g<0>", pieces[-1])
        whole = "".join(pieces)
    elif whole[:1] in _STRUCTURE_START and not mark and _STRUCTURE.match(whole):
        mark = "\\"
    output.mark(first)
    if first.page == last.page:
        output.write(f"{mark}{whole}")
        return
    output.write(mark)
    for line, piece in zip(lines, pieces, strict=True):
        output.mark(line)
        output.write(piece)


def _write_table(output: _Output, block: Block, words: Words) -> None:
    """Writes a table with its header once, however many pages it is on."""
    first = block.lines[0]
    for line in block.lines:
        again = line is not first and repeats_header(first, line, words)
        for number, row in enumerate(line.table[again:]):
            if not number:
                output.mark(line)
            output.write(f"{row_text(row, words)}\n")
            if line is first and not number:
                output.write(f"|{' --- |' * len(row)}\n")
    output.parts[-1] = output.parts[-1].removesuffix("\n")
    output.length -= 1


def _write_code(output: _Output, block: Block) -> None:
    """Writes lines with the white space before them that a PDF knows as a distance only."""
    left = min(line.left for line in block.lines)
    widest = max(block.lines, key=lambda line: len(line.text))
    column = widest.width / max(1, len(widest.text))
    texts: list[str] = []
    for line in block.lines:
        columns = round((line.left - left) / column) if column > 0.5 else 0
        hyphen = "-" if line.hyphen else ""
        texts.append(f"{' ' * min(columns, _DEEPEST_INDENT)}{line.text}{hyphen}")
    longest = max((len(run) for text in texts for run in _TICKS.findall(text)), default=0)
    output.mark(block.lines[0])
    if len(texts) == 1 and not longest:
        output.write(f"`{texts[0]}`")
        return
    fence = "`" * max(3, longest + 1)
    output.write(f"{fence}\n")
    steps = [one.bottom - other.bottom for one, other in pairwise(block.lines)]
    leading = min((step for step in steps if step > 0.5 * widest.size), default=0.0)
    for line, text, step in zip(block.lines, texts, [0.0, *steps], strict=True):
        if leading and step > _EMPTY_LINE * leading:
            output.write("\n" * min(round(step / leading) - 1, _MOST_EMPTY))
        output.mark(line)
        output.write(f"{text}\n")
    output.write(fence)
