"""Two texts as a unified diff for a person to read. Pure.

One rule: it ends, whatever the texts are: what is too much to be compared line by line is shown as
one change, and what is too long to be read is cut, and marked as cut.
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

MOST_BYTES: Final = 200_000
_MOST_LINES: Final = 3_000
"""The most differing lines that are compared: that takes the square of their number."""
_CONTEXT: Final = 3
_NO_END: Final = "\\ No newline at end of file"


class Difference(Struct, frozen=True, kw_only=True):
    """How one text became another."""

    text: str = ""
    """A unified diff; empty where they are equal."""
    cut: bool = False
    """Whether there is more of it."""
    line: int = 0
    """The first line of the new text that differs, 1-based; 0 where none does."""


def unified(
    before: str, after: str, *, names: tuple[str, str], most_bytes: int = MOST_BYTES
) -> Difference:
    """Compare two texts line by line.

    Args:
        before: The old text.
        after: The new one.
        names: What the two are called in the head of the diff; no line ends in them.
        most_bytes: So much of the diff is given, in UTF-8.
    """
    if before == after:
        return Difference()
    old, new = _lines(before), _lines(after)
    pairs = zip(old, new, strict=False)
    same = next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
    body = _hunks(old, new, same)
    head = [f"--- {names[0]}", f"+++ {names[1]}"]
    text = "\n".join([*head, *body])
    data = text.encode("utf-8", "surrogatepass")
    if cut := len(data) > most_bytes:
        text = data[:most_bytes].decode("utf-8", "ignore")
    return Difference(text=text, cut=cut, line=min(same + 1, max(1, len(new))))


def unified_bytes(before: bytes, after: bytes, *, names: tuple[str, str], most_bytes: int) -> str:
    """A unified diff of what two files hold, with a last line of its own where it is cut.

    Bytes that are no text are written out, so that no change of them is lost.
    """
    old, new = (data.decode("utf-8", "backslashreplace") for data in (before, after))
    found = unified(old, new, names=names, most_bytes=most_bytes)
    return f"{found.text}\n(cut)" if found.cut else found.text


def _lines(text: str) -> list[str]:
    """Lines with their line feeds; other line ends are left to the caller."""
    parts = text.split("\n")
    ended = [f"{part}\n" for part in parts[:-1]]
    return [*ended, parts[-1]] if parts[-1] else ended


def _hunks(old: Sequence[str], new: Sequence[str], same: int) -> Iterator[str]:
    rest = min(len(old), len(new)) - same
    tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    if len(old) + len(new) - 2 * (same + tail) <= _MOST_LINES:
        start, stop = max(0, same - _CONTEXT), max(0, tail - _CONTEXT)
        found = difflib.SequenceMatcher(
            None, old[start : len(old) - stop], new[start : len(new) - stop]
        )
        groups = [
            [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]
            for group in found.get_grouped_opcodes(_CONTEXT)
        ]
    else:
        before, after = min(_CONTEXT, same), min(_CONTEXT, tail)
        a, b = len(old) - tail, len(new) - tail
        groups = [
            [
                ("equal", same - before, same, same - before, same),
                ("replace", same, a, same, b),
                ("equal", a, a + after, b, b + after),
            ]
        ]
    for group in groups:
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from _marked(" ", old[a:b])
            else:
                yield from _marked("-", old[a:b])
                yield from _marked("+", new[c:d])


def _range(start: int, stop: int) -> str:
    """A range of lines as the format has it: an empty one is named by the line before it."""
    return f"{start + 1 if stop > start else start},{stop - start}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line.removesuffix(chr(10))}"
        if not line.endswith("\n"):
            yield _NO_END
