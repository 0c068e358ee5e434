"""What rows of the catalog mean, as values, and paths as it stores them. Touches no database."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import astuple

from filestore.core.hashing import content_hash
from filestore.core.paths import SUMMARIES, ChunkPath

VARIABLES: Final = 900
"""How many values one statement takes."""

SOME_TIME: Final = 1
"""When a text was embedded of which that is not known."""

BEFORE: Final = 0
"""The generation of files that an earlier catalog had forgotten."""

FILE_COLUMNS: Final = (
    "id, path, state, detail, file_hash, text_key, kind, resource, source, position, origin,"
    " edited, generation, place"
)
BODY: Final = "(parts.part = 0 AND files.kind <> 'questions' OR files.kind = 'document')"
"""What a file says itself, each section of a document too; the rest are questions."""

Value = TypeVar("Value")


class FileRow(Struct, frozen=True):
    """What the catalog knows of one file; fields in the order of its columns."""

    id: int
    path: ChunkPath
    state: str
    """'' for an indexed chunk, 'record', or the code that excludes it."""
    detail: str
    file_hash: bytes
    text_key: bytes
    kind: str
    resource: str
    source: str | None
    """The chunk's own source; None where its resource's record tells it."""
    position: str | None
    """The order key of its frontmatter."""
    origin: str | None
    edited: bool
    """Whether the body differs from what was generated."""
    generation: int
    place: str = ""
    """Headings and pages, as `encode_place` gives them."""

    def headings_and_pages(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Where in its document the text is.

        Raises:
            sqlite3.DatabaseError: No version wrote such a row.
        """
        if not self.place:
            return (), ()
        try:
            headings, pages = orjson.loads(self.place)
            return tuple(map(str, headings)), tuple(map(int, pages))
        except (ValueError, TypeError) as error:
            raise sqlite3.DatabaseError("the headings or pages of a file are unreadable") from error

    def checksum(self) -> bytes:
        """16 bytes over the row, because SQLite checks no data page."""
        return content_hash(repr(astuple(self)).encode("utf-8", "surrogatepass"))


class IndexFile(Struct, frozen=True):
    """The FAISS file that the catalog names."""

    name: str
    size_bytes: int
    hash: str
    """xxh3_128, hexadecimal."""
    generation: int


def encode_place(headings: Sequence[str], pages: Sequence[int]) -> str:
    """Headings and pages as the catalog stores them: a JSON list of two, "" for neither."""
    return orjson.dumps([headings, pages]).decode() if headings or pages else ""


def encode_path(path: ChunkPath) -> bytes:
    """A path as the catalog stores it: the bytes on disk."""
    return path.encode("utf-8", "surrogateescape")


def decode_path(path: bytes) -> ChunkPath:
    """The inverse of `encode_path`."""
    return ChunkPath(path.decode("utf-8", "surrogateescape"))


MADE: Final = (f"{SUMMARIES}/".encode(), f"{SUMMARIES}0".encode())
"""Between these lie the paths of what was made of documents in place."""
_FILE_BITS: Final = 40


def text_id(file: int, part: int) -> int:
    """The full-text id of a part of a file; that of part 0 is the file id."""
    return part << _FILE_BITS | file


def file_of_text(text: int) -> int:
    """The file of a full-text id."""
    return text & ((1 << _FILE_BITS) - 1)


def part_of_text(text: int) -> int:
    """The part of a full-text id."""
    return text >> _FILE_BITS


def in_batches(values: Sequence[Value], size: int = VARIABLES) -> Iterator[Sequence[Value]]:
    """Consecutive slices of at most `size` values."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def placeholders(values: Sequence[object]) -> str:
    """As many question marks as there are values."""
    return ",".join("?" * len(values))


class Conflict(Struct, frozen=True, kw_only=True):
    """New source text that conflicts with a hand edit; both versions are kept."""

    path: ChunkPath
    """Of the chunk file, below `chunked/`."""
    base: str
    """Origin of the text that was edited."""
    theirs: str | None
    """The new text; None where the source has none any more."""
    origin: str | None
    """Its hash."""
    headings: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    detail: str = ""
    """Where the two overlap, for a person."""
    source: str = ""
    """The document, relative to the store root."""
    document: str = ""
    """Its hash as it was then; "" where it was gone."""


class Deleted(Struct, frozen=True, kw_only=True):
    """A chunk file that a person deleted, while its record still has its text."""

    path: ChunkPath
    """Below `chunked/`."""
    origin: str
    source: str | None
    """The document that the file named; None where its record tells it."""


class Forgotten(Struct, frozen=True, kw_only=True):
    """What was last seen of a file that is gone."""

    path: ChunkPath
    file_hash: bytes
    """Of `data`, unless the catalog is damaged."""
    data: bytes
    mtime_ns: int
    """When it was written; 0 where that is not known."""
    generation: int


class LinkRow(Struct, frozen=True, kw_only=True):
    """A link from one file to another that is not there."""

    path: ChunkPath
    target: ChunkPath
    moved_to: ChunkPath | None
    """Where the target went, if that was seen and it is there."""
