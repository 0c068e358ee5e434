"""PowerPoint presentations: a section a slide, with its text, tables, charts and speaker notes.

Slides are walked shape by shape; what one shows becomes HTML, and `html_markdown` makes Markdown of
that. Comments, the texts of layouts and masters, running footers and hidden shapes are left out;
hidden slides are kept and marked. One rule: a shape or a slide that is not in the file costs
itself, and is counted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import Any, Final

from msgspec import Struct

from filestore.extract._office.archive import Archive, open_archive
from filestore.extract._office.charts import BREAK_CODE, CHART, DRAWING, chart, drawing_text
from filestore.extract._office.package import (
    OFFICE,
    SIGNS,
    Relationship,
    choose_alternatives,
    equation,
    local_name,
    main_part,
    picture_note,
    properties,
    relationships,
    xml_root,
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
_SHAPES: Final = frozenset({"sp", "pic", "graphicFrame", "grpSp", "cxnSp", "contentPart"})
_FURNITURE: Final = frozenset({"dt", "ftr", "hdr", "sldNum"})
_TITLES: Final = frozenset({"title", "ctrTitle"})
_BODIES: Final = frozenset({"obj", "body", "subTitle"})


class PptxExtractor(Extractor):
    """PowerPoint presentations of Office 2007 and later, in both forms of the standard."""

    name = "pptx"
    version = 3
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
        reader = _Reader(archive, main)
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


# ---- slides and shapes ---------------------------------------------------------------------------


class _Part(Struct, frozen=True, kw_only=True):
    root: Any
    links: Mapping[str, Relationship]


class _Reader:
    """Walks the slides, and counts what could not be read."""

    def __init__(self, archive: Archive, main: str) -> None:
        self._archive = archive
        self._shared: dict[str, _Part] = {}
        self._unread = {"unread_slides": 0, "unread_shapes": 0}
        self._deck = self._part(main)
        found = self._deck.root.iterfind(f"{_P}sldIdLst/{_P}sldId")
        self._slides = tuple(dict.fromkeys(slide.get(f"{_R}id", "") for slide in found))

    def losses(self) -> dict[str, int]:
        """How many slides and shapes could not be read, where there are any."""
        return {key: count for key, count in self._unread.items() if count}

    def sections(self) -> Iterator[_Section]:
        """The slides in their order, without the ones that cannot be read."""
        for number, link_id in enumerate(self._slides, 1):
            link = self._deck.links.get(link_id)
            if link is None or link.kind != "slide" or link.target not in self._archive.parts:
                self._unread["unread_slides"] += 1
                continue
            slide = self._part(link.target)
            shapes = _shapes(slide.root.find(f"{_P}cSld/{_P}spTree"))
            heads = [shape for shape in shapes if _placeholder(shape)[0] in _TITLES]
            title = drawing_text(heads[0]) if heads else ""
            if title:
                shapes.remove(heads[0])
            body = self._pieces(shapes, slide, _GROUP_DEPTH)
            notes = self._notes(slide)
            hidden = slide.root.get("show") in {"0", "false"}
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

    def _part(self, name: str) -> _Part:
        root = xml_root(self._archive, name)
        choose_alternatives(root)
        links = {link.id: link for link in relationships(self._archive, name)}
        return _Part(root=root, links=links)

    def _linked(self, part: _Part | None, kind: str) -> _Part | None:
        """The layout of a slide, the master of a layout, the notes of a slide."""
        for link in () if part is None else part.links.values():
            if link.kind == kind and link.target in self._archive.parts:
                if link.target not in self._shared:
                    self._shared[link.target] = self._part(link.target)
                return self._shared[link.target]
        return None

    def _notes(self, slide: _Part) -> str:
        """What the speaker is to say; empty without any."""
        notes = self._linked(slide, "notesSlide")
        if notes is None:
            return ""
        for shape in _shapes(notes.root.find(f"{_P}cSld/{_P}spTree")):
            body = shape.find(f"{_P}txBody")
            if _placeholder(shape)[0] == "body" and body is not None:
                # Notes have no bullets but their own.
                return _lines_html(_lines(body, notes, lambda _level: iter(())))
        return ""

    def _pieces(self, shapes: Sequence[Any], slide: _Part, depth: int) -> str:
        placed = [(*self._place(shape, slide), shape) for shape in shapes]
        return "".join(self._shape(shape, slide, depth) for shape in _in_reading_order(placed))

    def _shape(self, shape: Any, slide: _Part, depth: int) -> str:
        kind, index = _placeholder(shape)
        looks: Any = next(shape.iterfind(f"*/{_P}cNvPr"), {})
        if kind in _FURNITURE or looks.get("hidden") in {"1", "true"}:
            return ""
        drawn = next(shape.iter(f"{CHART}chart"), None)
        table = next(shape.iter(f"{_A}tbl"), None)
        body = shape.find(f"{_P}txBody")
        if shape.tag == f"{_P}grpSp":
            if depth <= 0:
                return _paragraph(drawing_text(shape))
            inner = self._pieces(_shapes(shape), slide, depth - 1)
        elif drawn is not None:
            heading, rows, more = chart(self._drawn(slide, drawn.get(f"{_R}id")))
            inner = _paragraph(heading) + (_rows_html(rows) if rows else "") + _paragraph(more)
        elif table is not None:
            inner = _rows_html(
                [
                    "" if _is_spanned(cell) else drawing_text(cell)
                    for cell in row.iterfind(f"{_A}tc")
                ]
                for row in table.iterfind(f"{_A}tr")
            )
        elif body is not None:
            inner = _lines_html(_lines(body, slide, self._list_styles(shape, slide, kind, index)))
        else:
            # The entries of a SmartArt drawing.
            entries = [
                drawing_text(point)
                for diagram in shape.iter(f"{_DIAGRAM}relIds")
                for point in self._drawn(slide, diagram.get(f"{_R}dm")).iter(f"{_DIAGRAM}pt")
            ]
            inner = _lines_html(
                [_Line(level=0, bullet="ul", html=escape(entry)) for entry in entries if entry]
            )
        return inner + _paragraph(picture_note(looks.get("descr") or looks.get("title") or ""))

    def _drawn(self, slide: _Part, link_id: str) -> Any:
        """The root of a chart or a diagram; an empty one where it is not in the file."""
        link = slide.links.get(link_id)
        if link is None or link.target not in self._archive.parts:
            self._unread["unread_shapes"] += 1
            return slide.root.makeelement("none")
        return xml_root(self._archive, link.target)

    def _inherited(self, slide: _Part, kind: str, index: str) -> Iterator[Any]:
        """The placeholders that one of a slide has its place and bullets from."""
        layout = self._linked(slide, "slideLayout")
        master = self._linked(layout, "slideMaster")
        usual = "title" if kind in _TITLES else kind if kind in _FURNITURE else "body"
        for source, at, wanted in ((layout, 1, index), (master, 0, usual)):
            tree = None if source is None else source.root.find(f"{_P}cSld/{_P}spTree")
            yield from (shape for shape in _shapes(tree) if _placeholder(shape)[at] == wanted)

    def _place(self, shape: Any, slide: _Part) -> tuple[float, float]:
        """Top and left edge."""
        kind, index = _placeholder(shape)
        for source in (shape, *(self._inherited(slide, kind, index) if kind else ())):
            for path in (f"*/{_A}xfrm/{_A}off", f"{_P}xfrm/{_A}off"):
                offset = source.find(path)
                edges = [] if offset is None else [offset.get("y", ""), offset.get("x", "")]
                if edges and all(re.fullmatch("-?[0-9]{1,12}", edge) for edge in edges):
                    return float(edges[0]), float(edges[1])
        return float("inf"), float("inf")

    def _list_styles(self, shape: Any, slide: _Part, kind: str, index: str) -> "_Styles":
        """Where the bullets of a shape come from: itself, its layout, the master."""
        sources = [shape.find(f"{_P}txBody/{_A}lstStyle")]
        if kind in _BODIES:
            above = self._inherited(slide, kind, index)
            sources += [other.find(f"{_P}txBody/{_A}lstStyle") for other in above]
            master = self._linked(self._linked(slide, "slideLayout"), "slideMaster")
            if master is not None:
                sources.append(master.root.find(f"{_P}txStyles/{_P}bodyStyle"))

        def at(level: int) -> Iterator[Any]:
            for source in sources:
                found = None if source is None else source.find(f"{_A}lvl{level}pPr")
                if found is not None:
                    yield found

        return at


def _shapes(tree: Any) -> list[Any]:
    return [] if tree is None else [child for child in tree if local_name(child) in _SHAPES]


def _placeholder(shape: Any) -> tuple[str, str]:
    """Kind and number of a placeholder; empty for any other shape."""
    found = next(shape.iterfind(f"*/{_P}nvPr/{_P}ph"), None)
    return ("", "") if found is None else (found.get("type", "obj"), found.get("idx", "0"))


def _is_spanned(cell: Any) -> bool:
    return any(cell.get(name) in {"1", "true"} for name in ("hMerge", "vMerge"))


def _in_reading_order(placed: list[tuple[float, float, Any]]) -> list[Any]:
    """Rows from the top, each from the left; what has no place of its own comes last."""
    rows: list[list[tuple[float, float, Any]]] = []
    for found in sorted(placed, key=lambda found: found[:2]):
        if rows and found[0] - rows[-1][0][0] <= _SAME_ROW:
            rows[-1].append(found)
        else:
            rows.append([found])
    return [shape for row in rows for _, _, shape in sorted(row, key=lambda found: found[1])]


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


def _lines(body: Any, part: _Part, styles: _Styles) -> list[_Line]:
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


def _inline_html(element: Any, part: _Part) -> str:
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
    target = None if link is None else part.links.get(link.get(f"{_R}id"))
    if target is None or not target.external or not text.strip():
        return text
    return f'<a href="{escape(target.target)}">{text}</a>'


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
