"""What a search answers: its hits, each with why it is one, where it is and what it says.

`Searcher` fills a hit down to `why`; `present` fills the rest, of hits that are shown. One rule: it
changes neither which they are nor their order. What it adds is made where it is read: the catalog
is asked at once, the disk then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.catalog import Catalog, FileRow, queries
from filestore.chunking import blanked_data
from filestore.chunks.observation import DOCUMENT
from filestore.config.settings import Which
from filestore.core.findings import FromIndex
from filestore.core.paths import NO_PATH, StorePath
from filestore.core.schema import JsonObject
from filestore.extract.markdown_read import Markdown
from filestore.fulltext import Mark, Marker, Named, Respelling, Understood
from filestore.search import Mode
from filestore.search import passage as passages
from filestore.search.freshness import KnownFile, Look
from filestore.search.passage import Nearest, Passage
from filestore.search.place import Around, Chunk, Locator, has_lines
from filestore.search.ranking import leads

if TYPE_CHECKING:
    from filestore.sidecar.originals import Reachable


class Shown(Struct, frozen=True, kw_only=True):
    """What a person is shown of a hit; see the keys of `Hit`."""

    document: StorePath = NO_PATH
    title: str = ""
    line: int | None = None
    end_line: int | None = None
    page: int | None = None
    section: tuple[str, ...] = ()
    excerpt: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    passage: Around = Around()
    question: str | None = None
    reason: str = ""


class Lazily:
    """What is made when it is first asked for; compared, copied and printed as that."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Shown]) -> None:
        """Take what makes it."""
        self._make: Callable[[], Shown] | None = make
        self._made: Shown | None = None

    def __call__(self) -> Shown:
        """Give it."""
        make = self._make
        if make is not None:
            self._made = make()
            # What it was made from may go.
            self._make = None
        assert self._made is not None
        return self._made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lazily) and self() == other()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self())

    def __reduce__(self) -> Any:
        return Lazily, (partial(replace, self()),)


class FoundFile(KnownFile, frozen=True, kw_only=True):
    """One file that was found, whatever by."""

    score: float
    """Comparable only within one answer; of a similar file the cosine of the nearest two texts, of
    a duplicate that to the first file of its group: -1 to 1, 1 for the same text."""
    kind: str
    """`chunk` or `summary`."""
    headings: tuple[str, ...]
    """The headings above it, from the outermost to its own."""
    pages: tuple[int, ...]
    """Of its source, where that has any."""


class Hit(JsonObject, FoundFile, frozen=True, kw_only=True):
    """One file of an answer."""

    KEYS = (
        "store document title line end_line page section passage excerpt marks before after others"
        " question via reason meaning date status notes copies metadata path score kind resource"
        " source freshness headings pages text why"
    )
    SPARSE = "store marks before after others question via status notes metadata"

    text: str
    """The body as it is on disk now; of a file that is gone as it was indexed."""
    why: Mapping[str, Mapping[str, float]]
    """Each ranking with `rank`, `score`, and in hybrid mode `evidence`, of the text and of its
    document, `points` and `confidence`; `vector` also with `question`, the number of the question
    that was nearest; `summary`, the summary whose place the hit has."""
    meaning: float | None = None
    """How near it is to the query by vectors, comparable between queries: 0 for a text that has
    nothing to do with it, 1 for the very question; None where no vectors answered."""
    date: str | None = None
    """The day on which its document was updated, ISO 8601 in UTC: as it says itself, else of its
    last commit, else of its file; a month or a year where it says no more; None where nothing
    tells."""
    status: str = ""
    """Of its document, as it says itself: `draft`, `stable`, `deprecated` or a word of its own."""
    copies: tuple[StorePath, ...] = ()
    """Other files with the very same text, by path, the first fifty: they take no place of their
    own."""
    others: int = 0
    """How many more hits the document has, with `--group document`."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The keys of its frontmatter that are not ours, as they are on disk now; in place those of the
    document."""
    via: tuple[StorePath, ...] = ()
    """The summaries that led to it, from the top, with `--tree`; else the summary that matched and
    whose place it has."""
    store: str | None = None
    """Of several stores that were searched the one that it is of, as that was named."""
    shown: Callable[[], Shown] = Lazily(Shown)
    """What a person is shown of it; made when the first of these is read."""

    @property
    def document(self) -> StorePath:
        """What to open: its original, or the chunk file where the passage is in no original."""
        return self.shown().document

    @property
    def title(self) -> str:
        """Of the document."""
        return self.shown().title

    @property
    def line(self) -> int | None:
        """Of the document, on which the excerpt begins; None in one that has pages, or no lines."""
        return self.shown().line

    @property
    def end_line(self) -> int | None:
        """The one on which it ends."""
        return self.shown().end_line

    @property
    def page(self) -> int | None:
        """Of the document; None also where the chunk spans several, which are `pages`."""
        return self.shown().page

    @property
    def section(self) -> tuple[str, ...]:
        """The headings above the excerpt, from the outermost."""
        return self.shown().section

    @property
    def excerpt(self) -> str:
        """The passage of `text` that answers best, as it is read: links by their text."""
        return self.shown().excerpt

    @property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each word of it that matches, in characters (code points) of it."""
        return self.shown().marks

    @property
    def before(self) -> tuple[str, ...]:
        """Lines before it, with `--context`."""
        return self.shown().before

    @property
    def after(self) -> tuple[str, ...]:
        """Lines after it."""
        return self.shown().after

    @property
    def passage(self) -> Around:
        """The lines of the document in which the excerpt is, as they are written.

        With whole list items around it, three lines on either side that are in the same section,
        or as many as `--context` says.
        """
        return self.shown().passage

    @property
    def reason(self) -> str:
        """Which words of the query are in title, heading, file name or text; `meaning` as a share.

        In one line; empty for a file that is gone.
        """
        return self.shown().reason

    @property
    def question(self) -> str | None:
        """The question of the file, where that is what matched."""
        return self.shown().question


class Found(Struct, frozen=True, kw_only=True):
    """The file of a hit, as the catalog has it and as it is."""

    row: FileRow
    look: Look
    part: int = 0
    """The section of a document."""


class At(JsonObject, Struct, frozen=True, kw_only=True):
    """The commit that an answer is of."""

    commit: str
    """Its full name."""
    committed: int
    """When, in seconds since 1970."""
    not_embedded: int
    """How many of its texts have no vector here: keywords alone find them."""


class Answer(FromIndex, frozen=True, kw_only=True):
    """An answer of one generation."""

    KEYS = (
        "query root understood mode generation indexed_at behind hits nearest respelt notes "
        "rewrites tokens model at"
    )
    SPARSE = "respelt rewrites tokens at"

    query: str
    """As it was typed."""
    understood: Understood
    """What it was taken to ask for."""
    mode: Mode
    """The mode that answered: `hybrid`, `vector` or `keyword`."""
    generation: int
    """Of the index that answered."""
    indexed_at: str | None = None
    """When that was made, ISO 8601 in UTC; None of an index that an earlier version made."""
    hits: tuple[Hit, ...]
    """Best first. Deleted files are hits only where so much is gone that a disk may be missing."""
    nearest: tuple[Hit, ...] = ()
    """Where nothing is close to the query, and so no hit: the texts that are nearest."""
    respelt: str | None = None
    """What the hits answer, where nothing was found for the query as it was typed: the same with
    other spellings of words that no document has; None else. The command line exits 1."""
    notes: tuple[str, ...]
    """What the user should know about this answer."""
    on_spelling: tuple[str, ...] = ()
    """Those of the notes that are about the words of this query."""
    rewrites: tuple[str, ...] = ()
    """The queries that were asked besides, with `--rewrite`."""
    tokens: int = 0
    """What a service counted to make them, in and out."""
    root: str = ""
    """The store's, absolute and without links: the paths of hits are relative to it."""
    model: Which = "own"
    """Whose vectors were asked: `own`, or `beside` with `--beside`."""
    at: At | None = None
    """The commit that was searched, with `--at`."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        """How many hits there are."""
        return len(self.hits)

    def made(self) -> "Answer":
        """The same, with nothing left to be made: for a screen, or a store that goes away."""
        for hit in (*self.hits, *self.nearest):
            hit.shown()
        return self

    @property
    def by_store(self) -> "Mapping[str | None, Answer]":
        """What has the root of each hit, by its `store`."""
        return {None: self}

    @property
    def is_found(self) -> bool:
        """Whether a file that is there answers the query as it was typed."""
        return not self.respelt and any(hit.freshness != "gone" for hit in self.hits)


def left_out(understood: Understood, words: int) -> list[str]:
    """What a person must know who wanted to exclude nothing, or typed no word or very many."""
    asked = (understood.words, understood.phrases, understood.prefixes, understood.required)
    notes = [] if any(asked) else ["the query has no word to search for"]
    if understood.excluded:
        named = " or ".join(understood.excluded)
        syntax = "the syntax 'plain' searches for all words as typed"
        notes.append(f"passages with {named} are excluded; {syntax}")
    if words:
        kept = len(understood.words) + len(understood.phrases)
        notes.append(f"{words:,} words are ignored: only the {kept:,} rarest are searched for")
    return notes


def on_spelling(found: Sequence[Respelling]) -> list[str]:
    """Which words no document has, and which similar words some have."""
    return [
        f'"{one.word}" is in no document. Did you mean '
        + " or ".join(f'"{word}"' for word in one.similar)
        + "?"
        for one in found
    ]


def present(
    answer: Answer,
    found: dict[StorePath, Found],
    *,
    marker: Marker,
    nearest: Nearest | None,
    reachable: "Callable[[], Reachable]",
    catalog: Catalog,
    knows_meaning: bool,
    context: int = 0,
) -> Answer:
    """The answer with document, title, place and passage of every hit.

    Args:
        answer: Its hits.
        found: The file of every hit, as the search saw it.
        marker: Of the query.
        nearest: For texts that hold nothing of what was asked; None to show how they begin.
        reachable: Says where the store may look for originals.
        catalog: In the snapshot that answered.
        knows_meaning: Whether vectors tell more than which words a text has.
        context: How many lines around each passage are wanted.
    """
    every = (*answer.hits, *answer.nearest)
    titles = titles_of(every, {path: one.row.id for path, one in found.items()}, catalog)
    sources = (
        hit.source
        for hit in every
        if hit.source
        and found[hit.path].row.kind != DOCUMENT
        and not has_lines(hit.source, hit.pages)
    )
    locator = Locator(reachable, catalog, sources)
    hits = []
    for hit in every:
        title = titles[hit.path]
        show = partial(
            _shown,
            hit,
            found[hit.path],
            title,
            marker,
            nearest,
            locator,
            context,
            hit.meaning if knows_meaning else None,
        )
        metadata = found[hit.path].look.metadata
        hits.append(replace(hit, metadata=metadata, shown=Lazily(show)))
    first = len(answer.hits)
    return replace(answer, hits=tuple(hits[:first]), nearest=tuple(hits[first:]))


def _shown(
    hit: Hit,
    found: Found,
    title: str,
    marker: Marker,
    nearest: Nearest | None,
    locator: Locator,
    context: int,
    meaning: float | None,
) -> Shown:
    is_code = _is_code(hit.source)
    read = _as_read(hit.text, hit.source)
    marks = marker.marks(read.text)
    best = passages.best(read, marks, marker.weights)
    if best is None:
        best = passages.opening(read) if nearest is None else nearest.passage(read)
    passage = best if best.text else passages.as_written(hit.text)
    place = locator.place(_chunk(hit, found), (passage.start, passage.end), context=context)
    is_gone = hit.freshness == "gone"
    question = _question(hit, found, passage, marker)
    # What begins with a hash in code is a comment.
    section = (
        hit.headings if is_code else passages.section_at(hit.text, passage.start, hit.headings)
    )
    why = (
        ""
        if is_gone
        else reason(
            marker,
            title=title,
            headings=section,
            name=stem(place.document),
            text=read.text,
            marks=marks,
            question=question,
            meaning=meaning,
        )
    )
    return Shown(
        document=place.document,
        title=title or stem(place.document),
        line=None if is_gone else place.line,
        end_line=None if is_gone else place.end_line,
        page=place.page,
        section=section,
        excerpt=passage.text,
        marks=passage.marks,
        before=place.before,
        after=place.after,
        passage=place.around or Around(),
        question=question,
        reason=why,
    )


def beginning(text: str, source: str | None) -> str:
    """How a text of a document begins, as an excerpt has it where nothing was asked."""
    return passages.opening(_as_read(text, source)).text or passages.as_written(text).text


def _as_read(text: str, source: str | None) -> Markdown:
    return Markdown(blanked_data(text), is_code=_is_code(source))


def _is_code(source: str | None) -> bool:
    if not source:
        return False
    from filestore.extract import is_code

    return is_code(source)


def _question(hit: Hit, found: Found, passage: Passage, marker: Marker) -> str | None:
    """The question that was nearest, or the first with what was asked where the body has none."""
    number = int(hit.why.get("vector", {}).get("question", 0))
    if number and leads(hit.why) == "vector":
        nearest = next(iter(found.look.questions[number - 1 :]), None)
        if nearest is not None:
            return nearest
    if passage.marks or found.look.freshness == "gone":
        return None
    return next((one for one in found.look.questions if marker.marks(one)), None)


def _chunk(hit: Hit, found: Found) -> Chunk:
    return Chunk(
        path=hit.path,
        body=hit.text,
        body_line=found.look.body_line,
        source=hit.source,
        resource=hit.resource,
        headings=hit.headings,
        pages=hit.pages,
        edited=found.row.edited or hit.freshness == "edited",
        is_code=_is_code(hit.source),
        is_section=found.row.kind == DOCUMENT,
        is_uneven=found.look.is_uneven,
        page_starts=found.look.page_starts,
    )


def titles_of(
    hits: Sequence[FoundFile], ids: Mapping[StorePath, int], catalog: Catalog
) -> dict[StorePath, str]:
    """The title of every hit's document, "" where nothing has one; `ids` are those of its file."""
    own = queries.titles_of_files(catalog, [ids[hit.path] for hit in hits])
    sources = list({hit.source for hit in hits if hit.source})
    recorded = queries.titles_of_documents(catalog, sources)
    return {
        hit.path: own.get(ids[hit.path]) or recorded.get((hit.resource, hit.source or ""), "")
        for hit in hits
    }


def stem(document: str) -> str:
    """The name of a file without its suffix."""
    name = document.rpartition("/")[2]
    return name.rpartition(".")[0] or name


_MOST_NAMED: Final = 3
"""How many words of one place are named; of more, how many they are."""
_MOST_CHARACTERS: Final = 40


def reason(
    marker: Marker,
    *,
    title: str,
    headings: Sequence[str],
    name: str,
    text: str,
    marks: Sequence[Mark],
    question: str | None,
    meaning: float | None,
) -> str:
    """Which words of a query a hit has and where, and how near it is in meaning.

    Args:
        marker: Of the query.
        title: Of the document.
        headings: Above the passage, from the outermost.
        name: Of the file, without its suffix.
        text: What the hit says.
        marks: Where the query matches in it.
        question: The one of the text that matched; None where none did.
        meaning: As a share; None where no vectors tell.
    """
    found = [*_found_above(marker, title, " ".join(headings), name), ("text", text, marks)]
    terms = [{mark.term for mark in marked} for _, _, marked in found]
    words_in: dict[str, list[str]] = {}
    for one in marker.named:
        having = [
            place for place, own in zip(found, terms, strict=True) if not own.isdisjoint(one.terms)
        ]
        whole = next((place for place in having if _is_whole(one, place[1], place[2])), None)
        if whole is not None:
            words_in.setdefault(whole[0], []).append(_called(one))
        elif having:
            words_in.setdefault(having[0][0], []).append(f"parts of {_called(one)}")
    reasons = [
        f"{_listed(words, len(marker.named))} in the {place}"
        for place, _, _ in found
        if (words := words_in.get(place))
    ]
    reasons += ["a question that it answers"] if question is not None else []
    reasons += [f"meaning {round(100 * meaning)} %"] if meaning is not None else []
    return "; ".join(reasons)


def _found_above(
    marker: Marker, title: str, heading: str, name: str
) -> list[tuple[str, str, Sequence[Mark]]]:
    """Where the query matches in what is above a text: one look for all of it."""
    places = [("title", title), ("heading", heading), ("file name", name)]
    # Names of files are any bytes: one sign represents each that is no UTF-8.
    lines = [
        (place, words.replace("\n", " ").encode("utf-8", "replace").decode("utf-8"))
        for place, words in places
    ]
    marks = marker.marks("\n".join(words for _, words in lines))
    found, start = list[tuple[str, str, Sequence[Mark]]](), 0
    for place, words in lines:
        end = start + len(words)
        own = [
            Mark(mark.start - start, mark.end - start, mark.term)
            for mark in marks
            if start <= mark.start and mark.end <= end
        ]
        found.append((place, words, own))
        start = end + 1
    return found


def _is_whole(one: Named, words: str, marks: Sequence[Mark]) -> bool:
    """Whether a place that has a part has just what was typed, in this form or another."""
    if one.is_phrase:
        own = (words[mark.start : mark.end] for mark in marks if mark.term in one.terms)
        return any(not text.isalnum() for text in own)
    return len(one.terms) == 1 or one.text.casefold() in words.casefold()


def _called(one: Named) -> str:
    text = one.text if len(one.text) <= _MOST_CHARACTERS else f"{one.text[:_MOST_CHARACTERS]}…"
    return f'the phrase "{text}"' if one.is_phrase else f"'{text}'"


def _listed(words: Sequence[str], count: int) -> str:
    if len(words) == count and count > 1:
        return "both words" if count == 2 else f"all {count} words"
    if len(words) > _MOST_NAMED:
        return f"{len(words)} of {count} words"
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last
