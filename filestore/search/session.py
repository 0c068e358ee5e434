"""Searching one open store: asked, asked again in other words, reranked and grouped.

Parts of the generation are opened as they are first needed. What was typed is always asked; where
no new query can be made, it is answered alone with a note. A reranker changes the order, never
what a hit says of itself.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Catalog
from filestore.config.settings import Which
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.findings import Behind
from filestore.search import Query, authority
from filestore.search.answer import Answer, Hit, present
from filestore.search.search import Searcher

if TYPE_CHECKING:
    from filestore.generate import Generator
    from filestore.rerank import Reranker
    from filestore.sidecar.session import Parts

DEPTH: Final = 50
"""How many hits are looked at, at least: a reranker reads them again, each for about what embedding
costs, and the others of a document are counted among them."""
_PER_DOCUMENT: Final = 5
_DEEPEST: Final = 5_000
_NEAREST: Final = 5
"""How many of the texts that a query finds say in which words its answers are written."""
_NOTHING: Final = "the generator made no new query of it"
_NOT_LOOKED: Final = (
    "the files were not looked at: what is new or edited is not found; run 'filestore sync'"
)
_Rewrites = tuple[tuple[str, ...], str, int]
"""The same in other words, why there are none, and what a service counted for them, in and out."""


class SearchSession:
    """Keeps a searcher for as long as the store stays in one generation."""

    def __init__(self, parts: "Callable[[], Parts]") -> None:
        self._parts = parts
        self._searchers: dict[Which, Searcher] = {}
        self._rewritten: tuple[tuple[Query, int], _Rewrites] | None = None
        self.behind: Behind | None = None
        """What a look at the files found, for the answers that follow; None of a commit."""

    def close(self) -> None:
        """Let go of every file."""
        for searcher in self._searchers.values():
            searcher.close()
        self._searchers = {}

    def answer(self, query: Query) -> Answer:
        """Unique files, best first, each with its document, its place and its passage.

        Raises:
            UsageError: Nothing is asked.
            CatalogMissingError: There is no catalog yet.
            NothingBeside: The store has no second model.
            ModelMissing: The reranker's model, or the library that runs it, is not here.
        """
        if not (query.text.strip() or query.has_filters):
            raise UsageError(
                "nothing is asked: type a query, or a filter such as --where tags=git",
                remedy="filestore search --help",
            )
        parts = self._parts()
        with parts.reading() as catalog:
            found = by_document(self.search, query) if query.group else self.search(query)
            searcher = self._fresh_searcher(parts, catalog, query.model)
            today, annotated = parts.today(), searcher.authority.annotated
            hits = annotated(found.hits, searcher.found, today)
            if query.sort == "date":
                hits = newest_first(hits)
            nearest = annotated(found.nearest, searcher.found, today)
            return present(
                replace(found, hits=tuple(hits), nearest=tuple(nearest)),
                searcher.found,
                marker=searcher.marker(),
                knows_meaning=searcher.knows_meaning,
                nearest=searcher.nearest(),
                reachable=parts.reachable,
                catalog=catalog,
                context=query.context,
            )

    def search(self, query: Query) -> Answer:
        """The hits of `answer`, not grouped, and without what is only shown of them."""
        parts = self._parts()
        catalog = parts.catalog()
        deep = query
        if query.rerank:
            reranker = parts.model.reranker(query.rerank)
            deep = replace(query, k=max(DEPTH, query.k))
        with catalog.snapshot():
            ask = self._fresh_searcher(parts, catalog, query.model).search
            if query.rewrite:
                rewrites = partial(self._rewrites, query, catalog.generation, parts.model.generator)
                answer = rewritten(ask, deep, rewrites)
            else:
                answer = ask(deep)
        if query.rerank:
            answer = rerank(answer, reranker, count=query.k)
        with catalog.snapshot():
            searcher = self._fresh_searcher(parts, catalog, query.model)
            stale = searcher.stale
            hits, notes = authority.outdated(answer.hits, parts, catalog, stale)
            nearest, _ = authority.outdated(answer.nearest, parts, catalog, stale)
            hits = searcher.authority.behind_successors(hits)
            indexed_at = catalog.indexed_at
        behind = self.behind or Behind()
        made = replace(answer, model=query.model, indexed_at=indexed_at, behind=behind)
        made = replace(made, hits=tuple(hits), nearest=tuple(nearest))
        is_unseen = self.behind is not None and behind.new is None and not behind.notes
        not_looked = [_NOT_LOOKED] if is_unseen and not made.is_found else []
        return replace(made, notes=(*behind.notes, *answer.notes, *notes, *not_looked))

    def _rewrites(
        self, query: Query, generation: int, generator: "Callable[[], Generator]", plain: Answer
    ) -> _Rewrites:
        """New queries, made once where the same is asked again for more hits."""
        key = replace(query, k=1, rerank=None, group=None, context=0), generation
        if self._rewritten is None or self._rewritten[0] != key:
            self._rewritten = key, rewrites_of(plain, query.rewrite, generator)
        return self._rewritten[1]

    def _fresh_searcher(self, parts: "Parts", catalog: Catalog, model: Which) -> Searcher:
        """What searches the newest generation with one of the two models."""
        if any(one.generation != catalog.generation for one in self._searchers.values()):
            self.close()
        if model not in self._searchers:
            self._searchers[model] = Searcher(parts, catalog, model)
        self._searchers[model].behind = self.behind or Behind()
        return self._searchers[model]


def newest_first(hits: Sequence[Hit]) -> list[Hit]:
    """Hits by the date of their document, the best of one day first; what has none comes last."""
    return sorted(hits, key=lambda hit: hit.date or "", reverse=True)


def by_document(ask: Callable[[Query], Answer], query: Query) -> Answer:
    """The best hit of each of the best documents, of which the query wants `k`.

    Where there are too few, more hits are asked for, but not of a reranker, which is slow.
    """
    depth = max(DEPTH, _PER_DOCUMENT * query.k)
    while True:
        answer = ask(replace(query, k=depth))
        hits = grouped(answer.hits)
        is_all = len(hits) >= query.k or len(answer.hits) < depth
        if is_all or depth >= _DEEPEST or query.rerank:
            return replace(answer, hits=tuple(hits[: query.k]))
        depth *= 4


def grouped(hits: Sequence[Hit]) -> list[Hit]:
    """The first hit of each document, in order; a file that is gone is alone."""
    best: dict[str, Hit] = {}
    others: dict[str, int] = {}
    for hit in hits:
        key = hit.source if hit.source and hit.freshness != "gone" else f"\0{hit.path}"
        if key in best:
            others[key] = others.get(key, 0) + 1
        else:
            best[key] = hit
    return [replace(hit, others=others.get(key, 0)) for key, hit in best.items()]


def rewritten(
    ask: Callable[[Query, Sequence[str]], Answer],
    query: Query,
    rewrites: Callable[[Answer], _Rewrites],
) -> Answer:
    """The answer to a query and to others that are made of it.

    Args:
        ask: Answers a query, and the same in other words.
        query: What is asked.
        rewrites: Makes other queries of the plain answer.
    """
    plain = ask(query, ())
    queries, why_not, tokens = rewrites(plain)
    answer = ask(query, queries) if queries else plain
    asked = f"also asked: {'; '.join(queries)}"
    note = asked if queries else f"asked as it was typed only: {why_not}"
    return replace(answer, notes=(*answer.notes, note), tokens=tokens)


def rewrites_of(plain: Answer, wanted: int, generator: "Callable[[], Generator]") -> _Rewrites:
    """Up to this many queries that a generator makes of one and of the texts nearest to it.

    Args:
        plain: The answer to the query.
        wanted: How many.
        generator: Opens the store's generator.
    """
    from filestore.chunks.chunk_file import embed_text
    from filestore.generate import Task

    try:
        opened = generator()
        asked = plain.understood.text
        room = opened.window_tokens - opened.count_tokens(asked)
        near = []
        for text in [embed_text(hit.headings, hit.text) for hit in plain.hits][:_NEAREST]:
            room -= opened.count_tokens(text)
            if room < 0 or not text:
                break
            near.append(text)
        task = Task(kind="rewrite", texts=(asked, *near), count=wanted)
        own = asked.casefold().split()
        for result in opened.make([task], stop=threading.Event()):
            if result.problem is not None:
                raise result.problem
            if result.made is not None:
                new = [line for line in result.made.lines if line.casefold().split() != own]
                return tuple(new[:wanted]), _NOTHING, result.made.tokens_in + result.made.tokens_out
        return (), _NOTHING, 0
    except FilestoreError as error:
        return (), error.in_one_line, 0


def rerank(answer: Answer, reranker: "Reranker", *, count: int) -> Answer:
    """The best hits of an answer by the reranker's score, texts before summaries, ties by path.

    A file that is gone has no text to be read; it stays behind texts.

    Raises:
        ModelUnusable: The model gives no usable scores.
    """
    from filestore.chunks.chunk_file import embed_text

    readable = [hit for hit in answer.hits if hit.text]
    texts = [embed_text(hit.headings, hit.text) for hit in readable]
    scores = reranker.score(answer.understood.text, texts).tolist() if readable else []
    ranked = sorted(
        zip(scores, readable, strict=True),
        # A summary stays behind what it may be of, whatever a model says.
        key=lambda pair: (pair[1].kind == "summary", -pair[0], pair[1].path),
    )
    best = [
        replace(hit, score=score, why={**hit.why, "rerank": {"rank": rank, "score": score}})
        for rank, (score, hit) in enumerate(ranked, start=1)
    ]
    rest = [hit for hit in answer.hits if not hit.text]
    return replace(answer, hits=(*best, *rest)[:count])
