"""What clients may ask of a search: apart from other requests, which need nothing of a query."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict

from msgspec import Meta, field
from msgspec.structs import replace

from filestore.config.settings import Which
from filestore.search import Extra, Query, as_begun
from filestore.server.operations import (
    LONGEST_QUERY,
    Count,
    Request,
    Texts,
    Values,
    Where,
    argument,
    option,
)

if TYPE_CHECKING:
    from filestore.store import Store


class Condition(TypedDict, total=False):
    """One condition on metadata."""

    key: Required[str]
    op: Literal["=", "!=", ">", ">=", "<", "<="]
    value: Values


Conditions = Annotated[Where | Annotated[list[Condition], Meta(max_length=100)], option("K=V")]

_Date = Annotated[str, Meta(max_length=100)]


class SearchOptions(Query, frozen=True, kw_only=True):
    """A query as it is given, and how much of one."""

    text: Annotated[str, Meta(max_length=LONGEST_QUERY), argument("QUERY", joined=True)] = field(
        name="query", default=""
    )
    """words, "phrases", -excluded, +required; several words need no quotes, words that begin with a
    sign come after --"""
    k: Count = 10
    where: Conditions = {}
    """KEY=VALUE, or != > >= < <= between the two: what metadata must be. All must hold; VALUE|VALUE
    is either. Dates and numbers are compared as such, != holds also where the key is missing. In
    JSON key to value, or a list of conditions with key, op and value"""
    within: Annotated[Texts, option("DIR", "--in")] = field(name="in", default_factory=list)
    source: Annotated[Texts, option("GLOB")] = []
    kind: Annotated[Texts, option("K")] = []
    since: Annotated[_Date | None, option("DATE")] = None
    until: Annotated[_Date | None, option("DATE")] = None
    context: Annotated[int, Meta(ge=0, le=100), option("N")] = 0
    rerank: Annotated[str | None, option("R", local=True)] = None
    rewrite: Annotated[int, option("N", local=True)] = 0
    model: Annotated[Which, option(inner=True)] = "own"
    without: Annotated[Sequence[Extra], option(inner=True)] = ()


class Search(Request, SearchOptions, frozen=True, kw_only=True):
    """A query of a client, which may ask while it is typed."""

    begun: bool = False
    """the query is still typed: its last word may go on, and no service reads it"""

    def answer(self, store: "Store") -> Any:
        """The hits."""
        if not self.begun:
            return store.search(self)
        mode = "keyword" if store.model.reaches else self.mode
        return store.search(replace(self, text=as_begun(self.text), mode=mode))
