"""What the catalog remembers of the model beside the store's own.

The catalog counts on the vectors of the store's own model. Of the one beside it remembers a few
numbers. One rule: whose a vector is, its fingerprint among the embeddings says, and nothing else.
The store's own model comes first: what this one cannot embed keeps no commit from being made.
"""

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import Catalog, in_batches
from filestore.core.errors import FilestoreError
from filestore.core.hashing import embedding_key
from filestore.core.progress import OnShare, ignore_share

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


_BATCH: Final = 512


class BesideFeed:
    """The texts of a commit on their way to the model beside."""

    def __init__(
        self,
        *,
        catalog: "CatalogWriter",
        embeddings: "EmbeddingCache",
        fingerprint: str,
        embedder: "Embedder | None",
        embed: bool,
        name: str,
    ) -> None:
        """Take nothing yet.

        Args:
            catalog: Remembers how many texts lack a vector.
            embeddings: Keeps the vectors.
            fingerprint: Of the model.
            embedder: The model; None where it is not here.
            embed: Whether what is lacking is embedded.
            name: What the settings call the model.
        """
        from filestore.sidecar.embedding_feed import EmbeddingFeed

        self._catalog = catalog
        self._embeddings = embeddings
        self._fingerprint = fingerprint
        self._name = name
        self._feed = EmbeddingFeed(
            catalog=None,
            embeddings=embeddings,
            embedder=embedder,
            embed=embed,
        )
        # What was complete stays so as long as every new text is embedded: no row is asked for.
        self._is_complete = known(catalog) == Known(
            fingerprint=fingerprint,
            lacking=0,
            embeddings=embeddings.count(fingerprint),
            generation=catalog.generation,
        )

    @property
    def embedded(self) -> int:
        """Texts sent to the model so far."""
        return self._feed.embedded

    @property
    def problem(self) -> FilestoreError | None:
        """Why embedding was given up."""
        why = self._feed.problem
        if why is None:
            return None
        return NotEmbedded(
            f"not embedded with {self._name}, the model beside: {why.message}",
            remedy=why.remedy,
            detail=why.detail,
        )

    def take(self, texts: Mapping[bytes, str]) -> None:
        """Take texts of new files; see `EmbeddingFeed.take`."""
        if texts:
            self._feed.take(texts)
            self._is_complete = self._is_complete and self._feed.embeds

    def embed_missing(self, on_share: OnShare = ignore_share, until_s: float | None = None) -> None:
        """Embed every text of the catalog that has no vector of this model; see `embed`."""
        # Parses files, which nobody needs who only asks what is remembered.
        from filestore.sidecar.file_rows import texts_of_vectors

        self._is_complete = False
        missing = lacking(self._catalog, self._embeddings, self._fingerprint)
        for number, ids in enumerate(in_batches(missing, _BATCH)):
            if not self._feed.embeds or (until_s is not None and time.monotonic() >= until_s):
                return
            start, part = number * _BATCH / len(missing), len(ids) / len(missing)
            texts = {
                embedding_key(text): text
                for _, some in texts_of_vectors(self._catalog, ids)
                for text in some
            }
            self._feed.embed(
                texts, on_share=partial(_share, on_share, start, part), until_s=until_s
            )

    def finish(self) -> None:
        """Remember how complete the vectors are, in the running transaction."""
        self._feed.settle()
        is_complete = self._is_complete and self._feed.embeds and not self._feed.leaves_some
        short = [] if is_complete else lacking(self._catalog, self._embeddings, self._fingerprint)
        remember(
            self._catalog,
            Known(
                fingerprint=self._fingerprint,
                lacking=len(short),
                embeddings=self._embeddings.count(self._fingerprint),
                generation=self._catalog.next_generation,
            ),
        )


def _share(on_share: OnShare, start: float, part: float, share: float) -> None:
    on_share(start + part * share)
