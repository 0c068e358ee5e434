"""The marks that git leaves in a file for two versions of it: the sides, and a file with one. Pure.

One rule: where the marks are not whole nobody knows where a side ends, and none is taken.
"""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from filestore.errors import FilestoreError

Side: TypeAlias = Literal["ours", "theirs"]

_MARK: Final = re.compile(rb"(?:([<|>])\1{6}(?: (.*))?|(=)={6})\r?\n?", re.DOTALL)
_AFTER: Final = {"": "<", "<": "|=", "|": "=", "=": ">"}
"""Which marks may follow one."""


class MarksBrokenError(FilestoreError, ValueError):
    """The marks of a conflict are not whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """One conflict of a file: its versions, and where it stands."""

    start: int
    """The byte at which its first mark begins."""
    end: int
    """The byte after its last mark."""
    lines: tuple[int, int]
    """Of its first and its last mark, 1-based."""
    ours: bytes
    base: bytes | None
    """What both were made from; None where git did not write it."""
    theirs: bytes
    ours_label: str
    theirs_label: str


@dataclass(frozen=True, slots=True)
class _Mark:
    kind: str
    line: int
    start: int
    end: int
    label: str


def conflicts(data: bytes) -> tuple[Marked, ...]:
    """The conflicts of a file, in their order; none where it has no mark.

    Raises:
        MarksBrokenError: A mark is missing, or one stands where none belongs.
    """
    found: list[Marked] = []
    marks: list[_Mark] = []
    for mark in _marks(data):
        wanted = _AFTER[marks[-1].kind if marks else ""]
        if mark.kind not in wanted:
            if not marks and mark.kind in "|=":
                # The line under a heading, or of a table.
                continue
            raise _broken(f"line {mark.line} has {mark.kind * 7}", wanted)
        marks.append(mark)
        if mark.kind == ">":
            found.append(_marked(data, marks))
            marks = []
    if marks:
        raise _broken("the file ends", _AFTER[marks[-1].kind])
    return tuple(found)


def with_side(data: bytes, side: Side) -> bytes:
    """A file in which each conflict has given way to one of its sides.

    Raises:
        MarksBrokenError: See `conflicts`.
    """
    pieces, end = [], 0
    for one in conflicts(data):
        pieces += [data[end : one.start], one.ours if side == "ours" else one.theirs]
        end = one.end
    return b"".join([*pieces, data[end:]])


def _marks(data: bytes) -> Iterator[_Mark]:
    start = 0
    for number, line in enumerate(io.BytesIO(data), start=1):
        match = _MARK.fullmatch(line) if line[:1] in (b"<", b"|", b"=", b">") else None
        if match is not None:
            kind = (match[1] or match[3]).decode()
            label = (match[2] or b"").decode("utf-8", "replace").rstrip("\r\n")
            yield _Mark(kind, number, start, start + len(line), label)
        start += len(line)


def _marked(data: bytes, marks: Sequence[_Mark]) -> Marked:
    first, *between, last = marks
    middle = between[-1]
    base = data[between[0].end : middle.start] if len(between) > 1 else None
    return Marked(
        start=first.start,
        end=last.end,
        lines=(first.line, last.line),
        ours=data[first.end : between[0].start],
        base=base,
        theirs=data[middle.end : last.start],
        ours_label=first.label,
        theirs_label=last.label,
    )


def _broken(found: str, wanted: str) -> MarksBrokenError:
    expected = " or ".join(kind * 7 for kind in wanted)
    return MarksBrokenError(
        f"its marks are not whole: {found} where {expected} was expected",
        remedy="resolve the conflict in an editor",
    )
