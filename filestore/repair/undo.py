"""Undoing and redoing: the files of one command put back, then the sidecar updated.

One rule: all files of a command or none. A file that holds neither what it wrote nor what was there
before was edited since, and is not overwritten.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, ignore
from filestore.core.schema import JsonObject
from filestore.fs import disk, transaction
from filestore.fs.transaction import (
    Content,
    HalfReplacedError,
    Replacement,
    collect_staged,
)
from filestore.git import attributes
from filestore.git.repository import refuse_during_operation
from filestore.history.backup_store import BatchMissingError, Originals
from filestore.history.batch import (
    Batch,
    Group,
    State,
    Version,
    invalid,
)
from filestore.history.write import collect_leftovers
from filestore.repair.kept_change import KeptChange, choices, edited_since, look, named
from filestore.sidecar.commit import CommitReport
from filestore.sidecar.snapshot import Writing
from filestore.sync.actions import put_settled

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


class _Done(Struct, frozen=True, kw_only=True):
    """What became of the files of a command."""

    there: Mapping[StorePath, bool]
    """Each with whether there is a file now."""
    replaced: Sequence[Replacement]
    found_again: frozenset[str]
    """Those whose finding, which a repair had settled, is back: the index is left as it is."""
    undone: frozenset[str]
    """The batches that were taken back."""
    not_ingested: frozenset[str] = frozenset()
    """The resources of which a re-ingest was taken back: what waits there was part of it."""


def undo_or_redo(
    store: Writing, identifier: str | None, wanted: State, on_progress: OnProgress = ignore
) -> UndoResult | None:
    """Undo or redo: bring the files of a command to what they held before it, or after it.

    One that died in the middle is completed.

    Args:
        store: Written to.
        identifier: Any batch of it; None for the newest that is not undone, or what was undone
            last.
        wanted: ``before`` undoes, ``after`` redoes.
        on_progress: Called with the progress of indexing.

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
    snapshot = store.snapshot
    refuse_during_operation(snapshot.places.root)
    collect_leftovers(snapshot.places)
    if not os.path.isdir(snapshot.places.undo):
        if identifier is None:
            return None
        raise BatchMissingError("nothing was kept yet", remedy="filestore undo --list")
    with (
        disk.folder_at(snapshot.places.root) as root,
        Originals.open(snapshot.places.undo) as originals,
    ):
        if identifier is not None:
            group: Group | None = named(originals, identifier)
        else:
            group = _chosen(root, originals, wanted)
        if group is None:
            return None
        done = _put(look(root, originals, group, wanted))
        # A writer that died staged files also in folders where nothing had to be put back.
        for folder in {os.path.dirname(path) for path in group.links()}:
            collect_staged(root, folder)
        report = _index(store, done, on_progress)
        # Last: if the process dies before this, the next call updates the sidecar.
        for batch in group.batches:
            originals.finish(batch.identifier)
    return _result(group, done, report, wanted)


def _result(group: Group, done: _Done, report: CommitReport | None, wanted: State) -> UndoResult:
    return UndoResult(
        identifier=group.id,
        what=group.what,
        paths=tuple(sorted(done.there)),
        brought_back=sum(one.before is None for one in done.replaced),
        changed=sum(one.before is not None and one.after is not None for one in done.replaced),
        removed=sum(one.after is None for one in done.replaced),
        differing=tuple(sorted(done.found_again)),
        embedded=report.embedded if report else 0,
        reused=report.reused if report else 0,
        problem=report.problem if report else None,
        wanted=wanted,
    )


def _chosen(root: int, originals: Originals, wanted: State) -> Group | None:
    for group in choices(originals.batches(), wanted):
        *others, last = group.batches
        if not (last.underway and last.sequence == 0):
            return group
        change = look(root, originals, Group(batches=(last,)), wanted)
        if not all(change.holds(entry.path, entry.before) for entry in last.entries):
            return group
        # Its writer died before it changed the first file: there is nothing to take back.
        originals.discard(last.identifier)
        if others:
            return Group(batches=tuple(others))
    return None


def _put(change: KeptChange) -> _Done:
    """Bring the files of a command to one side."""
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
    _refuse_other_attributes(change, replacements)
    _replace(change, replacements)
    there = {StorePath(path): seen is not None for path, seen in change.seen.items()}
    there |= {StorePath(one.path): one.after is not None for one in replacements}
    undone = group.batches if change.wanted == "before" else ()
    return _Done(
        there=there,
        replaced=replacements,
        found_again=_found_again(change),
        undone=frozenset(batch.identifier for batch in undone),
        not_ingested=frozenset(
            resource
            for command, _, resource in (batch.what.partition(" ") for batch in undone)
            if command in _INGESTS
        ),
    )


def _refuse_other_attributes(change: KeptChange, replacements: Sequence[Replacement]) -> None:
    """Write an attributes file only as a repair of ours left it, or found it.

    Raises:
        BatchInvalidError: The record holds other lines: it may be crafted.
    """
    for one in replacements:
        if one.path != attributes.NAME:
            continue
        now, then = (side.read() if side else b"" for side in (one.before, one.after))
        first, second = (then, now) if change.wanted == "before" else (now, then)
        if attributes.corrected(first) != second:
            reason = f"{one.path} would hold other lines than a repair leaves there"
            raise invalid(change.group.id, reason)


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


def _replace(change: KeptChange, replacements: Sequence[Replacement]) -> None:
    removable = _removable(change)
    with transaction.Replacing(change.root, replacements, removable=removable) as swap:
        swap.check()
        noted: list[Batch] = []
        try:
            _note(change, replacements, noted, swap.lacking())
            swap.stage()
            swap.apply()
        except BaseException as error:
            if not swap.touched:
                for batch in noted:
                    change.originals.turn_back(batch)
            elif isinstance(error, HalfReplacedError):
                error.remedy = f"{error.remedy}: {change.command}"
            raise


def _removable(change: KeptChange) -> frozenset[str] | None:
    """The folders that go with the files of an undo: those that were made for them; None: any.

    A person made the others, and may want them empty.
    """
    made = [batch.folders for batch in change.group.batches]
    if change.wanted == "after" or None in made:
        return None
    return frozenset(name for names in made for name in names or ())


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


def _index(store: Writing, done: _Done, on_progress: OnProgress) -> CommitReport | None:
    """Bring the sidecar up to date with the chunk files among them."""
    snapshot = store.snapshot
    tree = snapshot.places.tree
    ours = tree.chunk_paths(sorted(done.there.keys() - done.found_again))
    present = [path for path in ours if done.there[tree.store_path(path)]]
    if not ours:
        return None
    with store.open_commit() as commit:
        commit.forget(sorted(set(ours).difference(present)))
        put_settled(snapshot, commit, present, store.clock, on_progress)
        waiting = snapshot.catalog.files([one.path for one in snapshot.catalog.conflicts()])
        commit.catalog.delete_conflicts(
            path for path, row in waiting.items() if row.resource in done.not_ingested
        )
        commit.catalog.reopen_conflicts(done.undone)
        return commit.finish()
