"""Office documents that no reader of ours knows, by anydoc: books, sheets, slides, older formats.

The only module that imports anydoc, and it asks for nothing that leaves the machine. A zip package
goes to it as `marks` makes it anew. One rule: whatever it raises becomes a sentence about the file.
"""

import io
import re
import struct
from typing import Any, Final

from filestore.extract._office.archive import damaged, open_archive
from filestore.extract._office.docx_parts import running_line
from filestore.extract._office.marks import MARK, Package, marked, parted
from filestore.extract._office.package import picture_note
from filestore.extract._office.rich_text import prepared
from filestore.extract._office.sheets import tidied
from filestore.extract.base import (
    Document,
    ExtractionError,
    Extractor,
    Page,
    document_text,
    empty_error,
    json_value,
)
from filestore.extract.titles import checked_title

_SHEETS: Final = ("xlsx", "ods")
_ANCHOR: Final = re.compile(r'<a id="[^"<>\n]{0,300}"></a>')
_INNER_LINK: Final = re.compile(r"\[([^\[\]\n]{1,300})\]\(#[^()\s]{1,300}\)")
_SHEET: Final = re.compile("^## (.*)$", re.M)
_PICTURE: Final = re.compile(r"!\[([^\[\]\n]*)\]\([^()\s]*\)")
_CHART: Final = re.compile(r"^\\(\[Chart: .*)", re.M)
_SPACE: Final = re.compile(r"\n{3,}")


class OtherExtractor(Extractor):
    """Workbooks, presentations, books and texts of other programs and of before Office 2007."""

    name = "office"
    version = 4
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Writes a section for each sheet, slide and section; see `Extractor.extract`."""
        from anydoc import format_from_bytes

        kind = format_from_bytes(data)
        if kind is None or kind in ("pdf", "csv"):
            raise damaged(name, "an office document", "other data" if data else "an empty file")
        if data.startswith(b"PK"):
            package = marked(open_archive(data, name=name, expected="an office document"), kind)
        else:
            package = Package(data=data, metadata=_described(data))
        text = _rich_text(data, name) if kind == "rtf" else _read(package.data, kind, name)
        if kind in _SHEETS and not package.names:
            # Of a workbook of before Office 2007 it says the names, where there are several.
            package.names = _SHEET.findall(text) or _sheet_names(data)
            numbers = iter(range(1, len(package.names) + 1))
            text = _SHEET.sub(lambda _: MARK.format(next(numbers)), text)
        pieces = parted(text)
        text, pages = _joined(pieces, package, kind)
        if not text.strip():
            raise empty_error(name, "found a document without any")
        title = checked_title(str(package.metadata.pop("title", "")), name=name)
        return Document(
            text=document_text(text, name=name),
            syntax="markdown",
            metadata=({"title": title} if title else {}) | package.metadata,
            extractor=self.label,
            title=title,
            pages=tuple(pages),
        )


def _read(data: bytes, kind: Any, name: str) -> str:
    from anydoc import ConvertError, EncryptedError, ResourceLimitError, to_markdown_bytes

    try:
        return to_markdown_bytes(data, kind, ocr="reject")
    except EncryptedError as error:
        raise ExtractionError(
            f"{name} is encrypted with a password; save it without one, or leave it out",
        ) from error
    except ResourceLimitError as error:
        raise ExtractionError(
            f"{name} is refused: it unpacks to more than a document may hold"
            "; split it, or leave it out",
            detail=str(error),
        ) from error
    except ConvertError as error:
        raise damaged(name, "a whole document", "a damaged one") from error


def _rich_text(data: bytes, name: str) -> str:
    """The text of a file between what its pages show above and below theirs."""
    found = prepared(data)
    text = _read(found.data, "rtf", name)
    lines = dict.fromkeys(text.splitlines())
    running = {
        place: [
            running_line(line) for each in files for line in _read(each, "rtf", name).split("\n")
        ]
        for place, files in found.running.items()
    }
    above, below = (
        [line for line in dict.fromkeys(each) if line and line not in lines]
        for each in running.values()
    )
    return "\n\n".join([*above, text, *(line for line in below if line not in above)])


def _joined(pieces: list[tuple[int, str]], package: Package, kind: str) -> tuple[str, list[Page]]:
    """The text with headings of places, and where each begins."""
    text, pages = "", list[Page]()
    if kind in _SHEETS and package.names and len(pieces) == 1:
        pieces = [(0, ""), (1, pieces[0][1])]  # of one sheet the reader says no name
    unsaid = package.behind.keys() - {number for number, _ in pieces}
    for number, piece in sorted([*pieces, *((number, "") for number in unsaid)]):
        body = _INNER_LINK.sub(_unlinked, _ANCHOR.sub("", piece))
        body = _PICTURE.sub(lambda picture: picture_note(picture[1]), body)
        body = _SPACE.sub("\n\n", _CHART.sub(r"\1", body)).strip()
        if kind == "epub" and not number:
            # The reader writes the title above.
            body = body.removeprefix(f"# {package.metadata.get('title')}").strip()
        if kind in _SHEETS:
            body = "\n\n".join(filter(None, [tidied(body), package.behind.get(number, "")]))
            if number and body:
                body = f"## {package.names[number - 1]}\n\n{body}"
        elif kind == "odp" and number and not body.startswith("#"):
            body = f"## Slide {number}\n\n{body}".strip()
        if body:
            if number:
                pages.append(Page(start=len(text), number=number))
            text += body + "\n\n"
    return text, pages


def _unlinked(link: re.Match[str]) -> str:
    """A link within the document as what it shows, the number of a note in brackets."""
    return f"[{link[1]}]" if link[1].isdecimal() else link[1]


# ---- what older formats say about themselves -----------------------------------------------------

_RICH: Final = re.compile(rb"\{\\(title|author|subject) ([^{}]{1,1000})\}")
_RICH_SIGN: Final = re.compile(r"\\'([0-9a-f]{2})|\\u(-?[0-9]{1,5}) ?\??|\\([\\{}])", re.I)
_RICH_HEAD: Final = 65_536
_OLD: Final = {
    "title": "title",
    "author": "author",
    "subject": "subject",
    "create_time": "created",
    "last_saved_time": "modified",
}

_UNREADABLE: Final = (
    *(ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError),
    struct.error,
)


def _described(data: bytes) -> dict[str, Any]:
    """Metadata of rich text, or of a file of before Office 2007."""
    if data.startswith(b"{\\rtf"):
        found = reversed(_RICH.findall(data[:_RICH_HEAD]))
        return {key.decode(): _plain(value.decode("cp1252", "replace")) for key, value in found}
    from olefile import OleFileIO

    values = {}
    try:
        with OleFileIO(io.BytesIO(data)) as container:
            properties = container.get_metadata()
            encoding = f"cp{properties.codepage or 1252}".replace("cp65001", "utf-8")
        for name, key in _OLD.items():
            value = getattr(properties, name)
            if isinstance(value, bytes):
                value = " ".join(value.decode(encoding, "replace").replace("\0", "").split())
            if value:
                values[key] = json_value(value)
    except _UNREADABLE:  # its text may still be read
        return values
    return values


def _sheet_names(data: bytes) -> list[str]:
    """The names of the sheets that a workbook of before Office 2007 shows."""
    from olefile import OleFileIO

    try:
        with OleFileIO(io.BytesIO(data)) as container:
            book = container.openstream("Workbook").read()
    except _UNREADABLE:
        return []
    names, at = [], 0
    while at + _RECORD.size <= len(book):
        kind, size = _RECORD.unpack_from(book, at)
        found, at = book[at + _RECORD.size :][:size], at + _RECORD.size + size
        if kind == _SHEET_RECORD and len(found) > _NAME_AT and not any(found[4:6]):
            codec = "utf-16-le" if found[7] & 1 else "latin-1"
            names.append(" ".join(found[_NAME_AT:].decode(codec, "replace").split()))
        elif kind == _END_RECORD:
            break
    return names


_RECORD: Final = struct.Struct("<HH")
_SHEET_RECORD: Final = 0x85
_END_RECORD: Final = 0x0A
_NAME_AT: Final = 8


def _plain(text: str) -> Any:
    def sign(found: re.Match[str]) -> str:
        if found[1]:
            return bytes.fromhex(found[1]).decode("cp1252", "replace")
        return chr(int(found[2]) % 65_536) if found[2] else found[3]

    return json_value(" ".join(_RICH_SIGN.sub(sign, text).split()))
