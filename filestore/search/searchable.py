"""What may be searched, as whoever asks types it: a store, and a store as it was."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from filestore.fulltext import Syntax
    from filestore.search.answer import Answer
    from filestore.search.query import Mode, Which
    from filestore.search.session import SearchSession


class Searchable:
    """Answers queries."""

    @property
    @abstractmethod
    def _search_session(self) -> "SearchSession":
        """What keeps the parts open between two queries."""

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        mode: "Mode" = "hybrid",
        where: Mapping[str, object] | None = None,
        source: str | Sequence[str] = (),
        kind: str | Sequence[str] = (),
        syntax: "Syntax" = "auto",
        rerank: str | None = None,
        group: "Literal['document'] | None" = None,
        context: int = 0,
        tree: bool = False,
        rewrite: int = 0,
        model: "Which" = "own",
    ) -> "Answer":
        """Unique files, best first; see `Searcher.search`.

        Args:
            query: What is asked.
            k: At most so many.
            mode: ``hybrid``, ``vector`` or ``keyword``.
            where: Key to value of the frontmatter or the document's metadata; all must hold, and
                so must all values of a list.
            source: Globs over the source's path, of which one must hold.
            kind: ``chunk`` or ``summary``, or both.
            syntax: Which signs in the query are operators; see `fulltext.parse_query`.
            rerank: The reranker that orders the best, such as ``cross-encoder``; None for none.
            group: ``document`` for the best hit of each document alone; `k` then counts these.
            context: How many lines before and after each passage are given.
            tree: Whether summaries lead to the texts, from the top.
            rewrite: How many new queries the store's generator makes of it, asked as well.
            model: ``beside`` for the vectors of the model beside the store's own.

        Raises:
            CatalogMissingError: There is no catalog yet.
            NothingBeside: No model stands beside.
            ModelMissing: The reranker's model, or the library that runs it, is not here.
        """
        from filestore.search.filters import Filters

        # Bytes of a terminal that are no text are in no document.
        query = query.encode("utf-8", "replace").decode()
        filters = Filters.of(where or {}, source=source, kind=kind)
        return self._search_session.answer(
            query,
            k=k,
            mode=mode,
            filters=filters,
            syntax=syntax,
            rerank=rerank,
            group=group,
            context=context,
            tree=tree,
            rewrite=rewrite,
            model=model,
        )
