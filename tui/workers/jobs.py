"""What the child processes do: every job by name. Knows no Textual.

A job is called with the store, a reporter of progress and findings, and its arguments by name;
what it returns is sent back to the screen's process.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from filestore import Finding
from filestore.browse import InspectedStore

if TYPE_CHECKING:
    from filestore import AddReport, Plan, Policy


def _reporting(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the store that reports its progress."""
    return lambda store, reporter, **given: method(store, **given, on_progress=reporter.progress)


def _plan(
    store: InspectedStore,
    reporter: Any,
    *,
    policy: "Policy",
    findings: Sequence[Finding] | None = None,
) -> "Plan":
    from filestore.browse import selected

    plan = store.plan(policy, on_progress=reporter.progress)
    return plan if findings is None else selected(plan, findings)


def _add(store: InspectedStore, reporter: Any, *, paths: Sequence[str]) -> "AddReport":
    report = store.add(*paths, on_progress=reporter.progress)
    for _, error in report.unusable:
        raise error
    return report


def _enriching(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same of one that takes resources first."""

    def do(store: InspectedStore, reporter: Any, *, resources: Sequence[str], **given: Any) -> Any:
        return method(store, *resources, **given, on_progress=reporter.progress)

    return do


JOBS: Final[dict[str, Callable[..., Any]]] = {
    "search": lambda store, _, **given: store.search(**given),
    "neighbours": lambda store, _, **given: store.explorer.neighbours(**given),
    "links": lambda store, _, **given: store.links(**given),
    "vector_map": lambda store, _, **given: store.explorer.vector_map(**given),
    "plan_enrich": _enriching(InspectedStore.plan_enrich),
    "status": lambda store, _: store.status(),
    "verify": lambda store, reporter, **given: store.verify(
        **given, on_progress=reporter.progress, on_found=reporter.found
    ),
    "sync": _reporting(InspectedStore.sync),
    "sync_but": _reporting(InspectedStore.sync_but),
    "plan": _plan,
    "apply": _reporting(InspectedStore.apply),
    "undo": _reporting(InspectedStore.undo),
    "redo": _reporting(InspectedStore.redo),
    "add": _add,
    "enrich": _enriching(InspectedStore.enrich),
}
"""Questions:
- ``search(query, k, mode, source, syntax, kind)``: `Answer`
- ``neighbours(path, count, now, part)``: tuple of `Neighbour`
- ``links(path)``: `Links`
- ``vector_map(most)``: `VectorMap`
- ``plan_enrich(resources, questions, summaries, refresh)``: `EnrichPlan`
Work:
- ``status()``: `Status`; ``verify(level)``: `Checked`, reporting findings and progress
- ``sync(full, forget_missing)``, ``sync_but(forget)``: `SyncReport`
- ``plan(policy, findings)``: `Plan`, only of what repairs these findings; None for all
- ``apply(plan)``: `RepairReport`
- ``undo(identifier)``, ``redo(identifier)``: `UndoResult` or None
- ``add(paths)``: `AddReport`
- ``enrich(resources, questions, summaries, refresh)``: `EnrichReport`
"""
