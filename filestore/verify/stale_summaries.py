"""Summaries of text that changed since, and questions in place, told from the catalog alone.

One rule: what was read is known by its hash, so a summary is stale where one of its texts is no
longer there, where one below it is stale, and, at the top, where a text is in no summary.
"""

from collections.abc import Iterator

from filestore.catalog import Catalog, summaries
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.sidecar.summary_tree import Staleness, SummaryTree

_BYTES_PER_TOKEN = 4
"""A rough mean: what a refresh reads is told as a size, not as a bill."""


def check(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """The summaries that are out of date, by path; cheap enough for `status`."""
    catalog = snapshot.catalog
    if not summaries.has_summaries(catalog):
        return
    if summaries.is_in_step(catalog) and not summaries.texts_in_none(catalog):
        return
    reasons = why_stale(catalog, SummaryTree(summaries.all_children(catalog)))
    sizes = summaries.bytes_below(catalog, list(reasons))
    for path in sorted(reasons):
        tokens = max(1, sizes.get(path, 0) // _BYTES_PER_TOKEN)
        yield Finding(
            code="summary-stale",
            path=snapshot.places.tree.store_path(path),
            detail=f"{reasons[path]}; to make it again some {tokens:,} tokens are read",
        )
    for path, lacking in summaries.questions_out_of_step(catalog):
        said = "1 text that is" if lacking == 1 else f"{lacking:,} texts that are"
        detail = f"it has questions for {said} not there any more, which find nothing"
        yield Finding(
            code="summary-stale", path=snapshot.places.tree.store_path(path), detail=detail
        )


def why_stale(catalog: Catalog, tree: SummaryTree) -> dict[ChunkPath, str]:
    """The summaries that are out of date, each with why, in words."""
    reasons = {path: _why(tree.stale(path)) for path in tree.stale_paths()}
    for root, new in _not_summarised(catalog, tree):
        texts = "1 text is" if new == 1 else f"{new:,} texts are"
        said = f"{texts} in no summary"
        reasons[root] = f"{reasons[root]}; {said}" if root in reasons else said
        for above in tree.ancestors(root):
            reasons.setdefault(above, "a summary that it was made from is out of date")
    return reasons


def _why(found: Staleness | None) -> str:
    assert found is not None
    parts = [
        f"{len(paths)} {words[len(paths) > 1]}"
        for paths, words in (
            (found.changed, ("text that it was made from changed", "of its texts changed")),
            (found.gone, ("text that it was made from is gone", "of its texts are gone")),
            (
                found.stale,
                ("summary below it is out of date", "summaries below it are out of date"),
            ),
        )
        if paths
    ]
    return ", ".join(parts) or "it is made from itself"


def _not_summarised(catalog: Catalog, tree: SummaryTree) -> Iterator[tuple[ChunkPath, int]]:
    """The highest root of each resource that has summaries and texts in none, and how many."""
    new = summaries.texts_in_none(catalog)
    if not new:
        return
    tops: dict[str, ChunkPath] = {}
    for root in sorted(tree.roots, key=lambda path: (-tree.level(path), path)):
        row = catalog.files([root]).get(root)
        if row is not None:
            tops.setdefault(row.resource, root)
    for resource, count in new.items():
        if resource in tops:
            yield tops[resource], count
