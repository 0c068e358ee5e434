"""What the catalog and the settings alone tell: equal texts, hand edits, links, choices that wait.

Reads no file of the tree. One rule: nothing here depends on what was just walked, so that it can be
said at every level and again after a commit.
"""

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import orjson

from filestore.catalog import CHUNKER, METRIC, Catalog, Conflict, LinkRow, decode_path, queries
from filestore.chunks import kept
from filestore.chunks.observation import INDEXED
from filestore.config.layout import SETTINGS
from filestore.config.settings import Settings
from filestore.core.findings import Finding
from filestore.core.paths import NO_PATH, ChunkPath, StorePath, Tree
from filestore.core.safe_text import listed
from filestore.extract.base import FRONTMATTER_ERROR
from filestore.sidecar import originals
from filestore.sidecar.documents import IN_PLACE
from filestore.sidecar.originals import Reachable
from filestore.sidecar.snapshot import StoreSnapshot, VerificationReport
from filestore.verify import ingest_conflict, names, stale_summaries

if TYPE_CHECKING:
    from filestore.embed.base import Embedder

_NAMED: Final = 3


def open_matters(snapshot: StoreSnapshot) -> list[Finding]:
    """What waits for a person, cheap enough for `status`."""
    return [
        *ingest_conflicts(snapshot),
        *dangling_links(snapshot),
        *ignored_frontmatter(snapshot),
        *stale_summaries.check(snapshot),
    ]


def check(snapshot: StoreSnapshot, report: VerificationReport) -> None:
    """Add warnings, and remarks, which only a verification reports."""
    report.add(warnings(snapshot, report.codes()))
    report.add(remarks(snapshot))


def warnings(snapshot: StoreSnapshot, reported: Container[str]) -> Iterator[Finding]:
    """Names that some file systems cannot hold or tell apart, and texts that were cut otherwise.

    Args:
        snapshot: The store.
        reported: The codes of what was found so far.
    """
    tree, catalog = snapshot.places.tree, snapshot.catalog
    yield from catalog.once(("names", tree), lambda: names.check(tree, catalog.folders()))
    if "model-changed" not in reported:
        # Another model counts otherwise, which is no second finding.
        yield from changed_chunker(tree, catalog, snapshot.settings, snapshot.embedder)
        yield from documents_cut_otherwise(snapshot)


def ingest_conflicts(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Hand edits that new source text overlaps with; not those whose file is gone, or moved on."""
    reported, tree = set(), snapshot.places.tree
    for conflict, found in _of_files(snapshot):
        if ingest_conflict.is_of_source(conflict, found):
            detail = conflict.detail or "edited by hand, and its source text changed too"
            path = tree.store_path(conflict.path)
            yield Finding(code="ingest-conflict", path=path, detail=detail)
        elif conflict.source not in reported and _is_as_recorded(snapshot.catalog, conflict, found):
            # What of the other version needed no choice was taken in.
            reported.add(conflict.source)
            detail = "chunk files may have texts of a version that it no longer is: add it again"
            yield Finding(code="source-modified", path=StorePath(conflict.source), detail=detail)


def open_conflicts(snapshot: StoreSnapshot) -> list[Conflict]:
    """The conflicts in which a person can choose."""
    return [one for one, found in _of_files(snapshot) if ingest_conflict.is_of_source(one, found)]


def stale_conflicts(catalog: Catalog) -> list[ChunkPath]:
    """Files whose conflict is about another text than they have: nothing waits there any more."""
    waiting = catalog.conflicts()
    there = catalog.files([conflict.path for conflict in waiting]) if waiting else {}
    return [one.path for one in waiting if one.path in there and not _is_of_file(catalog, one)]


def _of_files(snapshot: StoreSnapshot) -> Iterator[tuple[Conflict, str | None]]:
    """Conflicts about files as they are known, with the hash that their source has now."""
    catalog, now = snapshot.catalog, {}
    waiting = catalog.conflicts()
    there = catalog.files([conflict.path for conflict in waiting]) if waiting else {}
    reachable = Reachable(snapshot.places, snapshot.originals) if there else None
    for one in waiting:
        if one.path in there and reachable is not None and _is_of_file(catalog, one):
            if one.source not in now:
                now[one.source] = originals.found_now(catalog, reachable, one.source)
            yield one, now[one.source]


def _is_of_file(catalog: Catalog, conflict: Conflict) -> bool:
    row = catalog.files([conflict.path])[conflict.path]
    data = catalog.content(row.id) if row.state == INDEXED else None
    return ingest_conflict.is_of_file(conflict, None if data is None else kept.read(data))


def _is_as_recorded(catalog: Catalog, conflict: Conflict, found: str | None) -> bool:
    known = {(source, digest) for _, _, source, digest in catalog.documents()}
    return (conflict.source, found) in known


def dangling_links(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """A person's links to files that are not there."""
    for link in snapshot.catalog.dangling_links():
        yield dangling_link(snapshot.places.tree, link)


def dangling_link(tree: Tree, link: LinkRow) -> Finding:
    """The finding for a link to a file that is not there."""
    detail = f"links to {tree.store_path(link.target)}, which is not there"
    if link.moved_to is not None:
        detail += f"; it moved to {tree.store_path(link.moved_to)}"
    other = tree.store_path(link.moved_to) if link.moved_to is not None else NO_PATH
    return Finding(
        code="link-dangling", path=tree.store_path(link.path), detail=detail, other=other
    )


def ignored_frontmatter(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Documents in place whose frontmatter cannot be read: they are found by their text alone."""
    if not snapshot.layout.is_in_place:
        return
    for path, reason in queries.files_with_key(snapshot.catalog, FRONTMATTER_ERROR):
        where = snapshot.places.tree.store_path(path)
        yield Finding(code="frontmatter-ignored", path=where, detail=reason)


def metric_mismatch(catalog: Catalog, settings: Settings) -> Iterator[Finding]:
    """Whether vectors were indexed for another comparison than the settings name."""
    recorded = catalog.meta(METRIC, settings.metric)
    if recorded != settings.metric:
        detail = f"indexed for {recorded}, the settings ask for {settings.metric}"
        yield Finding(code="metric-mismatch", path=SETTINGS, detail=detail)


def remarks(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """What is worth knowing and needs no repair."""
    catalog, tree = snapshot.catalog, snapshot.places.tree
    yield from hand_edited(tree, catalog.hand_edited_paths())
    # A vector without a second text is the rule, and counting is cheaper than comparing.
    if catalog.count("parts") > catalog.count("vectors"):
        for first, *others in catalog.duplicates():
            named = listed(map(tree.store_path, others), _NAMED)
            yield Finding(
                code="duplicate",
                path=tree.store_path(first),
                detail=f"has a text in common with {named}",
                other=tree.store_path(others[0]),
            )


def hand_edited(tree: Tree, paths: Iterable[ChunkPath]) -> Iterator[Finding]:
    """The remarks that files were edited by hand."""
    for path in paths:
        detail = "its body is not the one that was generated"
        yield Finding(code="hand-edited", path=tree.store_path(path), detail=detail)


def changed_chunker(
    tree: Tree, catalog: Catalog, settings: Settings, embedder: "Embedder | None"
) -> Iterator[Finding]:
    """Records of resources that would be cut otherwise today; not reported without the model.

    Another tokenizer counts a little otherwise, which is no reason to cut everything again: what
    is longer than a model's window is embedded in parts.
    """
    if embedder is None or not catalog.count("records"):
        return
    from filestore.chunking import CHUNKER, way

    wanted = _wanted_label(settings, embedder, CHUNKER)
    like = way(wanted)
    # In a record as it is written this stands on a line of its own: the others are few, and parsed.
    line = orjson.dumps({"chunker": f"{like}:"}, option=orjson.OPT_INDENT_2)[1:-3]
    for path, data in queries.records_without(catalog, line):
        try:
            found = str(orjson.loads(data).get("chunker"))
        except (ValueError, AttributeError):
            # A full verification tells that it is no record.
            continue
        if way(found) != like:
            yield Finding(
                code="chunker-changed",
                path=tree.store_path(decode_path(path)),
                detail=f"cut by {found}, today it would be {wanted}",
            )


def documents_cut_otherwise(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Whether the documents in place would be cut otherwise today; not without the model."""
    embedder, found = snapshot.embedder, snapshot.catalog.meta(CHUNKER)
    if embedder is None or found is None or not snapshot.catalog.indexed_count():
        return
    from filestore.chunking import way

    wanted = _wanted_label(snapshot.settings, embedder, IN_PLACE)
    if way(str(found)) != way(wanted):
        yield Finding(
            code="chunker-changed",
            path=SETTINGS,
            detail=f"cut by {found}, today it would be {wanted}",
            in_place=True,
        )


def _wanted_label(settings: Settings, embedder: "Embedder", how: str) -> str:
    from filestore.chunking import label

    most, counter = embedder.max_tokens, embedder.tokenizer
    return label(settings.budget, most=most, counter=counter, way=how)
