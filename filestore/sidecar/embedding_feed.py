"""Texts on their way into the embeddings: what is known is reused, what is new is embedded once.

Embeddings are kept as they are made, batch by batch, so that an interrupted commit loses none.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from filestore.catalog import SOME_TIME, CatalogWriter, in_batches
from filestore.core.errors import FilestoreError
from filestore.core.hashing import vector_id
from filestore.core.progress import OnShare, ignore_share
from filestore.embed import EndpointError, ModelMissing, ModelUnusable
from filestore.embed.cache import EmbeddingCache
from filestore.embed.canaries import ModelDrifted, check_canaries
from filestore.embed.process import EmbeddingProcess

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder

EMBED_BATCH: Final = 64
AHEAD_FROM: Final = 500
"""So many texts at once are worth a second process, which takes its time to start."""


class EmbeddingFeed:
    """Takes texts by embedding key and notes in the catalog which vectors have their embedding."""

    def __init__(
        self,
        *,
        catalog: CatalogWriter | None,
        embeddings: EmbeddingCache,
        embedder: "Embedder | None",
        embed: bool,
        processes: int,
        no_embedder: FilestoreError | None = None,
    ) -> None:
        """Take nothing yet.

        Args:
            catalog: Says which vectors have their embedding; None where it does not count on them.
            embeddings: Keeps them.
            embedder: Makes them; None where there is none, or it is not the one of the store.
            embed: Whether what is lacking is embedded.
            processes: More than one lets an embedder that keeps one core busy run beside.
            no_embedder: Why there is none.
        """
        self._catalog = catalog
        self._embeddings = embeddings
        self._embedder = embedder
        self._ahead: EmbeddingProcess | None = None
        self._sent: dict[bytes, str] = {}
        self._may_run_ahead = processes > 1
        self.embeds = embed and embedder is not None
        """Whether texts without embedding are embedded now."""
        self.embedded = 0
        """Texts sent to the model so far."""
        self.reused = 0
        """Texts that had their embedding already."""
        self.problem: FilestoreError | None = None
        """Why embedding was given up; what is lacking then stays without vectors."""
        self._no_embedder = no_embedder if embed else None
        self._trusted = False

    def take(
        self,
        texts: Mapping[bytes, str],
        *,
        sound: bool = False,
        on_share: OnShare = ignore_share,
    ) -> None:
        """Take texts whose vectors are in the catalog.

        Args:
            texts: By embedding key.
            sound: Rely only on embeddings whose checksum holds; this reads them.
            on_share: Called with the share of texts that is embedded, where that happens here.
        """
        if self._embedder is None or not texts:
            self.problem = self.problem or (self._no_embedder if texts else None)
            return
        had = (
            self._sound(texts) if sound else self._embeddings.has(self._embedder.fingerprint, texts)
        )
        self.reused += len(had)
        self._note(had)
        had |= self._sent.keys()
        lacking = {key: text for key, text in texts.items() if key not in had}
        if self.embeds and lacking:
            try:
                if not self._trusted and not self._embedder.lexical:
                    check_canaries(self._embedder, self._embeddings)
                self._trusted = True
                self._embed(self._embedder, lacking, on_share)
            except (EndpointError, ModelDrifted, ModelMissing, ModelUnusable) as error:
                # Everything else of the commit is worth keeping: keywords find these texts.
                self.problem, self.embeds = error, False

    def _sound(self, texts: Mapping[bytes, str]) -> set[bytes]:
        assert self._embedder is not None
        keys = list(texts)
        _, found = self._embeddings.get(self._embedder.fingerprint, keys)
        return {key for key, sound in zip(keys, found.tolist(), strict=True) if sound}

    def _embed(self, embedder: "Embedder", texts: dict[bytes, str], on_share: OnShare) -> None:
        """Embed here, or send ahead to a second process while this one goes on."""
        self.settle()
        if self._ahead is None and self._may_run_ahead and len(texts) >= AHEAD_FROM:
            self._may_run_ahead = embedder.single_threaded
            self._ahead = EmbeddingProcess(embedder) if embedder.single_threaded else None
        if self._ahead is None:
            # Texts of one length side by side need no padding, and what takes longest comes first,
            # so that the time left is never more than was said.
            longest_first = sorted(texts, key=lambda key: len(texts[key]), reverse=True)
            for number, keys in enumerate(in_batches(longest_first, EMBED_BATCH)):
                on_share(number * EMBED_BATCH / len(texts))
                self._keep(embedder, keys, embedder.embed_documents([texts[key] for key in keys]))
            return
        self._sent = texts
        try:
            self._ahead.send(list(texts.values()))
        except OSError:
            self.settle()

    def settle(self) -> None:
        """Wait for the batch that was sent ahead; embed it here if its process failed."""
        if self._embedder is None or self._ahead is None or not self._sent:
            return
        texts, self._sent = self._sent, {}
        try:
            vectors = self._ahead.receive()
        except OSError:
            self.close()
            self._may_run_ahead = False
            vectors = self._embedder.embed_documents(list(texts.values()))
        self._keep(self._embedder, list(texts), vectors)

    def _keep(
        self, embedder: "Embedder", keys: Sequence[bytes], vectors: "NDArray[float32]"
    ) -> None:
        self._embeddings.put(embedder.fingerprint, keys, vectors)
        self._note(keys, at_s=int(time.time()))
        self.embedded += len(keys)

    def _note(self, keys: Iterable[bytes], at_s: int = SOME_TIME) -> None:
        if self._catalog is not None:
            self._catalog.set_embedded((vector_id(key) for key in keys), at_s=at_s)

    def close(self) -> None:
        """End the second process, if there is one."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
