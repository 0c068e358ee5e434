"""Office files as zip containers: what is in them, checked before any of it is unpacked.

Reads the directory of the zip and unpacks single parts within limits; what the parts say is not
known here. One rule: no size, count or name that a file states is believed before it was checked
against the bytes.
"""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from filestore.core.safe_text import safe_text
from filestore.extract.base import ExtractionError

MAX_PARTS: Final = 10_000
_MIB: Final = 2**20
MAX_PART_BYTES: Final = 512 * _MIB
MAX_TOTAL_BYTES: Final = 1_024 * _MIB
MAX_XML_PART_BYTES: Final = 64 * _MIB
MAX_XML_TOTAL_BYTES: Final = 192 * _MIB
MAX_PART_RATIO: Final = 200
"""Of a part above `_PART_FLOOR` bytes; white bitmaps and long tables stay below it."""
MAX_TOTAL_RATIO: Final = 100
"""Of a whole file that unpacks to more than `_TOTAL_FLOOR` bytes."""
_PART_FLOOR: Final = 4 * _MIB
_TOTAL_FLOOR: Final = 16 * _MIB

_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_LOCAL_MARK: Final = b"PK\x03\x04"
_DIRECTORY_MARK: Final = b"PK\x01\x02"
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_SHOWN_NAME: Final = 80
_OUTSIDE: Final = re.compile(r"^[/\\]|^[A-Za-z]:|\\|\0|(?:^|/)\.{1,2}(?:/|$)")
XML_SUFFIXES: Final = (".xml", ".rels", ".vml", ".opf", ".xhtml", ".html", ".htm")
_ARCHIVE_SUFFIXES: Final = (
    *(".docx", ".docm", ".dotx", ".pptx", ".pptm", ".potx", ".ppsx", ".sldx", ".xlsx", ".xlsm"),
    *(".xlsb", ".odt", ".ods", ".odp", ".zip", ".jar", ".gz", ".7z", ".rar", ".tar"),
)
_DAMAGED_ZIP: Final = (
    zipfile.BadZipFile,
    struct.error,
    ArithmeticError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    ValueError,
)
"""What Python's reader of zip directories raises for damaged ones."""

_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SIGNATURES: Final = (
    (b"%PDF", "a PDF"),
    (b"{\\rtf", "rich text (RTF)"),
    (b"PK\x05\x06", "an empty zip file"),
    (b"<", "a page of HTML or XML"),
    (b"\0", "zero bytes"),
)

_SAVE_AGAIN: Final = "get it again, save it again from an office program, or leave it out"
_DISTRUST: Final = (
    "leave it out; or, if you trust its origin, open it in an office program and save it again"
)


class Part(Struct, frozen=True, kw_only=True):
    """Where one part lies in the file, as its directory says and the local header confirms."""

    start: int
    packed_bytes: int
    size_bytes: int
    method: int
    checksum: int


class Archive(Struct, frozen=True, kw_only=True):
    """An office file whose directory passed every check; no part is unpacked yet."""

    name: str
    data: bytes
    parts: Mapping[str, Part]
    nested: frozenset[str]
    """The parts that are archives themselves."""

    def read(self, part: str) -> bytes:
        """The bytes of a part.

        Raises:
            ExtractionError: There is no such part, or its bytes are not what the directory says.
        """
        found = self.parts.get(part)
        if found is None:
            raise damaged(self.name, f"a part {shown(part)}", "none")
        packed = self.data[found.start : found.start + found.packed_bytes]
        content = packed
        if found.method != zipfile.ZIP_STORED:
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                content = unpacker.decompress(packed, found.size_bytes + 1)
            except zlib.error as error:
                raise damaged(self.name, f"compressed data in {shown(part)}", str(error)) from error
            if len(content) > found.size_bytes:
                raise refused(
                    self.name,
                    f"its directory says that {shown(part)} unpacks to {found.size_bytes:,} bytes,"
                    " but there are more",
                )
        if len(content) != found.size_bytes or zlib.crc32(content) != found.checksum:
            raise damaged(
                self.name,
                f"{found.size_bytes:,} bytes with the recorded checksum in {shown(part)}",
                "others",
            )
        return content


# ---- the directory -------------------------------------------------------------------------------


def open_archive(data: bytes, *, name: str, expected: str) -> Archive:
    """Checks the directory of an office file.

    Args:
        data: The whole file.
        name: Its name or path, for messages.
        expected: What it should be, for messages: `a Word document (.docx)`.

    Returns:
        The archive.

    Raises:
        ExtractionError: It is not a zip container, is damaged or encrypted, or does what only
            hostile files do.
    """
    _check_signature(data, name, expected)
    if data.count(_DIRECTORY_MARK) > MAX_PARTS:
        raise refused(name, f"it has more than {MAX_PARTS:,} parts")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as container:
            entries, end = container.infolist(), container.start_dir
    except _DAMAGED_ZIP as error:
        raise damaged(
            name, f"{expected} with a readable directory", f"{len(data):,} damaged or cut-off bytes"
        ) from error
    _check_names(entries, name)
    _check_sizes(entries, name)
    parts = {
        entry.orig_filename: _located(entry, data, name)
        for entry in entries
        if not entry.orig_filename.endswith("/")
    }
    # Parts that share bytes would be one kernel of data unpacked many times over.
    before = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        part = parts.get(entry.orig_filename)
        if entry.header_offset < before:
            raise refused(name, f"its part {shown(entry.orig_filename)} overlaps another one")
        before = part.start + part.packed_bytes if part else entry.header_offset
    if before > end:
        raise damaged(name, "all parts before the directory", "parts that are cut off")
    nested = frozenset(path for path in parts if path.lower().endswith(_ARCHIVE_SUFFIXES))
    return Archive(name=name, data=data, parts=parts, nested=nested)


def damaged(name: str, expected: str, found: str) -> ExtractionError:
    """The error for a file that is broken or something else."""
    return ExtractionError(f"{name}: expected {expected}, found {found}", remedy=_SAVE_AGAIN)


def refused(name: str, reason: str) -> ExtractionError:
    """The error for a file that is made to do harm, or looks like it."""
    return ExtractionError(f"{name} is refused: {reason}", remedy=_DISTRUST)


def _check_signature(data: bytes, name: str, expected: str) -> None:
    if data.startswith(_LOCAL_MARK):
        return
    if data.startswith(_OLE):
        raise ExtractionError(
            f"{name}: expected {expected}, found a password-protected file, or one older than"
            " Office 2007",
            remedy="open it in an office program, remove any password, and save it in the current"
            " format",
        )
    found = next((words for mark, words in _SIGNATURES if data.startswith(mark)), "other data")
    raise damaged(name, expected, found if data else "an empty file")


def _check_names(entries: list[zipfile.ZipInfo], name: str) -> None:
    seen: set[str] = set()
    for entry in entries:
        part = entry.orig_filename
        if not part or _OUTSIDE.search(part):
            raise refused(name, f"the name of its part {shown(part)} leads out of the file")
        if part.casefold() in seen:
            raise refused(name, f"two of its parts are called {shown(part)}")
        if entry.flag_bits & _ENCRYPTED:
            raise ExtractionError(
                f"{name}: {shown(part)} is encrypted with a password; save it without one, or"
                " leave it out",
            )
        if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise damaged(
                name,
                f"{shown(part)} stored or deflated",
                f"compression method {entry.compress_type}",
            )
        seen.add(part.casefold())


def _check_sizes(entries: list[zipfile.ZipInfo], name: str) -> None:
    for entry in entries:
        is_xml = entry.orig_filename.lower().endswith(XML_SUFFIXES)
        limit = MAX_XML_PART_BYTES if is_xml else MAX_PART_BYTES
        what = f"its part {shown(entry.orig_filename)} unpacks to"
        _check_size(name, what, entry.file_size, limit)
        if entry.file_size > _PART_FLOOR:
            _check_ratio(name, what, entry.file_size, entry.compress_size, MAX_PART_RATIO)
    total = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    xml = (entry for entry in entries if entry.orig_filename.lower().endswith(XML_SUFFIXES))
    _check_size(name, "it unpacks to", total, MAX_TOTAL_BYTES)
    _check_size(name, "its text unpacks to", sum(e.file_size for e in xml), MAX_XML_TOTAL_BYTES)
    if total > _TOTAL_FLOOR:
        _check_ratio(name, "it unpacks to", total, packed, MAX_TOTAL_RATIO)


def _check_size(name: str, what: str, size_bytes: int, limit: int) -> None:
    if size_bytes > limit:
        raise refused(
            name,
            f"{what} {size_bytes / _MIB:,.1f} MiB; the limit is {limit // _MIB:,} MiB",
        )


def _check_ratio(name: str, what: str, size_bytes: int, packed_bytes: int, limit: int) -> None:
    if size_bytes > limit * packed_bytes:
        ratio = size_bytes // max(1, packed_bytes)
        raise refused(name, f"{what} {ratio:,} times its size; the limit is {limit} times")


def _located(entry: zipfile.ZipInfo, data: bytes, name: str) -> Part:
    start = entry.header_offset
    header = data[start : start + _LOCAL_HEADER.size] if start >= 0 else b""
    if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL_MARK):
        raise damaged(name, f"{shown(entry.orig_filename)} where the directory says", "other data")
    _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    return Part(
        start=start + _LOCAL_HEADER.size + name_bytes + extra_bytes,
        packed_bytes=entry.compress_size,
        size_bytes=entry.file_size,
        method=entry.compress_type,
        checksum=entry.CRC,
    )


def shown(part: str) -> str:
    """The name of a part, short and fit for a terminal."""
    short = part if len(part) <= _SHOWN_NAME else part[:_SHOWN_NAME] + "…"
    return safe_text(short, keep_newlines=False) or "(no name)"
