"""The files most similar to one, as search shows its hits: by stored vectors, so without a model.

One rule: of an original its own chunks are no answer.
"""

from typing import Any

from msgspec import Struct

from filestore.browse.meant import meant
from filestore.browse.vectors import Explorer
from filestore.catalog import Catalog, FileRow
from filestore.core.errors import UsageError
from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject
from filestore.search import freshness
from filestore.search.answer import FoundFile
from filestore.search.freshness import Look
from filestore.sidecar.session import Parts

_SPARE = 8


class SimilarHit(JsonObject, FoundFile, frozen=True, kw_only=True):
    """One file that is similar; its score is the cosine of the nearest two texts, -1 to 1."""

    KEYS = "path score line kind resource source freshness headings pages text"
    SPARSE = "line"

    line: int
    """Of the file, on which its nearest text begins, 1-based; 0 for none."""
    text: str
    """The body as it is now; empty for a file that is gone."""


class Similar(JsonObject, Struct, frozen=True, kw_only=True):
    """The files most similar to some."""

    to: tuple[StorePath, ...]
    """The chunk files that were meant."""
    source: str | None
    """The original that was named; None where a chunk file was."""
    line: int | None
    """The line that was named."""
    generation: int
    """Of the index that answered."""
    hits: tuple[SimilarHit, ...]
    """Best first, those that are there; behind them, where there is room, those that are gone."""
    notes: tuple[str, ...]
    """What to know about this answer."""


def similar(parts: Parts, path: str, count: int) -> Similar:
    """The files whose texts are nearest to those of a chunk file, of an original, or of its line.

    Args:
        parts: The store's.
        path: PATH or PATH:LINE; see `meant`.
        count: At most so many.

    Raises:
        UsageError: The count is not positive.
        UnknownPathError, NoLineError: There is no such file, or line.
        NoVectorError: There is no vector to start from.
        CatalogMissingError: There is no catalog yet.
    """
    if count < 1:
        raise UsageError(f"-k must be at least 1, found {count}")
    with parts.reading() as catalog:
        asked = meant(parts.places, catalog, path)
        explorer = Explorer(parts)
        wanted = count + _SPARE
        while True:
            near = explorer.nearest(asked.paths, wanted, part=asked.part)
            scores = {path: score for path, score, _ in near}
            texts = [(path, part) for path, _, part in near]
            looks = [(row, look) for row, _, look in freshness.looks(parts, catalog, texts)]
            hits = [
                SimilarHit(
                    **facts(parts, catalog, row, look),
                    score=scores[row.path],
                    line=freshness.first_line(look.body, look.body_line) if look.body else 0,
                    text=look.body,
                )
                for row, look in looks
                # What is excluded from search is seen, and no hit.
                if look.freshness is not None
            ]
            there = [hit for hit in hits if hit.freshness != "gone"]
            if len(there) >= count or len(near) < wanted:
                break
            wanted *= 4
        gone = [hit for hit in hits if hit.freshness == "gone"]
        tree = parts.places.tree
        shown, told = freshness.outdated([*there, *gone][:count], parts, catalog)
        paths = {tree.chunk_path(hit.path) for hit in shown}
        seen = [look for row, look in looks if look.freshness is None or row.path in paths]
        return Similar(
            to=tuple(map(tree.store_path, asked.paths)),
            source=asked.source,
            line=asked.line,
            generation=catalog.generation,
            hits=tuple(shown),
            notes=(
                *notes(parts, catalog),
                *freshness.notes(seen),
                *told,
            ),
        )


def facts(parts: Parts, catalog: Catalog, row: FileRow, look: Look) -> dict[str, Any]:
    """What every answer says of a file, but for its score."""
    return {
        "path": parts.places.tree.store_path(row.path),
        "kind": row.kind,
        "resource": row.resource,
        "source": catalog.source_of(row),
        "freshness": look.freshness,
        "headings": look.headings,
        "pages": look.pages,
    }


def notes(parts: Parts, catalog: Catalog) -> list[str]:
    """What is to be known of answers that rest on stored vectors."""
    found = []
    lacking = len(catalog.vector_keys(embedded=False))
    if lacking:
        texts = "1 text has" if lacking == 1 else f"{lacking:,} texts have"
        found.append(f"{texts} no vector yet and cannot be found: run 'filestore sync'")
    embedder = parts.same_model(catalog)
    if embedder is None:
        found.append(f"{parts.model.why_not.message}: compared by the vectors that are stored")
    elif embedder.lexical:
        found.append("the builtin embedder compares words, not meaning")
    return found
