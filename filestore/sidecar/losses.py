"""What is gone from the tree: lost, moved or a mass; rows for losses that a new catalog never saw.

One rule: such a row says what was known before, so that a repair can restore the file, and search
never returns it. For a catalog that cannot tell, git is asked: what its HEAD has and the tree has
not is lost, but for what its index no longer has, which was taken out on purpose.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import AWAITED, LET_GO, Catalog, FileRow
from filestore.chunks.layout import Layout
from filestore.chunks.observation import GONE, Observation
from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.paths import TOP, ChunkPath, Tree, folder_of, inside
from filestore.core.safe_text import listed
from filestore.fs import scan
from filestore.fs.disk import pass_limits
from filestore.fs.stats import PackedFolder, pack_folder, pack_stat, unpack_names
from filestore.git import process, repository

if TYPE_CHECKING:
    from filestore.catalog import CatalogWriter
    from filestore.fs.watched_tree import WatchedScan, WatchedTree


_NEVER: Final = (0, 0, 0, 0, 0)
"""The stat of a file that was never seen: no file has it."""


class Loss(Struct, frozen=True, kw_only=True):
    """One file that is gone."""

    path: ChunkPath
    detail: str
    """Who knows of it."""
    resource: str = ""
    file_hash: bytes = b""
    """Of its bytes, where they are known."""


def note(catalog: "CatalogWriter", losses: Sequence[Loss]) -> dict[ChunkPath, int]:
    """Add rows of files that are gone, inside a transaction.

    Returns:
        Path to the id of its row, under which the last good bytes can be kept.
    """
    ids = {loss.path: one for one, loss in zip(catalog.new_ids(len(losses)), losses, strict=True)}
    rows = []
    for loss in losses:
        row = FileRow(
            id=ids[loss.path],
            path=loss.path,
            state=GONE,
            detail=loss.detail,
            file_hash=loss.file_hash,
            text_key=b"",
            kind="",
            resource=loss.resource,
            source=None,
            position=None,
            origin=None,
            edited=False,
            generation=catalog.next_generation,
        )
        rows.append((Observation(path=loss.path, values=_NEVER, state=GONE), row))
    catalog.insert(rows)
    # The stat cache names them, too: what it has and the tree has not is missing.
    recorded = catalog.folders()
    folders: dict[ChunkPath, dict[str, bytes]] = {}
    for path in ids:
        folder, name = folder_of(path), path.rpartition("/")[2]
        if folder not in folders:
            folders[folder] = recorded[folder].entries() if folder in recorded else {}
        folders[folder][name] = pack_stat(_NEVER)
    catalog.put_folders((folder, pack_folder(held)) for folder, held in folders.items())
    return ids


MASS_FILES: Final = 50
MASS_SHARE: Final = 0.2
DeletedPaths = Callable[[], set[ChunkPath]]


class Lost(Struct, frozen=True, kw_only=True):
    """What git tells of files that are gone."""

    gone: tuple[ChunkPath, ...] = ()
    """What HEAD has and the tree has not."""
    known: int = 0
    """How many HEAD has."""


LostFiles = Callable[[scan.TreeScan], Lost]


def no_losses(_: scan.TreeScan) -> Lost:
    """The answer where git is not to be asked."""
    return Lost()


def knows_nothing(catalog: Catalog) -> bool:
    """Whether a catalog has no file, and never forgot one."""
    return catalog.file_count() == 0 and not catalog.meta(LET_GO)


def is_emptied(
    tree: scan.TreeScan, layout: Layout, *, excluded: Set[ChunkPath] = frozenset()
) -> bool:
    """Whether no text is left, records alone do not count; an unreadable tree may have some.

    Args:
        tree: As it is.
        layout: How its files are named.
        excluded: Files that are there and known to be no text.
    """
    return not tree.problems and not any(
        is_text(path, layout) and path not in excluded for path in _paths(tree)
    )


def is_text(path: ChunkPath, layout: Layout) -> bool:
    """Whether a file is one that people wrote, as far as its names tell; a record is none."""
    return layout.is_text(path)


def walk(
    places: Places,
    *,
    processes: int,
    recorded: Mapping[ChunkPath, PackedFolder] | None = None,
) -> scan.TreeScan:
    """The tree as it is: empty where there is none, a problem where it cannot be read."""
    try:
        return scan.scan_tree(
            places.chunked, processes=processes, recorded=recorded, rules=places.rules
        )
    except OSError as error:
        return unlistable(error)


def walk_watched(places: Places, watched: "WatchedTree") -> "WatchedScan":
    """The same, of a walk that is kept."""
    from filestore.fs.watched_tree import WatchedScan

    try:
        return watched.scan(places.chunked, places.rules)
    except OSError as error:
        return WatchedScan(tree=unlistable(error), unwatched=error.strerror or str(error))


def unlistable(error: OSError) -> scan.TreeScan:
    """What a walk gives of a tree whose top cannot be listed."""
    if isinstance(error, FileNotFoundError):
        return scan.TreeScan()
    pass_limits(error)
    return scan.TreeScan(problems={TOP: error.strerror or str(error)})


def is_mass(gone: Sequence[ChunkPath], known: int, *, emptied: bool, deleted: DeletedPaths) -> bool:
    """Whether so much is gone at once that it looks like an accident.

    What git's HEAD no longer has either went on purpose, and is not counted.
    """
    limit = max(MASS_FILES, MASS_SHARE * known)
    if not gone or (len(gone) <= limit and not emptied):
        return False
    on_purpose = deleted()
    counted = sum(path not in on_purpose for path in gone)
    return counted > limit or (emptied and counted > 0)


def needs_word(
    places: Places,
    layout: Layout,
    catalog: Catalog,
    tree: scan.TreeScan,
    found: scan.Differences,
) -> bool:
    """Whether a sync forgets nothing of what is gone until a person says so.

    Args:
        places: Where the store lies.
        layout: How its files are named.
        catalog: Inside a snapshot.
        tree: As it is.
        found: How that differs from the catalog; what rules leave out is not gone.
    """
    emptied = is_emptied_of(found.gone, tree, layout, catalog)
    # As many as came may have moved: a sync finds out which.
    gone = found.gone if emptied else found.gone[len(found.added) :]
    deleted = partial(repository.deleted_paths, places.root, places.tree)
    # What is left of a mass stays one, however few.
    emptied = emptied or bool(catalog.meta(AWAITED))
    return is_mass(gone, catalog.file_count(), emptied=emptied, deleted=deleted)


def is_emptied_of(
    gone: Sequence[ChunkPath], tree: scan.TreeScan, layout: Layout, catalog: Catalog
) -> bool:
    """Whether files that are gone were the last texts."""
    return any(is_text(path, layout) for path in gone) and is_emptied(
        tree, layout, excluded={path for path, _, _ in catalog.states()}
    )


def apart_from_left_out(
    places: Places, away: Sequence[ChunkPath]
) -> tuple[tuple[ChunkPath, ...], tuple[ChunkPath, ...]]:
    """What of the paths that a walk did not see is gone, and what its rules left out."""
    if places.rules is None:
        return tuple(away), ()
    top = os.path.realpath(places.chunked)
    is_itself: dict[str, bool] = {}
    gone: list[ChunkPath] = []
    left_out: list[ChunkPath] = []
    for path in away:
        folder, _, name = os.path.join(top, path).rpartition("/")
        if folder not in is_itself:
            is_itself[folder] = os.path.realpath(folder) == folder
        is_there = False
        with contextlib.suppress(OSError):
            # A folder in the place of a note is none.
            is_folder = stat.S_ISDIR(os.lstat(f"{folder}/{name}").st_mode)
            is_there = is_itself[folder] and not is_folder
        (left_out if is_there else gone).append(path)
    return tuple(gone), tuple(left_out)


def match_moves(
    gone: Mapping[ChunkPath, bytes], added: Mapping[ChunkPath, bytes]
) -> list[tuple[ChunkPath, ChunkPath]]:
    """Pair what is gone with what is new by content, where there is no doubt; pure.

    First by content and file name together, so that a renamed folder with equal files in it pairs
    up, then by content alone. What remains ambiguous is not paired.
    """
    pairs: list[tuple[ChunkPath, ChunkPath]] = []
    for by_name in (True, False):
        old = _unique(gone, {pair[0] for pair in pairs}, by_name=by_name)
        new = _unique(added, {pair[1] for pair in pairs}, by_name=by_name)
        pairs += [(old[mark], new[mark]) for mark in old.keys() & new.keys()]
    return sorted(pairs)


def vanished(
    have: Mapping[ChunkPath, bytes],
    tree: scan.TreeScan,
    contents: Callable[[list[ChunkPath]], Mapping[ChunkPath, bytes]],
) -> dict[ChunkPath, bytes]:
    """What somebody has of a tree, path to content, and the tree has not.

    A file of which a new one holds the very bytes was moved. Nothing counts as gone below what
    cannot be read.

    Args:
        have: Path to a name of the content; b"" where it is not known.
        tree: As it is.
        contents: Asked only when some are gone: the same names for those of some paths that count.
    """
    there = set(_paths(tree))
    gone = {path: name for path, name in have.items() if path not in there}
    gone = {path: name for path, name in gone.items() if not scan.is_unknown(path, tree.problems)}
    if gone:
        named = {path: name for path, name in gone.items() if name}
        moved = match_moves(named, contents(sorted(there - have.keys())))
        gone = {path: gone[path] for path in gone.keys() - {old for old, _ in moved}}
    return gone


def _paths(tree: scan.TreeScan) -> Iterator[ChunkPath]:
    for folder, packed in tree.folders.items():
        for name in unpack_names(packed.names):
            yield inside(folder, name)


def _unique(
    paths: Mapping[ChunkPath, bytes], taken: set[ChunkPath], *, by_name: bool
) -> dict[tuple[bytes, str], ChunkPath]:
    """The paths of which no other has the same content, or content and name."""
    found: dict[tuple[bytes, str], list[ChunkPath]] = {}
    for path, content in paths.items():
        if path not in taken:
            mark = content, path.rpartition("/")[2] if by_name else ""
            found.setdefault(mark, []).append(path)
    return {mark: paths[0] for mark, paths in found.items() if len(paths) == 1}


def gone_findings(
    tree: Tree, gone: Sequence[ChunkPath], known: int, *, is_mass: bool
) -> list[Finding]:
    """What is gone, one by one, or a mass of it as one finding; pure."""
    if is_mass:
        some = listed(map(tree.store_path, gone))
        detail = f"{len(gone)} of {known} files are gone: {some}"
        return [Finding(code="mass-missing", path=tree.pathspec, detail=detail)]
    return [
        Finding(code="missing", path=tree.store_path(path), detail="the file is gone")
        for path in gone
    ]


def lost_of_git(places: Places, layout: Layout, tree: scan.TreeScan) -> Lost:
    """The chunk files and records that HEAD and git's index have, and a tree has not.

    A file of which another, that HEAD does not have, holds the very bytes was moved. Nothing is
    called lost below what cannot be read, nor where a sparse checkout leaves it out.
    """
    have = {
        path: name
        for path, name in repository.checked_in(places.root, places.tree).items()
        if layout.of(path).reads(path)
    }
    if not have:
        return Lost()

    def named(added: list[ChunkPath]) -> dict[ChunkPath, bytes]:
        """What git would call those of new files that are ours."""
        like = next(iter(have.values()))
        found = {}
        for path in added:
            if layout.of(path).reads(path):
                data = process.read_start(os.path.join(places.chunked, path), layout.most_bytes)
                found[path] = repository.blob_namer(like)(data).encode()
        return found

    gone = sorted(vanished({path: name.encode() for path, name in have.items()}, tree, named))
    if places.rules is not None:
        # What is there and no part of the tree is left out by its rules.
        gone = [path for path in gone if not os.path.lexists(os.path.join(places.chunked, path))]
    return Lost(gone=tuple(gone), known=len(have))


def git_findings(places: Places, layout: Layout, tree: scan.TreeScan) -> list[Finding]:
    """What is lost where there is no catalog: each file, or one finding for a mass of them."""
    found = lost_of_git(places, layout, tree)
    mass = is_mass(
        found.gone,
        found.known,
        emptied=is_emptied(tree, layout),
        deleted=lambda: set(),
    )
    return gone_findings(places.tree, found.gone, found.known, is_mass=mass)
