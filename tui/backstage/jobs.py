"""What the child processes do: every job by name. Knows no Textual.

A job is called with the store, its arguments by name, and `tell` for what it says on the way;
what it returns crosses back to the screen's process.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from filestore import Answer, Filters, Finding, Progress, Status, Store, sources_of

if TYPE_CHECKING:
    from filestore import (
        AddReport,
        Checked,
        Histogram,
        Neighbour,
        Plan,
        Policy,
        RepairReport,
        SyncReport,
        Turned,
        VectorMap,
    )

Level = Literal["fast", "full", "deep"]
Mode = Literal["hybrid", "vector", "keyword"]


class Tell(Protocol):
    """What a job says on the way. Telling costs next to nothing: most of it is put together."""

    def progress(self, progress: Progress) -> None:
        """Say how far it is."""

    def found(self, findings: Sequence[Finding]) -> None:
        """Say what was found."""


def _search(
    store: Store, tell: Tell, *, query: str, mode: Mode, count: int, source: str | None = None
) -> Answer:
    return store.search(query, mode=mode, count=count, filters=Filters(source=source))


def _neighbours(
    store: Store, tell: Tell, *, path: str, count: int, now: bool = False
) -> "tuple[Neighbour, ...]":
    return store.explorer().neighbours(path, count, now=now)


def _vector_map(store: Store, tell: Tell, *, most: int) -> "VectorMap":
    return store.explorer().vector_map(most)


def _sizes(store: Store, tell: Tell, *, resource: str | None = None) -> "Histogram":
    return store.explorer().sizes(resource)


def _similarities(store: Store, tell: Tell, *, most: int) -> "Histogram":
    return store.explorer().similarities(most)


def _status(store: Store, tell: Tell) -> Status:
    return store.status()


def _verify(store: Store, tell: Tell, *, level: Level) -> "Checked":
    return store.verify(level=level, on_progress=tell.progress, on_found=tell.found)


def _sync(
    store: Store, tell: Tell, *, full: bool = False, forget_missing: bool = False
) -> "SyncReport":
    return store.sync(full=full, forget_missing=forget_missing, on_progress=tell.progress)


def _plan(
    store: Store,
    tell: Tell,
    *,
    policy: "Policy",
    level: Level | None = None,
    findings: Sequence[Finding] | None = None,
) -> "Plan":
    from filestore import level_for, selected

    thorough = level or level_for(policy.only)
    plan = store.plan_repair(policy, level=thorough, on_progress=tell.progress)
    return plan if findings is None else selected(plan, findings)


def _apply(store: Store, tell: Tell, *, plan: "Plan") -> "RepairReport":
    return store.apply_repair(plan, on_progress=tell.progress)


def _undo(store: Store, tell: Tell, *, identifier: str | None = None) -> "Turned | None":
    return store.undo(identifier, on_progress=tell.progress)


def _redo(store: Store, tell: Tell, *, identifier: str | None = None) -> "Turned | None":
    return store.redo(identifier, on_progress=tell.progress)


def _add(store: Store, tell: Tell, *, paths: Sequence[str]) -> "AddReport":
    patterns = store.settings.ignore
    sources = [
        source
        for path in paths
        for source in sources_of(path, into=None, each=False, patterns=patterns)
    ]
    return store.add(sources, on_progress=tell.progress)


JOBS: Final[dict[str, Callable[..., Any]]] = {
    "search": _search,
    "neighbours": _neighbours,
    "vector_map": _vector_map,
    "sizes": _sizes,
    "similarities": _similarities,
    "status": _status,
    "verify": _verify,
    "sync": _sync,
    "plan": _plan,
    "apply": _apply,
    "undo": _undo,
    "redo": _redo,
    "add": _add,
}
"""Questions:
- ``search(query, mode, count, source)``: `Answer`; source a glob or None
- ``neighbours(path, count, now)``: tuple of `Neighbour`
- ``vector_map(most)``: `VectorMap`; ``sizes(resource)``, ``similarities(most)``: `Histogram`
Work:
- ``status()``: `Status`; ``verify(level)``: `Checked`, telling findings and progress
- ``sync(full, forget_missing)``: `SyncReport`
- ``plan(policy, level, findings)``: `Plan`, only what mends these findings; None for all; without
  a level as thorough as the codes of the policy need
- ``apply(plan)``: `RepairReport`
- ``undo(identifier)``, ``redo(identifier)``: `Turned` or None
- ``add(paths)``: `AddReport`
"""
