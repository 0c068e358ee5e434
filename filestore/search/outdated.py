"""Hits that are as indexed, and what they were made from is not: an original, or other files.

Originals are looked at by stat, by hash where that moved; texts that a summary was made from are
compared in the catalog.

One rule: what the store may not look at is left as it is, and a file that a person wrote has no
original.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from filestore.catalog import Catalog, queries, summaries
from filestore.catalog.summaries import Stale
from filestore.core.paths import Tree
from filestore.search.answer import KnownFile

if TYPE_CHECKING:
    from filestore.sidecar.originals import Document
    from filestore.sidecar.session import Parts

AnyFound = TypeVar("AnyFound", bound=KnownFile)


def marked(
    found: Sequence[AnyFound],
    parts: "Parts",
    catalog: Catalog,
    stale: Stale | None = None,
) -> tuple[list[AnyFound], list[str]]:
    """Files that say where their original changed or went, and what is to be known of them.

    Args:
        found: What was found; only what is as indexed is looked at.
        parts: Of the store, which may look at originals only where it is allowed.
        catalog: Inside a snapshot.
        stale: Knows which summaries are out of date.
    """
    hits, notes = _by_original(found, parts, catalog)
    if not summaries.has_summaries(catalog):
        return hits, notes
    return _by_children(hits, notes, parts.places.tree, stale or Stale(catalog))


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
    found: Sequence[AnyFound], parts: "Parts", catalog: Catalog
) -> tuple[list[AnyFound], list[str]]:
    tree = parts.places.tree
    fresh = {
        tree.chunk_path(hit.path): hit for hit in found if hit.freshness == "fresh" and hit.source
    }
    rows = catalog.files(list(fresh))
    made = {row.path: fresh[row.path].source or "" for row in rows.values() if row.origin}
    if not made:
        return list(found), []
    from filestore.sidecar import originals

    documents = queries.documents_from(catalog, sorted(set(made.values())))
    drift = originals.look(catalog, parts.reachable(), documents=documents)
    seen = drift.seen
    gone, changed = 0, 0
    hits = []
    for hit in found:
        path = tree.chunk_path(hit.path)
        source = made.get(path, "")
        now = seen.get(source)
        recorded = _recorded(documents, source, hit.resource) if now else ()
        if now and not now.reason and now.found not in recorded:
            changed += bool(now.found)
            gone += not now.found
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
