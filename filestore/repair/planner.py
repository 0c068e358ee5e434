"""What a repair does about findings, as steps. Pure: what was found comes in, a plan goes out.

One rule: every step names what it was planned on, which has to hold when it is applied; what no
step repairs is left for a person, with the reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypedDict

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.chunks.kept import fenced
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.config.layout import UNDO
from filestore.core.findings import Finding, with_tree
from filestore.core.hashing import content_hash
from filestore.core.paths import CHUNKS, DOCUMENTS_SIDECAR, StorePath, Tree, natural_key
from filestore.git import merge
from filestore.git.merge import MarkersBrokenError, NotResolvedError, Side, Staged
from filestore.git.stopped import SideNames
from filestore.repair.plan import ABSENT, KINDS, Left, Plan, Policy, State, Step
from filestore.repair.tree_files import difference, state_of


class Look(Struct, frozen=True, kw_only=True):
    """What was seen of one file."""

    state: State
    keys: tuple[bytes, ...] = ()
    """Of the texts that are embedded of it."""
    size_bytes: int = 0
    recorded: bool = False
    """Whether the catalog knows it as it is."""


class Restorable(Struct, frozen=True, kw_only=True):
    """Where the bytes of a lost file can come from."""

    place: str
    """``last seen`` or ``git``."""
    hash: str
    size_bytes: int
    diff: str
    """From what is there now."""
    blob: str = ""
    """Git's name of them."""
    differs: bool = False
    """Whether it is not what the catalog recorded last."""


class Inspection(Struct, frozen=True, kw_only=True):
    """What a plan is made of, besides findings."""

    identity: str
    """Of the catalog; "" where there is none."""
    generation: int
    tree: Tree = CHUNKS
    looks: Mapping[StorePath, Look] = field(default_factory=dict)
    restorable: Mapping[StorePath, Restorable] = field(default_factory=dict)
    gone: tuple[StorePath, ...] = ()
    """What a mass of missing files consists of, as far as a person named it."""
    prepared: Mapping[tuple[str, StorePath], Step | str] = field(default_factory=dict)
    """Kind and path to what changes truth files otherwise, `wanted` being all of its texts; or to
    why it cannot be made."""
    reasons: Mapping[tuple[str, StorePath], str] = field(default_factory=dict)
    """Code and path to what a person can do, where that is more than the code tells."""
    unembedded: tuple[bytes, ...] = ()
    """Keys of texts that the catalog knows to have no vector."""
    unsound: tuple[bytes, ...] = ()
    """Those of texts whose vector is wrong."""
    all_keys: tuple[bytes, ...] = ()
    """Keys of every text of the tree, where the catalog has to be made again."""
    part_bytes: Mapping[str, int] = field(default_factory=dict)
    """Kind to what repairing its part reads."""
    embedded: frozenset[bytes] = frozenset()
    """Those of all these keys whose embedding is there."""
    model: str = ""
    """What embeds; "" where nothing can."""


def make(
    findings: Iterable[Finding],
    found: Inspection,
    policy: Policy,
    *,
    level: Literal["fast", "full", "deep"],
) -> Plan:
    """Plan what to do.

    Args:
        findings: Of one verification.
        found: About the files that they name.
        policy: What a person wants.
        level: Of the verification.
    """
    if not found.tree.is_written:
        # A person brings them back, or edits them: only links in them are written.
        prepared = {key: one for key, one in found.prepared.items() if KINDS[key[0]].of_documents}
        found = replace(found, restorable={}, prepared=prepared)
        policy = replace(policy, lost=(), remove=())
    work = _Planner(found, policy)
    for finding in with_tree(findings, found.tree):
        if policy.concerns(finding):
            work.take(finding)
    for path in policy.lost:
        work.restore(path, ())
    for path in policy.remove:
        work.add_prepared("remove-duplicate", Finding(code="duplicate", path=path))
    steps = sorted(
        work.finished(), key=lambda step: (_ORDER[step.kind], natural_key(step.path), step.path)
    )
    keys = work.keys
    return Plan(
        identity=found.identity,
        generation=found.generation,
        level=level,
        policy=policy,
        steps=tuple(steps),
        left=tuple(sorted(work.left, key=lambda one: natural_key(one.finding.path))),
        texts=len(keys - found.embedded),
        known=len(keys & found.embedded),
        model=found.model,
    )


_ORDER: Final = {kind: number for number, kind in enumerate(KINDS)}


class _Price(TypedDict):
    """What a step has to embed, as `Step` has it."""

    texts: int | None
    known: int
    wanted: frozenset[bytes]
    had: frozenset[bytes]


class _Planner:
    """Findings into steps, one after the other."""

    def __init__(self, found: Inspection, policy: Policy) -> None:
        self._found = found
        self._policy = policy
        self._restores = policy.truth and found.tree.is_written
        self._steps: dict[tuple[str, str, str], Step] = {}
        self._parts: dict[str, list[Finding]] = {}
        self._keys: dict[tuple[str, str, str], set[bytes]] = {}
        self.left: list[Left] = []
        self.keys: set[bytes] = set()
        """Of the texts of all steps, once they are finished."""

    def take(self, finding: Finding) -> None:
        """Plan what one finding asks for."""
        code, path = finding.code, finding.path
        meaning = finding.meaning
        kind = meaning.step
        if not finding.tree.is_written and meaning.step == "restore":
            self._leave(finding)
        elif code == "bit-rot" or (code == "missing" and self._restores):
            if not self.restore(path, (code,)) and code == "missing":
                self._add_file("forget", finding, "no copy of it is kept")
        elif code == "mass-missing":
            self._take_mass(finding)
        elif meaning.excluded:
            self._take_excluded(finding)
        elif kind and KINDS[kind].truth:
            self._take_truth(finding)
        elif not finding.safe or path.startswith(_KEPT):
            self._leave(finding)
        elif KINDS[kind].is_part:
            self._parts.setdefault(kind, []).append(finding)
        else:
            self._add_file(kind, finding)

    def _leave(self, finding: Finding, reason: str = "") -> None:
        if finding.severity != "I":
            known = self._found.reasons.get((finding.code, finding.path))
            self.left.append(Left(finding=finding, reason=reason or known or finding.repair))

    def _add(self, step: Step, keys: Iterable[bytes] = ()) -> None:
        before = self._steps.get(step.key)
        if before is None:
            self._steps[step.key] = step
        self._keys.setdefault(step.key, set()).update(keys)

    def _add_file(self, kind: str, finding: Finding, detail: str = "") -> None:
        look = self._found.looks.get(finding.path, _NOTHING)
        keys = look.keys if kind in ("index", "reindex") else ()
        # What is no file of the tree changes with the generation, and the sync sees to that.
        seen = {finding.path: look.state} if self._found.tree.covers(finding.path) else {}
        if kind == "repoint":
            seen[finding.other] = ABSENT
        step = Step(
            kind=kind,
            path=finding.path,
            other=finding.other,
            codes=(finding.code,),
            detail=detail or finding.detail,
            seen=seen,
            read_bytes=look.size_bytes,
            **self._price(keys),
        )
        self._add(step, keys)

    def _price(self, keys: Iterable[bytes]) -> "_Price":
        """What a step has to embed."""
        every = frozenset(keys)
        wanted, had = every - self._found.embedded, every & self._found.embedded
        return {"texts": len(wanted), "known": len(had), "wanted": wanted, "had": had}

    def restore(self, path: StorePath, codes: tuple[str, ...]) -> bool:
        """Plan the restoration of a file, if its bytes can be had."""
        found = self._found.restorable.get(path)
        if found is None:
            if codes == ("bit-rot",):
                self.left.append(
                    Left(
                        finding=Finding(code="bit-rot", path=path, detail="nothing intact is kept"),
                        reason="look at the file; once saved, 'filestore sync' indexes it as is",
                    )
                )
            return False
        note = "; it differs from what was recorded last" if found.differs else ""
        step = Step(
            kind="restore",
            path=path,
            codes=codes,
            detail=f"from {'git' if found.place == 'git' else 'the last seen text'}{note}",
            seen={path: self._found.looks.get(path, _NOTHING).state},
            write_bytes=found.size_bytes,
            place=found.place,
            hash=found.hash,
            blob=found.blob,
            diff=found.diff,
        )
        self._add(step)
        return True

    def _take_mass(self, finding: Finding) -> None:
        gone = self._found.gone
        if self._policy.paths and not gone:
            # Nothing of it is where a person wants something repaired.
            return
        lost = [path for path in gone if path not in self._found.restorable]
        if not self._restores or lost or not gone:
            some = f"; {len(lost)} of them cannot be restored" if lost else ""
            reason = "'filestore repair --write-files' restores what it can"
            self._leave(finding, finding.repair if lost or not gone else reason + some)
            return
        for path in gone:
            self.restore(path, ("mass-missing",))

    def _take_excluded(self, finding: Finding) -> None:
        path = finding.path
        is_back = finding.code == "record-invalid" and self.restore(path, (finding.code,))
        sides = self._policy.sides(path)
        if finding.code == "conflict-markers" and sides:
            self.add_prepared(take_kind(sides), finding)
        elif not is_back:
            self._leave(finding)
        # What comes back need not be left out first.
        look = self._found.looks.get(path)
        if look is not None and not look.recorded and not (is_back and self._policy.truth):
            self._add_file("withhold", finding)

    def _take_truth(self, finding: Finding) -> None:
        code, path = finding.code, finding.path
        if finding.meaning.only_named and code not in self._policy.only:
            self._leave(finding)
            return
        kind = finding.meaning.step
        if code == "ingest-conflict":
            if path not in self._policy.ours and path not in self._policy.theirs:
                self._leave(finding)
                return
            kind = "resolve-ours" if path in self._policy.ours else "resolve-theirs"
        self.add_prepared(kind, finding)

    def add_prepared(self, kind: str, finding: Finding) -> None:
        """Plan a change that was worked out, or leave its finding."""
        prepared = self._found.prepared.get((kind, finding.path), "")
        if isinstance(prepared, str):
            if finding.severity != "I":
                self._leave(finding, prepared)
            elif kind == "remove-duplicate":
                # A mere remark, but a person asked for it.
                self.left.append(Left(finding=finding, reason=prepared or "it is not a copy"))
            return
        price = self._price(prepared.wanted)
        if prepared.texts is None:
            price["texts"] = None
        detail = prepared.detail or finding.detail
        step = replace(prepared, codes=(finding.code,), detail=detail, **price)
        self._add(step, prepared.wanted)

    def finished(self) -> Iterator[Step]:
        """Every step, those of a derived part as one each.

        What is written anew is indexed by that, not by a step of its own.
        """
        written = {
            step.path: step
            for step in self._steps.values()
            if KINDS[step.kind].phase == "tree" and (self._policy.truth or KINDS[step.kind].named)
        }
        codes = {path: list(step.codes) for path, step in written.items()}
        for step in self._steps.values():
            if not step.truth and step.path in codes:
                codes[step.path] += step.codes
        for step in self._steps.values():
            if not step.truth and step.path in written:
                continue
            self.keys |= self._keys[step.key]
            if written.get(step.path) is step:
                yield replace(step, codes=tuple(dict.fromkeys(codes[step.path])))
            else:
                yield step
        if "rebuild-catalog" in self._parts:
            # Everything is indexed anew, so what lacks a vector is among it.
            self._parts.pop("embed", None)
        for kind, found in self._parts.items():
            keys: set[bytes] = set()
            if kind in ("embed", "salvage"):
                keys = {*self._found.unembedded, *self._found.unsound}
            elif kind == "rebuild-index":
                keys = set(self._found.unsound)
            elif kind == "rebuild-catalog":
                keys = set(self._found.all_keys)
            self.keys |= keys
            yield Step(
                kind=kind,
                path=KINDS[kind].only_path(self._found.tree),
                codes=tuple(dict.fromkeys(finding.code for finding in found)),
                detail=found[0].detail if len(found) == 1 else f"{len(found)} findings",
                findings=len(found),
                repairs=tuple(found),
                read_bytes=self._found.part_bytes.get(kind, 0),
                **self._price(keys),
            )


_NOTHING: Final = Look(state=ABSENT)
_KEPT: Final = (".undo/", f"{DOCUMENTS_SIDECAR}/{UNDO}/")
"""What lies there goes on with 'undo' and 'redo', and is never collected."""


Interpreted = Callable[[StorePath, bytes], Observation]
"""What bytes would mean at a path."""


def take_kind(sides: Sequence[Side]) -> str:
    """The kind of step that takes these sides of git's conflict in a file."""
    return f"take-{sides[0]}" if tuple(sides) in (("ours",), ("theirs",)) else "take-hunks"


def taken(
    path: StorePath,
    now: tuple[State, bytes | None],
    sides: tuple[Side, ...],
    *,
    staged: Staged | None,
    names: SideNames,
    interpreted: Interpreted,
) -> Step | str:
    """A file with the chosen sides of git's conflict in it; or why that cannot be.

    Args:
        path: Of the file.
        now: Its state and its bytes.
        sides: What stays of each hunk, see `merge.resolved`.
        staged: What git's index holds of it unmerged.
        names: Whose the sides are.
        interpreted: Tells what the file would mean.
    """
    state, data = now
    try:
        found = merge.conflicts(data or b"")
        made = merge.resolved(data, sides, staged)
    except MarkersBrokenError as error:
        return f"resolve it in an editor: {error.message}"
    except NotResolvedError as error:
        return error.message
    if made == data:
        return "resolve it in an editor: no side was chosen"
    # Where some are in a code block, only a person can tell which count.
    blocks = list(fenced(data or b"", 0))
    shown = [one for one in found if any(at < one.start and one.end <= to for at, to in blocks)]
    if shown and len(shown) < len(found):
        at = "{}-{}".format(*shown[0].lines)
        problem = f"the markers in lines {at} are in a code block, others are not"
        return f"resolve it in an editor: {problem}"
    then = None if made is None else interpreted(path, made)
    where = ", ".join(f"{first}-{last}" for first, last in (one.lines for one in found))
    side = sides[0] if len(set(sides)) == 1 else "in turn " + ", ".join(sides)
    label = {"ours": found[0].ours_label, "theirs": found[0].theirs_label} if found else {}
    name = names.of(side) or label.get(side)
    detail = f"{side} ({name})" if name else side
    detail += f" in lines {where}" if where else "" if then else "; the file goes"
    if then is not None and then.state not in (INDEXED, RECORD):
        detail += f"; then left out as {then.state}"
    return Step(
        kind=take_kind(sides),
        path=path,
        codes=(),
        seen={path: state},
        detail=detail,
        sides=sides,
        read_bytes=len(data or b""),
        write_bytes=len(made or b""),
        hash=content_hash(made).hex() if made is not None else "",
        # A person who gives a side up has to see all of it.
        diff=difference(path, data or b"", made or b"", most=None),
        wanted=frozenset(then.keys if then else ()),
    )


def without(tree: Tree, path: StorePath, seen: Observation, twin: Observation | None) -> Step | str:
    """A file that goes, because another one has its text.

    Args:
        tree: Where they lie.
        path: Of the file.
        seen: The file as it is.
        twin: One that stays and has the same text; None where there is none.
    """
    if seen.state != INDEXED:
        return f"it is excluded as {seen.state}: fix it first"
    if twin is None:
        return "no other file that stays has the same text"
    other = tree.store_path(twin.path)
    return Step(
        kind="remove-duplicate",
        path=path,
        codes=(),
        seen={path: state_of(seen), other: state_of(twin)},
        detail=f"its text stays in {other}",
        other=other,
        read_bytes=len(seen.data) + len(twin.data),
        # Keys and questions of its own go with it, and have to be seen.
        diff=difference(path, seen.data, b"", most=None),
    )


def is_twin(seen: Observation, other: Observation) -> bool:
    """Whether another file has the text of a file, under the same headings."""
    if seen.chunk is None or other.chunk is None or other.state != INDEXED:
        return False
    mine, its = seen.chunk, other.chunk
    return seen.path != other.path and (mine.body, mine.headings) == (its.body, its.headings)
