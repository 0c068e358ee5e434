"""Hits as a person reads them: the passage that answers, the document and the line it stands on.

One rule: it adds to the hits that are shown, and changes neither which they are nor their order.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from filestore.catalog import Catalog, in_batches, queries
from filestore.chunks.observation import DOCUMENT
from filestore.core.encoded_data import blanked_data
from filestore.core.paths import StorePath
from filestore.fulltext import Marker
from filestore.search import passage as passages
from filestore.search.answer import Answer, Found, Hit
from filestore.search.passage import Nearest, Passage
from filestore.search.place import Chunk, Locator


def present(
    answer: Answer,
    found: dict[StorePath, Found],
    *,
    marker: Marker,
    nearest: Nearest | None,
    locator: Locator,
    catalog: Catalog,
    context: int = 0,
) -> Answer:
    """The answer with document, title, place and passage of every hit.

    Args:
        answer: Its hits.
        found: The file of every hit, as the search saw it.
        marker: Of the query.
        nearest: For texts that hold nothing of what was asked; None to show how they begin.
        locator: Of this answer.
        catalog: In the snapshot that answered.
        context: How many lines around each passage are wanted.
    """
    titles = _titles(answer.hits, found, catalog)
    hits = []
    for hit in answer.hits:
        passage = _passage(hit.text, marker, nearest)
        question = hit.question or _question(found[hit.path], passage, marker)
        place = locator.place(_chunk(hit, found[hit.path]), passage, context=context)
        is_gone = hit.freshness == "gone"
        hits.append(
            replace(
                hit,
                document=place.document,
                title=titles[hit.path] or stem(place.document),
                line=None if is_gone else place.line,
                end_line=None if is_gone else place.end_line,
                page=place.page,
                section=_section(hit, passage),
                excerpt=passage.text,
                marks=passage.marks,
                before=place.before,
                after=place.after,
                question=question,
                metadata=found[hit.path].look.metadata,
            )
        )
    return replace(answer, hits=tuple(hits))


def _passage(text: str, marker: Marker, nearest: Nearest | None) -> Passage:
    text = blanked_data(text)
    best = passages.best(text, marker.marks(text), marker.weights)
    if best is not None:
        return best
    return passages.opening(text) if nearest is None else nearest.passage(text)


def _question(found: Found, passage: Passage, marker: Marker) -> str | None:
    """The first question that holds what was asked, where the body holds nothing of it."""
    if passage.marks or found.look.freshness == "gone":
        return None
    return next((one for one in found.look.questions if marker.marks(one)), None)


def _section(hit: Hit, passage: Passage) -> tuple[str, ...]:
    if hit.source:
        from filestore.extract import is_code

        if is_code(hit.source):
            # What begins with a hash there is a comment.
            return hit.headings
    return passages.section_at(hit.text, passage.start, hit.headings)


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
        in_place=found.row.kind == DOCUMENT,
        is_uneven=found.look.is_uneven,
        page_starts=found.look.page_starts,
    )


def _titles(
    hits: Sequence[Hit], found: dict[StorePath, Found], catalog: Catalog
) -> dict[StorePath, str]:
    """The title of every hit's document, "" where nothing has one."""
    own: dict[int, str] = {}
    for files in in_batches([found[hit.path].row.id for hit in hits]):
        own |= queries.titles_of_files(catalog, files)
    recorded: dict[tuple[str, str], str] = {}
    for sources in in_batches(list({hit.source for hit in hits if hit.source})):
        recorded |= queries.titles_of_documents(catalog, sources)
    return {
        hit.path: own.get(found[hit.path].row.id)
        or recorded.get((hit.resource, hit.source or ""), "")
        for hit in hits
    }


def stem(document: str) -> str:
    """The name of a file without its suffix."""
    name = document.rpartition("/")[2]
    return name.rpartition(".")[0] or name
