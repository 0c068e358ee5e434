"""What a search answers: its hits, each with why it is one, where it stands and what it says.

Values only. `Searcher` fills a hit down to `why`; `present` fills the rest, of hits that are shown.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from filestore.catalog import FileRow
from filestore.core.paths import NO_PATH, StorePath
from filestore.core.schema import JsonObject
from filestore.fulltext import Understood
from filestore.search.freshness import Freshness, Look

Mode = Literal["hybrid", "vector", "keyword"]
MODES: Final[tuple[Mode, ...]] = ("hybrid", "vector", "keyword")
Which = Literal["own", "beside"]
MODELS: Final[tuple[Which, ...]] = ("own", "beside")
"""Whose vectors are searched: of the store's own model, or of the one beside it."""
Why = dict[str, dict[str, float]]
"""Retriever to its rank, its score, and what these count for in this search."""


class KnownFile(Struct, frozen=True, kw_only=True):
    """A file, whoever asks for it."""

    path: StorePath
    """Of the chunk file, relative to the store root."""
    resource: str
    source: str | None
    freshness: Freshness


class FoundFile(JsonObject, KnownFile, frozen=True, kw_only=True):
    """One file that was found, whatever by."""

    score: float
    kind: str
    headings: tuple[str, ...]
    pages: tuple[int, ...]
    """Of its source, where that has any."""


class Hit(FoundFile, frozen=True, kw_only=True):
    """One file of an answer."""

    text: str
    """The body as it is on disk now; empty for a file that is gone."""
    why: Mapping[str, Mapping[str, float]]
    """Retriever to its ``rank``, from 1, and ``score``; in hybrid mode also to the ``evidence`` for
    the file (how far it stands out in this ranking), the ``points`` it adds to the score of the
    hit, and the ``confidence`` in the retriever for this query: its share, 0 to 1, in the best
    points of all. ``question`` is the number of the question that was nearest, not the body."""
    document: StorePath = NO_PATH
    """What a person opens: the original, or the chunk file; relative to the store root."""
    title: str = ""
    """Of the document."""
    line: int | None = None
    """Of the document, from 1, on which `excerpt` begins; None in one that has pages."""
    end_line: int | None = None
    """The one on which it ends."""
    page: int | None = None
    """Of the document; None where the chunk spans several, which are `pages`."""
    section: tuple[str, ...] = ()
    """The headings above `excerpt`, from the outermost."""
    excerpt: str = ""
    """The passage of `text` that answers best."""
    marks: tuple[tuple[int, int], ...] = ()
    """Start and end of what matches, in characters of `excerpt`."""
    before: tuple[str, ...] = ()
    """Lines of the document before `excerpt`, as many as were wanted."""
    after: tuple[str, ...] = ()
    others: int = 0
    """How many more hits the document has, where only its best one is given."""
    question: str | None = None
    """Of the file, where it is what matched."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The keys of its frontmatter that are not ours, as they are on disk now; in place those of the
    document."""
    via: tuple[StorePath, ...] = ()
    """The summaries that it was reached through, from the top, or whose place it has."""


class Found(Struct, frozen=True, kw_only=True):
    """The file of a hit, as the catalog has it and as it is."""

    row: FileRow
    look: Look


class At(JsonObject, Struct, frozen=True, kw_only=True):
    """The commit that an answer is of."""

    commit: str
    """Its full name."""
    committed: int
    """When, in seconds since 1970."""
    not_embedded: int
    """How many of its texts have no vector here: keywords alone find them."""


class Answer(JsonObject, Struct, frozen=True, kw_only=True):
    """An answer of one generation."""

    query: str
    """As it was typed."""
    understood: Understood
    mode: Mode
    """The mode that answered; keyword where vectors cannot."""
    generation: int
    hits: tuple[Hit, ...]
    """Best first, those that are there; behind them, where there is room, those that are gone."""
    notes: tuple[str, ...]
    """What the user should know about this answer."""
    on_spelling: tuple[str, ...] = ()
    """Those of the notes that are about the words of this query."""
    rewrites: tuple[str, ...] = ()
    """The queries that were asked besides."""
    tokens: int = 0
    """What a service counted to make them, in and out."""
    root: str = ""
    """The store's, absolute and without links: the paths of hits are relative to it."""
    model: Which = "own"
    """Whose vectors were asked for."""
    at: At | None = None
    """The earlier commit that was searched; None for the files of today."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        """How many hits there are."""
        return len(self.hits)
