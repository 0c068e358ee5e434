"""Verification where there is no catalog that can be read: every file is judged on its own.

Nothing can be called untracked, missing or changed then, and none is: the catalog is the finding.
"""

import os
from collections.abc import Iterable, Iterator

from filestore import drift, portable_names, surroundings
from filestore.catalog import CatalogMissingError, CatalogOutdatedError
from filestore.checking_files import CATALOG
from filestore.errors import FilestoreError
from filestore.findings import Finding
from filestore.observation import INDEXED, RECORD, Observation
from filestore.observe import describe_unread, unread_code
from filestore.places import Places
from filestore.progress import OnProgress, Progress
from filestore.scan import TreeScan, unpack_stat
from filestore.settings import Layout
from filestore.subject import NOBODY, Level, Said, Sample, Telling


def catalog_finding(error: FilestoreError) -> Finding:
    """The finding for a catalog that cannot be opened; an outdated one is as good as none."""
    is_missing = isinstance(error, CatalogMissingError | CatalogOutdatedError)
    code = "catalog-missing" if is_missing else "catalog-damaged"
    return Finding(code=code, path=CATALOG, detail=error.message)


def part_finding(error: FilestoreError) -> Finding:
    """The finding for damage that showed only when the catalog or the embeddings were used."""
    from filestore.embed.cache import EmbeddingsDamaged

    if isinstance(error, EmbeddingsDamaged):
        path = ".sidecar/embeddings.sqlite"
        return Finding(code="embeddings-damaged", path=path, detail=error.detail)
    return catalog_finding(error)


def judge(
    places: Places,
    layout: Layout,
    error: FilestoreError,
    *,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
    telling: Telling = NOBODY,
) -> Said:
    """Say why there is no catalog, and what is wrong with files whatever it would hold."""
    said = Said(telling=telling)
    said.add([catalog_finding(error), *surroundings.findings(places)])
    tree = drift.walk(places, processes=1)
    said.add(
        Finding(code="unreadable", path=drift.root_path(path), detail=reason)
        for path, reason in tree.problems.items()
    )
    paths = dict(_entries(tree))
    said.add(portable_names.unportable(tree.folders))
    said.add(portable_names.collisions(tree.folders))
    said.checked.append("names and stats of all files")
    if level == "fast":
        said.add(_by_stat(places, paths, layout))
        said.not_checked.append("contents of files")
    else:
        chosen = [path for path in paths if sample.has_path(path)]
        said.add(_by_content(places, layout, chosen, on_progress))
        said.checked.append("whether each file can be indexed, by its contents")
        if not sample.is_all:
            said.not_checked.append(f"contents of files outside slice {sample}")
    said.not_checked.append("what changed, came or went: that needs the catalog")
    said.not_checked.append("vectors and full-text entries, which are the catalog's")
    return said


def _entries(tree: TreeScan) -> Iterator[tuple[str, tuple[int, int]]]:
    """Path to mode and size of everything in the tree that is no folder."""
    for folder, packed in tree.folders.items():
        for name, entry in packed.entries().items():
            size, _, _, _, mode = unpack_stat(entry)
            yield f"{folder}/{name}" if folder else name, (mode, size)


def _by_stat(
    places: Places, paths: dict[str, tuple[int, int]], layout: Layout
) -> Iterator[Finding]:
    for path, (mode, size) in paths.items():
        name = os.path.basename(path)
        code = unread_code(name, mode, size, layout)
        if code:
            target = _target(os.path.join(places.chunked, path)) if code == "symlink" else b""
            detail = describe_unread(code, name, mode, size, target)
            yield Finding(code=code, path=drift.root_path(path), detail=detail)


def _target(path: str) -> bytes:
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return b""


def _by_content(
    places: Places, layout: Layout, paths: Iterable[str], on_progress: OnProgress
) -> Iterator[Finding]:
    wanted = list(paths)
    for number, look in enumerate(drift.look_at(places, wanted, layout)):
        if number % 1000 == 0:
            on_progress(Progress(stage="reading files", done=number, total=len(wanted)))
        if not isinstance(look, Observation):
            yield from drift.unreadable(*look)
        elif look.state not in (INDEXED, RECORD):
            found = drift.classify(None, look)
            if found is not None:
                yield found
