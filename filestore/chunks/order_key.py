"""Order keys: short texts whose bytewise order is the order of the chunks of a resource.

The idea is fractional indexing, described in Figma's account of how it orders layers and in David
Greenspan's note "Implementing Fractional Indexing": a position between two others is a longer
text that sorts between theirs, so an insertion rewrites no neighbour. Added here: a run of chunks
inserted together carries a tag of its content, so that two people who insert at the same place get
two unbroken runs after a merge, whichever comes first. One rule: keys are texts over ``0-9a-z``,
and nothing here knows about files.
"""

import re
from typing import Final, Literal

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_BASE: Final = len(_DIGITS)
_KEY: Final = re.compile(r"[0-9a-z]+")
_LONGEST_TAG: Final = _BASE - 1

_Lean = Literal["low", "middle", "high"]


def number_key(number: int) -> str:
    """The key a numbered file has without saying so: a length letter, then base-36 digits.

    ``a0`` to ``az`` for 0 to 35, ``b00`` to ``bzz`` for the next 1,296, and so on, so that the
    keys sort as the numbers do.

    Raises:
        ValueError: The number is negative, or has more than 26 digits.
    """
    rest, length = number, 1
    while rest >= _BASE**length:
        rest -= _BASE**length
        length += 1
    if number < 0 or length > 26:
        raise ValueError(f"an order key needs a number from 0 up to 26 digits, not {number}")
    return chr(ord("a") + length - 1) + _digits(rest, length)


def valid(key: str) -> bool:
    """Whether a text is an order key that something can be inserted before and after.

    A final ``0`` is refused outside the keys of numbers: nothing sorts between ``x`` and ``x0``.
    """
    if _KEY.fullmatch(key) is None:
        return False
    return not key.endswith("0") or _number_of(key) is not None


def between(low: str | None, high: str | None, *, tag: str, count: int) -> list[str]:
    """Rising keys strictly between two keys, as one run that no other run can interleave with.

    All keys share a prefix: a place between the bounds, then the length of the tag and the tag.
    Without an upper bound the place stays below the next number after ``low``, so that a numbered
    file added later still comes after the run. A thousand runs inserted one by one at the same
    end of the same gap make keys of about 40 characters; runs that are always put between the
    last two inserted cost half a character each.

    Args:
        low: The key before the run; None for the start.
        high: The key after the run; None for the end.
        tag: A short base-36 digest of the content, 1 to 35 characters.
        count: How many keys.

    Raises:
        ValueError: ``low`` is not below ``high``, a bound or the tag is no such text, or nothing
            sorts between the bounds (``x`` and ``x0``).
    """
    for bound in (low, high):
        if bound is not None and not valid(bound):
            raise ValueError(f"not an order key: {bound!r}")
    if low is not None and high is not None and low >= high:
        raise ValueError(f"the lower key {low!r} is not below the upper key {high!r}")
    if _KEY.fullmatch(tag) is None or len(tag) > _LONGEST_TAG:
        raise ValueError(f"a tag is 1 to {_LONGEST_TAG} characters of 0-9a-z, not {tag!r}")
    if count < 0:
        raise ValueError(f"a run has 0 or more keys, not {count}")
    prefix = _place(low, high) + _DIGITS[len(tag)] + tag
    # Suffixes of equal length rise, and none ends in 0.
    last, width = _BASE - 1, 1
    while last * _BASE ** (width - 1) < count:
        width += 1
    return [
        prefix + _digits(index // last, width - 1) + _DIGITS[index % last + 1]
        for index in range(count)
    ]


def _place(low: str | None, high: str | None) -> str:
    """A short text such that it and all that start with it lie between the bounds."""
    if low is None and high is None:
        return _descend(number_key(0), number_key(1), "middle")
    if high is None and low is not None:
        number = _number_of(low)
        return _descend(low, None if number is None else number_key(number + 1), "low")
    # The longer bound is the one inserted last: leaning towards it costs a thirty-sixth of a digit
    # where halving the gap costs a fifth, and who appends or prepends does so again.
    low = low or ""
    depth = len(low) - len(high or "")
    return _descend(low, high, "low" if depth > 0 else "high" if depth < 0 else "middle")


def _descend(low: str, high: str | None, lean: _Lean) -> str:
    """Walk down both bounds until a digit fits between theirs.

    A bound holds while every digit so far equals its own; once the walk has left it, every text
    is on the right side of it. Where two digits are neighbours the walk follows the lower one,
    which always has room above. The last digit is never 0, which has no room below.
    """
    prefix = ""
    ceiling = high
    while True:
        position = len(prefix)
        if ceiling is not None and position >= len(ceiling):
            raise ValueError(f"nothing sorts between {low!r} and {high!r}")
        lower = _digit(low, position)
        upper = _BASE if ceiling is None else _digit(ceiling, position)
        if upper - lower >= 2:
            middle = (lower + upper) // 2
            return prefix + _DIGITS[{"low": lower + 1, "middle": middle, "high": upper - 1}[lean]]
        prefix += _DIGITS[lower]
        if upper > lower:
            ceiling = None


def _digit(key: str, position: int) -> int:
    return _DIGITS.index(key[position]) if position < len(key) else 0


def _number_of(key: str) -> int | None:
    """The number in whose range a key lies: of ``number_key(n)`` or anything that extends it."""
    length = ord(key[0]) - ord("a") + 1
    digits = key[1 : length + 1]
    if length < 1 or len(digits) < length:
        return None
    number = sum(_BASE**shorter for shorter in range(1, length)) + int(digits, _BASE)
    # A final 0 is part of the number or a mistake.
    return None if key.endswith("0") and len(key) > length + 1 else number


def _digits(number: int, width: int) -> str:
    text = ""
    for _ in range(width):
        number, digit = divmod(number, _BASE)
        text = _DIGITS[digit] + text
    return text
