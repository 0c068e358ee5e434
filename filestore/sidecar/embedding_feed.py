"""Texts on their way into the embeddings: what is known is reused, what is new is embedded once.

A commit embeds a few texts as it ends, so that a small edit is found by meaning at once; many wait
in the catalog until they are asked for. Embeddings are kept as they are made, batch by batch, so
that an interrupted commit loses none.
"""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from filestore.catalog import SOME_TIME, CatalogWriter, in_batches
from filestore.core.errors import FilestoreError
from filestore.core.hashing import embedding_key, vector_id
from filestore.core.progress import OnShare, ignore_share
from filestore.embed import EndpointError, ModelDrifted, ModelMissing, ModelUnusable, check_canaries
from filestore.embed.cache import EmbeddingCache
from filestore.sidecar.file_rows import SeenTexts, texts_of_vectors
from filestore.sidecar.models import (
    WHOSE,
    Known,
    Models,
    NotEmbedded,
    known,
    lacking,
    remember,
)

if TYPE_CHECKING:
    from filestore.embed import Embedder

FEW: Final = 32
"""A commit embeds no more texts than these before it ends."""
_BATCH: Final = 512
_BATCH_S: Final = 1.0
"""About so long a batch takes: progress is reported, and Ctrl-C handled, as often."""


class EmbeddingFeed:
    """Takes texts by embedding key and notes in the catalog which vectors have their embedding."""

    def __init__(
        self,
        *,
        catalog: CatalogWriter | None,
        embeddings: EmbeddingCache,
        embedder: "Embedder | None",
        embed: bool,
        no_embedder: FilestoreError | None = None,
    ) -> None:
        """Take nothing yet.

        Args:
            catalog: Says which vectors have their embedding; None where it does not count on them.
            embeddings: Keeps them.
            embedder: Makes them; None where there is none, or it is not the one of the store.
            embed: Whether what is lacking is embedded.
            no_embedder: Why there is none.
        """
        self._catalog = catalog
        self._embeddings = embeddings
        self._embedder = embedder
        self._lacking: dict[bytes, str] = {}
        self.embeds = embed and embedder is not None
        """Whether texts without embedding are embedded now."""
        self.embedded = 0
        """Texts sent to the model so far."""
        self.reused = 0
        """Texts that had their embedding already."""
        self.problem: FilestoreError | None = None
        """Why embedding was given up; what is lacking then stays without vectors."""
        self.leaves_some = False
        """Whether texts that were taken are left to be embedded later, being many."""
        self._no_embedder = no_embedder if embed else None
        self._trusted = False

    def take(self, texts: Mapping[bytes, str], *, sound: bool = False) -> None:
        """Take texts whose vectors are in the catalog: known ones now, a few others on `settle`.

        Args:
            texts: By embedding key.
            sound: Rely only on embeddings whose checksum holds; this reads them.
        """
        lacking = self._unknown(texts, sound=sound)
        if self.embeds and len(self._lacking) <= FEW:
            self._lacking |= lacking

    def settle(self) -> None:
        """Embed what was taken, if that is little."""
        few, self._lacking = self._lacking, {}
        if len(few) <= FEW:
            self._embed(few, ignore_share, None)
        else:
            self.leaves_some = True

    def embed(
        self,
        texts: Mapping[bytes, str],
        *,
        on_share: OnShare = ignore_share,
        until_s: float | None = None,
    ) -> bool:
        """Take texts, and embed the unknown ones now; returns whether all have vectors then.

        Args:
            texts: By embedding key.
            on_share: Called with the share that is done.
            until_s: No batch begins after this moment of the monotonic clock; the first always
                does.
        """
        return self._embed(self._unknown(texts, sound=True), on_share, until_s)

    def _unknown(self, texts: Mapping[bytes, str], *, sound: bool) -> dict[bytes, str]:
        if self._embedder is None or not texts:
            self.problem = self.problem or (self._no_embedder if texts else None)
            return {}
        keys = list(texts)
        if sound:
            _, found = self._embeddings.get(self._embedder.fingerprint, keys)
            had = {key for key, is_sound in zip(keys, found.tolist(), strict=True) if is_sound}
        else:
            had = self._embeddings.has(self._embedder.fingerprint, keys)
        self.reused += len(had)
        self._note(had)
        return {key: text for key, text in texts.items() if key not in had}

    def _embed(self, texts: Mapping[bytes, str], on_share: OnShare, until_s: float | None) -> bool:
        embedder = self._embedder
        if embedder is None or not self.embeds or not texts:
            return embedder is not None and self.embeds
        try:
            if not self._trusted and not embedder.lexical:
                check_canaries(embedder, self._embeddings)
            self._trusted = True
            keys, done = list(texts), 0
            while done < len(keys) and (not done or until_s is None or time.monotonic() < until_s):
                on_share(done / len(keys))
                some, began_s = keys[done : done + embedder.batch], time.monotonic()
                vectors = embedder.embed_documents([texts[key] for key in some])
                self._embeddings.put(embedder.fingerprint, some, vectors)
                self._note(some, at_s=int(time.time()))
                done += len(some)
                self.embedded += len(some)
                took_s = max(time.monotonic() - began_s, 1e-3)
                batch = min(_BATCH, round(len(some) * _BATCH_S / took_s))
                embedder.batch = max(embedder.least_batch, batch)
        except (EndpointError, ModelDrifted, ModelMissing, ModelUnusable) as error:
            # Everything else of the commit is worth keeping: keywords find these texts.
            self.problem, self.embeds = error, False
            return False
        return done == len(keys)

    def _note(self, keys: Iterable[bytes], at_s: int = SOME_TIME) -> None:
        if self._catalog is not None:
            self._catalog.set_embedded((vector_id(key) for key in keys), at_s=at_s)


class OtherFeed:
    """The texts of a commit on their way to another model than its own."""

    def __init__(
        self,
        catalog: CatalogWriter,
        embeddings: EmbeddingCache,
        fingerprint: str,
        embedder: "Embedder | None",
        *,
        embed: bool,
    ) -> None:
        """Take nothing yet.

        Args:
            catalog: Remembers how many texts lack a vector.
            embeddings: Keeps the vectors.
            fingerprint: Of the model.
            embedder: The model; None where it is not here.
            embed: Whether what is lacking is embedded.
        """
        self._catalog = catalog
        self._embeddings = embeddings
        self._fingerprint = fingerprint
        self._name = embedder.name if embedder else ""
        self._feed = EmbeddingFeed(
            catalog=None, embeddings=embeddings, embedder=embedder, embed=embed
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
            f"not embedded with {self._name}, {WHOSE['beside']}: {why.message}",
            remedy=why.remedy,
            detail=why.detail,
        )

    def take(self, texts: Mapping[bytes, str]) -> None:
        """Take texts of new files; see `EmbeddingFeed.take`."""
        if texts:
            self._feed.take(texts)
            self._is_complete = self._is_complete and self._feed.embeds

    def embed_missing(
        self,
        on_share: OnShare = ignore_share,
        until_s: float | None = None,
        seen: SeenTexts | None = None,
    ) -> None:
        """Embed every text of the catalog that has no vector of this model; see `embed`."""
        self._is_complete = False
        missing = lacking(self._catalog, self._embeddings, self._fingerprint)
        seen = {} if seen is None else seen
        for number, ids in enumerate(in_batches(missing, _BATCH)):
            if not self._feed.embeds or (until_s is not None and time.monotonic() >= until_s):
                return
            start, part = number * _BATCH / len(missing), len(ids) / len(missing)
            texts = {
                embedding_key(text): text
                for _, some in texts_of_vectors(self._catalog, ids, seen)
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


def other_feeds(
    models: Models,
    catalog: CatalogWriter,
    embeddings: EmbeddingCache,
    own: "Embedder | None",
    *,
    embed: bool,
    other: "Embedder | None" = None,
) -> list[OtherFeed]:
    """What keeps the vectors of other models than a commit's own complete.

    Args:
        models: The store's.
        catalog: That of the commit.
        embeddings: Keeps the vectors.
        own: The commit's own model.
        embed: Whether what is lacking is embedded.
        other: Another second model than the settings name.
    """
    if models.second is not None and other is None:
        if embed:
            models.second.ask()
        other = models.second.embedder
    fingerprint: str | None
    before, kept = catalog.meta("fingerprint"), known(catalog)
    if other is not None:
        fingerprint = other.fingerprint
    elif own is not None and before not in (None, own.fingerprint):
        # The one that the catalog counted on until now, so that the change can be taken back.
        fingerprint = before
    else:
        fingerprint = kept.fingerprint if kept and models.second else None
    if fingerprint is None or (own is not None and own.fingerprint == fingerprint):
        return []
    return [OtherFeed(catalog, embeddings, fingerprint, other, embed=embed)]
