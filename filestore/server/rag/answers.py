"""What the routes below /rag answer: values."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from filestore.core.schema import JsonObject


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
