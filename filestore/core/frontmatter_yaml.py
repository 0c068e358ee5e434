"""Frontmatter in YAML, of chunk files and documents: a small, safe part of it, event by event.

Plain scalars follow JSON: ``true``, ``false``, ``null`` and numbers are what they are in JSON, an
empty value is null, all else is text, also ``no``, ``010`` and ``2024-01-01``. A number that would
be written otherwise than it was typed (``1.10``, ``1e3``, an integer beyond 64 bits with its sign)
is text, too: a version keeps its zero. Fences, writing and editing are `chunks.frontmatter`, which
has another reader for the form we write. One rule: nothing is resolved, constructed or merged, and
every limit ends in an error that names the line.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from msgspec import Struct

from filestore.core.errors import FilestoreError

if TYPE_CHECKING:
    from yaml import Event, ScalarEvent

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value] | None"

MAX_BLOCK_BYTES: Final = 65_536
MAX_EVENTS: Final = 4_000
"""What libyaml reads in some milliseconds, and far more than a person writes before a text."""
MAX_DEPTH: Final = 8
"""Mappings and lists within each other, the outermost mapping counted."""
INTEGERS: Final = range(-(2**63), 2**63)
"""The integers that are numbers; others are text when read, and not written."""

NOT_RAW: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What YAML refuses, drops or takes for a line end when it is not escaped."""

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None, "": None}

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class MalformedFrontmatter(FilestoreError, ValueError):
    """Frontmatter that cannot be read within the limits, or not be edited in place."""

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(
            f"malformed frontmatter, line {line}, column {column}: {message}",
            remedy="correct that line in an editor; text in double quotes is always understood",
        )
        self.line = line
        """1-based, in the file."""
        self.column = column
        """1-based, in characters."""


class KeyPlace(Struct, frozen=True, kw_only=True):
    """Where a top-level key and its value are, in characters of the block."""

    key_start: int
    key_end: int
    value_end: int


class YamlBlock(Struct, frozen=True, kw_only=True):
    """The values of a block, and what is needed to edit it in place."""

    values: dict[str, Value]
    entries: dict[str, KeyPlace]
    indent: int
    """The column of the outermost mapping."""
    is_flow: bool
    """Whether the outermost mapping is written in braces."""


_NO_DOCUMENT: Final = YamlBlock(values={}, entries={}, indent=0, is_flow=False)


def read_yaml(block: bytes, first_line: int) -> YamlBlock:
    """What a frontmatter block holds, and where.

    Args:
        block: The bytes between the fences.
        first_line: The line of the file on which they start, for messages.

    Raises:
        MalformedFrontmatter: It cannot be read within the limits.
    """
    try:
        text = block.decode()
    except UnicodeDecodeError as error:
        before = block[: error.start].decode()
        refuse(before, len(before), first_line, f"not UTF-8: {error.reason}")
    raw = NOT_RAW.search(text)
    if raw is not None:
        message = f"U+{ord(raw[0]):04X} must be written as an escape in double quotes"
        refuse(text, raw.start(), first_line, message)
    return _YamlReader(text, first_line).document()


def refuse(text: str, index: int, first_line: int, message: str) -> NoReturn:
    """Raise the error for a place in a block.

    Args:
        text: The block.
        index: The place, in characters of it.
        first_line: The line of the file on which the block starts.
        message: What is wrong there.

    Raises:
        MalformedFrontmatter: Always.
    """
    line_start = text.rfind("\n", 0, index) + 1
    line = first_line + text.count("\n", 0, index)
    raise MalformedFrontmatter(message, line=line, column=index - line_start + 1)


class _YamlReader:
    """Values from YAML events, one after the other."""

    def __init__(self, text: str, first_line: int) -> None:
        self._text = text
        self._first_line = first_line
        self._events = iter(self._bounded_events())
        self._flow: list[bool] = []
        self._content_end = 0
        """Where the last thing that is seen ended; a block ends only where the next begins."""

    def document(self) -> YamlBlock:
        """The one mapping of the block, or none in a block of comments.

        Raises:
            MalformedFrontmatter: There is anything else.
        """
        from yaml import MappingStartEvent

        root = next(self._events, None)
        if root is None:
            return _NO_DOCUMENT
        if not isinstance(root, MappingStartEvent):
            self._refuse(root, "expected 'key: value' lines")
        self._enter(root)
        values: dict[str, Value] = {}
        entries: dict[str, KeyPlace] = {}
        for key, key_event in self._keys(values):
            value_event = next(self._events)
            values[key] = self._value(value_event)
            entries[key] = KeyPlace(
                key_start=_start(key_event),
                key_end=_end(key_event),
                value_end=self._content_end,
            )
        indent = root.start_mark.column if root.start_mark else 0
        return YamlBlock(
            values=values, entries=entries, indent=indent, is_flow=bool(root.flow_style)
        )

    def _bounded_events(self) -> list["Event"]:
        """The events between the start and the end of the document, stopped at the limits.

        libyaml and its Python twin each have their own ways to fail; all of them end here.
        """
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        events: list[Event] = []
        depth = 0
        try:
            for event in yaml.parse(self._text, Loader=loader):
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                events.append(event)
                self._check(event, len(events), depth)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._refuse_at(mark.index if mark else 0, error.problem or "not YAML")
        except MalformedFrontmatter:
            raise
        except (yaml.YAMLError, ArithmeticError, LookupError, ValueError) as error:
            self._refuse_at(0, f"not YAML: {error}")
        return events[2:-2]

    def _check(self, event: "Event", count: int, depth: int) -> None:
        import yaml

        if count > MAX_EVENTS:
            self._refuse(event, f"more than {MAX_EVENTS:,} values")
        if depth > MAX_DEPTH:
            self._refuse(event, f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, "aliases ('*name') are not allowed; quote the text")
        if getattr(event, "anchor", None) is not None:
            self._refuse(event, "anchors ('&name') are not allowed; quote the text")
        if getattr(event, "tag", None) is not None:
            self._refuse(event, "tags ('!name') are not allowed; quote the text")
        if isinstance(event, yaml.DocumentStartEvent | yaml.DocumentEndEvent) and event.explicit:
            self._refuse(event, "a second document is not allowed")

    def _value(self, event: "Event") -> Value:
        from yaml import MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        self._enter(event)
        if isinstance(event, MappingStartEvent):
            members: dict[str, Value] = {}
            for key, _ in self._keys(members):
                members[key] = self._value(next(self._events))
            return members
        assert isinstance(event, SequenceStartEvent)
        items: list[Value] = []
        while not isinstance(item := next(self._events), SequenceEndEvent):
            items.append(self._value(item))
        self._leave(item)
        return items

    def _keys(self, members: Mapping[str, Value]) -> Iterator[tuple[str, "ScalarEvent"]]:
        """The keys of a mapping; the caller reads each value and adds it to ``members``."""
        from yaml import MappingEndEvent, ScalarEvent

        while not isinstance(event := next(self._events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                self._refuse(event, "a key must be text")
            if event.implicit[0] and event.value == "<<":
                self._refuse(event, "merge keys ('<<') are not allowed")
            if event.value in members:
                self._refuse(event, f"the key {event.value!r} appears twice")
            self._scalar(event)
            yield event.value, event
        self._leave(event)

    def _scalar(self, event: "ScalarEvent") -> Value:
        self._content_end = _end(event)
        if event.implicit[0]:
            return _plain(event.value)
        if not event.value.isascii() and _SURROGATE.search(event.value):
            self._refuse(
                event, "half a surrogate pair is not a character; write the character itself"
            )
        return str(event.value)

    def _enter(self, event: "Event") -> None:
        self._flow.append(bool(getattr(event, "flow_style", False)))

    def _leave(self, event: "Event") -> None:
        if self._flow.pop():
            self._content_end = _end(event)

    def _refuse(self, event: "Event", message: str) -> NoReturn:
        self._refuse_at(_start(event), message)

    def _refuse_at(self, index: int, message: str) -> NoReturn:
        refuse(self._text, index, self._first_line, message)


def _start(event: "Event") -> int:
    return event.start_mark.index if event.start_mark else 0


def _end(event: "Event") -> int:
    return event.end_mark.index if event.end_mark else 0


def _plain(text: str) -> Value:
    """The value of an unquoted scalar, by JSON's rules."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    if match.lastindex is None:
        # The length is looked at first because Python refuses to convert thousands of digits.
        return int(text) if len(text) <= 20 and int(text) in INTEGERS else text
    return number(text)


def number(text: str) -> float | str:
    """A number with a point or an exponent; text where it would be written otherwise."""
    value = float(text)
    return value if math.isfinite(value) and number_text(value) == text else text


def number_text(value: float) -> str:
    """A finite number as we write it; readers of YAML 1.1 take 1e+16 for text."""
    digits, exponent, power = repr(value).partition("e")
    return digits + (".0" if exponent and "." not in digits else "") + exponent + power
