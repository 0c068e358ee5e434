"""What comes from outside, as values of the types that it must have. Pure.

One rule: what does not fit is refused in one sentence with its place, and an object that has a key
twice means nothing.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import orjson

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import brief
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
    "object": "an object",
    "null": "nothing",
}


_ROOM: Final = 54
"""Levels of the 254 that can be written: what is read is written again as a part of more."""
_TOO_DEEP: Final = "it nests too deep"


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
        where = place + inner
        if place and inner and inner[0] != "[":
            where = f"{place}: {inner}" if " " in place else f"{place}.{inner}"
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
