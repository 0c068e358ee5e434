"""The body of a Word document in the plain form that mammoth reads well.

Styles become the few that matter, deleted text goes, equations become LaTeX, pictures their
description, and footnotes and comments come after the paragraph they belong to. How that becomes
Markdown is not known here. One rule: what a reader of the document sees as text is kept, once.
"""

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

from msgspec import Struct, field

from filestore.extract._office.archive import Archive
from filestore.extract._office.docx_parts import (
    WORD,
    all_of,
    clean,
    is_on,
    paragraph_of,
    plain_text,
    replace_with_text,
    running_lines,
    value,
)
from filestore.extract._office.numbering import Label, Numbering
from filestore.extract._office.package import (
    OFFICE,
    local_name,
    related_part,
    relationships,
    xml_root,
)

_W: Final = f"{{{WORD}}}"

MAX_HEADING: Final = 6
_STYLE_DEPTH: Final = 20
_OUTLINE: Final = frozenset("012345678")
_MAX_SPAN: Final = 63

LISTING: Final = "Listing"
CITED: Final = "Cited"
LEVEL: Final = "Level"
"""The styles that are left: code, quotations, and headings with their level after it."""

NUMBER: Final = re.compile("\ue000([0-9]{1,6})([.)]?)\ue001")
"""Before an item of a list: its number, and what closes that."""
BULLETS: Final = "1"
NUMBERS: Final = "2"
"""The lists that are left."""

_CODE: Final = frozenset(
    ("html preformatted", "preformatted text", "source code", "code", "code block", "macro text")
)
_QUOTE: Final = frozenset({"quote", "intense quote", "quotations", "block text"})
_LISTING: Final = re.compile(r"(?:toc|index) ?\d|table of figures|toc heading|contents \d", re.I)
"""Styles of tables of contents: every line is a heading again, with a page number."""
_HEADING: Final = re.compile(r"heading ?([1-9])", re.I)


INCLUDED: Final = re.compile("\ue005([0-9]{1,6})\ue006\n*")
"""In place of a document within the document: its place among these."""


def prepare(root: Any, archive: Archive, part: str) -> tuple[str, list[str]]:
    """Brings a body into the plain form.

    Args:
        root: The root element of the part; changed in place.
        archive: The file, for its styles, lists and notes.
        part: The name of the part.

    Returns:
        The title that the document shows, empty without one; and the parts with the documents that
        it includes.

    Raises:
        ExtractionError: A part that goes with it is damaged.
    """
    found = related_part(archive, part, "styles")
    elements = list(xml_root(archive, found).iterfind(f"{_W}style")) if found else []
    styles = {
        element.get(f"{_W}styleId", ""): _Style(
            id=element.get(f"{_W}styleId", ""),
            name=value(element, "name") or "",
            parent=value(element, "basedOn") or "",
            level=value(element, f"pPr/{_W}outlineLvl"),
            number=element.find(f"{_W}pPr/{_W}numPr"),
            bold=is_on(element.find(f"{_W}rPr/{_W}b")),
            italic=is_on(element.find(f"{_W}rPr/{_W}i")),
            hidden=element.find(f"{_W}rPr/{_W}vanish"),
        )
        for element in elements
    }
    marks = {name: (one.hidden for one in _chain(styles, name)) for name in styles}
    hidden = {n for n, own in marks.items() if is_on(next((m for m in own if m is not None), None))}
    running = running_lines(root, archive, part, hidden)
    included = _included(root, archive, part)
    clean(root, archive, part, hidden)
    title = _title(root, styles)
    _shape_paragraphs(root, styles, _numbering(elements, archive, part))
    _shape_runs(root, styles)
    _square_tables(root)
    # Puts each note and comment after the block that refers to it, but not into a list.
    notes = _Notes(texts=_note_texts(archive, part, hidden))
    body = root.find(f"{_W}body")
    waiting: list[Any] = []
    for block in () if body is None else list(body):
        waiting += _take_notes(block, notes)
        following = block.getnext()
        if waiting and not (_is_item(block) and following is not None and _is_item(following)):
            for note in reversed(waiting):
                block.addnext(note)
            waiting = []
    if body is not None:
        _add_running(body, running)
    # Drops what only says how text looks, which is most of a body and costs mammoth most time.
    for look in list(root.iter(*_KEPT)):
        for child in list(look):
            if child.tag not in _KEPT[look.tag]:
                look.remove(child)
    for element in root.iter(f"{_W}p", f"{_W}r", f"{_W}tr"):
        element.attrib.clear()  # the numbers of editing sessions
    return title, included


def _add_running(body: Any, running: tuple[list[str], list[str]]) -> None:
    """Puts the lines of page headers and footers around a body that does not have them."""
    body_lines = {plain_text(paragraph) for paragraph in body.iter(f"{_W}p")}
    head, foot = ([line for line in lines if line not in body_lines] for lines in running)
    for line in reversed(head):
        body.insert(0, paragraph_of(body, line))
    body.extend(paragraph_of(body, line) for line in foot if line not in head)


def _included(root: Any, archive: Archive, part: str) -> list[str]:
    """Leaves a mark in place of each document within the document; returns their parts."""
    found = {link.id: link.target for link in relationships(archive, part) if not link.external}
    parts: list[str] = []
    for element in all_of(root, "altChunk"):
        target = found.get(element.get(f"{{{OFFICE}}}id"), "")
        if target in archive.parts and target not in parts:
            parts.append(target)
            mark = paragraph_of(root, f"\ue005{len(parts) - 1}\ue006")
            tables = list(element.iterancestors(f"{_W}tbl"))
            if tables:
                tables[-1].addnext(mark)
            else:
                element.addprevious(mark)
        element.getparent().remove(element)
    return parts


def _numbering(styles: list[Any], archive: Archive, part: str) -> Numbering:
    name = related_part(archive, part, "numbering")
    lists = {
        style.get(f"{_W}styleId", ""): value(style, f"pPr/{_W}numPr/{_W}numId") or ""
        for style in styles
        if style.get(f"{_W}type") == "numbering"
    }
    return Numbering(xml_root(archive, name) if name else None, lists)


# ---- styles --------------------------------------------------------------------------------------


class _Style(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    parent: str
    level: str | None
    """Outline level from 0; None where the parent says it."""
    number: Any
    """Its `numPr`; None where the parent says it."""
    bold: bool
    italic: bool
    hidden: Any
    """Its `vanish`; None where the parent says it."""


def _chain(styles: Mapping[str, _Style], style_id: str) -> Iterator[_Style]:
    """A style and what it is based on; bounded, since a damaged one may be based on itself."""
    for _ in range(_STYLE_DEPTH):
        style = styles.get(style_id)
        if style is None:
            return
        yield style
        style_id = style.parent


def _heading_level(paragraph: Any, style_id: str, chain: list[_Style]) -> int | None:
    """From 1 as the outline has it; None for text."""
    own = value(paragraph, f"pPr/{_W}outlineLvl")
    if own is not None:
        return _outline_level(own)
    for style in chain:
        if style.level is not None:
            return _outline_level(style.level)
        named = _HEADING.fullmatch(style.name)
        if named or style.name.lower() == "title":
            return int(named[1]) if named else 1
    named = None if chain else _HEADING.fullmatch(style_id)
    return int(named[1]) if named else None


def _outline_level(level: str) -> int | None:
    return int(level) + 1 if level in _OUTLINE else None  # 9 is text


# ---- paragraphs and runs -------------------------------------------------------------------------


def _title(root: Any, styles: Mapping[str, _Style]) -> str:
    """What is in the style for titles, or else the heading that the text starts with."""
    opening: str | None = None
    for paragraph in root.iter(f"{_W}p"):
        text = plain_text(paragraph)
        style_id = value(paragraph, f"pPr/{_W}pStyle") or ""
        chain = list(_chain(styles, style_id))
        if not text or (chain and _LISTING.fullmatch(chain[0].name)):
            continue
        if any(style.name.lower() == "title" for style in chain):
            return text
        if opening is None:
            opening = "" if _heading_level(paragraph, style_id, chain) is None else text
    return opening or ""


def _shape_paragraphs(root: Any, styles: Mapping[str, _Style], numbering: Numbering) -> None:
    """Leaves of all styles those in the style map of mammoth, and writes numbers and labels."""
    lists = _Lists()
    for paragraph in all_of(root, "p"):
        style_id = value(paragraph, f"pPr/{_W}pStyle") or ""
        chain = list(_chain(styles, style_id))
        name = chain[0].name.lower() if chain else ""
        if _LISTING.fullmatch(name):
            paragraph.getparent().remove(paragraph)
            continue
        label = _label(paragraph, chain, numbering)
        if not plain_text(paragraph):
            lists.pass_over(paragraph)
            continue
        level = _heading_level(paragraph, style_id, chain)
        if level is not None:
            _set_style(paragraph, f"{LEVEL}{min(level, MAX_HEADING)}")
            # A heading is bold as it is.
            for look in paragraph.iter(f"{_W}rPr"):
                for plain in ("b", "i", "rStyle"):
                    for element in look.findall(_W + plain):
                        look.remove(element)
            _write_before(paragraph, label.text if label else "")
        elif name in _CODE or name in _QUOTE:
            _set_style(paragraph, LISTING if name in _CODE else CITED)
        elif label is not None and (label.text or label.bullet):
            lists.add(paragraph, label, name)


def _label(paragraph: Any, chain: list[_Style], numbering: Numbering) -> Label | None:
    """Takes the numbering of a paragraph, its own or that of its style, and counts it."""
    own = paragraph.find(f"{_W}pPr/{_W}numPr")
    levels = [] if own is None else [value(own, "ilvl")]
    number_id = None if own is None else value(own, "numId")
    if own is not None:
        own.getparent().remove(own)
    usual = None
    for style in chain:
        if number_id is None and style.number is not None:
            number_id = value(style.number, "numId")
            usual = usual or value(style.number, "ilvl")
    if number_id is None:
        return None
    level = levels[0] if levels else None
    return numbering.label(number_id, level, usual, (style.id for style in chain))


class _Lists:
    """Writes items of lists, nested as deep as they are among their neighbours."""

    def __init__(self) -> None:
        self._last: Any = None
        self._open: list[int] = []

    def pass_over(self, paragraph: Any) -> None:
        """An empty paragraph, which ends no list."""
        if self._last is not None and paragraph.getprevious() is self._last:
            self._last = paragraph

    def add(self, paragraph: Any, label: Label, style: str) -> None:
        """Make an item of a paragraph."""
        if self._last is None or paragraph.getprevious() is not self._last:
            self._open = []
        self._last = paragraph
        built_in = _LIST_STYLE.fullmatch(style)
        level = max(label.level, int(built_in[1]) - 1 if built_in else 0)
        while self._open and self._open[-1] >= level:
            self._open.pop()
        self._open.append(level)
        in_cell = paragraph.getparent().tag == f"{_W}tc"
        is_counted = label.number is not None and not in_cell
        mark = f"\ue000{label.number}{label.closing}\ue001" if is_counted else label.text
        _write_before(paragraph, mark)
        layout = _properties_of(paragraph, "pPr")
        number = layout.makeelement(f"{_W}numPr")
        values = {"numId": NUMBERS if is_counted else BULLETS, "ilvl": len(self._open) - 1}
        for key, given in values.items():
            number.append(number.makeelement(_W + key, {f"{_W}val": str(given)}))
        layout.append(number)


_LIST_STYLE: Final = re.compile("list (?:bullet|number) ?([2-5])")


def _write_before(paragraph: Any, text: str) -> None:
    if text:
        _properties_of(paragraph, "pPr").addnext(paragraph_of(paragraph, text)[0])


def _properties_of(element: Any, name: str) -> Any:
    found = element.find(_W + name)
    if found is None:
        found = element.makeelement(_W + name)
        element.insert(0, found)
    return found


def _set_style(paragraph: Any, style_id: str) -> None:
    layout = _properties_of(paragraph, "pPr")
    for old in (*layout.findall(f"{_W}pStyle"), *layout.findall(f"{_W}numPr")):
        layout.remove(old)
    layout.insert(0, layout.makeelement(f"{_W}pStyle", {f"{_W}val": style_id}))


def _shape_runs(root: Any, styles: Mapping[str, _Style]) -> None:
    """Writes what character styles say onto the runs."""
    for run in all_of(root, "r"):
        look = run.find(f"{_W}rPr")
        if look is None:
            continue
        chain = list(_chain(styles, value(look, "rStyle") or ""))
        for name, on in (("b", any(s.bold for s in chain)), ("i", any(s.italic for s in chain))):
            if on and look.find(_W + name) is None:
                look.append(look.makeelement(_W + name))
    for symbol in all_of(root, "sym"):
        if not re.fullmatch("[0-9A-Fa-f]{1,6}", symbol.get(f"{_W}char", "")):
            symbol.getparent().remove(symbol)
    for element in all_of(root, "cr", "ptab"):
        element.tag = f"{_W}br" if element.tag == f"{_W}cr" else f"{_W}tab"


_KEPT: Final = {
    f"{_W}rPr": frozenset(_W + name for name in ("b", "i", "strike", "vertAlign", "del")),
    f"{_W}pPr": frozenset(_W + name for name in ("pStyle", "numPr", "rPr")),
    f"{_W}tcPr": frozenset({f"{_W}gridSpan"}),
    f"{_W}tblPr": frozenset(),
    f"{_W}tblGrid": frozenset(),
}
"""Of all that says how text looks, what is heard of in the Markdown."""


def _square_tables(root: Any) -> None:
    """Gives every row a cell in every column; what is merged downwards is in the first."""
    for table in all_of(root, "tbl"):
        merged: set[int] = set()
        for row in table.iterfind(f"{_W}tr"):
            column = _width(row.find(f"{_W}trPr/{_W}gridBefore"), 0)
            cells = row.findall(f"{_W}tc")
            for _ in range(column if cells else 0):
                empty = row.makeelement(f"{_W}tc")
                empty.append(empty.makeelement(f"{_W}p"))
                cells[0].addprevious(empty)
            for cell in cells:
                span = cell.find(f"{_W}tcPr/{_W}gridSpan")
                down = cell.find(f"{_W}tcPr/{_W}vMerge")
                if down is None:
                    merged.discard(column)
                else:
                    # Only below a cell that it is merged with it is not shown.
                    if down.get(f"{_W}val") != "restart" and column in merged:
                        for child in list(cell)[1:]:
                            cell.remove(child)
                    merged.add(column)
                    down.getparent().remove(down)
                column += _width(span, 1)
                if span is not None:
                    span.set(f"{_W}val", str(max(1, _width(span, 1))))


def _width(span: Any, usual: int) -> int:
    """How many columns a cell, or a gap in front of a row, is wide."""
    width = "" if span is None else span.get(f"{_W}val", "")
    return min(int(width), _MAX_SPAN) if re.fullmatch("[0-9]{1,5}", width) else usual


# ---- footnotes, endnotes and comments ------------------------------------------------------------


class _Notes(Struct, kw_only=True):
    """The notes of a document by kind and id: those not met yet, and the numbers of the others."""

    texts: dict[tuple[str, str], str]
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)


_NOTE_KINDS: Final = {
    "footnoteReference": "footnote",
    "endnoteReference": "endnote",
    "commentReference": "comment",
}


def _is_item(block: Any) -> bool:
    return block.find(f"{_W}pPr/{_W}numPr") is not None


def _note_texts(archive: Archive, part: str, hidden: Set[str]) -> dict[tuple[str, str], str]:
    texts = {}
    for kind in _NOTE_KINDS.values():
        found = related_part(archive, part, f"{kind}s")
        if found is None:
            continue
        root = xml_root(archive, found)
        clean(root, archive, found, hidden)
        for note in root.iterfind(_W + kind):
            text = plain_text(note)
            author = " ".join(note.get(f"{_W}author", "").split())
            by = f" by {author}" if author and author != "Unknown Author" else ""
            texts[kind, note.get(f"{_W}id", "")] = (
                f"[Comment{by}: {text}]" if text and kind == "comment" else text
            )
    return texts


def _take_notes(block: Any, notes: _Notes) -> list[Any]:
    """Takes the references out of a block; returns a paragraph for each note met first."""
    found = []
    for reference in all_of(block, *_NOTE_KINDS):
        key = (_NOTE_KINDS[local_name(reference)], reference.get(f"{_W}id", ""))
        text = notes.texts.pop(key, "")
        if text and key[0] != "comment":
            notes.numbers[key] = len(notes.numbers) + 1
        mark = f"[^{notes.numbers[key]}]" if key in notes.numbers else ""
        replace_with_text(reference, mark)
        if text:
            found.append(paragraph_of(block, f"{mark}: {text}" if mark else text))
    return found
