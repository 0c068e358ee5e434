"""What a plan is asked for, and the plan as rows: steps by kind with a box each, then what is left.

Pure. One rule: a step that writes files is chosen only on request, and one that removes files, or
forgets what is kept of a deleted one, only by a person, step by step.
"""

from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore import Finding, Plan, Policy, Step
from filestore.browse import Left, shown_path, without
from tui.formatting.lines import Line, count
from tui.formatting.plans import is_removal, kind_line, left_heading, left_line, step_line
from tui.state.rows import Rows

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


class Chosen(Struct, frozen=True, kw_only=True):
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


def chosen_of(plan: Plan, keys: Collection[StepKey]) -> Chosen:
    """What would be applied."""
    others = {step.key for step in plan.steps}.difference(keys)
    part = without(plan, others)
    if any(step.truth for step in part.steps):
        part = replace(part, policy=replace(part.policy, truth=True))
    return Chosen(
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


class Kind(Struct, frozen=True, kw_only=True):
    """The heading of all steps of one kind; `LEFT` is that of what no step repairs."""

    name: str


class Remainder(Struct, frozen=True, kw_only=True):
    """One of what no step repairs, by its number."""

    number: int


PlanKey = Kind | Remainder | StepKey


class PlanRows(Rows):
    """The steps of a plan below their kinds, then what is left for a person."""

    def __init__(self, plan: Plan, chosen: Iterable[StepKey]) -> None:
        self.plan = plan
        self.chosen = set(chosen)
        """Keys of the steps to apply; a list may use this set as its marks."""
        self._steps = {step.key: step for step in plan.steps}
        self._kinds: dict[str, list[Step]] = {}
        self._keys: dict[str, list[StepKey]] = {}
        self._places: dict[StepKey, int] = {}
        for key, step in self._steps.items():
            steps = self._kinds.setdefault(step.kind, [])
            self._places[key] = len(steps)
            steps.append(step)
            self._keys.setdefault(step.kind, []).append(key)
        self.names = [*self._kinds, *([LEFT] if plan.left else [])]
        """The groups, in order."""
        self._chosen_of: dict[str, int] = {}
        self.recount()
        is_small = len(plan.steps) + len(plan.left) <= OPEN_UP_TO
        self._open = set(self.names) if is_small else set()
        self._starts: list[int] = []
        self._count()

    def _count(self) -> None:
        members = {name: len(steps) for name, steps in self._kinds.items()}
        members[LEFT] = len(self.plan.left)
        sizes = (1 + (members[name] if name in self._open else 0) for name in self.names)
        self._starts = [0, *accumulate(sizes)]

    def __len__(self) -> int:
        """How many rows are shown."""
        return self._starts[-1]

    def key(self, index: int) -> PlanKey:
        """The identity of a row."""
        group = bisect_right(self._starts, index) - 1
        name, number = self.names[group], index - self._starts[group] - 1
        if number < 0:
            return Kind(name=name)
        return Remainder(number=number) if name == LEFT else self._kinds[name][number].key

    def index_of(self, key: Hashable) -> int | None:
        """Where a row is now; None where it is not shown."""
        name, number = self._name_of(key), -1
        if name not in self.names:
            return None
        if isinstance(key, Remainder):
            number = key.number
        elif not isinstance(key, Kind):
            number = self._places[key]  # type: ignore[index]
        if number >= 0 and name not in self._open:
            return None
        return self._starts[self.names.index(name)] + 1 + number

    def _name_of(self, key: Hashable) -> str:
        """The group of a row; "" for what is none of the plan."""
        if isinstance(key, Kind):
            return key.name
        if isinstance(key, Remainder):
            return LEFT
        step = self._steps.get(key)  # type: ignore[call-overload]
        return step.kind if step is not None else ""

    def row(self, index: int) -> Line:
        """One row, drawn."""
        key = self.key(index)
        if isinstance(key, Remainder):
            return left_line(self.plan.left[key.number])
        if not isinstance(key, Kind):
            return step_line(self._steps[key], is_chosen=key in self.chosen)
        is_open = key.name in self._open
        if key.name == LEFT:
            return left_heading(len(self.plan.left), is_open=is_open)
        total = len(self._kinds[key.name])
        return kind_line(key.name, chosen=self._chosen_of[key.name], total=total, is_open=is_open)

    def at(self, key: Hashable) -> Step | Left | None:
        """The step or the finding of a row; None for a heading, and for what is none of these."""
        if isinstance(key, Remainder):
            return self.plan.left[key.number]
        return None if isinstance(key, Kind) else self._steps.get(key)  # type: ignore[call-overload]

    def first_step(self) -> PlanKey | None:
        """Of the first step that is shown; of the first row where none is."""
        keys = (self.key(index) for index in range(min(len(self), 2)))
        return next(reversed(list(keys)), None)

    def number_of(self, key: StepKey) -> int:
        """Which step of the plan it is, from 1, in the order in which they are applied."""
        kinds = list(self._kinds)
        before = sum(len(self._kinds[kind]) for kind in kinds[: kinds.index(key[0])])
        return before + self._places[key] + 1

    def steps_of(self, kind: str) -> Sequence[Step]:
        """All steps of a kind."""
        return self._kinds.get(kind, ())

    def chosen_of(self, kind: str) -> int:
        """How many steps of a kind are chosen."""
        return self._chosen_of.get(kind, 0)

    def group_of(self, key: Hashable) -> Kind:
        """The heading that a row is below."""
        return Kind(name=self._name_of(key))

    def is_open(self, name: str) -> bool:
        """Whether the rows of a group are shown."""
        return name in self._open

    def set_open(self, name: str, *, is_open: bool) -> None:
        """Show the rows of a group, or only its heading."""
        if is_open and name in self.names:
            self._open.add(name)
        elif not is_open:
            self._open.discard(name)
        self._count()

    def chosen_with(self, key: Hashable) -> Collection[StepKey]:
        """The steps that are chosen, or left, with a row: of a kind all, of what is left none."""
        if isinstance(key, Kind):
            return self._keys.get(key.name, ())
        step = self.at(key)
        return (step.key,) if isinstance(step, Step) else ()

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
    for name in before.names:
        rows.set_open(name, is_open=before.is_open(name))
    return rows, begin
