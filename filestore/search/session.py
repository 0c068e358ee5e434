"""Searching one open store: the parts of its newest generation, opened as they are first needed."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from filestore.catalog import Catalog
from filestore.search import outdated
from filestore.search.answer import Answer
from filestore.search.place import Locator
from filestore.search.present import present
from filestore.search.query import Query, Which
from filestore.search.search import Searcher

if TYPE_CHECKING:
    from filestore.generate import Generator
    from filestore.search.rewrite import Rewrites
    from filestore.sidecar.session import Parts


class SearchSession:
    """Keeps a searcher for as long as the store stays in one generation."""

    def __init__(self, parts: "Callable[[], Parts]") -> None:
        self._parts = parts
        self._searchers: dict[Which, Searcher] = {}
        self._rewritten: tuple[tuple[Query, int], Rewrites] | None = None

    def close(self) -> None:
        """Let go of every file."""
        for searcher in self._searchers.values():
            searcher.close()
        self._searchers = {}

    def answer(self, query: Query) -> Answer:
        """Unique files, best first, each with its document, its place and its passage.

        Raises:
            CatalogMissingError: There is no catalog yet.
            NothingBeside: No model stands beside.
            ModelMissing: The reranker's model, or the library that runs it, is not here.
        """
        parts = self._parts()
        catalog = parts.catalog()
        with catalog.snapshot():
            if query.group:
                from filestore.search import grouping

                found = grouping.by_document(self.search, query)
            else:
                found = self.search(query)
            searcher = self._fresh_searcher(parts, catalog, query.model)
            return present(
                found,
                searcher.found,
                marker=searcher.marker(),
                nearest=searcher.nearest(),
                locator=Locator(parts.reachable, catalog),
                catalog=catalog,
                context=query.context,
            )

    def search(self, query: Query) -> Answer:
        """The hits of `answer`, not grouped, and without what is only shown of them."""
        parts = self._parts()
        catalog = parts.catalog()
        deep = query
        if query.rerank:
            from filestore.search import rerank as reranking

            reranker = parts.model.reranker(query.rerank)
            deep = replace(query, k=reranking.depth_for(query.k))
        with catalog.snapshot():
            ask = self._fresh_searcher(parts, catalog, query.model).search
            if query.rewrite:
                from filestore.search.rewrite import rewritten

                rewrites = partial(self._rewrites, query, catalog.generation, parts.model.generator)
                answer = rewritten(ask, deep, rewrites)
            else:
                answer = ask(deep)
        if query.rerank:
            answer = reranking.rerank(answer, reranker, count=query.k)
        with catalog.snapshot():
            stale = self._fresh_searcher(parts, catalog, query.model).stale
            hits, notes = outdated.marked(answer.hits, parts, catalog, stale)
        told = (*answer.notes, *notes)
        return replace(answer, model=query.model, hits=tuple(hits), notes=told)

    def _rewrites(
        self, query: Query, generation: int, generator: "Callable[[], Generator]", plain: Answer
    ) -> "Rewrites":
        """New queries, made once where the same is asked again for more hits."""
        from filestore.search.rewrite import rewrites_of

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
        return self._searchers[model]
