"""Three-way merges of chunk bodies; and a file in conflict, resolved as a person chose.

The trivial cases are decided here, the rest by git's own line merge in a child process. One rule: a
merge takes both changes whole or says where they overlap; no line is dropped in between. Where
markers are incomplete, the end of a side is unknown, and none is taken.
"""

import io
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.errors import FilestoreError

_MOST_CONFLICTS: Final = 127
"""Git counts conflicts in its exit status, up to this; what is above is an error."""
_SHORTEST_MARKER: Final = 32
_QUOTED: Final = 60
_CONTEXT: Final = 20
_BYTE_ORDER_MARK: Final = "\ufeff"
_MARKERS: Final = re.compile(r"<{32,}|\|{32,}|={32,}|>{32,}")
_SIDES: Final = ("ours", "base", "theirs")


class MergeFailedError(FilestoreError, OSError):
    """The disk refused what a merge needs."""


class Merged(Struct, frozen=True, kw_only=True):
    """Both changes in one text."""

    text: str


class Overlap(Struct, frozen=True, kw_only=True):
    """Two changes that only a person can bring together."""

    detail: str
    line: int = 0
    """Where the first of them is in our text, from 1; 0 where that is not known."""
    last_line: int = 0


class _Body(Struct, frozen=True, kw_only=True):
    """A text without what no merge is about."""

    text: str
    """With bare line ends, and one at its end unless it is empty."""
    byte_order_mark: str
    ending: str
    """The line ends that it ended in."""
    returns: bool
    """Whether every line ended in a carriage return and a line feed."""


def merge(base: str, ours: str, theirs: str) -> Merged | Overlap:
    """Bring two changed texts together.

    Line ends, final line ends and a byte-order mark follow `ours`, as far as `theirs` alone did not
    change them; they are no overlap.

    Args:
        base: What both were made from.
        ours: As a person edited it.
        theirs: As it is generated now.

    Raises:
        MergeFailedError: The disk refused.
    """
    old, mine, new = _body(base), _body(ours), _body(theirs)
    if mine.text == old.text:
        found: Merged | Overlap = Merged(text=new.text)
    elif mine.text == new.text or new.text == old.text:
        found = Merged(text=mine.text)
    else:
        found = _merge_with_git(old.text, mine.text, new.text)
    if isinstance(found, Overlap):
        return found
    ending = new.ending if mine.ending == old.ending else mine.ending
    body = replace(mine, text=found.text, ending=ending)
    text = body.text.rstrip("\n") + body.ending
    return Merged(
        text=(body.byte_order_mark + (text.replace("\n", "\r\n") if body.returns else text))
    )


def with_line_ends(text: str, body: str, head: bytes = b"") -> str:
    """A text with the line ends of the body whose place it takes.

    Args:
        text: The new body.
        body: The one that is there. One without line ends has those of `head`.
        head: What is above it in the file.
    """
    lines = body.encode("utf-8", "surrogatepass") if "\n" in body else head
    if b"\r\n" in lines and lines.count(b"\r\n") == lines.count(b"\n"):
        return text.replace("\r\n", "\n").replace("\n", "\r\n")
    return text


def _body(text: str) -> _Body:
    byte_order_mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    plain = text.removeprefix(_BYTE_ORDER_MARK)
    returns = "\r\n" in plain and plain.count("\r\n") == plain.count("\n")
    if returns:
        plain = plain.replace("\r\n", "\n")
    content = plain.rstrip("\n")
    return _Body(
        text=f"{content}\n" if content else "",
        byte_order_mark=byte_order_mark,
        ending=plain[len(content) :],
        returns=returns,
    )


def _merge_with_git(base: str, ours: str, theirs: str) -> Merged | Overlap:
    import tempfile

    from filestore.git import process

    width = max(map(len, _MARKERS.findall(base + ours + theirs)), default=0) + _SHORTEST_MARKER
    try:
        with tempfile.TemporaryDirectory(prefix="filestore-merge-") as folder:
            for name, text in zip(_SIDES, (ours, base, theirs), strict=True):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(text.encode("utf-8", "surrogatepass"))
            options = ("-p", "--diff3", f"--marker-size={width}")
            done = process.merge_files(folder, *options, *_SIDES)
    except process.NoAnswerError as error:
        return Overlap(detail=f"{error.message}, so that the two cannot be merged")
    except OSError as error:
        # Another time it may do: it is no overlap that a person has to look at.
        raise MergeFailedError(
            f"cannot merge texts in {tempfile.gettempdir()}: {error.strerror or error}"
            "; make room there, or name another folder in TMPDIR",
        ) from error
    # What git's answer means.
    if done.status == 0:
        return Merged(text=done.output.decode("utf-8", "surrogatepass"))
    if 0 < done.status <= _MOST_CONFLICTS:
        return _overlap(done.output.decode("utf-8", "surrogatepass"), ours, width)
    return Overlap(
        detail=f"git could not merge the two: {done.message or f'exit status {done.status}'}"
    )


def _overlap(output: str, ours: str, width: int) -> Overlap:
    """Where the first conflict of git's output is, and how many there are."""
    hunks = _hunks(output, width)
    mine, new = hunks[0]
    lines = ours.split("\n")
    starts = range(len(lines) - len(mine) + 1) if mine else ()
    line = next((at + 1 for at in starts if lines[at : at + len(mine)] == mine), 0)
    # Both sides, short, so that what differs is to be seen.
    yours, now = (" ".join(" ".join(side).split()) for side in (mine, new))
    pairs = enumerate(zip(yours, now, strict=False))
    shorter = min(len(yours), len(now))
    same = next((place for place, (one, other) in pairs if one != other), shorter)
    more = f", and {len(hunks) - 1} more" if len(hunks) > 1 else ""
    return Overlap(
        detail=f"yours {_quoted(yours, same)}, the source now {_quoted(now, same)}{more}",
        line=line,
        last_line=line + max(0, len(mine) - 1) if line else 0,
    )


def _hunks(output: str, width: int) -> list[tuple[list[str], list[str]]]:
    """Our and their lines of every conflict."""
    markers = {"<" * width: "ours", "|" * width: "base", "=" * width: "theirs", ">" * width: ""}
    found: list[dict[str, list[str]]] = []
    side = ""
    for line in output.split("\n"):
        marker = markers.get(line[:width]) if line[width : width + 1] in ("", " ") else None
        if marker is None:
            if side:
                found[-1][side].append(line)
            continue
        side = marker
        if side == "ours":
            found.append({name: [] for name in _SIDES})
    return [(hunk["ours"], hunk["theirs"]) for hunk in found]


def _quoted(text: str, place: int) -> str:
    """The quoted part of a text, around a place in it."""
    if not text:
        return "nothing"
    start = 0
    if len(text) > _QUOTED and place > _QUOTED - _CONTEXT:
        # From a word on, if one begins there.
        start = min(place - _CONTEXT, len(text) - _QUOTED)
        start = text.rfind(" ", max(0, start - _CONTEXT), start + 1) + 1 or start
    part = text[start : start + _QUOTED]
    after = "…" if start + _QUOTED < len(text) else ""
    return f'"{"…" if start else ""}{part}{after}"'


Side: TypeAlias = Literal["ours", "theirs", "both", "keep"]
"""What becomes of a hunk: one side, ours and then theirs, or its markers stay."""
Staged: TypeAlias = tuple[bytes | None, bytes | None]
"""Our and their bytes in git's index; None where that side has no file."""

_MARK: Final = re.compile(rb"(?:([<|>])\1{6}(?: (.*))?|(=)={6})\r?\n?", re.DOTALL)
_AFTER: Final = {"": "<", "<": "|=", "|": "=", "=": ">"}
"""Which markers may follow one."""


class MarkersBrokenError(FilestoreError, ValueError):
    """The markers of a conflict are incomplete."""


class NotResolvedError(FilestoreError, ValueError):
    """A choice in a file in conflict does not fit the file."""


class ConflictHunk(Struct, frozen=True, kw_only=True):
    """One conflict of a file: its versions, and where it is."""

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
            first, *between, last = markers
            middle = between[-1]
            hunk = ConflictHunk(
                start=first.start,
                end=last.end,
                lines=(first.line, last.line),
                ours=data[first.end : between[0].start],
                base=data[between[0].end : middle.start] if len(between) > 1 else None,
                theirs=data[middle.end : last.start],
                ours_label=first.label,
                theirs_label=last.label,
            )
            found.append(hunk)
            markers = []
    if markers:
        raise _broken("the file ends", _AFTER[markers[-1].kind])
    return tuple(found)


def resolved(data: bytes | None, sides: Sequence[Side], staged: Staged | None) -> bytes | None:
    """A file in conflict as a person chose it; None where it goes.

    Args:
        data: What it holds now; None where there is no file.
        sides: One for each of its hunks in their order, or one for all.
        staged: What git's index holds of it unmerged; None where it is merged. Without markers,
            as in a binary file or one that a side deleted or renamed, a side is the file.

    Raises:
        MarkersBrokenError: See `conflicts`.
        NotResolvedError: There is nothing to choose, or a choice too few or too many.
    """
    hunks = conflicts(data or b"")
    if hunks and data is not None:
        if len(sides) not in (1, len(hunks)):
            raise NotResolvedError(f"it has {len(hunks)} conflicts, and {len(sides)} choices")
        pieces, end = [], 0
        for number, one in enumerate(hunks):
            side = sides[number % len(sides)]
            pieces += [data[end : one.start], _chosen(data, one, side)]
            end = one.end
        return b"".join([*pieces, data[end:]])
    if staged is None:
        raise NotResolvedError("it has no conflict markers")
    if len(sides) != 1 or sides[0] not in ("ours", "theirs"):
        raise NotResolvedError("it has no conflict markers: take one side as a whole")
    if data not in staged:
        raise NotResolvedError("it has no conflict markers any more: 'git add' it if it is right")
    made = staged[0] if sides[0] == "ours" else staged[1]
    if made == data:
        raise NotResolvedError(f"it is as {sides[0]} already: 'git add' it, or 'git rm' it")
    return made


def _chosen(data: bytes, hunk: ConflictHunk, side: Side) -> bytes:
    if side == "keep":
        return data[hunk.start : hunk.end]
    return (hunk.ours if side != "theirs" else b"") + (hunk.theirs if side != "ours" else b"")


def _markers(data: bytes) -> Iterator[_Marker]:
    start = 0
    for number, line in enumerate(io.BytesIO(data), start=1):
        match = _MARK.fullmatch(line) if line[:1] in (b"<", b"|", b"=", b">") else None
        if match is not None:
            kind = (match[1] or match[3]).decode()
            label = (match[2] or b"").decode("utf-8", "replace").rstrip("\r\n")
            yield _Marker(kind, number, start, start + len(line), label)
        start += len(line)


def _broken(found: str, wanted: str) -> MarkersBrokenError:
    expected = " or ".join(kind * 7 for kind in wanted)
    return MarkersBrokenError(
        f"incomplete conflict markers: {found} where {expected} was expected"
        "; resolve the conflict in an editor",
    )
