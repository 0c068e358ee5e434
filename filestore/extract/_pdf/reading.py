"""What pdfium reads from a PDF: the lines of its pages with their places, outline, information.

Everything that touches the PDF library, and no decision about the text. One rule: what a file says
about itself is bounded before it is followed: pages, lines, characters, entries of the outline.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from filestore.extract._pdf.headings import OutlineEntry
from filestore.extract._pdf.lines import PageLines
from filestore.extract._pdf.page import MAX_CHARACTERS, PageReader
from filestore.extract._pdf.words import plain
from filestore.extract.base import ExtractionError, empty_error

MAX_PAGES: Final = 20_000
MAX_LINES: Final = 2_000_000
MAX_OUTLINE_ENTRIES: Final = 20_000
MAX_OUTLINE_DEPTH: Final = 32

_PASSWORD_CODES: Final = (4, 5)  # pdfium: a wrong password, an unknown way to encrypt
_HEADER_BYTES: Final = 1_024  # the header may stand behind other bytes
_SAMPLED_PAGES: Final = 20
_LONGEST_TITLE: Final = 2_000  # bytes
_LONGEST_VALUE: Final = 100_000  # bytes


@contextmanager
def opened(data: bytes, *, name: str) -> Iterator[Any]:
    """The file as a document of the PDF library.

    Raises:
        ExtractionError: It is no PDF, damaged, encrypted, or has too many pages.
    """
    if not data.strip():
        raise empty_error(name)
    if b"%PDF-" not in data[:_HEADER_BYTES]:
        raise ExtractionError(
            f"{name} is not a PDF: expected %PDF- at its start, found {data[:8]!r}",
            remedy="give the file the suffix of its real format, or leave it out",
        )
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in _PASSWORD_CODES:
            raise ExtractionError(
                f"{name} is encrypted: it opens with a password only",
                remedy="save it without its password, "
                "for example: qpdf --password=… --decrypt in.pdf out.pdf",
            ) from error
        raise damaged_error(name, "its pages cannot be found") from error
    try:
        if len(document) > MAX_PAGES:
            raise ExtractionError(
                f"{name} has {len(document):,} pages: expected at most {MAX_PAGES:,}",
                remedy="split the file into several PDFs",
            )
        yield document
    finally:
        document.close()


def damaged_error(name: str, found: str) -> ExtractionError:
    """The error for a PDF that is cut off or broken."""
    return ExtractionError(
        f"{name} is damaged or cut off: {found}",
        remedy="fetch or export the file again, or repair it, for example: qpdf in.pdf out.pdf",
    )


def _giant_error(name: str, found: str) -> ExtractionError:
    return ExtractionError(
        f"{name} holds more text than can be read at once: {found}",
        remedy="split the file into several PDFs",
    )


def read_pages(document: Any, *, name: str) -> list[PageLines]:
    """The lines of every page, top to bottom as the file gives them.

    Raises:
        ExtractionError: A page cannot be read, or there is too much text.
    """
    import pypdfium2

    reader = PageReader()
    pages: list[PageLines] = []
    lines = 0
    for number in range(len(document)):
        try:
            pages.append(reader.read(document, number))
        except pypdfium2.PdfiumError as error:
            found = f"page {number + 1} of {len(document)} cannot be read"
            raise damaged_error(name, found) from error
        lines += len(pages[-1].lines)
        if reader.characters > MAX_CHARACTERS:
            raise _giant_error(name, f"over {MAX_CHARACTERS:,} characters by page {number + 1}")
        if lines > MAX_LINES:
            raise _giant_error(name, f"over {MAX_LINES:,} lines by page {number + 1}")
    return pages


def has_pictures(document: Any) -> bool:
    """Whether there is a picture on one of the first pages."""
    import pypdfium2
    from pypdfium2 import raw

    for number in range(min(len(document), _SAMPLED_PAGES)):
        try:
            page = document[number]
        except pypdfium2.PdfiumError:
            continue
        try:
            if any(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])):
                return True
        finally:
            page.close()
    return False


def read_outline(document: Any) -> list[OutlineEntry]:
    """The outline in reading order, entries without a page left out."""
    from pypdfium2 import raw

    entries: list[OutlineEntry] = []
    seen: set[int] = set()
    stack = [(raw.FPDFBookmark_GetFirstChild(document, None), 1)]
    while stack and len(seen) < MAX_OUTLINE_ENTRIES:
        bookmark, level = stack.pop()
        address = ctypes.cast(bookmark, ctypes.c_void_p).value
        if address is None or address in seen:
            continue
        seen.add(address)
        title = plain(_text(raw.FPDFBookmark_GetTitle, bookmark, limit=_LONGEST_TITLE)).strip()
        target = raw.FPDFBookmark_GetDest(document, bookmark)
        page = raw.FPDFDest_GetDestPageIndex(document, target) if target else -1
        if title and page >= 0:
            entries.append(OutlineEntry(title=title, level=level, page=page))
        stack.append((raw.FPDFBookmark_GetNextSibling(document, bookmark), level))
        if level < MAX_OUTLINE_DEPTH:
            stack.append((raw.FPDFBookmark_GetFirstChild(document, bookmark), level + 1))
    return entries


def read_value(document: Any, key: str) -> str:
    """One value of the information dictionary on one line; empty where there is none."""
    from pypdfium2 import raw

    value = _text(raw.FPDF_GetMetaText, document, key.encode() + b"\0", limit=_LONGEST_VALUE)
    return " ".join(plain(value).split())


def _text(function: Any, *arguments: Any, limit: int) -> str:
    """What a function of pdfium writes into a buffer of UTF-16, asked for its size first."""
    size = function(*arguments, None, 0)
    if not 2 < size <= limit:
        return ""
    buffer = ctypes.create_string_buffer(size)
    function(*arguments, buffer, size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")
