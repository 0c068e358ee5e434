"""What catalog, settings and derived files tell: equal texts, hand edits, links, open choices.

Reads no file of the tree. One rule: nothing here depends on what was just walked, so that it can be
reported at every level and again after a commit.

In an ingest conflict, what a person wrote goes only where they chose so. A summary is stale where
one of its texts, known by their hashes, is no longer there, where one below it is stale, and, at
the top, where a text is in no summary.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import orjson

from filestore.catalog import (
    CHUNKER,
    METRIC,
    Catalog,
    Conflict,
    LinkRow,
    decode_path,
    queries,
    summaries,
)
from filestore.chunks.observation import INDEXED
from filestore.config.layout import EMBEDDINGS, SETTINGS, Places
from filestore.config.settings import KeyNames, Settings
from filestore.core.findings import Finding
from filestore.core.paths import NO_PATH, ChunkPath, StorePath, Tree
from filestore.core.safe_text import listed, shown_path
from filestore.extract import FRONTMATTER_ERROR
from filestore.sidecar import fulltext_file, vector_file
from filestore.sidecar.models import known
from filestore.sidecar.snapshot import StoreSnapshot, VerificationReport
from filestore.verify import names

if TYPE_CHECKING:
    from filestore.chunks.chunk_file import Chunk
    from filestore.sidecar.summary_tree import Staleness, SummaryTree


_BYTES_PER_TOKEN = 4
"""A rough mean: what a refresh reads is shown as a size, not as a bill."""


def stale_summaries(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """The summaries that are out of date, by path; cheap enough for `status`."""
    catalog = snapshot.catalog
    if not summaries.has_summaries(catalog):
        return
    if summaries.is_in_step(catalog) and not summaries.texts_in_none(catalog):
        return
    from filestore.sidecar.summary_tree import SummaryTree

    reasons = why_stale(catalog, SummaryTree(summaries.all_children(catalog)))
    sizes = summaries.bytes_below(catalog, list(reasons))
    for path in sorted(reasons):
        tokens = max(1, sizes.get(path, 0) // _BYTES_PER_TOKEN)
        yield Finding(
            code="summary-stale",
            path=snapshot.places.tree.store_path(path),
            detail=f"{reasons[path]}; about {tokens:,} tokens to redo",
        )
    for path, lacking in summaries.questions_out_of_step(catalog):
        texts = "1 passage that is" if lacking == 1 else f"{lacking:,} passages that are"
        detail = f"it has questions for {texts} not there any more, which find nothing"
        yield Finding(
            code="summary-stale", path=snapshot.places.tree.store_path(path), detail=detail
        )


def why_stale(
    catalog: Catalog, tree: "SummaryTree", resource: str | None = None
) -> dict[ChunkPath, str]:
    """The summaries that are out of date, each with why, in words.

    Args:
        catalog: Inside a snapshot.
        tree: All summaries, or those of a resource and what is below them.
        resource: The one of these; None for all.
    """
    reasons = {path: _why(tree.stale(path)) for path in tree.stale_paths()}
    lacking = summaries.texts_in_none(catalog, resource)
    # The highest root of each resource that has summaries and texts in none.
    tops: dict[str, ChunkPath] = {}
    for root in sorted(tree.roots, key=lambda path: (-tree.level(path), path)) if lacking else ():
        row = catalog.files([root]).get(root)
        if row is not None:
            tops.setdefault(row.resource, root)
    for resource, new in lacking.items():
        if resource not in tops:
            continue
        root, texts = tops[resource], "1 passage is" if new == 1 else f"{new:,} passages are"
        reason = f"{texts} in no summary"
        reasons[root] = f"{reasons[root]}; {reason}" if root in reasons else reason
        for above in tree.ancestors(root):
            reasons.setdefault(above, "a summary that it was made from is out of date")
    return reasons


def _why(found: "Staleness | None") -> str:
    assert found is not None
    parts = [
        f"{len(paths)} {words[len(paths) > 1]}"
        for paths, words in (
            (found.changed, ("passage changed", "passages changed")),
            (found.gone, ("passage is gone", "passages are gone")),
            (
                found.stale,
                ("summary below is out of date", "summaries below are out of date"),
            ),
        )
        if paths
    ]
    return ", ".join(parts) or "it is made from itself"


Choice: TypeAlias = Literal["ours", "theirs"]


def is_of_source(conflict: Conflict, found: str | None) -> bool:
    """Whether the new text of a conflict is still the one of its source.

    Args:
        conflict: As the catalog has it.
        found: The hash of its source document as it is now, "" where it is gone; None where it
            can tell, and the conflict is believed.
    """
    return found is None or found == conflict.document


def is_of_file(conflict: Conflict, chunk: "Chunk | None") -> bool:
    """Whether a conflict is about a file as it is: edited, and made from what it was made from.

    Args:
        conflict: As the catalog has it.
        chunk: None for a file that cannot be read, which keeps its conflict.
    """
    if chunk is None:
        return True
    if (chunk.origin or "") != conflict.base:
        return False
    from filestore.chunks import chunk_file

    # Where the text went from the source, keys and questions of a person's are at stake, too.
    mine = conflict.theirs is None and (chunk.user or chunk_file.own_questions(chunk))
    return bool(chunk_file.hand_edited(chunk) or mine)


def still_open(conflict: Conflict, chunk: "Chunk | None", found: str | None) -> bool:
    """Whether a conflict is about a file and a source as they are; a choice in any other loses."""
    return is_of_source(conflict, found) and is_of_file(conflict, chunk)


def resolve(data: bytes, conflict: Conflict, choice: Choice) -> bytes | None:
    """The file after a choice; adding its source again then finds nothing left to choose.

    Args:
        data: The file as it is, which may have been edited since the conflict was found.
        conflict: As the catalog has it.
        choice: ``ours`` keeps the body as it is, also one that was merged by hand; where the source
            has no text any more the file becomes the person's own. ``theirs`` takes the new text.

    Returns:
        Its bytes; None where it is to be deleted.

    Raises:
        MalformedFrontmatter: The frontmatter cannot be read or not be edited in place.
    """
    from filestore.chunks import chunk_file, frontmatter
    from filestore.git.merge import with_line_ends

    if choice == "ours":
        return chunk_file.update(data, origin=conflict.origin)
    if conflict.theirs is None:
        return None
    made = chunk_file.update(
        data,
        headings=conflict.headings,
        pages=conflict.pages,
        repeats=None,
        origin=conflict.origin,
    )
    parts = frontmatter.split(made)
    return parts.head + with_line_ends(conflict.theirs, parts.body.decode(), parts.head).encode()


_NAMED: Final = 3


def open_matters(
    snapshot: StoreSnapshot, moves: Sequence[tuple[ChunkPath, ChunkPath]] = ()
) -> list[Finding]:
    """What waits for a person, cheap enough for `status`.

    Of documents whose frontmatter cannot be read it tells: they are found by their text alone.

    Args:
        snapshot: The store.
        moves: Old path and new path of files that moved and are not indexed there yet.
    """
    catalog, tree = snapshot.catalog, snapshot.places.tree
    found = [*ingest_conflicts(snapshot)]
    found += [dangling_link(tree, link) for link in catalog.dangling_links()]
    if snapshot.layout.has_sections:
        found += [
            Finding(code="frontmatter-ignored", path=tree.store_path(path), detail=reason)
            for path, reason in queries.files_with_key(catalog, FRONTMATTER_ERROR)
        ]
        if moves or catalog.has_rows("renamed"):
            from filestore.verify.lost_links import LostLinks

            found += LostLinks(snapshot, moves).of_moved()
    return [*found, *stale_summaries(snapshot), *authority(snapshot)]


def authority(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Documents that say to be stale after a day that is over, or what takes their place."""
    places, catalog, names = snapshot.places, snapshot.catalog, snapshot.settings.keys
    if queries.has_key(catalog, names.stale_after):
        from filestore.catalog import ages

        stale: dict[str, list[str]] = {}
        values = (sorted(ages.with_key(catalog, places.tree, key)) for key in names.stale_after)
        for document, value in chain.from_iterable(values):
            stale.setdefault(document, []).append(value)
        for document, days in sorted(stale.items()):
            if day := ages.stale_since({"stale_after": days}, snapshot.today):
                path, detail = StorePath(document), f"stale since {day}"
                yield Finding(code="past-date", path=path, detail=detail)
    yield from successions(places, catalog, names)


def successions(places: Places, catalog: Catalog, names: KeyNames) -> Iterator[Finding]:
    """Documents that say what takes their place."""
    if not queries.has_key(catalog, names.superseded_by):
        return
    from filestore.sidecar.standing import Successors

    successors = Successors(places, catalog, names)
    for document in successors.documents:
        for by in successors.of(document):
            is_known = by.is_address or (by.document and not by.in_circle)
            code = "superseded" if is_known else "successor-missing"
            other = StorePath(by.document)
            yield Finding(code=code, path=StorePath(document), detail=by.words, other=other)


def unjudged(snapshot: StoreSnapshot, *, reads: bool) -> Iterator[str]:
    """What is not known of the age of documents and of their sources, in words.

    Args:
        snapshot: The store.
        reads: Whether sources are looked at, and hashed where their stat tells nothing.
    """
    from filestore.catalog import ages

    places, catalog, names = snapshot.places, snapshot.catalog, snapshot.settings.keys
    if problem := ages.history(catalog).problem:
        yield problem
    if not reads:
        return
    from filestore.sidecar.originals import Reachable
    from filestore.sidecar.standing import Sources

    sources = Sources(catalog, lambda: Reachable(places, snapshot.originals), names)
    naming = sources.naming(places.tree)
    judged = {one.source or one.path: sources.judged(one).unknown for one in naming}
    if few := [f"{name} ({'; '.join(why)})" for name, why in judged.items() if why]:
        yield f"sources that documents name: {listed(map(shown_path, few), _NAMED)}"


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
        yield from changed_chunker(tree, catalog, snapshot.settings)
        yield from documents_cut_otherwise(snapshot)


def ingest_conflicts(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Hand edits that new source text overlaps with; not those whose file is gone, or moved on."""
    reported, tree = set(), snapshot.places.tree
    for conflict, found in _of_files(snapshot):
        if is_of_source(conflict, found):
            detail = conflict.detail or "edited by hand, and its source text changed too"
            path = tree.store_path(conflict.path)
            yield Finding(code="ingest-conflict", path=path, detail=detail)
        elif conflict.source not in reported and (conflict.source, found) in {
            (source, digest) for _, _, source, digest in snapshot.catalog.documents()
        }:
            # What of the other version needed no choice was added.
            reported.add(conflict.source)
            detail = "chunk files may have text of a version that it no longer is: add it again"
            yield Finding(code="source-modified", path=StorePath(conflict.source), detail=detail)


def open_conflicts(snapshot: StoreSnapshot) -> list[Conflict]:
    """The conflicts in which a person can choose."""
    return [one for one, found in _of_files(snapshot) if is_of_source(one, found)]


def stale_conflicts(catalog: Catalog) -> list[ChunkPath]:
    """Files whose conflict is about another text than they have: nothing waits there any more."""
    waiting = catalog.conflicts()
    there = catalog.files([conflict.path for conflict in waiting]) if waiting else {}
    return [one.path for one in waiting if one.path in there and not _is_of_row(catalog, one)]


def _of_files(snapshot: StoreSnapshot) -> Iterator[tuple[Conflict, str | None]]:
    """Conflicts about files as they are known, with the hash that their source has now."""
    catalog, now = snapshot.catalog, {}
    waiting = catalog.conflicts()
    if not (there := catalog.files([one.path for one in waiting]) if waiting else {}):
        return
    from filestore.sidecar import originals

    reachable = originals.Reachable(snapshot.places, snapshot.originals)
    for one in waiting:
        if one.path in there and _is_of_row(catalog, one):
            if one.source not in now:
                now[one.source] = originals.found_now(catalog, reachable, one.source)
            yield one, now[one.source]


def _is_of_row(catalog: Catalog, conflict: Conflict) -> bool:
    from filestore.chunks import kept

    row = catalog.files([conflict.path])[conflict.path]
    data = catalog.content(row.id) if row.state == INDEXED else None
    return is_of_file(conflict, None if data is None else kept.read(data))


def dangling_link(tree: Tree, link: LinkRow) -> Finding:
    """The finding for a link to a file that is not there."""
    detail = f"links to {tree.store_path(link.target)}, which is not there"
    if link.moved_to is not None:
        detail += f"; it moved to {tree.store_path(link.moved_to)}"
    other = tree.store_path(link.moved_to) if link.moved_to is not None else NO_PATH
    return Finding(
        code="link-dangling", path=tree.store_path(link.path), detail=detail, other=other
    )


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


def changed_chunker(tree: Tree, catalog: Catalog, settings: Settings) -> Iterator[Finding]:
    """Records of resources that would be cut otherwise today."""
    if not catalog.has_rows("records"):
        return
    from filestore.chunking import label

    wanted = label(settings.budget)
    # In a record this is written on a line of its own: the others are few, and parsed.
    line = orjson.dumps({"chunker": wanted}, option=orjson.OPT_INDENT_2)[1:-2]
    for path, data in queries.records_without(catalog, line):
        try:
            found = str(orjson.loads(data).get("chunker"))
        except (ValueError, AttributeError):
            # A full verification tells that it is no record.
            continue
        if found != wanted:
            yield Finding(
                code="chunker-changed",
                path=tree.store_path(decode_path(path)),
                detail=f"cut by {found}, today it would be {wanted}",
            )


def documents_cut_otherwise(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Whether documents would be cut otherwise today."""
    wanted, found = snapshot.layout.cuts_as, snapshot.catalog.meta(CHUNKER)
    if not wanted or found is None or not snapshot.catalog.indexed_count():
        return
    if found != wanted:
        yield Finding(
            code="chunker-changed",
            path=SETTINGS,
            detail=f"cut by {found}, today it would be {wanted}",
            tree=snapshot.places.tree,
        )


def pages_read_whole(snapshot: StoreSnapshot) -> Iterator[Finding]:
    """Pages in place that were read with what their site puts around them."""
    if not snapshot.layout.cuts_as:
        return
    from filestore.extract import WHOLE_PAGE

    whole = snapshot.catalog.files_with_fact("remarks", WHOLE_PAGE)
    for path in sorted(snapshot.catalog.indexed_paths(sorted(whole)).values()):
        yield Finding(code="page-whole", path=snapshot.places.tree.store_path(path))


def sidecar_findings(snapshot: StoreSnapshot, *, hashes: bool) -> list[Finding]:
    """What is wrong with the derived files, without parsing an accelerator."""
    places, catalog = snapshot.places, snapshot.catalog
    found = [
        *snapshot.home.findings(catalog, hashes=hashes),
        *fulltext_file.findings(places, catalog, hashes=hashes),
    ]
    asked, compared = snapshot.settings.metric, catalog.meta(METRIC)
    if compared not in (None, asked):
        detail = f"indexed for {compared}, the settings ask for {asked}"
        found.append(Finding(code="metric-mismatch", path=SETTINGS, detail=detail))
    recorded = catalog.meta("fingerprint")
    if snapshot.embedder is None:
        # Without its model no vector can be made: one finding says so, not one for each.
        found = [finding for finding in found if finding.meaning.about != "index"]
    found += snapshot.findings_on_models()
    if snapshot.embedder is None and snapshot.no_model:
        missing = Finding(code="model-missing", path=SETTINGS, detail=snapshot.no_model)
        return [*found, missing]
    # A service that was never asked has none, which the store's vectors cannot have either.
    wanted = snapshot.embedder.fingerprint if snapshot.embedder else snapshot.settings.embedder
    if recorded is not None and recorded != wanted:
        other = known(catalog)
        if other is not None and other.fingerprint == wanted:
            # A switch that was not completed, or that git made: nothing has to be embedded for it.
            detail = f"indexed with {recorded}; the settings ask for the second model, {wanted}"
            found.append(Finding(code="index-behind", path=places.part(""), detail=detail))
        else:
            detail = f"indexed with {recorded}, the settings ask for {wanted}"
            found.append(Finding(code="model-changed", path=SETTINGS, detail=detail))
    if snapshot.embedder is not None:
        found += vector_file.embeddings_findings(places, catalog, snapshot.embeddings)
    return found + pending(places, catalog)


def waiting(snapshot: StoreSnapshot) -> list[Finding]:
    """What embedding alone repairs; nothing where the model is not here."""
    if snapshot.embedder is None and snapshot.no_model:
        return []
    behind = [one for one in snapshot.findings_on_models() if one.severity != "I"]
    return [*pending(snapshot.places, snapshot.catalog), *behind]


def pending(places: Places, catalog: Catalog) -> list[Finding]:
    """How many texts have their vector, as one finding; none where all have."""
    waiting = catalog.waiting_count()
    if not waiting:
        return []
    texts = catalog.count("vectors")
    detail = f"vectors: {texts - waiting:,} of {texts:,}"
    return [Finding(code="vector-pending", path=places.part(EMBEDDINGS), detail=detail)]
