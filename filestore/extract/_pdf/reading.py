"""What pdfium reads from a PDF: the lines of its pages with their places, outline, information.

Everything that touches the PDF library, and no decision about the text. One rule: what a file says
about itself is bounded before it is followed: pages, lines, characters, entries of the outline.
"""

import ctypes
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from filestore.extract._pdf.columns import GAP, in_columns, may_number_lines
from filestore.extract._pdf.directions import logical, runs_left
from filestore.extract._pdf.fields import NO_MAP, read_fields, unread_reason, with_fields
from filestore.extract._pdf.headings import OutlineEntry
from filestore.extract._pdf.lines import Line, PageLines, Turn, joined_pieces, measure
from filestore.extract._pdf.table_reading import read_grids
from filestore.extract._pdf.tables import may_hold_table, with_tables
from filestore.extract._pdf.tags import heading_tags
from filestore.extract._pdf.words import BROKEN, HYPHENS, SOFT_HYPHEN, plain
from filestore.extract.base import ExtractionError, empty_error

MAX_CHARACTERS: Final = 20_000_000
"""Of a whole document: some ten thousand full pages."""

_FARTHEST: Final = 1e6  # points; anything beyond is damage
_FIXED_PITCH: Final = 1
_FORCED_BOLD: Final = 1 << 18
_FIXED: Final = 1
_BOLD: Final = 2
_LEVEL_SHARE: Final = 0.08  # of the longer side of a letter's direction: not slanted
_LONGEST_FONT: Final = ctypes.c_ulong(96)  # bytes of its name
_SMALLEST: Final = 0.5  # points: below, the size is that of the box around the character
_QUARTER_TURNS: Final = (90, 270)
_BOX: Final = struct.Struct("4f")
"""Left, top, right, bottom: what pdfium calls FS_RECTF."""
_MATRIX: Final = struct.Struct("6f")
"""Four numbers that turn and scale, two that shift: FS_MATRIX."""

_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_MANGLED: Final = re.compile("[\ud400-\ud7ff\uf000-\ufaff]")
"""What becomes of mathematical letters and pictograms where only 16 bits of them are kept."""
_WORD: Final = re.compile(r"\S+")
_SAMPLE: Final = 40  # characters of a page
_SPACE: Final = re.compile(r"(?<=\S)\s+(?=\S)")
_PROBES: Final = 5  # wide lines of a page that are looked at for gaps
_FEWEST_GAPPED: Final = 2
_PROBED_SHARE: Final = 0.55  # of the width of the page
_TYPEWRITER: Final = re.compile(
    r"mono|cour|typewr|consol|menlo|fixed|letter ?gothic|inconsol|source ?code|lucida ?console"
    r"|cm(?:sl|i|vt|csc|bx)?tt|(?:ec|sf|tx|px|lm|la)tt|tt[0-9]{2,4}$|lmmono|luximono|zi4"
)
_HEAVY: Final = re.compile(
    r"bold|black|heavy|demi|[-,]bd|(?:cm|sf|ec|lm)[a-z]{0,2}bx?[0-9]|-medi(?:$|[^au])"
)


class PageReader:
    """Reads one page after another into the same buffers."""

    characters: int
    """Of all pages so far."""

    def __init__(self) -> None:
        from pypdfium2 import raw

        self._index_of = _unchecked(raw.FPDFText_GetCharIndexFromTextIndex)
        self._code_of = _unchecked(raw.FPDFText_GetUnicode)
        self._is_guessed = _unchecked(raw.FPDFText_HasUnicodeMapError)
        self._origin_of = _unchecked(raw.FPDFText_GetCharOrigin)
        self._box_of = _unchecked(raw.FPDFText_GetLooseCharBox)
        self._matrix_of = _unchecked(raw.FPDFText_GetMatrix)
        self._size_of = _unchecked(raw.FPDFText_GetFontSize)
        self._font_of = _unchecked(raw.FPDFText_GetFontInfo)
        self._object_of = raw.FPDFText_GetTextObject
        self._mark_of = raw.FPDFPageObj_GetMarkedContentID
        self._box = ctypes.create_string_buffer(_BOX.size)
        self._matrix = ctypes.create_string_buffer(_MATRIX.size)
        self._flags = ctypes.c_int()
        self._flags_place = ctypes.byref(self._flags)
        self._font = ctypes.create_string_buffer(_LONGEST_FONT.value)
        self._fonts: dict[tuple[bytes, int], int] = {}
        self._tags: dict[int, tuple[int, int]] = {}
        self._text_page: Any = None
        self._same_indexes = True
        self._corner = 0.0, 0.0
        self._width = 0.0
        self._probes = self._gapped = 0
        self.characters = 0

    def read(self, document: Any, number: int, *, words: bool = False) -> PageLines:
        """The lines of a page; none once there are more characters than `MAX_CHARACTERS`.

        Args:
            document: Of the PDF library.
            number: From 0.
            words: Each word as a line of its own.

        Raises:
            pypdfium2.PdfiumError: The page is damaged.
        """
        page = document[number]
        try:
            left, bottom, right, top = (_sound(side) for side in page.get_bbox())
            turned = page.get_rotation() in _QUARTER_TURNS
            text_page = page.get_textpage()
            try:
                count = text_page.count_chars()
                self.characters += count
                text = "" if self.characters > MAX_CHARACTERS else _text_of(text_page)
                handle = ctypes.cast(text_page.raw, ctypes.c_void_p)
                final = self._index_of(handle, count - 1) if count else 0
                self._same_indexes = len(text) == count == final + 1
                self._corner = left, bottom
                self._width = right - left
                self._text_page = text_page.raw
                self._probes = self._gapped = 0
                self._tags = {} if words else heading_tags(document, page)
                found = list(self._lines(handle, text, number, words=words))
                lines = found if words else joined_pieces(found)
                guesses = [
                    self._is_guessed(handle, place) == 1
                    for place in range(0, 0 if words else count, count // _SAMPLE + 1)
                ]
            finally:
                text_page.close()
            unread = "" if words else unread_reason(page, text, guesses)
            fields = () if words else read_fields(document, page, number)
        finally:
            page.close()
        width, height = right - left, top - bottom
        if turned:
            width, height = height, width
        return PageLines(
            height=max(1.0, height),
            lines=() if unread == NO_MAP else tuple(lines),
            width=width,
            fields=fields,
            unread=unread,
            by_rows=not words and (self._gapped >= _FEWEST_GAPPED or may_number_lines(lines)),
        )

    def _lines(self, text_page: Any, text: str, number: int, *, words: bool) -> Iterator[Line]:
        if not text.isascii() and _MANGLED.search(text):
            characters = list(text)
            for found in _MANGLED.finditer(text):
                place = self._index_of(text_page, found.start())
                code = self._code_of(text_page, place) if place >= 0 else 0
                if 0xFFFF < code < 0x110000:
                    characters[found.start()] = chr(code)
            text = "".join(characters)
        start = 0
        for row in text.split("\r\n"):
            pieces = row.split(BROKEN)
            for index, piece in enumerate(pieces):
                broken = index < len(pieces) - 1
                spans = [found.span() for found in _WORD.finditer(piece)] if words else None
                for begin, end in spans or ((0, len(piece)),):
                    line = self._line(
                        text_page,
                        piece[begin:end],
                        start + begin,
                        number,
                        broken and end >= len(piece.rstrip()),
                    )
                    if line is not None:
                        yield line
                start += len(piece) + 1
            start += 1

    def _line(
        self, text_page: Any, piece: str, start: int, number: int, broken: bool
    ) -> Line | None:
        text = piece.strip()
        if not text:
            return None
        begin = start + piece.index(text[0])
        half = len(text) // 2
        ends = begin, begin + len(text) - 1, begin + half + (text[half] == " ")
        first, last, middle = (
            ends if self._same_indexes else [self._index_of(text_page, place) for place in ends]
        )
        mirrored = False
        if not text.isascii() or not text.isprintable():
            if _RIGHT_TO_LEFT.search(text):
                mirrored = runs_left(text)
                placed = self._placed(text_page, first, last)
                text = logical(placed, is_left=mirrored)
            broken = broken or text.endswith(SOFT_HYPHEN)
            text = plain(text).strip()
            if not text:
                return None
        if text[-1] in HYPHENS and text[-2:-1].isalnum():
            text, broken = text[:-1], True
        left, right, bottom, size, turn = self._place(text_page, first, last, middle)
        if mirrored:
            left, right = self._width - right, self._width - left
        probing = self._probes < _PROBES and self._gapped < _FEWEST_GAPPED
        if probing and right - left > _PROBED_SHARE * self._width:
            self._probes += 1
            self._gapped += not mirrored and self._has_gap(text_page, piece, start, size)
        style = self._style(text_page, middle)
        if style:
            style &= self._style(text_page, first) & self._style(text_page, last)
        tag = self._tag(first, last) if self._tags else (0, 0)
        fixed, bold = bool(style & _FIXED), bool(style & _BOLD)
        return Line(
            *(text, number, left, right, bottom, size, fixed, broken),
            spaced=piece[-1] == " ",
            bold=bold,
            turn=turn,
            tag=tag,
        )

    def _has_gap(self, text_page: Any, piece: str, start: int, size: float) -> bool:
        """Whether two words of a line are farther apart than words of a text."""
        for space in _SPACE.finditer(piece):
            before, after = start + space.start() - 1, start + space.end()
            if not self._same_indexes:
                before, after = self._index_of(text_page, before), self._index_of(text_page, after)
            self._box_of(text_page, before, self._box)
            end = _BOX.unpack_from(self._box)[2]
            self._box_of(text_page, after, self._box)
            if _BOX.unpack_from(self._box)[0] - end > GAP * size:
                return True
        return False

    def _tag(self, first: int, last: int) -> tuple[int, int]:
        """The heading that a whole line is in."""
        ends = [
            self._tags.get(self._mark_of(self._object_of(self._text_page, index)), (0, 0))
            for index in (first, last)
        ]
        return ends[0] if ends[0] == ends[1] else (0, 0)

    def _placed(self, text_page: Any, first: int, last: int) -> list[tuple[float, str]]:
        """The characters of a line, each with where it begins.

        pdfium has some for glyphs of which the font does not say what they are: these are out.
        """
        x, y = ctypes.c_double(), ctypes.c_double()
        placed: list[tuple[float, str]] = []
        for index in range(first, last + 1):
            code = self._code_of(text_page, index)
            if not 0 < code < 0x110000 or self._is_guessed(text_page, index) == 1:
                continue
            self._origin_of(text_page, index, ctypes.byref(x), ctypes.byref(y))
            placed.append((x.value, chr(code)))
        return placed

    def _place(
        self, text_page: Any, first: int, last: int, middle: int
    ) -> tuple[float, float, float, float, Turn]:
        """Left, right and bottom of a line as if it ran from left to right, size and turn."""
        self._box_of(text_page, last, self._box)
        last_left, last_top, end, last_bottom = _BOX.unpack_from(self._box)
        self._box_of(text_page, first, self._box)
        start, top, first_right, bottom = _BOX.unpack_from(self._box)
        self._matrix_of(text_page, middle, self._matrix)
        a, b, c, d, _, _ = _MATRIX.unpack_from(self._matrix)
        size = abs(self._size_of(text_page, middle)) * (c * c + d * d) ** 0.5
        if not _SMALLEST < size < _FARTHEST:
            size = max(1.0, abs(_sound(top) - _sound(bottom)))
        x, y = self._corner
        if abs(b) <= abs(a):
            left = (last_left if last_left < start else start) - x
            right = (first_right if first_right > end else end) - x
            turn: Turn = "none" if abs(b) <= _LEVEL_SHARE * abs(a) else "slanted"
            return _sound(left), _sound(right), _sound(bottom - y), size, turn
        turn = "quarter" if abs(a) <= _LEVEL_SHARE * abs(b) else "slanted"
        if b > 0:
            across = self._width + x - first_right
            return _sound(bottom - y), _sound(last_top - y), _sound(across), size, turn
        return _sound(y - top), _sound(y - last_bottom), _sound(start - x), size, turn

    def _style(self, text_page: Any, index: int) -> int:
        """Whether the font of a character is monospaced, and whether it is bold."""
        self._font.value = b""
        self._font_of(text_page, index, self._font, _LONGEST_FONT, self._flags_place)
        font = self._font.value, self._flags.value
        known = self._fonts.get(font)
        if known is None:
            name, flags = font[0].decode("utf-8", "replace").casefold(), font[1]
            fixed = flags & _FIXED_PITCH or _TYPEWRITER.search(name)
            bold = flags & _FORCED_BOLD or _HEAVY.search(name)
            known = self._fonts[font] = (_FIXED if fixed else 0) | (_BOLD if bold else 0)
        return known


def _unchecked(function: Any) -> Any:
    """The same function of pdfium without the conversion of its arguments.

    It takes longer than the work of most functions. What is given in place of a pointer must be
    one, of any type, and what is given in place of an `int` must be a small whole number.
    """
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return ctypes.PYFUNCTYPE(function.restype)(address)


def _text_of(text_page: Any) -> str:
    try:
        return str(text_page.get_text_range())
    except (AssertionError, RecursionError):
        # The library's reckoning of characters without a place in the text, on damaged pages.
        return str(text_page.get_text_bounded())


def _sound(length: float) -> float:
    return length if -_FARTHEST < length < _FARTHEST else 0.0


MAX_PAGES: Final = 20_000
MAX_LINES: Final = 2_000_000
MAX_OUTLINE_ENTRIES: Final = 20_000
MAX_OUTLINE_DEPTH: Final = 32

_PASSWORD_CODES: Final = (4, 5)  # pdfium: a wrong password, an unknown way to encrypt
_HEADER_BYTES: Final = 1_024  # the header may follow other bytes
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
            f"{name} is not a PDF: expected %PDF- at its start, found {data[:8]!r}; correct"
            " its suffix, or leave it out",
        )
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in _PASSWORD_CODES:
            raise ExtractionError(
                f"{name} is encrypted: it opens only with a password",
                remedy="save it without its password, "
                "for example: qpdf --password=… --decrypt in.pdf out.pdf",
            ) from error
        raise damaged_error(name, "its pages cannot be found") from error
    try:
        if len(document) > MAX_PAGES:
            raise ExtractionError(
                f"{name} has {len(document):,} pages: expected at most {MAX_PAGES:,}"
                "; split the file into several PDFs",
            )
        document.init_forms()
        yield document
    finally:
        document.close()


def damaged_error(name: str, found: str) -> ExtractionError:
    """The error for a PDF that is cut off or broken."""
    return ExtractionError(
        f"{name} is damaged or cut off: {found}; export it again, or repair it: qpdf"
        " in.pdf out.pdf",
    )


def _giant_error(name: str, found: str) -> ExtractionError:
    return ExtractionError(
        f"{name} holds more text than can be read at once: {found}"
        "; split the file into several PDFs",
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


def arranged(pages: Sequence[PageLines], document: Any, data: bytes) -> list[PageLines]:
    """The pages with their tables and columns, read a second time where there may be some.

    Args:
        pages: All of the document.
        document: Of the PDF library.
        data: The file.
    """
    measures = measure(pages)
    numbers = [n for n, page in enumerate(pages) if may_hold_table(page, measures)]
    reader = PageReader()
    whole = list(pages)
    found = read_grids(data, numbers)
    for number, page in enumerate(pages):
        grids = found.get(number) if number in numbers else None
        if grids or page.by_rows:
            words = reader.read(document, number, words=True).lines
            whole[number] = with_tables(page, words, grids, measures) if grids else page
            whole[number] = in_columns(whole[number], words) if page.by_rows else whole[number]
    return [with_fields(page) if page.fields else page for page in whole]


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
