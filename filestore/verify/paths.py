"""The findings of a few files, by reading them: what `status` would say of just these.

For a program that sees files change and wants to know at once what that means.
Changes nothing. One rule: a file is judged by the same functions that judge it in a walk; what
only the whole tree tells, a mass of missing files or a name like another one's, is not reported.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from filestore.catalog import CatalogPages, FileRow
from filestore.chunks.layout import Layout, look_at, unreadable
from filestore.chunks.observation import INDEXED, Observation
from filestore.config.layout import Places
from filestore.core.errors import RefusedError
from filestore.core.findings import Finding, with_tree, worst_first
from filestore.core.paths import (
    ChunkPath,
    StorePath,
    Tree,
    inside,
)
from filestore.fs import disk
from filestore.git import repository
from filestore.sidecar import originals
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.verify import drift, recorded_state, source_drift
from filestore.verify.drift import Drift
from filestore.verify.names import is_ours, why_unportable

MOST_PATHS: Final = 5_000

_GONE: Final = (FileNotFoundError, NotADirectoryError)
"""What a path says where it, or a folder on its way, is not there as such."""


class TooManyPathsError(RefusedError):
    """Looking at the whole store is quicker than at this many files."""


class _FilesNow(Struct, kw_only=True):
    """What became of the files."""

    looks: dict[ChunkPath, Observation] = field(default_factory=dict)
    gone: list[ChunkPath] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """What could not be looked at."""


def check(parts: Parts, paths: Sequence[str]) -> list[Finding]:
    """The findings of some files, worst first.

    Args:
        parts: The store's.
        paths: Relative to the store root, also of files that are gone; of a folder everything
            below it. Outside `chunked/` they are originals, by the names that records
            have for them; anything else is passed over.

    Raises:
        TooManyPathsError: They are more than `MOST_PATHS`.
        CatalogMissingError: There is no catalog to hold them against.
        CatalogDamagedError: It cannot be read.
    """
    catalog, tree = parts.catalog(), parts.places.tree
    with catalog.snapshot():
        wanted = _files(parts.places, CatalogPages(catalog), paths)
        rows = catalog.files(wanted)
        snapshot = StoreSnapshot(
            places=parts.places,
            layout=parts.layout,
            catalog=catalog,
            embeddings=None,
            embedder=None,
            deleted=set,
            home=parts.home,
            settings=parts.settings,
            today=parts.today(),
            originals=parts.originals(),
        )
        found = [*_drift(tree, parts.layout, rows, _look(parts, wanted))]
        for path, name in ((path, path.rpartition("/")[2]) for path in rows):
            if reason := why_unportable(name) if is_ours(tree, name) else "":
                shown_as = tree.store_path(path)
                found.append(Finding(code="unportable-name", path=shown_as, detail=reason))
        found += recorded_state.hand_edited(
            tree, (path for path, row in rows.items() if row.edited and row.state == INDEXED)
        )
        shown = set(map(tree.store_path, wanted))
        found += [one for one in recorded_state.open_matters(snapshot) if one.path in shown]
        found += _originals(snapshot, paths)
    return list(with_tree(worst_first(list(dict.fromkeys(found))), tree))


def _files(places: Places, pages: CatalogPages, paths: Sequence[str]) -> list[ChunkPath]:
    """The files of some paths: what is there, and what was."""
    found: set[ChunkPath] = set()
    for path in paths:
        normal = StorePath(os.path.normpath(path))
        if not places.tree.covers(normal):
            continue
        below = places.tree.chunk_path(normal)
        found.update(pages.paths_below(below, MOST_PATHS + 1))
        waiting = [below]
        while waiting:
            folder = waiting.pop()
            for name, is_folder in _entries(places.chunked, folder):
                (waiting.append if is_folder else found.add)(inside(folder, name))
                _refuse_many(found)
        if below:
            found.add(below)
        _refuse_many(found)
    return sorted(found)


def _refuse_many(found: Collection[str]) -> None:
    if len(found) > MOST_PATHS:
        raise TooManyPathsError(
            f"more than {MOST_PATHS:,} files are named",
            remedy="'filestore status' looks at the whole store",
        )


def _entries(chunked: str, path: ChunkPath) -> list[tuple[str, bool]]:
    """Name, and whether it is a folder, of what is in a folder; nothing where it is none."""
    try:
        with (
            disk.folder_at(chunked) as root,
            disk.folder(root, path) as handle,
            os.scandir(handle) as entries,
        ):
            return [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
    except OSError:
        return []


def _look(parts: Parts, wanted: Sequence[ChunkPath]) -> _FilesNow:
    places = parts.places
    if not os.path.isdir(places.chunked):
        return _FilesNow(gone=list(wanted))
    unmerged = repository.unmerged(places.chunked) if repository.is_stopped(places.root) else set()
    seen = _FilesNow()
    for look in look_at(places, wanted, parts.layout, unmerged=unmerged):
        if not isinstance(look, Observation):
            path, error = look
            if isinstance(error, _GONE):
                seen.gone.append(path)
            else:
                seen.findings += unreadable(places.tree, path, error)
        elif not stat.S_ISDIR(look.values[4]):
            seen.looks[look.path] = look
        else:
            seen.gone.append(look.path)
            if not os.access(os.path.join(places.chunked, look.path), os.R_OK | os.X_OK):
                where, detail = places.tree.store_path(look.path), "Permission denied"
                seen.findings.append(Finding(code="unreadable", path=where, detail=detail))
    return seen


def _drift(
    tree: Tree, layout: Layout, rows: Mapping[ChunkPath, FileRow], seen: _FilesNow
) -> Iterator[Finding]:
    """What the files say against the catalog; a file that went and came is one that moved."""
    gone = {path: rows[path] for path in seen.gone if path in rows}
    added = {path: look for path, look in seen.looks.items() if path not in rows}
    moves = drift.moved(gone, added)
    taken = {look.path for _, look in moves}
    followed = {*taken, *(old for old, _ in moves)}
    origins = {
        path: one.chunk.origin for path, one in added.items() if one.chunk and one.chunk.origin
    }
    edited = drift.moved_and_edited(gone, origins, followed)
    departed = {*followed, *(old for old, _ in edited)}
    found = Drift(
        tree=tree,
        moves=tuple(moves),
        edited_moves=tuple(edited),
        gone=tuple(path for path in gone if path not in departed),
    )
    yield from seen.findings
    yield from drift.missing_findings(found)
    before = {new: old for old, new in edited}
    for path, look in seen.looks.items():
        finding = None
        if path not in taken:
            row = rows.get(before.get(path, path))
            drift.settle(layout, row, look)
            finding = drift.classify(tree, row, look)
        if finding is not None:
            yield finding


def _originals(snapshot: StoreSnapshot, paths: Sequence[str]) -> list[Finding]:
    """What became of the originals among some paths."""
    named = map(os.path.normpath, paths)
    wanted = {path for path in named if not snapshot.places.tree.covers(path)}
    catalog = snapshot.catalog
    if not wanted or not catalog.has_rows("documents"):
        return []
    documents = [one for one in catalog.documents() if _is_among(one[2], wanted)]
    _refuse_many({source for _, _, source, _ in documents})
    where = source_drift.reachable(snapshot)
    return source_drift.findings(catalog, originals.look(catalog, where, documents=documents))


def _is_among(source: str, wanted: set[str]) -> bool:
    """Whether an original is one of some paths, or lies below one."""
    while source and source not in wanted:
        source = source.rpartition("/")[0]
    return bool(source)
