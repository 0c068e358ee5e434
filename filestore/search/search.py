"""Search: a query into unique files, best first, each checked against the disk as it is returned.

Reads accelerators and the catalog of one generation. One rule: no hit is called fresh that was not
read just now and found to be what was indexed.
"""

import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Catalog, FileRow, ages, queries, summaries
from filestore.chunks.observation import DOCUMENT
from filestore.config.settings import Which
from filestore.core.findings import Behind
from filestore.core.paths import ChunkPath, StorePath
from filestore.fulltext import (
    BINDING,
    MAX_CLAUSES,
    Marker,
    Need,
    ParsedQuery,
    corrected,
    most_telling,
    parse_query,
    respelled,
)
from filestore.search import Mode, Query, freshness
from filestore.search.answer import Answer, Found, Hit, left_out, on_spelling
from filestore.search.authority import Authority
from filestore.search.freshness import Look, Looker
from filestore.search.passage import Nearest, is_list
from filestore.search.ranking import (
    DEPTH,
    Ranked,
    Text,
    Why,
    collapse,
    demoted,
    descend,
    merged,
    put_back,
    why_of_one,
)
from filestore.search.retriever import Retriever

if TYPE_CHECKING:
    from filestore.fulltext import Respelling
    from filestore.sidecar.session import Parts
    from filestore.sidecar.summary_tree import SummaryTree

_LONGEST_NAME: Final = 8
"""More words than these ask for no name of a file."""
_NAME_WORDS: Final = re.compile(r"[^\W_]+")
_NEAREST: Final = 3
"""How many are shown where nothing is close."""
_MOST_COPIES: Final = 50
"""How many files with the text of a hit are looked at."""
_SECTIONS: Final = 3
"""How many of a document are looked at, on average, before more are asked for."""
_DEEPEST: Final = 5_000
"""So far down its rankings a search looks for files that are still there."""
NO_TREE: Final = (
    "no summaries are here to search by --tree: 'filestore enrich --summaries' makes them;"
    " answered from all passages"
)


class Searcher:
    """The parts of one generation, opened as they are first needed."""

    def __init__(self, parts: "Parts", catalog: Catalog, model: Which) -> None:
        """Open nothing yet; one query never meets vectors of the other model.

        Raises:
            NothingBeside: The store has no second model.
        """
        self._parts = parts
        self._places, self._layout, self._catalog = parts.places, parts.layout, catalog
        self._keys = parts.settings.keys
        self._retriever = Retriever(parts, catalog, model)
        self.generation = catalog.generation
        self._sources: dict[str, str] = {}
        self._asked = ParsedQuery()
        self._notes: list[str] = []
        """What the user should know of the answer that is being made."""
        self._may_fold = True
        """Whether files with one text are one hit."""
        self._by_date = False
        """Whether what no word ranks is listed the newest first."""
        self._via: dict[ChunkPath, tuple[ChunkPath, ...]] = {}
        self._looker = Looker(parts, catalog)
        self.behind = Behind()
        """What the look at the files found."""
        self._ancestors = summaries.Ancestors(catalog)
        self.stale = summaries.Stale(catalog)
        self.authority = Authority(parts.places, catalog, parts.settings.keys)
        self.found: dict[StorePath, Found] = {}
        """The files of the last answer's hits."""

    def close(self) -> None:
        """Let go of everything that was opened."""
        self._retriever.close()
        self._looker.close()

    @cached_property
    def _tree(self) -> "SummaryTree":
        from filestore.sidecar.summary_tree import SummaryTree

        return SummaryTree(summaries.all_children(self._catalog))

    @cached_property
    def _unresolved(self) -> list[str]:
        """What a merge keeps out of every answer until a person resolves it."""
        number = queries.count_excluded(self._catalog, "conflict-markers")
        files = "1 file is" if number == 1 else f"{number:,} files are"
        note = f"{files} not searched while a merge conflict is open"
        return [f"{note}: 'filestore status' names them"] if number else []

    @cached_property
    def has_summaries(self) -> bool:
        """Whether there is any; a look at one row."""
        return summaries.has_summaries(self._catalog)

    def search(self, query: Query, rewrites: Sequence[str] = ()) -> Answer:
        """Answer a query with files that are there; with those gone where `Behind` says so.

        Args:
            query: What is asked; `rerank`, `group` and what is only shown are others' business.
            rewrites: The same in other words; their answers count, too.
        """
        asked = self._parsed(query)
        understood = asked.understood()
        self._notes = notes = left_out(understood, asked.left_out)
        hides = "summaries" in query.without and self.has_summaries
        hidden = frozenset(self._catalog.files_of_kind("summary") if hides else ())
        self._retriever.begin(notes, hidden, query.without)
        if query.has_filters and not asked.clauses:
            notes.clear()  # what they leave is listed
        allowed = self._allowed(query)
        mode = self._retriever.possible(query.mode)
        binding = asked.of_need(*BINDING, Need.EXCLUDED)
        reader = self._retriever.open_reader() if binding or mode != "vector" else None
        if reader is not None and (settled := reader.settled(asked)) is not asked:
            phrases = " and ".join(one.written() for one in asked.of_need(Need.EXPECTED))
            notes.append(f"{phrases} is nowhere: searched for its words")
            asked, binding = settled, settled.of_need(*BINDING, Need.EXCLUDED)
        self._by_date = query.sort == "date"
        self._asked, self._may_fold = asked, bool(asked.clauses) and "copies" not in query.without
        found = self._respellings(asked) if mode != "vector" else ()
        others = (parse_query(one, "plain") for one in rewrites)
        variants = [
            respelled(asked, found),
            *(replace(one, clauses=(*one.clauses, *binding)) for one in others),
        ]
        self._via = {}
        if self._retriever.vectors is not None:
            self._retriever.vectors.forget({one.text() for one in variants})
            self._retriever.vectors.limit(query, alone=not (query.tree or hidden))
        if query.tree:
            allowed = self._traverse(variants, mode, allowed)
        collapses = not (query.tree or query.kind or hidden) and self.has_summaries
        find = partial(self._hits, count=query.k, mode=mode, allowed=allowed, collapses=collapses)
        hits, mode = find(variants)
        nearest, respelt = list[Hit](), None
        if not hits:
            found = found or self._respellings(asked)
            hits, respelt = self._respelt(asked, found, find)
            nearest = [] if hits else self._nearest(asked)
        on_words = [] if respelt else on_spelling(found)
        notes += [*on_words, *self._unresolved, *self._on_vectors(mode)]
        return Answer(
            query=query.text,
            root=os.path.realpath(self._places.root),
            understood=understood,
            mode=mode,
            generation=self.generation,
            hits=tuple(hits),
            nearest=tuple(nearest),
            respelt=respelt,
            notes=tuple(dict.fromkeys(notes)),
            on_spelling=tuple(on_words),
            rewrites=tuple(rewrites),
        )

    def _allowed(self, query: Query) -> set[int] | None:
        """The files that its filters leave; None where there are no filters."""
        if not query.has_filters:
            return None
        from filestore.search import filters

        return filters.allowed(self._catalog, query, self._places, self._keys, self._notes)

    def _parsed(self, query: Query) -> ParsedQuery:
        """What is asked, with as many words as can be searched for."""
        asked = parse_query(query.text, query.syntax)
        if len(asked.clauses) <= MAX_CLAUSES or (reader := self._retriever.open_reader()) is None:
            return asked
        return most_telling(asked, reader.rarity)

    def _respellings(self, asked: ParsedQuery) -> "tuple[Respelling, ...]":
        """Words similar to the ones that no document has; vectors need no such help."""

        def is_spelt(word: str) -> bool:
            from filestore.embed import vocabulary

            return vocabulary.holds(word)

        reader = self._retriever.open_reader()
        return reader.respell(asked, is_spelt) if reader is not None else ()

    def _respelt(
        self,
        asked: ParsedQuery,
        found: "Sequence[Respelling]",
        find: Callable[[Sequence[ParsedQuery]], tuple[list[Hit], Mode]],
    ) -> tuple[list[Hit], str | None]:
        """What another spelling finds, and that spelling; nothing where there is none."""
        other = corrected(asked, found)
        hits = find([other])[0] if other is not None else []
        if other is None or not hits:
            return [], None
        self._asked = other
        return hits, other.text()

    def _nearest(self, asked: ParsedQuery) -> list[Hit]:
        """What is shown where nothing is close."""
        ranked: list[Ranked] = [
            (text, score, partial(why_of_one, "vector", rank, score))
            for rank, (text, score) in enumerate(self._retriever.apart, start=1)
        ]
        return self._with_meaning(asked, self._present(ranked, _NEAREST, {}, None), "vector")

    def _on_vectors(self, mode: Mode) -> list[str]:
        """What to know of an answer by vectors."""
        if mode == "keyword" or self._retriever.vectors is None:
            return []
        notes = self._retriever.vectors.not_embedded()
        if self._retriever.is_lexical and mode == "vector":
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
        """How many files, and the mode that answered."""
        self.found = {}
        # A file takes one place, whichever of its sections answer.
        depth = _SECTIONS * count if self._layout.has_sections else count
        depth = max(DEPTH, depth) if mode != "vector" or collapses else depth
        looks: dict[Text, Look] = {}
        self._looker.begin(shows_gone=self.behind.shows_gone)
        while True:
            ranked, mode, is_all = self._ranked(queries, mode, depth, allowed)
            if mode != "vector":
                ranked = self._named_so_first(ranked)
            if collapses:
                # No summary is above what it was made from.
                rows = self._catalog.files(list(dict.fromkeys(path for (path, _), _, _ in ranked)))
                made = {path for path, row in rows.items() if row.kind == "summary"}
                ranked, lifted = collapse(ranked, made, self._ancestors.of(list(rows)))
                self._via = {path: (summary,) for path, summary in lifted.items()}
            is_last = is_all or depth >= _DEEPEST or not self._looker.sees
            hits = self._present(ranked, count, looks, allowed, is_last=is_last)
            there = sum(not (collapses and hit.kind == "summary") for hit in hits)
            if there == count or is_last:
                seen = list(looks.values())
                # A look at all files has counted the ones that are gone.
                is_counted = self.behind.gone is not None
                gone_are = "" if is_counted else "that would answer"
                self._notes += freshness.notes(seen, gone_are=gone_are)
                return self._with_meaning(queries[0], hits, mode), mode
            # Neither gone and excluded files take a place, nor summaries: the next best do.
            depth *= 4

    def _ranked(
        self,
        queries: Sequence[ParsedQuery],
        mode: Mode,
        depth: int,
        allowed: set[int] | None,
    ) -> tuple[list[Ranked], Mode, bool]:
        """Texts by all queries together, the mode that answered, and whether these are all.

        Without a word the ones that the filters leave, by path, or the newest first.
        """
        if allowed is not None and not queries[0].clauses:
            found = self._catalog.indexed_paths(list(allowed))
            paths = sorted(found.values())
            if self._by_date:
                days = ages.updated(self._catalog, self._places.tree, self._keys)
                at = {path: days[file].day for file, path in found.items() if file in days}
                paths.sort(key=lambda path: at.get(path, ""), reverse=True)
            return [((path, 0), 0.0, dict) for path in paths], "keyword", True
        rankings = self._retriever.rankings(queries[0], mode, depth, allowed)
        mode = mode if "vector" in rankings else "keyword"
        is_all = self._retriever.is_all(rankings, depth)
        for number, query in enumerate(queries[1:], start=1):
            others = self._retriever.fuse(
                query, self._retriever.rankings(query, mode, depth, allowed)
            )
            is_all = is_all and len(others) < depth
            rankings[f"rewrite {number}"] = [(text, score) for text, score, _ in others]
        return self._retriever.fuse(queries[0], rankings), mode, is_all

    def _named_so_first(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """The same, but first the documents with all that is asked in the name of their file.

        Vectors do not know that name, and what mentions a document is near to it. However many
        hits are wanted, as many places are looked at.
        """
        asked = _words_of(" ".join(clause.text for clause in self._asked.wanted()))
        if not 0 < len(asked) <= _LONGEST_NAME:
            return list(ranked)
        head, marker = list(ranked[:DEPTH]), self.marker()
        rows = self._catalog.files(list(dict.fromkeys(path for (path, _), _, _ in head)))
        shares = {
            path: _share_of_name(row.source or row.resource or path, asked, marker)
            for path, row in rows.items()
        }
        head.sort(key=lambda one: shares.get(one[0][0], 0.0), reverse=True)
        return [*head, *ranked[DEPTH:]]

    def _traverse(
        self, queries: Sequence[ParsedQuery], mode: Mode, allowed: set[int] | None
    ) -> set[int] | None:
        """The files that summaries lead to, best branches first; None for all, where none do."""
        if not self.has_summaries:
            self._notes.append(NO_TREE)
            return allowed

        def best(nodes: Sequence[ChunkPath]) -> list[ChunkPath]:
            ids = {row.id for row in self._catalog.files(nodes).values()}
            cuts, self._retriever.cuts = self._retriever.cuts, False
            ranked, _, _ = self._ranked(queries, mode, DEPTH, ids)
            self._retriever.cuts = cuts
            return list(dict.fromkeys(path for (path, _), _, _ in ranked))

        self._via = descend(self._tree, best)
        found = {row.id for row in self._catalog.files(list(self._via)).values()}
        if outside := self._catalog.indexed_count() - len(self._tree.files):
            files = "1 file is" if outside == 1 else f"{outside:,} files are"
            self._notes.append(f"{files} in no summary, so --tree does not search them")
        return found if allowed is None else found & allowed

    def _present(
        self,
        ranked: Sequence[Ranked],
        count: int,
        looks: dict[Text, Look],
        allowed: set[int] | None,
        *,
        is_last: bool = True,
    ) -> list[Hit]:
        """The best files that may be shown; a list of links comes after what says something.

        Args:
            ranked: Texts, best first; a file takes one place, that of its best text, and so do all
                that have this very text.
            count: At most this many.
            looks: What was seen so far of this answer's files; what is looked at is added.
            allowed: The files that may answer; None for all.
            is_last: Whether no more texts can be had, so that lists have the places left.
        """
        shown: list[Hit] = []
        taken: set[ChunkPath] = set()
        copied: set[int] = set()
        """Texts of which not every copy was looked at: all others are taken for copies."""
        lists: list[Ranked] = []
        passed: set[Text] = set()
        rows: dict[ChunkPath, FileRow] = {}
        keys: dict[Text, tuple[int, int]] = {}
        vectors: dict[tuple[int, int], int] = {}
        # What filters leave is listed whole.
        has_copies = self._may_fold and queries.has_copies(self._catalog)
        for text, score, why in merged(ranked, lists, is_last=is_last):
            if len(shown) == count:
                break
            while text not in keys:
                block = [one for one, _, _ in ranked[len(keys) : len(keys) + count]]
                rows |= self._catalog.files([path for path, _ in block])
                keys |= (new := {one: (rows[one[0]].id, one[1]) for one in block})
                if has_copies:
                    vectors |= queries.vectors_of_texts(self._catalog, list(new.values()))
            path, vector = text[0], vectors.get(keys[text])
            if path in taken or vector in copied:
                continue
            look = looks[text] = looks.get(text) or self._looker.look(rows[path], text[1])
            if look.freshness is None or (look.freshness == "gone" and not self.behind.shows_gone):
                taken.add(path)
                continue
            if text not in passed and self._asked.clauses and is_list(look.body):
                passed.add(text)
                put_back(lists, (text, demoted(score, self._named_share(rows[path], look)), why))
                continue
            taken.add(path)
            hit = self._hit(rows[path], look, score, why())
            self.found[hit.path] = Found(row=rows[path], look=look, part=text[1])
            if vector is not None and look.freshness == "fresh":
                copies, is_all = self._copies(rows[path], text[1], vector, look, allowed)
                taken.update(copies)
                copied.update([] if is_all else [vector])
                hit = replace(hit, copies=tuple(map(self._places.tree.store_path, copies)))
            shown.append(hit)
        return shown

    def _named_share(self, row: FileRow, look: Look) -> float:
        """How much of what is asked is in the names of a text, 0 to 1."""
        names = [*look.headings, row.source or row.resource]
        names += [
            one for key, one in self._catalog.metadata_of(row.id) if key in ("title", "aliases")
        ]
        marker = self.marker()
        found = {mark.term for mark in marker.marks("\n".join(names))}
        return sum(marker.weights[one] for one in found) / (sum(marker.weights) or 1.0)

    def _copies(
        self, row: FileRow, part: int, vector: int, look: Look, allowed: set[int] | None
    ) -> tuple[list[ChunkPath], bool]:
        """Other files of this kind that have the same text now, by path, and whether these are all.

        Args:
            row: Of a file that is as it was indexed.
            part: Which section of it.
            vector: The id of its text.
            look: What it says.
            allowed: The files that may answer; None for all.
        """
        owners = self._catalog.files_of_vectors([vector])[vector]
        parts = {file: place for file, place in reversed(owners) if file != row.id}
        known = self._catalog.indexed_paths([f for f in parts if allowed is None or f in allowed])
        first = sorted(known.values())[:_MOST_COPIES]
        found = []
        for path, other in sorted(self._catalog.files(first).items()):
            place = parts[other.id]
            if other.kind == row.kind and (row.kind == DOCUMENT or place == 0):
                seen = self._looker.look(other, place)
                if seen.freshness == "fresh" and seen.body == look.body:
                    found.append(path)
        return found, len(first) == len(known)

    def _with_meaning(self, asked: ParsedQuery, hits: list[Hit], mode: Mode) -> list[Hit]:
        """The same with how near each is to the query, where vectors answered."""
        vectors = self._retriever.vectors
        if mode == "keyword" or not hits or vectors is None:
            return hits
        if (closeness := self._retriever.closeness) is None:
            return hits
        texts = {one: (self.found[one].row.id, self.found[one].part) for one in self.found}
        cosines = {hit.path: hit.why.get("vector", {}).get("score") for hit in hits}
        lacking = [texts[path] for path, cosine in cosines.items() if cosine is None]
        if lacking:
            ids = queries.vectors_of_texts(self._catalog, lacking)
            found = vectors.cosines(asked.text(), list(ids.values()))
            cosines |= {
                path: found.get(ids.get(texts[path], -1))
                for path, cosine in cosines.items()
                if cosine is None
            }
        return [
            hit
            if (cosine := cosines[hit.path]) is None
            else replace(hit, meaning=closeness.meaning(cosine))
            for hit in hits
        ]

    def marker(self) -> Marker:
        """What finds the last query in the texts of its answer."""
        asked, reader = self._asked, self._retriever.reader
        return Marker(asked, reader.rarity, reader.languages) if reader else Marker(asked)

    @property
    def knows_meaning(self) -> bool:
        """Whether the vectors compare more than words."""
        return not self._retriever.is_lexical

    def nearest(self) -> Nearest | None:
        """What finds the sentence nearest to it; None where that would take too long."""
        vector = (
            self._retriever.vectors.asked(self._asked.text())
            if self._retriever.vectors is not None
            else None
        )
        if self._retriever.embedder is None or not self._retriever.is_lexical or vector is None:
            return None
        return Nearest(self._retriever.embedder, vector)

    def _hit(self, row: FileRow, look: Look, score: float, why: Why) -> Hit:
        number = 0 if row.kind == DOCUMENT else self._retriever.best_parts.get(row.id, 0)
        if number and "vector" in why:
            why = {**why, "vector": {**why["vector"], "question": number}}
        if not row.source and not self._sources:
            owners = self._catalog.sources_of_resources()
            self._sources = {resource: source for source, resource in owners.items()}
        return Hit(
            path=self._places.tree.store_path(row.path),
            score=score,
            kind=row.kind,
            resource=row.resource,
            # What is no text there is damage, and raised as that here.
            source=(row.source or "").removesuffix("") or self._sources.get(row.resource),
            freshness=look.freshness or "gone",
            headings=look.headings,
            pages=look.pages,
            text=look.body,
            why=why,
            via=tuple(map(self._places.tree.store_path, self._via.get(row.path, ()))),
        )


def _words_of(text: str) -> list[str]:
    return [word.casefold() for word in _NAME_WORDS.findall(text)]


def _share_of_name(path: str, asked: Sequence[str], marker: Marker) -> float:
    """How much of the name of a file is asked for, 0 to 1; 0 where it lacks a word of the query."""
    name = os.path.splitext(os.path.basename(path))[0]
    words = list(_NAME_WORDS.finditer(name))
    if [word[0].casefold() for word in words] == asked:
        return 1.0
    marks = marker.marks(name)
    found = [
        word[0].casefold()
        for word in words
        if any(one.start < word.end() and word.start() < one.end for one in marks)
    ]
    # Of an identifier a part is marked as well: a name has to have as many words.
    return len(found) / len(words) if found and len(set(found)) >= len(set(asked)) else 0.0
