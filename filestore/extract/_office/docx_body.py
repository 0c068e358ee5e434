"""The body of a Word document in the plain form that mammoth reads well.

Styles become the few that matter, deleted text goes, equations become LaTeX, pictures their
description, and footnotes and comments come after the paragraph they belong to. How that becomes
Markdown is not known here. One rule: what a reader of the document sees as text is kept, once.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from filestore.extract._office.archive import Archive
from filestore.extract._office.package import (
    choose_alternatives,
    equation,
    local_name,
    picture_note,
    related_part,
    unwrap,
    xml_root,
)

WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_W: Final = f"{{{WORD}}}"
_M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

MAX_HEADING: Final = 6
_STYLE_DEPTH: Final = 20
_LEVELS: Final = frozenset("012345678")
_MAX_SPAN: Final = 63

LISTING: Final = "Listing"
CITED: Final = "Cited"
LEVEL: Final = "Level"
"""The styles that are left: code, quotations, and headings with their level after it."""

NUMBER: Final = re.compile("\ue000([0-9]{1,6})\ue001")
"""Before an item of a list: the number it has, for lists that something interrupts."""

_CODE: Final = frozenset(
    ("html preformatted", "preformatted text", "source code", "code", "code block", "macro text")
)
_QUOTE: Final = frozenset({"quote", "intense quote", "quotations", "block text"})
_LISTING: Final = re.compile(r"(?:toc|index) ?\d|table of figures|toc heading|contents \d", re.I)
"""Styles of tables of contents: every line is a heading again, with a page number."""
_HEADING: Final = re.compile(r"heading ?([1-9])", re.I)


def prepare(root: Any, archive: Archive, part: str) -> str:
    """Brings a body into the plain form.

    Args:
        root: The root element of the part; changed in place.
        archive: The file, for its styles, lists and notes.
        part: The name of the part.

    Returns:
        The title that the document shows; empty without one.

    Raises:
        ExtractionError: A part that goes with it is damaged.
    """
    found = related_part(archive, part, "styles")
    elements = xml_root(archive, found).iterfind(f"{_W}style") if found else ()
    styles = {
        element.get(f"{_W}styleId", ""): _Style(
            name=_value(element, "name") or "",
            parent=_value(element, "basedOn") or "",
            level=_value(element, f"pPr/{_W}outlineLvl"),
            number=element.find(f"{_W}pPr/{_W}numPr"),
            bold=_is_on(element.find(f"{_W}rPr/{_W}b")),
            italic=_is_on(element.find(f"{_W}rPr/{_W}i")),
        )
        for element in elements
    }
    _clean(root)
    _lift_text_boxes(root)
    title = _title(root, styles)
    _shape_paragraphs(root, styles)
    _count_items(root, archive, part)
    _shape_runs(root, styles)
    _square_tables(root)
    # Puts each note and comment after the block that refers to it, but not into a list.
    notes = _Notes(texts=_note_texts(archive, part))
    body = root.find(f"{_W}body")
    waiting: list[Any] = []
    for block in () if body is None else list(body):
        waiting += _take_notes(block, notes)
        following = block.getnext()
        if waiting and not (_is_item(block) and following is not None and _is_item(following)):
            for note in reversed(waiting):
                block.addnext(note)
            waiting = []
    # Drops what only says how text looks, which is most of a body and costs mammoth most time.
    for look in list(root.iter(*_KEPT)):
        for child in list(look):
            if child.tag not in _KEPT[look.tag]:
                look.remove(child)
    for element in root.iter(f"{_W}p", f"{_W}r", f"{_W}tr"):
        element.attrib.clear()  # the numbers of editing sessions
    return title


# ---- what is there twice, deleted, or known to no converter --------------------------------------

_GONE: Final = ("del", "moveFrom", "bookmarkStart", "bookmarkEnd", "proofErr", "sectPr", "altChunk")
_WRAPPERS: Final = ("customXml", "smartTag", "fldSimple", "dir", "bdo", "ins", "moveTo")
_MARKS: Final = frozenset({f"{_W}rPr", f"{_W}trPr", f"{_W}tcPr", f"{_W}numPr"})
"""Where `del` and `ins` say something about a paragraph mark or a row, and hold no text."""


def _clean(root: Any) -> None:
    """Drops deletions, unwraps what only wraps, writes equations and pictures as text."""
    for element in _all(root, *_GONE):
        if element.getparent().tag not in _MARKS:
            element.getparent().remove(element)
    choose_alternatives(root)
    for element in _all(root, "sdt"):
        if element.getparent().tag != f"{_W}p":  # within a paragraph it may be a box to tick
            gallery = element.find(f"{_W}sdtPr/{_W}docPartObj/{_W}docPartGallery")
            is_contents = gallery is not None and gallery.get(f"{_W}val") == "Table of Contents"
            unwrap(element, () if is_contents else element.findall(f"{_W}sdtContent/*"))
    for element in _all(root, *_WRAPPERS):
        if element.getparent().tag not in _MARKS:
            unwrap(element, element)
    for element in _all(root, "ruby"):
        unwrap(element, element.findall(f"{_W}rubyBase/{_W}r/*"))
    for element in list(root.iter(f"{_M}oMath")):
        _replace_with_text(element, equation(element))
    for element in list(root.iter(f"{_M}oMathPara")):
        unwrap(element, element)


def _all(root: Any, *names: str) -> list[Any]:
    return list(root.iter(*(_W + name for name in names)))


def _replace_with_text(element: Any, text: str) -> None:
    """Puts text in place of an element of a run or a paragraph."""
    parent = element.getparent()
    if text:
        replacement = element.makeelement(f"{_W}t")
        replacement.text = text
        element.addprevious(replacement)
    parent.remove(element)


def _lift_text_boxes(root: Any) -> None:
    """Puts what is in text boxes after the paragraph they hang on, and pictures into words."""
    for box in reversed(_all(root, "txbxContent")):
        paragraph = next(box.iterancestors(f"{_W}p"), None)
        if paragraph is not None:
            for child in reversed(box):
                paragraph.addnext(child)
    for picture in _all(root, "drawing", "pict", "object"):
        if picture.getparent() is not None:
            notes: dict[str, None] = {}
            for element in picture.iter():
                if local_name(element) in {"docPr", "cNvPr"}:
                    notes[picture_note(element.get("descr") or element.get("title") or "")] = None
                elif local_name(element) == "shape":
                    notes[picture_note(element.get("alt") or "")] = None
            note = " ".join(filter(None, notes))
            _replace_with_text(picture, f" {note} " if note else "")


# ---- styles --------------------------------------------------------------------------------------


class _Style(Struct, frozen=True, kw_only=True):
    name: str
    parent: str
    level: str | None
    """Outline level from 0; None where the parent says it."""
    number: Any
    """Its `numPr`; None where the parent says it."""
    bold: bool
    italic: bool


def _value(element: Any, path: str) -> str | None:
    found = element.find(_W + path)
    return None if found is None else found.get(f"{_W}val")


def _is_on(element: Any) -> bool:
    return element is not None and element.get(f"{_W}val") not in {"0", "false", "off"}


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
    own = _value(paragraph, f"pPr/{_W}outlineLvl")
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
    return int(level) + 1 if level in _LEVELS else None  # 9 is text


# ---- paragraphs and runs -------------------------------------------------------------------------


def _title(root: Any, styles: Mapping[str, _Style]) -> str:
    """What is in the style for titles, or else the heading that the text starts with."""
    opening: str | None = None
    for paragraph in root.iter(f"{_W}p"):
        text = plain_text(paragraph)
        style_id = _value(paragraph, f"pPr/{_W}pStyle") or ""
        chain = list(_chain(styles, style_id))
        if not text or (chain and _LISTING.fullmatch(chain[0].name)):
            continue
        if any(style.name.lower() == "title" for style in chain):
            return text
        if opening is None:
            opening = "" if _heading_level(paragraph, style_id, chain) is None else text
    return opening or ""


def _shape_paragraphs(root: Any, styles: Mapping[str, _Style]) -> None:
    """Leaves of all styles those in the style map of mammoth."""
    for paragraph in _all(root, "p"):
        style_id = _value(paragraph, f"pPr/{_W}pStyle") or ""
        chain = list(_chain(styles, style_id))
        name = chain[0].name.lower() if chain else ""
        if _LISTING.fullmatch(name):
            paragraph.getparent().remove(paragraph)
            continue
        level = _heading_level(paragraph, style_id, chain)
        if level is not None:
            _set_style(paragraph, f"{LEVEL}{min(level, MAX_HEADING)}")
            # A heading is bold as it is.
            for look in paragraph.iter(f"{_W}rPr"):
                for plain in ("b", "i", "rStyle"):
                    for element in look.findall(_W + plain):
                        look.remove(element)
        elif name in _CODE or name in _QUOTE:
            _set_style(paragraph, LISTING if name in _CODE else CITED)
        else:
            _number(paragraph, style_id, chain)


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


def _number(paragraph: Any, style_id: str, chain: list[_Style]) -> None:
    """Gives a paragraph the numbering that its style has."""
    layout = _properties_of(paragraph, "pPr")
    number = layout.find(f"{_W}numPr")
    if number is not None and number.find(f"{_W}numId") is not None:
        return
    inherited = next((style.number for style in chain if style.number is not None), None)
    number_id = None if inherited is None else _value(inherited, "numId")
    if number_id is None:
        return
    level = (None if number is None else _value(number, "ilvl")) or _value(inherited, "ilvl")
    if number is not None:
        layout.remove(number)
    number = layout.makeelement(f"{_W}numPr")
    number.append(number.makeelement(f"{_W}numId", {f"{_W}val": number_id}))
    if level is not None:
        number.append(number.makeelement(f"{_W}ilvl", {f"{_W}val": level}))
    layout.append(number)


def _shape_runs(root: Any, styles: Mapping[str, _Style]) -> None:
    """Drops hidden text, and writes what character styles say onto the runs."""
    for run in _all(root, "r"):
        look = run.find(f"{_W}rPr")
        if look is None:
            continue
        if _is_on(look.find(f"{_W}vanish")) and run.getparent() is not None:
            run.getparent().remove(run)
            continue
        chain = list(_chain(styles, _value(look, "rStyle") or ""))
        for name, on in (("b", any(s.bold for s in chain)), ("i", any(s.italic for s in chain))):
            if on and look.find(_W + name) is None:
                look.append(look.makeelement(_W + name))
    for symbol in _all(root, "sym"):
        if not re.fullmatch("[0-9A-Fa-f]{1,6}", symbol.get(f"{_W}char", "")):
            symbol.getparent().remove(symbol)
    for element in _all(root, "cr", "ptab"):
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
    for cell in _all(root, "tc"):
        merged = cell.find(f"{_W}tcPr/{_W}vMerge")
        if merged is not None:
            if merged.get(f"{_W}val") != "restart":
                for child in list(cell)[1:]:
                    cell.remove(child)
            merged.getparent().remove(merged)
        span = cell.find(f"{_W}tcPr/{_W}gridSpan")
        if span is not None:
            width = span.get(f"{_W}val", "")
            columns = int(width) if re.fullmatch("[0-9]{1,5}", width) else 1
            span.set(f"{_W}val", str(max(1, min(columns, _MAX_SPAN))))


_BREAKS: Final = frozenset({f"{_W}br", f"{_W}cr", f"{_W}tab", f"{_W}p"})


def plain_text(element: Any) -> str:
    """The text in an element, on one line."""
    words = []
    for part in element.iter():
        if part.tag == f"{_W}t":
            words.append(part.text or "")
        elif part.tag in _BREAKS:
            words.append(" ")
    return " ".join("".join(words).split())


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


def _note_texts(archive: Archive, part: str) -> dict[tuple[str, str], str]:
    texts = {}
    for kind in _NOTE_KINDS.values():
        found = related_part(archive, part, f"{kind}s")
        if found is None:
            continue
        root = xml_root(archive, found)
        _clean(root)
        _lift_text_boxes(root)
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
    for reference in _all(block, *_NOTE_KINDS):
        key = (_NOTE_KINDS[local_name(reference)], reference.get(f"{_W}id", ""))
        text = notes.texts.pop(key, "")
        if text and key[0] != "comment":
            notes.numbers[key] = len(notes.numbers) + 1
        mark = f"[^{notes.numbers[key]}]" if key in notes.numbers else ""
        _replace_with_text(reference, mark)
        if text:
            found.append(_paragraph(block, f"{mark}: {text}" if mark else text))
    return found


def _paragraph(like: Any, text: str) -> Any:
    paragraph = like.makeelement(f"{_W}p")
    run = paragraph.makeelement(f"{_W}r")
    words = run.makeelement(f"{_W}t")
    words.text = text
    run.append(words)
    paragraph.append(run)
    return paragraph


# ---- lists ---------------------------------------------------------------------------------------


class _ListLevel(Struct, frozen=True, kw_only=True):
    family: str
    """Lists of one family go on counting where another one stopped."""
    counted: bool
    start: int
    restarts: bool


def _count_items(root: Any, archive: Archive, part: str) -> None:
    """Writes its number before each item of a list that is not the first."""
    levels = _list_levels(archive, part)
    counts: dict[str, list[int | None]] = {}
    begun: set[tuple[str, int]] = set()
    for paragraph in _all(root, "p"):
        number = paragraph.find(f"{_W}pPr/{_W}numPr")
        if number is None:
            continue
        level = _value(number, "ilvl") or "0"
        key = (_value(number, "numId") or "", int(level) if level in _LEVELS else 0)
        found = levels.get(key)
        if found is None:
            continue
        reached = counts.setdefault(found.family, [None] * len(_LEVELS))
        before = None if found.restarts and key not in begun else reached[key[1]]
        begun.add(key)
        count = found.start if before is None else before + 1
        reached[key[1] :] = [count, *[None] * (len(_LEVELS) - key[1] - 1)]
        if found.counted and count > 1:
            mark = _paragraph(paragraph, f"\ue000{count}\ue001")
            _properties_of(paragraph, "pPr").addnext(mark[0])


def _list_levels(archive: Archive, part: str) -> dict[tuple[str, int], _ListLevel]:
    """How each level of each list counts."""
    name = related_part(archive, part, "numbering")
    if name is None:
        return {}
    root = xml_root(archive, name)
    families = {
        family.get(f"{_W}abstractNumId", ""): family for family in root.iterfind(f"{_W}abstractNum")
    }
    levels = {}
    for number in root.iterfind(f"{_W}num"):
        family = _value(number, "abstractNumId") or ""
        starts = {
            override.get(f"{_W}ilvl", ""): _value(override, "startOverride")
            for override in number.iterfind(f"{_W}lvlOverride")
        }
        for level in families[family].iterfind(f"{_W}lvl") if family in families else ():
            place = level.get(f"{_W}ilvl", "")
            if place not in _LEVELS:
                continue
            start = starts.get(place) or _value(level, "start") or "1"
            levels[number.get(f"{_W}numId", ""), int(place)] = _ListLevel(
                family=family,
                counted=_value(level, "numFmt") not in {"bullet", "none"},
                start=int(start) if re.fullmatch("[0-9]{1,5}", start) else 1,
                restarts=bool(starts.get(place)),
            )
    return levels
