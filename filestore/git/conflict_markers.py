"""Conflict markers of git: the conflicts of a file, and the file with one side taken. Pure.

One rule: where the markers are incomplete, the end of a side is unknown, and none is taken.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from filestore.core.errors import FilestoreError

Side: TypeAlias = Literal["ours", "theirs"]

_MARK: Final = re.compile(rb"(?:([<|>])\1{6}(?: (.*))?|(=)={6})\r?\n?", re.DOTALL)
_AFTER: Final = {"": "<", "<": "|=", "|": "=", "=": ">"}
"""Which markers may follow one."""


class MarkersBrokenError(FilestoreError, ValueError):
    """The markers of a conflict are incomplete."""


class ConflictHunk(Struct, frozen=True, kw_only=True):
    """One conflict of a file: its versions, and where it stands."""

    start: int
    """The byte at which its first marker begins."""
    end: int
    """The byte after its last marker."""
    lines: tuple[int, int]
    """Of its first and its last marker, 1-based."""
    ours: bytes
    base: bytes | None
    """What both were made from; None where git did not write it."""
    theirs: bytes
    ours_label: str
    theirs_label: str


class _Marker(Struct, frozen=True):
    kind: str
    line: int
    start: int
    end: int
    label: str


def conflicts(data: bytes) -> tuple[ConflictHunk, ...]:
    """The conflicts of a file, in their order; none where it has no marker.

    Raises:
        MarkersBrokenError: A marker is missing or misplaced.
    """
    found: list[ConflictHunk] = []
    markers: list[_Marker] = []
    for marker in _markers(data):
        wanted = _AFTER[markers[-1].kind if markers else ""]
        if marker.kind not in wanted:
            if not markers and marker.kind in "|=":
                # The line under a heading, or of a table.
                continue
            raise _broken(f"line {marker.line} has {marker.kind * 7}", wanted)
        markers.append(marker)
        if marker.kind == ">":
            found.append(_hunk(data, markers))
            markers = []
    if markers:
        raise _broken("the file ends", _AFTER[markers[-1].kind])
    return tuple(found)


def with_side(data: bytes, side: Side) -> bytes:
    """A file in which each conflict has given way to one of its sides.

    Raises:
        MarkersBrokenError: See `conflicts`.
    """
    pieces, end = [], 0
    for one in conflicts(data):
        pieces += [data[end : one.start], one.ours if side == "ours" else one.theirs]
        end = one.end
    return b"".join([*pieces, data[end:]])


def _markers(data: bytes) -> Iterator[_Marker]:
    start = 0
    for number, line in enumerate(io.BytesIO(data), start=1):
        match = _MARK.fullmatch(line) if line[:1] in (b"<", b"|", b"=", b">") else None
        if match is not None:
            kind = (match[1] or match[3]).decode()
            label = (match[2] or b"").decode("utf-8", "replace").rstrip("\r\n")
            yield _Marker(kind, number, start, start + len(line), label)
        start += len(line)


def _hunk(data: bytes, markers: Sequence[_Marker]) -> ConflictHunk:
    first, *between, last = markers
    middle = between[-1]
    base = data[between[0].end : middle.start] if len(between) > 1 else None
    return ConflictHunk(
        start=first.start,
        end=last.end,
        lines=(first.line, last.line),
        ours=data[first.end : between[0].start],
        base=base,
        theirs=data[middle.end : last.start],
        ours_label=first.label,
        theirs_label=last.label,
    )


def _broken(found: str, wanted: str) -> MarkersBrokenError:
    expected = " or ".join(kind * 7 for kind in wanted)
    return MarkersBrokenError(
        f"incomplete conflict markers: {found} where {expected} was expected",
        remedy="resolve the conflict in an editor",
    )
