"""The line of a file that is meant by what is on the screen, for an editor. Pure.

A rendered text has other lines than its file, and no marks of Markdown. One rule: words are looked
for, and where they are not found no line is claimed.
"""

import re
from collections.abc import Sequence
from typing import Final

_WORD: Final = re.compile(r"\w+")
_NAMED: Final = re.compile(r"\blines? (\d{1,9})\b")
_MOST_HIDDEN: Final = 500
"""Characters that stand in a file between two words of what is read."""
_MOST_WORDS: Final = 8
"""Of what is looked for; the rest of a row adds nothing."""


def line_in_sight(text: str, row: str, share: float) -> int:
    """The line in which a row of the screen begins, from 1; 0 where that is not found.

    Args:
        text: The whole file.
        row: What the row says; its words stand in the file in this order.
        share: Of the text above the row, 0 to 1; of several places the nearest one is meant.
    """
    wanted = [word.lower() for word in _WORD.findall(row)][:_MOST_WORDS]
    words, lines = _words(text)
    for length in range(len(wanted), 0, -1):
        places = _places(words, wanted[:length])
        if places:
            meant = share * len(words)
            return lines[min(places, key=lambda place: abs(place - meant))]
    return 0


def line_of_query(text: str, query: str) -> int:
    """The line with most of the words of a query, the first of these; 0 where none has any.

    Args:
        text: The whole file; its frontmatter is no place that a person searches for.
        query: As it was typed.
    """
    wanted = {
        word.lower()
        for part in query.split()
        if not part.startswith("-")
        for word in _WORD.findall(part)
    }
    found = [0, 0]
    first = _frontmatter_lines(text)
    for number, line in enumerate(text.split("\n")[first:], start=first + 1):
        has = len(wanted.intersection(word.lower() for word in _WORD.findall(line)))
        if has > found[0]:
            found = [has, number]
    return found[1]


def line_of_passage(text: str, passage: str) -> int:
    """The line in which a passage of a file begins, from 1; 0 where it is not there.

    Its words stand in the file in order, with what a link hides between them.
    """
    wanted = _WORD.findall(passage)[:_MOST_WORDS]
    found: tuple[int, int] | None = None
    first = text.find(wanted[0]) if wanted else -1
    while first >= 0:
        at = end = first
        for word in wanted:
            at = text.find(word, end, end + _MOST_HIDDEN + len(word))
            if at < 0:
                break
            end = at + len(word)
        if at >= 0 and (found is None or end - first < found[0]):
            # Where its words stand closest together.
            found = end - first, first
        first = text.find(wanted[0], first + 1)
    return text.count("\n", 0, found[1]) + 1 if found is not None else 0


def line_named(detail: str) -> int:
    """The first line that the words of a finding name; 0 for none."""
    named = _NAMED.search(detail)
    return int(named.group(1)) if named is not None else 0


def _frontmatter_lines(text: str) -> int:
    if not text.startswith(("---\n", "---\r\n", "\ufeff---")):
        return 0
    end = re.search(r"\n---[ \t]*\r?(?:\n|\Z)", text)
    return text.count("\n", 0, end.end()) if end is not None else 0


def _words(text: str) -> tuple[Sequence[str], Sequence[int]]:
    """The words of a text behind its frontmatter, and the line of each."""
    words: list[str] = []
    lines: list[int] = []
    first = _frontmatter_lines(text)
    for number, line in enumerate(text.split("\n")[first:], start=first + 1):
        found = _WORD.findall(line.lower())
        words += found
        lines += [number] * len(found)
    return words, lines


def _places(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    length = len(wanted)
    return [
        place
        for place, word in enumerate(words)
        if word == wanted[0] and list(words[place : place + length]) == list(wanted)
    ]
