"""What comes from outside: values of the types that it must have, and no more than is taken. Pure.

One rule: what does not fit is refused in one sentence with its place, and an object that has a key
twice means nothing. What a stranger wrote is counted as it comes, and refused before it fills a
disk or the memory.
"""

import collections
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import orjson
from msgspec import Struct

from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.safe_text import brief
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean

T = TypeVar("T")
_SAID: Final = re.compile(r"Expected (?P<wanted>.+?)(, got `.+)?|.*required field `(?P<lacked>.+)`")
_AT: Final = re.compile(r" - at (`key` in )?`\$\.?(?P<place>.*)`$")
_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_LENGTH: Final = re.compile(r"`(array|object|str)` of length (<=|>=) (\d+)")
_PARTS: Final = {"array": "values", "object": "keys", "str": "characters"}
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


class UnfitError(FilestoreError, ValueError):
    """A value is not of its type; tells where, what was expected and what was found."""


def json_of(data: bytes) -> Any:
    """The value of some JSON, in which no object has a key twice.

    Raises:
        JSONDecodeError: It is no JSON.
        UnfitError: A key is there twice, or it nests too deep.
    """
    found = orjson.loads(data)
    refuse_twice(data)
    return found


def refuse_twice(data: bytes) -> None:
    """See that no object of some JSON has a key twice.

    Raises:
        UnfitError: One has, or they nest too deep.
        ValueError: It is no JSON.
    """
    try:
        json.loads(data, object_pairs_hook=each_once, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise UnfitError("it nests too deep") from error


def each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object.

    Raises:
        UnfitError: A key is there twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = collections.Counter(key for key, _ in pairs)
        raise UnfitError(f"the key {brief(counts.most_common(1)[0][0])} is there twice")
    return found


def converted(value: Any, kind: type[T], place: str = "") -> T:
    """A value of a type.

    Args:
        value: Of JSON or TOML.
        kind: The type; keys that it has not are passed over.
        place: Where the value stands, for the sentence.

    Raises:
        UnfitError: It does not fit.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        at = _AT.search(str(error))
        inner = at["place"] if at else ""
        said = _SAID.fullmatch(str(error)[: at.start()] if at else str(error))
        where = f"{place}.{inner}".strip(".") if inner[:1] != "[" else f"{place}{inner}"
        if said and said["lacked"]:
            raise UnfitError(f"{where or 'it'} lacks {said['lacked']!r}") from error
        for index, key in _STEP.findall(inner.partition("[...]")[0]):
            value = value[int(index) if index else key]
        wanted = _choices(kind, inner)
        if said:
            wanted = re.sub(r"`(.+?)`", _in_words, _LENGTH.sub(_of_length, said["wanted"]))
        # Which of a person's own keys it is, is not told.
        found = "" if "[...]" in inner else f", found {brief(value)}"
        raise UnfitError(f"{where or 'it'} must be {wanted}{found}") from error


def _choices(kind: Any, place: str) -> str:
    """The words that a place may have, as the type says."""
    from msgspec.inspect import type_info

    found: Any = type_info(kind)
    for index, key in _STEP.findall(place):
        if index:
            found = getattr(found, "item_type", found)
        for one in getattr(found, "fields", ()):
            found = one.type if one.encode_name == key else found
    return " or ".join(map(str, getattr(found, "values", ()))) or "another value"


def _of_length(found: re.Match[str]) -> str:
    side = "at most" if found[2] == "<=" else "at least"
    return f"`{found[1]}` of {side} {int(found[3]):,} {_PARTS[found[1]]}"


def _in_words(found: re.Match[str]) -> str:
    # What may be left out is seldom meant to be null.
    kinds = found[1].removesuffix(" | null").split(" | ")
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds)


def unknown_keys(
    table: Mapping[str, Any], known: Mapping[str, Iterable[str]], place: str = ""
) -> Iterator[str]:
    """A sentence on each key that nothing reads, with the key that may be meant.

    Args:
        table: Of JSON or TOML.
        known: The keys of each table by its place, "" for the outermost one.
        place: Where the table stands.
    """
    names = list(known[place])
    for key, value in table.items():
        inner = f"{place}.{key}" if place else key
        if key not in names:
            yield f"unknown key {brief(inner)}{did_you_mean(key, names)}"
        elif inner in known and isinstance(value, dict):
            yield from unknown_keys(value, known, inner)


OPTION: Final = "--limit"
"""What raises a limit."""
LINE_BYTES: Final = 64 * 1024 * 1024
"""Of a line, or a value: no chunk with its vectors comes near it. A longer one is passed over."""
_BYTES_A_CONTAINER: Final = 16
_FEW_CONTAINERS: Final = 100_000
"""Brackets that open, for so many bytes: what is made to fill the memory has one every three."""


def why_bomb(raw: bytes | bytearray) -> str:
    """Why some JSON would take far more memory than its text can need, "" where it does not."""
    opened = raw.count(b"[") + raw.count(b"{")
    is_bomb = opened > len(raw) // _BYTES_A_CONTAINER + _FEW_CONTAINERS
    return f"{opened:,} brackets in {len(raw):,} bytes" if is_bomb else ""


class LimitExceededError(RefusedError, ValueError):
    """There is more than is taken unless a person allows it."""


class Size(Struct, frozen=True, kw_only=True):
    """How much something is."""

    rows: int = 0
    """Lines, rows, chunks or vectors that come in."""
    files: int = 0
    """Chunk files, records or documents to be written."""
    bytes: int = 0
    """Of texts, metadata and vectors, as they are in memory."""


class Limits(JsonObject, Size, frozen=True, kw_only=True):
    """The most that is taken of one form."""

    rows: int = 250_000
    """Rows, lines, chunks or vectors that come in."""
    files: int = 250_000
    """Chunk files and records that are written."""
    bytes: int = 1024**3
    """Of texts, metadata and vectors, in memory."""


class Counter(Struct):
    """What came so far, held against the limits."""

    limits: Limits
    name: str
    """Of what comes, for messages."""
    found: Size = Size()

    def add(self, more: Size) -> None:
        """Count some more.

        Raises:
            LimitExceededError: It is more than is taken.
        """
        was, limits = self.found, self.limits
        self.found = found = Size(
            rows=was.rows + more.rows, files=was.files + more.files, bytes=was.bytes + more.bytes
        )
        for name in LIMITED:
            if getattr(found, name) > getattr(limits, name):
                raise LimitExceededError(
                    f"{self.name} has {getattr(found, name):,} {name} or more, at most"
                    f" {getattr(limits, name):,} are taken",
                    remedy=f"if you trust it, add {OPTION} {name}=N with a larger number",
                )


LIMITED: Final = Size.__struct_fields__
USUAL: Final = Limits()
"""What is taken where nobody says more."""
