"""What a person wants repaired, and the plan of it.

Changes nothing: `apply` does. `inspector` reads, `planner` decides.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore.catalog import Catalog
from filestore.config.layout import Places
from filestore.core.caller import absolute, working_folder
from filestore.core.codes import CODES, codes_where
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.findings import Finding
from filestore.core.paths import (
    ChunkPath,
    StorePath,
    is_below,
)
from filestore.core.progress import OnProgress, ignore
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.fs.path_names import typed_paths
from filestore.git import repository
from filestore.repair import planner
from filestore.repair.inspector import Inspector
from filestore.repair.plan import Plan, Policy, SkippedStep, Step
from filestore.sidecar.refusals import refuse_useless
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import LEVELS, SeenFiles
from filestore.verify import run

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import Level, StoreSnapshot


StrPath = str | os.PathLike[str]


class RepairReport(JsonObject, Struct, frozen=True, kw_only=True):
    """What a repair did."""

    KEYS = "plan applied skipped remaining undo embedded reused"

    plan: Plan
    """What was planned."""
    applied: tuple[Step, ...]
    """Steps that were applied."""
    skipped: tuple[tuple[Step, str], ...]
    """With the reason."""
    remaining: tuple[Finding, ...]
    """What a verification found afterwards."""
    not_checked: tuple[str, ...]
    """What that left out."""
    undo: str
    """What `Store.undo` takes back: the batch with the files as they were; "" for none."""
    embedded: int = 0
    """Texts that the model embedded."""
    reused: int = 0
    """Texts whose embedding came from the cache."""
    problem: FilestoreError | None = None
    """Why texts were left without embedding."""

    @property
    def json_skipped(self) -> list[SkippedStep]:
        """Steps that were not applied."""
        return [SkippedStep(**asdict(step), reason=reason) for step, reason in self.skipped]

    @property
    def json_undo(self) -> list[str]:
        """The name that `undo` takes, if files were written."""
        return [self.undo] if self.undo else []


class UnknownRepairPathError(FilestoreError, KeyError):
    """A path to be repaired is none of the store."""

    def __str__(self) -> str:
        return self.message


class NoCopyError(RefusedError):
    """A file is to be removed as a copy, and no other file that stays has its text."""


class ConflictMovedOnError(FilestoreError):
    """A choice was made in a conflict that is about other texts than there are now."""


def policy_of(
    places: Places,
    *,
    truth: bool = False,
    only: Sequence[str] = (),
    paths: Sequence[StrPath] = (),
    ours: Sequence[StrPath] = (),
    theirs: Sequence[StrPath] = (),
    remove: Sequence[StrPath] = (),
) -> Policy:
    """What a person wants, with paths as findings have them.

    Args:
        places: Where the store lies.
        truth: Whether files of the tree may be written.
        only: Codes; none for all.
        paths: Relative to the store root, to `chunked/` or to the working folder.
        ours: Files whose edit is kept, or that take our side of git's conflict.
        theirs: Files that take the new text of their source, or their side of git's conflict.
        remove: Files that go, because others have their text.

    Raises:
        UsageError: There is no such code, or a file is to be both.
    """
    unknown = sorted(set(only) - CODES.keys())
    if unknown:
        raise UsageError(
            f"no finding is called {unknown[0]!r}", remedy="'filestore verify' prints the codes"
        )
    chosen: dict[str, str] = {}
    choices = {
        word: tuple(named(places, path) for path in given)
        for word, given in (("ours", ours), ("theirs", theirs), ("remove", remove))
    }
    for word, of_word in choices.items():
        for path in of_word:
            if chosen.setdefault(path, word) != word:
                raise UsageError(
                    f"{path}: either --{chosen[path]} or --{word}", remedy="choose one of them"
                )
    return Policy(
        truth=truth,
        only=frozenset(only),
        paths=tuple(named(places, path) for path in paths),
        **choices,
    )


def level_for(only: Iterable[str]) -> "Level":
    """How thoroughly to look for some codes: stats alone do not tell of damage."""
    return max((CODES[code].level for code in only), key=LEVELS.index, default="fast")


def named(places: Places, path: StrPath) -> StorePath:
    """A path that a person gave, relative to the store root; the file need not be there."""
    starts = (places.root, places.chunked, working_folder())
    for place in map(absolute, typed_paths(os.fspath(path), starts)):
        if os.path.lexists(place):
            return StorePath(os.path.relpath(place, places.root))
    whole = absolute(os.fspath(path))
    if is_below(whole, places.chunked):
        return StorePath(os.path.relpath(whole, places.root))
    normal = os.path.normpath(path)
    tree = places.tree
    is_rooted = normal.partition("/")[0] in (tree.folder, "source", "..", tree.sidecar)
    return StorePath(normal) if is_rooted else tree.store_path(ChunkPath(normal))


def plan(
    parts: Parts, policy: Policy, *, level: "Level" = "fast", on_progress: OnProgress = ignore
) -> Plan:
    """Verify, and say what a repair would do; changes nothing.

    Raises:
        NotWrittenError: Documents that are indexed in place were to be written.
        ConflictMovedOnError: A choice is about other texts than there are now.
        NoCopyError: A file is to go, and nothing else has its text.
        UnknownRepairPathError: A path of the policy is none of the store.
    """
    if policy.ours or policy.theirs or policy.remove:
        refuse_useless(parts.places, "repair")
    seen = SeenFiles()
    checked = run.verified(parts, level, None, on_progress, seen=seen)
    # A person lives with what is accepted, unless they name it now.
    is_named = bool(policy.only or policy.paths or policy.ours or policy.theirs or policy.remove)
    accepted = parts.settings.accepted if not is_named else {}
    found = [
        one for one in checked.findings if one.safe or one.path not in accepted.get(one.code, ())
    ]
    unopened = codes_where(about="catalog", unopened=True)
    is_sound = not any(finding.code in unopened for finding in found)
    with parts.looking(sound=is_sound) as (snapshot, has_catalog):
        _check_paths(parts.places, snapshot.catalog, policy, found)
        if policy.truth and policy.paths and not policy.only:
            policy = replace(policy, lost=_lost(snapshot, policy, found))
        snapshot = replace(snapshot, seen=seen)
        inspector = Inspector(snapshot, policy, has_catalog=has_catalog, on_progress=on_progress)
        inspected = inspector.inspect(found, checked.unsound)
        made = planner.make(found, inspected, policy, level=level)
    for one in made.left:
        if one.finding.code == "duplicate":
            raise NoCopyError(
                f"{one.finding.path} is not removed: {one.reason}",
                remedy="'filestore verify' lists which files have a text in common, as duplicate",
            )
    return replace(made, findings=checked.findings, unsound=checked.unsound)


def _check_paths(
    places: Places, catalog: Catalog, policy: Policy, findings: Sequence[Finding]
) -> None:
    conflicts = {places.tree.store_path(one.path): one for one in catalog.conflicts()}
    waiting = {finding.path for finding in findings if finding.code == "ingest-conflict"}
    marked = {finding.path for finding in findings if finding.code == "conflict-markers"}
    for path in (*policy.ours, *policy.theirs):
        if path in marked:
            continue
        if path in conflicts and path not in waiting:
            source = shown_path(conflicts[path].source)
            raise ConflictMovedOnError(
                f"{path}: the file or its source {source} changed again since the conflict was"
                " found",
                remedy="'filestore add' the source first, then choose",
            )
        if path not in conflicts:
            raise UnknownRepairPathError(
                f"{path}: no pending ingest conflict or git conflict for this file",
                remedy="'filestore verify' lists what does: ingest-conflict, conflict-markers",
            )
    for path in policy.remove:
        if not places.tree.covers(path) or not os.path.lexists(os.path.join(places.root, path)):
            raise UnknownRepairPathError(
                f"{path}: there is no such chunk file",
                remedy="'filestore verify' lists which files have a text in common, as duplicate",
            )
    known = {*catalog.forgotten_paths(), *catalog.folders()}
    for path in policy.paths:
        below = places.tree.chunk_path(path)
        if (
            os.path.lexists(os.path.join(places.root, path))
            or any(is_below(finding.path, path) for finding in findings)
            or any(is_below(one, below) for one in known)
            or catalog.files([below])
            or repository.is_committed(places.root, path)
        ):
            continue
        raise UnknownRepairPathError(
            f"{path}: no such file in the store, now or earlier",
            remedy="'filestore verify' prints the paths of what it finds",
        )


def _lost(
    snapshot: "StoreSnapshot", policy: Policy, findings: Sequence[Finding]
) -> tuple[StorePath, ...]:
    """Files that are gone and forgotten, where the policy names them."""
    places = snapshot.places
    forgotten = [places.tree.store_path(path) for path in snapshot.catalog.forgotten_paths()]
    reported = {finding.path for finding in findings}
    found: dict[StorePath, None] = {}
    for chosen in policy.paths:
        if any(is_below(path, chosen) for path in reported):
            continue
        found |= dict.fromkeys(path for path in forgotten if is_below(path, chosen))
        if places.tree.holds(chosen) and chosen.endswith((".md", ".json")):
            found[chosen] = None
    return tuple(path for path in found if not os.path.lexists(os.path.join(places.root, path)))
