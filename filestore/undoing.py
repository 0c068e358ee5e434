"""Undoing and redoing: the truth files of one command put back, then the sidecar brought in step.

One rule: all files of a command or none. A file that holds neither what it wrote nor what was there
before was edited since, and is nobody's to overwrite.
"""

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from filestore import replacing, syncing
from filestore.batches import Batch, BatchInvalidError, Entry, Group, Link, State, Version, grouped
from filestore.drift import CHUNKED
from filestore.errors import FilestoreError, RefusedError
from filestore.fileio import FileSystemClock, read_below
from filestore.hashing import content_hash
from filestore.indexing import Commit, CommitReport
from filestore.originals import BatchMissingError, Originals
from filestore.progress import OnProgress, ignore
from filestore.replacing import (
    ChangedMeanwhile,
    Content,
    HalfReplacedError,
    Replacement,
    Seen,
    collect_staged,
)
from filestore.safe_text import shown_path
from filestore.subject import Subject
from filestore.truth import collect_leftovers
from filestore.worktree import refuse_during_operation

REPAIR: Final = "repair"
"""What the changes of a repair are called, apart from the sources that it takes in."""
_NAMED: Final = 20
"""So many edited files are named in a refusal; the rest is counted."""


class EditedSinceError(RefusedError):
    """Files of a command were edited since, so that putting them back would lose something."""

    def __init__(
        self, message: str, *, paths: Sequence[str] = (), remedy: str = "", detail: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy, detail=detail)
        self.paths = tuple(paths)
        """Relative to the store root."""


class AlreadyThereError(RefusedError):
    """A command is on the wanted side already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A command that was undone or redone."""

    identifier: str
    what: str
    """The command that had made the change."""
    paths: tuple[str, ...]
    """Its files, relative to the store root."""
    embedded: int
    reused: int
    problem: FilestoreError | None
    """Why texts were left without embedding."""
    brought_back: int = 0
    """Files that were not there before."""
    changed: int = 0
    """Files that hold something else than before."""
    removed: int = 0
    """Files that are not there any more."""
    differing: tuple[str, ...] = ()
    """Files that are again as a repair had found them: `status` tells what is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """What became of the files of a command."""

    there: Mapping[str, bool]
    """Each with whether there is a file now."""
    replaced: Sequence[Replacement]
    found_again: frozenset[str]
    """Those whose finding, which a repair had mended, is back: the index is left as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What a command changed, the side it is to be brought to, and its files as they are."""

    root: int
    originals: Originals
    group: Group
    links: Mapping[str, tuple[Link, ...]]
    """Each file with its changes, oldest first."""
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
        """The files that hold nothing of what they were made to hold, nor what was there before."""
        return sorted(
            path
            for path, links in self.links.items()
            if not any(
                self.holds(path, side)
                for one in links
                for side in (one.entry.before, one.entry.after)
            )
        )

    def replacements(self) -> list[Replacement]:
        """What is to happen to the files that do not hold what is wanted."""
        found = []
        for path, links in self.links.items():
            link = self.goal(links)
            if link is None or self.holds(path, self._side(link.entry)):
                continue
            after = self._kept(link)
            found.append(Replacement(path=path, before=self._now(path), after=after))
        return found

    def goal(self, links: Sequence[Link]) -> Link | None:
        """The change of a file whose wanted side it is to hold; None where it is to stay."""
        if self.wanted == "before":
            return links[0]
        for link in reversed(links):
            # Without a mode the change never came as far as this file: nothing was taken from it.
            if link.entry.after is None or link.entry.after.mode is not None:
                return link
        return None

    def _side(self, entry: Entry) -> Version | None:
        return entry.before if self.wanted == "before" else entry.after

    def _now(self, path: str) -> Content | None:
        there = self.seen[path]
        if there is None:
            return None
        read = partial(self._held, path, there.digest)
        return Content(digest=there.digest, read=read, mode=there.mode)

    def _held(self, path: str, digest: bytes) -> bytes:
        """What a file held when it was looked at; what was replaced since is kept in a batch."""
        try:
            return _read(self.root, path, digest)
        except (OSError, ChangedMeanwhile):
            for link in self.links[path]:
                for side, version in (("before", link.entry.before), ("after", link.entry.after)):
                    if version and version.digest == digest:
                        with contextlib.suppress(BatchInvalidError):
                            return self.originals.blob(link.batch, f"{link.number}.{side}", digest)
            raise

    def _kept(self, link: Link) -> Content | None:
        version = self._side(link.entry)
        if version is None:
            return None
        blob = f"{link.number}.{self.wanted}"
        read = partial(self.originals.blob, link.batch, blob, version.digest)
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
    """Undo or redo: bring the files of a command to what they held before it, or after it.

    One that died in the middle is completed.

    Args:
        subject: The store; the writer's lock is held.
        open_commit: Opens the commit that brings the sidecar in step.
        identifier: Any batch of it; None for the newest that is not undone, or what was undone
            last.
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
    collect_leftovers(subject.places)
    if not os.path.isdir(subject.places.undo):
        if identifier is None:
            return None
        raise BatchMissingError("nothing was kept yet", remedy="filestore undo --list")
    root = os.open(subject.places.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with Originals.open(subject.places.undo) as originals:
            if identifier is not None:
                group: Group | None = _named(originals, identifier)
            else:
                group = _chosen(root, originals, wanted)
            if group is None:
                return None
            done = _put(_look(root, originals, group, wanted))
            # A writer that died staged files also in folders where nothing had to be put back.
            for folder in {os.path.dirname(path) for path in group.links()}:
                collect_staged(root, folder)
            report = _index(subject, open_commit, done, clock, on_progress)
            # Last: whoever dies before this has the sidecar brought in step by the next call.
            for batch in group.batches:
                originals.finish(batch.identifier)
    finally:
        os.close(root)
    return _turned(group, done, report)


def _turned(group: Group, done: _Done, report: CommitReport | None) -> Turned:
    return Turned(
        identifier=group.identifier,
        what=group.what,
        paths=tuple(sorted(done.there)),
        brought_back=sum(one.before is None for one in done.replaced),
        changed=sum(one.before is not None and one.after is not None for one in done.replaced),
        removed=sum(one.after is None for one in done.replaced),
        differing=tuple(sorted(done.found_again)),
        embedded=report.embedded if report else 0,
        reused=report.reused if report else 0,
        problem=report.problem if report else None,
    )


def choices(batches: Iterable[Batch], wanted: State) -> list[Group]:
    """What may be undone or redone, the command that is meant first; pure.

    First what a writer that died was at, then the newest that is not undone, or what was undone
    last.
    """
    groups = grouped(batch for batch in batches if not batch.problem)
    broken_off = [group for group in groups if _is_broken_off(group, wanted)]
    others = [
        group for group in groups if not group.is_all(wanted) and not _is_broken_off(group, wanted)
    ]
    key = _by_number if wanted == "before" else _by_sequence
    return [
        *sorted(broken_off, key=_by_sequence, reverse=True),
        *sorted(others, key=key, reverse=True),
    ]


def next_turns(batches: Iterable[Batch]) -> tuple[str, str]:
    """The changes that undo and redo would take; "" for none. Pure."""
    kept = list(batches)
    undo, redo = choices(kept, "before"), choices(kept, "after")
    return undo[0].identifier if undo else "", redo[0].identifier if redo else ""


def _is_broken_off(group: Group, wanted: State) -> bool:
    return any(one.underway and one.wanted == wanted and one.sequence for one in group.batches)


def _by_number(group: Group) -> int:
    return int(group.identifier)


def _by_sequence(group: Group) -> int:
    return group.sequence


def _named(originals: Originals, identifier: str) -> Group:
    """What a batch belongs to."""
    batch = originals.batch(identifier)
    for group in grouped(one for one in originals.batches() if not one.problem):
        if any(one.identifier == identifier for one in group.batches):
            return group
    return Group(batches=(batch,))


def _chosen(root: int, originals: Originals, wanted: State) -> Group | None:
    for group in choices(originals.batches(), wanted):
        *others, last = group.batches
        if not (last.underway and last.sequence == 0):
            return group
        turn = _look(root, originals, Group(batches=(last,)), wanted)
        if not all(turn.holds(entry.path, entry.before) for entry in last.entries):
            return group
        # Its writer died before it changed the first file: there is nothing to take back.
        originals.discard(last.identifier)
        if others:
            return Group(batches=tuple(others))
    return None


def _look(root: int, originals: Originals, group: Group, wanted: State) -> _Turn:
    seen: dict[str, Seen | None] = {}
    strange = set()
    links = group.links()
    for path in links:
        try:
            seen[path] = replacing.look(root, path)
        except ChangedMeanwhile:
            strange.add(path)
    return _Turn(
        root=root,
        originals=originals,
        group=group,
        links=links,
        wanted=wanted,
        seen=seen,
        strange=frozenset(strange),
    )


def _read(root: int, path: str, digest: bytes) -> bytes:
    data, _ = read_below(root, path)
    if content_hash(data) != digest:
        raise ChangedMeanwhile(f"{path} was edited meanwhile", paths=[path])
    return data


def _put(turn: _Turn) -> _Done:
    """Bring the files of a command to one side."""
    group = turn.group
    edited = turn.edited()
    if edited:
        raise _edited_since(turn, edited)
    replacements = turn.replacements()
    if not replacements and group.is_all(turn.wanted) and not group.underway:
        word, other = ("undone", "redo") if turn.wanted == "before" else ("in place", "undo")
        raise AlreadyThereError(
            f"{group.identifier} ({group.what}) is {word} already",
            remedy=f"filestore {other} {group.identifier}",
        )
    _replace(turn, replacements)
    there = {path: seen is not None for path, seen in turn.seen.items()}
    there |= {one.path: one.after is not None for one in replacements}
    return _Done(there=there, replaced=replacements, found_again=_found_again(turn))


def _found_again(turn: _Turn) -> frozenset[str]:
    """The files whose finding is back once a repair of them is undone.

    Gone again, or with bytes that the catalog did not know: to forget or to index them now would
    settle what a person has not decided yet. What a repair took in from a source is not among them.
    """
    if turn.wanted != "before":
        return frozenset()
    repaired = {one.identifier for one in turn.group.batches if one.what == REPAIR}
    return frozenset(
        path
        for path, (first, *_) in turn.links.items()
        if first.batch in repaired
        and (first.entry.before is None or not first.entry.before.indexed)
    )


def _replace(turn: _Turn, replacements: Sequence[Replacement]) -> None:
    with replacing.Replacing(turn.root, replacements) as swap:
        swap.check()
        swap.stage()
        noted: list[Batch] = []
        try:
            _note(turn, replacements, noted)
            swap.apply()
        except BaseException as error:
            if not swap.touched:
                for batch in noted:
                    turn.originals.turn_back(batch)
            elif isinstance(error, HalfReplacedError):
                error.remedy = f"{error.remedy}: {_command(turn)}"
            raise


def _command(turn: _Turn) -> str:
    return f"filestore {'undo' if turn.wanted == 'before' else 'redo'} {turn.group.identifier}"


def _note(turn: _Turn, replacements: Sequence[Replacement], noted: list[Batch]) -> None:
    """Note in every batch which side is wanted, and keep what would be lost by it.

    Args:
        turn: What is being done.
        replacements: What is to happen.
        noted: Batches are added as they were before.
    """
    kept: dict[tuple[str, int], Content] = {}
    if turn.wanted == "before":
        for one in replacements:
            if one.before is not None:
                kept[_keeper(turn, one.path)] = one.before
    sequence = max(batch.sequence for batch in turn.originals.batches()) + 1
    for batch in turn.group.batches:
        blobs = {number: one for (name, number), one in kept.items() if name == batch.identifier}
        entries = tuple(
            replace(entry, after=Version(digest=entry.after.digest, mode=blobs[number].mode))
            if entry.after and number in blobs
            else entry
            for number, entry in enumerate(batch.entries)
        )
        turn.originals.turn(replace(batch, entries=entries), turn.wanted, sequence, blobs)
        noted.append(batch)


def _keeper(turn: _Turn, path: str) -> tuple[str, int]:
    """The newest change that made a file what it is, by batch and number."""
    links = turn.links[path]
    made = [link for link in links if turn.holds(path, link.entry.after)]
    link = made[-1] if made else links[-1]
    return link.batch, link.number


def _index(
    subject: Subject,
    open_commit: Callable[[], Commit],
    done: _Done,
    clock: FileSystemClock,
    on_progress: OnProgress,
) -> CommitReport | None:
    """Bring the sidecar in step with the chunk files among them."""
    start = f"{CHUNKED}/"
    wanted = sorted(done.there.keys() - done.found_again)
    ours = [path.removeprefix(start) for path in wanted if path.startswith(start)]
    present = [path for path in ours if done.there[start + path]]
    if not ours:
        return None
    with open_commit() as commit:
        commit.forget(sorted(set(ours).difference(present)))
        syncing.put_settled(subject, commit, present, clock, on_progress)
        return commit.finish()


def _edited_since(turn: _Turn, edited: Sequence[str]) -> EditedSinceError:
    """Say which files stand in the way, and what to do about them."""
    group = turn.group
    by = {
        path: later.identifier
        for later in grouped(one for one in turn.originals.batches() if not one.problem)
        if _by_number(later) > _by_number(group) and later.is_all("after")
        for path, links in later.links().items()
        if turn.holds(path, links[-1].entry.after)
    }
    lines = [
        f"  {shown_path(path)}" + (f" (by {by[path]})" if path in by else "")
        for path in edited[:_NAMED]
    ]
    if len(edited) > _NAMED:
        lines.append(f"  … and {len(edited) - _NAMED} more")
    word = "undone" if turn.wanted == "before" else "redone"
    return EditedSinceError(
        "\n".join([f"{group.identifier} cannot be {word}, files were edited since:", *lines]),
        paths=edited,
        remedy=_way_out(turn, edited, by),
        detail=f"{group.what}: {len(edited)} of {len(turn.links)} files were edited since",
    )


def _way_out(turn: _Turn, edited: Sequence[str], by: Mapping[str, str]) -> str:
    """What makes a refusal go away; no command of ours takes a person's edit from a file."""
    if all(path in by for path in edited):
        return f"filestore undo {max(by[path] for path in edited)}"
    first = next(path for path in edited if path not in by)
    link = turn.links[first][-1]
    kept, name = link.entry.after, f"{link.number}.after"
    if kept is None or kept.mode is None:
        link = turn.links[first][0]
        kept, name = link.entry.before, f"{link.number}.before"
    quoted = shown_path(shlex.quote(first))
    put_back = f"rm {quoted}" if kept is None else f"cp .undo/{link.batch}/{name} {quoted}"
    return (
        "'git diff' shows the edit; save it elsewhere, then in the folder of the store: "
        f"{put_back} && {_command(turn)}"
    )
