"""What every extractor is: bytes in, one document of text and metadata out; and plain text itself.

Which extractor reads which file is decided in the package itself. One rule: the same bytes and name
give the same document on every machine, and whatever the bytes are, nothing but `ExtractionError`
is raised. A text is returned exactly, apart from line ends and a byte-order mark; what is not text
is refused, never guessed at.

Encodings are tried in this order: byte-order mark, strict UTF-8, UTF-16 or UTF-32 by their NUL
bytes, then the legacy encodings, where charset-normalizer rules out the senseless ones and the
letters that are most frequent in each language decide between the rest. It alone is easily misled
by short texts.
"""

import codecs
import datetime
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct

from filestore.chunking import Symbol
from filestore.core.errors import FilestoreError

MAX_DEPTH: Final = 8
"""Of metadata: lists and mappings inside each other; more is hostile, or no metadata."""

_SAFE_INTEGER: Final = 2**63
_DECIMAL_BITS: Final = 4_096  # Python refuses to write much longer numbers in decimal
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class ExtractionError(FilestoreError, ValueError):
    """A file cannot be read as the document its name promises."""


class EmptyDocumentError(ExtractionError):
    """A file without any text in it."""


class PointerError(ExtractionError):
    """What git-lfs leaves in the place of a file that was not fetched."""


_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v[0-9]+\r?\n")
_POINTER_BYTES: Final = 1_024
"""The most that git-lfs takes for a pointer."""


def refuse_pointer(data: bytes, *, name: str) -> None:
    """Check that a file is no pointer, whatever its name promises.

    Raises:
        PointerError: It is one.
    """
    if len(data) <= _POINTER_BYTES and _POINTER.match(data):
        raise PointerError(
            f"{name} is a pointer of git-lfs, not the file itself; 'git lfs pull' fetches that",
            remedy="run 'git lfs pull'",
        )


class DepthError(ExtractionError):
    """Metadata nested deeper than `MAX_DEPTH`."""

    def __init__(self) -> None:
        super().__init__(
            f"nested deeper than {MAX_DEPTH} levels",
            remedy="flatten the metadata of the file, or leave the file out",
        )


class Document(Struct, frozen=True, kw_only=True):
    """What an extractor makes of a source file."""

    text: str
    """LF line ends only, no byte-order mark at the start, no NUL, never only white space."""
    syntax: Literal["text", "markdown", "code"]
    """How the text is to be read where it is cut."""
    metadata: Mapping[str, Any]
    """What the document says about itself (title, author, …) as JSON values; dates are ISO text."""
    extractor: str
    """Name and version of what made it, `markdown/1`. Another output needs another version."""
    title: str = ""
    """What the whole document is called, on one line; heads the path of every chunk."""
    outline: tuple[Symbol, ...] = ()
    """Where the functions and classes of `code` start; other syntaxes have headings in the text."""
    pages: tuple["Page", ...] = ()
    """Where pages or slides start, ascending; none where the format has none."""
    lines: tuple[int, ...] = ()
    """For each line of the text the line of the file, from 1, that it was made of, ascending; none
    where the text is the end of the file, or the file has no lines."""

    def pages_between(self, start: int, end: int) -> tuple[int, ...]:
        """The numbers of the pages that a stretch of the text lies on."""
        starts = [page.start for page in self.pages]
        first = max(0, bisect_right(starts, start) - 1)
        return tuple(page.number for page in self.pages[first : bisect_left(starts, end)])


class Page(Struct, frozen=True, kw_only=True):
    """Where a page or slide starts."""

    start: int
    """Offset into the document's text, in characters."""
    number: int
    """From 1, as a reader counts them: the first page of the file is 1."""


class Extractor(ABC):
    """Reads one family of file formats."""

    name: ClassVar[str]
    version: ClassVar[int]
    """Raised whenever the same bytes may give another document than before."""
    isolated: ClassVar[bool] = False
    """Whether it reads a format that can hurt, and so runs in a process of its own with limits."""

    @property
    def label(self) -> str:
        """Name and version, as recorded with every document."""
        return f"{self.name}/{self.version}"

    @abstractmethod
    def extract(self, data: bytes, *, name: str) -> Document:
        """Reads a whole file.

        Args:
            data: Its bytes.
            name: Its name or path, for messages.

        Returns:
            The document.

        Raises:
            ExtractionError: It is empty, damaged or not of this format.
        """


def document_text(text: str, *, name: str) -> str:
    """The text with LF line ends and no byte-order mark, checked to be worth storing.

    Raises:
        ExtractionError: There is nothing but white space, or there are NUL characters.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.removeprefix("\ufeff")
    if not text or text.isspace():
        raise empty_error(name)
    if "\0" in text:
        raise ExtractionError(
            f"{name}: expected text, found NUL characters",
            remedy="leave the file out, or convert it to text first",
        )
    return text


def empty_error(name: str, found: str = "found nothing but white space") -> EmptyDocumentError:
    """The error for a file without any text in it."""
    return EmptyDocumentError(
        f"{name} is empty: expected text, {found}",
        remedy="write something into the file, or leave it out",
    )


def json_value(value: object, *, depth: int = 0) -> Any:
    """A metadata value as JSON knows it: dates are ISO text, keys are text, NaN is text.

    Raises:
        DepthError: It is nested deeper than `MAX_DEPTH`.
    """
    if depth > MAX_DEPTH:
        raise DepthError
    if isinstance(value, Mapping):
        return {_key(key): json_value(item, depth=depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item, depth=depth + 1) for item in value]
    return _scalar(value)


def _key(key: object) -> str:
    value = _scalar(key)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _scalar(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if -_SAFE_INTEGER <= value < _SAFE_INTEGER:
            return value
        return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return _SURROGATE.sub("\ufffd", str(value))


UTF8: Final = "utf-8"

_MARKS: Final = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the first half of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE: Final = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_JAPANESE_SHIFTS: Final = (b"\x1b$", b"\x1b(")

_HIRAGANA: Final = "".join(map(chr, range(0x3041, 0x3094)))
_KATAKANA: Final = "".join(map(chr, range(0x30A1, 0x30F7)))
_WESTERN: Final = "éèêëàâáãäåçñíìîïóòôöõúùûüßøæœÉÀÁÂÄÅÇÈÊÍÓÔÖÚÜÑØÆ–—‘’“”„…•«»°§€¡¿·©®™£±²³"
_CENTRAL: Final = "ąćęłńóśźżčďěňřšťůžáéíýúôöüőűăîâşţđßäĽĺŕÁČĎÉĚÍĽŁŇÓÖŘŚŠŤÚÜŮÝŹŻŽŐŰ–—‘’“”„…«»°§€"
_TURKISH: Final = "çğıöşüÇĞİÖŞÜâîû–—‘’“”„…«»°§€"
_RUSSIAN: Final = "оеаинтсрвл"
_SHARED_HAN: Final = (
    "的一是不了在人有我他大中上下和地到你出也要生子那得自之可多天好心小世界文字本日用法行成方新年同"
    "化主力理度京東件如果以作者都事部前面工分明公定表示所最加入外使高知道名接失性品共通"
)
_HAN_SIMPLE: Final = (
    "这个们来为国说时会对发经着动学还过现实开关长问机样"
    "没体从两点电内测试语书东数据库连产党无应该项变类设参"
)
_HAN_FULL: Final = (
    "這個們來為國說時會對發經著動學還過現實開關長問機樣"
    "沒體從兩點電內測試語書東數據庫連產黨無應該項變類設參"
)
_KOREAN: Final = (
    "이다는에을의가고하한를로지사도은기어인서들나리해시자그있라수아일정만전요세니안국대보"
)
_WIDE_MARKS: Final = "、。，！？：；「」『』（）《》“”—…ー・　"

_COMMON: Final[dict[str, frozenset[str]]] = {
    "cp1252": frozenset(_WESTERN),
    "cp1250": frozenset(_CENTRAL),
    "iso8859_2": frozenset(_CENTRAL),
    "cp1251": frozenset(_RUSSIAN),
    "koi8_r": frozenset(_RUSSIAN),
    "cp1253": frozenset("αοιετσνηυρπκςόίέά"),
    "cp1254": frozenset(_TURKISH),
    "cp1255": frozenset("יוהלאמרבתנשםדעחכ"),
    "cp1256": frozenset("اليمنرتوبهدعسفكحجةقأ،"),
    "cp932": frozenset(_HIRAGANA + _KATAKANA + _WIDE_MARKS + _SHARED_HAN),
    "gb18030": frozenset(_SHARED_HAN + _HAN_SIMPLE + _WIDE_MARKS),
    "big5": frozenset(_SHARED_HAN + _HAN_FULL + _WIDE_MARKS),
    "euc_jp": frozenset(_HIRAGANA + _KATAKANA + _WIDE_MARKS + _SHARED_HAN),
    "cp949": frozenset(_KOREAN),
    "cp437": frozenset("äöüÄÖÜßéèêàâçñáíóúÉå│─┌┐└┘├┤═║╔╗╚╝░▒▓█"),
}
"""The encodings tried, the likeliest first, and the characters texts in them are mostly made of."""

_LATIN: Final = frozenset({"cp1252", "cp1250", "iso8859_2", "cp1254", "cp437"})
_WIDER: Final = ("cp932", "gb18030", "big5", "euc_jp", "cp949")

_LONGEST_CHARACTER: Final = 4  # bytes, in any of these
_SAMPLE_BYTES: Final = 32_768
_LEAD_BYTES: Final = 200  # of ASCII before the first other byte of a line
_MESS_WEIGHT: Final = 2.0
_NEIGHBOUR_WEIGHT: Final = 0.5
_LANGUAGE_WEIGHT: Final = 0.3
_NOT_IN_TEXT: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b\x1a"))
_CONTROL_SHARE: Final = 10  # more than a tenth of control characters is no text …
_LEGACY_CONTROL_SHARE: Final = 50  # … nor is a fiftieth where the bytes are not UTF-8 either
_DAMAGE_SHARE: Final = 20  # one damaged character among twenty sound ones is still UTF-8
_HIGH: Final = re.compile(rb"[\x80-\xff]")


class TextExtractor(Extractor):
    """Plain text: the file itself, decoded."""

    name = "text"
    version = 1

    def extract(self, data: bytes, *, name: str) -> Document:
        """Decodes the file; see `Extractor.extract`."""
        text, encoding = decode(data, name=name)
        return Document(
            text=document_text(text, name=name),
            syntax="text",
            metadata=encoding_metadata(encoding),
            extractor=self.label,
        )


def encoding_metadata(encoding: str) -> dict[str, str]:
    """The encoding as metadata, where it is worth a word."""
    return {} if encoding == UTF8 else {"encoding": encoding}


def decode(data: bytes, *, name: str) -> tuple[str, str]:
    """The characters of a text file, and the name of the encoding they were in.

    Raises:
        ExtractionError: It is empty, binary, or in no encoding that is known.
    """
    if not data.strip():
        raise empty_error(name)
    marked = decode_marked(data, name=name)
    if marked is not None:
        return marked
    if b"\0" in data:
        # UTF-16 or UTF-32 without a mark; any other file with NUL bytes is binary.
        best: tuple[float, str, str] | None = None
        for encoding in _WIDE:
            text = attempt(data, encoding)
            if text is None or "\0" in text:
                continue
            score = _wide_score(text)
            if score > 0 and (best is None or score > best[0]):
                best = (score, text, encoding)
        if best is None:
            raise _binary_error(name, "NUL bytes")
        return best[1], best[2]
    _refuse_control(data, _CONTROL_SHARE, name)
    shifted = data.isascii() and all(shift in data for shift in _JAPANESE_SHIFTS)
    for encoding in ("iso2022_jp", UTF8) if shifted else (UTF8,):
        text = attempt(data, encoding)
        if text is not None:
            return text, encoding
    # UTF-8 with a few bytes gone wrong: better with gaps than as another encoding altogether.
    text = data.decode(UTF8, "replace")
    damaged = text.count("\ufffd") - data.count("\ufffd".encode())
    sound = sum(1 for character in text if character > "\x7f") - damaged
    return (
        (text, f"{UTF8} (damaged)") if damaged * _DAMAGE_SHARE <= sound else None
    ) or _decode_legacy(data, name=name)


def decode_marked(data: bytes, *, name: str) -> tuple[str, str] | None:
    """The text of a file that starts with a byte-order mark, and its encoding; None without one.

    Raises:
        ExtractionError: What follows is not what the mark promises.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = attempt(data[len(mark) :], encoding)
            if text is None or "\0" in text:
                raise ExtractionError(
                    f"{name}: its byte-order mark promises {encoding.upper()}, "
                    "the bytes after it are something else",
                    remedy="save the file as UTF-8, or leave it out",
                )
            return text, encoding
    return None


def attempt(data: bytes, encoding: str) -> str | None:
    """The text, or None where the bytes are not in this encoding."""
    try:
        return data.decode(encoding)
    except UnicodeError:
        return None


def _wide_score(text: str) -> float:
    """How much a text read as UTF-16 looks like one: everyday characters less impossible ones."""
    score = 0
    sample = text[:_SAMPLE_BYTES]
    for character in sample:
        code = ord(character)
        if character in "\n\r\t" or 0x20 <= code < 0x7F or 0x3000 <= code < 0x3100:
            score += 2
        elif unicodedata.category(character)[0] in "LNPZ":
            score += 1
        elif unicodedata.category(character)[0] == "C":
            score -= 20
    return score / len(sample) - 0.5


def _refuse_control(data: bytes, share: int, name: str) -> None:
    count = len(data) - len(data.translate(None, _NOT_IN_TEXT))
    if count * share > len(data):
        raise _binary_error(name, f"{count} control characters in {len(data)} bytes")


def _binary_error(name: str, found: str) -> ExtractionError:
    return ExtractionError(
        f"{name} is not text: expected characters, found {found}",
        remedy="leave the file out, or convert it to a format that can be read",
    )


def _decode_legacy(data: bytes, *, name: str) -> tuple[str, str]:
    _refuse_control(data, _LEGACY_CONTROL_SHARE, name)
    sample = _sample(data)
    from charset_normalizer import from_bytes

    mess = dict.fromkeys(_COMMON, 1.0)
    language = dict.fromkeys(_COMMON, 0.0)
    for match in from_bytes(sample, cp_isolation=list(_COMMON), enable_fallback=False):
        for encoding in {match.encoding, *match.could_be_from_charset} & mess.keys():
            mess[encoding], language[encoding] = match.chaos, match.coherence
    scores = {
        encoding: share - _MESS_WEIGHT * mess[encoding] + _LANGUAGE_WEIGHT * language[encoding]
        for encoding in _COMMON
        if (share := _common_share(sample, encoding)) is not None
    }
    for encoding in sorted(scores, key=lambda encoding: -scores[encoding]):
        text = attempt(data, encoding)
        # C1 controls, unassigned, private: no text is written with these.
        if text is not None and not any(
            unicodedata.category(character) in {"Cc", "Cn", "Co"}
            for character in set(text)
            if character > "\x7f"
        ):
            return text, encoding
    raise _binary_error(name, "bytes in no encoding that is known")


def _sample(data: bytes) -> bytes:
    """The first lines that are not ASCII, cut where no multi-byte character is cut in two."""
    lines: list[bytes] = []
    size = 0
    end = 0
    while found := _HIGH.search(data, end):
        high = found.start()
        start = max(data.rfind(b"\n", end, high) + 1, end, high - _LEAD_BYTES)
        end = data.find(b"\n", high) + 1 or len(data)
        lines.append(data[start : min(end, start + _SAMPLE_BYTES + 1)])
        size += len(lines[-1])
        if size > _SAMPLE_BYTES:
            break
    sample = b"".join(lines)
    if size <= _SAMPLE_BYTES:
        return sample
    cuts = [sample[: _SAMPLE_BYTES - back] for back in range(_LONGEST_CHARACTER)]
    return max(cuts, key=lambda cut: sum(attempt(cut, encoding) is not None for encoding in _WIDER))


def _common_share(sample: bytes, encoding: str) -> float | None:
    """The share of characters beyond ASCII that are everyday ones; None if it does not decode.

    Accented letters seldom are side by side, halves of Chinese characters always do.
    """
    text = attempt(sample, encoding)
    if text is None:
        return None
    high = [character for character in text if character > "\x7f"]
    common = float(sum(character in _COMMON[encoding] for character in high))
    if encoding in _LATIN:
        common -= _NEIGHBOUR_WEIGHT * sum(a > "\x7f" and b > "\x7f" for a, b in pairwise(text))
    return common / max(1, len(high))
