"""What every extractor is: bytes in, one document of text and metadata out.

Holds the contract and the two checks that every implementation shares; which extractor reads which
file is decided in the package itself. One rule: the same bytes and name give the same document on
every machine, and whatever the bytes are, nothing but `ExtractionError` is raised.
"""

import datetime
import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct

from filestore.chunking import Section
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
    outline: tuple[Section, ...] = ()
    """Where the functions and classes of `code` start; other syntaxes have headings in the text."""
    pages: tuple["Page", ...] = ()
    """Where pages or slides start, ascending; none where the format has none."""

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
