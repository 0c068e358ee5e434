"""Search: a query into unique files, best first, each checked against the disk as it is returned.

Reads accelerators and the catalog of one generation. One rule: no hit is called fresh that was not
read just now and found to be what was indexed.
"""

import contextlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filestore.catalog import Catalog, FileRow, file_of_text, part_of_text, queries, text_id
from filestore.chunks.layout import Layout
from filestore.config.layout import Places
from filestore.core.errors import UsageError
from filestore.core.paths import ChunkPath, StorePath
from filestore.embed import EndpointError, ModelUnusable
from filestore.fulltext import (
    FulltextDamaged,
    FulltextMissing,
    FulltextUnreadable,
    Marker,
    Need,
    Query,
    Reader,
    Respelling,
    Syntax,
    Understood,
    parse_query,
    respelled,
)
from filestore.search import filters, freshness
from filestore.search.answer import Answer, Found, Hit, Mode, Why
from filestore.search.filters import Filters
from filestore.search.freshness import Look, Looker
from filestore.search.fusion import DEPTH, Fused, Ranking, fuse
from filestore.search.passage import Nearest
from filestore.sidecar import fulltext_file, vector_file
from filestore.sidecar.fulltext_feed import open_caught_up

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from filestore.embed.base import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.index.base import VectorIndex

Text = tuple[ChunkPath, int]
"""A text that answers: a file, and in place the section of it; a chunk file is one text."""
Retrieved = list[tuple[Text, float]]
"""Texts with their score, best first."""
Ranked = tuple[Text, float, Callable[[], Why]]
"""A text, its score, and what tells why: only those that are shown are explained."""
Item = TypeVar("Item", bound=Any)
_SPARE: Final = 8
"""Asked for beyond what is wanted, so that a file found twice does not mean asking again."""
_DEEPEST: Final = 5_000
"""So far down its rankings a search looks for files that are still there."""
LEXICAL_FLOOR: Final = 0.15
"""Below this a text that keywords missed shares too little to be worth showing beside theirs."""
VECTOR_WEIGHT: Final = 0.9
"""The weight of a vector retriever that knows meaning, where the keyword retriever has 1.

A model that does not know the language of a text still finds some that stand out a little."""
LEXICAL_WEIGHT: Final = 0.1
"""The weight of a vector retriever that compares words only, as the keyword retriever does.

It decides near ties and adds what keywords miss (misspellings, parts of words). Over 18 sets of
questions it cost at most 0.1 points of nDCG@10 and gained 0.4."""

KNOWN_POWER: Final = 0.5
"""The keyword retriever's weight is the share of the question that the documents have words for,
to this power: of a question in another language it knows a name or two, and is sure of them.
"""


class Searcher:
    """The parts of one generation, opened as they are first needed."""

    def __init__(
        self,
        *,
        places: Places,
        layout: Layout,
        catalog: Catalog,
        embeddings: "EmbeddingCache | None",
        embedder: "Embedder | None",
        no_model: str = "",
    ) -> None:
        self._places = places
        self._layout = layout
        self._catalog = catalog
        self._embeddings = embeddings
        self._embedder = embedder
        self._no_model = no_model or "the model of this store is not here"
        self.generation = catalog.generation
        self._index: VectorIndex | None = None
        self._per_file: float | None = None
        self._reader: Reader | None = None
        self._sources: dict[str, str] = {}
        self._asked: tuple[str, NDArray[float32]] | None = None
        self._looker = Looker(places, layout, catalog)
        self.found: dict[StorePath, Found] = {}
        """The files of the last answer's hits."""

    def close(self) -> None:
        """Let go of everything that was opened."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._looker.close()

    def search(
        self, query: str, *, count: int, mode: Mode, wanted: Filters, syntax: Syntax = "auto"
    ) -> Answer:
        """Answer a query.

        Args:
            query: Words, "phrases", prefix*, -excluded, +required; anything is a valid query.
            count: At most so many files that are there.
            mode: Which retrievers are asked.
            wanted: What hits must satisfy.
            syntax: Which signs in the query are operators; see `parse_query`.

        Raises:
            UsageError: The count is not positive.
        """
        if count < 1:
            raise UsageError(f"-k must be at least 1, found {count}")
        asked = parse_query(query, syntax)
        understood = asked.understood()
        notes = _left_out(understood)
        allowed = filters.allowed(self._catalog, wanted, notes) if wanted else None
        mode = self._possible(mode, notes)
        found = self._respellings(asked, mode, notes)
        hits, mode = self._hits(respelled(asked, found), count, mode, allowed, notes)
        on_spelling = _on_spelling(found, found_nothing=not hits)
        notes += [*on_spelling, *_unresolved(self._catalog)]
        if self._is_lexical and mode == "vector":
            notes.append("the builtin embedder compares words, not meaning")
        return Answer(
            query=query,
            root=os.path.realpath(self._places.root),
            understood=understood,
            mode=mode,
            generation=self.generation,
            hits=tuple(hits),
            notes=tuple(dict.fromkeys(notes)),
            on_spelling=tuple(on_spelling),
        )

    def _hits(
        self, query: Query, count: int, mode: Mode, allowed: set[int] | None, notes: list[str]
    ) -> tuple[list[Hit], Mode]:
        """So many files that are there, and those that are gone; and the mode that answered."""
        self.found = {}
        depth = count if mode != "hybrid" else max(DEPTH, count)
        looks: dict[Text, Look] = {}
        self._looker.begin()
        while True:
            rankings = self._rankings(query, mode, depth, allowed, notes)
            mode = mode if "vector" in rankings else "keyword"
            hits = self._present(self._fuse(query, rankings), count, looks)
            there = sum(hit.freshness != "gone" for hit in hits)
            is_all = all(len(ranking) < depth for ranking in rankings.values())
            if there == count or is_all or depth >= _DEEPEST or not self._looker.sees:
                notes += freshness.notes(list(looks.values()))
                return hits, mode
            # Gone and excluded files take no place: the next best do.
            depth *= 4

    def _rankings(
        self, query: Query, mode: Mode, depth: int, allowed: set[int] | None, notes: list[str]
    ) -> dict[str, Retrieved]:
        """What each way of searching finds; by keyword alone where the model does not answer."""
        rankings: dict[str, Retrieved] = {}
        if mode != "keyword":
            floor = LEXICAL_FLOOR if mode == "hybrid" and self._is_lexical else -1.0
            try:
                rankings["vector"] = self._by_vector(query, depth, allowed, floor, notes)
            except (EndpointError, ModelUnusable) as error:
                notes.append(f"{error.message} (try: {error.remedy}): answered by keyword only")
        if mode != "vector" or not rankings:
            rankings["keyword"] = self._by_keyword(query, depth, allowed, notes)
        return rankings

    def _present(self, ranked: Sequence[Ranked], count: int, looks: dict[Text, Look]) -> list[Hit]:
        """The best files that are there, and behind them, where there is room, those that are gone.

        Args:
            ranked: Texts, best first; a file takes one place, that of its best text.
            count: At most so many.
            looks: What was seen so far of this answer's files; what is looked at is added.
        """
        there: list[Hit] = []
        gone: list[Hit] = []
        taken: set[ChunkPath] = set()
        for start in range(0, len(ranked), count):
            if len(there) == count:
                break
            block = ranked[start : start + count]
            rows = self._catalog.files([path for (path, _), _, _ in block])
            for text, score, why in block:
                path = text[0]
                if len(there) == count:
                    break
                if path in taken:
                    continue
                taken.add(path)
                look = looks[text] if text in looks else self._look(rows[path], text[1])
                looks[text] = look
                if look.freshness is not None:
                    hit = self._hit(rows[path], look, score, why())
                    self.found[hit.path] = Found(row=rows[path], look=look)
                    (gone if look.freshness == "gone" else there).append(hit)
        return [*there, *gone][:count]

    def _look(self, row: FileRow, part: int) -> Look:
        """What a file is now; what is not as it was indexed may have a row of another file."""
        look = self._looker.look(row, part)
        if look.freshness == "fresh" or self._catalog.row_is_sound(row):
            return look
        return Look(freshness=None, code=freshness.MISMATCH)

    @property
    def _is_lexical(self) -> bool:
        return self._embedder is not None and self._embedder.lexical

    def _respellings(self, query: Query, mode: Mode, notes: list[str]) -> tuple[Respelling, ...]:
        """Words that no document has, with what may be meant; vectors need no such help."""
        reader = self._open_reader(notes) if mode != "vector" else None
        return reader.respell(query) if reader is not None else ()

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

    def _by_vector(
        self, query: Query, depth: int, allowed: set[int] | None, floor: float, notes: list[str]
    ) -> Retrieved:
        import numpy

        meant = query.text()
        if self._embedder is None or self._embeddings is None or not meant:
            return []
        required, banned = self._bounds(query, notes)
        if required is not None:
            holding = set(map(file_of_text, required))
            allowed = holding if allowed is None else allowed & holding
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
        wanted = math.ceil(depth * self._vectors_per_file()) + _SPARE
        while True:
            nearest = self._index.search(vector, wanted, allowed=vectors)
            near = [(found, score) for found, score in nearest if score >= floor]
            texts = self._texts_of(near, allowed, required, banned)
            if len(texts) >= depth or len(near) < wanted:
                return texts[:depth]
            wanted *= 4

    def _vectors_per_file(self) -> float:
        """On average: a file is found by each of its questions, and takes one place."""
        if self._per_file is None:
            files = max(1, self._catalog.text_count())
            self._per_file = max(1.0, self._catalog.count("vectors") / files)
        return self._per_file

    def _bounds(self, query: Query, notes: list[str]) -> tuple[set[int] | None, set[int]]:
        """What +required and -excluded words leave to vectors: text ids allowed, and banned."""
        required, excluded = query.of_need(Need.REQUIRED), query.of_need(Need.EXCLUDED)
        reader = self._open_reader(notes) if required or excluded else None
        allowed: set[int] | None = None
        banned: set[int] = set()
        if reader is not None:
            for clause in required:
                holding = reader.matching(clause)
                allowed = holding if allowed is None else allowed & holding
            for clause in excluded:
                banned |= reader.matching(clause)
        return allowed, banned

    def _texts_of(
        self,
        nearest: Sequence[tuple[int, float]],
        allowed: set[int] | None,
        required: set[int] | None,
        banned: set[int],
    ) -> Retrieved:
        """Each text once, with its best score; the questions of a chunk file lead to its text.

        Args:
            nearest: Vectors and scores, best first.
            allowed: The files that may answer; None for all.
            required: The texts that may; None for all.
            banned: The texts that may not.
        """
        owners = self._catalog.files_of_vectors([vector for vector, _ in nearest])
        best: dict[int, float] = {}
        for vector, score in nearest:
            for file, part in owners.get(vector, ()):
                text = text_id(file, part) if self._layout.is_in_place else file
                may = (allowed is None or file in allowed) and text not in banned
                if may and (required is None or text in required):
                    best.setdefault(text, score)
        return self._ordered(list(best.items()))

    def _by_keyword(
        self, query: Query, depth: int, allowed: set[int] | None, notes: list[str]
    ) -> Retrieved:
        reader = self._open_reader(notes)
        if reader is None:
            return []
        wanted = depth + _SPARE
        while True:
            found = reader.search(query, wanted)
            texts = self._ordered(
                [one for one in found if allowed is None or file_of_text(one[0]) in allowed]
            )
            if len(texts) >= depth or len(found) < wanted:
                return texts[:depth]
            wanted *= 4

    def _ordered(self, scored: Sequence[tuple[int, float]]) -> Retrieved:
        """Text ids as texts, best first, ties by path; ids of no indexed file go."""
        paths = self._catalog.indexed_paths(
            list(dict.fromkeys(file_of_text(text) for text, _ in scored))
        )
        ranking = [
            ((paths[file], part_of_text(text)), score)
            for text, score in scored
            if (file := file_of_text(text)) in paths
        ]
        return sorted(ranking, key=lambda pair: (-pair[1], pair[0]))

    def marker(self, query: Query) -> Marker:
        """What finds the query in the texts of its answer."""
        if self._reader is None:
            return Marker(query)
        return Marker(query, self._reader.rarity, self._reader.languages)

    def nearest(self, query: Query) -> Nearest | None:
        """What finds the sentence nearest to the query; None where that would take too long."""
        if self._embedder is None or not self._is_lexical or self._asked is None:
            return None
        text, vector = self._asked
        return Nearest(self._embedder, vector) if text == query.text() else None

    def _open_reader(self, notes: list[str]) -> Reader | None:
        if self._reader is not None:
            return self._reader
        try:
            return self._open_stamped(notes)
        except FulltextMissing:
            pass
        except FulltextUnreadable as error:
            notes.append(error.message)
            return None
        try:
            # Two commits passed between reading the stamp and its files: the new stamp is there.
            return self._open_stamped(notes)
        except FulltextMissing as error:
            notes.append(f"{error.message}: run 'filestore sync'")
            return None
        except FulltextUnreadable as error:
            notes.append(error.message)
            return None

    def _open_stamped(self, notes: list[str]) -> Reader | None:
        stamp = fulltext_file.own_stamp(self._places, self._catalog)
        if stamp is None:
            notes.append("there is no full-text index: run 'filestore sync'")
            return None
        try:
            if stamp.generation < self.generation:
                # No file of it, or no room for a copy: it is opened as it is, and that is said.
                with contextlib.suppress(OSError):
                    self._reader = open_caught_up(self._places, self._catalog, stamp)
            if self._reader is None and stamp.generation != self.generation:
                way = "behind" if stamp.generation < self.generation else "ahead"
                notes.append(f"the full-text index is {way}: run 'filestore sync'")
            if self._reader is None:
                self._reader = Reader.open(self._places.fulltext, stamp)
        except FulltextDamaged as error:
            notes.append(f"{error.message}: run 'filestore sync'")
            return None
        return self._reader

    def _fuse(self, query: Query, rankings: Mapping[str, Retrieved]) -> list[Ranked]:
        """Texts with their fused score and the part each ranking had in it, best first."""
        if len(rankings) == 1:
            ((name, ranking),) = rankings.items()
            ranked = enumerate(ranking, start=1)
            return [
                (text, score, partial(_why_of_one, name, rank, score))
                for rank, (text, score) in ranked
            ]
        return _explained(
            fuse_rankings(rankings, lexical=self._is_lexical, known=self._known_share(query))
        )

    def _known_share(self, query: Query) -> float:
        return self._reader.known_share(query) if self._reader is not None else 1.0

    def _hit(self, row: FileRow, look: Look, score: float, why: Why) -> Hit:
        return Hit(
            path=self._places.tree.store_path(row.path),
            score=score,
            kind=row.kind,
            resource=row.resource,
            source=row.source or self._source_of(row),
            freshness=look.freshness or "gone",
            headings=look.headings,
            pages=look.pages,
            text=look.body,
            why=why,
        )

    def _source_of(self, row: FileRow) -> str | None:
        if not self._sources:
            owners = self._catalog.sources_of_resources()
            self._sources = {resource: source for source, resource in owners.items()}
        return self._sources.get(row.resource)


def _left_out(understood: Understood) -> list[str]:
    """What a person must know who did not mean to exclude anything."""
    if not understood.excluded:
        return []
    named = " or ".join(understood.excluded)
    return [f"texts with {named} are left out; the syntax 'plain' searches for all words as typed"]


def _on_spelling(found: Sequence[Respelling], *, found_nothing: bool) -> list[str]:
    """Which words were searched for besides those that were typed, and which were not."""
    said = []
    for one in found:
        meant = " or ".join(f'"{word}"' for word in one.meant)
        if not one.strict:
            also = meant.replace(" or ", " and ")
            said.append(f'no document has "{one.word}": searched for {also} as well')
        elif found_nothing:
            said.append(f'no document has "{one.word}"; did you mean {meant}?')
    return said


def fuse_rankings(
    rankings: Mapping[str, list[tuple[Item, float]]], *, lexical: bool, known: float = 1.0
) -> list[Fused[Item]]:
    """The rankings ``keyword`` and ``vector`` as one.

    Args:
        rankings: Each with the `DEPTH` best, or all it found; either may be empty.
        lexical: Whether the vectors compare words only.
        known: How much of the query's words the documents have, 0 to 1.
    """
    weighted = {
        # What keywords do not find shares no word with the query, and so scores 0.
        "keyword": Ranking(scored=rankings["keyword"], floor=0.0, weight=known**KNOWN_POWER),
        "vector": Ranking(
            scored=rankings["vector"],
            weight=LEXICAL_WEIGHT if lexical else VECTOR_WEIGHT,
            floor=LEXICAL_FLOOR if lexical else None,
        ),
    }
    return fuse(weighted)


def _explained(fused: Sequence[Fused[Text]]) -> list[Ranked]:
    """Texts, scores, and what each ranking said, with how much it had to say at all."""
    best: dict[str, float] = {}
    for one in fused:
        for retriever, part in one.parts.items():
            best[retriever] = max(part.points, best.get(retriever, 0.0))
    total = sum(best.values())
    confidence = {retriever: points / total for retriever, points in best.items()}
    return [(one.item, one.score, partial(_why, one, confidence)) for one in fused]


def _why(one: Fused[Text], confidence: Mapping[str, float]) -> Why:
    return {
        retriever: {
            "rank": part.rank,
            "score": part.score,
            "evidence": part.evidence,
            "points": part.points,
            "confidence": confidence[retriever],
        }
        for retriever, part in one.parts.items()
    }


def _why_of_one(retriever: str, rank: int, score: float) -> Why:
    return {retriever: {"rank": rank, "score": score}}


def _unresolved(catalog: Catalog) -> list[str]:
    """What a merge keeps out of every answer until a person resolves it."""
    number = queries.count_excluded(catalog, "conflict-markers")
    if not number:
        return []
    files = "1 file is" if number == 1 else f"{number:,} files are"
    return [f"{files} not searched while a merge conflict is open: 'filestore status' names them"]
