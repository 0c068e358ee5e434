"""Undoing and redoing: the files of one command put back, then the sidecar updated.

One rule: all files of a command or none. A file that holds neither what it wrote nor what was there
before was edited since, and is not overwritten.
"""

import contextlib
import os
import shlex
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from filestore.config.layout import Places
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.hashing import content_hash
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, ignore
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.extract.tree_rules import left_out
from filestore.fs import disk, transaction
from filestore.fs.disk import read_below
from filestore.fs.transaction import (
    ChangedMeanwhile,
    Content,
    Replacement,
    Seen,
    collect_begun,
)
from filestore.git import attributes
from filestore.git.repository import conflicted, operation, refuse_during_operation
from filestore.history.backup_store import BatchMissingError, Originals
from filestore.history.batch import (
    Batch,
    BatchInvalidError,
    ChangedFile,
    FileChange,
    Group,
    State,
    Version,
    grouped,
    invalid,
)
from filestore.history.write import carry_out, collect_leftovers
from filestore.sidecar.commit import CommitReport
from filestore.sidecar.originals import Reachable
from filestore.sidecar.snapshot import Writing
from filestore.sync.actions import put_settled


def choices(batches: Iterable[Batch], wanted: State) -> list[Group]:
    """What may be undone or redone, best first; pure.

    First what a writer that died was at, then the newest that is not undone, or what was undone
    last.
    """
    groups = grouped(batch for batch in batches if not batch.problem)
    broken_off = [group for group in groups if _is_broken_off(group, wanted)]
    others = [
        group for group in groups if not group.is_all(wanted) and not _is_broken_off(group, wanted)
    ]
    key = by_number if wanted == "before" else _by_sequence
    return [
        *sorted(broken_off, key=_by_sequence, reverse=True),
        *sorted(others, key=key, reverse=True),
    ]


def next_undo_redo(batches: Iterable[Batch]) -> tuple[str, str]:
    """The changes that undo and redo would take; "" for none. Pure."""
    kept = list(batches)
    undo, redo = choices(kept, "before"), choices(kept, "after")
    return undo[0].id if undo else "", redo[0].id if redo else ""


def _is_broken_off(group: Group, wanted: State) -> bool:
    return any(one.underway and one.wanted == wanted and one.sequence for one in group.batches)


def by_number(group: Group) -> int:
    """Which change was made first."""
    return int(group.id)


def _by_sequence(group: Group) -> int:
    return group.sequence


def named(originals: Originals, identifier: str) -> Group:
    """What a batch belongs to."""
    batch = originals.batch(identifier)
    for group in grouped(one for one in originals.batches() if not one.problem):
        if any(one.identifier == identifier for one in group.batches):
            return group
    return Group(batches=(batch,))


_RUNS: Final = 0o111
_NAMED: Final = 20
"""The edited files that a refusal names; the rest is counted."""


class EditedSinceError(RefusedError):
    """Files of a command were edited since, so that putting them back would lose something."""

    def __init__(
        self, message: str, *, paths: Sequence[str] = (), remedy: str = "", detail: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy, detail=detail)
        self.paths = tuple(paths)
        """Relative to the store root."""


class KeptChange:
    """What a command changed, the side that is wanted, and its files as they are."""

    def __init__(self, root: int, originals: Originals, group: Group, wanted: State) -> None:
        """Look at the files.

        Args:
            root: The directory handle of the store's root.
            originals: Where both sides are kept.
            group: The command.
            wanted: The side.
        """
        self.root = root
        self.originals = originals
        self.group = group
        self.wanted = wanted
        self.links = group.links()
        self.seen: dict[str, Seen | None] = {}
        self._foreign: set[str] = set()
        """Paths of something else than a file."""
        for path in self.links:
            try:
                self.seen[path] = transaction.look(root, path)
            except ChangedMeanwhile:
                self._foreign.add(path)

    def holds(self, path: str, version: Version | None) -> bool:
        """Whether a file holds a version."""
        there = self.seen.get(path)
        held = there.digest if there else None
        return path not in self._foreign and held == (version.digest if version else None)

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
        modes = {one.digest: one.mode for one in reversed(self.seen.values()) if one}
        # Of what goes from one path to another; what is written anew is of now.
        stamps = {
            seen.digest: seen.status.st_mtime_ns
            for path, seen in self.seen.items()
            if seen and (link := self.goal(self.links[path])) and not self._side(link.entry)
        }
        for path, links in self.links.items():
            link = self.goal(links)
            if link is None or self.holds(path, self._side(link.entry)):
                continue
            before, after = self.seen[path], self._side(link.entry)
            now = then = None
            if before is not None:
                read = partial(self._held, path, before.digest)
                now = Content(digest=before.digest, read=read, mode=before.mode)
            if after is not None:
                blob = f"{link.number}.{self.wanted}"
                read = partial(self.originals.blob, link.batch, blob, after.digest)
                # What moves back, or is replaced, runs as before: a record makes nothing run.
                runs = modes.get(after.digest, before.mode if before else 0) & _RUNS
                mode = None if after.mode is None else after.mode | runs
                stamp = stamps.get(after.digest)
                then = Content(digest=after.digest, read=read, mode=mode, mtime_ns=stamp)
            found.append(Replacement(path=path, before=now, after=then))
        return found

    def goal(self, links: Sequence[FileChange]) -> FileChange | None:
        """The change of a file whose wanted side it is to hold; None where it is to stay."""
        if self.wanted == "before":
            return links[0]
        for link in reversed(links):
            # Without a mode the change never came as far as this file: nothing was taken from it.
            if link.entry.after is None or link.entry.after.mode is not None:
                return link
        return None

    @property
    def command(self) -> str:
        """What a person types to go on with it."""
        return f"filestore {'undo' if self.wanted == 'before' else 'redo'} {self.group.id}"

    def made_by(self, path: str) -> tuple[str, int]:
        """The newest change that made a file what it is, by batch and number."""
        links = self.links[path]
        made = [link for link in links if self.holds(path, link.entry.after)]
        link = made[-1] if made else links[-1]
        return link.batch, link.number

    def _side(self, entry: ChangedFile) -> Version | None:
        return entry.before if self.wanted == "before" else entry.after

    def _held(self, path: str, digest: bytes) -> bytes:
        """What a file held when it was looked at; what was replaced since is kept in a batch."""
        try:
            data, _ = read_below(self.root, path)
            if content_hash(data) != digest:
                raise ChangedMeanwhile(f"{path} was edited meanwhile", paths=[path])
            return data
        except (OSError, ChangedMeanwhile):
            for link in self.links[path]:
                for side, version in (("before", link.entry.before), ("after", link.entry.after)):
                    if version and version.digest == digest:
                        with contextlib.suppress(BatchInvalidError):
                            return self.originals.blob(link.batch, f"{link.number}.{side}", digest)
            raise


def edited_since(change: KeptChange, edited: Sequence[str]) -> EditedSinceError:
    """The error that names the files in the way, and what to do about them."""
    group = change.group
    by = {
        path: later.id
        for later in grouped(one for one in change.originals.batches() if not one.problem)
        if by_number(later) > by_number(group) and later.is_all("after")
        for path, links in later.links().items()
        if change.holds(path, links[-1].entry.after)
    }
    lines = [
        f"  {shown_path(path)}" + (f" (by {by[path]})" if path in by else "")
        for path in edited[:_NAMED]
    ]
    if len(edited) > _NAMED:
        lines.append(f"  … and {len(edited) - _NAMED} more")
    if all(path in by for path in edited):
        remedy = f"filestore undo {max(by[path] for path in edited)}"
    else:
        # No command of ours takes a person's edit from a file.
        first = next(path for path in edited if path not in by)
        link = change.links[first][-1]
        kept, name = link.entry.after, f"{link.number}.after"
        if kept is None or kept.mode is None:
            link = change.links[first][0]
            kept, name = link.entry.before, f"{link.number}.before"
        quoted = shown_path(shlex.quote(first))
        put_back = f"rm {quoted}" if kept is None else f"cp .undo/{link.batch}/{name} {quoted}"
        remedy = (
            "'git diff' shows the edit; save it elsewhere, then in the folder of the store: "
            f"{put_back} && {change.command}"
        )
    word = "undone" if change.wanted == "before" else "redone"
    return EditedSinceError(
        "\n".join([f"{group.id} cannot be {word}, files were edited since:", *lines]),
        paths=edited,
        remedy=remedy,
        detail=f"{group.what}: {len(edited)} of {len(change.links)} files were edited since",
    )


_INGESTS: Final = ("add", "update")
REPAIR: Final = "repair"
"""What the changes of a repair are called, apart from the sources that it re-ingests."""


class AlreadyThereError(RefusedError):
    """A command is on the wanted side already."""


class UndoResult(JsonObject, Struct, frozen=True, kw_only=True, rename={"identifier": "id"}):
    """A command that was undone or redone."""

    KEYS = "identifier what undone redone embedded reused"

    identifier: str | None = None
    """Of the change; None where there was none."""
    what: str = ""
    """The command that had made the change."""
    paths: tuple[str, ...] = ()
    """Its files, relative to the store root."""
    embedded: int = 0
    """Texts that the model embedded."""
    reused: int = 0
    """Texts whose embedding came from the cache."""
    problem: FilestoreError | None = None
    """Why texts were left without embedding."""
    brought_back: int = 0
    """Files that were not there before."""
    changed: int = 0
    """Files that hold something else than before."""
    removed: int = 0
    """Files that are not there any more."""
    differing: tuple[str, ...] = ()
    """Files that are again as a repair had found them: `status` tells what is to be done."""
    wanted: State = "before"
    """``before`` where it was undone, ``after`` where it was redone."""

    @property
    def undone(self) -> tuple[str, ...]:
        """Files that were put back; empty for `redo`."""
        return self.paths if self.wanted == "before" else ()

    @property
    def redone(self) -> tuple[str, ...]:
        """Files that were changed again; empty for `undo`."""
        return self.paths if self.wanted == "after" else ()

    @property
    def json_redone(self) -> tuple[str, ...] | UnsetType:
        """Files that were changed again; only of `redo`."""
        return self.redone if self.wanted == "after" else UNSET


def undo_or_redo(
    store: Writing, identifier: str | None, wanted: State, on_progress: OnProgress = ignore
) -> UndoResult | None:
    """Undo or redo a command, also one that died in the middle; None where there is none.

    Args:
        store: Written to.
        identifier: Any batch of it; None for the newest not undone, or what was undone last.
        wanted: ``before`` undoes, ``after`` redoes.
        on_progress: Called with the progress of indexing.

    Raises:
        EditedSinceError: Files were edited since; none was touched.
        AlreadyThereError: They hold what is wanted already.
        BatchMissingError: There is none of this name.
        BatchInvalidError: What was kept is damaged.
        GitBusyError: A merge, rebase or the like is under way, and the files are not all in
            conflict.
        WriteFailedError: The disk refused; all is as it was, unless it says otherwise.
    """
    snapshot = store.snapshot
    collect_leftovers(snapshot.places)
    if not os.path.isdir(snapshot.places.undo):
        refuse_during_operation(snapshot.places.root)
        if identifier is None:
            return None
        raise BatchMissingError("nothing was kept yet", remedy="filestore undo --list")
    reachable = Reachable(snapshot.places, snapshot.originals)
    with (
        disk.folder_at(snapshot.places.root, above=disk.DEEPEST) as root,
        Originals.open(snapshot.places.undo, is_near=reachable.may_hold) as originals,
    ):
        group = (
            _chosen(root, originals, wanted) if identifier is None else named(originals, identifier)
        )
        change = None if group is None else KeptChange(root, originals, group, wanted)
        _refuse_while_git_waits(snapshot.places, change)
        if change is None or group is None:
            return None
        replaced = _put(snapshot.places, change)
        # A writer that died staged files also in folders where nothing had to be put back.
        collect_begun(root, group.links())
        found_again = _found_again(change)
        report = _index(store, change, replaced, found_again, on_progress)
        # Last: if the process dies before this, the next call updates the sidecar.
        for batch in group.batches:
            originals.finish(batch.identifier)
    return UndoResult(
        identifier=group.id,
        what=group.what,
        paths=tuple(sorted(change.links)),
        brought_back=sum(one.before is None for one in replaced),
        changed=sum(one.before is not None and one.after is not None for one in replaced),
        removed=sum(one.after is None for one in replaced),
        differing=tuple(sorted(found_again)),
        embedded=report.embedded if report else 0,
        reused=report.reused if report else 0,
        problem=report.problem if report else None,
        wanted=wanted,
    )


def _refuse_while_git_waits(places: Places, change: KeptChange | None) -> None:
    """What was chosen in a file in conflict is undone while git waits, and nothing else."""
    if not operation(places.root):
        return
    in_conflict = set(map(places.tree.store_path, conflicted(places.chunked)))
    if change is None or change.edited() or not in_conflict.issuperset(change.links):
        refuse_during_operation(places.root)


def _chosen(root: int, originals: Originals, wanted: State) -> Group | None:
    for group in choices(originals.batches(), wanted):
        *others, last = group.batches
        if not (last.underway and last.sequence == 0):
            return group
        change = KeptChange(root, originals, Group(batches=(last,)), wanted)
        if not all(change.holds(entry.path, entry.before) for entry in last.entries):
            return group
        # Its writer died before it changed the first file: there is nothing to take back.
        collect_begun(root, [entry.path for entry in last.entries], last.folders or ())
        originals.discard(last.identifier)
        if others:
            return Group(batches=tuple(others))
    return None


def _put(places: Places, change: KeptChange) -> Sequence[Replacement]:
    """Bring the files of a command to one side; returns what had to be replaced.

    Raises:
        BatchInvalidError: The record holds other lines of git's attributes: it may be crafted.
    """
    group = change.group
    edited = change.edited()
    if edited:
        raise edited_since(change, edited)
    replacements = change.replacements()
    if not replacements and group.is_all(change.wanted) and not group.underway:
        word, other = ("undone", "redo") if change.wanted == "before" else ("in place", "undo")
        raise AlreadyThereError(
            f"{group.id} ({group.what}) is {word} already",
            remedy=f"filestore {other} {group.id}",
        )
    for one in replacements:
        if one.path != attributes.NAME:
            continue
        # An attributes file is written only as a repair of ours left it, or found it.
        now, then = (side.read() if side else b"" for side in (one.before, one.after))
        first, second = (then, now) if change.wanted == "before" else (now, then)
        if attributes.corrected(first) != second:
            reason = f"{one.path} would hold other lines than a repair leaves there"
            raise invalid(group.id, reason)
    made = [batch.folders for batch in group.batches]
    removable = None
    if change.wanted == "before" and None not in made:
        # A person made the other folders, and may want them empty.
        removable = frozenset(name for names in made for name in names or ())
    noted: list[Batch] = []
    with transaction.Replacing(change.root, replacements, removable=removable) as swap:
        swap.check()

        def turn_back() -> None:
            for batch in noted:
                change.originals.turn_back(batch)

        record = partial(_note, change, replacements, noted, swap.lacking())
        carry_out(places, swap, command=change.command, take_back=turn_back, record=record)
    return replacements


def _found_again(change: KeptChange) -> frozenset[str]:
    """The files whose finding is back once a repair of them is undone.

    Gone again, or with bytes that the catalog did not know: to forget or to index them now would
    settle what a person has not decided yet. What a repair took in from a source is not among them.
    """
    if change.wanted != "before":
        return frozenset()
    repaired = {one.identifier for one in change.group.batches if one.what == REPAIR}
    return frozenset(
        path
        for path, (first, *_) in change.links.items()
        if first.batch in repaired
        and (first.entry.before is None or not first.entry.before.indexed)
    )


def _note(
    change: KeptChange,
    replacements: Sequence[Replacement],
    noted: list[Batch],
    made: Sequence[str],
) -> None:
    """Note in every batch which side is wanted, and keep what would be lost by it.

    Args:
        change: What is being done.
        replacements: What is to happen.
        noted: Batches are added as they were before.
        made: The folders that are to be made for it.
    """
    kept: dict[tuple[str, int], Content] = {}
    if change.wanted == "before":
        for one in replacements:
            if one.before is not None:
                kept[change.made_by(one.path)] = one.before
    sequence = max(batch.sequence for batch in change.originals.batches()) + 1
    for batch in change.group.batches:
        blobs = {number: one for (name, number), one in kept.items() if name == batch.identifier}
        entries = tuple(
            replace(entry, after=Version(digest=entry.after.digest, mode=blobs[number].mode))
            if entry.after and number in blobs
            else entry
            for number, entry in enumerate(batch.entries)
        )
        turned = replace(batch, entries=entries, folders=_folders(batch, change.wanted, made))
        change.originals.turn(turned, change.wanted, sequence, blobs)
        noted.append(batch)


def _folders(batch: Batch, wanted: State, made: Sequence[str]) -> tuple[str, ...] | None:
    """The folders that were made for a batch, once it is turned."""
    if wanted == "before" or batch.folders is None:
        return batch.folders
    # A redo that died had made them already.
    before = batch.folders if batch.underway else ()
    around: set[str] = set()
    for entry in batch.entries:
        folder = os.path.dirname(entry.path)
        while folder and folder not in around:
            around.add(folder)
            folder = os.path.dirname(folder)
    return tuple(sorted({*before, *around.intersection(made)}))


def _index(
    store: Writing,
    change: KeptChange,
    replaced: Sequence[Replacement],
    found_again: Collection[str],
    on_progress: OnProgress,
) -> CommitReport | None:
    """Update the sidecar with the chunk files among those of a change.

    Args:
        store: Written to.
        change: What was undone or redone.
        replaced: What of it was replaced.
        found_again: Files of which the index is left as it is.
        on_progress: Called with the progress.
    """
    snapshot = store.snapshot
    tree = snapshot.places.tree
    there = {StorePath(path): seen is not None for path, seen in change.seen.items()}
    there |= {StorePath(one.path): one.after is not None for one in replaced}
    ours = tree.chunk_paths(sorted(there.keys() - found_again))
    rows = snapshot.catalog.files(ours)
    came = [path for path in ours if path not in rows and there[tree.store_path(path)]]
    # A picture, say, moved along with its folder.
    passed = left_out(snapshot.places, came)
    present = [path for path in ours if there[tree.store_path(path)] and path not in passed]
    if not ours:
        return None
    undone = change.group.batches if change.wanted == "before" else ()
    words = (batch.what.partition(" ") for batch in undone)
    # What waits for a choice there was part of the re-ingest that was taken back.
    resources = {resource for command, _, resource in words if command in _INGESTS}
    with store.open_commit() as commit:
        commit.forget(sorted(path for path in ours if not there[tree.store_path(path)]))
        put_settled(snapshot, commit, present, store.clock, on_progress)
        waiting = snapshot.catalog.files([one.path for one in snapshot.catalog.conflicts()])
        commit.catalog.delete_conflicts(
            path for path, row in waiting.items() if row.resource in resources
        )
        commit.catalog.reopen_conflicts({batch.identifier for batch in undone})
        return commit.finish()
