"""Hits that are as indexed, and what they were made from is not: an original, or other files.

Originals are looked at by stat, by hash where that moved; texts that a summary was made from are
compared in the catalog.

One rule: what the store may not look at is left as it is, and a file that a person wrote has no
original.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from filestore.catalog import Catalog, queries, summaries
from filestore.catalog.summaries import Stale
from filestore.core.paths import Tree
from filestore.search.answer import Answer, KnownFile

if TYPE_CHECKING:
    from filestore.sidecar.originals import Document, Seen
    from filestore.sidecar.reachable import Reachable

AnyFound = TypeVar("AnyFound", bound=KnownFile)


def mark(
    answer: Answer, tree: Tree, catalog: Catalog, reachable: "Callable[[], Reachable]", stale: Stale
) -> Answer:
    """An answer in which hits that are as indexed say where their original changed or went.

    Args:
        answer: What was found.
        tree: Where the files lie.
        catalog: Inside a snapshot.
        reachable: Says where the store may look; asked if there is an original at all.
        stale: Knows which summaries are out of date.
    """
    hits, notes = marked(answer.hits, tree, catalog, reachable, stale)
    return replace(answer, hits=tuple(hits), notes=(*answer.notes, *notes))


def marked(
    found: Sequence[AnyFound],
    tree: Tree,
    catalog: Catalog,
    reachable: "Callable[[], Reachable]",
    stale: Stale | None = None,
) -> tuple[list[AnyFound], list[str]]:
    """Such hits, and what is to be known of them; see `mark`."""
    hits, notes = _by_original(found, tree, catalog, reachable)
    if not summaries.has_summaries(catalog):
        return hits, notes
    return _by_children(hits, notes, tree, stale or Stale(catalog))


def _by_children(
    found: Sequence[AnyFound], notes: list[str], tree: Tree, stale: Stale
) -> tuple[list[AnyFound], list[str]]:
    """What is said of a summary that is out of date; see `Stale`."""
    same = [tree.chunk_path(hit.path) for hit in found if hit.freshness in ("fresh", "outdated")]
    old = stale.among(same)
    is_stale = [
        hit.freshness in ("fresh", "outdated") and tree.chunk_path(hit.path) in old for hit in found
    ]
    hits = [
        replace(hit, freshness="outdated") if of_changed else hit
        for hit, of_changed in zip(found, is_stale, strict=True)
    ]
    if number := sum(is_stale):
        are = "is a summary" if number == 1 else "are summaries"
        say = (
            f"{_results(number)} {are} of text that changed since: run 'filestore enrich --refresh'"
        )
        notes = [*notes, say]
    return hits, notes


def _by_original(
    found: Sequence[AnyFound], tree: Tree, catalog: Catalog, reachable: "Callable[[], Reachable]"
) -> tuple[list[AnyFound], list[str]]:
    fresh = {
        tree.chunk_path(hit.path): hit for hit in found if hit.freshness == "fresh" and hit.source
    }
    rows = catalog.files(list(fresh))
    made = {row.path: fresh[row.path].source or "" for row in rows.values() if row.origin}
    if not made:
        return list(found), []
    from filestore.sidecar import originals

    documents = queries.documents_from(catalog, sorted(set(made.values())))
    drift = originals.look(catalog, reachable(), documents=documents)
    seen = drift.seen
    gone, changed = 0, 0
    hits = []
    for hit in found:
        path = tree.chunk_path(hit.path)
        source = made.get(path, "")
        if source in seen and _differs(seen[source], _recorded(documents, source, hit.resource)):
            changed += bool(seen[source].found)
            gone += not seen[source].found
            hit = replace(hit, freshness="outdated")
        elif source in drift.elsewhere:
            changed += 1
            hit = replace(hit, freshness="outdated")
        hits.append(hit)
    return hits, _notes(changed, gone)


def _recorded(documents: "Sequence[Document]", source: str, resource: str) -> set[str]:
    """The hashes that a document had when the chunks of a resource were made from it."""
    made = {name: digest for _, name, one, digest in documents if one == source}
    # A chunk that was moved elsewhere belongs to whichever record names its source.
    return {made[resource]} if resource in made else set(made.values())


def _differs(seen: "Seen", recorded: set[str]) -> bool:
    return not seen.reason and seen.found not in recorded


def _notes(changed: int, gone: int) -> list[str]:
    said = []
    if changed:
        verb = "was" if changed == 1 else "were"
        said.append(
            f"{_results(changed)} {verb} made from an older version of the original:"
            " run 'filestore update'"
        )
    if gone:
        verb = "was" if gone == 1 else "were"
        said.append(
            f"{_results(gone)} {verb} made from an original that is gone:"
            " 'filestore update --plan' shows what can be done"
        )
    return said


def _results(number: int) -> str:
    return f"{number:,} of these results"
