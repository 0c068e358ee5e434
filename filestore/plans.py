"""A plan of repair as values: its steps, what each was planned on, and what is left. Pure."""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from filestore.findings import Finding

Stat = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is said about every step of one kind."""

    title: str
    """As a heading for a person."""
    truth: bool = False
    """Whether it writes files of the tree, not only the sidecar."""
    part: bool = False
    """Whether it mends a derived part as a whole, not one file."""
    named: bool = False
    """Whether it is planned only for files that a person names, who gives leave with that."""


KINDS: Final[dict[str, Kind]] = {
    "restore": Kind("bring back", truth=True),
    "resolve-ours": Kind("keep the edit of", truth=True, named=True),
    "resolve-theirs": Kind("take the new text into", truth=True, named=True),
    "take-ours": Kind("take our side of git's conflict in", truth=True, named=True),
    "take-theirs": Kind("take their side of git's conflict in", truth=True, named=True),
    "relink": Kind("mend links in", truth=True),
    "remove": Kind("remove what was made of", truth=True),
    "remove-duplicate": Kind("remove the copy", truth=True, named=True),
    "reingest": Kind("take in again", truth=True),
    "salvage": Kind("keep the sound embeddings of", part=True),
    "rebuild-catalog": Kind("index all files again", part=True),
    "repoint": Kind("follow to a new name"),
    "forget": Kind("forget"),
    "index": Kind("index"),
    "reindex": Kind("index again"),
    "update-record": Kind("update the record of"),
    "withhold": Kind("leave out of answers"),
    "collect": Kind("collect"),
    "embed": Kind("embed what has no vector", part=True),
    "rebuild-index": Kind("write the vector index again", part=True),
    "rebuild-fulltext": Kind("build the full-text index again", part=True),
    "follow": Kind("bring up to date"),
}
"""Every kind of step, in the order in which they are applied."""

PARTS: Final = {
    "salvage": ".sidecar/embeddings.sqlite",
    "rebuild-catalog": ".sidecar/catalog.sqlite",
    "embed": ".sidecar/embeddings.sqlite",
    "rebuild-index": ".sidecar",
    "rebuild-fulltext": ".sidecar/fulltext",
}
"""Where the part lies that a kind mends as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a path held when something was planned for it."""

    stat: Stat | None = None
    """Size, mtime_ns, ctime_ns, inode and mode; None where there is no file."""
    hash: str = ""
    """Of the bytes, hexadecimal; "" where they were not read."""

    def holds(self, now: "State") -> bool:
        """Whether a path that is now in another state still has what was planned on."""
        if self.hash or now.hash:
            # The same bytes under new stamps are the same file.
            return self.hash == now.hash
        return self.stat == now.stat


ABSENT: Final = State()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a person wants done."""

    truth: bool = False
    """Whether files of the tree may be written."""
    only: frozenset[str] = frozenset()
    """Codes; empty for all."""
    paths: tuple[str, ...] = ()
    """Files and folders as findings have them; empty for all."""
    ours: tuple[str, ...] = ()
    """Files whose edit wins over the new text of their source, or that take our side of git's
    conflict."""
    theirs: tuple[str, ...] = ()
    """Files whose edit gives way to it, or that take their side."""
    remove: tuple[str, ...] = ()
    """Files that go, because others have their text."""
    lost: tuple[str, ...] = ()
    """Files that no finding tells of any more, to be brought back."""

    def concerns(self, finding: Finding) -> bool:
        """Whether a finding is to be mended at all."""
        named = {*self.ours, *self.theirs, *self.remove}
        if named and not (self.only or self.paths):
            return finding.path in named
        if self.only and finding.code not in self.only:
            return False
        return not self.paths or any(
            is_below(path, chosen)
            for chosen in self.paths
            for path in (finding.path, finding.other)
            if path
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do, and what it was planned on."""

    kind: str
    path: str
    """Relative to the store root."""
    codes: tuple[str, ...]
    """Of the findings that it mends; none for a file that is brought back on demand."""
    detail: str = ""
    other: str = ""
    """Where a moved file was; which file keeps the text of one that goes."""
    findings: int = 1
    seen: Mapping[str, State] = field(default_factory=dict)
    read_bytes: int = 0
    write_bytes: int = 0
    texts: int | None = 0
    """To be embedded; None where that shows only when it is done."""
    known: int = 0
    """Texts whose embedding is there."""
    place: str = ""
    """Where restored bytes come from."""
    hash: str = ""
    """Of the bytes that a file is to hold, where they are known."""
    blob: str = ""
    """Git's name of them, where they come from git."""
    diff: str = ""
    wanted: frozenset[bytes] = field(default=frozenset(), repr=False)
    """Keys of the texts to be embedded, as far as they are known."""
    had: frozenset[bytes] = field(default=frozenset(), repr=False)
    """Keys of those whose embedding is there."""

    @property
    def truth(self) -> bool:
        """See `Kind`."""
        return KINDS[self.kind].truth

    @property
    def part(self) -> bool:
        """See `Kind`."""
        return KINDS[self.kind].part

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from every other step of its plan."""
        return self.kind, self.path, self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A finding that no step mends."""

    finding: Finding
    reason: str
    """What a person can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is to be done, and what is left."""

    identity: str
    generation: int
    level: Literal["fast", "full", "deep"]
    """How thoroughly was looked."""
    policy: Policy
    steps: tuple[Step, ...]
    """In the order in which they are applied."""
    left: tuple[Left, ...]
    texts: int
    """Distinct texts to be embedded, as far as they are known."""
    known: int
    """Distinct texts that were embedded before."""
    model: str = ""
    """What embeds them; "" where nothing can."""
    findings: tuple[Finding, ...] = ()
    """Everything that was found, what nobody wants mended too."""
    unsound: tuple[bytes, ...] = ()
    """Keys of texts whose vector is stored whole, and wrong."""

    @property
    def doable(self) -> tuple[Step, ...]:
        """The steps that the policy allows."""
        return tuple(step for step in self.steps if self.allows(step))

    def allows(self, step: Step) -> bool:
        """Whether the policy lets a step be applied; a file that was named is meant."""
        return not step.truth or self.policy.truth or KINDS[step.kind].named


def selected(plan: Plan, findings: Iterable[Finding]) -> Plan:
    """The part of a plan that mends some findings, and whatever that needs.

    A step that mends several goes whole: a derived part is not mended for one file. What is brought
    back on demand mends no finding, and is left out.

    Args:
        plan: Of all findings.
        findings: Those that are to be mended; only their code and paths count.
    """
    chosen = set(findings)
    named = {(one.code, one.path) for one in chosen}
    # Which of the files that have a text in common is to go is said by the step.
    named |= {(one.code, one.other) for one in chosen if one.code == "duplicate"}
    keys = {step.key for step in plan.steps if _mends(step, named)}
    if keys and not plan.identity:
        # Without a catalog no other step can be followed.
        keys |= {step.key for step in plan.steps if step.kind == "rebuild-catalog"}
    left = [one for one in plan.left if (one.finding.code, one.finding.path) in named]
    chosen_steps = [step for step in plan.steps if step.key in keys]
    return replace(of_steps(plan, chosen_steps), left=tuple(left))


def without(plan: Plan, keys: Collection[tuple[str, str, str]]) -> Plan:
    """A plan without some steps, nor those that need them.

    Args:
        plan: Of these steps and others.
        keys: Of steps, see `Step.key`; those that are none of the plan's change nothing.
    """
    dropped = {step.key for step in plan.steps if step.key in keys}
    if not plan.identity and any(kind == "rebuild-catalog" for kind, _, _ in dropped):
        return of_steps(plan, ())
    return of_steps(plan, [step for step in plan.steps if step.key not in dropped])


def of_steps(plan: Plan, steps: Iterable[Step]) -> Plan:
    """A plan with some of its steps, and what these cost."""
    chosen = tuple(steps)
    return replace(
        plan,
        steps=chosen,
        texts=len(frozenset[bytes]().union(*(step.wanted for step in chosen))),
        known=len(frozenset[bytes]().union(*(step.had for step in chosen))),
    )


def _mends(step: Step, named: Set[tuple[str, str]]) -> bool:
    """Whether a step mends a finding of these codes and paths."""
    if step.part or "mass-missing" in step.codes:
        return any(code in step.codes for code, _ in named)
    paths = (step.path, step.other) if step.kind == "remove-duplicate" else (step.path,)
    return any((code, path) in named for code in step.codes for path in paths)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


CHANGED: Final = "it changed since the plan was made"


def moved_on(path: str, planned: State, now: State) -> str:
    """Why a path no longer holds what a step was planned on, in words."""
    if now == ABSENT:
        return f"{path} is gone by now"
    return f"{path} is there by now" if planned == ABSENT else f"{path}: {CHANGED}"
