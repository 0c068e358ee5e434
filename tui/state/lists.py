"""Rows of findings, grouped or flat, filtered, sorted, growing; and rows of a plan. Pure.

One rule: while a verification runs, what comes is put at the end of its group, so that nothing is
sorted twice and no row moves without need. A step that writes files is chosen only on request, and
one that removes files, or forgets what is kept of a deleted one, only by a person, step by step.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore import CODES, Finding, Plan, Policy, Step
from filestore.browse import Left, NameFilter, natural_key, shown_path, without
from tui.formatting import Line, count
from tui.formatting.findings import finding_line, group_line
from tui.formatting.plans import is_removal, kind_line, left_heading, left_line, step_line
from tui.state.findings import FindingKey, Findings, key_of
from tui.state.rows import Members, TreeRows, Way

Order = Literal["code", "path", "severity"]
GroupKey = tuple[str]
"""A code: the row above its findings."""
RowKey = FindingKey | GroupKey

ORDERS: Final[tuple[Order, ...]] = ("code", "path", "severity")
SEVERITIES: Final = ("EWI", "E", "EW", "W", "I")
"""The choices of severities to be shown, in the order in which a key goes through them."""
MOST_OPEN: Final = 200
"""Findings up to which all groups are open at first."""
AT_ONCE: Final = 20_000
"""Findings up to which rows are made while a key waits for them."""

_SLICE: Final = 4_096

_RANK: Final = {
    code: ("EWI".index(about.severity), number)
    for number, (code, about) in enumerate(CODES.items())
}
"""Code to its place in the list: worst first."""


def _by_code(key: FindingKey) -> tuple[Any, ...]:
    return key[0], natural_key(key[1]), key


def _by_path(key: FindingKey) -> tuple[Any, ...]:
    return natural_key(key[1]), key


class Filter(Struct, frozen=True, kw_only=True):
    """Which findings are shown."""

    text: str = ""
    """As it was typed: words; after ``!`` what is left out; after ``~`` a regular expression."""
    severities: str = "EWI"
    code: str = ""
    """"" for all."""


def worst_first(codes: Iterable[str]) -> list[str]:
    """Codes in the order of their groups."""
    return sorted(codes, key=_RANK.__getitem__)


def _group_name(code: str, order: Order) -> str:
    if order == "code":
        return code
    return CODES[code].severity if order == "severity" else ""


_Shape = tuple[int, Order, Filter]
"""What rows are made from: `Findings.reshaped`, how they are ordered, what of them is shown."""


class FindingGroups(Struct, frozen=True, kw_only=True):
    """The groups of rows, as they were worked out."""

    shape: _Shape
    groups: dict[str, Members]
    shown: int
    taken: int
    """How many findings were looked at."""


def _grouped(
    shape: _Shape, keys: Sequence[FindingKey], findings: Sequence[Finding]
) -> FindingGroups:
    """The groups of some findings, sorted and numbered."""
    groups: dict[str, Members] = {}
    shown = _put(zip(keys, findings, strict=True), groups, shape)
    for name, group in groups.items():
        # Sorted in steps: other threads wait while a list is sorted.
        by = _by_code if shape[1] == "code" else _by_path
        runs = [sorted(group[at : at + _SLICE], key=by) for at in range(0, len(group), _SLICE)]
        while len(runs) > 1:
            # Two runs in order are merged in as many steps as they are long, or fewer.
            runs = [sorted(chain(*runs[at : at + 2]), key=by) for at in range(0, len(runs), 2)]
        groups[name] = Members(runs[0])
        groups[name].number()
    return FindingGroups(shape=shape, groups=groups, shown=shown, taken=len(keys))


def _put(
    found: Iterable[tuple[FindingKey, Finding]], groups: dict[str, Members], shape: _Shape
) -> int:
    """Put findings at the end of their groups; returns how many the filter leaves."""
    _, order, wanted = shape
    keys: Iterable[FindingKey] = (key for key, _ in found)
    if wanted != Filter():
        named = (
            (key, f"{one.code} {one.path} {one.other} {one.detail}")
            for key, one in found
            if one.severity in wanted.severities and wanted.code in ("", one.code)
        )
        keys = NameFilter.parse(wanted.text).keys(named)
    shown = 0
    for key in keys:
        groups.setdefault(_group_name(key[0], order), Members()).append(key)
        shown += 1
    return shown


class FindingRows(TreeRows):
    """Rows over `Findings`. `refresh` reads what changed there; in between nothing moves.

    Where that `is_much`, it is worked out elsewhere: `take_groups(draft()())` is the
    same. Below the row of a code its findings, each by its own key; in another order these alone.
    """

    def __init__(self, findings: Findings) -> None:
        super().__init__(
            self._line, lambda way: self._groups[way[0]], lambda _: None, lambda _: None
        )
        self.order: Order = "code"
        self.filter = Filter()
        self.held = ""
        """The code whose group the cursor is in: it is not closed by itself."""
        self._findings = findings
        self._groups: dict[str, Members] = {}
        self.shown = 0
        """How many findings the filter lets through."""
        self._chosen: dict[str, bool] = {}
        """Code to whether its group was opened or closed by hand."""
        self._begun: dict[str, bool] = {}
        """Name to whether its group was open at first."""
        self._marked: Counter[str] = Counter()
        self._made: _Shape | None = None
        self._taken = 0
        if not self.is_much:
            self.refresh()

    @property
    def is_much(self) -> bool:
        """Whether a refresh would keep a key waiting."""
        return self._made != self._shape and len(self._findings) > AT_ONCE

    @property
    def _shape(self) -> _Shape:
        return self._findings.reshaped, self.order, self.filter

    def refresh(self) -> None:
        """Read what changed in the findings, the filter and the order.

        Raises:
            UsageError: The filter is no regular expression.
        """
        if self._made != self._shape:
            self.take_groups(self.draft()())
            return
        added = islice(self._findings.index.known.items(), self._taken, None)
        self.shown += _put(added, self._groups, self._shape)
        self._taken = len(self._findings)
        self._begin_open(is_rebuilt=False)
        self._lay_out()

    def draft(self) -> Callable[[], FindingGroups]:
        """What makes the groups, of what is known at this moment; in any thread."""
        known = self._findings.index.known
        return partial(_grouped, self._shape, tuple(known), tuple(known.values()))

    def take_groups(self, grouped: FindingGroups) -> None:
        """Show what was worked out, unless it is of another filter or order than is wanted now."""
        if grouped.shape[1:] != self._shape[1:]:
            return
        self._groups, self.shown = grouped.groups, grouped.shown
        self._made, self._taken = grouped.shape, grouped.taken
        self.recount()
        self._begin_open(is_rebuilt=True)
        self._lay_out()

    def _begin_open(self, *, is_rebuilt: bool) -> None:
        """Have groups begin open or closed; the others stay as they are."""
        if is_rebuilt:
            self._begun = {}
            if self.shown > MOST_OPEN and self.held:
                # The others close now; what is being read stays.
                self._chosen.setdefault(self.held, True)
        for name in self._groups.keys() - self._begun.keys():
            self._begun[name] = self.shown <= MOST_OPEN

    def _lay_out(self) -> None:
        is_grouped = self._is_grouped
        names = sorted(self._groups, key=_RANK.__getitem__ if is_grouped else "EWI".index)
        self.close_all()
        self.replace(names, {}, own=int(is_grouped))
        self.open_each(
            (name,) for name in names if not is_grouped or self._chosen.get(name, self._begun[name])
        )

    @property
    def _laid_out_by(self) -> Order:
        """Not yet the order that is wanted, while that is still worked out."""
        return self.order if self._made is None else self._made[1]

    @property
    def _is_grouped(self) -> bool:
        return self._laid_out_by == "code"

    # As rows

    def key(self, index: int) -> RowKey:
        """The finding, or the code, of a row."""
        way = super().key(index)
        return way[-1] if len(way) > 1 else way

    def index_of(self, key: Hashable) -> int | None:
        """Where a finding or a code is; None where it is not shown."""
        if not isinstance(key, tuple) or not key or key[0] not in _RANK:
            return None
        if len(key) < 4:
            # Also a finding's without the last of it: what it is below.
            return super().index_of(key[:1]) if self._is_grouped else None
        name = _group_name(key[0], self._laid_out_by)
        # A file that was edited may still have the finding, in other lines.
        of_file = self._findings.index.of_path(key[1])
        alike = (key_of(one) for one in of_file if one.code == key[0])
        places = map(super().index_of, ((name, one) for one in chain([key], alike)))
        return next((place for place in places if place is not None), None)

    def _line(self, key: RowKey) -> Line | None:
        finding = self.finding(key)
        if finding is None:
            return ()
        if len(key) == 1:
            members, marked = len(self.members(key)), self._marked[key[0]]
            return group_line(finding, members, is_open=self.is_open(key), marked=marked)
        return finding_line(
            finding,
            in_group=self._is_grouped,
            from_before=self._findings.is_from_before(key),
            tree=self._findings.tree,
        )

    # Groups

    def open(self, way: Way) -> bool:
        """Show the findings of a code."""
        self._chosen[way[0]] = True
        return super().open(way)

    def close(self, way: Hashable) -> None:
        """Show a code alone."""
        if isinstance(way, tuple) and self._is_grouped:
            self._chosen[way[0]] = False
            super().close(way)

    def members(self, key: Hashable) -> Sequence[FindingKey]:
        """The findings of a row, as far as they are shown at all."""
        if not isinstance(key, tuple):
            return ()
        if len(key) > 1:
            return (key,)
        return self._groups.get(key[0], ())

    def finding(self, key: RowKey | None) -> Finding | None:
        """The finding of a row; the first of its group where the row is a code."""
        if key is None:
            return None
        members = self.members(key)
        return self._findings.index.known.get(members[0]) if members else None

    # Marks

    def recount(self) -> None:
        """Count the marked findings again."""
        self._marked = Counter(key[0] for key in self._findings.marked)

    def marked_codes(self) -> tuple[str, ...]:
        """The codes of what is marked."""
        return tuple(worst_first(self._marked))


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
        policy = self.policy
        named = (*policy.ours, *policy.theirs, *policy.remove, *dict(policy.hunks))
        if named:
            return shown_path(named[0])
        if self.findings is None:
            return "everything found"
        return count(len(self.findings), "finding")

    def with_truth(self, truth: bool) -> "Request":
        """The same, with or without leave to write files."""
        return replace(self, policy=replace(self.policy, truth=truth))


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
        self._chosen_of = Counter(kind for kind, _, _ in self.chosen)
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
        chosen, total = self._chosen_of[kind], len(self._keys[kind])
        return kind_line(kind, chosen=chosen, total=total, is_open=is_open)

    def at(self, way: Hashable) -> Step | Left | None:
        """The step or the finding of a row; None for a heading, and for what is none of these."""
        match way:
            case (kind, int(number)) if kind == LEFT:
                return self.plan.left[number]
            case (_, tuple(key)):
                return self._steps.get(key)
        return None

    def number_of(self, key: StepKey) -> int:
        """Which step of the plan it is, from 1, in the order in which they are applied."""
        return self._numbers[key]

    def steps_of(self, kind: str) -> Sequence[Step]:
        """All steps of a kind."""
        return [self._steps[key] for key in self._keys.get(kind, ())]

    def chosen_of(self, kind: str) -> int:
        """How many steps of a kind are chosen."""
        return self._chosen_of[kind]

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
    # What a person chose or left of the earlier plan stays so.
    added, left = before.chosen - begun, begun - before.chosen
    rows = PlanRows(plan, (begin - left) | (added & {step.key for step in plan.steps}))
    for kind in before.tops:
        if before.is_open((kind,)):
            rows.open((kind,))
        else:
            rows.close((kind,))
    return rows, begin
