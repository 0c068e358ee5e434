"""What clients may ask of a search: apart from other requests, which need nothing of a query."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, field

from filestore.search.query import Extra, Query, Which
from filestore.server.options import LONGEST_QUERY, Count, Request, Texts, Where, argument, option

if TYPE_CHECKING:
    from filestore.past.store import PastStore
    from filestore.store import Store


class Search(Request, Query, frozen=True, kw_only=True):
    """A query, and how much of one a client may give."""

    text: Annotated[str, Meta(max_length=LONGEST_QUERY), argument("QUERY", joined=True)] = field(
        name="query"
    )
    """words, "phrases", -excluded, +required; several words need no quotes, words that begin with a
    sign stand behind --"""
    k: Count = 10
    where: Where = {}
    source: Annotated[Texts, option("GLOB")] = []
    kind: Annotated[Texts, option("K")] = []
    context: Annotated[int, Meta(ge=0, le=100), option("N")] = 0
    rerank: Annotated[str | None, option("R", local=True)] = None
    rewrite: Annotated[int, option("N", local=True)] = 0
    model: Annotated[Which, option(inner=True)] = "own"
    without: Annotated[Sequence[Extra], option(inner=True)] = ()

    def answer(self, store: "Store | PastStore") -> Any:
        """The hits."""
        return store.search(self)
