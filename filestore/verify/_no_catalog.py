"""Verification where there is no catalog that can be read: every file is judged on its own.

Nothing can be called untracked or changed then, and none is: the catalog is the finding. Missing is
what git has. Embeddings have checksums of their own, so that one repair mends both.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator

from filestore.chunks.layout import Layout
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.chunks.observe import describe_unread, look_at, unreadable
from filestore.config.layout import EMBEDDINGS, Places
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath, inside
from filestore.core.progress import OnProgress, Progress
from filestore.fs.stats import unpack_stat
from filestore.sidecar import losses
from filestore.sidecar.losses import walk
from filestore.sidecar.recover import catalog_finding
from filestore.sidecar.snapshot import NO_LISTENER, FindingStream, Level, Sample, VerificationReport
from filestore.verify import drift, environment, names


def judge(
    places: Places,
    layout: Layout,
    error: FilestoreError,
    *,
    level: Level,
    sample: Sample,
    on_progress: OnProgress,
    stream: FindingStream = NO_LISTENER,
) -> VerificationReport:
    """Say why there is no catalog, and what is wrong with files whatever it would hold."""
    report = VerificationReport(stream=stream)
    report.add([catalog_finding(places, error), *environment.findings(places)])
    tree = walk(places, processes=1)
    report.add(drift.unlisted(places.tree, tree))
    report.add(losses.git_findings(places, layout, tree))
    # Path to mode and size of everything in the tree that is no folder.
    paths = {
        inside(folder, name): ((stat := unpack_stat(entry))[4], stat[0])
        for folder, packed in tree.folders.items()
        for name, entry in packed.entries().items()
    }
    report.add(names.check(places.tree, tree.folders))
    report.checked.append("names and stats of all files")
    if level == "fast":
        report.add(_by_stat(places, paths, layout))
        report.not_checked.append("contents of files")
    else:
        chosen = [path for path in paths if sample.has_path(path)]
        report.add(_by_content(places, layout, chosen, on_progress))
        report.checked.append("whether each file can be indexed, by its contents")
        if not sample.is_all:
            report.not_checked.append(f"contents of files outside slice {sample}")
    report.not_checked.append(
        "what changed or came, or went and is not in git: that needs the catalog"
    )
    if level != "fast" and sample.is_all:
        _check_embeddings(places, report)
    else:
        report.not_checked.append("rows of the embeddings")
    report.not_checked.append("FAISS rows and full-text entries, which are the catalog's")
    return report


def _check_embeddings(places: Places, report: VerificationReport) -> None:
    """Find rows that fail their checksum; whose text each is nobody knows without a catalog."""
    from filestore.embed import cache

    try:
        with cache.EmbeddingCache.open(places.embeddings, read_only=True) as embeddings:
            lost = [key for one in embeddings.fingerprints() for key in embeddings.verify(one)]
    except cache.EmbeddingsDamaged as error:
        detail = error.detail
    except (cache.EmbeddingsMissing, cache.EmbeddingsNewer, sqlite3.OperationalError) as error:
        report.not_checked.append(f"rows of the embeddings: {error}")
        return
    else:
        detail = f"the checksums of {len(lost):,} rows do not hold" if lost else ""
    report.checked.append("every stored embedding")
    if detail:
        path = places.part(EMBEDDINGS)
        report.add([Finding(code="embeddings-damaged", path=path, other=path, detail=detail)])


def _by_stat(
    places: Places, paths: dict[ChunkPath, tuple[int, int]], layout: Layout
) -> Iterator[Finding]:
    for path, (mode, size) in paths.items():
        name = os.path.basename(path)
        own = layout.of(path)
        code = own.unread_code(name, mode, size)
        if code:
            target = b""
            if code == "symlink":
                with contextlib.suppress(OSError):
                    target = os.readlink(os.fsencode(os.path.join(places.chunked, path)))
            most = own.most_bytes
            detail = describe_unread(code, name, mode, size, target, most_bytes=most)
            yield Finding(code=code, path=places.tree.store_path(path), detail=detail)


def _by_content(
    places: Places, layout: Layout, paths: Iterable[ChunkPath], on_progress: OnProgress
) -> Iterator[Finding]:
    wanted = list(paths)
    for number, look in enumerate(look_at(places, wanted, layout)):
        if number % 1000 == 0:
            on_progress(Progress(stage="reading files", done=number, total=len(wanted)))
        if not isinstance(look, Observation):
            yield from unreadable(places.tree, *look)
        elif look.state not in (INDEXED, RECORD):
            found = drift.classify(places.tree, None, look)
            if found is not None:
                yield found
