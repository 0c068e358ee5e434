"""Headings as the structure of a tagged PDF names them.

One rule: a file says where its headings are only by numbers that its text carries too, so a
structure that is damaged or endless names none, and the page is read as one without tags.
"""

import ctypes
import re
from typing import Any, Final

_MOST_ELEMENTS: Final = 20_000  # of a page
_DEEPEST: Final = 64
_LONGEST_TYPE: Final = 64  # bytes
_HEADING: Final = re.compile(r"H([1-6])?|Title")


def heading_tags(document: Any, page: Any) -> dict[int, tuple[int, int]]:
    """The headings of a page, by the marks of its content.

    Args:
        document: Of the PDF library.
        page: Likewise.

    Returns:
        By the number of marked content, the level of its heading from 1, and a number that all
        marks of one heading share.
    """
    from pypdfium2 import raw

    if not raw.FPDFCatalog_IsTagged(document):
        return {}
    tree = raw.FPDF_StructTree_GetForPage(page)
    if not tree:
        return {}
    tags: dict[int, tuple[int, int]] = {}
    try:
        count = raw.FPDF_StructTree_CountChildren(tree)
        children = (raw.FPDF_StructTree_GetChildAtIndex(tree, n) for n in range(count))
        stack = [(child, 0, 0, (0, 0)) for child in children]
        seen = 0
        while stack and seen < _MOST_ELEMENTS:
            element, depth, sections, tag = stack.pop()
            seen += 1
            if not element or depth > _DEEPEST:
                continue
            kind = _type(element)
            found = None if tag[0] else _HEADING.fullmatch(kind)
            if found is not None:
                level = 1 if kind == "Title" else int(found[1] or max(1, sections))
                tag = level, seen
            sections += kind == "Sect"
            for n in range(min(raw.FPDF_StructElement_CountChildren(element), _MOST_ELEMENTS)):
                mark = raw.FPDF_StructElement_GetChildMarkedContentID(element, n)
                if mark >= 0:
                    if tag[0]:
                        tags[mark] = tag
                    continue
                child = raw.FPDF_StructElement_GetChildAtIndex(element, n)
                stack.append((child, depth + 1, sections, tag))
    finally:
        raw.FPDF_StructTree_Close(tree)
    return tags


def _type(element: Any) -> str:
    from pypdfium2 import raw

    buffer = ctypes.create_string_buffer(_LONGEST_TYPE)
    size = raw.FPDF_StructElement_GetType(element, buffer, _LONGEST_TYPE)
    whole = 2 < size <= _LONGEST_TYPE
    return buffer.raw[: size - 2].decode("utf-16-le", "replace") if whole else ""
