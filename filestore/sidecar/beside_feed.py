"""Texts on their way to the model beside the store's own, so that its vectors stay complete.

The store's own model comes first: what this one cannot embed keeps no commit from being made.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from filestore.catalog import in_batches
from filestore.core.errors import FilestoreError
from filestore.core.hashing import embedding_key
from filestore.core.progress import OnShare, ignore_share
from filestore.sidecar import beside
from filestore.sidecar.embedding_feed import EmbeddingFeed
from filestore.sidecar.file_rows import texts_of_vectors

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache

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
        self._catalog = catalog
        self._embeddings = embeddings
        self._fingerprint = fingerprint
        self._name = name
        self._feed = EmbeddingFeed(
            catalog=None,
            embeddings=embeddings,
            embedder=embedder,
            embed=embed,
            processes=1,
        )
        # What was complete stays so as long as every new text is embedded: no row is asked for.
        self._is_complete = beside.known(catalog) == beside.Known(
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
        return beside.NotEmbedded(
            f"not embedded with {self._name}, the model beside: {why.message}",
            remedy=why.remedy,
            detail=why.detail,
        )

    def take(self, texts: Mapping[bytes, str], on_share: OnShare = ignore_share) -> None:
        """Embed texts that have no vector of this model."""
        if texts:
            self._feed.take(texts, on_share=on_share)
            self._is_complete = self._is_complete and self._feed.embeds

    def embed_missing(self, on_share: OnShare = ignore_share) -> None:
        """Embed every text of the catalog that has no vector of this model."""
        self._is_complete = False
        missing = beside.lacking(self._catalog, self._embeddings, self._fingerprint)
        for number, ids in enumerate(in_batches(missing, _BATCH)):
            if not self._feed.embeds:
                return
            start, part = number * _BATCH / len(missing), len(ids) / len(missing)
            texts = {
                embedding_key(text): text
                for _, some in texts_of_vectors(self._catalog, ids)
                for text in some
            }
            self._feed.take(texts, on_share=partial(_share, on_share, start, part))

    def finish(self) -> None:
        """Remember how complete the vectors are, in the running transaction."""
        self._feed.close()
        short = (
            []
            if self._is_complete
            else beside.lacking(self._catalog, self._embeddings, self._fingerprint)
        )
        beside.remember(
            self._catalog,
            beside.Known(
                fingerprint=self._fingerprint,
                lacking=len(short),
                embeddings=self._embeddings.count(self._fingerprint),
                generation=self._catalog.next_generation,
            ),
        )

    def close(self) -> None:
        """End what still runs."""
        self._feed.close()


def _share(on_share: OnShare, start: float, part: float, share: float) -> None:
    on_share(start + part * share)
