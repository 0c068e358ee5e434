"""What the catalog remembers of the model beside the store's own.

The catalog counts on the vectors of the store's own model. Of the one beside it remembers a few
numbers. One rule: whose a vector is, its fingerprint among the embeddings says, and nothing else.
"""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import Catalog
from filestore.core.errors import FilestoreError

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache

_FINGERPRINT: Final = "beside_fingerprint"
_LACKING: Final = "beside_lacking"
_EMBEDDINGS: Final = "beside_embeddings"
_GENERATION: Final = "beside_generation"
"""Keys of the catalog's memory, which are the fields of `Known`."""


class NothingBeside(FilestoreError):
    """No model stands beside the store's own."""

    def __init__(self) -> None:
        super().__init__(
            "no model stands beside the store's own", remedy="filestore embedder set NAME --beside"
        )


class NotEmbedded(FilestoreError):
    """The model beside has no vectors of the store's texts, or not of all."""


class Known(Struct, frozen=True, kw_only=True):
    """What the catalog remembers of the model beside."""

    fingerprint: str
    lacking: int
    """How many texts had no vector of it."""
    embeddings: int
    """How many embeddings of it there were: any other number is looked into."""
    generation: int
    """Of which generation that is true."""


def known(catalog: Catalog) -> Known | None:
    """What is remembered; None where no model stood beside, or it was dropped."""
    fingerprint = catalog.meta(_FINGERPRINT)
    if not fingerprint:
        return None
    return Known(
        fingerprint=fingerprint,
        lacking=catalog.meta(_LACKING, 0),
        embeddings=catalog.meta(_EMBEDDINGS, 0),
        generation=catalog.meta(_GENERATION, 0),
    )


def remember(catalog: "CatalogWriter", now: Known | None) -> None:
    """Remember it in the running transaction; None forgets it."""
    catalog.set_meta(_FINGERPRINT, now.fingerprint if now else "")
    catalog.set_meta(_LACKING, now.lacking if now else 0)
    catalog.set_meta(_EMBEDDINGS, now.embeddings if now else 0)
    catalog.set_meta(_GENERATION, now.generation if now else 0)


def lacking(catalog: Catalog, embeddings: "EmbeddingCache", fingerprint: str) -> list[int]:
    """The vector ids of the texts that a model has no embedding of."""
    keys = catalog.vector_keys(embedded=None)
    had = embeddings.has(fingerprint, [key for _, key in keys])
    return [vector for vector, key in keys if key not in had]


def take_over(
    catalog: "CatalogWriter", embeddings: "EmbeddingCache", embedder: "Embedder | None"
) -> bool:
    """Have the catalog count on another model, in the running transaction; whether it did not.

    After a switch that was not completed, or that git made, the vectors of the store's own model
    are among the embeddings. What of them is not is told to be lacking.
    """
    before = catalog.meta("fingerprint")
    if embedder is None or before in (None, embedder.fingerprint):
        return False
    keys = catalog.vector_keys(embedded=None)
    had = embeddings.has(embedder.fingerprint, [key for _, key in keys])
    catalog.set_embedded((vector for vector, _ in keys), embedded=False)
    catalog.set_embedded(vector for vector, key in keys if key in had)
    catalog.set_meta("fingerprint", embedder.fingerprint)
    return True
