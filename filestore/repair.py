"""Repair: what a person wants done, and the plan of it; a plan that was kept, held against today.

Changes nothing: `applying` does. What reads stands in `gathering`, what decides in `planning`.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from filestore import drift, inspecting, planning, worktree
from filestore.catalog import Catalog
from filestore.errors import FilestoreError, RefusedError, UsageError
from filestore.findings import CODES, Finding
from filestore.gathering import Gathering
from filestore.parts import Parts
from filestore.places import Places
from filestore.plans import ABSENT, CHANGED, Plan, Policy, Step, is_below, moved_on, of_steps
from filestore.progress import OnProgress, ignore
from filestore.safe_text import shown_path
from filestore.saved_plans import OtherPlanError, PlanOutsideError, Saved
from filestore.settings import Settings

if TYPE_CHECKING:
    from filestore.subject import Level, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair did."""

    plan: Plan
    applied: tuple[Step, ...]
    skipped: tuple[tuple[Step, str], ...]
    """With the reason."""
    remaining: tuple[Finding, ...]
    """What a verification found afterwards."""
    undo: tuple[str, ...]
    """Under which names the originals of truth files are kept."""
    embedded: int = 0
    reused: int = 0
    problem: FilestoreError | None = None
    """Why texts were left without embedding."""


_DAMAGE: Final = frozenset(
    {
        "bit-rot",
        "catalog-damaged",
        "conflict-markers",
        "embeddings-damaged",
        "fulltext-damaged",
        "fulltext-mismatch",
        "index-damaged",
        "map-mismatch",
        "vector-invalid",
        "vector-mismatch",
        "vector-orphan",
    }
)
"""What a full verification alone finds, at least in some of its forms."""


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
    paths: Sequence[str] = (),
    ours: Sequence[str] = (),
    theirs: Sequence[str] = (),
    remove: Sequence[str] = (),
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
    _refuse_two_choices(places, ours=ours, theirs=theirs, remove=remove)
    return Policy(
        truth=truth,
        only=frozenset(only),
        paths=tuple(named(places, path) for path in paths),
        ours=tuple(named(places, path) for path in ours),
        theirs=tuple(named(places, path) for path in theirs),
        remove=tuple(named(places, path) for path in remove),
    )


def _refuse_two_choices(places: Places, **choices: Sequence[str]) -> None:
    chosen: dict[str, str] = {}
    for word, paths in choices.items():
        for path in {named(places, path) for path in paths}:
            if path in chosen:
                raise UsageError(
                    f"{path}: either --{chosen[path]} or --{word}", remedy="choose one of them"
                )
            chosen[path] = word


def level_for(only: Iterable[str]) -> "Level":
    """How thoroughly to look for some codes: stats alone do not tell of damage."""
    named_codes = set(only)
    if "model-drift" in named_codes:
        return "deep"
    return "full" if named_codes & _DAMAGE else "fast"


def named(places: Places, path: str) -> str:
    """A path that a person gave, relative to the store root; the file need not be there."""
    inside_chunked = os.path.join(places.chunked, path)
    candidates = [os.path.join(places.root, path), inside_chunked, os.path.abspath(path)]
    for candidate in candidates:
        if os.path.lexists(candidate):
            return os.path.relpath(candidate, places.root)
    absolute = os.path.normpath(candidates[2])
    if absolute.startswith(places.chunked + os.sep):
        return os.path.relpath(absolute, places.root)
    normal = os.path.normpath(path)
    is_rooted = normal.partition("/")[0] in (drift.CHUNKED, "source", "..", ".sidecar")
    return normal if is_rooted else os.path.join(drift.CHUNKED, normal)


def plan(
    parts: Parts, policy: Policy, *, level: "Level" = "fast", on_progress: OnProgress = ignore
) -> Plan:
    """Verify, and say what a repair would do; changes nothing.

    Raises:
        ConflictMovedOnError: A choice is about other texts than there are now.
        NoCopyError: A file is to go, and nothing else has its text.
        UnknownRepairPathError: A path of the policy is none of the store.
    """
    made = _plan(parts, policy, level, on_progress, check=_check_paths)
    for one in made.left:
        if one.finding.code == "duplicate":
            raise NoCopyError(
                f"{one.finding.path} is not removed: {one.reason}",
                remedy="'filestore verify' lists which files have a text in common, as duplicate",
            )
    return made


def _plan(
    parts: Parts,
    policy: Policy,
    level: "Level",
    on_progress: OnProgress,
    *,
    check: Callable[[Places, Catalog, Policy, Sequence[Finding]], None],
) -> Plan:
    checked = inspecting.verified(parts, level, None, on_progress)
    found = [one for one in checked.findings if not _is_accepted(one, parts.settings, policy)]
    is_sound = not {"catalog-missing", "catalog-damaged"} & {finding.code for finding in found}
    with parts.looking(sound=is_sound) as (subject, has_catalog):
        check(parts.places, subject.catalog, policy, found)
        if policy.truth and policy.paths and not policy.only:
            policy = replace(policy, lost=_lost(subject, policy, found))
        gathering = Gathering(subject, policy, has_catalog=has_catalog, on_progress=on_progress)
        facts = gathering.facts(found, checked.unsound)
        made = planning.make(found, facts, policy, level=level)
        return replace(made, findings=checked.findings, unsound=checked.unsound)


def _is_accepted(finding: Finding, settings: Settings, policy: Policy) -> bool:
    """Whether a person lives with a finding, and did not name it now."""
    accepted = finding.path in settings.accepted.get(finding.code, ())
    is_named = bool(policy.only or policy.paths or policy.ours or policy.theirs or policy.remove)
    return accepted and not finding.safe and not is_named


def _check_paths(
    places: Places, catalog: Catalog, policy: Policy, findings: Sequence[Finding]
) -> None:
    conflicts = {drift.root_path(one.path): one for one in catalog.conflicts()}
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
                f"{path}: no new text of a source waits for a choice there, nor a conflict of git",
                remedy="'filestore verify' lists what does: ingest-conflict, conflict-markers",
            )
    for path in policy.remove:
        if not is_below(path, drift.CHUNKED) or not os.path.lexists(
            os.path.join(places.root, path)
        ):
            raise UnknownRepairPathError(
                f"{path}: there is no such chunk file",
                remedy="'filestore verify' lists which files have a text in common, as duplicate",
            )
    known = {*catalog.forgotten_paths()}
    for path in policy.paths:
        below = _below(path)
        if (
            os.path.lexists(os.path.join(places.root, path))
            or any(is_below(finding.path, path) for finding in findings)
            or any(is_below(one, below) for one in known)
            or worktree.blob(places.root, path) is not None
        ):
            continue
        raise UnknownRepairPathError(
            f"{path}: nothing of the store has this path, nor had it",
            remedy="'filestore verify' prints the paths of what it finds",
        )


def _lost(subject: "Subject", policy: Policy, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Files that are gone and forgotten, where the policy names them."""
    forgotten = [drift.root_path(path) for path in subject.catalog.forgotten_paths()]
    told = {finding.path for finding in findings}
    found: dict[str, None] = {}
    for chosen in policy.paths:
        if any(is_below(path, chosen) for path in told):
            continue
        found |= dict.fromkeys(path for path in forgotten if is_below(path, chosen))
        if chosen.startswith(f"{drift.CHUNKED}/") and chosen.endswith((".md", ".json")):
            found[chosen] = None
    return tuple(
        path for path in found if not os.path.lexists(os.path.join(subject.places.root, path))
    )


def confirm(
    parts: Parts, saved: Saved, *, truth: bool, on_progress: OnProgress = ignore
) -> tuple[Plan, list[tuple[Step, str]]]:
    """What of a saved plan is planned now, too.

    Args:
        parts: The store's.
        saved: As it was read.
        truth: Whether files of the tree may be written now.
        on_progress: Told how far it is.

    Returns:
        The plan with these steps, and the others with the reason.

    Raises:
        OtherPlanError: It is another store's, or the catalog was made anew since.
        PlanOutsideError: A path of it leads through a link.
    """
    for path in {name for step in saved.steps if not step.part for name in step.seen}:
        _check_no_link(parts.places.root, path)
    fresh = _plan(parts, saved.policy, saved.level, on_progress, check=lambda *_: None)
    if fresh.identity != saved.identity:
        raise OtherPlanError(
            "the plan was made for another store, or for a catalog that was made anew since",
            remedy="plan again: filestore repair --plan --json",
        )
    by_key = {tuple(map(_shown, step.key)): step for step in fresh.steps}
    matched, others = [], []
    for step in saved.steps:
        now = by_key.get(step.key)
        reason = _difference(step, now, is_same_generation=saved.generation == fresh.generation)
        if now is None or reason:
            others.append((step, reason))
        else:
            matched.append(now)
    policy = replace(fresh.policy, truth=truth and fresh.policy.truth)
    return replace(of_steps(fresh, matched), policy=policy), others


def _difference(saved: Step, now: Step | None, *, is_same_generation: bool) -> str:
    """Why a saved step is not to be applied; "" where it is."""
    if now is None:
        return "nothing of this kind is to be done there any more"
    if saved.part:
        return "" if is_same_generation else "the store has a newer generation by now"
    states = {_shown(path): state for path, state in now.seen.items()}
    for path, state in saved.seen.items():
        if not state.holds(states.get(path, ABSENT)):
            return moved_on(path, state, states.get(path, ABSENT))
    if states.keys() != saved.seen.keys():
        return f"{saved.path}: {CHANGED}"
    return "" if saved.hash == now.hash else "what it would hold then is another text now"


def _check_no_link(root: str, path: str) -> None:
    """Refuse a path of which a folder is a link; whether the file itself is one is looked at."""
    folder = os.path.dirname(path)
    while folder and path.startswith(f"{drift.CHUNKED}/"):
        if os.path.islink(os.path.join(root, folder)):
            raise PlanOutsideError(
                f"the plan names {path}, which leads through a link",
                remedy="plan again: filestore repair --plan --json",
            )
        folder = os.path.dirname(folder)


def _shown(path: str) -> str:
    """A path as JSON holds it."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _below(path: str) -> str:
    return path.removeprefix(f"{drift.CHUNKED}/")
