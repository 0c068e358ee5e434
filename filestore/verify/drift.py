"""Drift between tree and catalog, found by stats: what to read, what moved, what is gone.

Compares; changes nothing. One rule: nothing is called missing that was not looked for with success.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from msgspec import Struct

from filestore.catalog import AWAITED, Catalog, FileRow
from filestore.chunks.layout import Layout, unreadable
from filestore.chunks.observation import GONE, INDEXED, RECORD, UNMERGED, Observation, why_excluded
from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath, Tree, folder_of
from filestore.fs import scan
from filestore.fs.stats import NEVER_CLEAN, StatEntries, unpack_names, unpack_stat
from filestore.sidecar.losses import (
    apart_from_left_out,
    gone_findings,
    is_emptied_of,
    is_mass,
    knows_nothing,
    match_moves,
    walk,
)
from filestore.sidecar.snapshot import StoreSnapshot

PARALLEL_FILES: Final = 5000


class Drift(Struct, frozen=True, kw_only=True):
    """What a walk found, before the files that may differ are read."""

    tree: Tree
    """The one that was walked."""

    to_read: tuple[ChunkPath, ...] = ()
    """Added and changed paths, to be read and compared."""
    moves: tuple[tuple[ChunkPath, Observation], ...]
    """Old path, and what was seen at the new one, which has the same content; without its bytes."""
    edited_moves: tuple[tuple[ChunkPath, ChunkPath], ...] = ()
    """Old path and new path of files that were moved and edited; the new ones are to be read."""
    gone: tuple[ChunkPath, ...]
    """Catalogued paths that no longer exist, moves taken off."""
    left_out: tuple[ChunkPath, ...] = ()
    """Catalogued paths that are there, and that the rules of the tree leave out now."""
    mass_missing: bool = False
    """Whether so much is gone that forgetting it needs a word from the user."""
    known: int = 0
    """How many files the catalog has."""
    latest_stamp_ns: int = 0
    """The newest stamp around the paths to be read, to be waited out before they are."""
    findings: tuple[Finding, ...] = ()
    """What could not be looked at."""


def detect(snapshot: StoreSnapshot, *, mass_allowed: bool = False) -> Drift:
    """Walk the tree and compare it with the catalog; reads only what may have moved.

    Args:
        snapshot: The store, its catalog inside a snapshot or a transaction.
        mass_allowed: Whether much may be gone at once.
    """
    places, catalog, unmerged = snapshot.places, snapshot.catalog, snapshot.unmerged
    known = catalog.file_count()
    recorded = catalog.folders()
    many = snapshot.processes if known > PARALLEL_FILES else 1
    tree = snapshot.tree or walk(places, processes=many, recorded=recorded)
    found = scan.differences(tree, recorded)
    moves: list[tuple[ChunkPath, Observation]] = []
    edited_moves: list[tuple[ChunkPath, ChunkPath]] = []
    if found.gone and found.added:
        arrivals = _Arrivals(snapshot, found)
        moves = arrivals.moves()
        edited_moves = arrivals.edited_moves(moves)
    arrived = {look.path for _, look in moves}
    departed = {old for old, _ in [*moves, *edited_moves]}
    staying = [path for path in found.gone if path not in departed]
    gone, left_out = apart_from_left_out(places, staying)
    if knows_nothing(catalog):
        lost_files = snapshot.lost(tree)
        forgotten = set(catalog.forgotten_before())
        gone, known = (
            tuple(path for path in lost_files.gone if path not in forgotten),
            lost_files.known,
        )
    # What is left of a mass stays one, however few, until it came back or was let go.
    is_rest = bool(catalog.meta(AWAITED))
    again = _to_look_at_again(tree, catalog, unmerged)
    to_read = tuple(sorted((set(found.added) - arrived) | set(found.changed) | again))
    emptied = is_rest or is_emptied_of(gone, tree, snapshot.layout, catalog)
    return Drift(
        tree=places.tree,
        to_read=to_read,
        latest_stamp_ns=scan.latest_stamp(tree, to_read, time.time_ns() + scan.HORIZON_NS),
        moves=tuple(moves),
        edited_moves=tuple(edited_moves),
        gone=gone,
        left_out=left_out,
        mass_missing=not mass_allowed
        and is_mass(gone, known, emptied=emptied, deleted=snapshot.deleted),
        known=known,
        findings=tuple(unlisted(places.tree, tree)),
    )


def _to_look_at_again(
    tree: scan.TreeScan, catalog: Catalog, unmerged: Set[ChunkPath]
) -> set[ChunkPath]:
    """Files whose stat is as it was, while git has come to have them as unmerged, or no longer."""
    states = {path: (state, detail) for path, state, detail in catalog.states()}
    before = {path for path, (_, detail) in states.items() if detail == UNMERGED}
    fresh = {path for path in unmerged if states.get(path, ("", ""))[0] != "conflict-markers"}
    return {
        path
        for path in (before - unmerged) | fresh
        if (packed := tree.folders.get(folder_of(path))) is not None
        and path.rpartition("/")[2] in unpack_names(packed.names)
    }


class _Arrivals:
    """New files compared with missing ones; each new one is read at most once."""

    def __init__(self, snapshot: StoreSnapshot, found: scan.Differences) -> None:
        self._snapshot = snapshot
        self._found = found
        self._seen: dict[ChunkPath, Observation] = {}
        self._origins: dict[ChunkPath, str] = {}

    def moves(self) -> list[tuple[ChunkPath, Observation]]:
        """Old path, and what was seen at the new one: the same content."""
        catalog = self._snapshot.catalog
        self._gone = catalog.files(self._found.gone)
        entries = StatEntries(catalog.folders())
        sizes = {unpack_stat(entries.entry(path) or NEVER_CLEAN)[0] for path in self._found.gone}
        self._read(
            path
            for path in self._found.added
            # An entry that was never clean tells no size.
            if 0 in sizes or _size(self._snapshot.places, path) in sizes
        )
        return moved(self._gone, self._seen)

    def edited_moves(
        self, moves: Sequence[tuple[ChunkPath, Observation]]
    ) -> list[tuple[ChunkPath, ChunkPath]]:
        """Old path and new path of files with one origin and another content."""
        taken = {old for old, _ in moves} | {look.path for _, look in moves}
        if not origins_of(self._gone, taken):
            return []
        self._read(path for path in self._found.added if path not in self._seen)
        return moved_and_edited(self._gone, self._origins, taken)

    def _read(self, paths: Iterable[ChunkPath]) -> None:
        places, layout = self._snapshot.places, self._snapshot.layout
        for look in self._snapshot.seen.look_at(
            places, list(paths), layout, unmerged=self._snapshot.unmerged
        ):
            if not isinstance(look, Observation):
                continue
            if look.chunk and look.chunk.origin:
                self._origins[look.path] = look.chunk.origin
            # There may be many: their bytes are read again where they are needed.
            self._seen[look.path] = look.without_content()


def moved(
    gone: Mapping[ChunkPath, FileRow], came: Mapping[ChunkPath, Observation]
) -> list[tuple[ChunkPath, Observation]]:
    """Old path, and what was seen at the new one: the same content; pure."""
    pairs = match_moves(
        {path: row.file_hash for path, row in gone.items() if row.file_hash},
        {path: look.file_hash for path, look in came.items() if look.file_hash},
    )
    return [
        (old, came[new])
        for old, new in pairs
        if came[new].pending or gone[old].state == came[new].state
    ]


def origins_of(gone: Mapping[ChunkPath, FileRow], taken: Set[ChunkPath]) -> dict[ChunkPath, bytes]:
    """What files that are gone were made from; not of files that were followed."""
    return {
        path: row.origin.encode()
        for path, row in gone.items()
        if row.origin and row.state == INDEXED and path not in taken
    }


def moved_and_edited(
    gone: Mapping[ChunkPath, FileRow], came: Mapping[ChunkPath, str], taken: Set[ChunkPath]
) -> list[tuple[ChunkPath, ChunkPath]]:
    """Old path and new path of files with one origin and another content; pure.

    Args:
        gone: Files that are gone.
        came: New files with what they were made from.
        taken: Old and new paths of files that were moved and are as they were.
    """
    made = {path: origin.encode() for path, origin in came.items() if path not in taken}
    return match_moves(origins_of(gone, taken), made)


def _size(places: Places, path: ChunkPath) -> int:
    try:
        return os.lstat(os.path.join(places.chunked, path)).st_size
    except OSError:
        return -1


def unlisted(tree: Tree, seen: scan.TreeScan) -> Iterator[Finding]:
    """What a walk could not look at, and what it left out although a person might expect it."""
    for path, reason in seen.problems.items():
        yield Finding(code="unreadable", path=tree.store_path(path), detail=reason)
    if not seen.skipped:
        return
    from filestore.extract import unread_document

    for path, reason in seen.skipped.items():
        code = "not-read" if unread_document(path) else "litter"
        yield Finding(code=code, path=tree.store_path(path), detail=reason)


def missing_findings(drift: Drift) -> list[Finding]:
    """Moves and what is gone, as findings; a mass of missing files is one finding."""
    return [
        *moved_findings(drift.tree, moved_paths(drift)),
        *left_out_findings(drift),
        *gone_findings(drift.tree, drift.gone, drift.known, is_mass=drift.mass_missing),
        *excluded_moves(drift.tree, [look for _, look in drift.moves]),
    ]


def moved_paths(drift: Drift) -> list[tuple[ChunkPath, ChunkPath]]:
    """Old path and new path of files that were moved, edited or not."""
    return [*((old, look.path) for old, look in drift.moves), *drift.edited_moves]


def moved_findings(tree: Tree, pairs: Iterable[tuple[ChunkPath, ChunkPath]]) -> list[Finding]:
    """Files that were moved, of their old and new paths."""
    named = [(tree.store_path(old), tree.store_path(new)) for old, new in sorted(pairs)]
    return [
        Finding(code="moved", path=new, other=old, detail=f"it was {old}") for old, new in named
    ]


def left_out_findings(drift: Drift) -> list[Finding]:
    """Files that the rules of the tree leave out now."""
    paths = map(drift.tree.store_path, drift.left_out)
    return [Finding(code="left-out", path=path, detail="rules leave it out now") for path in paths]


def excluded_moves(tree: Tree, moved: Iterable[Observation]) -> list[Finding]:
    """Why moved files that were excluded from search still are under their new names."""
    found = (classify(tree, None, look) for look in moved)
    return [finding for finding in found if finding and finding.code != "untracked"]


def is_as_recorded(row: FileRow, look: Observation) -> bool:
    """Whether only stamps differ between a row and what was seen."""
    # What git had as unmerged was excluded for that, not for its bytes.
    bytes_decide = look.pending and row.detail != UNMERGED
    return row.file_hash == look.file_hash and (bytes_decide or row.state == look.state)


def classify(tree: Tree, row: FileRow | None, look: Observation) -> Finding | None:
    """What one observation says against what the catalog knows; pure.

    Args:
        tree: Where the file lies.
        row: None for a file that is not in the catalog.
        look: What was seen.
    """
    path = tree.store_path(look.path)
    if look.pending and row is not None and is_as_recorded(row, look):
        excluded = row.state not in (INDEXED, RECORD, GONE)
        detail = why_excluded(row.state, row.detail) if excluded else ""
        return Finding(code=row.state, path=path, detail=detail) if excluded else None
    if look.state not in (INDEXED, RECORD):
        return Finding(code=look.state, path=path, detail=why_excluded(look.state, look.detail))
    if row is None or row.state == GONE:
        return Finding(code="untracked", path=path, detail="it is not in the catalog")
    if is_as_recorded(row, look):
        return None
    if row.state not in (INDEXED, RECORD):
        # What a document is shows when it is read.
        now = "has changed" if look.pending else "is sound now"
        detail = f"it was left out as {row.state}, and {now}"
        return Finding(code="modified", path=path, detail=detail)
    if look.state == INDEXED and row.state == INDEXED and row.text_key == look.text_key:
        return Finding(
            code="metadata-modified",
            path=path,
            detail="its frontmatter differs, its passages do not",
        )
    if look.state == RECORD and row.state == RECORD:
        return Finding(code="metadata-modified", path=path, detail="the record differs")
    return Finding(code="modified", path=path, detail="its text differs from what was indexed")


def settle(layout: Layout, row: FileRow | None, look: Observation) -> None:
    """Read the text of a document that changed, to tell how; where that is cheap."""
    if look.pending and row is not None and row.state == INDEXED and not is_as_recorded(row, look):
        layout.settle(look)


def standing_findings(drift: Drift, catalog: Catalog) -> list[Finding]:
    """Excluded files that did not change, and so still are excluded."""
    moved_away = [old for old, _ in moved_paths(drift)]
    changed = {*drift.to_read, *drift.gone, *drift.left_out, *moved_away}
    return [
        Finding(code=state, path=drift.tree.store_path(path), detail=why_excluded(state, detail))
        for path, state, detail in catalog.states()
        if state not in (RECORD, GONE) and path not in changed
    ]


def changed_findings(
    snapshot: StoreSnapshot, paths: tuple[ChunkPath, ...], moved: Mapping[ChunkPath, ChunkPath]
) -> Iterator[Finding]:
    """Read the files whose stat differs, and say what differs.

    Args:
        snapshot: The store.
        paths: The files.
        moved: New path to old path of files that were moved and edited.
    """
    known = snapshot.catalog.files([*paths, *moved.values()])
    places, layout, unmerged = snapshot.places, snapshot.layout, snapshot.unmerged
    for look in snapshot.seen.look_at(places, paths, layout, unmerged=unmerged):
        if isinstance(look, Observation):
            row = known.get(moved.get(look.path, look.path))
            settle(layout, row, look)
            finding = classify(places.tree, row, look)
            if finding is not None:
                yield finding
        else:
            yield from unreadable(places.tree, *look)
