"""What every extractor is: bytes in, one document of text and metadata out; and plain text itself.

Which extractor reads which file is decided in the package itself. One rule: the same bytes and name
give the same document on every machine, and whatever the bytes are, nothing but `ExtractionError`
is raised. A text is returned exactly, apart from line ends and a byte-order mark; what is not text
is refused, never guessed at.

Encodings are tried in this order: byte-order mark, UTF-16 or UTF-32 by their NUL bytes, strict
UTF-8, what a page declares, then what chardet finds likeliest, which is called a guess.
"""

import codecs
import datetime
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.chunking import Symbol
from filestore.core.errors import FilestoreError
from filestore.extract.titles import telling

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


def names_in(text: str) -> frozenset[str]:
    """The names that a text lists, with blanks between."""
    return frozenset(text.split())


def xml_parser() -> Any:
    """A parser (lxml) of a stranger's XML: no entity, no other file, no comments, no huge tree."""
    from lxml import etree

    return etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def refuse_pointer(data: bytes, *, name: str) -> None:
    """Check that a file is no pointer, whatever its name promises.

    Raises:
        PointerError: It is one.
    """
    if len(data) <= _POINTER_BYTES and _POINTER.match(data):
        raise PointerError(
            f"{name} is a git-lfs pointer, not the file itself; 'git lfs pull' fetches the file",
            remedy="git lfs pull",
        )


class DepthError(ExtractionError):
    """Metadata nested deeper than `MAX_DEPTH`."""

    def __init__(self) -> None:
        super().__init__(
            f"nested deeper than {MAX_DEPTH} levels",
            remedy="flatten the metadata of the file, or leave the file out",
        )


_GUESS: Final = re.compile(r"([\w-]+) \(guessed\)")


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
    remarks: tuple[str, ...] = ()
    """What a person should know of how it was read, each on one line: what is missing, and why."""

    @property
    def all_remarks(self) -> tuple[str, ...]:
        """The remarks; an encoding that nothing in the file says is one."""
        encoding = str(self.metadata.get("encoding"))
        guess = _GUESS.fullmatch(encoding)
        return (*self.remarks, f"read as {guess[1]}, which is a guess") if guess else self.remarks

    @property
    def recorded(self) -> Mapping[str, Any]:
        """The metadata, with the remarks, as records have them."""
        return {**self.metadata, "remarks": list(self.remarks)} if self.remarks else self.metadata

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
    typed: ClassVar[bool] = False
    """Whether a person types its metadata, which then stay as they are."""

    @property
    def label(self) -> str:
        """Name and version, as recorded with every document."""
        return f"{self.name}/{self.version}"

    def read(self, data: bytes, *, name: str) -> Document:
        """Reads a whole file; its metadata are without what programs fill in.

        Raises:
            PointerError: It was not fetched.
            ExtractionError: As for `extract`.
        """
        refuse_pointer(data, name=name)
        document = self.extract(data, name=name)
        return document if self.typed else replace(document, metadata=telling(document.metadata))

    @abstractmethod
    def extract(self, data: bytes, *, name: str) -> Document:
        """Reads a whole file, its metadata as they are.

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
            f"{name}: expected text, found NUL characters"
            "; leave the file out, or convert it to text first",
        )
    return text


def empty_error(name: str, found: str = "found nothing but white space") -> EmptyDocumentError:
    """The error for a file without any text in it."""
    return EmptyDocumentError(
        f"{name} is empty: expected text, {found}; write something into the file, or leave it out",
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
GUESSED: Final = " (guessed)"
"""Behind an encoding that nothing in the file says."""

_MARKS: Final = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the first half of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE: Final = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_SHIFTS: Final = re.compile(rb"\x1b[$(]|~\{")
"""How encodings of seven bits go over to Japanese, Korean or Chinese."""
_DECLARED: Final = re.compile(
    rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:-]+)"""
    rb"""|\A(?:[^\n]*\n)?[ \t]*(?:\#|//|/?\*|;|%|--)[^\n]*?coding[:=][ \t]*([\w.-]+)""",
    re.I,
)
_DECLARATION_BYTES: Final = 4_096
_DECLARABLE: Final = re.compile(
    r"cp\d+|iso8859_\d+|iso2022_\w+|koi8_\w|mac_\w+|euc_\w+|gb18030|big5\w*|johab|hz|kz1048"
)
"""Codecs for files; others of Python's are for names and escapes, and can be slow."""
_WIDER: Final = {
    "ascii": "cp1252",
    **dict.fromkeys(("shift_jis", "shift_jis_2004"), "cp932"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("tis_620", "iso8859_11"), "cp874"),
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "iso8859_1": "cp1252",
    "iso8859_9": "cp1254",
}
"""What holds all that an encoding does, and what programs write under its name."""

_SAMPLE_BYTES: Final = 32_768
_LEAD_BYTES: Final = 200  # of ASCII before the first other byte of a line
_FEW_BYTES: Final = 12  # beyond ASCII: too few to tell languages apart
_ALPHABETS: Final = frozenset({"ARABIC", "CYRILLIC", "GREEK", "HEBREW", "THAI"})
_NOT_IN_TEXT: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b\x1a"))
_CONTROL_SHARE: Final = 10  # more than a tenth of control characters is no text …
_LEGACY_CONTROL_SHARE: Final = 50  # … nor is a fiftieth where the bytes are not UTF-8 either
_DAMAGE_SHARE: Final = 20  # one damaged character among twenty sound ones is still UTF-8
_HIGH: Final = re.compile(rb"[\x80-\xff]")
_HIGH_BYTES: Final = bytes(range(128, 256))


class TextExtractor(Extractor):
    """Plain text: the file itself, decoded."""

    name = "text"
    version = 2

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
        return _decode_wide(data, name=name)
    declared = _decode_declared(data)
    if data.isascii() and (shifted := _SHIFTS.search(data)):
        found = declared or _decode_guessed(data[shifted.start() :], data)
        if found is not None and not found[0].isascii():
            return found
    _refuse_control(data, _CONTROL_SHARE, name)
    text = attempt(data, UTF8)
    if text is not None:
        return text, UTF8
    if declared is not None:
        return declared
    # UTF-8 with a few bytes gone wrong: better with gaps than as another encoding altogether.
    text = data.decode(UTF8, "replace")
    damaged = text.count("\ufffd") - data.count("\ufffd".encode())
    sound = sum(1 for character in text if character > "\x7f") - damaged
    if damaged * _DAMAGE_SHARE <= sound:
        return text, f"{UTF8} (damaged)"
    _refuse_control(data, _LEGACY_CONTROL_SHARE, name)
    guessed = _decode_guessed(_sample(data), data)
    if guessed is None:
        raise _binary_error(name, "bytes in no known encoding")
    return guessed


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
                    f"{name}: its byte-order mark says {encoding.upper()}, but its bytes differ;"
                    " save it as UTF-8, or leave it out",
                )
            return text, encoding
    return None


def _decode_declared(data: bytes) -> tuple[str, str] | None:
    """The text in the encoding that a page, XML or source code says; None where that is wrong."""
    found = _DECLARED.search(data, 0, _DECLARATION_BYTES)
    if found is None:
        return None
    named = (found[1] or found[2]).decode("ascii", "replace").lower()
    try:
        named = named.removeprefix("x-").replace("windows-874", "cp874")
        named = codecs.lookup(named).name.replace("-", "_")
    except (LookupError, ValueError):
        return None
    encoding = _WIDER.get(named, named)
    text = attempt(data, encoding) if _DECLARABLE.fullmatch(encoding) else None
    return None if text is None else (text, encoding)


def attempt(data: bytes, encoding: str) -> str | None:
    """The text, or None where the bytes are not in this encoding."""
    try:
        return data.decode(encoding)
    except UnicodeError:
        return None


def _decode_wide(data: bytes, *, name: str) -> tuple[str, str]:
    """UTF-16 or UTF-32 without a mark; any other file with NUL bytes is binary."""
    texts = ((attempt(data, encoding), encoding) for encoding in _WIDE)
    scored = [
        (_wide_score(text), text, encoding)
        for text, encoding in texts
        if text is not None and "\0" not in text
    ]
    score, text, encoding = max(scored, default=(0.0, "", ""), key=lambda one: one[0])
    if score <= 0:
        raise _binary_error(name, "NUL bytes")
    return text, encoding


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
        f"{name} is not text: expected characters, found {found}; convert it, or leave it out",
    )


def _decode_guessed(sample: bytes, data: bytes) -> tuple[str, str] | None:
    """The text in the likeliest encoding that gives one, by a part of it that tells most."""
    sample = sample[:_SAMPLE_BYTES]
    for guess in _guesses(sample):
        named = guess.replace("-", "_")
        for encoding in dict.fromkeys((_WIDER.get(named, named), named)):
            if _is_written(sample.decode(encoding, "replace")):
                text = attempt(data, encoding)
                if text is not None and _is_written(text):
                    return text, f"{encoding}{GUESSED}"
    return None


def _is_written(text: str) -> bool:
    """Whether none of it is a C1 control, unassigned or private: no text has these."""
    beyond = {character for character in set(text) if character > "\x7f"}
    return not any(unicodedata.category(one) in {"Cc", "Cn", "Co"} for one in beyond)


def _guesses(sample: bytes) -> Iterator[str]:
    """Names of encodings, the likeliest first; of few characters those of the web are likelier."""
    from chardet import EncodingEra, detect, detect_all

    eras = EncodingEra.ALL & ~EncodingEra.MAINFRAME
    if len(sample) - len(sample.translate(None, _HIGH_BYTES)) > _FEW_BYTES:
        yield detect(sample, encoding_era=eras, compat_names=False)["encoding"] or UTF8
    web = detect_all(sample, encoding_era=EncodingEra.MODERN_WEB, compat_names=False)
    likely = {one["encoding"] for one in web}
    scores = {
        name: (_mixes_scripts(sample, name), -one["confidence"] * (1.5 if name in likely else 1))
        for one in detect_all(sample, encoding_era=eras, compat_names=False)
        if (name := one["encoding"])
    }
    yield from sorted(scores, key=scores.__getitem__)


def _mixes_scripts(sample: bytes, encoding: str) -> bool:
    """Whether letters of two alphabets are in one word, as where `é` is read as `й`."""
    words = re.findall(r"[^\W\d_ªº]+", sample.decode(encoding, "replace"))
    names = ({unicodedata.name(sign, "").partition(" ")[0] for sign in word} for word in words)
    return any("LATIN" in found and not found.isdisjoint(_ALPHABETS) for found in names)


def _sample(data: bytes) -> bytes:
    """The first lines that are not ASCII."""
    lines: list[bytes] = []
    size = 0
    end = 0
    while size < _SAMPLE_BYTES and (found := _HIGH.search(data, end)):
        high = found.start()
        start = max(data.rfind(b"\n", end, high) + 1, end, high - _LEAD_BYTES)
        end = data.find(b"\n", high) + 1 or len(data)
        lines.append(data[start : min(end, start + _SAMPLE_BYTES)])
        size += len(lines[-1])
    return b"".join(lines)
