"""Files against the catalog, every byte held against what was recorded; or on their own.

Where there is no catalog that can be read, nothing can be called untracked or changed, and none is:
the catalog is the finding. Missing is what git has. Embeddings have checksums of their own, so that
one repair restores both.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice
from typing import Final

from xxhash import xxh3_128, xxh3_128_digest

from filestore.catalog import decode_path
from filestore.chunks.layout import Layout, describe_unread, look_at, unreadable
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.config.layout import CATALOG, EMBEDDINGS, Places
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath, StorePath, Tree, inside
from filestore.core.progress import OnProgress, Progress
from filestore.fs import disk
from filestore.fs.programs import MOST_BLOCKS, shared
from filestore.fs.stats import unpack_stat
from filestore.sidecar import losses
from filestore.sidecar.losses import walk
from filestore.sidecar.recover import part_finding
from filestore.sidecar.snapshot import (
    NO_LISTENER,
    FindingStream,
    Level,
    Sample,
    StoreSnapshot,
    VerificationReport,
)
from filestore.verify import _rows, drift, environment, names
from filestore.verify._rows import Judged

Recorded = tuple[bytes, bytes]
"""Path below the root as it is on disk, and the xxh3_128 of the bytes that were recorded."""

_AT_ONCE: Final = 512
"""Files of one folder that are read with its handle open."""
_READ: Final = 1 << 16
"""Nearly every file is read in one call, and its size need not be asked first."""


@contextlib.contextmanager
def differing_files(
    root: str,
    files: Iterable[Recorded],
    *,
    most_bytes: int,
    processes: int,
    on_share: Callable[[float], None],
    on_unlike: Callable[[Sequence[ChunkPath]], None] = lambda _: None,
) -> Iterator[Callable[[], list[ChunkPath]]]:
    """Begin to read files and hold them against their hashes.

    Args:
        root: The folder that the paths are relative to.
        files: What is to be read; neighbours of one folder together.
        most_bytes: The largest file that is read; of a larger one nothing was recorded.
        processes: 2 lets a forked child read while this process does something else; only for a
            process without threads.
        on_share: Called with the share that was begun, by this process alone.
        on_unlike: Called with the paths of a block that differ, where this process read it.

    Yields:
        What reads on, and gives the paths of all that differ or cannot be read, in order.
    """
    pieces: list[tuple[bytes, list[Recorded]]] = []
    for folder, some in groupby(files, key=lambda file: file[0].rpartition(b"/")[0]):
        while piece := list(islice(some, _AT_ONCE)):
            pieces.append((folder, piece))
    if not pieces or not os.access(root, os.R_OK | os.X_OK):
        yield lambda: [ChunkPath(os.fsdecode(path)) for _, some in pieces for path, _ in some]
        return
    size = -(-len(pieces) // MOST_BLOCKS)
    blocks = [pieces[start : start + size] for start in range(0, len(pieces), size)]
    own = os.getpid()

    def read(number: int) -> list[ChunkPath]:
        """The paths of one block that differ."""
        if os.getpid() == own:
            on_share(number / len(blocks))
        unlike = (_unlike(tree, folder, some, most_bytes) for folder, some in blocks[number])
        paths = [ChunkPath(os.fsdecode(path)) for path in chain.from_iterable(unlike)]
        if paths and os.getpid() == own:
            on_unlike(paths)
        return paths

    with (
        disk.folder_at(root) as tree,
        shared(len(blocks), read, processes=processes) as results,
    ):
        yield lambda: list(chain.from_iterable(results()))


def _unlike(root: int, folder: bytes, files: Sequence[Recorded], most_bytes: int) -> list[bytes]:
    try:
        with disk.folder(root, os.fsdecode(folder)) as handle:
            start = len(folder) + 1 if folder else 0
            return [
                path for path, known in files if _hash(handle, path[start:], most_bytes) != known
            ]
    except OSError:
        return [path for path, _ in files]


def _hash(handle: int, name: bytes, most_bytes: int) -> bytes:
    """The hash of what can be read under a name without waiting; empty for nothing.

    Also for a file that is larger than what is read. Its type is not asked: what is no regular file
    does not hold what was recorded.
    """
    try:
        descriptor = os.open(name, disk.READ_FLAGS, dir_fd=handle)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, _READ)
        if len(data) < _READ:
            return xxh3_128_digest(data)
        hashed, left = xxh3_128(data), most_bytes - len(data)
        while left >= 0 and (data := os.read(descriptor, 16 * _READ)):
            hashed.update(data)
            left -= len(data)
        return hashed.digest() if left >= 0 else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


_HANDED_ON: Final = 1000
"""How many rotten files are looked at twice, to report the first ones early."""


@contextlib.contextmanager
def begun(
    snapshot: StoreSnapshot, sample: Sample, report: VerificationReport, on_progress: OnProgress
) -> Iterator[Callable[[], list[ChunkPath]]]:
    """Begin to read every catalogued file of a slice, also those whose stat is as it was.

    Args:
        snapshot: The store.
        sample: The slice.
        report: What was found by stats; rotten files are handed on by it as they are read.
        on_progress: Called with the number of files read.

    Yields:
        What ends it, and gives the paths that do not hold what was recorded.
    """
    files = snapshot.catalog.file_hashes()
    if not sample.is_all:
        files = [file for file in files if sample.has_path(decode_path(file[0]))]
    if not os.path.isdir(snapshot.places.chunked):
        files = []
    # Of what drifted the worst is known, and its files were read.
    known = {os.fsencode(path) for path in snapshot.places.tree.chunk_paths(reported(report))}
    files = [file for file in files if file[0] not in known] if known else files
    progress_of = partial(Progress, stage="reading files", total=len(files))
    with differing_files(
        snapshot.places.chunked,
        files,
        most_bytes=snapshot.layout.most_bytes,
        processes=snapshot.processes if len(files) > drift.PARALLEL_FILES else 1,
        on_share=lambda share: on_progress(progress_of(done=int(share * len(files)))),
        on_unlike=_Early(snapshot, report),
    ) as differing:
        yield differing


class _Early:
    """Hands on what differs while the rest is read."""

    def __init__(self, snapshot: StoreSnapshot, report: VerificationReport) -> None:
        self._snapshot = snapshot
        self._report = report
        self._left = _HANDED_ON

    def __call__(self, paths: Sequence[ChunkPath]) -> None:
        """Look at files of one block that differ."""
        if not self._left or not self._report.stream.is_heard:
            return
        known, tree = reported(self._report), self._snapshot.places.tree
        unknown = [path for path in paths if tree.store_path(path) not in known]
        fresh = _in_sight(tree, unknown, self._report)
        fresh = fresh[: self._left]
        self._left -= len(fresh)
        self._report.stream.tell(_rotten(self._snapshot, fresh))


def check(
    snapshot: StoreSnapshot,
    judged: Judged,
    differing: list[ChunkPath],
    reported: set[StorePath],
    report: VerificationReport,
) -> None:
    """Hold what was read, and the rows of the catalog, against each other.

    Args:
        snapshot: The store.
        judged: The rows.
        differing: What `begun` gave.
        reported: The paths whose worst finding is reported.
        report: Where findings go.
    """
    wrong = dict(judged.unsound())
    # A damaged row does not say what the file should hold.
    held = [path for path in differing if wrong.get(path) != _rows.DAMAGED]
    tree = snapshot.places.tree
    seen = _in_sight(tree, held, report)
    if len(seen) < len(held):
        number = len(held) - len(seen)
        report.not_checked.append(f"contents of {number:,} files below what is unreadable")
    found = [*_rotten(snapshot, seen)]
    for row, reason in wrong.items():
        found.append(Finding(code="map-mismatch", path=tree.store_path(row), detail=reason))
    report.add(finding for finding in found if finding.path not in reported)
    ends = judged.loose_ends()
    path = tree.part(CATALOG)
    report.add(Finding(code="map-mismatch", path=path, detail=detail) for detail in ends)


def _in_sight(tree: Tree, paths: list[ChunkPath], report: VerificationReport) -> list[ChunkPath]:
    """The paths without those below a folder that cannot be read, which is reported once."""
    closed = [one.path for one in report.findings if one.code == "unreadable"]
    below = tuple(f"{path}/" for path in closed)
    return [path for path in paths if not tree.store_path(path).startswith(below)]


def reported(report: VerificationReport) -> set[StorePath]:
    """Paths that the stat pass has reported."""
    return {finding.path for finding in report.findings if not finding.meaning.remark}


def _rotten(snapshot: StoreSnapshot, paths: list[ChunkPath]) -> Iterator[Finding]:
    """Files whose bytes are not the recorded ones, looked at once more."""
    rows, tree = snapshot.catalog.files(paths), snapshot.places.tree
    for look in look_at(snapshot.places, paths, snapshot.layout):
        if isinstance(look, Observation) and look.file_hash != rows[look.path].file_hash:
            found, expected = look.file_hash.hex(), rows[look.path].file_hash.hex()
            detail = f"found hash {found}, expected {expected}; every stamp is equal"
            yield Finding(code="bit-rot", path=tree.store_path(look.path), detail=detail)
        elif not isinstance(look, Observation):
            yield from unreadable(tree, *look)


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
    report.add([part_finding(places, error), *environment.findings(places)])
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
    """Find rows that fail their checksum; whose text each is is unknown without a catalog."""
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
    places: Places, layout: Layout, paths: list[ChunkPath], on_progress: OnProgress
) -> Iterator[Finding]:
    for number, look in enumerate(look_at(places, paths, layout)):
        if number % 1000 == 0:
            on_progress(Progress(stage="reading files", done=number, total=len(paths)))
        if not isinstance(look, Observation):
            yield from unreadable(places.tree, *look)
        elif look.state not in (INDEXED, RECORD):
            found = drift.classify(places.tree, None, look)
            if found is not None:
                yield found
