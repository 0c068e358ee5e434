r"""Words that markup parts: `caf&eacute;`, `un**believ**able`, `H<sub>2</sub>O`, `snake\_case`.

They are read as one word, and found as one beside their parts, since the same signs may be meant as
they stand. Pure, and in linear time. One rule: where such a word stands is where it is shown.
"""

import html
import re
from collections.abc import Iterator
from typing import Final

INVISIBLE: Final = "\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""Signs that part a word where it may be broken, join letters, or turn them."""

_MARKUP: Final = (
    r"\*{1,3}|~~|==|\\(?=_)|</?(?:abbr|b|big|del|em|font|i|ins|mark|s|small|span|strong|sub|sup|tt"
    rf"|u|wbr)(?:\s[^<>\n]{{0,200}})?/?>|[{INVISIBLE}]"
)
_ENTITY: Final = r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_PART: Final = re.compile(rf"{_MARKUP}|{_ENTITY}")
_WHOLE: Final = re.compile(rf"\w*+(?:(?:{_PART.pattern})++\w*+)++")
_BARE: Final = re.compile(_MARKUP)
_WORD: Final = re.compile(r"\w+")
_LONGEST: Final = 64
"""Letters before the first sign; longer words are indexed by none of their parts."""


def parted_words(text: str) -> Iterator[tuple[int, int, str]]:
    """The words of a text that markup parts: start, end, and what is read there."""
    end = 0
    for part in _PART.finditer(text):
        if part.start() < end:
            continue
        start = part.start()
        while start > end and part.start() - start < _LONGEST and _is_of_word(text[start - 1]):
            start -= 1
        whole = _WHOLE.match(text, start)
        if whole is None:
            continue
        end = whole.end()
        read = _BARE.sub("", html.unescape(_BARE.sub("", whole[0])))
        apart = set(_WORD.findall(_PART.sub(" ", whole[0])))
        if not apart.issuperset(_WORD.findall(read)) or "&" in read.strip("&"):
            yield start, end, read


def _is_of_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"
