"""Searching one open store: the parts of its newest generation, opened as they are first needed."""

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from filestore.catalog import Catalog
from filestore.core.errors import UsageError
from filestore.core.progress import OnProgress
from filestore.fulltext import Syntax
from filestore.search import outdated
from filestore.search.answer import Answer
from filestore.search.filters import Filters
from filestore.search.place import Locator
from filestore.search.present import present
from filestore.search.query import Extra, Mode, Which
from filestore.search.search import Searcher

if TYPE_CHECKING:
    from filestore.generate import Generator
    from filestore.search.compare_models import ModelComparison
    from filestore.search.evaluate import Compared, Evaluation
    from filestore.search.metrics import Question
    from filestore.search.rewrite import Rewrites
    from filestore.sidecar.session import Parts


class SearchSession:
    """Keeps a searcher for as long as the store stays in one generation."""

    def __init__(self, parts: "Callable[[], Parts]") -> None:
        self._parts = parts
        self._searchers: dict[Which, Searcher] = {}
        self._rewritten: tuple[Hashable, Rewrites] | None = None

    def close(self) -> None:
        """Let go of every file."""
        for searcher in self._searchers.values():
            searcher.close()
        self._searchers = {}

    def answer(
        self,
        query: str,
        *,
        k: int,
        mode: Mode,
        filters: Filters,
        syntax: Syntax,
        rerank: str | None,
        group: str | None,
        context: int,
        tree: bool,
        rewrite: int,
        model: Which = "own",
    ) -> Answer:
        """See `Store.search`."""
        if group not in (None, "document"):
            raise UsageError(
                f"unknown group {group!r}", remedy="group by 'document', or not at all"
            )
        if context < 0:
            raise UsageError(f"context must not be negative, found {context}")
        parts = self._parts()
        catalog = parts.catalog()

        def ask(count: int) -> Answer:
            return self.search(
                query,
                k=count,
                mode=mode,
                filters=filters,
                syntax=syntax,
                rerank=rerank,
                tree=tree,
                rewrite=rewrite,
                model=model,
            )

        with catalog.snapshot():
            if group is None:
                found = ask(k)
            else:
                from filestore.search import grouping

                found = grouping.by_document(ask, k, again=rerank is None)
            searcher = self._fresh_searcher(parts, catalog, model)
            return present(
                found,
                searcher.found,
                marker=searcher.marker(searcher.asked),
                nearest=searcher.nearest(searcher.asked),
                locator=Locator(parts.reachable, catalog),
                catalog=catalog,
                context=context,
            )

    def search(
        self,
        query: str,
        *,
        k: int,
        mode: Mode,
        filters: Filters | None = None,
        syntax: Syntax,
        rerank: str | None = None,
        tree: bool = False,
        rewrite: int = 0,
        without: Collection[Extra] = (),
        model: Which = "own",
    ) -> Answer:
        """The hits of `answer`, without what is only shown of them.

        `without` is what is left out, as if there were none; `model` whose vectors are asked.
        """
        parts = self._parts()
        catalog = parts.catalog()
        depth = k
        if rewrite:
            from filestore.search.rewrite import require_possible, rewritten

            require_possible(rewrite)
        if rerank:
            from filestore.search import rerank as reranking

            reranker = parts.model.reranker(rerank)
            depth = reranking.depth_for(k)
        with catalog.snapshot():
            ask = partial(
                self._fresh_searcher(parts, catalog, model).search,
                query,
                mode=mode,
                wanted=filters or Filters(),
                syntax=syntax,
                tree=tree,
                without=without,
            )
            if rewrite:
                key = (query, rewrite, mode, filters, syntax, tree, model, catalog.generation)
                rewrites = partial(self._rewrites, key, rewrite, parts.model.generator)
                answer = rewritten(ask, rewrites, count=depth)
            else:
                answer = ask(count=depth)
        if rerank:
            answer = reranking.rerank(answer, reranker, count=k)
        with catalog.snapshot():
            stale = self._fresh_searcher(parts, catalog, model).stale
            answer = replace(answer, model=model)
            return outdated.mark(answer, parts.places.tree, catalog, parts.reachable, stale)

    def _rewrites(
        self, key: Hashable, wanted: int, generator: "Callable[[], Generator]", plain: Answer
    ) -> "Rewrites":
        """New queries, made once where the same is asked again for more hits."""
        from filestore.search.rewrite import rewrites_of

        if self._rewritten is None or self._rewritten[0] != key:
            self._rewritten = key, rewrites_of(plain, wanted, generator)
        return self._rewritten[1]

    def evaluate(
        self,
        questions: "Sequence[Question]",
        *,
        k: int,
        syntax: Syntax,
        compared: "Compared | None",
        on_progress: OnProgress,
    ) -> "Evaluation":
        """See `Store.evaluate`."""
        from filestore.search import evaluate
        from filestore.search.rewrite import require_possible

        if compared is not None:
            require_possible(compared.rewrite)
        parts = self._parts()
        catalog = parts.catalog()
        with catalog.snapshot():
            return evaluate.evaluate(
                self,
                parts.places,
                catalog,
                questions,
                count=k,
                syntax=syntax,
                compared=compared,
                on_progress=on_progress,
            )

    def compare_models(
        self,
        questions: "Sequence[Question] | None",
        *,
        k: int,
        mode: Mode,
        on_progress: OnProgress,
    ) -> "ModelComparison":
        """See `Store.compare_models`."""
        from filestore.search import compare_models
        from filestore.sidecar.beside import NothingBeside

        parts = self._parts()
        beside = parts.settings.beside
        if beside is None:
            raise NothingBeside
        catalog = parts.catalog()
        with catalog.snapshot():
            return compare_models.compare(
                self,
                parts.places,
                catalog,
                questions,
                names=(parts.settings.embedder, beside.embedder),
                count=k,
                mode=mode,
                on_progress=on_progress,
            )

    def _fresh_searcher(self, parts: "Parts", catalog: Catalog, model: Which) -> Searcher:
        """What searches with one of the two models; one query never meets vectors of the other."""
        if any(one.generation != catalog.generation for one in self._searchers.values()):
            self.close()
        if model not in self._searchers:
            is_own = model == "own"
            if not is_own and parts.beside is None:
                from filestore.sidecar.beside import NothingBeside

                raise NothingBeside
            self._searchers[model] = Searcher(
                places=parts.places,
                layout=parts.layout,
                catalog=catalog,
                embeddings=parts.embeddings(),
                embedder=(parts.searched_model if is_own else parts.searched_beside)(catalog),
                no_model=parts.why_no_model() if is_own else parts.why_no_beside(),
                rows=parts.rows if is_own else None,
            )
        return self._searchers[model]
