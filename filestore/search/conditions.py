"""What metadata must be: a key, an operator and values, compared as what they are. Pure.

Two dates are compared as dates, two numbers as numbers, all else for being equal. A day or a month
is a stretch of time, see `core.dates`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from filestore.chunks.frontmatter import value_text
from filestore.core.dates import is_iso, iso_span
from filestore.core.errors import UsageError
from filestore.core.safe_text import brief
from filestore.core.schema import text

Operator = Literal["=", "!=", ">", ">=", "<", "<="]
OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)
_TYPED: Final = re.compile(r"(?P<key>.+?)(?P<op>[!<>]=|[=<>])(?P<value>.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")


class Condition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One condition on the metadata of a file."""

    key: str
    """Of the frontmatter or the document's metadata; nested keys with dots."""
    op: Operator = "="
    """How its value is to be; `!=` also holds where the key is missing."""
    value: Any = ""
    """A text, a number, true, false or null; or a list, of which one is enough, with `!=` none."""

    def texts(self) -> tuple[str, ...]:
        """The values as metadata are compared."""
        values = self.value if isinstance(self.value, list | tuple) else [self.value]
        return tuple(
            text(value_text(one) if isinstance(one, bool | int | float | None) else str(one))
            for one in values
        )


def of(given: Mapping[str, Any] | Sequence[Any] | None) -> tuple[Condition, ...]:
    """Conditions as they are given: key to value, where each of a list must hold; or one by one.

    Raises:
        UsageError: One makes no sense.
    """
    if given is None or isinstance(given, Mapping):
        pairs = (given or {}).items()
        found = [
            Condition(key=text(key), value=value)
            for key, values in pairs
            for value in (values if isinstance(values, list | tuple) else [values])
        ]
    else:
        found = [_one(one) for one in given]
    for condition in found:
        for value in condition.texts():
            if condition.op in ("=", "!=") or is_ordered(value):
                continue
            is_date = "is not a day of the calendar"
            problem = is_date if is_iso(value) else "is neither a date nor a number"
            raise UsageError(
                f"{brief(condition.key)} {condition.op} {brief(value)}: {brief(value)} {problem}"
                "; give a date such as 2024-05-01, or a number",
            )
    return tuple(found)


def typed(word: str, option: str) -> Condition:
    """A condition as a person types it: `KEY=VALUE`, or another operator between the two.

    Raises:
        UsageError: It is none.
    """
    found = _TYPED.fullmatch(word)
    if found is None:
        raise UsageError(
            f"{option} takes KEY=VALUE, or {' '.join(OPERATORS[1:])} between the two,"
            f" found {brief(word)}"
            f"; write {option} tags=git",
        )
    key, value = found["key"], found["value"]
    if key != key.rstrip():
        key, value = key.rstrip(), value.lstrip()
    return Condition(key=key, op=_operator(found["op"]), value=value)


def _one(given: Any) -> Condition:
    if isinstance(given, Condition):
        return given
    if not isinstance(given, Mapping) or "key" not in given or given.keys() - _KEYS:
        raise UsageError(
            f"a condition has key, op and value, found {brief(str(given))}; write"
            f' {{"key": "year", "op": ">=", "value": 2024}}',
        )
    return Condition(
        key=text(given["key"]), op=_operator(given.get("op", "=")), value=given.get("value", "")
    )


_KEYS: Final = frozenset(("key", "op", "value"))


def _operator(given: object) -> Operator:
    found = next((one for one in OPERATORS if one == given), None)
    if found is None:
        raise UsageError(f"unknown operator {brief(str(given))}: one of {' '.join(OPERATORS)}")
    return found


def test(op: Operator, wanted: str) -> Callable[[str], bool]:
    """What tells whether a value of a file is as it is wanted; of `!=`, whether it is not.

    A text is equal to itself alone: how else it may be spelt is for others to know.
    """
    span, number = iso_span(wanted), number_of(wanted)
    compare = _COMPARED[op]

    def holds(value: str) -> bool:
        if number is not None and (other := number_of(value)) is not None:
            # A stretch, too, in which nothing lies but the number.
            return compare(*(((one, 0), (one, 1)) for one in (other, number)))
        if span is not None and (there := iso_span(value)) is not None:
            return compare(there, span)
        return value == wanted if op in ("=", "!=") else False

    return holds


_COMPARED: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    "=": lambda value, wanted: wanted[0] <= value[0] and value[1] <= wanted[1],
    "!=": lambda value, wanted: wanted[0] <= value[0] and value[1] <= wanted[1],
    ">": lambda value, wanted: value[0] >= wanted[1],
    ">=": lambda value, wanted: value[0] >= wanted[0],
    "<": lambda value, wanted: value[0] < wanted[0],
    "<=": lambda value, wanted: value[0] < wanted[1],
}


def is_ordered(value: str) -> bool:
    """Whether something may be greater or less than a text: it is a date or a number."""
    return iso_span(value) is not None or number_of(value) is not None


def number_of(value: str) -> Decimal | None:
    """A text as the number that it is; None for any other."""
    return Decimal(value) if _NUMBER.fullmatch(value) else None


def alternatives(values: Sequence[str], known: Callable[[str], bool]) -> Iterator[str]:
    """The values of which one is enough: `a|b` is two, unless that is what a file says."""
    for value in values:
        if "|" in value and not known(value):
            yield from value.split("|")
        else:
            yield value
