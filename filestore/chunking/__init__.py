"""What of a text counts: its tokens, not the data in it. And what was split says of how.

Pure: no disk, no model; tokens are counted in one way, so that another model means no other pieces.
A token is about a word piece of an English BERT vocabulary: up to seven letters, two digits, one
character of a script without spaces, one sign.

Data is letters and digits: pictures in `data:` addresses, keys, files as Base64. It says nothing to
a person, so neither words nor meaning are taken from it. Data is the address of a `data:` link; a
run of at least 256 letters, digits and `+/=_-` without a blank; and four or more lines that are one
run of at least 48 each. A run is data only with a digit among 25 signs and few hyphens, as rules
and long names have not. All in linear time whatever the text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import AnyStr, Final

from msgspec import Struct

from filestore.core.spelling import UNSPACED

_LETTERS_PER_TOKEN: Final = 7
# Compiled when a text that is not ASCII asks for it: `re` keeps it then.
_TOKEN: Final = (
    rf"[A-Za-z]{{1,{_LETTERS_PER_TOKEN}}}|[0-9]{{1,2}}"
    rf"|[{UNSPACED}]|[^\W\dA-Za-z_{UNSPACED}]{{1,2}}|\S"
)
_LETTERS: Final = bytes(97 if code < 128 and chr(code).isalpha() else 32 for code in range(256))
_NOT_LETTERS: Final = bytes(
    32 if chr(code).isspace() or chr(code).isalpha() else 48 if chr(code).isdigit() else 46
    for code in range(256)
)


def count_tokens(text: str) -> int:
    """How many tokens a text has: the same everywhere, and 0 for an empty text."""
    if not text.isascii():
        return len(re.findall(_TOKEN, text))
    # Three times as fast: runs collapse to one byte a token.
    data = text.encode("ascii")
    letters = b" " + data.translate(_LETTERS)
    letters = letters.replace(b"a" * _LETTERS_PER_TOKEN, b"A")
    others = data.translate(_NOT_LETTERS).replace(b"00", b".")
    tails = letters.count(b" a") + letters.count(b"Aa")
    return letters.count(b"A") + tails + len(others) - others.count(b" ")


CHUNKER: Final = "structure/3"
"""Name and version of what `blocks.split` makes; another output needs another version."""


class Section(Struct, frozen=True, kw_only=True):
    """One stretch of a document that is found by itself."""

    start: int
    """Of its text in the body, in characters."""
    end: int
    """Not included."""
    headings: tuple[str, ...]
    """Titles of the sections around all that it holds, outermost first.

    Plain text. The title of the text comes first, unless the first heading says the same. Outer
    titles are left out where the path would take more than half the budget. Of code a name that the
    next begins with is left out.
    """
    line: int = 0
    """The first line of the file that it is on, from 1; 0 where the file has no such lines."""
    end_line: int = 0
    """The last one."""
    page: int = 0
    """The page that it starts on, from 1; 0 where there are none."""
    before: str = ""
    """Lines from above that go before its text where it is a file: a table's header, a fence."""
    after: str = ""
    """A fence that closes it there."""


class Symbol(Struct, frozen=True, kw_only=True):
    """A named part without a heading: a class, a function."""

    start: int
    """Offset in characters; what leads up to it (comments, decorators) belongs to it."""
    level: int
    """1 for the outermost."""
    title: str
    """A name on one line, such as ``Reader`` or ``Reader.open``; empty where the text goes back to
    the section around, after the end of one inside it."""


def label(budget: int, *, way: str = CHUNKER) -> str:
    """What a record says of how its text was split; another label means another split.

    Args:
        budget: The most tokens of a piece.
        way: Name and version of how.
    """
    return f"{way}:{budget}"


def join(texts: Sequence[str]) -> str:
    """The text whose pieces these are, the inverse of `blocks.split`."""
    return "".join(texts)


_LONG: Final = 256
_LINE: Final = 48
_SIGNS: Final = "[A-Za-z0-9+/=_-]"
_ADDRESS: Final = re.compile(
    r"\bdata:(?:(?:image|audio|video|font|text|application|model)/[\w.+-]+)?"
    r"(?:;[\w.+-]+(?:=[\w.+-]+)?)*,[^\s\"'()<>\\]*",
    re.IGNORECASE,
)
_RUN: Final = re.compile(rf"(?<!{_SIGNS}){_SIGNS}{{{_LONG},}}")
_WHOLE_LINE: Final = re.compile(rf"^[ \t>]*{_SIGNS}{{{_LINE},}}[ \t\r]*$", re.MULTILINE)
_LAST_LINE: Final = re.compile(rf"\n[ \t>]*(?=\S*[\d=]){_SIGNS}+[ \t\r]*$", re.MULTILINE)
_LEAST_LINES: Final = 4
_JOINTS: Final = re.compile(r"[_-]")
_DIGITS: Final = re.compile(r"\d")
_VISIBLE: Final = re.compile(r"[^\n]")


def data_spans(text: str) -> list[tuple[int, int]]:
    """Where data is in a text: start and end in characters, in order."""
    is_long = _has_long_word(text)
    if not is_long and "data:" not in text and "DATA:" not in text:
        return []
    found = [one.span() for one in _ADDRESS.finditer(text) if ";" in one[0] or "/" in one[0]]
    if is_long:
        runs = [match.span() for match in _RUN.finditer(text)]
        for start, end in (*runs, *_blocks(text)):
            run = text[start:end]
            is_dense = len(_DIGITS.findall(run)) * 25 >= len(run)
            if is_dense and len(_JOINTS.findall(run)) * 10 <= len(run):
                found.append((start, end))
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _has_long_word(text: str) -> bool:
    """Whether some word may be as long as a line of data: most windows of a text have a blank."""
    at = 0
    while at + _LINE <= len(text):
        blank = text.rfind(" ", at, at + _LINE)
        if blank < 0:
            blank = text.rfind("\n", at, at + _LINE)
        if blank < 0:
            return max(map(len, text.split()), default=0) >= _LINE
        at = blank + 1
    return False


def without_data(text: str) -> str:
    """A text without its data."""
    spans = data_spans(text)
    if not spans:
        return text
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def blanked_data(text: str) -> str:
    """A text with blanks in place of its data, so that all else stays where it was."""
    return blanked(text, data_spans(text))


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with blanks in place of some stretches, which are in order; line ends stay."""
    pieces, end = [], 0
    for start, stop in spans:
        pieces += [text[end:start], _VISIBLE.sub(" ", text[start:stop])]
        end = stop
    return "".join([*pieces, text[end:]]) if pieces else text


def fenced(
    text: AnyStr, fence: re.Pattern[AnyStr], backtick: AnyStr, start: int = 0
) -> Iterator[tuple[int, int]]:
    """Where blocks of fenced code begin and end; one that is never closed ends with the text.

    Args:
        text: With the blocks.
        fence: What begins or ends one: the mark, and the rest of its line.
        backtick: The sign, as text has it.
        start: Where to begin.
    """
    opened: re.Match[AnyStr] | None = None
    for match in fence.finditer(text, start):
        mark, words = match[1], match[2]
        if opened is None:
            # Backticks after backticks are a span of code on one line, not a fence.
            if not (mark[:1] == backtick and backtick in words):
                opened = match
        elif mark.startswith(opened[1]) and not words.strip():
            yield opened.start(), match.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Adjacent lines of one run each, with the shorter one that ends them."""
    lines = [match.span() for match in _WHOLE_LINE.finditer(text)]
    first = 0
    for place, (_, end) in enumerate(lines):
        if place + 1 < len(lines) and lines[place + 1][0] == end + 1:
            continue
        last = _LAST_LINE.match(text, end)
        if place - first + 1 + (last is not None) >= _LEAST_LINES:
            yield lines[first][0], last.end() if last else end
        first = place + 1
