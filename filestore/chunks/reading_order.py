"""The files of a resource as a person reads them: in order, or put together. Pure.

A resource of plain names, ``chunk1.md`` to ``chunk1000.md``, is put in order by their numbers
alone; any other by `chunkfile.sort_key`, which says what the order is. One rule: no single call
of code that is not Python's goes over more than a block, so that no other thread is kept waiting.
"""

import heapq
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from filestore import chunking
from filestore.chunks import chunk_file
from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject

BLOCK: Final = 4096
"""Files that are handled in one call."""

_SPAN: Final = 64 * 1024
_NUMBERS: Final = b"0123456789,-"
_END: Final = b".md"
_MOST: Final = 10**18
"""`chunkfile.sort_key` takes longer numbers for words."""


class Block(Struct, frozen=True):
    """Some consecutive files, in reading order."""

    ids: "array[int]"
    names: str
    """What follows the prefix of their paths, separated by NUL."""


class Ordered(Struct, frozen=True):
    """The files of one resource, in reading order."""

    prefix: str
    """What the paths of all of them begin with."""
    blocks: tuple[Block, ...]

    def ids(self) -> "array[int]":
        """The ids of all files."""
        found = array("q")
        for block in self.blocks:
            found += block.ids
        return found

    def paths(self, block: Block) -> str:
        """The paths of a block's files, separated by NUL."""
        return self.prefix + block.names.replace("\0", f"\0{self.prefix}")


def by_number(prefix: str, ids: bytes, paths: bytes) -> Ordered | None:
    """Put files in order that are called ``chunkN.md`` or ``summaryN.md``; None for others.

    Args:
        prefix: The folder of the resource, with its slash.
        ids: Their ids, separated by commas.
        paths: Their paths, separated by NUL, in the order of the ids.
    """
    numbers: list[int] = []
    folder = prefix.encode("utf-8", "surrogateescape")
    for piece in _pieces(paths, b"\0"):
        found = _numbers(folder, piece)
        if found is None:
            return None
        numbers += found
    known: list[int] = []
    for piece in _pieces(ids, b","):
        known += orjson.loads(b"[%b]" % piece)
    # A summary comes right behind the chunk of its number.
    has_summaries = b"summary" in paths
    keys = [2 * abs(one) + (one < 0) for one in numbers] if has_summaries else numbers
    return Ordered(
        prefix,
        tuple(
            Block(
                array("q", [known[place] for place in some]),
                _names([numbers[place] for place in some], has_summaries=has_summaries),
            )
            for some in _blocks(order_of(keys))
        ),
    )


def by_key(rows: Sequence[tuple[int, str | None, str]]) -> Ordered:
    """Put files in order, whatever they are called.

    Args:
        rows: Id, order key of the frontmatter, and path of each.
    """
    keys = [chunk_file.sort_key(position, path) for _, position, path in rows]
    return Ordered(
        "",
        tuple(
            Block(
                array("q", [rows[place][0] for place in some]),
                "\0".join([rows[place][2] for place in some]),
            )
            for some in _blocks(order_of(keys))
        ),
    )


def order_of(keys: Sequence[Any]) -> list[int]:
    """The places of keys, smallest first; of equal ones the first comes first."""
    places = range(len(keys))
    if len(keys) <= BLOCK:
        return sorted(places, key=keys.__getitem__)
    runs = [sorted(places[at : at + BLOCK], key=keys.__getitem__) for at in places[::BLOCK]]
    return list(heapq.merge(*runs, key=keys.__getitem__))


def _numbers(folder: bytes, paths: bytes) -> list[int] | None:
    """The number in each name, below 0 for a summary; None where a name is another one.

    Whatever is between two numbers is replaced by a comma, and the rest read as JSON, which
    knows no number with a zero before it: a hundred times as quick as looking at each name.
    """
    joined = _END + b"\0" + paths
    rest = joined.replace(b".md\0%bchunk" % folder, b",")
    rest = rest.replace(b".md\0%bsummary" % folder, b",-")
    rest, end = rest[1:-3], rest[-3:]
    summaries = joined.count(b"\0%bsummary" % folder)
    if end != _END or rest.translate(None, _NUMBERS) or rest.count(b"-") != summaries:
        return None
    try:
        found: list[int] = orjson.loads(b"[%b]" % rest)
    except orjson.JSONDecodeError:
        return None
    is_each = len(found) == paths.count(b"\0") + 1 and b"-0" not in rest
    return found if is_each and min(found) > -_MOST and max(found) < _MOST else None


def _names(numbers: list[int], *, has_summaries: bool) -> str:
    """The names that `_numbers` found these in."""
    if has_summaries:
        return "\0".join([f"chunk{one}.md" if one >= 0 else f"summary{-one}.md" for one in numbers])
    joined = orjson.dumps(numbers)[1:-1].replace(b",", b".md\0chunk")
    return f"chunk{joined.decode('ascii')}.md"


def _pieces(joined: bytes, separator: bytes) -> Iterator[bytes]:
    """A long text in parts, cut at separators."""
    start = 0
    while (end := joined.find(separator, start + _SPAN)) >= 0:
        yield joined[start:end]
        start = end + 1
    yield joined[start:]


def _blocks(order: list[int]) -> Iterator[list[int]]:
    for at in range(0, len(order), BLOCK):
        yield order[at : at + BLOCK]


class Reconstruction(JsonObject, Struct, frozen=True, kw_only=True):
    """A text put together again."""

    KEYS = "chunks bytes path warnings text"
    SPARSE = "text"

    text: str
    """The text; not with `-o`."""
    chunks: int
    """How many were joined."""
    warnings: tuple[str, ...]
    """What may be missing or doubled."""
    path: str | None = None
    """The file written with `-o`, else None."""

    @property
    def data(self) -> bytes:
        """The text as it is written to a file."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def bytes(self) -> int:
        """Of the text in UTF-8."""
        return len(self.data)


class Written(Struct, frozen=True):
    """A chunk as it is written, with what it says of itself; that may be anything."""

    source: str | None
    body: str
    overlap: object = 0
    repeats: object = None


_FENCE: Final = re.compile(r"[ >\t]*(?:[-+*]|[0-9]{1,9}[.)])?[ >\t]*(`{3,}|~{3,})")
_REPEATED: Final = re.compile(
    r"[ >\t]*(?:(?:[-+*]|[0-9]{1,9}[.)])(?:\s|$)|`{3,}|~{3,}|.*\n[ >\t|:-]+\r?\n)"
)
"""What a piece may begin with again: an item, a fence, a row over a row of dashes."""


def own_texts(chunks: Iterable[Written]) -> list[str]:
    """The bodies of chunks in reading order, without what they repeat.

    It is left out only where that is sure: an overlap ends the chunk before; each line at a start
    is further above in the document, too; a fence is closed where the next chunk opens it again.
    """
    texts: list[str] = []
    before, above, closing = Written(None, ""), _Above(), ""
    for chunk in chunks:
        if chunk.source != before.source:
            above, closing = _Above(), _added(texts, above, closing)
        body = _without_overlap(before.body, chunk.body, chunk.overlap)
        start, end = _repeated(body, chunk.repeats) if body is chunk.body else (0, len(body))
        head = body[:start]
        fence = _FENCE.match(head[head.rfind("\n", 0, -1) + 1 :])
        if (fence and not fence[1].startswith(closing.strip(" >\t\r\n") or "-")) or not (
            _REPEATED.match(head) and above.has_all(head)
        ):
            head = ""
        if not (head and fence):
            _added(texts, above, closing)
        closing = body[end:]
        texts.append(body[len(head) : end])
        above.add(texts[-1])
        before = chunk
    _added(texts, above, closing)
    return texts


def _added(texts: list[str], above: "_Above", text: str) -> str:
    """A text at the end of the last one after all; returns that nothing is left."""
    if text:
        texts[-1] += text
        above.add(text)
    return ""


class _Above:
    """The lines of a document so far."""

    def __init__(self) -> None:
        self._lines: set[str] = set()
        self._last = ""

    def add(self, text: str) -> None:
        """Go on."""
        *lines, self._last = f"{self._last}{text}".split("\n")
        self._lines.update(line.rstrip("\r") for line in lines)

    def has_all(self, text: str) -> bool:
        """Whether every line of a text is there."""
        return all(line.rstrip("\r") in self._lines for line in text.split("\n")[:-1])


def _repeated(body: str, repeats: object) -> tuple[int, int]:
    """Where what a body repeats at its start ends, and where that at its end starts."""
    if not isinstance(repeats, list | tuple) or [*map(type, repeats)] != [int, int]:
        return 0, len(body)
    start, length = repeats
    if not 0 < start <= len(body):
        start = 0
    elif body[start - 1] != "\n":
        # A program that gave each line a carriage return did not count it.
        start += body[: 2 * start].replace("\r\n", "\n").count("\n", 0, start)
        start = start if body[start - 1 : start] == "\n" else 0
    stem = body.rstrip("\r\n")
    last = stem.rfind("\n") + 1
    fence = _FENCE.fullmatch(stem, last)
    if length <= 0 or fence is None or last < start:
        return start, len(body)
    # One that closes a line that was cut itself begins with a line end.
    extra = length - (len(stem) - last) - 1
    if extra not in (0, 1):
        return start, len(body)
    if extra:
        last -= 2 if stem[:last].endswith("\r\n") else 1
    return start, max(last, start)


def _without_overlap(before: str, body: str, overlap: object) -> str:
    """A body without its first characters, if they repeat the end of the chunk before."""
    if type(overlap) is int and 0 < overlap <= len(before) and before.endswith(body[:overlap]):
        return body[overlap:]
    return body


def reconstruct(chunks: Sequence[tuple[StorePath, chunk_file.Chunk]]) -> Reconstruction:
    """Join chunks into the text they were cut from.

    Args:
        chunks: Path and chunk, summaries left out, in any order.
    """
    ordered = sorted(chunks, key=lambda pair: chunk_file.sort_key(pair[1].order, pair[0]))
    texts = own_texts(Written(c.source, c.body, c.overlap, c.repeats) for _, c in ordered)
    warnings: list[str] = []
    for (path, chunk), text in zip(ordered, texts, strict=True):
        if chunk.overlap and len(text) == len(chunk.body):
            warnings.append(
                f"{path}: the first {chunk.overlap} characters do not repeat the end of the"
                " chunk before"
            )
        if len(text) > len(chunk.body) - sum(chunk.repeats):
            warnings.append(
                f"{path}: what it repeats is not as it was above, and stays in the text"
            )
        if chunk_file.hand_edited(chunk):
            warnings.append(f"{path}: edited by hand")
    return Reconstruction(text=chunking.join(texts), chunks=len(texts), warnings=tuple(warnings))
