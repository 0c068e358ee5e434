"""Office Open XML: the parts of a checked archive as XML, their links, and what all formats share.

Parses XML that can expand nothing, reads the strict form of the standard as the transitional one,
follows relationships, and reads the properties of a document. What is in the text is for the
extractors. One rule: an XML part is looked at before any parser sees it.
"""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from filestore.core.safe_text import safe_text
from filestore.extract._office.archive import Archive, damaged, refused, shown
from filestore.extract.base import json_value, xml_parser

OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"

SIGNS: Final = {0xAD: None, 0x2011: "-"}
"""Signs that are not in the words a person searches: soft and no-break hyphens."""


class Relationship(Struct, frozen=True, kw_only=True):
    """A link from one part to another, or out of the file."""

    id: str
    kind: str
    """The last word of its type: `hyperlink`, `slide`."""
    target: str
    """Name of a part, or an address where it is external."""
    external: bool


# ---- XML -----------------------------------------------------------------------------------------

_DECLARED: Final = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.I)
_XML_DECLARATION: Final = re.compile(r"^\s*<\?xml\b[^>]*>")
_STRICT: Final = re.compile(r"""(=\s*["'])http://purl\.oclc\.org/ooxml/(\w+)/(\w+)(?=["'/])""")
_TRANSITIONAL_WORDS: Final = {
    "extendedProperties": "extended-properties",
    "customProperties": "custom-properties",
}
_MC: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_READABLE: Final = frozenset({"t", "blip", "docPr", "oMath"})


def xml_root(archive: Archive, part: str) -> Any:
    """The root element (lxml) of an XML part, without comments.

    Raises:
        ExtractionError: It is missing, not UTF-8 or UTF-16, defines entities, is not well-formed,
            or is nested too deeply.
    """
    from lxml import etree

    content = archive.read(part)
    encoding = "utf-16" if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise damaged(archive.name, f"UTF-8 in {shown(part)}", "other bytes") from error
    if _DECLARED.search(text):
        raise refused(
            archive.name,
            f"{shown(part)} has a document type or entity definition, which may expand without"
            " end; office files have none",
        )
    text = _XML_DECLARATION.sub("", text, count=1)
    if "http://purl.oclc.org/ooxml/" in text:
        text = _STRICT.sub(_transitional, text)
    try:
        return etree.fromstring(text.encode("utf-8", "replace"), xml_parser())
    except etree.XMLSyntaxError as error:
        problem = safe_text(str(error), keep_newlines=False)
        raise damaged(archive.name, f"well-formed XML in {shown(part)}", problem) from error


def _transitional(found: re.Match[str]) -> str:
    """The name of a namespace of the strict form of ISO/IEC 29500 as the libraries know it."""
    word = _TRANSITIONAL_WORDS.get(found[3], found[3])
    return f"{found[1]}http://schemas.openxmlformats.org/{found[2]}/2006/{word}"


def local_name(element: Any) -> str:
    """The name of an element or attribute without its namespace; empty for what is no element."""
    tag = element if isinstance(element, str) else element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def unwrap(element: Any, contents: Iterable[Any]) -> None:
    """Puts some of what is in an element in its place."""
    parent = element.getparent()
    if parent is None:
        return
    for child in list(contents):
        element.addprevious(child)
    parent.remove(element)


def choose_alternatives(root: Any) -> None:
    """Leaves of what is there in several forms the newest that has something to read in it."""
    for element in list(root.iter(f"{_MC}AlternateContent")):
        forms = (*element.findall(f"{_MC}Choice"), *element.findall(f"{_MC}Fallback"))
        readable = (
            form for form in forms if any(local_name(inner) in _READABLE for inner in form.iter())
        )
        unwrap(element, next(readable, ()))


# ---- parts and their relationships ---------------------------------------------------------------

_PROGRAMS: Final = {
    "word": "a Word document",
    "ppt": "a PowerPoint presentation",
    "xl": "an Excel workbook",
    "visio": "a Visio drawing",
}


def relationships(archive: Archive, part: str) -> tuple[Relationship, ...]:
    """What a part links to, in order; the empty name is the file itself.

    Raises:
        ExtractionError: The list is damaged.
    """
    folder, base = posixpath.split(part)
    listing = posixpath.join(folder, "_rels", f"{base}.rels")
    if listing not in archive.parts:
        return ()
    found = []
    for element in xml_root(archive, listing):
        if local_name(element) == "Relationship":
            external = element.get("TargetMode", "").lower() == "external"
            target = element.get("Target", "")
            if not external:
                joined = posixpath.join("/", folder, target.partition("#")[0])
                target = posixpath.normpath(joined).lstrip("/")
                target = target if target in archive.parts else unquote(target)
            found.append(
                Relationship(
                    id=element.get("Id", ""),
                    kind=element.get("Type", "").rpartition("/")[2],
                    target=target,
                    external=external,
                )
            )
    return tuple(found)


def related_part(archive: Archive, part: str, kind: str) -> str | None:
    """The first existing part of a kind that a part links to; None without one."""
    links = relationships(archive, part)
    targets = (link.target for link in links if link.kind == kind and not link.external)
    return next((target for target in targets if target in archive.parts), None)


def main_part(archive: Archive, *, namespace: str, fallback: str, expected: str) -> str:
    """The part that holds the document itself.

    Args:
        archive: The file.
        namespace: A word in the namespace of its root: `wordprocessingml`.
        fallback: Where it lies in files that do not say.
        expected: As for `open_archive`.

    Returns:
        Its name.

    Raises:
        ExtractionError: There is none, or it is a document of another program.
    """
    part = related_part(archive, "", "officeDocument") or fallback
    if part in archive.parts and f"/{namespace}/" in str(xml_root(archive, part).tag):
        return part
    folders = (other.partition("/")[0] for other in archive.parts)
    other = next((words for words in map(_PROGRAMS.get, folders) if words), "another kind of zip")
    if "mimetype" in archive.parts:
        other = "an OpenDocument file or an e-book"
    if other in expected or expected.startswith(other):
        other = "a file without its main part"
    raise damaged(archive.name, expected, other)


# ---- properties ----------------------------------------------------------------------------------

_PROPERTIES: Final = {
    "title": "title",
    "creator": "author",
    "subject": "subject",
    "description": "description",
    "keywords": "keywords",
    "category": "category",
    "contentStatus": "status",
    "language": "language",
    "lastModifiedBy": "last_modified_by",
    "created": "created",
    "modified": "modified",
}
_DATES: Final = frozenset({"created", "modified"})
_ISO_DATE: Final = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?)?)?")
_NO_TITLE: Final = re.compile(
    r"microsoft \w+ - .*|(?:\S+ (?:de )?)?powerpoint(?:[- ]\S+)?|slide ?\d*|(?:un|no )titled?\b.*"
    r"|(?:word )?document ?\d*|presentation ?\d*|template|.*\.(?:docx?|pptx?|dotx?|potx?|odt|odp)",
    re.I,
)
"""What programs write as the title where none was given."""


def properties(archive: Archive, read: Iterable[str] = ()) -> dict[str, Any]:
    """What a file says about itself, as metadata of a document.

    Args:
        archive: The file.
        read: The parts that are archives and were read all the same.

    Raises:
        ExtractionError: The part that says so is damaged.
    """
    part = related_part(archive, "", "core-properties") or "docProps/core.xml"
    values: dict[str, Any] = {}
    elements = xml_root(archive, part) if part in archive.parts else ()
    for element in elements:
        key = _PROPERTIES.get(local_name(element), "")
        value = " ".join("".join(element.itertext()).split())
        if key and value and (key not in _DATES or _ISO_DATE.fullmatch(value)):
            values.setdefault(key, value)
    if "keywords" in values:
        words = (word.strip() for word in re.split(r"[,;]", values["keywords"]))
        values["keywords"] = [word for word in words if word]
    if _NO_TITLE.fullmatch(values.get("title", "")):
        del values["title"]
    if unread := archive.nested.difference(read):
        values["unread_archives"] = len(unread)
    ordered = (*_PROPERTIES.values(), "unread_archives")
    return {key: json_value(values[key]) for key in ordered if values.get(key)}


def picture_note(description: str) -> str:
    """The text in place of a picture; empty where it has no description."""
    first, *rest = description.strip().splitlines() or [""]
    lines = (first, *(line for line in rest if not _MACHINE_MADE.match(line)))
    words = " ".join(" ".join(lines).split())
    words = _MACHINE_MADE_END.sub("", words)
    return "" if not words or _PICTURE_NAME.fullmatch(words) else f"[Image: {words}]"


_MACHINE_MADE: Final = re.compile(r"\s*(?:AI[ -]|description automatically)", re.I)
_MACHINE_MADE_END: Final = re.compile(r"\s*description automatically generated.*$", re.I)
_PICTURE_NAME: Final = re.compile(r"(?:picture|image|grafik|bild) ?\d*|\S+\.[a-z]{3,4}", re.I)


# ---- packages made anew --------------------------------------------------------------------------


def zipped(contents: Mapping[str, bytes]) -> io.BytesIO:
    """A package of some parts, for a library that reads office files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as container:
        for name, content in contents.items():
            container.writestr(zipfile.ZipInfo(name), content)
    packed.seek(0)
    return packed


def written_links(links: Iterable[tuple[str, str, str, bool]]) -> bytes:
    """The relationships of a part: id, kind, target, and whether that is external."""
    from lxml import etree

    space = f"{PACKAGE}/relationships"
    root = etree.Element(f"{{{space}}}Relationships", nsmap={None: space})
    for link_id, kind, target, external in links:
        values = {"Id": link_id, "Type": f"{OFFICE}/{kind}", "Target": target}
        values |= {"TargetMode": "External"} if external else {}
        etree.SubElement(root, f"{{{space}}}Relationship", values)
    return serialized(root)


def serialized(root: Any) -> bytes:
    """A part as bytes."""
    from lxml import etree

    return bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))


_M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MAX_DEPTH: Final = 40
"""Of forms inside each other; of deeper ones only the signs are kept."""

_FORMS: Final = {
    "f": r"\frac{{{num}}}{{{den}}}",
    "sSup": "{e}^{{{sup}}}",
    "sSub": "{e}_{{{sub}}}",
    "sSubSup": "{e}_{{{sub}}}^{{{sup}}}",
    "sPre": "{{}}_{{{sub}}}^{{{sup}}}{e}",
    "func": "{fName} {e}",
    "limLow": r"\underset{{{lim}}}{{{e}}}",
    "limUpp": r"\overset{{{lim}}}{{{e}}}",
}
"""How the parts of a form are put together."""

_NO_PARTS: Final = dict.fromkeys(("num", "den", "e", "sup", "sub", "lim", "fName"), "")
_OPERATORS: Final = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∬": r"\iint", "∮": r"\oint"}
_ACCENTS: Final = {
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "bar",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u20d7": "vec",
}
_APPLIED: Final = "\u2061"  # between a function and its argument; it shows nothing
_ESCAPED: Final = str.maketrans({sign: f"\\{sign}" for sign in "{}%&#_$"} | {_APPLIED: " "})
_NEW_ROW: Final = r" \\ "


def equation(element: Any) -> str:
    """LaTeX of an `oMath` element, in two dollar signs a side where it is by itself."""
    formula = " ".join(_latex(element, _MAX_DEPTH).split())
    around = "$$" if local_name(element.getparent()) == "oMathPara" else "$"
    return f"{around}{formula}{around}" if formula else ""


def _latex(element: Any, depth: int) -> str:
    kind = local_name(element)
    if depth <= 0 or kind == "r":
        signs = (found.text or "" for found in element.iter() if local_name(found) == "t")
        return "".join(signs).translate(_ESCAPED)
    parts: dict[str, list[str]] = {}
    pieces = []
    for child in element:
        name = local_name(child)
        if name and not name.endswith("Pr"):
            pieces.append(_latex(child, depth - 1))
            parts.setdefault(name, []).append(pieces[-1])
    single = {name: " ".join(found) for name, found in parts.items()}
    if kind in _FORMS:
        return _FORMS[kind].format(**_NO_PARTS | single)
    return _with_properties(element, kind, single, parts) or "".join(pieces)


def _with_properties(
    element: Any, kind: str, single: Mapping[str, str], parts: Mapping[str, list[str]]
) -> str:
    """The forms that are more than their parts in a row; empty for any other."""
    inner = single.get("e", "")
    if kind == "rad":
        degree = single.get("deg", "")
        return rf"\sqrt[{degree}]{{{inner}}}" if degree else rf"\sqrt{{{inner}}}"
    if kind == "nary":
        # A sum or an integral with its limits.
        sign = _setting(element, "chr", "∫")
        limits = (("_", single.get("sub", "")), ("^", single.get("sup", "")))
        operator = _OPERATORS.get(sign, sign) + "".join(f"{at}{{{of}}}" for at, of in limits if of)
        return f"{operator} {inner}"
    if kind == "d":
        opening = _setting(element, "begChr", "(").translate(_ESCAPED)
        closing = _setting(element, "endChr", ")").translate(_ESCAPED)
        between = f" {_setting(element, 'sepChr', '|')} "
        return f"{opening}{between.join(parts.get('e', []))}{closing}"
    if kind == "acc":
        accent = _ACCENTS.get(_setting(element, "chr", ""), "hat")
        return rf"\{accent}{{{inner}}}"
    if kind == "bar":
        return rf"\overline{{{inner}}}"
    if kind == "mr":
        return " & ".join(parts.get("e", []))
    rows = _NEW_ROW.join(parts.get("mr" if kind == "m" else "e", []))
    names = {"m": "matrix", "eqArr": "aligned"}
    return rf"\begin{{{names[kind]}}} {rows} \end{{{names[kind]}}}" if kind in names else ""


def _setting(element: Any, name: str, usual: str) -> str:
    """A property of a form, which is in an element called after it: `dPr`."""
    found = element.find(f"{element.tag}Pr/{_M}{name}")
    return usual if found is None else str(found.get(f"{_M}val", ""))
