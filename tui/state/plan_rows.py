"""A plan as rows: steps by kind with a box each, then what is left.

Pure. One rule: choosing changes what will be applied, and nothing else.
"""

from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from filestore import Plan, Step
from filestore.browse import Left
from tui.formatting.lines import Line
from tui.formatting.plans import kind_line, left_heading, left_line, step_line
from tui.state.plan_choice import Request, StepKey, as_before, begin_with
from tui.state.rows import Rows

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
