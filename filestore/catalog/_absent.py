"""Rows about what the tree has not, as values: files and texts that are gone, or wait for a choice.

Apart from the other rows, since most commands find none of these.
"""

from msgspec import Struct

from filestore.core.paths import ChunkPath


class Conflict(Struct, frozen=True, kw_only=True):
    """New source text that a hand edit stands in the way of; both versions are kept."""

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
