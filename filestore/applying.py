"""Applying a plan of repair: truth files in one batch, then the sidecar, then sources.

One rule: a step whose files moved on since it was planned is left alone, and said.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from filestore import (
    adding,
    catching_up,
    checking_sources,
    chunkfile,
    conflict_marks,
    drift,
    inspecting,
    links,
    picking,
    records,
    removal,
    resolving,
    source_drift,
    syncing,
    truth,
    worktree,
)
from filestore.catalog import Catalog, Conflict
from filestore.errors import FilestoreError
from filestore.fileio import WriteFailedError
from filestore.findings import CODES, Finding, worst_first
from filestore.gathering import Gathering, looks_at, source_state, state_of
from filestore.hashing import content_hash
from filestore.observation import Observation
from filestore.parts import Parts
from filestore.plans import ABSENT, Plan, Policy, State, Step, moved_on
from filestore.progress import OnProgress, ignore
from filestore.repair import RepairReport
from filestore.replacing import ChangedMeanwhile
from filestore.restoring import Restoring

if TYPE_CHECKING:
    from filestore.indexing import Commit
    from filestore.subject import Subject

_VECTORS: Final = frozenset({"embeddings-damaged", "vector-missing"})
_FOLLOWING: Final = {
    # What mending a part brings about, and the sync after it sees to.
    "rebuild-catalog": frozenset(CODES),
    "salvage": _VECTORS,
    "embed": syncing.INDEX_CODES | _VECTORS | {"index-foreign"},
    "rebuild-index": syncing.INDEX_CODES | _VECTORS | {"index-foreign"},
    "rebuild-fulltext": frozenset(
        {"fulltext-missing", "fulltext-damaged", "fulltext-behind", "fulltext-mismatch"}
    ),
}


def apply(parts: Parts, chosen: Plan, *, on_progress: OnProgress = ignore) -> RepairReport:
    """Apply the steps of a plan that its policy allows, then verify again.

    Raises:
        GitBusyError: Truth files are to be written in the middle of a merge or the like.
        LockedError: Another writer holds the store.
        WriteFailedError: The disk refused; what was applied before stays, and can be undone.
    """
    work = _Applying(parts, chosen, on_progress)
    work.run()
    remaining = chosen.findings
    if work.applied:
        remaining = inspecting.verified(parts, chosen.level, None, on_progress).findings
    return RepairReport(
        plan=chosen,
        applied=tuple(work.applied),
        skipped=tuple(work.skipped),
        remaining=tuple(worst_first(list(remaining))),
        undo=(work.group,) if work.group else (),
        embedded=work.embedded,
        reused=work.reused,
        problem=work.problem,
    )


@dataclass(slots=True)
class _Changes:
    """Truth files to be written together, paths relative to the store root."""

    before: dict[str, bytes | None] = field(default_factory=dict)
    after: dict[str, bytes | None] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    """Files whose conflict is resolved, below `chunked/`."""


class _Applying:
    """One plan being applied."""

    def __init__(self, parts: Parts, chosen: Plan, on_progress: OnProgress) -> None:
        self._parts = parts
        self._plan = chosen
        self._on_progress = on_progress
        self._clock = parts.clock()
        self.applied: list[Step] = []
        self.skipped: list[tuple[Step, str]] = []
        self.group = ""
        """Under which name all originals are kept."""
        self.embedded = 0
        self.reused = 0
        self.problem: FilestoreError | None = None

    def run(self) -> None:
        """Apply everything that still holds: files first, then the sidecar, then sources."""
        steps = self._plan.doable
        if any(step.truth for step in steps):
            worktree.refuse_during_operation(self._parts.places.root)
        steps = tuple(self._of_this_generation(steps))
        written = [step for step in steps if step.truth and step.kind != "reingest"]
        if written:
            self._write(written)
        self._follow([step for step in steps if not step.truth])
        again = [step for step in steps if step.kind == "reingest"]
        if again or any(step.kind.startswith("resolve-") for step in self.applied):
            self._take_in(again)

    def _skip(self, step: Step, reason: str) -> None:
        self.skipped.append((step, reason))

    def _of_this_generation(self, steps: Iterable[Step]) -> Iterator[Step]:
        """What mends a part holds only for the generation in which it was found."""
        with self._parts.looking(sound=True) as (subject, has_catalog):
            now = (subject.catalog.identity, subject.catalog.generation) if has_catalog else ("", 0)
        planned = (self._plan.identity, self._plan.generation)
        for step in steps:
            if step.part and now != planned and self._plan.identity:
                self._skip(step, f"the store is at generation {now[1]}, planned was {planned[1]}")
            else:
                yield step

    def _holding(self, subject: "Subject", steps: Sequence[Step]) -> Iterator[Step]:
        """The steps whose files are as they were planned on; the rest is skipped, and said."""
        now = _states(subject, {path for step in steps for path in step.seen})
        for step in steps:
            others = [path for path, state in step.seen.items() if not state.holds(now[path])]
            if others:
                self._skip(step, moved_on(others[0], step.seen[others[0]], now[others[0]]))
            else:
                yield step

    # Truth files

    def _write(self, steps: Sequence[Step]) -> None:
        with self._parts.writing("repair") as (catalog, embeddings, _):
            subject = self._parts.subject(catalog, embeddings)
            changes, batch = self._changed(subject, list(self._holding(subject, steps)))
            if not changes.steps:
                return
            self.group = self.group or batch or ""
            self.applied += changes.steps
            self._index(subject, partial(self._parts.commit, catalog, embeddings), changes)

    def _changed(self, subject: "Subject", steps: Sequence[Step]) -> tuple[_Changes, str | None]:
        """Write what steps ask for; who edits a file in this moment is left alone, and it is said.

        Returns:
            What was written, and the batch with the originals.
        """
        making = _Making(subject, self._plan.policy)
        while True:
            changes = _Changes()
            for step in steps:
                reason = making.take(step, changes)
                if reason:
                    self._skip(step, reason)
            if not changes.steps:
                return changes, None
            try:
                return changes, truth.change(
                    subject.places,
                    changes.after,
                    before=changes.before,
                    command="repair",
                    last=changes.last,
                    group=self.group,
                    unknown=_unknown(subject.catalog, changes.before),
                )
            except ChangedMeanwhile as error:
                late = [step for step in changes.steps if set(step.seen) & set(error.paths)]
                if not late:
                    raise
                for step in late:
                    self._skip(step, "it changed in this moment")
                steps = [step for step in changes.steps if step not in late]

    def _index(
        self, subject: "Subject", open_commit: "Callable[..., Commit]", changes: _Changes
    ) -> None:
        """Bring the sidecar in step with the truth files that were written."""
        ours = {_below(path): data for path, data in changes.after.items()}
        with open_commit(embed=True) as commit:
            commit.forget([path for path, data in ours.items() if data is None])
            syncing.put_settled(
                subject,
                commit,
                [path for path, data in ours.items() if data is not None],
                self._clock,
                self._on_progress,
            )
            commit.settle_conflicts(changes.settled, ())
            done = commit.finish()
        self._count(done.embedded, done.reused, done.problem)

    def _count(self, embedded: int, reused: int, problem: FilestoreError | None) -> None:
        self.embedded += embedded
        self.reused += reused
        self.problem = self.problem or problem

    # The sidecar

    def _follow(self, steps: Sequence[Step]) -> None:
        if not steps:
            return
        with self._parts.looking(sound=bool(self._plan.identity)) as (subject, _):
            holding = list(self._holding(subject, steps))
        codes = {code for step in holding if step.part for code in step.codes}
        broken = [
            finding
            for finding in self._plan.findings
            if finding.code in codes and self._plan.policy.concerns(finding)
        ]
        if broken:
            catching_up.mend(self._parts, broken, self._plan.unsound)
        if not holding:
            return
        report = catching_up.follow(
            self._parts, catching_up.Wanted(chosen=_chooser(holding)), self._on_progress
        )
        done = {(found.code, found.path) for found in report.applied}
        for step in holding:
            if step.part or step.kind == "withhold" or (step.codes[0], step.path) in done:
                self.applied.append(step)
            else:
                self._skip(step, "it was mended by then")
        self._count(report.embedded, report.reused, report.problem)

    # Sources

    def _take_in(self, steps: Sequence[Step]) -> None:
        """Take sources in again: those of steps, and those whose conflicts were resolved."""
        with self._parts.writing("repair") as (catalog, embeddings, _):
            subject = self._parts.subject(catalog, embeddings)
            holding = list(self._holding(subject, steps))
            gathering = Gathering(
                subject, self._plan.policy, has_catalog=True, on_progress=self._on_progress
            )
            wanted: dict[str, list[Step]] = {}
            for step in holding:
                found = gathering.record_of(step.path)
                if found is None:
                    self._skip(step, "no record names it any more")
                else:
                    wanted.setdefault(found[0], []).append(step)
            for path in self._resolved_records(catalog):
                wanted.setdefault(path, [])
            open_commit = partial(self._parts.commit, catalog, embeddings, embed=True)
            for record_path, mended in wanted.items():
                self._add(subject, open_commit, record_path, mended)

    def _resolved_records(self, catalog: Catalog) -> list[str]:
        resolved = [s.path for s in self.applied if s.kind.startswith("resolve-")]
        rows = catalog.files([_below(path) for path in resolved])
        names = {row.resource for row in rows.values()}
        names |= {_below(path).partition("/")[0] for path in resolved}
        return sorted({path for name in names for path in catalog.record_paths(name)})

    def _add(
        self,
        subject: "Subject",
        open_commit: "Callable[[], Commit]",
        record_path: str,
        steps: Sequence[Step],
    ) -> None:
        settings = self._parts.settings
        try:
            sources = adding.recorded_sources(
                subject.places,
                settings.layout,
                [record_path],
                trusted=subject.may_reach_sources,
            )
            report = adding.add_all(
                subject,
                open_commit,
                settings,
                sources,
                clock=self._clock,
                on_progress=self._on_progress,
                group=self.group,
            )
        except WriteFailedError:
            raise
        except FilestoreError as error:
            for step in steps:
                self._skip(step, error.message)
            return
        errors = [outcome.error for outcome in report.outcomes if outcome.error is not None]
        for step in steps:
            if errors:
                self._skip(step, errors[0].message)
            else:
                self.applied.append(step)
        kept = (outcome.undo for outcome in report.outcomes if outcome.undo is not None)
        self.group = self.group or next(kept, "")
        self._count(report.embedded, report.reused, report.problem)


class _MovedOnError(FilestoreError):
    """A file changed between being looked at and being read."""


class _Making:
    """Steps into the bytes of truth files. The writer's lock is held."""

    def __init__(self, subject: "Subject", policy: Policy) -> None:
        self._subject = subject
        self._restoring = Restoring(subject.places, subject.catalog)
        self._gathering = Gathering(subject, policy, has_catalog=True, on_progress=ignore)
        self._conflicts = {one.path: one for one in subject.catalog.conflicts()}

    def take(self, step: Step, changes: _Changes) -> str:
        """Note what a step changes, all or nothing; returns why it cannot be made, or ""."""
        make = {
            "restore": self._restored,
            "relink": self._relinked,
            "remove": self._removed,
            "remove-duplicate": self._without,
            "take-ours": self._sided,
            "take-theirs": self._sided,
            "resolve-ours": self._resolved,
            "resolve-theirs": self._resolved,
        }[step.kind]
        try:
            made = make(step, changes)
            before = {path: self._before(step, path) for path in made}
        except FilestoreError as error:
            return error.message
        changes.before |= before
        changes.after |= made
        changes.last += [path for path in made if path.endswith(".json")]
        changes.settled += [_below(step.path)] if step.kind.startswith("resolve-") else []
        changes.steps.append(step)
        return ""

    def _restored(self, step: Step, _: _Changes) -> dict[str, bytes | None]:
        data = self._restoring.fetch(_below(step.path), step.hash, step.blob)
        if data is None:
            raise _MovedOnError("what was to be brought back is no longer kept")
        return {step.path: data}

    def _relinked(self, step: Step, changes: _Changes) -> dict[str, bytes | None]:
        # What another step makes of the file is what is linked anew.
        data = changes.after.get(step.path) or self._before(step, step.path) or b""
        targets = self._gathering.moved_targets(step.path)
        return {step.path: links.relinked(data, _below(step.path), targets)}

    def _resolved(self, step: Step, _: _Changes) -> dict[str, bytes | None]:
        conflict, data = self._conflicts.get(_below(step.path)), self._before(step, step.path)
        if conflict is None or data is None:
            raise _MovedOnError("nothing waits for a choice there any more")
        if not self._is_open(conflict, data):
            raise _MovedOnError(
                "the file or its source moved on since the conflict was found: add the source again"
            )
        choice: resolving.Choice = "ours" if step.kind == "resolve-ours" else "theirs"
        made = resolving.resolve(data, conflict, choice)
        if step.hash != (content_hash(made).hex() if made is not None else ""):
            raise _MovedOnError("the source was added again since the plan was made")
        return {step.path: made}

    def _sided(self, step: Step, _: _Changes) -> dict[str, bytes | None]:
        removal.refuse_unmerged(self._subject.places, [_below(step.path)])
        data = self._before(step, step.path)
        made = conflict_marks.with_side(data or b"", picking.SIDES[step.kind])
        if data is None or step.hash != content_hash(made).hex():
            raise _MovedOnError("its marks changed since the plan was made")
        return {step.path: made}

    def _without(self, step: Step, changes: _Changes) -> dict[str, bytes | None]:
        removal.refuse_unmerged(self._subject.places, [_below(step.path)])
        stays = self._before(step, step.other)
        if stays is None or changes.after.get(step.other, stays) != stays:
            raise _MovedOnError(f"{step.other}, which has its text, does not stay as it was")
        return {step.path: None}

    def _is_open(self, conflict: Conflict, data: bytes) -> bool:
        where = checking_sources.reachable(self._subject)
        found = source_drift.found_now(self._subject.catalog, where, conflict.source)
        return resolving.still_open(conflict, chunkfile.parse(data), found)

    def _removed(self, step: Step, changes: _Changes) -> dict[str, bytes | None]:
        record_path, record, document = self._gathering.record_of(step.path) or ("", None, None)
        if record is None or document is None:
            raise _MovedOnError("no record names it any more")
        rows = self._gathering.made_of(record, document)
        made: dict[str, bytes | None] = {drift.root_path(row.path): None for row in rows}
        path = drift.root_path(record_path)
        # Two documents of one record may go in one repair.
        data = changes.after.get(path) or self._before(step, path) or b""
        left = tuple(one for one in records.parse(data).documents if one != document)
        made[path] = records.serialize(replace(record, documents=left)) if left else None
        return made

    def _before(self, step: Step, path: str) -> bytes | None:
        """What a file holds, which is what the step was planned on."""
        planned = step.seen.get(path, ABSENT)
        for _, seen in looks_at(self._subject, [_below(path)]):
            now = state_of(seen) if isinstance(seen, Observation) else seen
            if not planned.holds(now):
                raise _MovedOnError(moved_on(path, planned, now))
            return seen.data if isinstance(seen, Observation) else None
        return None


def _states(subject: "Subject", paths: Iterable[str]) -> dict[str, State]:
    """What files of the tree and originals hold now."""
    start = f"{drift.CHUNKED}/"
    wanted = set(paths)
    ours = sorted(_below(path) for path in wanted if path.startswith(start))
    found: dict[str, State] = {}
    for path, seen in looks_at(subject, ours):
        name = drift.root_path(path)
        found[name] = state_of(seen) if isinstance(seen, Observation) else seen
    for path in wanted:
        if not path.startswith(start):
            found[path] = source_state(subject, path)
    return {path: found.get(path, ABSENT) for path in wanted}


def _chooser(steps: Sequence[Step]) -> Callable[[Finding], bool]:
    """Which findings a sync is to mend, for some steps."""
    codes = {code for step in steps if step.part for code in step.codes}
    for step in steps:
        codes |= _FOLLOWING.get(step.kind, frozenset())
    files = {(code, step.path) for step in steps if not step.part for code in step.codes}
    return lambda finding: finding.code in codes or (finding.code, finding.path) in files


def _unknown(catalog: Catalog, before: Mapping[str, bytes | None]) -> set[str]:
    """Which files hold bytes that the catalog does not know: undo leaves these to `status`."""
    rows = catalog.files([_below(path) for path in before])
    known = {drift.root_path(path): row.file_hash for path, row in rows.items()}
    return {
        path
        for path, data in before.items()
        if data is not None and content_hash(data) != known.get(path)
    }


def _below(path: str) -> str:
    return path.removeprefix(f"{drift.CHUNKED}/")
