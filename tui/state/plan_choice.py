"""What a plan is asked for, and which of its steps are chosen. Pure.

One rule: a step that writes files is chosen only on request, and one that removes files, or forgets
what is kept of a deleted one, only by a person, step by step.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from filestore import Finding, Plan, Policy, Step
from filestore.browse import shown_path, without
from tui.formatting.lines import count
from tui.formatting.plans import is_removal

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
