"""What lists and pages say of files and resources: plain mappings, for all to read."""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from msgspec import Struct

from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject
from filestore.search.freshness import Freshness


class ShownSection(TypedDict):
    """A section of a document in place."""

    line: int | None
    """The first one in its file; None where its text has no lines of the file."""
    end_line: int | None
    """The last one."""
    page: int | None
    """On which it begins."""
    headings: list[str]
    """The headings above it."""


class ShownLink(TypedDict):
    """A link of a document in place."""

    line: int | None
    """In which it stands; None in metadata."""
    target: str
    """The document it leads to; where there is none, as it is written."""


class Backlink(TypedDict):
    """A link of another document in place to the one that is shown."""

    path: StorePath
    """The document that has it."""
    line: int | None
    """In which it stands; None in metadata."""


class Record(TypedDict):
    """What the store knows of a file."""

    indexed: bool
    """Whether it is in the index."""
    withheld: NotRequired[str | None]
    """The code that excludes it from search."""
    freshness: NotRequired[Freshness]
    """`fresh`: as indexed; `outdated`: as indexed, but its original changed or went; `edited`
    since."""
    resource: NotRequired[str]
    """Its resource."""
    kind: NotRequired[str | None]
    """`chunk` or `summary`."""
    source: NotRequired[str | None]
    """Its original."""
    document: NotRequired[Mapping[str, Any]]
    """What the original says about itself."""
    hand_edited: bool
    """Whether its text was edited by hand."""
    vector_ids: NotRequired[Any]
    """Of its texts."""
    file_hash: NotRequired[str]
    """Of the bytes that were indexed."""
    generation: NotRequired[int]
    """In which it was indexed."""
    title: NotRequired[str]
    """What a document in place calls itself; empty where it does not."""
    aliases: NotRequired[list[str]]
    """Its other names."""
    tags: NotRequired[list[str]]
    """Of its metadata and its text, each with those that it lies in."""
    sections: NotRequired[list[ShownSection]]
    """Of which it consists."""
    links: NotRequired[list[ShownLink]]
    """To other files, as it was indexed."""
    backlinks: NotRequired[list[Backlink]]
    """Links of others to it."""


class ChunkFile(TypedDict):
    """A chunk file of a resource, or a section of a document in place."""

    path: StorePath
    """Below the store root."""
    kind: str | None
    """`chunk` or `summary`; None where that is not known."""
    source: str | None
    """Its original."""
    edited: bool
    """Whether its text was edited by hand."""
    withheld: str | None
    """The code that excludes it from search."""
    line: NotRequired[int | None]
    """Of a section in place, the first one in its document."""
    end_line: NotRequired[int | None]
    """The last one."""
    page: NotRequired[int | None]
    """On which it begins."""
    headings: NotRequired[list[str]]
    """The headings above it."""


class Resource(TypedDict):
    """A resource; in place, a document."""

    resource: str
    """Its name; empty for files of none."""
    source: str | None
    """Its original."""
    chunks: int
    """How many it has; in place, how many sections."""


class Resources(JsonObject, Struct, frozen=True):
    """What `ls` prints."""

    items: list[Resource]
    """The resources; in place the documents, those of a folder where one is named."""


class ChunkFiles(JsonObject, Struct, frozen=True):
    """What `ls RESOURCE` prints."""

    items: list[ChunkFile]
    """Its chunk files, in reading order; of a document in place, its sections."""
