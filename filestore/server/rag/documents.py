"""The documents that a client sends, as chunk files have them, and back.

One rule: id and metadata come back as they were given. Each document is one chunk file; its id, and
metadata whose names the store needs for itself, stand in the frontmatter under keys of our own.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import orjson
from msgspec import UNSET, Meta, Struct, UnsetType

from filestore.chunks.chunk_file import OUR_KEYS
from filestore.core.errors import UsageError
from filestore.core.safe_text import brief
from filestore.core.schema import JsonObject
from filestore.search.query import Mode
from filestore.server.operations import LONGEST_QUERY, Count

FOLDER: Final = "documents"
"""Below `chunked/`."""
MOST_DOCUMENTS: Final = 100_000
LONGEST_ID: Final = 1_000
"""Characters."""
_MOST_INFO_BYTES: Final = 64 * 1024
"""Of what is kept beside the documents: it is part of each answer about the collection."""
_ID: Final = "document_id"
_DEEPER: Final = "document_metadata"
"""Holds metadata whose names are taken."""
_TAKEN: Final = frozenset((*OUR_KEYS, _ID, _DEEPER))
_TEXTS: Final = ("text", "content")
_KEYS: Final = frozenset((*_TEXTS, "id", "metadata"))


class Document(Struct, frozen=True, kw_only=True):
    """One text with what is said of it."""

    id: str
    text: str
    metadata: Mapping[str, Any]

    @property
    def frontmatter(self) -> dict[str, Any]:
        """The keys of its chunk file."""
        own = {key: value for key, value in self.metadata.items() if key not in _TAKEN}
        deeper = {key: value for key, value in self.metadata.items() if key in _TAKEN}
        return {_ID: self.id, **own, **({_DEEPER: deeper} if deeper else {})}


class Query(Struct, frozen=True, kw_only=True):
    """What is asked of a collection."""

    query: Annotated[str, Meta(max_length=LONGEST_QUERY, pattern=r"\S")]
    """the question"""
    k: Count | None = None
    """at most this many documents (default: 5)"""
    top_k: Count | None = None
    """the same as k"""
    mode: Mode = "hybrid"
    """what ranks the documents"""


class Index(Struct, frozen=True, kw_only=True):
    """The documents of a collection, instead of those that it has."""

    rag_name: str | None = None
    """the collection's name"""
    name: str | None = None
    """the same as rag_name"""
    documents: Annotated[list[str | dict[str, Any]], Meta(min_length=1, max_length=MOST_DOCUMENTS)]
    """texts, or objects with text (or content) and, if wanted, id and metadata"""
    dataset_info: dict[str, Any] = {}
    """what is kept beside the documents"""
    overwrite: bool = False
    """whether what a person changed in the old documents may go, too"""


def told(keys: Mapping[str, Any], path: str) -> tuple[str, dict[str, Any]]:
    """Id and metadata of a chunk file; one that a person wrote has its path as id."""
    own = {key: value for key, value in keys.items() if key not in (_ID, _DEEPER)}
    deeper = keys.get(_DEEPER)
    if isinstance(deeper, Mapping):
        own |= deeper
    identifier = keys.get(_ID)
    return (identifier if isinstance(identifier, str) and identifier else path), own


def documents_in(given: Sequence[str | Mapping[str, Any]]) -> list[Document]:
    """What a client sends as documents; one without an id gets its place in the list, from 0.

    Raises:
        UsageError: One cannot be used, or two have the same id.
    """
    found = [_document(place, one) for place, one in enumerate(given)]
    seen: set[str] = set()
    for place, one in enumerate(found):
        if one.id in seen:
            raise UsageError(
                f"document {place}: the id {brief(one.id)} is that of another document",
                remedy="give each document an id of its own, or none",
            )
        seen.add(one.id)
    return found


def checked_info(given: dict[str, Any]) -> dict[str, Any]:
    """What a client wants to be kept beside the documents.

    Raises:
        UsageError: It is too large.
    """
    size = len(orjson.dumps(given))
    if size > _MOST_INFO_BYTES:
        raise UsageError(
            f"dataset_info has {size:,} bytes: it has at most {_MOST_INFO_BYTES:,}",
            remedy="put what belongs to one document into its metadata",
        )
    return given


def _document(place: int, given: str | Mapping[str, Any]) -> Document:
    wrong = f"document {place}:"
    if isinstance(given, str):
        given = {"text": given}
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        raise UsageError(
            f"{wrong} unknown key {brief(unknown[0])}", remedy="put it into its metadata"
        )
    texts = [given[key] for key in _TEXTS if given.get(key) is not None]
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise UsageError(f"{wrong} expected one text, as text or content")
    if not texts[0].strip():
        raise UsageError(f"{wrong} its text is empty: nothing could find it")
    metadata = given.get("metadata")
    if not isinstance(metadata, Mapping | None):
        raise UsageError(f"{wrong} its metadata is no object")
    identifier = given.get("id")
    if identifier is None or type(identifier) is int:
        identifier = str(place if identifier is None else identifier)
    elif not isinstance(identifier, str) or not 1 <= len(identifier) <= LONGEST_ID:
        raise UsageError(f"{wrong} its id is a text of 1 to {LONGEST_ID:,} characters, or a number")
    return Document(id=identifier, text=texts[0], metadata=dict(metadata or {}))


class RagStatus(JsonObject, Struct, frozen=True, kw_only=True):
    """How a collection stands."""

    rag_name: str
    """The name of the collection."""
    has_index: bool = False
    """Whether it can be asked."""
    document_count: int = 0
    """Documents that are indexed."""
    embedding_dimension: int | None = None
    """Numbers in a vector; None where that is not known here."""
    index_type: str | None = None
    """`exact` or `approximate`."""
    created_at: str
    """When it was indexed first, ISO 8601 in UTC."""
    updated_at: str
    """When it was indexed last."""
    total_size_bytes: int
    """Of all its files."""
    dataset_info: Mapping[str, Any]
    """As it was sent with the documents."""
    clean: bool = False
    """Whether the files are as they were indexed."""
    error: str | UnsetType = UNSET
    """Why it cannot be asked."""
    details: str | UnsetType = UNSET
    """Technical detail, or empty."""
    action: str | UnsetType = UNSET
    """What to do next."""


class RagIndexed(RagStatus, frozen=True, kw_only=True):
    """A collection that was made of documents."""

    embedded: int
    """Texts that the model embedded."""
    reused: int
    """Texts whose embedding came from the cache."""


class RagReloaded(RagStatus, frozen=True, kw_only=True):
    """A collection that took up what changed on the disk."""

    synced: bool
    """Whether it was synced; false where the server was started to read."""
    applied: Mapping[str, int]
    """Codes of findings to how many were repaired."""
    remaining: Mapping[str, int]
    """Codes of findings to how many remain."""
    embedded: int
    """Texts that the model embedded."""
    reused: int
    """Texts whose embedding came from the cache."""


class RagEntry(JsonObject, Struct, frozen=True):
    """One collection of a list."""

    rag_name: str
    """The name of the collection."""
    index_status: RagStatus
    """How it stands; see `GET /rag/NAME/index/status`."""


class RagList(JsonObject, Struct, frozen=True):
    """Every collection."""

    rags: list[RagEntry]
    """Every collection, by name; one that is damaged says so, the others go on."""
    count: int
    """How many there are."""


class RagResult(JsonObject, Struct, frozen=True):
    """One document of an answer."""

    id: str
    """Of the document; one that a person wrote has its path."""
    text: str
    """Of the document, as it is on disk now."""
    score: float
    """The higher the better; to be compared within one answer."""
    metadata: Mapping[str, Any]
    """Of the document."""
    path: str
    """Of its chunk file, below the folder of the collection."""
    freshness: str
    """`fresh`, `edited`, `outdated` or `gone`."""


class RagAnswer(JsonObject, Struct, frozen=True):
    """What a collection answers."""

    rag_name: str
    """The name of the collection."""
    query: str
    """What was asked."""
    results: list[RagResult]
    """The documents that answer, best first."""
    notes: tuple[str, ...]
    """What to know about this answer."""


class RagDeleted(JsonObject, Struct, frozen=True):
    """A collection that was deleted."""

    rag_name: str
    """The name of the collection."""
    deleted: bool = True
    """True: no file of it is left."""
