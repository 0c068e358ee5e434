"""The parts of a Word document as plain text and paragraphs: body, notes, page headers, charts.

Deleted and hidden text goes, what only wraps is unwrapped, equations become LaTeX and pictures
their description; styles are not known here. One rule: what a reader of the document sees as text
is kept, once.
"""

import re
from collections.abc import Set
from typing import Any, Final

from filestore.extract._office.archive import Archive
from filestore.extract._office.charts import CHART, chart
from filestore.extract._office.package import (
    OFFICE,
    choose_alternatives,
    equation,
    local_name,
    picture_note,
    related_part,
    relationships,
    unwrap,
    xml_root,
)

WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_W: Final = f"{{{WORD}}}"
_M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

# ---- what is there twice, deleted, or known to no converter --------------------------------------

_ID: Final = f"{{{OFFICE}}}id"

_GONE: Final = ("del", "moveFrom", "bookmarkStart", "bookmarkEnd", "proofErr", "sectPr")
_WRAPPERS: Final = ("customXml", "smartTag", "fldSimple", "dir", "bdo", "ins", "moveTo")
_MARKS: Final = frozenset({f"{_W}rPr", f"{_W}trPr", f"{_W}tcPr", f"{_W}numPr"})
"""Where `del` and `ins` say something about a paragraph mark or a row, and hold no text."""


def clean(root: Any, archive: Archive, part: str, hidden: Set[str]) -> None:
    """Bring a part into the plain form.

    Args:
        root: Its root element; changed in place.
        archive: The file, for its charts.
        part: Its name.
        hidden: The ids of the styles whose text is not shown.

    Raises:
        ExtractionError: A chart is damaged.
    """
    for element in all_of(root, *_GONE):
        if element.getparent().tag not in _MARKS:
            element.getparent().remove(element)
    choose_alternatives(root)
    for element in all_of(root, "sdt"):
        if element.getparent().tag != f"{_W}p":  # within a paragraph it may be a box to tick
            gallery = element.find(f"{_W}sdtPr/{_W}docPartObj/{_W}docPartGallery")
            is_contents = gallery is not None and gallery.get(f"{_W}val") == "Table of Contents"
            unwrap(element, () if is_contents else element.findall(f"{_W}sdtContent/*"))
    for element in all_of(root, *_WRAPPERS):
        if element.getparent().tag not in _MARKS:
            unwrap(element, element)
    for element in all_of(root, "ruby"):
        unwrap(element, element.findall(f"{_W}rubyBase/{_W}r/*"))
    for element in list(root.iter(f"{_M}oMath")):
        replace_with_text(element, equation(element))
    for element in list(root.iter(f"{_M}oMathPara")):
        unwrap(element, element)
    for element in all_of(root, "noBreakHyphen"):
        replace_with_text(element, "-")
    for element in all_of(root, "softHyphen"):
        element.getparent().remove(element)
    _drop_hidden(root, hidden)
    _write_charts(root, archive, part)
    _lift_text_boxes(root)


def all_of(root: Any, *names: str) -> list[Any]:
    """The elements of some names in an element; they may be taken out meanwhile."""
    return list(root.iter(*(_W + name for name in names)))


def value(element: Any, path: str) -> str | None:
    """What an element below another one is set to; None where it is not there."""
    found = element.find(_W + path)
    return None if found is None else found.get(f"{_W}val")


def is_on(element: Any) -> bool:
    """Whether a property is there and not switched off."""
    return element is not None and element.get(f"{_W}val") not in {"0", "false", "off"}


def _drop_hidden(root: Any, hidden: Set[str]) -> None:
    for run in all_of(root, "r"):
        own = run.find(f"{_W}rPr/{_W}vanish")
        paragraph = next(run.iterancestors(f"{_W}p"), None) if hidden and own is None else None
        styles = (
            ()
            if paragraph is None
            else (
                value(run, f"rPr/{_W}rStyle"),
                value(paragraph, f"pPr/{_W}pStyle"),
            )
        )
        if is_on(own) or not hidden.isdisjoint(styles):
            run.getparent().remove(run)
    for row in all_of(root, "tr"):
        if is_on(row.find(f"{_W}trPr/{_W}hidden")):
            row.getparent().remove(row)


def _write_charts(root: Any, archive: Archive, part: str) -> None:
    """Puts the title and the figures of each chart after the paragraph it hangs on."""
    drawn = list(root.iter(f"{CHART}chart"))
    targets = {link.id: link.target for link in relationships(archive, part)} if drawn else {}
    for element in reversed(drawn):
        target = targets.get(element.get(_ID), "")
        paragraph = next(element.iterancestors(f"{_W}p"), None)
        if paragraph is None or target not in archive.parts:
            continue
        title, rows, more = chart(xml_root(archive, target))
        if more:
            paragraph.addnext(paragraph_of(root, more))
        if rows:
            table = root.makeelement(f"{_W}tbl")
            for row in rows:
                line = table.makeelement(f"{_W}tr")
                table.append(line)
                for text in row:
                    cell = line.makeelement(f"{_W}tc")
                    cell.append(paragraph_of(root, text))
                    line.append(cell)
            paragraph.addnext(table)
        if title:
            paragraph.addnext(paragraph_of(root, title))


def replace_with_text(element: Any, text: str) -> None:
    """Puts text in place of an element of a run or a paragraph."""
    parent = element.getparent()
    if text:
        replacement = element.makeelement(f"{_W}t")
        replacement.text = text
        element.addprevious(replacement)
    parent.remove(element)


def _lift_text_boxes(root: Any) -> None:
    """Puts what is in text boxes after the paragraph they hang on, and pictures into words."""
    for box in reversed(all_of(root, "txbxContent")):
        paragraph = next(box.iterancestors(f"{_W}p"), None)
        if paragraph is not None:
            for child in reversed(box):
                paragraph.addnext(child)
    for picture in all_of(root, "drawing", "pict", "object"):
        if picture.getparent() is not None:
            notes: dict[str, None] = {}
            for element in picture.iter():
                if local_name(element) in {"docPr", "cNvPr"}:
                    notes[picture_note(element.get("descr") or element.get("title") or "")] = None
                elif local_name(element) == "shape":
                    notes[picture_note(element.get("alt") or "")] = None
            note = " ".join(filter(None, notes))
            replace_with_text(picture, f" {note} " if note else "")


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


def paragraph_of(like: Any, text: str) -> Any:
    """A new paragraph of the document that an element is in."""
    paragraph = like.makeelement(f"{_W}p")
    run = paragraph.makeelement(f"{_W}r")
    words = run.makeelement(f"{_W}t")
    words.text = text
    run.append(words)
    paragraph.append(run)
    return paragraph


# ---- page headers and footers --------------------------------------------------------------------

FIELD: Final = "\ue004"
"""In place of one that changes."""
_CHANGING: Final = re.compile(
    r"\s*(?:PAGE|NUMPAGES|SECTION|SECTIONPAGES|STYLEREF|DATE|TIME|PRINTDATE|SAVEDATE)\b", re.I
)
"""Fields that say something else on every page or every day."""
_NUMBERED: Final = re.compile(
    rf"(?:(?:^|(?<=[-–—|·,;/]))\s*[^\W\d_]+\.?)?\s*{FIELD}(?:\s*\S{{0,6}}\s*{FIELD})*"
)
"""Such a field with the word before it: `Page 3 of 9`."""
_EDGES: Final = " -–—|·,;/"


def running_lines(
    root: Any, archive: Archive, part: str, hidden: Set[str]
) -> tuple[list[str], list[str]]:
    """What the pages show above and below their text, each line once.

    Args:
        root: The root of the body, before `clean`.
        archive: The file.
        part: The name of the body.
        hidden: As for `clean`.

    Returns:
        The lines of the page headers and those of the footers.

    Raises:
        ExtractionError: One of them is damaged.
    """
    settings = related_part(archive, part, "settings")
    even = settings and is_on(xml_root(archive, settings).find(f"{_W}evenAndOddHeaders"))
    targets = {link.id: link.target for link in relationships(archive, part)}
    parts: dict[str, dict[str, None]] = {"headerReference": {}, "footerReference": {}}
    for section in root.iter(f"{_W}sectPr"):
        first = is_on(section.find(f"{_W}titlePg"))
        for shown in (*("first",) * first, "default", *("even",) * bool(even)):
            for name, found in parts.items():
                for reference in section.iterfind(f"{_W}{name}[@{_W}type='{shown}']"):
                    found[targets.get(reference.get(_ID), "")] = None
    lines: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for found, texts in zip(lines, parts.values(), strict=True):
        for name in texts:
            if name in archive.parts:
                running = xml_root(archive, name)
                _mark_fields(running)
                clean(running, archive, name, hidden)
                for paragraph in running.iter(f"{_W}p"):
                    if line := running_line(plain_text(paragraph)):
                        found[line] = None
    return list(lines[0]), list(lines[1])


def running_line(text: str) -> str:
    """A line of a page header or footer without its fields; empty where nothing else is in it."""
    line = _NUMBERED.sub("", text).strip(_EDGES)
    return line if any(sign.isalnum() for sign in line) else ""


def is_changing(instruction: str) -> bool:
    """Whether a field says something else on every page or every day."""
    return _CHANGING.match(instruction) is not None


def _mark_fields(root: Any) -> None:
    """Puts one sign in place of each field that changes from page to page."""
    for element in all_of(root, "fldSimple"):
        if is_changing(element.get(f"{_W}instr", "")):
            replace_with_text(element, FIELD)
    for element in all_of(root, "pgNum"):
        replace_with_text(element, FIELD)
    depth = 0
    instruction = ""
    for element in all_of(root, "fldChar", "instrText", "t"):
        if element.tag == f"{_W}instrText":
            instruction += element.text or ""
        elif element.tag == f"{_W}t":
            if depth and is_changing(instruction):
                element.text = ""
        elif element.get(f"{_W}fldCharType") == "begin":
            depth += 1
            instruction = instruction if depth > 1 else ""
        elif element.get(f"{_W}fldCharType") == "end" and depth:
            depth -= 1
            if not depth and is_changing(instruction):
                replace_with_text(element, FIELD)
