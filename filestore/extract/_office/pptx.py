"""PowerPoint presentations: a section a slide, with its text, tables, charts and speaker notes.

python-pptx is given a package made anew of the parts that are read, and walked shape by shape; what
a slide shows becomes HTML, and `html_markdown` makes Markdown of that. Comments, the texts of
layouts and masters, and running footers are left out; hidden slides are kept and marked. One rule:
a shape that cannot be read costs itself, and is counted.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import accumulate
from typing import Any, Final

from msgspec import Struct

from filestore.extract._office.archive import Archive, damaged, open_archive
from filestore.extract._office.charts import BREAK_CODE, DRAWING, chart, drawing_text
from filestore.extract._office.package import (
    OFFICE,
    PACKAGE,
    SIGNS,
    choose_alternatives,
    equation,
    local_name,
    main_part,
    picture_note,
    properties,
    relationships,
    serialized,
    written_links,
    xml_root,
    zipped,
)
from filestore.extract.base import Document, Extractor, Page, document_text, empty_error
from filestore.extract.html_markdown import markdown, tidy

_EXPECTED: Final = "a PowerPoint presentation (.pptx)"
_A: Final = f"{{{DRAWING}/main}}"
_DIAGRAM: Final = f"{{{DRAWING}/diagram}}"
_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R: Final = f"{{{OFFICE}}}"

_GROUP_DEPTH: Final = 16
_SAME_ROW: Final = 228_600
"""Quarter of an inch in English metric units: shapes that start nearer than that are in a row."""
_LIST_LEVELS: Final = 9
_FURNITURE: Final = frozenset({"dt", "ftr", "hdr", "sldNum"})
_TITLES: Final = frozenset({"title", "ctrTitle"})
_BODIES: Final = frozenset({"obj", "body", "subTitle"})


class PptxExtractor(Extractor):
    """PowerPoint presentations of Office 2007 and later, in both forms of the standard."""

    name = "pptx"
    version = 2
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Writes each slide as a section; see `Extractor.extract`."""
        archive = open_archive(data, name=name, expected=_EXPECTED)
        main = main_part(
            archive,
            namespace="presentationml",
            fallback="ppt/presentation.xml",
            expected=_EXPECTED,
        )
        metadata = properties(archive)
        reader = _Reader(archive, *_package(archive, main))
        sections = list(reader.sections())
        if not any(section.has_text for section in sections):
            raise empty_error(name, f"found {len(sections)} slides without any")
        starts = accumulate((len(section.text) + 1 for section in sections), initial=0)
        title = metadata.get("title") or next((s.title for s in sections if s.title), "")
        return Document(
            text=document_text("\n".join(section.text for section in sections), name=name),
            syntax="markdown",
            metadata=({"title": title} if title else {}) | metadata | reader.losses(),
            extractor=self.label,
            title=title,
            pages=tuple(
                Page(start=start, number=section.number)
                for section, start in zip(sections, starts, strict=False)
            ),
        )


class _Section(Struct, frozen=True, kw_only=True):
    """One slide."""

    number: int
    title: str
    text: str
    has_text: bool


# ---- the package python-pptx is given ------------------------------------------------------------

_PRESENTATION: Final = "application/vnd.openxmlformats-officedocument.presentationml"
_TYPES: Final = {
    "officeDocument": f"{_PRESENTATION}.presentation.main+xml",
    "slide": f"{_PRESENTATION}.slide+xml",
    "slideLayout": f"{_PRESENTATION}.slideLayout+xml",
    "slideMaster": f"{_PRESENTATION}.slideMaster+xml",
    "notesSlide": f"{_PRESENTATION}.notesSlide+xml",
    "chart": "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
    "diagramData": "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml",
}
_LINK_TYPE: Final = (
    '<Default Extension="rels"'
    ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
)
_FOLLOWED: Final[Mapping[str, frozenset[str]]] = {
    "officeDocument": frozenset({"slide", "slideMaster"}),
    "slide": frozenset({"slideLayout", "notesSlide", "chart", "diagramData"}),
    "slideLayout": frozenset({"slideMaster"}),
}
"""Which links of a part are kept; without those from slide to slide no chain of them is long."""


def _package(archive: Archive, main: str) -> tuple[io.BytesIO, dict[str, str]]:
    """The parts that are read, under names of our own; and which names they had."""
    names = {main: "/ppt/part0.xml"}
    kinds = {main: "officeDocument"}
    contents = {"_rels/.rels": written_links([("rId1", "officeDocument", names[main], False)])}
    queue = [main]
    for part in queue:
        kept = []
        for link in relationships(archive, part):
            if link.external and link.kind == "hyperlink":
                kept.append((link.id, link.kind, link.target, True))
            elif link.kind in _FOLLOWED.get(kinds[part], ()) and link.target in archive.parts:
                if link.target not in kinds:
                    kinds[link.target] = link.kind
                    names[link.target] = f"/ppt/part{len(names)}.xml"
                    queue.append(link.target)
                kept.append((link.id, link.kind, names[link.target], False))
        root = xml_root(archive, part)
        choose_alternatives(root)
        contents[names[part][1:]] = serialized(root)
        contents[f"ppt/_rels/{names[part][5:]}.rels"] = written_links(kept)
    overrides = (
        f'<Override PartName="{name}" ContentType="{_TYPES[kinds[part]]}"/>'
        for part, name in names.items()
    )
    types = f'<Types xmlns="{PACKAGE}/content-types">{_LINK_TYPE}{"".join(overrides)}</Types>'
    contents["[Content_Types].xml"] = types.encode()
    return zipped(contents), {name: part for part, name in names.items()}


@cache
def _malformed() -> tuple[type[Exception], ...]:
    """What python-pptx raises for shapes that PowerPoint does not write."""
    from lxml.etree import LxmlError
    from pptx.exc import PythonPptxError

    return (
        *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError),
        *(TypeError, ValueError, LxmlError, PythonPptxError),
    )


# ---- slides and shapes ---------------------------------------------------------------------------


class _Reader:
    """Walks the slides, and counts what could not be read."""

    def __init__(self, archive: Archive, package: io.BytesIO, names: Mapping[str, str]) -> None:
        from pptx import Presentation

        self._archive = archive
        self._names = names
        self._unread = {"unread_slides": 0, "unread_shapes": 0}
        try:
            presentation = Presentation(package)
            found = presentation.element.iterfind(f"{_P}sldIdLst/{_P}sldId")
            self._links = tuple(dict.fromkeys(slide.get(f"{_R}id", "") for slide in found))
            self._deck = presentation.part
        except _malformed() as error:
            raise damaged(archive.name, f"{_EXPECTED} with a list of slides", "another") from error

    def losses(self) -> dict[str, int]:
        """How many slides and shapes could not be read, where there are any."""
        return {key: count for key, count in self._unread.items() if count}

    def sections(self) -> Iterator[_Section]:
        """The slides in their order, without the ones that cannot be read."""
        for number, link in enumerate(self._links, 1):
            try:
                slide = self._deck.related_slide(link)
                title_shape = slide.shapes.title
                title = "" if title_shape is None else drawing_text(title_shape.element)
                skipped = None if title_shape is None else title_shape.shape_id
                shapes = [
                    shape for shape in slide.shapes if title == "" or shape.shape_id != skipped
                ]
                body = "".join(self._pieces(shapes, slide, _GROUP_DEPTH))
                notes = self._notes(slide)
                hidden = slide.element.get("show") in {"0", "false"}
                page = (
                    f"<h2>{escape(title or f'Slide {number}')}</h2>"
                    + ("<p>[Hidden slide]</p>" if hidden else "")
                    + body
                    + (f"<h3>Notes</h3>{notes}" if notes else "")
                )
                yield _Section(
                    number=number,
                    title=title,
                    text=tidy(markdown(page)).translate(SIGNS),
                    has_text=bool(title or body or notes),
                )
            except _malformed():
                self._unread["unread_slides"] += 1

    def _notes(self, slide: Any) -> str:
        """What the speaker is to say; empty without any."""
        try:
            frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
            if frame is None:
                return ""
            # Notes have no bullets but their own.
            return _lines_html(_lines(frame._txBody, frame.part, lambda _level: iter(())))
        except _malformed():
            self._unread["unread_shapes"] += 1
            return ""

    def _pieces(self, shapes: Iterable[Any], slide: Any, depth: int) -> Iterator[str]:
        for shape in _in_reading_order(shapes):
            try:
                piece = self._shape(shape, slide, depth)
            except _malformed():
                self._unread["unread_shapes"] += 1
            else:
                yield piece

    def _shape(self, shape: Any, slide: Any, depth: int) -> str:
        found = next(shape.element.iterfind(f"*/{_P}nvPr/{_P}ph"), None)
        kind = "" if found is None else str(found.get("type", "obj"))
        if kind in _FURNITURE:
            return ""
        if hasattr(shape, "shapes"):
            if depth <= 0:
                return _paragraph(drawing_text(shape.element))
            inner = "".join(self._pieces(shape.shapes, slide, depth - 1))
        elif shape.has_chart:
            heading, rows, more = chart(self._part(shape.chart_part))
            inner = _paragraph(heading) + (_rows_html(rows) if rows else "") + _paragraph(more)
        elif shape.has_table:
            inner = _rows_html(
                [
                    "" if one.is_spanned else drawing_text(one.text_frame._txBody)
                    for one in row.cells
                ]
                for row in shape.table.rows
            )
        elif shape.has_text_frame:
            styles = _list_styles(shape, slide, kind)
            lines = _lines(shape.text_frame._txBody, shape.part, styles)
            inner = _lines_html(lines)
        else:
            inner = self._diagram_html(shape)
        for looks in shape.element.iterfind(f"*/{_P}cNvPr"):
            description = str(looks.get("descr") or looks.get("title") or "")
            return inner + _paragraph(picture_note(description))
        return inner

    def _diagram_html(self, shape: Any) -> str:
        """The entries of a SmartArt drawing; empty for any other shape."""
        link = next(shape.element.iter(f"{_DIAGRAM}relIds"), None)
        if link is None:
            return ""
        root = self._part(shape.part.related_part(link.get(f"{_R}dm")))
        entries = (drawing_text(point) for point in root.iter(f"{_DIAGRAM}pt"))
        lines = [_Line(level=0, bullet="ul", html=escape(entry)) for entry in entries if entry]
        return _lines_html(lines)

    def _part(self, part: Any) -> Any:
        return xml_root(self._archive, self._names[str(part.partname)])


def _in_reading_order(shapes: Iterable[Any]) -> list[Any]:
    """Rows from the top, each from the left; what has no place of its own comes last."""
    placed = sorted(((*_place(shape), shape) for shape in shapes), key=lambda found: found[:2])
    rows: list[list[tuple[float, float, Any]]] = []
    for found in placed:
        if rows and found[0] - rows[-1][0][0] <= _SAME_ROW:
            rows[-1].append(found)
        else:
            rows.append([found])
    return [shape for row in rows for _, _, shape in sorted(row, key=lambda found: found[1])]


def _place(shape: Any) -> tuple[float, float]:
    """Top and left edge."""
    last = float("inf")
    try:
        top, left = shape.top, shape.left
    except _malformed():
        return last, last
    return (last if top is None else float(top)), (last if left is None else float(left))


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


# ---- text ----------------------------------------------------------------------------------------


class _Line(Struct, frozen=True, kw_only=True):
    """A paragraph of a text frame."""

    level: int
    bullet: str
    """`ul`, `ol`, or empty for prose."""
    html: str


_Styles = Callable[[int], Iterator[Any]]


def _lines(body: Any, part: Any, styles: _Styles) -> list[_Line]:
    """The paragraphs of a text frame that have text.

    Args:
        body: Its element.
        part: The part it is in, which knows the targets of links.
        styles: For a level from 1, the properties a paragraph may have its bullet from, nearest
            first.
    """
    lines = []
    for paragraph in body.iterfind(f"{_A}p"):
        own = paragraph.find(f"{_A}pPr")
        level = "0" if own is None else own.get("lvl", "0")
        depth = int(level) if level in set("012345678") else 0
        content = "".join(_inline_html(child, part) for child in paragraph)
        if content.strip():
            candidates = (*(() if own is None else (own,)), *styles(depth + 1))
            lines.append(_Line(level=depth, bullet=_bullet(candidates), html=content.strip()))
    return lines


def _bullet(candidates: Iterable[Any]) -> str:
    for candidate in candidates:
        names = {local_name(child) for child in candidate}
        if "buNone" in names:
            return ""
        if "buAutoNum" in names:
            return "ol"
        if names & {"buChar", "buBlip"}:
            return "ul"
    return ""


def _list_styles(shape: Any, slide: Any, kind: str) -> _Styles:
    """Where the bullets of a shape come from: itself, its layout, the master."""
    sources = [shape.element.find(f"{_P}txBody/{_A}lstStyle")]
    if kind in _BODIES:
        layout = slide.slide_layout
        index = shape.placeholder_format.idx
        sources += [
            placeholder.element.find(f"{_P}txBody/{_A}lstStyle")
            for placeholder in layout.placeholders
            if placeholder.placeholder_format.idx == index
        ]
        sources.append(layout.slide_master.element.find(f"{_P}txStyles/{_P}bodyStyle"))

    def at(level: int) -> Iterator[Any]:
        for source in sources:
            found = None if source is None else source.find(f"{_A}lvl{level}pPr")
            if found is not None:
                yield found

    return at


def _inline_html(element: Any, part: Any) -> str:
    kind = local_name(element)
    if kind == "br":
        return " "
    if kind == "m":
        found = (each for each in element.iter() if local_name(each) == "oMath")
        return " ".join(escape(equation(each)) for each in found)
    moving = kind == "fld" and element.get("type", "").startswith(("slidenum", "datetime"))
    if kind not in {"r", "fld"} or moving:
        return ""
    text = escape(BREAK_CODE.sub(" ", element.findtext(f"{_A}t") or ""))
    link = element.find(f"{_A}rPr/{_A}hlinkClick")
    target = None if link is None else part.rels.get(link.get(f"{_R}id"))
    if target is None or not target.is_external or not text.strip():
        return text
    return f'<a href="{escape(target.target_ref)}">{text}</a>'


def _lines_html(lines: Sequence[_Line]) -> str:
    """Paragraphs and nested lists."""
    pieces: list[str] = []
    opened: list[str] = []
    for line in lines:
        wanted = min(line.level, _LIST_LEVELS - 1, len(opened)) + 1 if line.bullet else 0
        while len(opened) > wanted or (
            wanted == len(opened) and wanted and opened[-1] != line.bullet
        ):
            pieces.append(f"</li></{opened.pop()}>")
        if not line.bullet:
            pieces.append(f"<p>{line.html}</p>")
            continue
        if len(opened) == wanted:
            pieces.append("</li>")
        else:
            opened.append(line.bullet)
            pieces.append(f"<{line.bullet}>")
        pieces.append(f"<li>{line.html}")
    pieces += [f"</li></{name}>" for name in reversed(opened)]
    return "".join(pieces)


# ---- tables ---------------------------------------------------------------------------


def _rows_html(rows: Iterable[Sequence[str]]) -> str:
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
