"""Word documents: Markdown with their headings, lists, tables, notes, comments and equations.

`_docx_body` brings the XML into a plain form, mammoth makes HTML of that, and `html_markdown`
Markdown. Mammoth never sees the file itself, only a package made anew of the parts it needs. One
rule: a document that cannot be converted still gives its text.
"""

import io
import re
from typing import Any, Final

from filestore.extract import for_name
from filestore.extract._office.archive import Archive, open_archive
from filestore.extract._office.docx_body import (
    BULLETS,
    CITED,
    INCLUDED,
    LEVEL,
    LISTING,
    MAX_HEADING,
    NUMBER,
    NUMBERS,
    prepare,
)
from filestore.extract._office.docx_parts import WORD, plain_text
from filestore.extract._office.numbering import LEVELS
from filestore.extract._office.package import (
    OFFICE,
    PACKAGE,
    SIGNS,
    main_part,
    properties,
    relationships,
    serialized,
    written_links,
    xml_root,
    zipped,
)
from filestore.extract.base import Document, ExtractionError, Extractor, document_text, empty_error
from filestore.extract.html_markdown import markdown, tidy

_EXPECTED: Final = "a Word document (.docx)"
_W: Final = f"{{{WORD}}}"
_RELATIONSHIP_ID: Final = f"{{{OFFICE}}}id"

_CONVERTED_DEPTH: Final = 80
"""Of elements: mammoth takes six stack frames for each, of the thousand Python allows."""
_UNCONVERTED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What mammoth raises for parts that no office program writes."""


class DocxExtractor(Extractor):
    """Word documents of Office 2007 and later, in both forms of the standard."""

    name = "docx"
    version = 3
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Converts the body with its notes and comments; see `Extractor.extract`."""
        return self._read(data, name, is_inner=False)

    def _read(self, data: bytes, name: str, *, is_inner: bool) -> Document:
        archive = open_archive(data, name=name, expected=_EXPECTED)
        part = main_part(
            archive,
            namespace="wordprocessingml",
            fallback="word/document.xml",
            expected=_EXPECTED,
        )
        root = xml_root(archive, part)
        title, included = prepare(root, archive, part)
        text = _converted(root, archive, part)
        flat = text is None
        if text is None:
            paragraphs = (plain_text(found) for found in root.iter(f"{_W}p"))
            text = NUMBER.sub("", "\n\n".join(filter(None, paragraphs)))
        # What an included document includes is not followed: it may be itself.
        inner = [] if is_inner else [self._included(archive, found) for found in included]
        text = INCLUDED.sub(
            lambda at: "\n\n".join([*filter(None, inner[int(at[1]) :][:1]), ""]), text
        )
        text = text.translate(SIGNS).rstrip("\n") + "\n"
        read = [found for found, text_of in zip(included, inner, strict=False) if text_of]
        metadata = properties(archive, read)
        if unread := inner.count(""):
            metadata["unread_parts"] = unread
        if not text.strip():
            raise empty_error(name, "found a document without any")
        title = metadata.get("title") or title
        return Document(
            text=document_text(text, name=name),
            syntax="text" if flat else "markdown",
            metadata={"title": title, **metadata} if title else metadata,
            extractor=self.label,
            title=title,
        )

    def _included(self, archive: Archive, part: str) -> str:
        """The text of a document within the document; empty where it cannot be read."""
        extractor = for_name(part)
        if extractor is None:
            return ""
        try:
            if isinstance(extractor, DocxExtractor):
                found = extractor._read(archive.read(part), part, is_inner=True)
            else:
                found = extractor.extract(archive.read(part), name=part)
        except ExtractionError:
            return ""
        return found.text.strip()


# ---- conversion ----------------------------------------------------------------------------------


def _converted(root: Any, archive: Archive, part: str) -> str | None:
    """The Markdown of a prepared body; None where it cannot be converted."""
    import mammoth
    from lxml import etree

    depth = deepest = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    if deepest > _CONVERTED_DEPTH:
        return None
    try:
        lines = [f"p.{LEVEL}{level} => h{level}:fresh" for level in range(1, MAX_HEADING + 1)]
        lines += [f"p.{LISTING} => pre:separator('\\n')", f"p.{CITED} => blockquote > p:fresh"]
        for level in range(1, LEVELS + 1):
            outer = "ul|ol > li > " * (level - 1)
            lines.append(f"p:unordered-list({level}) => {outer}ul > li:fresh")
            lines.append(f"p:ordered-list({level}) => {outer}ol > li:fresh")
        page = mammoth.convert_to_html(
            _package(root, archive, part),
            style_map="\n".join(lines),
            include_default_style_map=False,
            include_embedded_style_map=False,
            external_file_access=False,
        ).value
        page = _ITEM.sub(_numbered, page)
        page = _TICKED.sub("☑", NUMBER.sub("", page)).replace('<input type="checkbox" />', "☐")
        return tidy(_BRACKET.sub(") ", markdown(page)))
    except (*_UNCONVERTED, RecursionError):
        return None


_ITEM: Final = re.compile(f"<li>{NUMBER.pattern}")
_BRACKET: Final = re.compile("[.] \ue002")


def _numbered(item: re.Match[str]) -> str:
    return f'<li value="{item[1]}">' + ("\ue002" if item[2] == ")" else "")


_TICKED: Final = re.compile('<input (?:type="checkbox" checked|checked="checked" type)[^>]*>')


_LISTS: Final = (
    f'<w:numbering xmlns:w="{WORD}">'
    + "".join(
        f'<w:abstractNum w:abstractNumId="{number}">'
        + "".join(
            f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="{form}"/></w:lvl>' for level in range(LEVELS)
        )
        + "</w:abstractNum>"
        for number, form in ((BULLETS, "bullet"), (NUMBERS, "decimal"))
    )
    + "".join(
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="{number}"/></w:num>'
        for number in (BULLETS, NUMBERS)
    )
    + "</w:numbering>"
)
_CONTENT_TYPES: Final = f'<Types xmlns="{PACKAGE}/content-types"/>'


def _package(root: Any, archive: Archive, part: str) -> io.BytesIO:
    """The least that mammoth reads: the body, its links out of the file, and its lists."""
    targets = {link.id: link.target for link in relationships(archive, part) if link.external}
    links = [(link, "hyperlink", target, True) for link, target in targets.items()]
    for element in root.iter(f"{_W}hyperlink"):
        if element.get(_RELATIONSHIP_ID) not in targets:
            element.attrib.pop(_RELATIONSHIP_ID, None)
    contents = {
        "[Content_Types].xml": _CONTENT_TYPES.encode(),
        "_rels/.rels": written_links([("rId1", "officeDocument", "word/document.xml", False)]),
        "word/document.xml": serialized(root),
        "word/_rels/document.xml.rels": written_links(links),
        "word/numbering.xml": _LISTS.encode(),
    }
    return zipped(contents)
