"""JSON as `--json` prints it and `to_dict()` gives it: the fields of a value are its keys.

What comes from outside becomes values of the types that it must have (`converted`); what does not
fit is refused in one sentence with its place. One rule: the sentence of a key is the docstring of
its field. `tests/reference.py` makes JSON.md and the schema that servers give out of them.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Final, TypeVar

import msgspec
import orjson
from msgspec import UNSET, Struct

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import brief
from filestore.core.spelling import did_you_mean


class JsonObject:
    """What `--json` can show."""

    __slots__ = ()
    KEYS: ClassVar[str] = ""
    """The attributes that are keys, in order; without any all fields are. A dot leads into a value,
    whose attribute names the key. What JSON has in place of an attribute is ``json_NAME``."""
    SPARSE: ClassVar[str] = ""
    """Keys that are left out where there is nothing to say; of others only what is `UNSET` is."""

    def to_dict(self) -> dict[str, Any]:
        """The values that `--json` prints; see JSON.md."""
        kind: Any = type(self)
        made, sparse = {}, self.SPARSE.split()
        for key, path in keys(kind).items():
            value: Any = self
            for name in path:
                value = None if value is None else getattr(value, name)
            is_empty = key in sparse and not value and value != ""
            if not is_empty and value is not UNSET:
                made[key] = plain(value)
        return made


class Problem(JsonObject, Struct, frozen=True):
    """Why something was not done."""

    error: str
    """What happened."""
    remedy: str
    """What to do next."""


class Failure(JsonObject, Struct, frozen=True):
    """What a command prints that fails."""

    error: str
    """What happened."""
    detail: str
    """Technical detail, or empty."""
    remedy: str
    """What to do next, or empty."""

    @classmethod
    def of(cls, error: FilestoreError) -> "Failure":
        """What it prints of an error."""
        return cls(error.message, error.detail, error.remedy)


@cache
def keys(kind: Any) -> Mapping[str, tuple[str, ...]]:
    """The keys of an object in order, with the attributes that lead to their values."""
    fields: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    named = dict(zip(fields, getattr(kind, "__struct_encode_fields__", ()), strict=True))
    found = {}
    for word in kind.KEYS.split() or fields:
        path = tuple(word.split("."))
        key = named.get(word, path[-1])
        found[key] = (f"json_{key}",) if hasattr(kind, f"json_{key}") else path
    return found


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, JsonObject):
        return value.to_dict()
    if isinstance(value, FilestoreError):
        return Problem(value.message, value.remedy).to_dict()
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, frozenset) else value)]
    return value


def text(value: str) -> str:
    r"""A text that JSON can hold: bytes that are not UTF-8 as ``\xNN``."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value


T = TypeVar("T")
_MESSAGE: Final = re.compile(
    r"Expected (?P<wanted>.+?)(, got `.+)?|.*required field `(?P<lacked>.+)`"
)
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
    "object": "an object",
    "null": "nothing",
}


_ROOM: Final = 54
"""Levels of the 254 that can be written: what is read is written again as a part of more."""
_TOO_DEEP: Final = "it is nested too deep"


class UnfitError(FilestoreError, ValueError):
    """A value is not of its type; tells where, what was expected and what was found."""


def json_of(data: bytes | bytearray | str) -> Any:
    """The value of some JSON, in which no object has a key twice.

    Raises:
        JSONDecodeError: It is no JSON.
        UnfitError: A key is there twice, or it nests too deep.
    """
    found = orjson.loads(data)
    refuse_twice(data)
    inside = found
    for _ in range(_ROOM):
        inside = [inside]
    try:
        orjson.dumps(inside)
    except TypeError as error:
        raise UnfitError(_TOO_DEEP) from error
    return found


def refuse_twice(data: bytes | bytearray | str) -> None:
    """See that no object of some JSON has a key twice.

    Raises:
        UnfitError: One has, or they nest too deep.
        ValueError: It is no JSON.
    """
    try:
        # No object is kept: what is large is held in memory once, by who reads it.
        json.loads(data, object_pairs_hook=lambda pairs: each_once(pairs) and None, parse_int=str)
    except RecursionError as error:
        raise UnfitError(_TOO_DEEP) from error


def each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object.

    Raises:
        UnfitError: A key is there twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise UnfitError(f"the key {brief(counts.most_common(1)[0][0])} appears twice")
    return found


def converted(value: Any, kind: type[T], place: str = "") -> T:
    """A value of a type.

    Args:
        value: Of JSON or TOML.
        kind: The type; keys that it has not are passed over.
        place: Where the value is, for the sentence.

    Raises:
        UnfitError: It does not fit.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, FilestoreError):
            # What the type itself refuses, in its own words.
            raise error.__cause__ from None
        at = _AT.search(str(error))
        inner = at["place"] if at else ""
        match = _MESSAGE.fullmatch(str(error)[: at.start()] if at else str(error))
        where = place + inner
        if place and inner and inner[0] != "[":
            where = f"{place}: {inner}" if " " in place else f"{place}.{inner}"
        if match and match["lacked"]:
            raise UnfitError(f"{where or 'it'} lacks {match['lacked']!r}") from error
        for index, key in _STEP.findall(inner.partition("[...]")[0]):
            value = value[int(index) if index else key]
        wanted = _choices(kind, inner)
        if match:
            wanted = re.sub(r"`(.+?)`", _in_words, _LENGTH.sub(_of_length, match["wanted"]))
        # A person's own key is not shown.
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
    # What may be left out is seldom null.
    kinds = found[1].removesuffix(" | null").split(" | ")
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds)


def unknown_keys(
    table: Mapping[str, Any], known: Mapping[str, Iterable[str]], place: str = ""
) -> Iterator[str]:
    """A sentence on each key that nothing reads, with the nearest known key.

    Args:
        table: Of JSON or TOML.
        known: The keys of each table by its place, "" for the outermost one.
        place: Where the table is.
    """
    names = list(known[place])
    for key, value in table.items():
        inner = f"{place}.{key}" if place else key
        if key not in names:
            yield f"unknown key {brief(inner)}{did_you_mean(key, names)}"
        elif inner in known and isinstance(value, dict):
            yield from unknown_keys(value, known, inner)
