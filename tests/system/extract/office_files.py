"""Small office files made by hand, for the tests that read them."""

import io
import zipfile
from collections.abc import Collection, Mapping

_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns:"
_SPACES = " ".join(
    f'xmlns:{name}="{_OPEN}{space}:1.0"'
    for name, space in [
        *[(each, each) for each in ("office", "text", "table", "presentation", "style", "meta")],
        ("draw", "drawing"),
    ]
)

Parts = dict[str, str | bytes]


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip file; `mimetype` first and stored, as the formats demand it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as container:
        for name, content in sorted(parts.items(), key=lambda part: part[0] != "mimetype"):
            stored = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            container.writestr(zipfile.ZipInfo(name), content, stored)
    return made.getvalue()


def row(number: int, **cells: str | float) -> str:
    """A row of a sheet by the letters of its columns."""
    written = (
        f'<c r="{name}{number}"><v>{value}</v></c>'
        if isinstance(value, float | int)
        else f'<c r="{name}{number}" t="inlineStr"><is><t>{value}</t></is></c>'
        for name, value in cells.items()
    )
    return f'<row r="{number}">{"".join(written)}</row>'


def workbook(sheets: Mapping[str, str], *, hidden: Collection[str] = ()) -> Parts:
    """The parts of a workbook, sheets by name with the XML of their rows."""
    numbers = range(1, len(sheets) + 1)
    parts: Parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1"'
        f' Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "docProps/core.xml": '<c:coreProperties xmlns:c="urn:c" xmlns:dc="urn:dc">'
        "<dc:title>Boats</dc:title><dc:creator>Ann Writer</dc:creator></c:coreProperties>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="s{n}" Type="{_OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>'
            for n in numbers
        )
        + "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}"><sheets>'
        + "".join(
            f'<sheet name="{name}" sheetId="{n}" r:id="s{n}"'
            f"{' state=' + chr(34) + 'hidden' + chr(34) if name in hidden else ''}/>"
            for n, name in enumerate(sheets, 1)
        )
        + "</sheets></workbook>",
    }
    for n, rows in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/s{n}.xml"] = (
            f'<worksheet xmlns="{_SHEETS}"><sheetData>{rows}</sheetData></worksheet>'
        )
    return parts


def open_document(kind: str, body: str, *, styles: str = "") -> Parts:
    """The parts of an OpenDocument file: `text`, `spreadsheet` or `presentation`."""
    media = f"application/vnd.oasis.opendocument.{kind}"
    return {
        "mimetype": media,
        "META-INF/manifest.xml": f'<m:manifest xmlns:m="{_OPEN}manifest:1.0"><m:file-entry'
        f' m:full-path="/" m:media-type="{media}"/></m:manifest>',
        "meta.xml": f'<office:document-meta {_SPACES} xmlns:dc="urn:dc"><office:meta>'
        "<dc:title>Boats</dc:title><meta:initial-creator>Ann Writer</meta:initial-creator>"
        "</office:meta></office:document-meta>",
        "content.xml": f"<office:document-content {_SPACES}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>",
    }


def table(name: str, *rows: list[str], style: str = "") -> str:
    """A sheet of an OpenDocument workbook."""
    written = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p>'
            "</table:table-cell>"
            for cell in cells
        )
        + "</table:table-row>"
        for cells in rows
    )
    return f'<table:table table:name="{name}" table:style-name="{style}">{written}</table:table>'


def slide(text: str, *, title: str = "") -> str:
    """A slide of an OpenDocument presentation."""
    box = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    head = box.format(' presentation:class="title"', title) if title else ""
    return f"<draw:page>{box.format('', text)}{head}</draw:page>"


def book(*sections: str, navigation: str = "<h1>Contents</h1><p>everything</p>") -> Parts:
    """The parts of an e-book: a navigation, and a section each."""
    names = ["nav", *(f"s{n}" for n in range(1, len(sections) + 1))]
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body class="x">{}</body></html>'
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"'
        f"{' properties=' + chr(34) + 'nav' + chr(34) if name == 'nav' else ''}/>"
        for name in names
    )
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        'container"><rootfiles><rootfile full-path="in/book.opf"'
        ' media-type="application/oebps-package+xml"/></rootfiles></container>',
        "in/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Boats</dc:title>'
        "<dc:creator>Ann Writer</dc:creator></metadata>"
        f"<manifest>{items}</manifest>"
        f"<spine>{''.join(f'<itemref idref={chr(34)}{name}{chr(34)}/>' for name in names)}</spine>"
        "</package>",
        **{
            f"in/{name}.xhtml": page.format(content)
            for name, content in zip(names, [navigation, *sections], strict=True)
        },
    }


RICH_TEXT = (
    rb"{\rtf1\ansi\ansicpg1252{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}}"
    rb"{\info{\title Rules for the \'e9t\'e9}{\author Ann Writer}}"
    rb"\pard\s1\outlinelevel0 Mooring\par\pard\s0 Use two lines.\par"
    rb"\trowd\cellx1000\cellx2000\intbl Boat\cell Euro\cell\row"
    rb"\trowd\cellx1000\cellx2000\intbl small\cell 12\cell\row\pard end\par}"
)
