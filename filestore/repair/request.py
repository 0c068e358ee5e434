"""What a person wants repaired, the plan of it, and the two versions of a file to choose between.

Changes nothing: `apply` does. `inspector` reads, `planner` decides. One rule: a choice is offered
only with the command that makes it.
"""

import contextlib
import os
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from filestore.browse import evidence_notes
from filestore.browse.evidence_notes import Present
from filestore.catalog import Catalog
from filestore.chunks.frontmatter import split
from filestore.chunks.observation import UNMERGED, why_excluded
from filestore.config.layout import Places
from filestore.core.caller import absolute, working_folder
from filestore.core.codes import CODES, codes_where
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.findings import Finding
from filestore.core.paths import (
    NO_PATH,
    ChunkPath,
    StorePath,
    is_below,
)
from filestore.core.progress import OnProgress, ignore
from filestore.core.safe_text import shell_word, shown_path
from filestore.core.schema import JsonObject
from filestore.fs.path_names import typed_paths
from filestore.git import merge, repository, stopped
from filestore.history.batch import may_change
from filestore.repair import planner
from filestore.repair.inspector import Inspector
from filestore.repair.plan import Plan, Policy, SkippedStep, Step
from filestore.sidecar.refusals import refuse_useless
from filestore.sidecar.session import Parts
from filestore.sidecar.snapshot import LEVELS, SeenFiles
from filestore.verify import run

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import Level, StoreSnapshot

StrPath = str | os.PathLike[str]


class RepairReport(JsonObject, Struct, frozen=True, kw_only=True):
    """What a repair did."""

    KEYS = "plan applied skipped remaining undo embedded reused"

    plan: Plan
    """What was planned."""
    applied: tuple[Step, ...]
    """Steps that were applied."""
    skipped: tuple[tuple[Step, str], ...]
    """With the reason."""
    remaining: tuple[Finding, ...]
    """What a verification found afterwards."""
    not_checked: tuple[str, ...]
    """What that left out."""
    undo: str
    """What `Store.undo` takes back: the batch with the files as they were; "" for none."""
    embedded: int = 0
    """Texts that the model embedded."""
    reused: int = 0
    """Texts whose embedding came from the cache."""
    problem: FilestoreError | None = None
    """Why texts were left without embedding."""

    @property
    def json_skipped(self) -> list[SkippedStep]:
        """Steps that were not applied."""
        return [SkippedStep(**asdict(step), reason=reason) for step, reason in self.skipped]

    @property
    def json_undo(self) -> list[str]:
        """The name that `undo` takes, if files were written."""
        return [self.undo] if self.undo else []


class UnknownRepairPathError(FilestoreError, KeyError):
    """A path to be repaired is none of the store."""

    def __str__(self) -> str:
        return self.message


class NoCopyError(RefusedError):
    """A file is to be removed as a copy, and no other file that stays has its text."""


class ConflictMovedOnError(FilestoreError):
    """A choice was made in a conflict that is about other texts than there are now."""


def policy_of(
    places: Places,
    *,
    truth: bool = False,
    only: Sequence[str] = (),
    paths: Sequence[StrPath] = (),
    ours: Sequence[StrPath] = (),
    theirs: Sequence[StrPath] = (),
    remove: Sequence[StrPath] = (),
    hunks: Sequence[str] = (),
) -> Policy:
    """What a person wants, with paths as findings have them.

    Args:
        places: Where the store lies.
        truth: Whether files of the tree may be written.
        only: Codes; none for all.
        paths: Relative to the store root, to `chunked/` or to the working folder.
        ours: Files whose edit is kept, or that take our side of git's conflict.
        theirs: Files that take the new text of their source, or their side of git's conflict.
        remove: Files that go, because others have their text.
        hunks: ``SIDE,SIDE:PATH``: a side for each hunk of git's conflict in a file.

    Raises:
        UsageError: There is no such code or side, or a file is to be both.
    """
    unknown = sorted(set(only) - CODES.keys())
    if unknown:
        raise UsageError(
            f"no finding is called {unknown[0]!r}", remedy="'filestore verify' prints the codes"
        )
    by_hunk: dict[StorePath, tuple[merge.Side, ...]] = {}
    for text in hunks:
        words, _, path = text.partition(":")
        sides: tuple[merge.Side, ...] = ()
        with contextlib.suppress(ValidationError):
            sides = convert(words.split(","), tuple[merge.Side, ...])
        if not path or not sides or by_hunk.setdefault(named(places, path), sides) != sides:
            raise UsageError(
                f"--hunks {text}: not one list of sides for a path"
                "; write a word for each hunk: ours,theirs,both,keep:PATH",
            )
    chosen: dict[str, str] = {}
    choices = {
        word: tuple(named(places, path) for path in given)
        for word, given in (("ours", ours), ("theirs", theirs), ("remove", remove))
    }
    for word, of_word in (*choices.items(), ("hunks", by_hunk)):
        for path in of_word:
            if chosen.setdefault(path, word) != word:
                raise UsageError(f"{path}: either --{chosen[path]} or --{word}; choose one of them")
    return Policy(
        truth=truth,
        only=frozenset(only),
        paths=tuple(named(places, path) for path in paths),
        hunks=tuple(by_hunk.items()),
        **choices,
    )


def level_for(only: Iterable[str]) -> "Level":
    """How thoroughly to look for some codes: stats alone do not tell of damage."""
    return max((CODES[code].level for code in only), key=LEVELS.index, default="fast")


def named(places: Places, path: StrPath) -> StorePath:
    """A path that a person gave, relative to the store root; the file need not be there."""
    starts = (places.root, places.chunked, working_folder())
    for place in map(absolute, typed_paths(os.fspath(path), starts)):
        if os.path.lexists(place):
            return StorePath(os.path.relpath(place, places.root))
    whole = absolute(os.fspath(path))
    if is_below(whole, places.chunked):
        return StorePath(os.path.relpath(whole, places.root))
    normal = os.path.normpath(path)
    tree = places.tree
    is_rooted = normal.partition("/")[0] in (tree.folder, "source", "..", tree.sidecar)
    return StorePath(normal) if is_rooted else tree.store_path(ChunkPath(normal))


def plan(
    parts: Parts, policy: Policy, *, level: "Level" = "fast", on_progress: OnProgress = ignore
) -> Plan:
    """Verify, and say what a repair would do; changes nothing.

    Raises:
        NotWrittenError: Documents that are indexed in place were to be written.
        ConflictMovedOnError: A choice is about other texts than there are now.
        NoCopyError: A file is to go, and nothing else has its text.
        UnknownRepairPathError: A path of the policy is none of the store.
    """
    if policy.remove:
        refuse_useless(parts.places, "repair")
    seen = SeenFiles()
    checked = run.verified(parts, level, None, on_progress, seen=seen)
    # A person lives with what is accepted, unless they name it now.
    is_named = bool(policy.only or policy.paths or policy.named)
    accepted = parts.settings.accepted if not is_named else {}
    found = [
        one for one in checked.findings if one.safe or one.path not in accepted.get(one.code, ())
    ]
    found += _unmerged(parts.places, policy, {one.path for one in found if one.meaning.sides})
    unopened = codes_where(about="catalog", unopened=True)
    is_sound = not any(finding.code in unopened for finding in found)
    with parts.looking(sound=is_sound) as (snapshot, has_catalog):
        _check_paths(parts.places, snapshot.catalog, policy, found)
        if policy.truth and policy.paths and not policy.only:
            policy = replace(policy, lost=_lost(snapshot, policy, found))
        snapshot = replace(snapshot, seen=seen)
        inspector = Inspector(snapshot, policy, has_catalog=has_catalog, on_progress=on_progress)
        inspected = inspector.inspect(found, checked.unsound)
        made = planner.make(found, inspected, policy, level=level)
    for one in made.left:
        if one.finding.code == "duplicate":
            raise NoCopyError(
                f"{one.finding.path} is not removed: {one.reason}",
                remedy="'filestore verify' lists which files have a text in common, as duplicate",
            )
    return replace(made, findings=checked.findings, unsound=checked.unsound)


def _unmerged(places: Places, policy: Policy, known: Container[StorePath]) -> list[Finding]:
    """Named files that git has as unmerged: a look at stats does not always tell."""
    return [
        Finding(code="conflict-markers", path=path, detail=why_excluded("", UNMERGED))
        for path in dict.fromkeys(policy.sided)
        if path not in known and repository.staged(places.root, path) is not None
    ]


def _check_paths(
    places: Places, catalog: Catalog, policy: Policy, findings: Sequence[Finding]
) -> None:
    conflicts = {places.tree.store_path(one.path): one for one in catalog.conflicts()}
    waiting = {finding.path for finding in findings if finding.code == "ingest-conflict"}
    marked = {finding.path for finding in findings if finding.code == "conflict-markers"}
    for path in policy.sided:
        if path in marked:
            continue
        if path in conflicts and path not in waiting:
            source = shown_path(conflicts[path].source)
            raise ConflictMovedOnError(
                f"{path}: the file or its source {source} changed again since the conflict was"
                " found",
                remedy="'filestore add' the source first, then choose",
            )
        if path not in conflicts:
            raise UnknownRepairPathError(
                f"{path}: no pending ingest conflict or git conflict for this file",
                remedy="'filestore verify' lists what does: ingest-conflict, conflict-markers",
            )
    for path in policy.remove:
        if not places.tree.covers(path) or not os.path.lexists(os.path.join(places.root, path)):
            raise UnknownRepairPathError(
                f"{path}: there is no such chunk file",
                remedy="'filestore verify' lists which files have a text in common, as duplicate",
            )
    known = {*catalog.forgotten_paths(), *catalog.folders()}
    for path in policy.paths:
        below = places.tree.chunk_path(path)
        if (
            os.path.lexists(os.path.join(places.root, path))
            or any(is_below(finding.path, path) for finding in findings)
            or any(is_below(one, below) for one in known)
            or catalog.files([below])
            or repository.is_committed(places.root, path)
        ):
            continue
        raise UnknownRepairPathError(
            f"{path}: no such file in the store, now or earlier",
            remedy="'filestore verify' prints the paths of what it finds",
        )


def _lost(
    snapshot: "StoreSnapshot", policy: Policy, findings: Sequence[Finding]
) -> tuple[StorePath, ...]:
    """Files that are gone and forgotten, where the policy names them."""
    places = snapshot.places
    forgotten = [places.tree.store_path(path) for path in snapshot.catalog.forgotten_paths()]
    reported = {finding.path for finding in findings}
    found: dict[StorePath, None] = {}
    for chosen in policy.paths:
        if any(is_below(path, chosen) for path in reported):
            continue
        found |= dict.fromkeys(path for path in forgotten if is_below(path, chosen))
        if places.tree.holds(chosen) and chosen.endswith((".md", ".json")):
            found[chosen] = None
    return tuple(path for path in found if not os.path.lexists(os.path.join(places.root, path)))


_SIDES: Final = ("ours", "theirs")

ChoiceName: TypeAlias = Literal[
    "ours", "theirs", "both", "hunks", "remove-this", "remove-other", "keep-both"
]


class NoSidesError(FilestoreError, LookupError):
    """There are not two versions to choose between."""


class SideChoice(Struct, frozen=True, kw_only=True):
    """One thing that a person can decide."""

    name: ChoiceName
    label: str
    policy: Policy | None = None
    """With which a plan does it; None where nothing is to be done, or not by this program."""
    command: str = ""
    """That does it in a shell; "" where nothing is to be done. Of ours it takes paths in the store,
    of git paths from the working folder."""


class Sides(Struct, frozen=True, kw_only=True):
    """Two versions to choose between."""

    code: str
    """The code of the finding."""
    path: StorePath
    other: StorePath = NO_PATH
    """The second file; "" where both versions are of one."""
    base: str | None = None
    """What both were made from, where that is known."""
    ours: str
    theirs: str | None
    """None where the source has no such text any more."""
    ours_label: str
    theirs_label: str
    data: bytes = b""
    """The file with the conflict markers of git."""
    hunks: tuple[merge.ConflictHunk, ...] = ()
    """Its conflicts, to be resolved one by one; see `hunks_choice`."""
    choices: tuple[SideChoice, ...]


def sides(parts: Parts, finding: Finding) -> Sides:
    """The versions that a finding is about.

    Raises:
        NoSidesError: It is about no two versions, or they are no longer there.
        CatalogMissingError: There is no catalog, which keeps the new text of a source.
    """
    if finding.code == "ingest-conflict":
        with parts.reading() as catalog:
            return _of_ingest(parts, finding.path, catalog)
    if finding.code == "duplicate":
        path, other = finding.path, finding.other
        if not other:
            remedy = "filestore verify"
            raise NoSidesError(f"{path}: the finding names no second file", remedy=remedy)
        return Sides(
            code="duplicate",
            path=path,
            other=other,
            ours=_present(parts, path).text,
            theirs=_present(parts, other).text,
            ours_label=path,
            theirs_label=other,
            choices=(
                _removal("remove-other", other, kept=path),
                _removal("remove-this", path, kept=other),
                SideChoice(name="keep-both", label="keep both files"),
            ),
        )
    if finding.code == "conflict-markers":
        path, data = finding.path, _present(parts, finding.path).data
        is_marked = data is not None and merge.conflicts(data)
        found = _of_marks(parts, path, data or b"") if is_marked else _of_index(parts, path, data)
        if may_change(path, parts.places.tree):
            return found
        return replace(found, hunks=(), choices=_by_git(parts, path))
    raise NoSidesError(f"{finding.code} is not a choice between two versions")


def _of_ingest(parts: Parts, path: StorePath, catalog: Catalog) -> Sides:
    waiting = {parts.places.tree.store_path(one.path): one for one in catalog.conflicts()}
    conflict = waiting.get(path)
    if conflict is None:
        raise NoSidesError(f"{path}: no choice waits there any more", remedy="filestore status")
    base, seen = catalog.generated(conflict.base), _present(parts, path)
    try:
        ours = Present(data=split(seen.data or b"").body).text
    except FilestoreError:
        ours = seen.text
    return Sides(
        code="ingest-conflict",
        path=path,
        base=None if base is None else base.decode("utf-8", "backslashreplace"),
        ours=ours,
        theirs=conflict.theirs,
        ours_label="the file as it was edited",
        theirs_label=f"the new text of {conflict.source}"
        if conflict.theirs is not None
        else f"{conflict.source} has no such text any more",
        choices=(
            _ours(path, "keep the edit"),
            _theirs(path, "take the new text" if conflict.theirs is not None else "delete it"),
        ),
    )


def _of_marks(parts: Parts, path: StorePath, data: bytes) -> Sides:
    """Both sides of all conflicts of a file, each as the whole file would be."""
    first, *_ = hunks = merge.conflicts(data)
    names = stopped.side_names(parts.places.root, path)
    ours, theirs = (merge.resolved(data, (side,), None) for side in ("ours", "theirs"))
    return Sides(
        code="conflict-markers",
        path=path,
        ours=Present(data=ours).text,
        theirs=Present(data=theirs).text,
        ours_label=_label("ours", names.ours or first.ours_label),
        theirs_label=_label("theirs", names.theirs or first.theirs_label),
        data=data,
        hunks=hunks,
        choices=(
            _ours(path, "take our side"),
            _theirs(path, "take their side"),
            _hunks(path, ("both",), "keep both, ours first"),
        ),
    )


def _of_index(parts: Parts, path: StorePath, data: bytes | None) -> Sides:
    """What git holds of a file that it has as unmerged and that has no markers.

    There is a choice only where the file is a side as it is: an edit is never replaced. To stay
    with that side is left to `git add`.
    """
    root = parts.places.root
    staged = repository.staged(root, path)
    if staged is None:
        raise NoSidesError(f"{path}: git does not have it as unmerged", remedy="git status")
    ours, theirs = staged
    base = repository.blob(root, path, ":1")
    names = stopped.side_names(root, path)
    add = stopped.add_command([os.path.join(root, path)], working_folder())
    choices: list[SideChoice] = []
    for side, held, choice in (("our side", ours, _ours), ("their side", theirs, _theirs)):
        if held == data:
            stays = choice(path, f"{side}, as the file is")
            choices.append(replace(stays, policy=None, command=add))
        elif data in staged:
            choices.append(choice(path, f"delete it as {side}" if held is None else f"take {side}"))
    return Sides(
        code="conflict-markers",
        path=path,
        base=None if base is None else Present(data=base).text,
        ours=Present(data=ours).text,
        theirs=None if theirs is None else Present(data=theirs).text,
        ours_label=_label("ours", names.ours, gone=ours is None),
        theirs_label=_label("theirs", names.theirs, gone=theirs is None),
        choices=tuple(choices),
    )


def _by_git(parts: Parts, path: StorePath) -> tuple[SideChoice, ...]:
    """The sides of a document that is no note: no command of ours writes it."""
    ours, theirs = (stopped.side_command(parts.places.root, path, one) for one in _SIDES)
    return (
        SideChoice(name="ours", label="our side, taken by git", command=ours),
        SideChoice(name="theirs", label="their side, taken by git", command=theirs),
    )


def _label(side: str, name: str, *, gone: bool = False) -> str:
    """A side of git's conflict with branch and commit, where they are known."""
    return (f"{side} ({name})" if name else side) + (": deleted" if gone else "")


def hunks_choice(path: StorePath, sides: tuple[merge.Side, ...]) -> SideChoice:
    """A side for each hunk of git's conflict in a file."""
    return _hunks(path, sides, "take the chosen sides")


def hunk_texts(sides: Sides, number: int) -> tuple[str, str]:
    """Both sides of one conflict of a file, with the lines around it."""
    one, hunks = sides.hunks[number], sides.hunks
    start = hunks[number - 1].end if number else 0
    end = hunks[number + 1].start if number + 1 < len(hunks) else len(sides.data)
    before = b"".join(sides.data[start : one.start].splitlines(keepends=True)[-_AROUND:])
    after = b"".join(sides.data[one.end : end].splitlines(keepends=True)[:_AROUND])
    return Present(data=before + one.ours + after).text, Present(
        data=before + one.theirs + after
    ).text


_AROUND: Final = 3
"""Lines that are shown before and after a conflict."""


def _hunks(path: StorePath, sides: tuple[merge.Side, ...], label: str) -> SideChoice:
    words = f"{','.join(sides)}:{path}"
    return SideChoice(
        name="both" if sides == ("both",) else "hunks",
        label=label,
        policy=Policy(hunks=((path, sides),)),
        command=f"filestore repair --hunks {shell_word(StorePath(words))}",
    )


def _ours(path: StorePath, label: str) -> SideChoice:
    command = f"filestore repair --ours {shell_word(path)}"
    return SideChoice(name="ours", label=label, policy=Policy(ours=(path,)), command=command)


def _theirs(path: StorePath, label: str) -> SideChoice:
    command = f"filestore repair --theirs {shell_word(path)}"
    return SideChoice(name="theirs", label=label, policy=Policy(theirs=(path,)), command=command)


def _removal(
    name: Literal["remove-this", "remove-other"], path: StorePath, *, kept: StorePath
) -> SideChoice:
    return SideChoice(
        name=name,
        label=f"keep {kept}, remove {path}",
        policy=Policy(remove=(path,)),
        command=f"filestore repair --remove {shell_word(path)}",
    )


def _present(parts: Parts, path: StorePath) -> Present:
    is_of_tree = parts.places.tree.holds(path)
    seen = evidence_notes.look(parts.places.root, path) if is_of_tree else evidence_notes.GONE
    if seen.data is None:
        raise NoSidesError(f"{path}: {seen.problem}", remedy="filestore status")
    return seen
