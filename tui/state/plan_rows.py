"""What a plan is asked for, and the plan as rows: steps by kind with a box each, then what is left.

Pure. One rule: a step that writes files is chosen only on request, and one that removes files, or
forgets what is kept of a deleted one, only by a person, step by step.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore import Finding, Plan, Policy, Step
from filestore.browse import Left, shown_path, without
from tui.formatting.lines import Line, count
from tui.formatting.plans import is_removal, kind_line, left_heading, left_line, step_line
from tui.state.rows import TreeRows, Way

StepKey = tuple[str, str, str]


class Request(Struct, frozen=True, kw_only=True):
    """What a plan is asked for."""

    findings: tuple[Finding, ...] | None
    """Those to be repaired; None for all."""
    policy: Policy

    @property
    def is_whole(self) -> bool:
        """Whether everything that is found is to be repaired."""
        return self.findings is None and self.policy == Policy(truth=self.policy.truth)

    @property
    def about(self) -> str:
        """What it is for, in a few words."""
        named = (*self.policy.ours, *self.policy.theirs, *self.policy.remove)
        if named:
            return shown_path(named[0])
        if self.findings is None:
            return "everything that was found"
        return count(len(self.findings), "finding")

    def with_truth(self, truth: bool) -> "Request":
        """The same, with or without leave to write files."""
        return replace(self, policy=replace(self.policy, truth=truth))

    def is_like(self, other: "Request") -> bool:
        """Whether it is for the same, whatever may be written by it."""
        return self.with_truth(False) == other.with_truth(False)


def request_for(findings: Sequence[Finding] | None, policy: Policy | None) -> Request:
    """What to ask for.

    Args:
        findings: To be repaired; None for all.
        policy: What is wanted; None for what the findings' codes need, without leave to write.
    """
    chosen = None if findings is None else tuple(findings)
    if policy is None:
        # Some codes are repaired only where they are named.
        policy = Policy(only=frozenset(finding.code for finding in chosen or ()))
    return Request(findings=chosen, policy=policy)


def begin_with(plan: Plan, findings: Iterable[Finding]) -> set[StepKey]:
    """The steps that are chosen at first.

    Args:
        plan: The plan.
        findings: The marked ones; what repairs them may write files.
    """
    wanted = {(finding.code, finding.path) for finding in findings}
    return {
        step.key
        for step in plan.steps
        if not (is_removal(step) or (step.kind == "forget" and "missing" in step.codes))
        and (plan.allows(step) or any((code, step.path) in wanted for code in step.codes))
    }


class ChosenSteps(Struct, frozen=True, kw_only=True):
    """The part of a plan that is chosen."""

    plan: Plan
    """With these steps alone, and leave for them."""
    codes: tuple[str, ...]
    paths: tuple[str, ...]
    """Of files; the parts of the sidecar have none that a command takes."""

    @property
    def truth(self) -> bool:
        """Whether files of the tree are written."""
        return any(step.truth for step in self.plan.steps)


def chosen_of(plan: Plan, keys: Collection[StepKey]) -> ChosenSteps:
    """What would be applied."""
    others = {step.key for step in plan.steps}.difference(keys)
    part = without(plan, others)
    if any(step.truth for step in part.steps):
        part = replace(part, policy=replace(part.policy, truth=True))
    return ChosenSteps(
        plan=part,
        codes=tuple(dict.fromkeys(code for step in part.steps for code in step.codes)),
        paths=tuple(dict.fromkeys(step.path for step in part.steps if not step.part)),
    )


def as_before(
    begin: set[StepKey], steps: Iterable[Step], *, before: Collection[StepKey], begun: set[StepKey]
) -> set[StepKey]:
    """The chosen steps of a plan that was made again: what a person chose or left stays so.

    Args:
        begin: What would be chosen at first.
        steps: Of the new plan.
        before: What was chosen of the old one.
        begun: What was chosen at first of the old one.
    """
    added, left = set(before) - begun, begun.difference(before)
    return (begin - left) | (added & {step.key for step in steps})


OPEN_UP_TO: Final = 200
"""With more rows than this, every group begins closed."""
LEFT: Final = "left"


class PlanRows(TreeRows):
    """The steps of a plan below their kinds, then what is left for a person below `LEFT`.

    The key of a step is its own, of what is left its number.
    """

    def __init__(self, plan: Plan, chosen: Iterable[StepKey]) -> None:
        self.plan = plan
        self.chosen = set(chosen)
        """Keys of the steps to apply; a list may use this set as its marks."""
        self._steps = {step.key: step for step in plan.steps}
        kinds: dict[str, list[StepKey]] = {}
        for key, step in self._steps.items():
            kinds.setdefault(step.kind, []).append(key)
        self._keys = {kind: tuple(keys) for kind, keys in kinds.items()}
        self._numbers = {key: n for n, key in enumerate(chain(*kinds.values()), start=1)}
        self._chosen_of: dict[str, int] = {}
        self.recount()
        below: dict[Any, Sequence[Any]] = {**self._keys, LEFT: tuple(range(len(plan.left)))}
        super().__init__(self._line, lambda way: below[way[0]], lambda _: None, lambda _: None)
        self.replace([*self._keys, *([LEFT] if plan.left else [])])
        if len(plan.steps) + len(plan.left) <= OPEN_UP_TO:
            self.open_each((name,) for name in self.tops)

    def _line(self, way: Way) -> Line:
        found = self.at(way)
        if isinstance(found, Left):
            return left_line(found)
        if found is not None:
            return step_line(found, is_chosen=found.key in self.chosen)
        kind, is_open = way[0], self.is_open(way)
        if kind == LEFT:
            return left_heading(len(self.plan.left), is_open=is_open)
        total = len(self._keys[kind])
        return kind_line(kind, chosen=self._chosen_of[kind], total=total, is_open=is_open)

    def at(self, way: Hashable) -> Step | Left | None:
        """The step or the finding of a row; None for a heading, and for what is none of these."""
        match way:
            case (kind, int(number)) if kind == LEFT:
                return self.plan.left[number]
            case (_, tuple(key)):
                return self._steps.get(key)
        return None

    def first_step(self) -> Way | None:
        """Of the first step that is shown; of the first row where none is."""
        return self.key(min(len(self), 2) - 1) if len(self) else None

    def number_of(self, key: StepKey) -> int:
        """Which step of the plan it is, from 1, in the order in which they are applied."""
        return self._numbers[key]

    def steps_of(self, kind: str) -> Sequence[Step]:
        """All steps of a kind."""
        return [self._steps[key] for key in self._keys.get(kind, ())]

    def chosen_of(self, kind: str) -> int:
        """How many steps of a kind are chosen."""
        return self._chosen_of.get(kind, 0)

    def chosen_with(self, way: Hashable) -> Collection[StepKey]:
        """The steps that are chosen, or left, with a row: of a kind all, of what is left none."""
        step = self.at(way)
        if isinstance(step, Step):
            return (step.key,)
        return self._keys.get(way[0], ()) if isinstance(way, tuple) and len(way) == 1 else ()

    def recount_by(self, added: Iterable[StepKey], removed: Iterable[StepKey]) -> None:
        """Count on, after others chose these steps and left those."""
        for keys, by in ((added, 1), (removed, -1)):
            for kind, _, _ in keys:
                self._chosen_of[kind] += by

    def recount(self) -> None:
        """Count again, after others changed what is chosen."""
        self._chosen_of = {
            kind: len(self.chosen.intersection(keys)) for kind, keys in self._keys.items()
        }


def prepared(
    plan: Plan, request: Request, before: PlanRows | None, begun: set[StepKey]
) -> tuple[PlanRows, set[StepKey]]:
    """The rows of a new plan, and the steps that it begins with.

    Args:
        plan: The plan.
        request: What it was asked for.
        before: Those of an earlier plan for the same; None for none.
        begun: What that one began with.
    """
    begin = begin_with(plan, request.findings or ())
    if before is None:
        return PlanRows(plan, begin), begin
    chosen = as_before(begin, plan.steps, before=before.chosen, begun=begun)
    rows = PlanRows(plan, chosen)
    for kind in before.tops:
        if before.is_open((kind,)):
            rows.open((kind,))
        else:
            rows.close((kind,))
    return rows, begin
