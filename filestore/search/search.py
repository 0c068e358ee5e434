"""Search: a query into unique files, best first, each checked against the disk as it is returned.

Reads accelerators and the catalog of one generation. One rule: no hit is called fresh that was not
read just now and found to be what was indexed.
"""

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from filestore.catalog import (
    Catalog,
    FileRow,
    file_of_text,
    part_of_text,
    queries,
    summaries,
    text_id,
)
from filestore.chunks.observation import DOCUMENT
from filestore.core.paths import ChunkPath, StorePath
from filestore.embed import EndpointError, ModelUnusable
from filestore.fulltext import (
    MAX_CLAUSES,
    FulltextMissing,
    FulltextUnreadable,
    Marker,
    Need,
    ParsedQuery,
    Reader,
    most_telling,
    parse_query,
    respelled,
)
from filestore.index.base import BackendError
from filestore.search import filters, freshness, said
from filestore.search.answer import Answer, Found, Hit, Why
from filestore.search.filters import Filters
from filestore.search.freshness import Look, Looker
from filestore.search.fusion import DEPTH
from filestore.search.passage import Nearest
from filestore.search.query import Mode, Query, Which
from filestore.search.ranking import (
    LEXICAL_FLOOR,
    Ranked,
    Retrieved,
    Text,
    explained,
    fuse_rankings,
    why_of_one,
    with_question,
)
from filestore.search.vectors import Vectors
from filestore.sidecar.fulltext_file import open_reader

if TYPE_CHECKING:
    from filestore.search.leading import Leading
    from filestore.sidecar.session import Parts
    from filestore.sidecar.summary_tree import SummaryTree

_SPARE: Final = 8
"""Asked for beyond what is wanted, so that a file found twice does not mean asking again."""
_SECTIONS: Final = 3
"""So many of a document are looked at, on average, before more are asked for."""
_DEEPEST: Final = 5_000
"""So far down its rankings a search looks for files that are still there."""
NO_TREE: Final = (
    "no summaries are here to search by --tree: 'filestore enrich --summaries' makes them;"
    " answered from all texts"
)


class Searcher:
    """The parts of one generation, opened as they are first needed."""

    def __init__(self, parts: "Parts", catalog: Catalog, model: Which) -> None:
        """Open nothing yet; one query never meets vectors of the other model.

        Raises:
            NothingBeside: No model stands beside.
        """
        is_own = model == "own"
        if not is_own and parts.beside is None:
            from filestore.sidecar.beside import NothingBeside

            raise NothingBeside
        self._parts = parts
        self._places, self._layout, self._catalog = parts.places, parts.layout, catalog
        self._embeddings = parts.embeddings()
        self._embedder = (parts.searched_model if is_own else parts.searched_beside)(catalog)
        self._vectors: Vectors | None = None
        if self._embeddings is not None and self._embedder is not None:
            rows = parts.rows if is_own else None
            self._vectors = Vectors(parts, catalog, self._embeddings, self._embedder, rows)
        self._no_model = parts.why_no_model() if is_own else parts.why_no_beside()
        self.generation = catalog.generation
        self._reader: Reader | None = None
        self._on_reader: tuple[str, ...] = ()
        self._leading: Leading | None = None
        self._sources: dict[str, str] = {}
        self._paths: dict[int, ChunkPath] = {}
        self._documents: dict[ChunkPath, tuple[tuple[str, str | None], int]] = {}
        """Of the files that were found: what they are texts of, and of how many it is."""
        self._asked = ParsedQuery()
        self._notes: list[str] = []
        """What the user should know of the answer that is being made."""
        self._hidden: frozenset[int] = frozenset()
        self._with_questions = True
        self._best_parts: dict[int, int] = {}
        self._via: dict[ChunkPath, tuple[ChunkPath, ...]] = {}
        self._looker = Looker(parts, catalog)
        self._ancestors = summaries.Ancestors(catalog)
        self.stale = summaries.Stale(catalog)
        self.found: dict[StorePath, Found] = {}
        """The files of the last answer's hits."""

    def close(self) -> None:
        """Let go of everything that was opened."""
        if self._vectors is not None:
            self._vectors.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._looker.close()

    @cached_property
    def _tree(self) -> "SummaryTree":
        from filestore.sidecar.summary_tree import SummaryTree

        return SummaryTree(summaries.all_children(self._catalog))

    @cached_property
    def _unresolved(self) -> list[str]:
        return said.unresolved(self._catalog)

    @cached_property
    def has_summaries(self) -> bool:
        """Whether there is any; a look at one row."""
        return summaries.has_summaries(self._catalog)

    def search(self, query: Query, rewrites: Sequence[str] = ()) -> Answer:
        """Answer a query with files that are there, and where there is room, with those gone.

        Args:
            query: What is asked; `rerank`, `group` and what is only shown are others' business.
            rewrites: The same in other words; their answers count, too.
        """
        asked = parse_query(query.text, query.syntax)
        if len(asked.clauses) > MAX_CLAUSES and (reader := self._open_reader()) is not None:
            asked = most_telling(asked, reader.rarity)
        self._asked, understood = asked, asked.understood()
        self._notes = notes = said.left_out(understood, asked.left_out)
        self._with_questions = "questions" not in query.without
        hides = "summaries" in query.without and self.has_summaries
        self._hidden = frozenset(self._catalog.files_of_kind("summary") if hides else ())
        wanted = Filters.of(query)
        allowed = filters.allowed(self._catalog, wanted, self._places, notes) if wanted else None
        mode = self._possible(query.mode)
        # Words that no document has; vectors need no such help.
        reader = self._open_reader() if mode != "vector" else None
        found = reader.respell(asked) if reader is not None else ()
        meant = [respelled(asked, found), *(parse_query(one, "plain") for one in rewrites)]
        self._best_parts, self._via = {}, {}
        if self._vectors is not None:
            self._vectors.forget({one.text() for one in meant})
            self._vectors.limit(wanted, alone=not (query.tree or self._hidden))
        if query.tree:
            allowed = self._traverse(meant, mode, allowed)
        collapses = not (query.tree or wanted.kind or self._hidden) and self.has_summaries
        hits, mode = self._hits(meant, query.k, mode, allowed, collapses=collapses)
        on_spelling = said.on_spelling(found, found_nothing=not hits)
        notes += [*on_spelling, *self._unresolved]
        notes += self._on_vectors(mode)
        return Answer(
            query=query.text,
            root=os.path.realpath(self._places.root),
            understood=understood,
            mode=mode,
            generation=self.generation,
            hits=tuple(hits),
            notes=tuple(dict.fromkeys(notes)),
            on_spelling=tuple(on_spelling),
            rewrites=tuple(rewrites),
        )

    def _on_vectors(self, mode: Mode) -> list[str]:
        """What to know of an answer by vectors."""
        if mode == "keyword" or self._vectors is None:
            return []
        notes = said.not_embedded(self._catalog, self._vectors.index, self._embedder)
        if self._is_lexical and mode == "vector":
            notes.append("the builtin embedder compares words, not meaning")
        return notes

    def _hits(
        self,
        queries: Sequence[ParsedQuery],
        count: int,
        mode: Mode,
        allowed: set[int] | None,
        *,
        collapses: bool,
    ) -> tuple[list[Hit], Mode]:
        """So many files that are there, and those that are gone; and the mode that answered."""
        self.found = {}
        # A file takes one place, whichever of its sections answer.
        depth = _SECTIONS * count if self._layout.is_in_place else count
        depth = max(DEPTH, depth) if mode == "hybrid" or collapses else depth
        looks: dict[Text, Look] = {}
        self._looker.begin()
        while True:
            ranked, mode, is_all = self._ranked(queries, mode, depth, allowed)
            hits = self._present(self._collapsed(ranked) if collapses else ranked, count, looks)
            behind = ("gone", "summary") if collapses else ("gone",)
            there = sum(hit.freshness not in behind and hit.kind not in behind for hit in hits)
            if there == count or is_all or depth >= _DEEPEST or not self._looker.sees:
                seen = list(looks.values())
                self._notes += freshness.notes(self._parts, self._catalog, seen)
                return hits, mode
            # Neither gone and excluded files take a place, nor summaries: the next best do.
            depth *= 4

    def _ranked(
        self,
        queries: Sequence[ParsedQuery],
        mode: Mode,
        depth: int,
        allowed: set[int] | None,
    ) -> tuple[list[Ranked], Mode, bool]:
        """Texts by all queries together, the mode that answered, and whether these are all."""
        rankings = self._rankings(queries[0], mode, depth, allowed)
        mode = mode if "vector" in rankings else "keyword"
        is_all = all(len(ranking) < depth for ranking in rankings.values())
        for number, query in enumerate(queries[1:], start=1):
            others = self._fuse(query, self._rankings(query, mode, depth, allowed))
            is_all = is_all and len(others) < depth
            rankings[f"rewrite {number}"] = [(text, score) for text, score, _ in others]
        return self._fuse(queries[0], rankings), mode, is_all

    def _collapsed(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """The ranking in which no summary stands above what it was made from."""
        from filestore.search.collapse import collapse

        rows = self._catalog.files(list(dict.fromkeys(path for (path, _), _, _ in ranked)))
        made = {path for path, row in rows.items() if row.kind == "summary"}
        found, lifted = collapse(ranked, made, self._ancestors.of(list(rows)))
        self._via = {path: (summary,) for path, summary in lifted.items()}
        return found

    def _traverse(
        self, queries: Sequence[ParsedQuery], mode: Mode, allowed: set[int] | None
    ) -> set[int] | None:
        """The files that summaries lead to, best branches first; None for all, where none do."""
        if not self.has_summaries:
            self._notes.append(NO_TREE)
            return allowed
        from filestore.search.traverse import descend

        def best(nodes: Sequence[ChunkPath]) -> list[ChunkPath]:
            ids = {row.id for row in self._catalog.files(nodes).values()}
            ranked, _, _ = self._ranked(queries, mode, DEPTH, ids)
            return list(dict.fromkeys(path for (path, _), _, _ in ranked))

        self._via = descend(self._tree, best)
        found = {row.id for row in self._catalog.files(list(self._via)).values()}
        if beside := self._catalog.indexed_count() - len(self._tree.files):
            files = "1 file is" if beside == 1 else f"{beside:,} files are"
            self._notes.append(f"{files} in no summary, and not searched with --tree")
        return found if allowed is None else found & allowed

    def _rankings(
        self, query: ParsedQuery, mode: Mode, depth: int, allowed: set[int] | None
    ) -> dict[str, Retrieved]:
        """What each way of searching finds; by keyword alone where the model does not answer."""
        rankings: dict[str, Retrieved] = {}
        if mode != "keyword":
            floor = LEXICAL_FLOOR if mode == "hybrid" and self._is_lexical else -1.0
            try:
                rankings["vector"] = self._by_vector(query, depth, allowed, floor)
            except (BackendError, EndpointError, ModelUnusable) as error:
                remedy = f" (try: {error.remedy})" if error.remedy else ""
                self._notes.append(f"{error.message}{remedy}: answered by keyword only")
                if self._vectors is not None:  # a connection that broke is made anew
                    self._vectors.close()
        if mode != "vector" or not rankings:
            rankings["keyword"] = self._by_keyword(query, depth, allowed)
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
                look = looks[text] if text in looks else self._looker.look(rows[path], text[1])
                looks[text] = look
                if look.freshness is not None:
                    hit = self._hit(rows[path], look, score, why())
                    self.found[hit.path] = Found(row=rows[path], look=look)
                    (gone if look.freshness == "gone" else there).append(hit)
        return [*there, *gone][:count]

    @property
    def _is_lexical(self) -> bool:
        return self._embedder is not None and self._embedder.lexical

    def _possible(self, mode: Mode) -> Mode:
        if mode == "keyword":
            return mode
        if self._embedder is None:
            self._notes.append(f"{self._no_model}: answered by keyword only")
            return "keyword"
        if self._embeddings is None:
            self._notes.append(
                "the embeddings cannot be read: answered by keyword; run 'filestore sync --full'"
            )
            return "keyword"
        return mode

    def _by_vector(
        self, query: ParsedQuery, depth: int, allowed: set[int] | None, floor: float
    ) -> Retrieved:
        meant = query.text()
        if self._vectors is None or not meant:
            return []
        required, banned = self._bounds(query)
        if required is not None:
            holding = set(map(file_of_text, required))
            allowed = holding if allowed is None else allowed & holding
        near_to = self._vectors.near(meant, allowed, is_filtered=required is None)
        wanted = math.ceil(depth * self._vectors_per_file) + _SPARE
        while True:
            near = [(found, score) for found, score in near_to(wanted) if score >= floor]
            texts = self._texts_of(near, allowed, required, banned)
            # Those that tie with the last one are ordered by path, and none of them is left out.
            if len(near) < wanted or (len(texts) >= depth and near[-1][1] < texts[depth - 1][1]):
                self._notes += self._vectors.lacking
                return texts[:depth]
            wanted *= 4

    @cached_property
    def _vectors_per_file(self) -> float:
        """On average: a file is found by each of its questions, and takes one place."""
        return max(1.0, self._catalog.count("vectors") / max(1, self._catalog.text_count()))

    def _bounds(self, query: ParsedQuery) -> tuple[set[int] | None, set[int]]:
        """What +required and -excluded words leave to vectors: text ids allowed, and banned."""
        required, excluded = query.of_need(Need.REQUIRED), query.of_need(Need.EXCLUDED)
        reader = self._open_reader() if required or excluded else None
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
        """Each text once, with its score; the questions of a chunk file lead to its text.

        A text that is not among the nearest itself has the score of the last of them, at most.

        Args:
            nearest: Vectors and scores, best first.
            allowed: The files that may answer; None for all.
            required: The texts that may; None for all.
            banned: The texts that may not.
        """
        owners = self._catalog.files_of_vectors([vector for vector, _ in nearest])
        own: dict[int, float] = {}
        asked: dict[int, float] = {}
        for text, score, part in self._led(
            [
                (text_id(file, part) if self._layout.is_in_place else file, score, part)
                for vector, score in nearest
                for file, part in owners.get(vector, ())
            ]
        ):
            file = file_of_text(text) if self._layout.is_in_place else text
            if text in banned or (required is not None and text not in required):
                continue
            if self._may(file, allowed) and (self._with_questions or not part):
                (asked if part else own).setdefault(text, score)
                self._best_parts.setdefault(file, part)
        least = nearest[-1][1] if nearest else 0.0
        led = {text: with_question(own.get(text, least), score) for text, score in asked.items()}
        return self._ordered(list((own | led).items()))

    def _led(self, scored: Sequence[tuple[int, float, int]]) -> Sequence[tuple[int, float, int]]:
        """What some texts lead to, each with its score and the question that it answers, or 0."""
        if not self._layout.is_in_place:
            return scored
        if self._leading is None:
            from filestore.search.leading import Leading

            self._leading = Leading(self._catalog)
        return self._leading.led(scored)

    def _by_keyword(self, query: ParsedQuery, depth: int, allowed: set[int] | None) -> Retrieved:
        reader = self._open_reader()
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

    def marker(self) -> Marker:
        """What finds the last query in the texts of its answer."""
        asked, reader = self._asked, self._reader
        return Marker(asked, reader.rarity, reader.languages) if reader else Marker(asked)

    def nearest(self) -> Nearest | None:
        """What finds the sentence nearest to it; None where that would take too long."""
        vector = self._vectors.asked(self._asked.text()) if self._vectors is not None else None
        if self._embedder is None or not self._is_lexical or vector is None:
            return None
        return Nearest(self._embedder, vector)

    def _open_reader(self) -> Reader | None:
        if self._reader is not None:
            self._notes += self._on_reader
            return self._reader
        try:
            with contextlib.suppress(FulltextMissing):
                return self._open_stamped()
            # Two commits passed between reading the stamp and its files: the new stamp is there.
            return self._open_stamped()
        except FulltextMissing as error:
            self._notes.append(f"{error.message}: run 'filestore sync'")
        except FulltextUnreadable as error:
            self._notes.append(f"{error.message}: {error.remedy}")
        return None

    def _open_stamped(self) -> Reader | None:
        self._reader, note = open_reader(self._places, self._catalog)
        self._on_reader = (note,) if note else ()
        self._notes += self._on_reader
        return self._reader

    def _fuse(self, query: ParsedQuery, rankings: Mapping[str, Retrieved]) -> list[Ranked]:
        """Texts with their fused score and the part each ranking had in it, best first."""
        if len(rankings) == 1:
            ((name, ranking),) = rankings.items()
            ranked = enumerate(ranking, start=1)
            return [
                (text, score, partial(why_of_one, name, rank, score))
                for rank, (text, score) in ranked
            ]
        by_vector = rankings.get("vector")
        fused = fuse_rankings(
            rankings,
            lexical=self._is_lexical,
            known=self._reader.known_share(query) if self._reader is not None else 1.0,
            fluency=self._embedder.fluency(query.text()) if by_vector and self._embedder else 1.0,
            wholes={
                text: self._documents[text[0]]
                for found in rankings.values()
                for text, _ in found
                if text[0] in self._documents
            },
        )
        return explained(fused)

    def _hit(self, row: FileRow, look: Look, score: float, why: Why) -> Hit:
        number = 0 if row.kind == DOCUMENT else self._best_parts.get(row.id, 0)
        if number and "vector" in why:
            why = {**why, "vector": {**why["vector"], "question": number}}
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
            via=tuple(map(self._places.tree.store_path, self._via.get(row.path, ()))),
        )

    def _source_of(self, row: FileRow) -> str | None:
        if not self._sources:
            owners = self._catalog.sources_of_resources()
            self._sources = {resource: source for source, resource in owners.items()}
        return self._sources.get(row.resource)
