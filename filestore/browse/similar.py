"""The files most similar to one, as search shows its hits: by stored vectors, so without a model.

One rule: of an original its own chunks are no answer.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from filestore.browse.meant import meant
from filestore.browse.vectors import Explorer
from filestore.catalog import Catalog
from filestore.core.errors import UsageError
from filestore.core.paths import ChunkPath, StorePath, Tree
from filestore.core.schema import JsonObject
from filestore.search import freshness, outdated
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
            hits, seen = _hits(parts, catalog, near)
            there = [hit for hit in hits if hit.freshness != "gone"]
            if len(there) >= count or len(near) < wanted:
                break
            wanted *= 4
        gone = [hit for hit in hits if hit.freshness == "gone"]
        tree = parts.places.tree
        shown, told = outdated.marked([*there, *gone][:count], parts, catalog)
        return Similar(
            to=tuple(map(tree.store_path, asked.paths)),
            source=asked.source,
            line=asked.line,
            generation=catalog.generation,
            hits=tuple(shown),
            notes=(
                *notes(parts, catalog),
                *freshness.notes(_told(tree, shown, seen)),
                *told,
            ),
        )


def _hits(
    parts: Parts, catalog: Catalog, near: Sequence[tuple[ChunkPath, float, int]]
) -> tuple[list[SimilarHit], dict[ChunkPath, Look]]:
    """What is near as it is now; what is excluded from search is seen, and no hit."""
    scores = {path: score for path, score, _ in near}
    texts = [(path, part) for path, _, part in near]
    hits, seen = [], {}
    for row, _, look in freshness.looks(parts, catalog, texts):
        seen[row.path] = look
        if look.freshness is not None:
            hits.append(
                SimilarHit(
                    path=parts.places.tree.store_path(row.path),
                    score=scores[row.path],
                    line=freshness.first_line(look.body, look.body_line) if look.body else 0,
                    kind=row.kind,
                    resource=row.resource,
                    source=catalog.source_of(row),
                    freshness=look.freshness,
                    headings=look.headings,
                    pages=look.pages,
                    text=look.body,
                )
            )
    return hits, seen


def _told(tree: Tree, shown: Sequence[SimilarHit], seen: Mapping[ChunkPath, Look]) -> list[Look]:
    """What the shown files are, and those that are excluded."""
    paths = {hit.path for hit in shown}
    return [
        look
        for path, look in seen.items()
        if look.freshness is None or tree.store_path(path) in paths
    ]


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
