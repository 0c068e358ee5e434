"""Search: a query into unique files, best first, each checked against the disk as it is returned.

Reads accelerators and the catalog of one generation. One rule: no hit is called fresh that was not
read just now and found to be what was indexed.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from filestore import freshness, fulltext_file, vector_file
from filestore.catalog import Catalog, FileRow
from filestore.drift import root_path
from filestore.embed import EndpointError, ModelUnusable
from filestore.errors import UsageError
from filestore.freshness import Freshness, Look, Looker
from filestore.fulltext import (
    FulltextDamaged,
    FulltextMissing,
    Reader,
    bounding_queries,
    wanted_text,
)
from filestore.fusion import DEPTH, Fused, Ranking, fuse
from filestore.places import Places

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex

Mode = Literal["hybrid", "vector", "keyword"]
Leg = list[tuple[str, float]]
"""Path and score of files, best first."""
Why = dict[str, dict[str, float]]
"""Leg to its rank, score, and what these say in this answer."""
MODES: Final[tuple[Mode, ...]] = ("hybrid", "vector", "keyword")
_DEEPEST: Final = 5_000
"""So far down its legs an answer looks for files that are still there."""
LEXICAL_FLOOR: Final = 0.15
"""Below this a text that keywords missed shares too little to be worth showing beside theirs."""
VECTOR_WEIGHT: Final = 0.9
"""The say of a vector leg that knows meaning, where the keyword leg has 1.

A model that does not know the language of a text still finds some that stand out a little."""
LEXICAL_WEIGHT: Final = 0.1
"""The say of a vector leg that compares words only: what it knows the keyword leg knows already.

It decides near ties and adds what keywords miss (misspellings, parts of words). Over 18 sets of
questions it cost at most 0.1 points of nDCG@10 and gained 0.4."""

KNOWN_POWER: Final = 0.5
"""The keyword leg's say is the share of the question that the documents have words for, to this
power: of a question in another language it knows a name or two, and is sure of them all the same.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What hits must satisfy."""

    where: tuple[tuple[str, str], ...] = ()
    """(key, value) pairs that all hold, of the frontmatter or the document's metadata."""
    source: str | None = None
    """A glob over the source path, the end of it, or a folder in it."""
    kind: str | None = None

    def __bool__(self) -> bool:
        return bool(self.where or self.source or self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One file of an answer."""

    path: str
    """Relative to the store root."""
    score: float
    kind: str
    resource: str
    source: str | None
    freshness: Freshness
    headings: tuple[str, ...]
    pages: tuple[int, ...]
    """Of its source, where that has any."""
    text: str
    """The body as it is on disk now; empty for a file that is gone."""
    why: Mapping[str, Mapping[str, float]]
    """Leg to its ``rank``, from 1, and ``score``; in hybrid mode also to the ``evidence`` for the
    file (how far it stands out in this leg), the ``points`` it adds to the score of the hit, and
    the ``confidence`` in the leg for this query: its share, 0 to 1, in the best points of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of one generation."""

    query: str
    mode: Mode
    """The mode that answered; keyword where vectors cannot."""
    generation: int
    hits: tuple[Hit, ...]
    """Best first, those that are there; behind them, where there is room, those that are gone."""
    notes: tuple[str, ...]
    """What the user should know about this answer."""


class Searcher:
    """The parts of one generation, opened as they are first needed."""

    def __init__(
        self,
        *,
        places: Places,
        catalog: Catalog,
        embeddings: "EmbeddingCache | None",
        embedder: "Embedder | None",
        no_model: str = "",
    ) -> None:
        self._places = places
        self._catalog = catalog
        self._embeddings = embeddings
        self._embedder = embedder
        self._no_model = no_model or "the model of this store is not here"
        self.generation = catalog.generation
        self._index: VectorIndex | None = None
        self._reader: Reader | None = None
        self._sources: dict[str, str] = {}
        self._asked: tuple[str, NDArray[float32]] | None = None
        self._looker = Looker(places)

    def close(self) -> None:
        """Let go of everything that was opened."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._looker.close()

    def search(self, query: str, *, count: int, mode: Mode, filters: Filters) -> Answer:
        """Answer a query.

        Args:
            query: Words, "phrases", prefix*, -excluded, +required; anything is a valid query.
            count: At most so many files that are there.
            mode: Which legs are asked.
            filters: What hits must satisfy.

        Raises:
            UsageError: The count is not positive.
        """
        if count < 1:
            raise UsageError(f"-k must be at least 1, found {count}")
        notes: list[str] = []
        allowed = self._allowed(filters) if filters else None
        mode = self._possible(mode, notes)
        hits, mode = self._hits(query, count, mode, allowed, notes)
        if self._is_lexical and mode == "vector":
            notes.append("the builtin embedder compares words, not meaning")
        return Answer(
            query=query,
            mode=mode,
            generation=self.generation,
            hits=tuple(hits),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _hits(
        self, query: str, count: int, mode: Mode, allowed: set[int] | None, notes: list[str]
    ) -> tuple[list[Hit], Mode]:
        """So many files that are there, and those that are gone; and the mode that answered."""
        depth = count if mode != "hybrid" else max(DEPTH, count)
        looks: dict[str, Look] = {}
        self._looker.begin()
        while True:
            legs = self._legs(query, mode, depth, allowed, notes)
            mode = mode if "vector" in legs else "keyword"
            hits = self._present(self._fuse(query, legs), count, looks)
            there = sum(hit.freshness != "gone" for hit in hits)
            is_all = all(len(leg) < depth for leg in legs.values())
            if there == count or is_all or depth >= _DEEPEST or not self._looker.sees:
                notes += freshness.notes(list(looks.values()))
                return hits, mode
            # What is gone or withheld takes no place: the next best do.
            depth *= 4

    def _legs(
        self, query: str, mode: Mode, depth: int, allowed: set[int] | None, notes: list[str]
    ) -> dict[str, Leg]:
        """What each way of searching finds; by keyword alone where the model does not answer."""
        legs: dict[str, Leg] = {}
        if mode != "keyword":
            floor = LEXICAL_FLOOR if mode == "hybrid" and self._is_lexical else -1.0
            try:
                legs["vector"] = self._by_vector(query, depth, allowed, floor, notes)
            except (EndpointError, ModelUnusable) as error:
                notes.append(f"{error.message} (try: {error.remedy}): answered by keyword only")
        if mode != "vector" or not legs:
            legs["keyword"] = self._by_keyword(query, depth, allowed, notes)
        return legs

    def _present(
        self, ranked: Sequence[tuple[str, float, Why]], count: int, looks: dict[str, Look]
    ) -> list[Hit]:
        """The best files that are there, and behind them, where there is room, those that are gone.

        Args:
            ranked: Paths, best first.
            count: At most so many.
            looks: What was seen so far of this answer's files; what is looked at is added.
        """
        there: list[Hit] = []
        gone: list[Hit] = []
        for start in range(0, len(ranked), count):
            if len(there) == count:
                break
            block = ranked[start : start + count]
            rows = self._catalog.files([path for path, _, _ in block])
            for path, score, why in block:
                if len(there) == count:
                    break
                look = looks[path] if path in looks else self._looker.look(rows[path])
                looks[path] = look
                if look.freshness is not None:
                    hit = self._hit(rows[path], look, score, why)
                    (gone if look.freshness == "gone" else there).append(hit)
        return [*there, *gone][:count]

    @property
    def _is_lexical(self) -> bool:
        return self._embedder is not None and self._embedder.lexical

    def _possible(self, mode: Mode, notes: list[str]) -> Mode:
        if mode == "keyword":
            return mode
        if self._embedder is None:
            notes.append(f"{self._no_model}: answered by keyword only")
            return "keyword"
        if self._embeddings is None:
            notes.append(
                "the embeddings cannot be read: answered by keyword; run 'filestore sync --full'"
            )
            return "keyword"
        return mode

    def _allowed(self, filters: Filters) -> set[int]:
        """The ids of the files that satisfy the filters."""
        allowed: set[int] | None = None
        for key, value in filters.where:
            matching = self._catalog.files_with_fact(key, value)
            if key == "kind":
                matching |= self._catalog.files_of_kind(value)
            allowed = matching if allowed is None else allowed & matching
        if filters.kind is not None:
            matching = self._catalog.files_of_kind(filters.kind)
            allowed = matching if allowed is None else allowed & matching
        if filters.source is not None:
            pattern = filters.source
            matching = {
                identifier
                for identifier, source in self._catalog.sources_of_files()
                if _matches(source, pattern)
            }
            allowed = matching if allowed is None else allowed & matching
        return allowed or set()

    def _by_vector(
        self, query: str, depth: int, allowed: set[int] | None, floor: float, notes: list[str]
    ) -> Leg:
        import numpy

        meant = wanted_text(query)
        if self._embedder is None or self._embeddings is None or not meant:
            return []
        allowed, banned = self._bounds(query, allowed, notes)
        if self._index is None:
            self._index = vector_file.load_to_search(
                self._places, self._catalog, self._embeddings, self._embedder
            )
        vectors = None
        if allowed is not None:
            vectors = numpy.array(self._catalog.vectors_of_files(allowed), dtype=numpy.int64)
        if self._asked is None or self._asked[0] != meant:
            self._asked = meant, self._embedder.embed_query(meant)
        vector = self._asked[1]
        wanted = depth + 8
        while True:
            nearest = self._index.search(vector, wanted, allowed=vectors)
            near = [(found, score) for found, score in nearest if score >= floor]
            files = self._files_of(near, allowed, banned)
            if len(files) >= depth or len(near) < wanted:
                return files[:depth]
            wanted *= 4

    def _bounds(
        self, query: str, allowed: set[int] | None, notes: list[str]
    ) -> tuple[set[int] | None, set[int]]:
        """What +required and -excluded words leave to vectors: ids allowed, and ids banned."""
        required, excluded = bounding_queries(query)
        reader = self._open_reader(notes) if required or excluded else None
        banned: set[int] = set()
        if reader is not None:
            everything = max(1, self._catalog.indexed_count())
            for text in required:
                holding = {file for file, _ in reader.search(text, everything)}
                allowed = holding if allowed is None else allowed & holding
            for text in excluded:
                banned |= {file for file, _ in reader.search(text, everything)}
        return allowed, banned

    def _files_of(
        self, nearest: Sequence[tuple[int, float]], allowed: set[int] | None, banned: set[int]
    ) -> Leg:
        """Each file once, with the score of its best text."""
        owners = self._catalog.files_of_vectors([vector for vector, _ in nearest])
        best: dict[int, float] = {}
        for vector, score in nearest:
            for file, _ in owners.get(vector, ()):
                if (allowed is None or file in allowed) and file not in banned:
                    best.setdefault(file, score)
        return self._ordered(list(best.items()))

    def _by_keyword(
        self, query: str, depth: int, allowed: set[int] | None, notes: list[str]
    ) -> Leg:
        reader = self._open_reader(notes)
        if reader is None:
            return []
        wanted = depth + 8
        while True:
            found = reader.search(query, wanted)
            files = self._ordered(
                [(file, score) for file, score in found if allowed is None or file in allowed]
            )
            if len(files) >= depth or len(found) < wanted:
                return files[:depth]
            wanted *= 4

    def _ordered(self, scored: Sequence[tuple[int, float]]) -> Leg:
        """File ids as path and score, best first, ties by path; ids of no indexed file go."""
        paths = self._catalog.indexed_paths([file for file, _ in scored])
        leg = [(paths[file], score) for file, score in scored if file in paths]
        return sorted(leg, key=lambda pair: (-pair[1], pair[0]))

    def _open_reader(self, notes: list[str]) -> Reader | None:
        if self._reader is not None:
            return self._reader
        try:
            return self._open_stamped(notes)
        except FulltextMissing:
            pass
        try:
            # Two commits passed between reading the stamp and its files: the new stamp is there.
            return self._open_stamped(notes)
        except FulltextMissing as error:
            notes.append(f"{error.message}: run 'filestore sync'")
            return None

    def _open_stamped(self, notes: list[str]) -> Reader | None:
        stamp = fulltext_file.own_stamp(self._places, self._catalog)
        if stamp is None:
            notes.append("there is no full-text index: run 'filestore sync'")
            return None
        if stamp.generation < self.generation:
            notes.append("the full-text index is behind: run 'filestore sync'")
        try:
            self._reader = Reader.open(self._places.fulltext, stamp)
        except FulltextDamaged as error:
            notes.append(f"{error.message}: run 'filestore sync'")
            return None
        return self._reader

    def _fuse(self, query: str, legs: Mapping[str, Leg]) -> list[tuple[str, float, Why]]:
        """Paths with their fused score and the part each leg had in it, best first."""
        if len(legs) == 1:
            ((name, leg),) = legs.items()
            ranked = enumerate(leg, start=1)
            return [
                (path, score, {name: {"rank": r, "score": score}}) for r, (path, score) in ranked
            ]
        return _explained(fuse_legs(legs, lexical=self._is_lexical, known=self._known_share(query)))

    def _known_share(self, query: str) -> float:
        return self._reader.known_share(query) if self._reader is not None else 1.0

    def _hit(self, row: FileRow, look: Look, score: float, why: Why) -> Hit:
        chunk = look.chunk
        return Hit(
            path=root_path(row.path),
            score=score,
            kind=row.kind,
            resource=row.resource,
            source=row.source or self._source_of(row),
            freshness=look.freshness or "gone",
            headings=chunk.headings if chunk else (),
            pages=chunk.pages if chunk else (),
            text=chunk.body if chunk else "",
            why=why,
        )

    def _source_of(self, row: FileRow) -> str | None:
        if not self._sources:
            owners = self._catalog.sources_of_resources()
            self._sources = {resource: source for source, resource in owners.items()}
        return self._sources.get(row.resource)


def fuse_legs(legs: Mapping[str, Leg], *, lexical: bool, known: float = 1.0) -> list[Fused[str]]:
    """The legs ``keyword`` and ``vector`` as one ranking.

    Args:
        legs: Each with the `DEPTH` best, or all it found; either may be empty.
        lexical: Whether the vectors compare words only.
        known: How much of the query's words the documents have, 0 to 1.
    """
    rankings = {
        # What keywords do not find shares no word with the query, and so scores 0.
        "keyword": Ranking(scored=legs["keyword"], floor=0.0, weight=known**KNOWN_POWER),
        "vector": Ranking(
            scored=legs["vector"],
            weight=LEXICAL_WEIGHT if lexical else VECTOR_WEIGHT,
            floor=LEXICAL_FLOOR if lexical else None,
        ),
    }
    return fuse(rankings)


def _explained(fused: Sequence[Fused[str]]) -> list[tuple[str, float, Why]]:
    """Paths, scores, and what each leg said, with how much it had to say at all."""
    best: dict[str, float] = {}
    for one in fused:
        for leg, part in one.parts.items():
            best[leg] = max(part.points, best.get(leg, 0.0))
    total = sum(best.values())
    return [
        (
            one.item,
            one.score,
            {
                leg: {
                    "rank": part.rank,
                    "score": part.score,
                    "evidence": part.evidence,
                    "points": part.points,
                    "confidence": best[leg] / total,
                }
                for leg, part in one.parts.items()
            },
        )
        for one in fused
    ]


def _matches(source: str, pattern: str) -> bool:
    """Whether a glob names a source, the end of its path, or a folder around it."""
    forms = (pattern, f"*/{pattern}", f"{pattern}/*", f"*/{pattern}/*")
    return any(fnmatch.fnmatchcase(source, form) for form in forms)
