"""Hits as a person reads them: the passage that answers, the document and the line it is on.

One rule: it adds to the hits that are shown, and changes neither which they are nor their order.
What it adds is made where it is read: the catalog is asked at once, the disk then.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Catalog, queries
from filestore.chunking import blanked_data
from filestore.chunks.observation import DOCUMENT
from filestore.core.paths import StorePath
from filestore.extract.markdown_read import Markdown
from filestore.fulltext import Mark, Marker, Named
from filestore.search import passage as passages
from filestore.search.answer import Answer, Found, Hit, Lazily, Shown
from filestore.search.passage import Nearest, Passage
from filestore.search.place import Chunk, Locator, has_lines
from filestore.search.ranking import leads

if TYPE_CHECKING:
    from filestore.sidecar.originals import Reachable


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
    titles = _titles(every, found, catalog)
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
    is_code = _is_code(hit)
    read = Markdown(blanked_data(hit.text), is_code=is_code)
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
        question=question,
        reason=why,
    )


def _is_code(hit: Hit) -> bool:
    if not hit.source:
        return False
    from filestore.extract import is_code

    return is_code(hit.source)


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
        is_section=found.row.kind == DOCUMENT,
        is_uneven=found.look.is_uneven,
        page_starts=found.look.page_starts,
    )


def _titles(
    hits: Sequence[Hit], found: dict[StorePath, Found], catalog: Catalog
) -> dict[StorePath, str]:
    """The title of every hit's document, "" where nothing has one."""
    own = queries.titles_of_files(catalog, [found[hit.path].row.id for hit in hits])
    sources = list({hit.source for hit in hits if hit.source})
    recorded = queries.titles_of_documents(catalog, sources)
    return {
        hit.path: own.get(found[hit.path].row.id)
        or recorded.get((hit.resource, hit.source or ""), "")
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
