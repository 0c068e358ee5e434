"""What differs between originals and the records of what was made from them, as findings.

Changes nothing; how an original is looked at is `sidecar/originals`.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from filestore.catalog import Catalog, queries
from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.hashing import ORIGIN_PREFIX
from filestore.core.paths import StorePath
from filestore.fs.scan import unpack_stat
from filestore.sidecar.originals import Seen, SourceDrift, read
from filestore.sidecar.reachable import Reachable

COPIES: Final = "source"
"""Where copies of originals from elsewhere lie, below the store root."""
MAX_CANDIDATES: Final = 100
"""So many new files of a missing one's size are read to see where it went."""


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
