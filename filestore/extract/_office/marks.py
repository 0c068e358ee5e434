"""Zip packages made anew for a reader that knows no places: only parts of text, with marks in them.

A mark is a number between two private characters at the start of every sheet, slide or section, so
that what the reader returns can be parted there. Hidden sheets, the navigation of a book, macros
and pictures are left out. One rule: nothing is in the new package that was not checked before.
"""

import posixpath
import re
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct, field

from filestore.extract._office.archive import XML_SUFFIXES, Archive, damaged
from filestore.extract._office.around_cells import around_cells, around_open_cells
from filestore.extract._office.book_pages import hidden_classes, navigation, shown
from filestore.extract._office.open_document import (
    DRAW,
    NUMBER,
    SLIDES,
    STYLE,
    TABLE,
    TEXT,
    add_running,
    drop_hidden,
    lift_headings,
    write_charts,
)
from filestore.extract._office.package import (
    OFFICE,
    local_name,
    main_part,
    properties,
    relationships,
    serialized,
    xml_root,
    zipped,
)
from filestore.extract.base import json_value

MARK: Final = "\ue0f5{}\ue0f6"
_MARKED: Final = re.compile("^((?:#{1,6} )?)\ue0f5([0-9]{1,6})\ue0f6", re.M)

MAX_ROWS: Final = 50_000
MAX_COLUMNS: Final = 256
MAX_CELLS: Final = 400_000
"""Of one sheet; the reader takes two million elements of XML a part, and a cell is up to four."""

_MAIN: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_CELL: Final = re.compile(r"([A-Z]{1,3})[0-9]{1,7}")
_NUMBER: Final = re.compile("[0-9]{1,7}")
_CONTENTS: Final = "application/x-dtbncx+xml"
_BODY: Final = re.compile(rb"<body\b[^>]*>", re.I)


class Package(Struct, kw_only=True):
    """A file as the reader is given it."""

    data: bytes
    metadata: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    """Of its sheets, the first at mark 1."""
    behind: dict[int, str] = field(default_factory=dict)
    """What follows the rows of a sheet, by its mark: charts, comments, what was left out."""

    def add_behind(self, number: int, *pieces: str) -> None:
        """Keep the pieces that are not empty."""
        if text := "\n\n".join(filter(None, pieces)):
            self.behind[number] = text


def marked(archive: Archive, kind: str) -> Package:
    """The package for the reader.

    Args:
        archive: The checked file.
        kind: `xlsx`, `ods`, `odp`, `odt`, `epub`; others only lose what is no text.

    Raises:
        ExtractionError: A part that says what is where is damaged.
    """
    changed: dict[str, bytes] = {}
    found = Package(data=b"")
    if kind == "epub":
        _book(archive, found, changed)
    elif kind in ("ods", "odp", "odt"):
        _open_document(archive, kind, found, changed)
    else:
        found.metadata = properties(archive)
        if kind == "xlsx":
            _workbook(archive, found, changed)
    contents = {
        part: changed[part] if part in changed else archive.read(part)
        for part in archive.parts
        if part == "mimetype" or part.lower().endswith(XML_SUFFIXES)
    }
    found.data = zipped(contents).getvalue()
    return found


# ---- workbooks -----------------------------------------------------------------------------------


def _workbook(archive: Archive, found: Package, changed: dict[str, bytes]) -> None:
    main = main_part(
        archive, namespace="spreadsheetml", fallback="xl/workbook.xml", expected="an Excel workbook"
    )
    root = xml_root(archive, main)
    targets = {link.id: link.target for link in relationships(archive, main) if not link.external}
    for sheet in list(root.iter(f"{_MAIN}sheet")):
        if sheet.get("state", "visible") != "visible":
            sheet.getparent().remove(sheet)
            continue
        found.names.append(" ".join(sheet.get("name", "").split()))
        number = len(found.names)
        sheet.set("name", MARK.format(number))
        part = targets.get(sheet.get(f"{{{OFFICE}}}id", ""), "")
        if part in archive.parts and part not in changed:
            sheet_root = xml_root(archive, part)
            found.add_behind(number, _trimmed(sheet_root), around_cells(archive, part))
            changed[part] = serialized(sheet_root)
    changed[main] = serialized(root)


def _trimmed(root: Any) -> str:
    """Take what is too much out of a sheet, and close gaps between its rows.

    Returns:
        What was left out, in words.
    """
    for merged in list(root.iter(f"{_MAIN}mergeCells")):
        merged.getparent().remove(merged)  # the cells that they cover are empty anyway
    rows = cells = columns = last = before = place = 0
    for row in list(root.iter(f"{_MAIN}row")):
        given = row.get("r", "")
        place = int(given) if _NUMBER.fullmatch(given) else place + 1
        for cell in list(row):
            named = _CELL.fullmatch(cell.get("r", ""))
            if not len(cell):
                row.remove(cell)
            elif named and _column(named[1]) > MAX_COLUMNS:
                columns += 1
                row.remove(cell)
        if not len(row):
            row.getparent().remove(row)
            continue
        cells += len(row)
        if rows or last >= MAX_ROWS or cells > MAX_CELLS:
            rows += 1
            row.getparent().remove(row)
            continue
        # One empty row shows a gap as well as a million.
        last += 1 if not last or place == before + 1 else 2
        before = place
        row.set("r", str(last))
        for cell in row:
            if named := _CELL.fullmatch(cell.get("r", "")):
                cell.set("r", f"{named[1]}{last}")
    return _left(rows, columns)


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _left(rows: int, cells: int) -> str:
    found = [f"rows: {rows:,}"] * bool(rows) + [f"cells far right: {cells:,}"] * bool(cells)
    return f"[Left out of this sheet, {', '.join(found)}]" if found else ""


# ---- OpenDocument --------------------------------------------------------------------------------

_OPEN_PROPERTIES: Final = {
    "title": "title",
    "initial-creator": "author",
    "creator": "author",
    "subject": "subject",
    "description": "description",
    "keyword": "keywords",
    "language": "language",
    "creation-date": "created",
    "date": "modified",
    "publisher": "publisher",
}


def _described(elements: Any) -> dict[str, Any]:
    """Metadata out of elements of Dublin Core and the like."""
    values: dict[str, Any] = {}
    for element in elements:
        key = _OPEN_PROPERTIES.get(local_name(element), "")
        value = " ".join("".join(element.itertext()).split())
        if key == "keywords" and value:
            values.setdefault(key, []).append(value)
        elif key and value:
            values.setdefault(key, value)
    return {key: json_value(value) for key, value in values.items()}


def _open_document(archive: Archive, kind: str, found: Package, changed: dict[str, bytes]) -> None:
    from lxml import etree

    if "meta.xml" in archive.parts:
        found.metadata = _described(xml_root(archive, "meta.xml").iter())
    root = xml_root(archive, "content.xml")
    styles = xml_root(archive, "styles.xml") if "styles.xml" in archive.parts else None
    drop_hidden(root)
    if kind != "ods":
        write_charts(root, archive)
    if kind == "odt":
        lift_headings(root, styles)
        add_running(root, styles)
    elif kind == "odp":
        for number in [each for note in root.iter(f"{SLIDES}notes") for each in note.iter(NUMBER)]:
            number.clear()
        for number, page in enumerate(root.iter(f"{DRAW}page"), 1):
            # The reader puts the title first, wherever it lies.
            titles = (e for e in page if e.get(f"{SLIDES}class") == "title")
            title = next((line for each in titles for line in each.iter(f"{TEXT}p")), None)
            if title is None:
                frame = etree.Element(f"{DRAW}frame")
                title = etree.SubElement(etree.SubElement(frame, f"{DRAW}text-box"), f"{TEXT}p")
                page.insert(0, frame)
            title.text = MARK.format(number) + (title.text or "")
    else:
        _open_sheets(root, archive, found)
    changed["content.xml"] = serialized(root)


def _open_sheets(root: Any, archive: Archive, found: Package) -> None:
    """Marks the sheets that are shown, and leaves out what of them is too much."""
    hidden = {
        style.get(f"{STYLE}name")
        for style in root.iter(f"{STYLE}style")
        if any(each.get(f"{TABLE}display") == "false" for each in style)
    }
    for sheet in list(root.iterfind(f".//{TABLE}table")):
        if local_name(sheet.getparent()) != "spreadsheet":
            continue
        if sheet.get(f"{TABLE}style-name") in hidden:
            sheet.getparent().remove(sheet)
            continue
        found.names.append(" ".join(sheet.get(f"{TABLE}name", "").split()))
        sheet.set(f"{TABLE}name", MARK.format(len(found.names)))
        around = around_open_cells(archive, sheet)
        cells = rows = 0
        for at, row in enumerate(list(sheet.iter(f"{TABLE}table-row"))):
            cells += len(row)
            if at >= MAX_ROWS or cells > MAX_CELLS:
                rows += 1
                row.getparent().remove(row)
        found.add_behind(len(found.names), _left(rows, 0), around)


# ---- books ---------------------------------------------------------------------------------------


def _book(archive: Archive, found: Package, changed: dict[str, bytes]) -> None:
    container = xml_root(archive, "META-INF/container.xml")
    listed = (each.get("full-path", "") for each in container.iter() if _is(each, "rootfile"))
    main = next((path for path in listed if path in archive.parts), "")
    if not main:
        raise damaged(archive.name, "an e-book with a list of its parts", "none")
    root = xml_root(archive, main)
    found.metadata = _described(each for each in root.iter() if not _is(each, "metadata"))
    if "modified" in found.metadata:
        found.metadata["published"] = found.metadata.pop("modified")
    items = {each.get("id"): each for each in root.iter() if _is(each, "item")}
    contents = {
        _part(main, each.get("href", ""))
        for each in root.iter()
        if _is(each, "reference") and each.get("type") == "toc"
    }
    named: dict[str, list[tuple[int, str]]] = {}
    for item in items.values():
        if "nav" in item.get("properties", "").split() or item.get("media-type") == _CONTENTS:
            listing = _part(main, item.get("href", ""))
            for target, level, words in navigation(archive, listing):
                named.setdefault(_part(listing, target), []).append((level, words))
    hidden = hidden_classes(archive)
    number = 0
    for entry in [each for each in root.iter() if _is(each, "itemref")]:
        item = items.get(entry.get("idref"))
        part = _part(main, item.get("href", "")) if item is not None else ""
        if item is None or part in contents or "nav" in item.get("properties", "").split():
            entry.getparent().remove(entry)
        elif part in archive.parts and part not in changed:
            number += 1
            mark = f"<p>{MARK.format(number)}</p>".encode()
            content = shown(archive.read(part), hidden, named.get(part, []))
            changed[part] = _BODY.sub(lambda at, mark=mark: at[0] + mark, content, 1)  # type: ignore[misc]
    changed[main] = serialized(root)


def _part(main: str, target: str) -> str:
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(main), path))


def _is(element: Any, name: str) -> bool:
    return local_name(element) == name


def parted(text: str) -> list[tuple[int, str]]:
    """The pieces of what the reader returned, each with its mark; 0 in front of the first."""
    first, *rest = _MARKED.split(text)
    parts = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    # What is behind a mark on its line is the rest of the heading that it was put into.
    named = ((int(n), sign + rest if rest[:1].strip() else rest) for sign, n, rest in parts)
    return [(0, first), *named]
