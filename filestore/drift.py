"""Drift between truth tree and catalog, told by stats: what to read, what moved, what is gone.

Compares; changes nothing. One rule: nothing is called missing that was not looked for with success.
"""

import os
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from filestore import scan
from filestore.catalog import Catalog, FileRow
from filestore.findings import CODES, Finding
from filestore.observation import INDEXED, RECORD, Observation
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
    """Old path, and what was seen at the new one."""
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
    return unicodedata.normalize("NFC", path).casefold()


def detect(
    places: Places,
    catalog: Catalog,
    *,
    layout: Layout,
    deleted: DeletedPaths,
    mass_allowed: bool = False,
    processes: int = 1,
) -> Drift:
    """Walk the tree and compare it with the catalog; reads only what may have moved.

    Args:
        places: Where the store lies.
        catalog: Inside a snapshot or a transaction.
        layout: How files are named.
        deleted: Asked only when much is gone: paths below `chunked/` that git's HEAD no longer has.
        mass_allowed: Whether much may be gone at once.
        processes: 2 lets a forked child walk half of a large tree.
    """
    known = catalog.file_count()
    tree = walk(places, processes=processes if known > PARALLEL_FILES else 1)
    found = scan.differences(tree, catalog.folders())
    moves = _moves(places, catalog, found, layout) if found.gone and found.added else []
    arrived = {look.path for _, look in moves}
    departed = {old for old, _ in moves}
    gone = tuple(path for path in found.gone if path not in departed)
    look = tuple(sorted((set(found.added) - arrived) | set(found.changed)))
    return Drift(
        look=look,
        latest_stamp_ns=scan.latest_stamp(tree, look, time.time_ns() + HORIZON_NS),
        moves=tuple(moves),
        gone=gone,
        mass_missing=not mass_allowed
        and is_mass(gone, known, emptied=not (tree.folders or tree.problems), deleted=deleted),
        known=known,
        findings=tuple(
            Finding(code="unreadable", path=root_path(path), detail=reason)
            for path, reason in tree.problems.items()
        ),
    )


def walk(places: Places, *, processes: int) -> scan.TreeScan:
    """The tree as it is: empty where there is none, a problem where it cannot be read."""
    try:
        return scan.scan_tree(places.chunked, processes=processes)
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


def _moves(
    places: Places, catalog: Catalog, found: scan.Differences, layout: Layout
) -> list[tuple[str, Observation]]:
    gone = catalog.files(found.gone)
    sizes = _recorded_sizes(catalog, found.gone)
    likely = [path for path in found.added if _size(places, path) in sizes]
    seen = [look for look in look_at(places, likely, layout) if isinstance(look, Observation)]
    by_path = {look.path: look for look in seen if look.file_hash}
    pairs = match_moves(
        {path: row.file_hash for path, row in gone.items() if row.file_hash},
        {path: look.file_hash for path, look in by_path.items()},
    )
    return [(old, by_path[new]) for old, new in pairs if gone[old].state == by_path[new].state]


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
    places: Places, paths: Sequence[str], layout: Layout
) -> Iterator[Observation | tuple[str, OSError]]:
    """Observe some files of the tree."""
    if not paths:
        return
    from filestore.observe import observe

    handle = os.open(places.chunked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from observe(handle, paths, layout=layout)
    finally:
        os.close(handle)


def missing_findings(drift: Drift) -> list[Finding]:
    """Moves and what is gone, as findings; a mass of missing files is one finding."""
    found = [
        Finding(
            code="moved",
            path=root_path(look.path),
            other=root_path(old),
            detail=f"it was {root_path(old)}",
        )
        for old, look in drift.moves
    ]
    if drift.mass_missing:
        some = ", ".join(root_path(path) for path in drift.gone[:3])
        detail = f"{len(drift.gone)} of {drift.known} files are gone: {some}, …"
        return [*found, Finding(code="mass-missing", path=CHUNKED, detail=detail)]
    return found + [
        Finding(code="missing", path=root_path(path), detail="the file is gone")
        for path in drift.gone
    ]


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
