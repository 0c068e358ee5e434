"""A plan of repair as values: its steps, what each was planned on, and what is left. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from filestore.config.layout import CATALOG, EMBEDDINGS, FULLTEXT
from filestore.core.findings import Finding
from filestore.core.paths import NO_PATH, StorePath, Tree, is_below
from filestore.core.schema import JsonObject
from filestore.git.attributes import NAME as ATTRIBUTES
from filestore.git.merge import Side

Stat = tuple[int, int, int, int, int]


class Kind(Struct, frozen=True):
    """What holds for every step of one kind; `steps` applies them."""

    title: str
    """As a heading for a person."""
    phase: Literal["tree", "sidecar", "source"] = "sidecar"
    """What is applied together: changes of files, then of the sidecar, then sources."""
    named: bool = False
    """Whether it is planned only for files that a person names, who gives leave with that."""
    is_part: bool = False
    """Whether it repairs a derived part as a whole, not one file."""
    part: str = ""
    """The name of that part in the sidecar; "" for all of it."""
    place: StorePath = NO_PATH
    """The one file at the root that it is for."""
    resolves: bool = False
    """Whether it resolves an ingest conflict: then the source is re-ingested."""
    also: tuple[str, ...] = ()
    """Kinds of steps that follow from it."""
    of_documents: bool = False
    """Whether it may write documents in place."""
    is_joint: bool = False
    """Whether all steps of the kind are applied, or none."""

    @property
    def truth(self) -> bool:
        """Whether it writes files of the tree, not only the sidecar."""
        return self.phase != "sidecar"

    def only_path(self, tree: Tree) -> StorePath:
        """The one path that it is for in a store; "" for the file of its finding."""
        return tree.part(self.part) if self.is_part else self.place


KINDS: Final[dict[str, Kind]] = {
    "restore": Kind("restore", "tree"),
    "resolve-ours": Kind("keep the edit of", "tree", named=True, resolves=True),
    "resolve-theirs": Kind("take the new text into", "tree", named=True, resolves=True),
    "take-ours": Kind("take our side of git's conflict in", "tree", named=True, of_documents=True),
    "take-theirs": Kind(
        "take their side of git's conflict in", "tree", named=True, of_documents=True
    ),
    "take-hunks": Kind(
        "take chosen sides of git's conflict in", "tree", named=True, of_documents=True
    ),
    "relink": Kind("update links in", "tree", of_documents=True, is_joint=True),
    "remove": Kind("remove the chunks of", "tree"),
    "rewrite-attributes": Kind("fix line-ending rules in", "tree", place=StorePath(ATTRIBUTES)),
    "remove-duplicate": Kind("remove the copy", "tree", named=True),
    "reingest": Kind("re-ingest", "source"),
    "salvage": Kind(
        "salvage embeddings of", is_part=True, part=EMBEDDINGS, also=("embed", "rebuild-index")
    ),
    "rebuild-catalog": Kind("rebuild the catalog from all files", is_part=True, part=CATALOG),
    "repoint": Kind("update the path of"),
    "forget": Kind("remove from the index"),
    "index": Kind("index"),
    "reindex": Kind("re-index"),
    "update-record": Kind("update the record of"),
    "withhold": Kind("exclude from search"),
    "collect": Kind("clean up"),
    "embed": Kind(
        "embed missing vectors", is_part=True, part=EMBEDDINGS, also=("salvage", "rebuild-index")
    ),
    "rebuild-index": Kind("rebuild the vector index", is_part=True, also=("salvage", "embed")),
    "rebuild-fulltext": Kind("rebuild the full-text index", is_part=True, part=FULLTEXT),
}
"""Every kind of step, in the order in which they are applied."""


class State(JsonObject, Struct, frozen=True, kw_only=True):
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


class Policy(Struct, frozen=True, kw_only=True):
    """What a person wants done."""

    truth: bool = False
    """Whether files of the tree may be written."""
    only: frozenset[str] = frozenset()
    """Codes that were asked for; empty for all."""
    paths: tuple[StorePath, ...] = ()
    """Files and folders that were asked for, as findings have them; empty for all."""
    ours: tuple[StorePath, ...] = ()
    """Files whose edit wins over the new text of their source, or that take our side of git's
    conflict."""
    theirs: tuple[StorePath, ...] = ()
    """Files whose edit gives way to it, or that take their side."""
    remove: tuple[StorePath, ...] = ()
    """Files that go, because others have their text."""
    hunks: tuple[tuple[StorePath, tuple[Side, ...]], ...] = ()
    """Files with a choice for each hunk of git's conflict."""
    lost: tuple[StorePath, ...] = ()
    """Files that no finding reports any more, to be restored."""

    def concerns(self, finding: Finding) -> bool:
        """Whether a finding is to be repaired at all."""
        if (named := self.named) and not (self.only or self.paths):
            return finding.path in named
        if self.only and finding.code not in self.only:
            return False
        if finding.code == "mass-missing" and any(
            is_below(one, finding.path) for one in self.paths
        ):
            return True
        return any(self.names(path) for path in (finding.path, finding.other) if path)

    @property
    def sided(self) -> tuple[StorePath, ...]:
        """Files of which a side is chosen."""
        return (*self.ours, *self.theirs, *dict(self.hunks))

    @property
    def named(self) -> tuple[StorePath, ...]:
        """Files about which something is chosen."""
        return (*self.sided, *self.remove)

    def sides(self, path: StorePath) -> tuple[Side, ...]:
        """What was chosen in git's conflict in a file: one side for all its hunks, or one each."""
        if path in self.ours or path in self.theirs:
            return ("ours",) if path in self.ours else ("theirs",)
        return dict(self.hunks).get(path, ())

    def names(self, path: StorePath) -> bool:
        """Whether a path is to be repaired."""
        return not self.paths or any(is_below(path, chosen) for chosen in self.paths)


class Step(JsonObject, Struct, frozen=True, kw_only=True, rename={"place": "from"}):
    """One thing to do, and what it was planned on."""

    KEYS = (
        "kind path other codes detail truth findings seen read_bytes write_bytes texts known place "
        "hash blob diff"
    )

    kind: str
    """What is done."""
    path: StorePath
    """Below the store root."""
    codes: tuple[str, ...]
    """Of the findings that it repairs; none for a file that is restored on demand."""
    detail: str = ""
    """What exactly."""
    other: StorePath = NO_PATH
    """Where a moved file was, if the index has it there; which file keeps the text of one that
    goes."""
    findings: int = 1
    """How many findings it repairs."""
    seen: Mapping[StorePath, State] = field(default_factory=dict)
    """Each path with what it held when the plan was made."""
    read_bytes: int = 0
    """To be read."""
    write_bytes: int = 0
    """To be written."""
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
    """What changes, as a unified diff."""
    wanted: frozenset[bytes] = frozenset()
    """Keys of the texts to be embedded, as far as they are known."""
    had: frozenset[bytes] = frozenset()
    """Keys of those whose embedding is there."""
    repairs: tuple[Finding, ...] = ()
    """The findings of a derived part."""
    sides: tuple[Side, ...] = ()
    """What was chosen in git's conflict, see `Policy.sides`."""

    @property
    def truth(self) -> bool:
        """Whether it writes files."""
        return KINDS[self.kind].truth

    @property
    def part(self) -> bool:
        """See `Kind.is_part`."""
        return KINDS[self.kind].is_part

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from every other step of its plan."""
        return self.kind, self.path, self.other


class PlannedStep(Step, frozen=True, kw_only=True):
    """A step of a plan."""

    KEYS = f"{Step.KEYS} applies"

    applies: bool
    """Whether it is applied: steps that write files need `--write-files`."""


class SkippedStep(Step, frozen=True, kw_only=True):
    """A step that was not applied."""

    KEYS = f"{Step.KEYS} reason"

    reason: str
    """Why it was not applied."""


class Left(JsonObject, Struct, frozen=True, kw_only=True, rename={"reason": "repair"}):
    """A finding that no step repairs."""

    KEYS = "finding.code finding.severity finding.path finding.detail reason"

    finding: Finding
    reason: str
    """What you can do."""


class Plan(JsonObject, Struct, frozen=True, kw_only=True, rename={"identity": "store"}):
    """Everything that is to be done, and what is left."""

    KEYS = (
        "identity generation level policy.truth policy.only policy.paths policy.ours "
        "policy.theirs policy.hunks policy.remove steps left read_bytes write_bytes texts known "
        "model"
    )

    identity: str
    """The catalog it was made for."""
    generation: int
    """Of that catalog."""
    level: Literal["fast", "full", "deep"]
    """How thoroughly was looked."""
    policy: Policy
    """What was asked for."""
    steps: tuple[Step, ...]
    """In the order in which they are applied."""
    left: tuple[Left, ...]
    """Findings that no step repairs."""
    texts: int
    """Distinct texts to be embedded, as far as they are known."""
    known: int
    """Distinct texts that were embedded before."""
    model: str = ""
    """What embeds them; "" where nothing can."""
    findings: tuple[Finding, ...] = ()
    """Everything that was found, also what is not to be repaired."""
    unsound: tuple[bytes, ...] = ()
    """Keys of texts whose vector is stored whole, and wrong."""

    @property
    def read_bytes(self) -> int:
        """What all steps read."""
        return sum(step.read_bytes for step in self.steps)

    @property
    def write_bytes(self) -> int:
        """What all steps write."""
        return sum(step.write_bytes for step in self.steps)

    @property
    def json_steps(self) -> list[PlannedStep]:
        """In the order in which they are applied."""
        return [PlannedStep(**asdict(step), applies=self.allows(step)) for step in self.steps]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def doable(self) -> tuple[Step, ...]:
        """The steps that the policy allows."""
        return tuple(step for step in self.steps if self.allows(step))

    def allows(self, step: Step) -> bool:
        """Whether the policy lets a step be applied; a file that was named may be written."""
        return not step.truth or self.policy.truth or KINDS[step.kind].named


def selected(plan: Plan, findings: Iterable[Finding]) -> Plan:
    """The part of a plan that repairs some findings, and whatever that needs.

    A step that repairs several goes whole: a derived part is not repaired for one file. What is
    restored on demand repairs no finding, and is left out.

    Args:
        plan: Of all findings.
        findings: What is to be repaired; only their code and paths count.
    """
    chosen = set(findings)
    named = {(one.code, one.path) for one in chosen}
    # Which of the files that have a text in common is to go, the step says.
    named |= {(one.code, one.other) for one in chosen if one.code == "duplicate"}
    keys = {step.key for step in plan.steps if _repairs(step, named)}
    if keys and not plan.identity:
        # Without a catalog no other step can be followed.
        keys |= {step.key for step in plan.steps if step.kind == "rebuild-catalog"}
    left = [one for one in plan.left if (one.finding.code, one.finding.path) in named]
    chosen_steps = [step for step in plan.steps if step.key in keys]
    return replace(of_steps(plan, chosen_steps), left=tuple(left))


def without(plan: Plan, keys: Collection[tuple[str, str, str]]) -> Plan:
    """A plan without some steps, and without steps that need them.

    Args:
        plan: Of these steps and others.
        keys: Of steps, see `Step.key`; unknown ones change nothing.
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


def _repairs(step: Step, named: Set[tuple[str, str]]) -> bool:
    """Whether a step repairs a finding of these codes and paths."""
    if step.part or "mass-missing" in step.codes:
        return any(code in step.codes for code, _ in named)
    paths = (step.path, step.other) if step.kind == "remove-duplicate" else (step.path,)
    return any((code, path) in named for code in step.codes for path in paths)


CHANGED: Final = "it changed since the plan was made"


def moved_on(path: StorePath, planned: State, now: State) -> str:
    """Why a path no longer holds what a step was planned on, in words."""
    if now == ABSENT:
        return f"{path} no longer exists"
    return (
        f"{path} was created after the plan was made" if planned == ABSENT else f"{path}: {CHANGED}"
    )
