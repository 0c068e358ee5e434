"""Undoing and redoing: the truth files of one batch put back, then the sidecar brought in step.

One rule: all files of a batch or none. A file that holds neither what the batch wrote nor what was
there before was edited since, and is nobody's to overwrite.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from filestore import replacing, syncing
from filestore.drift import CHUNKED
from filestore.errors import FilestoreError, RefusedError
from filestore.fileio import FileSystemClock, read_below
from filestore.hashing import content_hash
from filestore.indexing import Commit, CommitReport
from filestore.originals import Batch, BatchMissingError, Entry, Originals, State, Version
from filestore.progress import OnProgress, ignore
from filestore.replacing import ChangedMeanwhile, Content, HalfReplacedError, Replacement, Seen
from filestore.safe_text import shown_path
from filestore.subject import Subject
from filestore.worktree import refuse_during_operation

_NAMED: Final = 20
"""So many edited files are named in a refusal; the rest is counted."""


class EditedSinceError(RefusedError):
    """Files of a batch were edited since, so that putting them back would lose something."""

    def __init__(
        self, message: str, *, paths: Sequence[str] = (), remedy: str = "", detail: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy, detail=detail)
        self.paths = tuple(paths)
        """Relative to the store root."""


class AlreadyThereError(RefusedError):
    """A batch is on the wanted side already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A batch that was undone or redone."""

    identifier: str
    what: str
    """The command that had made the change."""
    paths: tuple[str, ...]
    """Its files, relative to the store root."""
    embedded: int
    reused: int
    problem: FilestoreError | None
    """Why texts were left without embedding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """A batch, the side it is to be brought to, and its files as they are."""

    root: int
    originals: Originals
    batch: Batch
    wanted: State
    seen: Mapping[str, Seen | None]
    strange: frozenset[str]
    """Paths at which something else than a file stands."""

    def holds(self, path: str, version: Version | None) -> bool:
        """Whether a file holds a version."""
        there = self.seen.get(path)
        held = there.digest if there else None
        return path not in self.strange and held == (version.digest if version else None)

    def edited(self) -> list[str]:
        """The files that hold neither side."""
        return sorted(
            entry.path
            for entry in self.batch.entries
            if not (self.holds(entry.path, entry.before) or self.holds(entry.path, entry.after))
        )

    def replacements(self) -> list[Replacement]:
        """What is to happen to the files that do not hold what is wanted."""
        return [
            Replacement(
                path=entry.path,
                before=self._now(entry.path),
                after=self._kept(f"{number}.{self.wanted}", self._goal(entry)),
            )
            for number, entry in enumerate(self.batch.entries)
            if self._is_due(entry)
        ]

    def _goal(self, entry: Entry) -> Version | None:
        return entry.before if self.wanted == "before" else entry.after

    def _is_due(self, entry: Entry) -> bool:
        goal = self._goal(entry)
        # Without a mode the change never came as far as this file: nothing was taken from it.
        never_made = goal is not None and goal.mode is None
        return not (never_made or self.holds(entry.path, goal))

    def _now(self, path: str) -> Content | None:
        there = self.seen[path]
        if there is None:
            return None
        read = partial(_read, self.root, path, there.digest)
        return Content(digest=there.digest, read=read, mode=there.mode)

    def _kept(self, blob: str, version: Version | None) -> Content | None:
        if version is None:
            return None
        read = partial(self.originals.blob, self.batch.identifier, blob, version.digest)
        return Content(digest=version.digest, read=read, mode=version.mode)


def turn(
    subject: Subject,
    open_commit: Callable[[], Commit],
    identifier: str | None,
    wanted: State,
    *,
    clock: FileSystemClock,
    on_progress: OnProgress = ignore,
) -> Turned | None:
    """Undo or redo: bring the files of a batch to what they held before it, or after it.

    One that died in the middle is completed.

    Args:
        subject: The store; the writer's lock is held.
        open_commit: Opens the commit that brings the sidecar in step.
        identifier: The batch; None for the newest that is not undone, or what was undone last.
        wanted: ``before`` undoes, ``after`` redoes.
        clock: The file system's.
        on_progress: Told how far indexing is.

    Returns:
        What was done; None where there is nothing to do.

    Raises:
        EditedSinceError: Files were edited since; none was touched.
        AlreadyThereError: They hold what is wanted already.
        BatchMissingError: There is none of this name.
        BatchInvalidError: What was kept is damaged.
        GitBusyError: A merge, rebase or the like is under way.
        WriteFailedError: The disk refused; all is as it was, unless it says otherwise.
    """
    refuse_during_operation(subject.places.root)
    if not os.path.isdir(subject.places.undo):
        if identifier is None:
            return None
        raise BatchMissingError("nothing was kept yet", remedy="filestore undo --list")
    root = os.open(subject.places.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with Originals.open(subject.places.undo) as originals:
            if identifier is not None:
                batch: Batch | None = originals.batch(identifier)
            else:
                batch = _chosen(root, originals, wanted)
            if batch is None:
                return None
            there = _put(_look(root, originals, batch, wanted))
            report = _index(subject, open_commit, there, clock, on_progress)
            # Last: whoever dies before this has the sidecar brought in step by the next call.
            originals.finish(batch.identifier)
    finally:
        os.close(root)
    return Turned(
        identifier=batch.identifier,
        what=batch.what,
        paths=tuple(sorted(there)),
        embedded=report.embedded if report else 0,
        reused=report.reused if report else 0,
        problem=report.problem if report else None,
    )


def choices(batches: Iterable[Batch], wanted: State) -> list[Batch]:
    """The batches that may be undone or redone, the one that is meant first; pure.

    First what a writer that died was at, then the newest that is not undone, or what was undone
    last.
    """
    usable = [batch for batch in batches if not batch.problem]
    broken_off = [b for b in usable if b.underway and b.wanted == wanted and b.sequence]
    others = [batch for batch in usable if batch.wanted != wanted]
    key = _by_number if wanted == "before" else _by_sequence
    return [
        *sorted(broken_off, key=_by_sequence, reverse=True),
        *sorted(others, key=key, reverse=True),
    ]


def _by_number(batch: Batch) -> int:
    return int(batch.identifier)


def _by_sequence(batch: Batch) -> int:
    return batch.sequence


def _chosen(root: int, originals: Originals, wanted: State) -> Batch | None:
    for batch in choices(originals.batches(), wanted):
        if not (batch.underway and batch.sequence == 0):
            return batch
        turn = _look(root, originals, batch, wanted)
        if not all(turn.holds(entry.path, entry.before) for entry in batch.entries):
            return batch
        # Its writer died before it changed the first file: there is nothing to take back.
        originals.discard(batch.identifier)
    return None


def _look(root: int, originals: Originals, batch: Batch, wanted: State) -> _Turn:
    seen: dict[str, Seen | None] = {}
    strange = set()
    for entry in batch.entries:
        try:
            seen[entry.path] = replacing.look(root, entry.path)
        except ChangedMeanwhile:
            strange.add(entry.path)
    return _Turn(
        root=root,
        originals=originals,
        batch=batch,
        wanted=wanted,
        seen=seen,
        strange=frozenset(strange),
    )


def _read(root: int, path: str, digest: bytes) -> bytes:
    data, _ = read_below(root, path)
    if content_hash(data) != digest:
        raise ChangedMeanwhile(f"{path} was edited meanwhile", paths=[path])
    return data


def _put(turn: _Turn) -> dict[str, bool]:
    """Bring the files of a batch to one side: each path with whether there is a file then."""
    batch = turn.batch
    edited = turn.edited()
    if edited:
        raise _edited_since(turn, edited)
    replacements = turn.replacements()
    if not replacements and batch.wanted == turn.wanted and not batch.underway:
        word, other = ("undone", "redo") if turn.wanted == "before" else ("in place", "undo")
        raise AlreadyThereError(
            f"{batch.identifier} ({batch.what}) is {word} already",
            remedy=f"filestore {other} {batch.identifier}",
        )
    _replace(turn, replacements)
    there = {path: seen is not None for path, seen in turn.seen.items()}
    return there | {one.path: one.after is not None for one in replacements}


def _replace(turn: _Turn, replacements: Sequence[Replacement]) -> None:
    batch, blobs = turn.batch, {}
    if turn.wanted == "before":
        blobs = {one.path: one.before for one in replacements if one.before is not None}
    entries = tuple(
        replace(entry, after=Version(digest=entry.after.digest, mode=blobs[entry.path].mode))
        if entry.after and entry.path in blobs
        else entry
        for entry in batch.entries
    )
    with replacing.Replacing(turn.root, replacements) as swap:
        swap.check()
        swap.stage()
        turn.originals.turn(replace(batch, entries=entries), turn.wanted, blobs)
        try:
            swap.apply()
        except BaseException as error:
            if not swap.touched:
                turn.originals.turn_back(batch)
            elif isinstance(error, HalfReplacedError):
                command = "undo" if turn.wanted == "before" else "redo"
                error.remedy = f"{error.remedy}: filestore {command} {batch.identifier}"
            raise


def _index(
    subject: Subject,
    open_commit: Callable[[], Commit],
    there: Mapping[str, bool],
    clock: FileSystemClock,
    on_progress: OnProgress,
) -> CommitReport | None:
    """Bring the sidecar in step with the chunk files among them."""
    start = f"{CHUNKED}/"
    ours = [path.removeprefix(start) for path in sorted(there) if path.startswith(start)]
    present = [path for path in ours if there[start + path]]
    if not ours:
        return None
    with open_commit() as commit:
        commit.forget(sorted(set(ours).difference(present)))
        syncing.put_settled(subject, commit, present, clock, on_progress)
        return commit.finish()


def _edited_since(turn: _Turn, edited: Sequence[str]) -> EditedSinceError:
    """Say which files stand in the way, and what to do about them."""
    batch = turn.batch
    by = {
        entry.path: later.identifier
        for later in turn.originals.batches()
        for entry in later.entries
        if later.wanted == "after"
        and _by_number(later) > _by_number(batch)
        and turn.holds(entry.path, entry.after)
    }
    lines = [
        f"  {shown_path(path)}" + (f" (by {by[path]})" if path in by else "")
        for path in edited[:_NAMED]
    ]
    if len(edited) > _NAMED:
        lines.append(f"  … and {len(edited) - _NAMED} more")
    word = "undone" if turn.wanted == "before" else "redone"
    return EditedSinceError(
        "\n".join([f"{batch.identifier} cannot be {word}, files were edited since:", *lines]),
        paths=edited,
        remedy=_way_out(edited, by),
        detail=f"{batch.what}: {len(edited)} of {len(batch.entries)} files were edited since",
    )


def _way_out(edited: Sequence[str], by: Mapping[str, str]) -> str:
    if all(path in by for path in edited):
        return f"filestore undo {max(by[path] for path in edited)}"
    first = shown_path(next(path for path in edited if path not in by))
    return f"'git diff', then one file at a time: filestore repair --path {first}"
