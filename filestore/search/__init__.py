"""What is asked of a search, as one value, with every option once: its default and its meaning.

One rule: a query that makes no sense cannot be made, so one that was made is not checked again.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr, replace

from filestore.config.settings import MODELS, Which
from filestore.core.errors import UsageError
from filestore.core.schema import text
from filestore.core.spelling import did_you_mean
from filestore.fulltext import SYNTAXES, Syntax

Mode = Literal["hybrid", "vector", "keyword"]
MODES: Final[tuple[Mode, ...]] = ("hybrid", "vector", "keyword")
Sort = Literal["relevance", "date"]
SORTS: Final[tuple[Sort, ...]] = ("relevance", "date")
Extra = Literal["questions", "summaries", "copies", "cut"]
MOST_REWRITES: Final = 20
_SIGNS: Final = re.compile(r"[^\w\s]")
_LEAST_BEGUN: Final = 3
"""Fewer letters of a word begin too many."""


def as_begun(query: str) -> str:
    """A query that is still typed: its last word may go on."""
    is_word = query[-1:].isalnum() and len(query.split()[-1]) >= _LEAST_BEGUN
    return f"{query}*" if is_word and not _SIGNS.search(query) else query


class Query(Struct, frozen=True, kw_only=True):
    """What is asked of a search.

    Raises:
        UsageError: An option does not have such a value.
    """

    text: str = field(name="query", default="")
    """Words, "phrases", prefix*, -excluded, +required; any text is a valid query. Without a word
    the files that the filters leave are listed by path."""
    k: Annotated[int, Meta(ge=1)] = 10
    """At most this many hits, or documents with `group`."""
    mode: Mode = "hybrid"
    """What ranks the hits: vectors, keywords, or both."""
    where: Mapping[str, Any] | Sequence[Any] = {}
    """What metadata must be: key to value, of which all must hold, and all values of a list; or a
    list of conditions with `key`, `op` (= != > >= < <=) and `value`. Dates and numbers are compared
    as such; != holds also where the key is missing."""
    within: Sequence[str] = ()
    """Folders of documents, of which one must hold."""
    source: Sequence[str] = ()
    """Globs over the path of the source, of which one must hold."""
    kind: Sequence[str] = ()
    """Only these kinds: chunk or summary, in place document or summary."""
    syntax: Syntax = "auto"
    """Which signs are operators: the ones that can mean nothing else (auto), none (plain), or all
    (operators: also -1, NOT, "word", and in long queries)."""
    rerank: str | None = None
    """The model that reads query and text together and orders the best: ``cross-encoder``, or
    ``cross-encoder:MODEL`` with a hub name or a folder."""
    group: Literal["document"] | None = None
    """``document``: only the best hit of each document, with the number of the others."""
    since: str | None = None
    """Only documents updated on this day or later: 2026, 2026-05, 2026-05-03, or a time such as
    2026-05-03T14:30Z."""
    until: str | None = None
    """Only documents updated on this day or before; of a month or a year its last day counts."""
    sort: Sort = "relevance"
    """``date``: the same hits, the newest first; without a query all that the filters leave."""
    context: Annotated[int, Meta(ge=0)] = 0
    """How many lines before and after each passage to show."""
    tree: bool = False
    """Go from the summaries at the top down to the passages, best branches first; one that no
    summary hints at is not found."""
    rewrite: Annotated[int, Meta(ge=0, le=MOST_REWRITES)] = 0
    """Also ask up to this many queries that the store's generator makes of it."""
    update: bool = True
    """Look at the files first, and index what is new or edited where that is quick."""
    model: Which = "own"
    """``beside`` for the vectors of the second model."""
    without: Sequence[Extra] = ()
    """What is left out, as if there were none; an evaluation compares with and without questions
    and summaries. Without ``copies`` equal texts are hits of their own, and without the ``cut``
    vectors answer with the nearest texts however far they are: both as programs expect of an
    index of vectors."""

    @classmethod
    def of(cls, query: "Query | str", options: Mapping[str, Any]) -> "Query":
        """A query as it is asked of a store: a text or a query, and options for it."""
        return replace(query, **options) if isinstance(query, Query) else cls(text=query, **options)

    def __post_init__(self) -> None:
        # Bytes of a terminal that are no text are in no document.
        force_setattr(self, "text", self.text.encode("utf-8", "replace").decode())
        if self.where:
            from filestore.search import conditions

            force_setattr(self, "where", conditions.of(self.where))
        else:
            force_setattr(self, "where", ())
        for name in ("source", "kind", "within"):
            given = getattr(self, name)
            given = (given,) if isinstance(given, str) else given or ()
            # Names of sources are compared as they are, what the catalog is asked as text.
            force_setattr(self, name, tuple(given if name == "source" else map(text, given)))
        for name, known in _CHOICES.items():
            if (value := getattr(self, name)) not in known:
                words = [one for one in known if one]
                raise UsageError(
                    f"unknown {name} {value!r}{did_you_mean(str(value), words)}",
                    remedy=f"one of {', '.join(words)}" + (", or none" if None in known else ""),
                )
        if self.k < 1:
            raise UsageError(f"-k must be at least 1, found {self.k}")
        if self.context < 0:
            raise UsageError(f"context must not be negative, found {self.context}")
        if not 0 <= self.rewrite <= MOST_REWRITES:
            raise UsageError(f"--rewrite takes 0 to {MOST_REWRITES}, found {self.rewrite}")
        if self.since is not None or self.until is not None:
            self._check_dates()

    def _check_dates(self) -> None:
        from filestore.core.dates import asked_span

        since = None if self.since is None else asked_span("--since", self.since)
        until = None if self.until is None else asked_span("--until", self.until)
        if since and until and since[0] >= until[1]:
            raise UsageError(
                f"--since {self.since} is after --until {self.until}"
                f": write --since {self.until} --until {self.since}",
            )

    @property
    def has_filters(self) -> bool:
        """Whether hits must satisfy something."""
        named = self.where or self.source or self.kind or self.within
        return bool(named) or self.since is not None or self.until is not None


_CHOICES: Final[Mapping[str, Sequence[str | None]]] = {
    "mode": MODES,
    "syntax": SYNTAXES,
    "group": ("document", None),
    "sort": SORTS,
    "model": MODELS,
}
