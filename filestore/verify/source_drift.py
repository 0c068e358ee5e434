"""Originals held against the records of what was made from them: by stat, by hash where that moved.

Reads originals that are `Reachable`; changes nothing.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import orjson

from filestore.catalog import Catalog, queries
from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.hashing import ORIGIN_PREFIX, source_hash
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.fs import disk
from filestore.fs.scan import pack_stat, stat_entry, unpack_stat
from filestore.sidecar.reachable import Reachable
from filestore.verify.drift import HORIZON_NS

COPIES: Final = "source"
"""Where copies of originals from elsewhere lie, below the store root."""
BATCH: Final = 100
MAX_CANDIDATES: Final = 100
"""So many new files of a missing one's size are read to see where it went."""

Document: TypeAlias = tuple[str, str, str, str]
"""Record path, resource, source and hash, as `Catalog.documents` gives them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One original as it is now."""

    found: str = ""
    """The hash of its bytes, or what tells without one that it is another file; "" for no file."""
    values: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    """Its stat: size, mtime_ns, ctime_ns, inode and mode."""
    reason: str = ""
    """Why it could not be read."""


@dataclass(slots=True)
class SourceDrift:
    """What a look at all recorded originals found."""

    documents: Sequence[Document] = ()
    """Every document that records name."""
    seen: dict[str, Seen] = field(default_factory=dict)
    """Those that are not known to be as recorded, by source."""
    outside: list[str] = field(default_factory=list)
    """Those that the store may not look at."""
    read: dict[str, bytes] = field(default_factory=dict)
    """Stat entries worth recording, of those whose recorded one was of no use."""


def look(
    catalog: Catalog,
    reachable: Reachable,
    *,
    documents: Sequence[Document] | None = None,
    clock: disk.FileSystemClock | None = None,
    on_progress: OnProgress = ignore,
) -> SourceDrift:
    """Stat every original that a record names; read those whose stat tells nothing.

    Args:
        catalog: Inside a snapshot or a transaction.
        reachable: Where the store may look.
        documents: Those of the catalog's that are meant; None for all.
        clock: The file system's, where stats are to be recorded.
        on_progress: Called with the number of sources read.
    """
    drift = SourceDrift(catalog.documents() if documents is None else documents)
    known = catalog.source_stats()
    doubtful = [
        source
        for _, _, source, digest in drift.documents
        if known.get(source) != (digest, _packed(reachable.path(source)))
    ]
    unread: list[tuple[str, str]] = []
    for source in dict.fromkeys(doubtful):
        path = reachable.path(source)
        seen, where = (Seen(), None) if path is None else _stat(path, source, reachable)
        if where is None:
            drift.outside.append(source)
            continue
        drift.seen[source] = seen
        if seen.reason or not seen.values[4]:
            continue
        digest, packed = known.get(source, ("", b""))
        if packed == pack_stat(seen.values):
            drift.seen[source] = Seen(digest, seen.values)
        else:
            unread.append((source, where))
    _read_all(drift, unread, known, clock, on_progress)
    return drift


def _packed(path: str | None) -> bytes:
    """The stat of a file as it is recorded; of what is no file, one that never is."""
    if path is None:
        return b""
    try:
        return pack_stat(disk.stat_values(os.lstat(path)))
    except OSError:
        return b""


def _stat(path: str, source: str, reachable: Reachable) -> tuple[Seen, str | None]:
    """The stat of an original, and where it is to be read; a link is followed inside."""
    where: str | None = path
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            where = reachable.followed(source)
            if where is None:
                return Seen(), None
            status = os.lstat(where)
    except (FileNotFoundError, NotADirectoryError):
        return Seen(), where
    except OSError as error:
        disk.pass_limits(error)
        return Seen(reason=error.strerror or str(error)), where
    if not stat.S_ISREG(status.st_mode):
        return Seen(), where
    return Seen(values=disk.stat_values(status)), where


def _read_all(
    drift: SourceDrift,
    unread: Sequence[tuple[str, str]],
    known: Mapping[str, tuple[str, bytes]],
    clock: disk.FileSystemClock | None,
    on_progress: OnProgress,
) -> None:
    horizon_ns = time.time_ns() + HORIZON_NS
    stamps = [max(drift.seen[source].values[1:3]) for source, _ in unread]
    latest = max(filter(horizon_ns.__gt__, stamps), default=0)
    read_from_ns = clock.wait_past(latest) if clock is not None and unread else 0
    for number, (source, path) in enumerate(unread):
        if number % BATCH == 0:
            on_progress(Progress(stage="reading originals", done=number, total=len(unread)))
        seen = drift.seen[source] = read(path)
        entry = stat_entry(seen.values, read_from_ns)
        if seen.found and known.get(source) != (seen.found, entry):
            drift.read[source] = entry


def read(path: str) -> Seen:
    """Read one original, no link followed in its last step."""
    from filestore.config.layout import MAX_SOURCE_BYTES

    folder, name = os.path.split(path)
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if status.st_size > MAX_SOURCE_BYTES:
                # Too large to have been added, so it is not what was.
                return Seen(f"{status.st_size:,} bytes", disk.stat_values(status))
            data, status = disk.read_at(handle, name)
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return Seen()
    except OSError as error:
        disk.pass_limits(error)
        return Seen(reason=error.strerror or str(error))
    return Seen(source_hash(data), disk.stat_values(status))


def found_now(catalog: Catalog, reachable: Reachable, source: str) -> str | None:
    """The hash of one original as it is now, "" for no file; None where that is unknown.

    Args:
        catalog: Inside a snapshot or a transaction.
        reachable: Where the store may look.
        source: As recorded.
    """
    path = reachable.path(source)
    seen, where = (Seen(), None) if path is None else _stat(path, source, reachable)
    if where is None or seen.reason:
        return None
    if not seen.values[4]:
        return ""
    digest, packed = catalog.source_stats().get(source, ("", b""))
    if packed == pack_stat(seen.values):
        return digest
    again = read(where)
    return None if again.reason else again.found


def misremembered(catalog: Catalog, reachable: Reachable, drift: SourceDrift) -> Iterator[str]:
    """Originals that do not have the hash that is recorded for their stat; reads those that differ.

    Args:
        catalog: Inside a snapshot.
        reachable: Where the store may look.
        drift: What a look at them found.
    """
    known = catalog.source_stats()
    for source, seen in drift.seen.items():
        path = reachable.followed(source)
        if path is None or known.get(source) != (seen.found, pack_stat(seen.values)):
            continue
        again = read(path)
        if again.values == seen.values and again.found != seen.found:
            yield source


def entries(drift: SourceDrift) -> Iterator[tuple[str, str, bytes]]:
    """Source, hash and stat entry of what is to be recorded."""
    return ((source, drift.seen[source].found, entry) for source, entry in drift.read.items())


def findings(catalog: Catalog, drift: SourceDrift) -> list[Finding]:
    """What differs from the records: changed, gone or unreadable originals."""
    waiting = _waiting(catalog, drift)
    differing: dict[str, list[tuple[str, str]]] = {}
    for _, resource, source, digest in drift.documents:
        if source in drift.seen and drift.seen[source].found != digest:
            differing.setdefault(source, []).append((resource, digest))
    return [
        _finding(source, drift.seen[source], made, waiting) for source, made in differing.items()
    ]


def _finding(
    source: str, seen: Seen, differing: Sequence[tuple[str, str]], waiting: set[str]
) -> Finding:
    resources = ", ".join(dict.fromkeys(name for name, _ in differing))
    if seen.reason:
        detail = f"the original of {resources}: {seen.reason}"
        return Finding(code="unreadable", path=StorePath(source), detail=detail)
    if not seen.found:
        detail = f"no file is there; {resources} was made from it"
        return Finding(code="source-missing", path=StorePath(source), detail=detail)
    detail = f"{resources}: expected {_short(differing[0][1])}, found {_short(seen.found)}"
    if any(name in waiting for name, _ in differing):
        detail += "; a conflict with a hand edit waits for a choice"
    return Finding(code="source-modified", path=StorePath(source), detail=detail)


def _waiting(catalog: Catalog, drift: SourceDrift) -> set[str]:
    """Resources in which a conflict with the originals as they are now is open."""
    now = {source: seen.found for source, seen in drift.seen.items()}
    found = [one for one in catalog.conflicts() if now.get(one.source) == one.document]
    rows = catalog.files([conflict.path for conflict in found])
    return {row.resource for row in rows.values()}


def _short(digest: str) -> str:
    is_hash = digest.startswith(ORIGIN_PREFIX)
    return digest.removeprefix(ORIGIN_PREFIX)[:12] if is_hash else digest


# Files that no record names


def untracked(
    places: Places, catalog: Catalog, reachable: Reachable, patterns: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Documents beside the recorded ones, by name alone: nothing of them is read.

    Args:
        places: Where the store lies.
        catalog: Inside a snapshot.
        reachable: Where the store may look.
        patterns: Ignore rules of the store.

    Returns:
        Reference and resource ("" for none) of each; and why a folder was not looked through.
    """
    from filestore.core.errors import FilestoreError
    from filestore.extract.folder import documents

    recorded = {source for _, _, source, _ in catalog.documents()}
    made = (places.root, places.chunked, places.sidecar, places.undo)
    own = {os.path.realpath(folder) for folder in made}
    found: list[tuple[str, str]] = []
    problems: list[str] = []
    for source, resource in sorted(_folders(places, catalog).items()):
        path = reachable.followed(source)
        if path is None or not os.path.isdir(path):
            continue
        try:
            # The walk follows no link and starts where none is left: its paths are real ones.
            listing = documents(path, leave_out=own.__contains__, patterns=patterns)
        except (OSError, FilestoreError) as error:
            problems.append(f"new files in {source}: {error}")
            continue
        references = (f"{source}/{name}" for name in listing.paths)
        found += [(one, resource) for one in references if one not in recorded]
    return list(dict(found).items()), problems


def _folders(places: Places, catalog: Catalog) -> dict[str, str]:
    """The folders that are sources, and that of the copies, to the resource they belong to."""
    folders = {
        source: resource
        for resource, source, data in queries.records(catalog)
        if source.partition("/")[0] != COPIES and _kind(data) == "folder"
    }
    if os.path.isdir(places.source) and not os.path.islink(places.source):
        folders[COPIES] = ""
    return folders


def _kind(data: bytes) -> Any:
    try:
        return orjson.loads(data).get("kind")
    except (ValueError, AttributeError):
        # A full verification tells that it is no record.
        return None


def untracked_findings(found: Iterable[tuple[str, str]]) -> list[Finding]:
    """What `untracked` found, as findings."""
    return [
        Finding(
            code="source-untracked",
            path=StorePath(source),
            detail=f"it lies in the folder that {resource} was made from, and was never added"
            if resource
            else "no record names it",
        )
        for source, resource in found
    ]


def with_places(
    found: Sequence[Finding],
    new: Sequence[tuple[str, str]],
    catalog: Catalog,
    reachable: Reachable,
) -> list[Finding]:
    """Say of missing originals where they went, if a new file beside them has their content.

    Only new files of a missing one's size are read, and not many.
    """
    missing = {finding.path for finding in found if finding.code == "source-missing"}
    if not missing or not new:
        return list(found)
    stats = catalog.source_stats()
    digests = {source: digest for _, _, source, digest in catalog.documents() if source in missing}
    sizes = {unpack_stat(stats[source][1])[0] for source in missing if source in stats}
    went = {
        seen: reference
        for reference, path in _of_sizes(new, sizes, reachable)
        if (seen := read(path).found)
    }
    return [_led(finding, went.get(digests.get(finding.path, ""), "")) for finding in found]


def _of_sizes(
    new: Sequence[tuple[str, str]], sizes: set[int], reachable: Reachable
) -> Iterator[tuple[str, str]]:
    left = MAX_CANDIDATES
    for reference, _ in new:
        path = reachable.path(reference)
        if path is None or not left:
            continue
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_size in sizes:
            left -= 1
            yield reference, path


def _led(finding: Finding, place: str) -> Finding:
    if finding.code != "source-missing" or not place:
        return finding
    detail = f"{finding.detail}; its content is now in {place}"
    return Finding(code=finding.code, path=finding.path, detail=detail, other=StorePath(place))


# Originals of copies


def originals(catalog: Catalog) -> dict[str, str]:
    """Where the originals of copied documents lie, by the reference of the copy."""
    known = catalog.originals()
    found: dict[str, str] = {}
    if not known:
        return found
    for _, _, source, _ in catalog.documents():
        base = source
        while base and base not in known:
            base = base.rpartition("/")[0]
        if base:
            found[source] = known[base] + source[len(base) :]
    return found


def originals_findings(catalog: Catalog) -> list[Finding]:
    """Copies whose original elsewhere has changed since: the user named that path on this machine.

    An original that is gone is no finding: the copy is kept for that.
    """
    digests = {source: digest for _, _, source, digest in catalog.documents()}
    found = []
    for source, path in originals(catalog).items():
        seen = read(path)
        if seen.found and seen.found != digests[source]:
            detail = (
                f"its original {path} changed: expected {_short(digests[source])},"
                f" found {_short(seen.found)}"
            )
            found.append(Finding(code="source-modified", path=StorePath(source), detail=detail))
    return found
