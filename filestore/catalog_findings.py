"""What the catalog and the settings alone tell: equal texts, hand edits, links, choices that wait.

Reads no file of the tree. One rule: nothing here depends on what was just walked, so that it can be
said at every level and again after a commit.
"""

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import orjson

from filestore import chunkfile, portable_names, resolving, source_drift
from filestore.catalog import Catalog, Conflict
from filestore.drift import root_path
from filestore.findings import Finding
from filestore.observation import INDEXED
from filestore.settings import SETTINGS_NAME, Settings
from filestore.source_drift import Reachable
from filestore.subject import Said, Subject

if TYPE_CHECKING:
    from filestore.embed.base import Embedder

METRIC: Final = "metric"
"""The key under which the catalog remembers what its vectors are compared by."""
_NAMED: Final = 3


def open_matters(subject: Subject) -> list[Finding]:
    """What waits for a person, cheap enough for `status`."""
    return [*ingest_conflicts(subject), *dangling_links(subject.catalog)]


def check(subject: Subject, said: Said) -> None:
    """Add warnings, and what is told in a verification alone: remarks."""
    said.add(warnings(subject, said.codes()))
    said.add(remarks(subject.catalog))


def warnings(subject: Subject, told: Container[str]) -> Iterator[Finding]:
    """Names that some file systems cannot hold or tell apart, and texts that were cut otherwise.

    Args:
        subject: The store.
        told: The codes of what was found so far.
    """
    folders = subject.catalog.folders()
    yield from portable_names.unportable(folders)
    yield from portable_names.collisions(folders)
    if "model-changed" not in told:
        # Another model counts otherwise, which is no second finding.
        yield from changed_chunker(subject.catalog, subject.settings, subject.embedder)


def ingest_conflicts(subject: Subject) -> Iterator[Finding]:
    """Hand edits that new source text overlaps with; not those whose file is gone, or moved on."""
    told = set()
    for conflict, found in _of_files(subject):
        if resolving.is_of_source(conflict, found):
            detail = conflict.detail or "edited by hand, and its source text changed too"
            yield Finding(code="ingest-conflict", path=root_path(conflict.path), detail=detail)
        elif conflict.source not in told and _is_as_recorded(subject.catalog, conflict, found):
            # What of the other version needed no choice was taken in.
            told.add(conflict.source)
            detail = "chunk files may have texts of a version that it no longer is: add it again"
            yield Finding(code="source-modified", path=conflict.source, detail=detail)


def open_conflicts(subject: Subject) -> list[Conflict]:
    """The conflicts in which a person can choose."""
    return [one for one, found in _of_files(subject) if resolving.is_of_source(one, found)]


def stale_conflicts(catalog: Catalog) -> list[str]:
    """Files whose conflict is about another text than they have: nothing waits there any more."""
    waiting = catalog.conflicts()
    there = catalog.files([conflict.path for conflict in waiting]) if waiting else {}
    return [one.path for one in waiting if one.path in there and not _is_of_file(catalog, one)]


def _of_files(subject: Subject) -> Iterator[tuple[Conflict, str | None]]:
    """Conflicts about files as they are known, with the hash that their source has now."""
    catalog, now = subject.catalog, {}
    waiting = catalog.conflicts()
    there = catalog.files([conflict.path for conflict in waiting]) if waiting else {}
    reachable = Reachable(subject.places, everywhere=subject.may_reach_sources) if there else None
    for one in waiting:
        if one.path in there and reachable is not None and _is_of_file(catalog, one):
            if one.source not in now:
                now[one.source] = source_drift.found_now(catalog, reachable, one.source)
            yield one, now[one.source]


def _is_of_file(catalog: Catalog, conflict: Conflict) -> bool:
    row = catalog.files([conflict.path])[conflict.path]
    data = catalog.content(row.id) if row.state == INDEXED else None
    return resolving.is_of_file(conflict, None if data is None else chunkfile.parse(data))


def _is_as_recorded(catalog: Catalog, conflict: Conflict, found: str | None) -> bool:
    known = {(source, digest) for _, _, source, digest in catalog.documents()}
    return (conflict.source, found) in known


def dangling_links(catalog: Catalog) -> Iterator[Finding]:
    """A person's links to files that are not there."""
    for link in catalog.dangling_links():
        detail = f"links to {root_path(link.target)}, which is not there"
        if link.moved_to is not None:
            detail += f"; it moved to {root_path(link.moved_to)}"
        yield Finding(
            code="link-dangling",
            path=root_path(link.path),
            detail=detail,
            other=root_path(link.moved_to) if link.moved_to is not None else "",
        )


def metric_mismatch(catalog: Catalog, settings: Settings) -> Iterator[Finding]:
    """Whether vectors were indexed for another comparison than the settings name."""
    recorded = catalog.meta(METRIC, settings.metric)
    if recorded != settings.metric:
        detail = f"indexed for {recorded}, the settings ask for {settings.metric}"
        yield Finding(code="metric-mismatch", path=SETTINGS_NAME, detail=detail)


def remarks(catalog: Catalog) -> Iterator[Finding]:
    """What is worth knowing, and nobody need mend."""
    yield from hand_edited(catalog.hand_edited_paths())
    # A vector without a second text is the rule, and counting is cheaper than comparing.
    if catalog.count("parts") > catalog.count("vectors"):
        for first, *others in catalog.duplicates():
            named = ", ".join(map(root_path, others[:_NAMED]))
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            yield Finding(
                code="duplicate",
                path=root_path(first),
                detail=f"has a text in common with {named}{more}",
                other=root_path(others[0]),
            )


def hand_edited(paths: Iterable[str]) -> Iterator[Finding]:
    """The remarks that files, by their paths below `chunked/`, were edited by hand."""
    for path in paths:
        detail = "its body is not the one that was generated"
        yield Finding(code="hand-edited", path=root_path(path), detail=detail)


def changed_chunker(
    catalog: Catalog, settings: Settings, embedder: "Embedder | None"
) -> Iterator[Finding]:
    """Records of resources that would be cut otherwise today; not told without the model.

    Another tokenizer counts a little otherwise, which is no reason to cut everything again: what
    is longer than a model's window is embedded in parts.
    """
    if embedder is None or not catalog.count("records"):
        return
    from filestore.chunking import label

    wanted = label(settings.budget, most=embedder.max_tokens, counter=embedder.tokenizer)
    like = wanted.rpartition(":")[0]
    # In a record as it is written this stands on a line of its own: the others are few, and parsed.
    line = orjson.dumps({"chunker": f"{like}:"}, option=orjson.OPT_INDENT_2)[1:-3]
    unlike = "SELECT path, data FROM records WHERE instr(data, ?) = 0 ORDER BY path"
    for path, data in catalog.rows(unlike, [line]):
        found = str(orjson.loads(data).get("chunker"))
        if found.rpartition(":")[0] != like:
            yield Finding(
                code="chunker-changed",
                path=root_path(path.decode("utf-8", "surrogateescape")),
                detail=f"cut by {found}, today it would be {wanted}",
            )
