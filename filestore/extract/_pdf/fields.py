"""What is on a PDF page and not in its text: filled in fields, notes, pictures, signs of a font.

One rule: a value goes to its label where the page has that on its row, and no form is ever run.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from filestore.core.safe_text import listed
from filestore.extract._pdf.lines import Line, PageLines
from filestore.extract._pdf.words import plain

_MOST_FIELDS: Final = 2_000  # of a page
_LONGEST_VALUE: Final = 20_000  # bytes
_HIDDEN: Final = 2 | 32  # hidden, and shown nowhere
_PASSWORD: Final = 1 << 13
_CHECKED: Final = "☒"
_USUAL_SIZE: Final = 10.0  # points
_PICTURE_SHARE: Final = 0.5  # of the area of the page
_FEWEST_LETTERS: Final = 8
_FEWEST_SIGNS: Final = 60
_LETTER_SHARE: Final = 0.4
_SAMPLE: Final = 400  # characters
_LEADERS: Final = frozenset(".…·_-—–|")
_MOST_NAMED: Final = 20  # pages
PICTURE: Final = "a picture"
NO_MAP: Final = "in a font that does not say its letters"


def read_fields(document: Any, page: Any, number: int) -> tuple[Line, ...]:
    """What was filled in or written on top of a page.

    Args:
        document: Of the PDF library.
        page: Likewise.
        number: From 0.
    """
    from pypdfium2 import raw

    left, bottom, _, _ = page.get_bbox()
    lines: list[Line] = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            box = raw.FS_RECTF()
            text = _text_of(document, annotation)
            if text and raw.FPDFAnnot_GetRect(annotation, box):
                rows = text.split("\n")
                height = abs(box.top - box.bottom) / len(rows)
                size = min(_USUAL_SIZE, max(1.0, height))
                top = max(box.top, box.bottom) - bottom
                for row, one in enumerate(rows):
                    lines.append(
                        Line(
                            text=one,
                            page=number,
                            left=box.left - left,
                            right=box.right - left,
                            bottom=top - (row + 1) * height + (height - size) / 2,
                            size=size,
                        )
                    )
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return tuple(lines)


def _text_of(document: Any, annotation: Any) -> str:
    from pypdfium2 import raw

    if raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
        return ""
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    text = ""
    if kind == raw.FPDF_ANNOT_FREETEXT:
        text = _value(raw.FPDFAnnot_GetStringValue, annotation, b"Contents\0")
    elif kind == raw.FPDF_ANNOT_WIDGET and document.formenv:
        form = document.formenv
        field = raw.FPDFAnnot_GetFormFieldType(form, annotation)
        if field in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
            text = _CHECKED if raw.FPDFAnnot_IsChecked(form, annotation) else ""
        elif field in (
            raw.FPDF_FORMFIELD_TEXTFIELD,
            raw.FPDF_FORMFIELD_COMBOBOX,
            raw.FPDF_FORMFIELD_LISTBOX,
        ) and not (
            field == raw.FPDF_FORMFIELD_TEXTFIELD
            and raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD
        ):
            text = _value(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    rows = (" ".join(plain(row).split()) for row in text.splitlines())
    return "\n".join(filter(None, rows))


def _value(function: Any, *arguments: Any) -> str:
    size = function(*arguments, None, 0)
    if not 2 < size <= _LONGEST_VALUE:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    function(*arguments, buffer, size)
    return bytes(buffer)[: size - 2].decode("utf-16-le", "replace")


def with_fields(page: PageLines) -> PageLines:
    """The page with its fields among its lines."""
    lines = list(page.lines)
    for value in page.fields:
        on_row = [
            place
            for place, line in enumerate(lines)
            if not line.table
            and line.turn == "none"
            and line.right <= value.left + value.size
            and abs(line.bottom - value.bottom) < max(line.size, value.size)
        ]
        if on_row:
            place = max(on_row, key=lambda n: lines[n].right)
            label = lines[place]
            text = f"{label.text} {value.text}"
            lines[place] = replace(label, text=text, right=value.right, bold=False, hyphen=False)
        else:
            above = [n for n, line in enumerate(lines) if line.bottom >= value.bottom]
            place = min(above, key=lambda n: (lines[n].bottom, -n), default=-1)
            lines.insert(place + 1, value)
    return replace(page, lines=tuple(lines))


def unread_reason(page: Any, text: str, guesses: Sequence[bool]) -> str:
    """Why what a page shows cannot be read; empty where nothing says so.

    Args:
        page: Of the PDF library.
        text: What it gives as its text.
        guesses: Of some of its characters, whether the font does not say what they are.
    """
    sample = text[:: len(text) // _SAMPLE + 1]
    letters = sum(map(str.isalnum, sample))
    if letters < _FEWEST_LETTERS:
        return PICTURE if _is_picture(page) else ""
    signs = sum(not one.isspace() and one not in _LEADERS for one in sample)
    if signs < _FEWEST_SIGNS:
        return ""
    odd = letters < _LETTER_SHARE * signs
    guessed = sum(guesses) > len(guesses) / 2
    return NO_MAP if odd or (guessed and not _has_words(text)) else ""


def _has_words(text: str) -> bool:
    """Whether half of all tokens are written as words are, in whatever script."""
    tokens = text.split()[:_SAMPLE]
    words = sum(
        token.strip("\"'(),.;:!?").isalpha()
        and (not token.isascii() or any(one in "aeiouyAEIOUY" for one in token))
        for token in tokens
    )
    return words > len(tokens) / 2


def _is_picture(page: Any) -> bool:
    from pypdfium2 import raw

    width, height = page.get_size()
    for picture in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = picture.get_bounds()
        if (right - left) * (top - bottom) > _PICTURE_SHARE * width * height:
            return True
    return False


def unread_pages(pages: Sequence[PageLines]) -> tuple[str, ...]:
    """Which pages are not read, and what makes them readable."""
    remarks: list[str] = []
    for reason, option in ((PICTURE, "--skip-text"), (NO_MAP, "--force-ocr")):
        numbers = [str(n) for n, page in enumerate(pages, 1) if page.unread == reason]
        if numbers:
            pages_are = "pages {} are" if len(numbers) > 1 else "page {} is"
            named = pages_are.format(listed(numbers, _MOST_NAMED))
            remarks.append(
                f"{named} {reason}: run OCR on it with 'ocrmypdf {option} in.pdf out.pdf'"
            )
    return tuple(remarks)
