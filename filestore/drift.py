"""Drift between truth tree and catalog, told by stats: what to read, what moved, what is gone.

Compares; changes nothing. One rule: nothing is called missing that was not looked for with success.
"""

import os
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from filestore import scan
from filestore.catalog import Catalog, FileRow
from filestore.findings import CODES, Finding
from filestore.observation import INDEXED, RECORD, UNMERGED, Observation
from filestore.places import Places
from filestore.settings import Layout

MASS_FILES: Final = 50
MASS_SHARE: Final = 0.2
PARALLEL_FILES: Final = 5000
HORIZON_NS: Final = 3_000_000_000
"""A stamp further in the future than this is not waited for."""
CHUNKED: Final = "chunked"

DeletedPaths = Callable[[], set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What a walk found, before the files that may differ are read."""

    look: tuple[str, ...]
    """Added and changed paths, to be read and compared."""
    moves: tuple[tuple[str, Observation], ...]
    """Old path, and what was seen at the new one, which has the same content."""
    edited_moves: tuple[tuple[str, str], ...] = ()
    """Old path and new path of files that were moved and edited; the new ones are to be read."""
    gone: tuple[str, ...]
    """Catalogued paths that no longer exist, moves taken off."""
    mass_missing: bool
    """Whether so much is gone that forgetting it needs a word from the user."""
    known: int
    """How many files the catalog has."""
    latest_stamp_ns: int
    """The newest stamp around the paths to be read, to be waited out before they are."""
    findings: tuple[Finding, ...]
    """What could not be looked at."""


def root_path(path: str) -> str:
    """A path below `chunked/` as the contract shows it: relative to the store root."""
    return f"{CHUNKED}/{path}" if path else CHUNKED


def folded_path(path: str) -> str:
    """A path as a file system that ignores case and composition sees it."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


def detect(
    places: Places,
    catalog: Catalog,
    *,
    layout: Layout,
    deleted: DeletedPaths,
    mass_allowed: bool = False,
    processes: int = 1,
    unmerged: Set[str] = frozenset(),
) -> Drift:
    """Walk the tree and compare it with the catalog; reads only what may have moved.

    Args:
        places: Where the store lies.
        catalog: Inside a snapshot or a transaction.
        layout: How files are named.
        deleted: Asked only when much is gone: paths below `chunked/` that git's HEAD no longer has.
        mass_allowed: Whether much may be gone at once.
        processes: 2 lets a forked child walk half of a large tree.
        unmerged: Paths that git has as unmerged.
    """
    known = catalog.file_count()
    recorded = catalog.folders()
    many = processes if known > PARALLEL_FILES else 1
    tree = walk(places, processes=many, recorded=recorded)
    found = scan.differences(tree, recorded)
    arrivals = _Arrivals(places, catalog, found, layout, unmerged)
    moves = arrivals.moves() if found.gone and found.added else []
    edited_moves = arrivals.edited_moves(moves) if found.gone and found.added else []
    arrived = {look.path for _, look in moves}
    departed = {old for old, _ in [*moves, *edited_moves]}
    gone = tuple(path for path in found.gone if path not in departed)
    again = _to_look_at_again(tree, catalog, unmerged)
    look = tuple(sorted((set(found.added) - arrived) | set(found.changed) | again))
    return Drift(
        look=look,
        latest_stamp_ns=scan.latest_stamp(tree, look, time.time_ns() + HORIZON_NS),
        moves=tuple(moves),
        edited_moves=tuple(edited_moves),
        gone=gone,
        mass_missing=not mass_allowed
        and is_mass(gone, known, emptied=not (tree.folders or tree.problems), deleted=deleted),
        known=known,
        findings=tuple(
            Finding(code="unreadable", path=root_path(path), detail=reason)
            for path, reason in tree.problems.items()
        ),
    )


def walk(
    places: Places, *, processes: int, recorded: Mapping[str, scan.PackedFolder] | None = None
) -> scan.TreeScan:
    """The tree as it is: empty where there is none, a problem where it cannot be read."""
    try:
        return scan.scan_tree(places.chunked, processes=processes, recorded=recorded)
    except FileNotFoundError:
        return scan.TreeScan()
    except OSError as error:
        return scan.TreeScan(problems={"": error.strerror or str(error)})


def is_mass(gone: Sequence[str], known: int, *, emptied: bool, deleted: DeletedPaths) -> bool:
    """Whether so many files are gone at once that it looks like an accident.

    What git's HEAD no longer has either went on purpose, and is not counted.
    """
    limit = max(MASS_FILES, MASS_SHARE * known)
    if not gone or (len(gone) <= limit and not emptied):
        return False
    meant = deleted()
    counted = sum(path not in meant for path in gone)
    return counted > limit or (emptied and counted > 0)


def _to_look_at_again(tree: scan.TreeScan, catalog: Catalog, unmerged: Set[str]) -> set[str]:
    """Files whose stat is as it was, while git has come to have them as unmerged, or no longer."""
    states = {path: (state, detail) for path, state, detail in catalog.states()}
    before = {path for path, (_, detail) in states.items() if detail == UNMERGED}
    fresh = {path for path in unmerged if states.get(path, (INDEXED, ""))[0] in (INDEXED, RECORD)}
    return {path for path in (before - unmerged) | fresh if _is_there(tree, path)}


def _is_there(tree: scan.TreeScan, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    packed = tree.folders.get(folder)
    return packed is not None and name in scan.unpack_names(packed.names)


class _Arrivals:
    """New files held against those that are gone; each new one is read at most once."""

    def __init__(
        self,
        places: Places,
        catalog: Catalog,
        found: scan.Differences,
        layout: Layout,
        unmerged: Set[str],
    ) -> None:
        self._places = places
        self._catalog = catalog
        self._found = found
        self._layout = layout
        self._unmerged = unmerged
        self._seen: dict[str, Observation] = {}

    def moves(self) -> list[tuple[str, Observation]]:
        """Old path, and what was seen at the new one: the same content."""
        self._gone = self._catalog.files(self._found.gone)
        sizes = _recorded_sizes(self._catalog, self._found.gone)
        self._read(path for path in self._found.added if _size(self._places, path) in sizes)
        pairs = match_moves(
            {path: row.file_hash for path, row in self._gone.items() if row.file_hash},
            {path: look.file_hash for path, look in self._seen.items() if look.file_hash},
        )
        return [
            (old, self._seen[new])
            for old, new in pairs
            if self._gone[old].state == self._seen[new].state
        ]

    def edited_moves(self, moves: Sequence[tuple[str, Observation]]) -> list[tuple[str, str]]:
        """Old path and new path of files with one origin and another content."""
        taken = {old for old, _ in moves} | {look.path for _, look in moves}
        origins = {
            path: row.origin.encode()
            for path, row in self._gone.items()
            if row.origin and row.state == INDEXED and path not in taken
        }
        if not origins:
            return []
        self._read(path for path in self._found.added if path not in self._seen)
        return match_moves(
            origins,
            {
                path: look.chunk.origin.encode()
                for path, look in self._seen.items()
                if look.chunk and look.chunk.origin and path not in taken
            },
        )

    def _read(self, paths: Iterable[str]) -> None:
        for look in look_at(self._places, list(paths), self._layout, unmerged=self._unmerged):
            if isinstance(look, Observation):
                self._seen[look.path] = look


def _recorded_sizes(catalog: Catalog, paths: Iterable[str]) -> set[int]:
    folders = catalog.folders()
    sizes: set[int] = set()
    unpacked: dict[str, dict[str, bytes]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in unpacked:
            unpacked[folder] = folders[folder].entries()
        sizes.add(scan.unpack_stat(unpacked[folder][name])[0])
    # An entry that was never clean tells no size, so any may be the one.
    return _AnySize() if 0 in sizes else sizes


class _AnySize(set[int]):
    def __contains__(self, _: object) -> bool:
        return True


def _size(places: Places, path: str) -> int:
    try:
        return os.lstat(os.path.join(places.chunked, path)).st_size
    except OSError:
        return -1


def match_moves(gone: Mapping[str, bytes], added: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Pair what is gone with what is new by content, where there is no doubt; pure.

    First by content and file name together, so that a renamed folder with equal files in it pairs
    up, then by content alone. What remains ambiguous is not paired.
    """
    pairs: list[tuple[str, str]] = []
    for key in (_content_and_name, _content):
        old = _unique(gone, key, taken={pair[0] for pair in pairs})
        new = _unique(added, key, taken={pair[1] for pair in pairs})
        pairs += [(old[mark], new[mark]) for mark in old.keys() & new.keys()]
    return sorted(pairs)


def _content_and_name(path: str, content: bytes) -> tuple[bytes, str]:
    return content, path.rpartition("/")[2]


def _content(_: str, content: bytes) -> tuple[bytes, str]:
    return content, ""


def _unique(
    paths: Mapping[str, bytes],
    key: Callable[[str, bytes], tuple[bytes, str]],
    *,
    taken: set[str],
) -> dict[tuple[bytes, str], str]:
    found: dict[tuple[bytes, str], list[str]] = {}
    for path, content in paths.items():
        if path not in taken:
            found.setdefault(key(path, content), []).append(path)
    return {mark: paths[0] for mark, paths in found.items() if len(paths) == 1}


def look_at(
    places: Places, paths: Sequence[str], layout: Layout, *, unmerged: Set[str] = frozenset()
) -> Iterator[Observation | tuple[str, OSError]]:
    """Observe some files of the tree; what git has as unmerged is withheld."""
    if not paths:
        return
    from filestore.observe import observe

    handle = os.open(places.chunked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from observe(handle, paths, layout=layout, unmerged=unmerged)
    finally:
        os.close(handle)


def unreadable(path: str, error: OSError) -> Iterator[Finding]:
    """The finding for a file that cannot be read; none for one that went away meanwhile."""
    if not isinstance(error, FileNotFoundError):
        reason = error.strerror or str(error)
        yield Finding(code="unreadable", path=root_path(path), detail=reason)


def missing_findings(drift: Drift) -> list[Finding]:
    """Moves and what is gone, as findings; a mass of missing files is one finding."""
    pairs = sorted([*((old, look.path) for old, look in drift.moves), *drift.edited_moves])
    found = [
        Finding(
            code="moved",
            path=root_path(new),
            other=root_path(old),
            detail=f"it was {root_path(old)}",
        )
        for old, new in pairs
    ]
    if drift.mass_missing:
        some = ", ".join(root_path(path) for path in drift.gone[:3])
        detail = f"{len(drift.gone)} of {drift.known} files are gone: {some}, …"
        return [*found, Finding(code="mass-missing", path=CHUNKED, detail=detail)]
    return found + [
        Finding(code="missing", path=root_path(path), detail="the file is gone")
        for path in drift.gone
    ]


def withheld_moves(drift: Drift) -> list[Finding]:
    """Why moved files that were withheld before are withheld under their new names, too."""
    found = (classify(None, look) for _, look in drift.moves)
    return [finding for finding in found if finding and finding.code != "untracked"]


def is_as_recorded(row: FileRow, look: Observation) -> bool:
    """Whether only stamps differ between a row and what was seen."""
    return row.file_hash == look.file_hash and row.state == look.state


def classify(row: FileRow | None, look: Observation) -> Finding | None:
    """What one observation says against what the catalog knows; pure.

    Args:
        row: None for a file that is not in the catalog.
        look: What was seen.
    """
    path = root_path(look.path)
    if look.state not in (INDEXED, RECORD):
        detail = look.detail or CODES[look.state].repair
        return Finding(code=look.state, path=path, detail=detail)
    if row is None:
        return Finding(code="untracked", path=path, detail="it is not in the catalog")
    if is_as_recorded(row, look):
        return None
    if row.state not in (INDEXED, RECORD):
        detail = f"it was left out as {row.state}, and is sound now"
        return Finding(code="modified", path=path, detail=detail)
    if look.state == INDEXED and row.state == INDEXED and row.text_key == look.text_key:
        return Finding(
            code="metadata-modified", path=path, detail="its frontmatter differs, its texts do not"
        )
    if look.state == RECORD and row.state == RECORD:
        return Finding(code="metadata-modified", path=path, detail="the record differs")
    return Finding(code="modified", path=path, detail="its text differs from what was indexed")


def standing_findings(catalog: Catalog, looked_at: Iterable[str]) -> list[Finding]:
    """Withheld files that did not change since, so that they are still withheld."""
    changed = set(looked_at)
    return [
        Finding(code=state, path=root_path(path), detail=detail or CODES[state].repair)
        for path, state, detail in catalog.states()
        if state != RECORD and path not in changed
    ]
