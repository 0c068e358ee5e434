"""What differs between originals and the records of what was made from them, as findings.

What `status` says of them, and what only looking around finds. Changes nothing; how an original is
looked at is `sidecar/originals`.
"""

import os
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct, field

from filestore.catalog import Catalog, queries
from filestore.chunks.observation import RECORD
from filestore.config.layout import CATALOG, Places
from filestore.core.findings import Finding
from filestore.core.hashing import ORIGIN_PREFIX
from filestore.core.paths import StorePath, folder_of, is_below
from filestore.sidecar import originals
from filestore.sidecar.originals import COPIES, Reachable, SeenOriginal, SourceDrift, is_copy
from filestore.sidecar.originals import is_followed as is_followed_by
from filestore.sidecar.snapshot import Level, StoreSnapshot, VerificationReport
from filestore.verify.source_moves import where_to


def findings(catalog: Catalog, drift: SourceDrift) -> list[Finding]:
    """What differs from the records: changed, gone or unreadable originals."""
    # Resources in which a conflict with the originals as they are now is open.
    now = {source: seen.found for source, seen in drift.seen.items()}
    open_ones = [one for one in catalog.conflicts() if now.get(one.source) == one.document]
    rows = catalog.files([conflict.path for conflict in open_ones])
    waiting = {row.resource for row in rows.values()}
    differing: dict[str, list[tuple[str, str]]] = {}
    for _, resource, source, digest in drift.documents:
        if source in drift.seen and drift.seen[source].found != digest:
            differing.setdefault(source, []).append((resource, digest))
    found = [
        _finding(source, drift.seen[source], made, waiting) for source, made in differing.items()
    ]
    return found + [
        Finding(
            code="source-modified",
            path=StorePath(source),
            detail=f"a copy: its original {one.path} changed, found {_short(one.found)}",
        )
        for source, one in drift.elsewhere.items()
        if source not in differing
    ]


def _finding(
    source: str, seen: SeenOriginal, differing: Sequence[tuple[str, str]], waiting: set[str]
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


def _short(digest: str) -> str:
    is_hash = digest.startswith(ORIGIN_PREFIX)
    return digest.removeprefix(ORIGIN_PREFIX)[:12] if is_hash else digest


# Files that no record names


class NewFile(Struct, frozen=True, kw_only=True):
    """A document in the folder of recorded ones that no record names."""

    source: str
    """As a record would have it."""
    resource: str
    """Whose folder it lies in; "" for a file among the copies."""
    is_followed: bool
    """Whether the resource is to have it without being asked."""
    found_in: str = ""
    """The folder of which it is a child, where each child is a resource; `resource` is to be its
    name, and it may be a folder itself."""


class NewFiles(Struct):
    """What a look around recorded documents found."""

    files: list[NewFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    """The sources that are folders."""
    entered: list[str] = field(default_factory=list)
    """Every folder that was listed, absolute."""
    problems: list[tuple[Finding, bool]] = field(default_factory=list)
    """Why a folder was not looked through, and whether it is followed."""


def untracked(
    snapshot: StoreSnapshot,
    reachable: Reachable,
    *,
    followed_only: bool = False,
    resources: Container[str] | None = None,
) -> NewFiles:
    """Documents in the folders of recorded ones, by name alone: nothing of them is read.

    Args:
        snapshot: The store, its catalog inside a snapshot.
        reachable: Where the store may look.
        followed_only: Whether only folders are listed that their resource follows.
        resources: Whose folders are listed; None for all.
    """
    from filestore.core.errors import FilestoreError
    from filestore.extract.folder import documents

    places, catalog = snapshot.places, snapshot.catalog
    follow, patterns = snapshot.settings.follow, snapshot.settings.ignore
    recorded = {source for _, _, source, _ in catalog.documents()}
    made = (places.root, places.chunked, places.sidecar, places.undo)
    own = {os.path.realpath(folder) for folder in made}
    found, files = NewFiles(), dict[str, NewFile]()
    whole, parents = _folders(places, catalog), _parents(catalog)
    unread = _without_readable_record(snapshot) if parents else set()
    found.folders += sorted(whole.keys() - {COPIES})
    for source in sorted(whole.keys() | parents):
        resource = whole.get(source, "")
        is_followed = source != COPIES and is_followed_by(follow, reachable, resource, source)
        path = reachable.tree(source)
        if resources is not None and resource not in resources:
            continue
        if (followed_only and not is_followed) or path is None or not os.path.isdir(path):
            continue
        apart = parents[source] | unread if source not in whole else ()
        left_out = {*own, *(f"{path}/{name}" for name in apart)}
        try:
            # The walk follows no link and starts where none is left: its paths are real ones.
            listing = documents(path, leave_out=left_out.__contains__, patterns=patterns)
        except (OSError, FilestoreError) as error:
            detail = f"which files in it are new is not known: {error}"
            problem = Finding(code="unreadable", path=StorePath(source), detail=detail)
            found.problems.append((problem, is_followed))
            continue
        found.entered += [os.path.join(path, inner) for inner in listing.entered]
        for name in listing.paths:
            reference = f"{source}/{name}"
            if reference in recorded or not reachable.lists(f"{path}/{name}", path):
                continue
            new = NewFile(source=reference, resource=resource, is_followed=is_followed)
            if source not in whole:
                child = name.partition("/")[0]
                own_name = f"{source}/{child}"
                is_so = is_followed_by(follow, reachable, child, own_name)
                new = NewFile(source=own_name, resource=child, is_followed=is_so, found_in=source)
            files.setdefault(new.source, new)
    found.files = list(files.values())
    return found


def _without_readable_record(snapshot: StoreSnapshot) -> set[str]:
    """The names of resources whose record cannot be read: what is theirs is not known, nor new."""
    return {
        folder_of(path) or path.removesuffix(".json")
        for path, state, _ in snapshot.catalog.states()
        if state != RECORD and snapshot.layout.is_record(path.rpartition("/")[2])
    }


def _parents(catalog: Catalog) -> dict[str, set[str]]:
    """The folders each child of which is a resource, with the names of the resources."""
    found: dict[str, set[str]] = {}
    records = queries.records(catalog)
    folders = {
        one.rpartition("/")[0]
        for _, one, data in records
        # The record of a large folder takes long to parse.
        if b'"each"' in data and _value(data, "each") is True
    }
    for _, source, _ in records:
        folder, _, name = source.rpartition("/")
        if folder in folders:
            found.setdefault(folder, set()).add(name)
    return found


def _folders(places: Places, catalog: Catalog) -> dict[str, str]:
    """The folders that are sources, and that of the copies, to the resource they belong to."""
    folders = {
        source: resource
        for resource, source, data in queries.records(catalog)
        if not is_copy(source) and _value(data, "kind") == "folder"
    }
    if os.path.isdir(places.source) and not os.path.islink(places.source):
        folders[COPIES] = ""
    return folders


def _value(data: bytes, key: str) -> Any:
    try:
        return orjson.loads(data).get(key)
    except (ValueError, AttributeError):
        # A full verification tells that it is no record.
        return None


def untracked_findings(found: Iterable[NewFile]) -> list[Finding]:
    """What `untracked` found, as findings: notes where the folder is not followed."""
    return [
        Finding(
            code="source-untracked",
            path=StorePath(new.source),
            detail=f"each child of {new.found_in} was added, and this one is not in the store"
            if new.found_in
            else f"it lies in the folder of {new.resource}, and is not in the store"
            if new.resource
            else "no record names it",
            is_note=not new.is_followed,
        )
        for new in found
    ]


def with_moves(
    found: Sequence[Finding], new: NewFiles, catalog: Catalog, reachable: Reachable
) -> list[Finding]:
    """Findings of originals with those of new files, a renamed one being one of them."""
    missing = {finding.path for finding in found if finding.code == "source-missing"}
    documents = queries.documents_from(catalog, sorted(missing))
    went = where_to(
        {source: digest for _, _, source, digest in documents},
        [one.source for one in new.files],
        new.folders,
        catalog,
        reachable,
    )
    there = set(went.values())
    left = untracked_findings(one for one in new.files if one.source not in there)
    folders = moved_folders(
        went,
        missing,
        new.folders,
        documents=[source for _, _, source, _ in catalog.documents()],
        reachable=reachable,
    )
    whole = []
    for folder, place in folders.items():
        number = sum(is_below(one, folder) for one in went)
        these = "its document is" if number == 1 else f"its {number:,} documents are"
        whole.append(
            Finding(
                code="source-missing",
                path=StorePath(folder),
                detail=f"renamed: {these} now in {place}",
                other=StorePath(place),
            )
        )
    below = {one for folder in folders for one in went if is_below(one, folder)}
    parts = []
    for one in found:
        place = went.get(one.path, "") if one.code == "source-missing" else ""
        if place:
            made = one.detail.removeprefix("no file is there; ")
            detail = f"renamed: its content is now in {place}; {made}"
            one = Finding(code=one.code, path=one.path, detail=detail, other=StorePath(place))
        if one.path not in below:
            parts.append(one)
    return [*whole, *parts, *left]


def moved_folders(
    went: Mapping[str, str],
    missing: Collection[str],
    folders: Collection[str],
    *,
    documents: Iterable[str],
    reachable: Reachable,
) -> dict[str, str]:
    """The folders that went as a whole: they are gone, and all they had is in one other.

    Files that left a folder that is still there were moved one by one; it may have others.

    Args:
        went: Missing source to where it is now.
        missing: All that are missing.
        folders: The sources that are folders.
        documents: Every recorded document.
        reachable: Where the store may look.
    """
    found = {}
    every = list(documents)
    for folder in folders:
        below = [one for one in every if is_below(one, folder)]
        places = {went.get(one, "").removesuffix(one[len(folder) :]) for one in below}
        whole = all(
            one in missing and went.get(one, "").endswith(one[len(folder) :]) for one in below
        )
        if not (below and whole and len(places) == 1):
            continue
        place, path = places.pop(), reachable.tree(folder)
        taken = any(is_below(place, other) for other in folders)
        if path is not None and not taken and not os.path.lexists(path):
            found[folder] = place
    return found


def reachable(snapshot: StoreSnapshot) -> Reachable:
    """Where this store may look."""
    return Reachable(snapshot.places, snapshot.originals)


def check(
    snapshot: StoreSnapshot,
    level: Level | None,
    report: VerificationReport,
    drift: SourceDrift | None = None,
) -> None:
    """Report source documents that changed, went or came, and which were not looked at.

    Args:
        snapshot: The store.
        level: How thoroughly; None for `status`, which lists only folders that are followed.
        report: Added to.
        drift: What a look at the recorded ones found; None to look now.
    """
    catalog = snapshot.catalog
    if not catalog.has_rows("documents"):
        return
    where = reachable(snapshot)
    drift = drift or originals.look(catalog, where)
    new = untracked(snapshot, where, followed_only=level is None)
    report.add(with_moves(findings(catalog, drift), new, catalog, where))
    report.add(problem for problem, is_followed in new.problems if is_followed)
    if level is not None:
        report.checked.append("names and stats of originals")
    report.not_checked += not_looked_at(drift.outside, where)
    report.not_checked += [
        f"{problem.path}: {problem.detail}"
        for problem, is_followed in new.problems
        if not is_followed
    ]
    if level in ("full", "deep"):
        path = snapshot.places.part(CATALOG)
        wrong = originals.misremembered(catalog, where, drift)
        wrong_hash = "does not have the hash that is recorded for its stat"
        report.add(
            Finding(code="map-mismatch", path=path, detail=f"{source} {wrong_hash}")
            for source in wrong
        )


def not_looked_at(sources: Sequence[str], where: Reachable) -> list[str]:
    """In words: originals that a look left out, and what has them looked at."""
    closed = {source for source in sources if not where.is_document(source)}
    outside = [source for source in sources if source not in closed]
    reasons = (
        (outside, " outside the work tree: allow it with 'filestore trust'"),
        ([*closed], ", hidden or of no known format: add it yourself, 'filestore add PATH'"),
    )
    return [
        f"{f'{len(some):,} originals' if len(some) > 1 else f'the original {some[0]}'}{why}"
        for some, why in reasons
        if some
    ]
