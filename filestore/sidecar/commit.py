"""One commit: observed files into embeddings, catalog, FAISS file and full-text index.

Writes the sidecar only. One rule, the order in which it becomes durable: embeddings, then a FAISS
file if one is due, then one catalog transaction that names it, then the full-text index. Dying
between any two leaves the old generation, or the new one with a derived index that is caught up
later. What files change is in `file_changes`.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from filestore.catalog import CHUNKER, METRIC, CatalogWriter, queries
from filestore.chunks.layout import Layout
from filestore.config.layout import Places
from filestore.core.errors import FilestoreError
from filestore.core.progress import OnShare, ignore_share
from filestore.embed.cache import EmbeddingCache
from filestore.sidecar.embedding_feed import EmbeddingFeed, OtherFeed
from filestore.sidecar.file_changes import FileChanges
from filestore.sidecar.file_rows import kept_texts, texts_of_vectors
from filestore.sidecar.fulltext_file import QUICK_TEXTS, FulltextFeed
from filestore.sidecar.models import EMBEDDINGS, lost_vectors, take_over
from filestore.sidecar.vector_file import collect
from filestore.sidecar.vector_home import StoredVectors, VectorHome

if TYPE_CHECKING:
    from filestore.embed import Embedder

_AT_ONCE: Final = 192


class CommitReport(Struct, frozen=True, kw_only=True):
    """What a commit did."""

    generation: int
    embedded: int
    """Texts sent to the store's models."""
    reused: int
    """Texts of new or changed files that were embedded before."""
    problem: FilestoreError | None
    """Why texts were left without embedding, where they were to be embedded."""
    unsent: FilestoreError | None = None
    """Why a backend did not get what it lacks, which then waits for the next writer."""


class Commit(FileChanges):
    """Changes of one generation, applied together on `finish` or not at all."""

    def __init__(
        self,
        *,
        places: Places,
        layout: Layout,
        catalog: CatalogWriter,
        embeddings: EmbeddingCache,
        embedder: "Embedder | None",
        home: VectorHome,
        embed: bool = True,
        no_embedder: FilestoreError | None = None,
        metric: str = "cosine",
        others: Sequence[OtherFeed] = (),
    ) -> None:
        feed = EmbeddingFeed(
            catalog=catalog,
            embeddings=embeddings,
            embedder=embedder,
            embed=embed,
            no_embedder=no_embedder,
        )
        super().__init__(layout=layout, catalog=catalog, embedding_feed=feed, others=others)
        self._places = places
        self._home = home
        self._metric = metric
        self._embeddings = embeddings
        self.embedder = embedder
        """The one that the store's vectors are from; None where it is not here."""
        self._compares_rows = False
        self._index_wanted = False
        self.all_cut_again = False
        """Whether every document is cut as it is cut today."""
        self._is_quick = False
        self.has_taken_over = False
        """Whether the catalog counted on another model before."""

    def __enter__(self) -> Self:
        self.catalog.begin()
        self.words = FulltextFeed(self._places, self.catalog)
        self._previous = self.catalog.index_file()
        self.has_taken_over = take_over(self.catalog, self._embeddings, self.embedder)
        if self.has_taken_over:
            self.want_index()
        known = self.catalog.meta(EMBEDDINGS)
        self._lost_some = self.embedder is not None and known not in (
            None,
            self._embeddings.count(self.embedder.fingerprint),
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.words.abandon()
        self.catalog.rollback()

    def change_model(self, on_share: OnShare) -> None:
        """Take every vector from the model of this commit, whatever they came from."""
        every = (vector for vector, _ in self.catalog.vector_keys())
        self.catalog.set_embedded(every, embedded=False)
        self.embed_all(on_share)
        self.want_index()

    def take_missing(self) -> None:
        """Take the texts without vector: known ones get it now, others as texts of new files do."""
        self._embedding_feed.take(self._without_vectors(), sound=True)

    def embed_all(self, on_share: OnShare = ignore_share) -> None:
        """Embed every text without vector in this commit, however many."""
        self._embedding_feed.embed(self._without_vectors(), on_share=on_share)
        self.embed_others(on_share)

    def _without_vectors(self) -> dict[bytes, str]:
        texts = dict(kept_texts(self.catalog, self.catalog.paths_without_vectors()))
        wanted = {key for _, key in self.catalog.vector_keys(embedded=False)}
        return {key: text for key, text in texts.items() if key in wanted}

    def embed_waiting(self, ordered: list[int], until_s: float) -> None:
        """Embed texts that wait for their vector, until a moment of the monotonic clock.

        The first passage of each document comes first, so that early answers are broad.

        Args:
            ordered: Vector ids, last first, that an earlier commit left; what is done goes.
                An empty one is filled with all that wait: they are sorted once for many commits.
            until_s: That moment.
        """
        if not ordered:
            ordered += reversed(queries.waiting_vectors(self.catalog))
        while ordered:
            for some, texts in texts_of_vectors(self.catalog, ordered[-_AT_ONCE:][::-1]):
                keys = self.catalog.keys_of_vectors(some)
                taken = {keys[one]: text for one, text in zip(some, texts, strict=True)}
                self._embedding_feed.embed(taken, until_s=until_s)
                if not self._embedding_feed.embeds or time.monotonic() >= until_s:
                    return
            del ordered[-_AT_ONCE:]
        self.embed_others(until_s=until_s)

    def embed_others(self, on_share: OnShare = ignore_share, until_s: float | None = None) -> None:
        """Embed the texts that have no vector of other models than the store's own."""
        for other in self._others:
            other.embed_missing(on_share, until_s)

    @property
    def embeds(self) -> bool:
        """Whether texts without embedding are embedded in this commit."""
        return self._embedding_feed.embeds

    @property
    def problem(self) -> FilestoreError | None:
        """Why embedding was given up in this commit, by the store's own model or another."""
        others = (one.problem for one in self._others if one.problem is not None)
        return self._embedding_feed.problem or next(others, None)

    def want_index(self, *, whole: bool = True) -> None:
        """Write the FAISS file on `finish`, due or not; or compare what a backend holds.

        Args:
            whole: Whether what a backend holds is compared; else it gets what it lacks.
        """
        self._index_wanted = True
        self._compares_rows = self._compares_rows or whole

    def _write_index(self) -> None:
        if self.embedder is None:
            return
        made_from = (self.catalog, self._embeddings, self.embedder)
        vectors = StoredVectors(*made_from)
        if self._home.write(self.catalog, vectors, wanted=self._index_wanted) and self.embeds:
            # Damaged rows came to light: what they held is embedded again before the file is.
            self.take_missing()
            self._embedding_feed.settle()
            self._home.write(self.catalog, StoredVectors(*made_from), wanted=True)

    def finish(self) -> CommitReport:
        """Commit.

        Raises:
            WriteFailedError: The disk refused; the old generation stays.
        """
        self._embedding_feed.settle()
        self._settle_files()
        cut_by = self._layout.cut_by
        if cut_by and (self.all_cut_again or self.catalog.meta(CHUNKER) is None):
            # As long as some are cut otherwise, the label is theirs.
            self.catalog.set_meta(CHUNKER, cut_by)
        if self.embedder is not None:
            self.catalog.set_meta("fingerprint", self.embedder.fingerprint)
            self.catalog.set_meta(METRIC, self._metric)
        if self._lost_some:
            # Some other command than a sync: what went is not to be forgotten by a new count.
            lost = lost_vectors(self.catalog, self._embeddings)
            self.catalog.set_embedded(lost, embedded=False)
        self._write_index()
        if self.embedder is not None:
            count = self._embeddings.count(self.embedder.fingerprint)
            self.catalog.set_meta(EMBEDDINGS, count)
        for other in self._others:
            other.finish()
        self.words.catch_up()
        self.catalog.forget_dead(self.words.seen_generation)
        generation = self.catalog.commit()
        collect(self._places, self.catalog, self._previous)
        self.words.commit(generation)
        self._layout.drop_unused(self.catalog.file_hashes)
        unsent = None
        if self.embedder is not None and not self._is_quick:
            vectors = StoredVectors(self.catalog, self._embeddings, self.embedder)
            unsent = self._home.catch_up(self.catalog, vectors, whole=self._compares_rows)
        return CommitReport(
            generation=generation,
            embedded=self._embedding_feed.embedded + sum(one.embedded for one in self._others),
            reused=self._embedding_feed.reused,
            problem=self.problem,
            unsent=unsent,
        )

    def be_quick(self) -> None:
        """Leave to the next sync what takes long, or a service: somebody waits for an answer."""
        self._is_quick = True
        self.words.exact_texts = QUICK_TEXTS
