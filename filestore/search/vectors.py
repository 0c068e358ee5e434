"""The vectors of one generation as a search asks them: the sidecar's own file, or a backend.

Opens and closes. One rule: a query is embedded once, however often it is asked for more.
"""

import math
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import Catalog, queries
from filestore.search import filters
from filestore.search.filters import Filters
from filestore.sidecar.vector_file import loaded
from filestore.sidecar.vector_home import StoredVectors

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex, Where
    from filestore.sidecar.session import Parts

    Nearest = Callable[[int], list[tuple[int, float]]]


class Vectors:
    """What compares a query with the vectors of a store."""

    def __init__(
        self,
        parts: "Parts",
        catalog: Catalog,
        embeddings: "EmbeddingCache",
        embedder: "Embedder",
    ) -> None:
        """Open nothing yet.

        Args:
            parts: The store's.
            catalog: Inside a snapshot whenever it is asked.
            embeddings: What the index is made from.
            embedder: Whose vectors they are.
        """
        self._places, self._layout = parts.places, parts.layout
        self._catalog = catalog
        self._embeddings = embeddings
        self._embedder = embedder
        self._home = parts.home
        self.index: VectorIndex | None = None
        """What is asked; None before it is opened."""
        self._conditions: Where = ()
        self._asked: dict[str, NDArray[float32]] = {}

    def close(self) -> None:
        """Let go of the index; it is opened again when it is asked."""
        if self.index is not None:
            self.index.close()
            self.index = None

    def forget(self, kept: Container[str]) -> None:
        """Forget the vectors of queries that are not asked again."""
        self._asked = {text: vector for text, vector in self._asked.items() if text in kept}

    def asked(self, text: str) -> "NDArray[float32] | None":
        """The vector of a query that was asked."""
        return self._asked.get(text)

    def limit(self, wanted: Filters, *, alone: bool) -> None:
        """Say what hits must satisfy, for a backend that can tell itself.

        Args:
            wanted: The filters.
            alone: Whether nothing else limits what may be found.
        """
        self._conditions = ()
        if not self._home.takes_conditions or not wanted or not alone:
            return
        # A document's questions lie in a file of their own there, without its metadata.
        if self._layout.has_sections and self._catalog.files_of_kind("questions"):
            return
        found = filters.conditions(self._catalog, wanted)
        if self._home.takes(found, self._catalog):
            self._conditions = found

    def near(self, text: str, allowed: set[int] | None, *, is_filtered: bool) -> "Nearest":
        """What gives so many of the nearest vectors of a query, by id with their scores.

        Args:
            text: The query.
            allowed: The files that may answer; None for all.
            is_filtered: Whether these are just what `limit` was told.

        Raises:
            BackendError: The backend cannot be asked.
            EndpointError: The service that embeds the query cannot.
        """
        import numpy

        index = self._opened()
        where = self._conditions if is_filtered and index.takes_conditions else ()
        vectors = None
        if allowed is not None and not where:
            if self._layout.has_sections:
                from filestore.search.leading import questions_of

                allowed = allowed | questions_of(self._catalog, allowed)
            vectors = numpy.array(self._catalog.vectors_of_files(allowed), dtype=numpy.int64)
        if text not in self._asked:
            self._asked[text] = self._embedder.embed_query(text)
        vector = self._asked[text]
        return lambda count: index.search(vector, count, allowed=vectors, where=where)

    def closeness(self) -> "Closeness | None":
        """What is near in this store; None where no text has a vector."""
        from filestore.embed.canaries import unrelated

        is_counted_on = self._stored.is_counted_on
        first = queries.first_vectors(self._catalog, SAMPLE, embedded=is_counted_on)
        _, vectors = self._kept(first)
        count = self._catalog.count("vectors")
        if not len(vectors):
            return None
        return Closeness.of(vectors @ unrelated(self._embedder, self._embeddings), count)

    def cosines(self, text: str, ids: Sequence[int]) -> dict[int, float]:
        """How near some texts are to a query that was asked, by id."""
        asked = self._asked.get(text)
        if asked is None or not ids:
            return {}
        known, vectors = self._kept(ids)
        return dict(zip(known, (vectors @ asked).tolist(), strict=True)) if known else {}

    def _kept(self, ids: Sequence[int]) -> "tuple[list[int], NDArray[float32]]":
        """Those of some vectors that are kept here, with their ids."""
        import numpy

        vectors, found = self._stored.vectors_of(numpy.array(ids, dtype=numpy.int64))
        known = [one for one, is_here in zip(ids, found.tolist(), strict=True) if is_here]
        return known, vectors[found]

    @property
    def _stored(self) -> StoredVectors:
        return StoredVectors(self._catalog, self._embeddings, self._embedder)

    @property
    def lacking(self) -> list[str]:
        """What the last answer is without, for people; empty where it is whole."""
        return [self.index.lacking] if self.index is not None and self.index.lacking else []

    def not_embedded(self) -> list[str]:
        """How many texts have no vector of this model; nothing where it was not asked."""
        if self.index is None:
            return []
        if self._stored.is_counted_on:
            lacking = self._catalog.waiting_count()
        else:
            lacking = self._catalog.count("vectors") - len(self.index)
        if not lacking:
            return []
        texts = "1 text has" if lacking == 1 else f"{lacking:,} texts have"
        return [f"{texts} no vector of {self._embedder.name} yet: run 'filestore sync'"]

    def _opened(self) -> "VectorIndex":
        if self.index is None:
            stored = self._stored
            is_home = stored.is_counted_on
            self.index = self._home.load(stored) if is_home else loaded(self._places, stored)
        return self.index


SAMPLE: Final = 200
"""So many texts tell how near an unrelated question is."""
_MARGIN: Final = 2.3
"""Standard deviations beyond the nearest of as many unrelated texts as there are: sqrt(2 ln n) is
about where the greatest of n normal numbers lies."""
_LEAST_DEVIATION: Final = 0.03
"""A few texts, or texts that are alike, tell too little of how cosines vary."""


class Closeness(Struct, frozen=True):
    """The cosines of texts to a question that has nothing to do with them."""

    mean: float
    deviation: float
    least: float
    """A cosine below it is as an unrelated text has it."""
    cut: float
    """Where the best of all texts has less, it is no nearer than chance."""

    @classmethod
    def of(cls, cosines: "NDArray[float32]", count: int) -> "Closeness":
        """Of a sample.

        Args:
            cosines: Of the fixed question to some texts; at least one.
            count: How many texts there are.
        """
        mean = float(cosines.mean())
        deviation = max(_LEAST_DEVIATION, float(cosines.std()))
        beyond = _MARGIN + math.sqrt(2 * math.log(max(1, count)))
        # Of vectors that all lie close together the cut must leave room for an answer.
        least, cut = (min(mean + one * deviation, (1 + mean) / 2) for one in (_MARGIN, beyond))
        return cls(mean, deviation, least, cut)

    def meaning(self, cosine: float) -> float:
        """A cosine as a share: 0 for an unrelated text, 1 for the very question."""
        return min(1.0, max(0.0, (cosine - self.mean) / max(1e-9, 1 - self.mean)))
