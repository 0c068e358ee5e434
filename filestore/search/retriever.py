"""Finding the texts of a query by words and by vectors, of one generation.

Reads accelerators and the catalog, never the files: what is found may be gone. Vectors lie in the
sidecar's own file, or in a backend; a query is embedded once, however often it is asked for more.
One rule: a way that does not answer is left out, and a note tells why.
"""

import contextlib
import math
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import Catalog, file_of_text, part_of_text, queries, text_id
from filestore.config.settings import Which
from filestore.core.paths import ChunkPath
from filestore.embed import EndpointError, ModelUnusable
from filestore.fulltext import (
    BINDING,
    FulltextMissing,
    FulltextUnreadable,
    Need,
    ParsedQuery,
    Reader,
)
from filestore.index import BackendError
from filestore.search import Extra, Mode, Query
from filestore.search.ranking import (
    LEXICAL_FLOOR,
    Leading,
    Ranked,
    Retrieved,
    explained,
    fuse_rankings,
    questions_of,
    why_of_one,
    with_question,
)
from filestore.sidecar.fulltext_file import open_reader
from filestore.sidecar.vector_file import loaded
from filestore.sidecar.vector_home import StoredVectors

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index import VectorIndex, Where
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

    def limit(self, query: Query, *, alone: bool) -> None:
        """Say what hits must satisfy, for a backend that can tell itself.

        Args:
            query: The filters.
            alone: Whether nothing else limits what may be found.
        """
        self._conditions = ()
        if not self._home.takes_conditions or not query.has_filters or not alone:
            return
        # A document's questions lie in a file of their own there, without its metadata.
        if self._layout.has_sections and self._catalog.files_of_kind("questions"):
            return
        from filestore.search import filters

        found = filters.conditions(self._catalog, query)
        if self._home.takes(found, self._catalog):
            self._conditions = found

    def near(self, text: str, allowed: set[int] | None, *, is_filtered: bool) -> "Nearest":
        """What gives that many of the nearest vectors of a query, by id with their scores.

        Args:
            text: The query.
            allowed: The files that may answer; None for all.
            is_filtered: Whether these are just the filters that `limit` was given.

        Raises:
            BackendError: The backend cannot be asked.
            EndpointError: The service that embeds the query cannot.
        """
        import numpy

        if self.index is None:
            stored = self._stored
            is_home = stored.is_counted_on
            self.index = self._home.load(stored) if is_home else loaded(self._places, stored)
        index = self.index
        where = self._conditions if is_filtered and index.takes_conditions else ()
        vectors = None
        if allowed is not None and not where:
            if self._layout.has_sections:
                allowed = allowed | questions_of(self._catalog, allowed)
            vectors = numpy.array(self._catalog.vectors_of_files(allowed), dtype=numpy.int64)
        if text not in self._asked:
            self._asked[text] = self._embedder.embed_query(text)
        vector = self._asked[text]
        return lambda count: index.search(vector, count, allowed=vectors, where=where)

    def closeness(self) -> "Closeness | None":
        """What is near in this store; None where no text has a vector."""
        from filestore.embed import unrelated

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
        texts = "1 passage has" if lacking == 1 else f"{lacking:,} passages have"
        return [f"{texts} no vector of {self._embedder.name} yet: run 'filestore sync'"]


SAMPLE: Final = 200
"""How many texts tell how near an unrelated question is."""
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


_SPELT_OUT: Final = 0.5
"""A model of no more fluency reads a query letter by letter, and finds what has some of them."""
_APART: Final = 20
"""How many are looked at for the ones that are shown where nothing is close."""
_MOST_ALIKE: Final = 5_000
"""How many texts with a word of the query are compared where keywords do not answer as well."""
_SPARE: Final = 8
"""Asked for beyond what is wanted, so that a file found twice does not mean asking again."""


class Retriever:
    """The accelerators of one generation, opened as they are first needed."""

    def __init__(self, parts: "Parts", catalog: Catalog, model: Which) -> None:
        """Open nothing yet; one query never meets vectors of the other model."""
        self._models, self._model = parts.models, model
        self._places, self._layout, self._catalog = parts.places, parts.layout, catalog
        self._embeddings = parts.embeddings()
        self.embedder = parts.models.searched(catalog, model)
        self.vectors: Vectors | None = None
        if self._embeddings is not None and self.embedder is not None:
            self.vectors = Vectors(parts, catalog, self._embeddings, self.embedder)
        self.reader: Reader | None = None
        self._on_reader: tuple[str, ...] = ()
        self._leading: Leading | None = None
        self._paths: dict[int, ChunkPath] = {}
        self._documents: dict[ChunkPath, tuple[tuple[str, str | None], int]] = {}
        """Of the files that were found: what they are texts of, and of how many it is."""
        self._hidden: frozenset[int] = frozenset()
        self._with_questions = True
        self.notes: list[str] = []
        """What the user should know of the answer that is being made."""
        self.best_parts: dict[int, int] = {}
        """Of a file the question, or 0, by which vectors found it."""
        self.cuts = True
        """Whether vectors that are no nearer than chance are left out."""
        self.apart: Retrieved = []
        """The best of the ones that were left out."""

    def begin(self, notes: list[str], hidden: frozenset[int], without: Collection[Extra]) -> None:
        """Begin an answer.

        Args:
            notes: Takes what the user should know of it.
            hidden: Files that are not found.
            without: What is left out, see `Query.without`.
        """
        self.notes, self._hidden = notes, hidden
        self._with_questions, self.cuts = "questions" not in without, "cut" not in without
        self.best_parts, self.apart = {}, []

    def close(self) -> None:
        """Let go of everything that was opened."""
        if self.vectors is not None:
            self.vectors.close()
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def rankings(
        self, query: ParsedQuery, mode: Mode, depth: int, allowed: set[int] | None
    ) -> dict[str, Retrieved]:
        """What each way of searching finds; by keyword alone where the model does not answer."""
        rankings: dict[str, Retrieved] = {}
        if mode != "keyword" and query.is_named and not self._by_keyword(query, 1, allowed):
            # What is near to a number is another number.
            return {"vector": []}
        if mode != "keyword":
            floor = LEXICAL_FLOOR if mode == "hybrid" and self.is_lexical else -1.0
            try:
                rankings["vector"] = self._by_vector(query, depth, allowed, floor)
            except (BackendError, EndpointError, ModelUnusable) as error:
                self.notes.append(f"{error.in_one_line}: answered by keyword only")
                if self.vectors is not None:  # a connection that broke is made anew
                    self.vectors.close()
        if mode != "vector" or not rankings:
            rankings["keyword"] = self._by_keyword(query, depth, allowed)
        # Vectors that compare words have found a word of the query in each. Where words were found
        # nothing is left out: how far a text rises above the crowd decides there.
        near = rankings.get("vector")
        is_cut = near and not rankings.get("keyword") and self.cuts and not self.is_lexical
        if near and is_cut and self._is_chance(query, near[0][1], mode):
            self.apart = self.apart or near[:_APART]
            rankings["vector"] = []
        return rankings

    @cached_property
    def closeness(self) -> "Closeness | None":
        """What is near in this generation; None where that is not known."""
        if self.vectors is None:
            return None
        try:
            return self.vectors.closeness()
        except (EndpointError, ModelUnusable):
            return None

    def _is_chance(self, query: ParsedQuery, cosine: float, mode: Mode) -> bool:
        """Whether the best of the vectors is no nearer to a query than chance brings."""
        if self.closeness is None or self.embedder is None:
            return False
        if cosine <= self.closeness.cut:
            return True
        # Who asks vectors alone wants what they find, in whatever language.
        return mode != "vector" and self.embedder.fluency(query.text()) <= _SPELT_OUT

    @property
    def is_lexical(self) -> bool:
        """Whether the vectors compare words only."""
        return self.embedder is not None and self.embedder.lexical

    def possible(self, mode: Mode) -> Mode:
        """The mode that can answer, with a note where it is another one than asked for."""
        if mode == "keyword":
            return mode
        if self.embedder is None:
            self.notes.append(f"{self._models.why_not(self._model)}: answered by keyword only")
            return "keyword"
        if self._embeddings is None:
            self.notes.append(
                "the embeddings cannot be read: answered by keyword; run 'filestore sync --full'"
            )
            return "keyword"
        return mode

    def _by_vector(
        self, query: ParsedQuery, depth: int, allowed: set[int] | None, floor: float
    ) -> Retrieved:
        asked = query.text()
        if self.vectors is None or not asked:
            return []
        must, must_not = query.of_need(*BINDING), query.of_need(Need.EXCLUDED)
        reader = self.open_reader() if must or must_not else None
        # Texts that vectors may find, by what must be in them or must not.
        required: set[int] | None = None
        banned: set[int] = set()
        if reader is not None:
            for clause in must:
                holding = reader.matching(clause)
                required = holding if required is None else required & holding
            for clause in must_not:
                banned |= reader.matching(clause)
        if required is not None:
            holding = set(map(file_of_text, required))
            allowed = holding if allowed is None else allowed & holding
        alike = self.open_reader() if self.is_lexical and self.cuts else None
        if alike is not None and floor < 0:
            # Keywords do not answer as well: of the texts that have a word all are compared.
            found = [(text, score, 0) for text, score in alike.search(query, _MOST_ALIKE)]
            holding = {file_of_text(text) for text, _, _ in (*found, *self._led(found))}
            allowed = holding if allowed is None else allowed & holding
        near_to = self.vectors.near(asked, allowed, is_filtered=required is None and alike is None)
        wanted = math.ceil(depth * self._vectors_per_file) + _SPARE
        while True:
            near = [(found, score) for found, score in near_to(wanted) if score >= floor]
            texts = self._texts_of(
                near, allowed, required, banned, (alike, query) if alike else None
            )
            if alike is not None and floor > 0:
                return texts[:depth]
            # The ones that tie with the last one are ordered by path, and none of them is left out.
            if len(near) < wanted or (len(texts) >= depth and near[-1][1] < texts[depth - 1][1]):
                self.notes += self.vectors.lacking
                return texts[:depth]
            wanted *= 4

    @cached_property
    def _vectors_per_file(self) -> float:
        """On average: a file is found by each of its questions, and takes one place."""
        return max(1.0, self._catalog.count("vectors") / max(1, self._catalog.text_count()))

    def _texts_of(
        self,
        nearest: Sequence[tuple[int, float]],
        allowed: set[int] | None,
        required: set[int] | None,
        banned: set[int],
        alike: "tuple[Reader, ParsedQuery] | None" = None,
    ) -> Retrieved:
        """Each text once, with its score; the questions of a chunk file lead to its text.

        A text that is not among the nearest itself has the score of the last of them, at most.

        Args:
            nearest: Vectors and scores, best first.
            allowed: The files that may answer; None for all.
            required: The texts that may; None for all.
            banned: The texts that may not.
            alike: What tells the ones that share a word with the query, which all must.
        """
        owners = self._catalog.files_of_vectors([vector for vector, _ in nearest])
        own: dict[int, float] = {}
        asked: dict[int, float] = {}
        scored = [
            (text_id(file, part) if self._layout.has_sections else file, score, part)
            for vector, score in nearest
            for file, part in owners.get(vector, ())
        ]
        if alike is not None:
            reader, query = alike
            sharing = reader.among(query, {text for text, _, _ in scored})
            scored = [one for one in scored if one[0] in sharing]
        for text, score, part in self._led(scored):
            file = file_of_text(text)
            if text in banned or (required is not None and text not in required):
                continue
            if self._may(file, allowed) and (self._with_questions or not part):
                (asked if part else own).setdefault(text, score)
                self.best_parts.setdefault(file, part)
        least = nearest[-1][1] if nearest else 0.0
        led = {text: with_question(own.get(text, least), score) for text, score in asked.items()}
        return self._ordered(list((own | led).items()))

    def _led(self, scored: Sequence[tuple[int, float, int]]) -> Sequence[tuple[int, float, int]]:
        """What some texts lead to, each with its score and the question that it answers, or 0."""
        if not self._layout.has_sections:
            return scored
        if self._leading is None:
            self._leading = Leading(self._catalog)
        return self._leading.led(scored)

    def _by_keyword(self, query: ParsedQuery, depth: int, allowed: set[int] | None) -> Retrieved:
        reader = self.open_reader()
        if reader is None:
            return []
        wanted = depth + _SPARE
        while True:
            found = reader.search(query, wanted)
            led = self._led([(text, score, 0) for text, score in found])
            best: dict[int, float] = {}
            for text, score, _ in led:
                if self._may(file_of_text(text), allowed):
                    best.setdefault(text, score)
            texts = self._ordered(list(best.items()))
            if len(texts) >= depth or len(found) < wanted:
                return texts[:depth]
            wanted *= 4

    def _may(self, file: int, allowed: set[int] | None) -> bool:
        return file not in self._hidden and (allowed is None or file in allowed)

    def _ordered(self, scored: Sequence[tuple[int, float]]) -> Retrieved:
        """Text ids as texts, best first, ties by path; ids of no indexed file go."""
        files = {file_of_text(text) for text, _ in scored}
        # A set less the keys of many paths would pass over all of these.
        fresh = [file for file in files if file not in self._paths]
        found = queries.documents_of(self._catalog, fresh)
        for file, (path, document, count) in found.items():
            self._paths[file] = path
            if count:
                self._documents[path] = document, count
        ranking = [
            ((self._paths[file], part_of_text(text)), score)
            for text, score in scored
            if (file := file_of_text(text)) in self._paths
        ]
        return sorted(ranking, key=lambda pair: (-pair[1], pair[0]))

    def open_reader(self) -> Reader | None:
        """The full-text index; None, with a note, where it cannot be read."""
        if self.reader is not None:
            self.notes += self._on_reader
            return self.reader
        try:
            with contextlib.suppress(FulltextMissing):
                return self._open_stamped()
            # Two commits passed between reading the stamp and its files: the new stamp is there.
            return self._open_stamped()
        except FulltextMissing as error:
            self.notes.append(f"{error.message}: run 'filestore sync'")
        except FulltextUnreadable as error:
            self.notes.append(error.in_one_line)
        return None

    def _open_stamped(self) -> Reader | None:
        self.reader, note = open_reader(self._places, self._catalog)
        self._on_reader = (note,) if note else ()
        self.notes += self._on_reader
        return self.reader

    def is_all(self, rankings: Mapping[str, Retrieved], depth: int) -> bool:
        """Whether rankings as deep as these have all that may be shown."""
        least = self._least if len(rankings) > 1 else -1.0
        return all(
            len(ranking) < depth or (name == "vector" and ranking[-1][1] < least)
            for name, ranking in rankings.items()
        )

    @property
    def _least(self) -> float:
        """What a text must have by vectors that has no word of the query."""
        is_cut = self.cuts and not self.is_lexical
        return self.closeness.least if is_cut and self.closeness is not None else -1.0

    def fuse(self, query: ParsedQuery, rankings: Mapping[str, Retrieved]) -> list[Ranked]:
        """Texts with their fused score and the part each ranking had in it, best first.

        What vectors alone found, no nearer than an unrelated text is, is left out.
        """
        least = self._least if "keyword" in rankings else -1.0
        if len(rankings) == 1:
            ((name, ranking),) = rankings.items()
            ranked = enumerate(ranking, start=1)
            return [
                (text, score, partial(why_of_one, name, rank, score))
                for rank, (text, score) in ranked
            ]
        by_vector, meaning = rankings.get("vector"), 1.0
        if by_vector and not self.is_lexical and self.closeness is not None:
            meaning = self.closeness.meaning(by_vector[0][1])
        fused = fuse_rankings(
            rankings,
            lexical=self.is_lexical,
            known=self.reader.known_share(query) if self.reader is not None else 1.0,
            fluency=self.embedder.fluency(query.text()) if by_vector and self.embedder else 1.0,
            meaning=meaning,
            wholes={
                text: self._documents[text[0]]
                for found in rankings.values()
                for text, _ in found
                if text[0] in self._documents
            },
        )
        fused = [
            one for one in fused if [*one.parts] != ["vector"] or one.parts["vector"].score >= least
        ]
        return explained(fused)
