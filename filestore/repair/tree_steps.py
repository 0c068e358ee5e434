"""Steps that write files of the tree: what each makes of them, and all of them written as one.

The writer's lock is held. One rule: a step is taken whole or not at all, and only while each file
holds what the step was planned on.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Conflict
from filestore.chunks import chunk_file, links, resource_record
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash
from filestore.core.paths import TOP, ChunkPath, StorePath
from filestore.fs.transaction import ChangedMeanwhile
from filestore.git import attributes, conflict_markers
from filestore.git.attributes import attributes_file
from filestore.history import write
from filestore.ingest import remove
from filestore.repair import choices
from filestore.repair.plan import ABSENT, KINDS, Step, moved_on
from filestore.repair.recorded import Recorded
from filestore.repair.restore import Restoring
from filestore.repair.tree_files import TreeReader
from filestore.sidecar import originals
from filestore.verify import ingest_conflict, source_check

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot

Made = dict[StorePath, bytes | None]
"""Path to the bytes of its file; None removes it."""
OnSkipped = Callable[[Step, str], None]
"""Called with the reason why a step is not applied."""


class _MovedOnError(FilestoreError):
    """A file, or what a step needs of it, is not as it was when the step was planned."""


class TreeChanges:
    """Truth files to be written together."""

    def __init__(self, snapshot: "StoreSnapshot") -> None:
        self.snapshot = snapshot
        self.reader = TreeReader(snapshot)
        self.recorded = Recorded(snapshot.places.tree, snapshot.catalog)
        self.restoring = Restoring(snapshot.places, snapshot.catalog)
        self.tree = snapshot.places.tree
        self.before: Made = {}
        self.after: Made = {}
        self.steps: list[Step] = []

    @cached_property
    def conflicts(self) -> dict[ChunkPath, Conflict]:
        """Path to the ingest conflict that waits there."""
        return {one.path: one for one in self.snapshot.catalog.conflicts()}

    @property
    def resolved(self) -> list[ChunkPath]:
        """Files whose ingest conflict is resolved."""
        chunk_path = self.tree.chunk_path
        return [chunk_path(step.path) for step in self.steps if KINDS[step.kind].resolves]

    def take(self, step: Step) -> str:
        """Note what a step changes, all or nothing; returns why it cannot be made, or ""."""
        try:
            for path in step.seen:
                self.held(step, path)
            made = EXECUTORS[step.kind](self, step)
            before = {path: self.held(step, path) for path in made}
        except FilestoreError as error:
            return error.message
        self.before |= before
        self.after |= made
        self.steps.append(step)
        return ""

    def held(self, step: Step, path: StorePath) -> bytes | None:
        """What a file holds, which is what the step was planned on."""
        # One look gives both: bytes that were saved right after it must not pass for those.
        now, data = self.reader.look(path)
        planned = step.seen.get(path, ABSENT)
        if not planned.holds(now):
            raise _MovedOnError(moved_on(path, planned, now))
        return attributes_file(self.snapshot.places) if path == attributes.NAME else data

    def write(self, group: str) -> str:
        """Write them, or nothing; returns the batch with the originals.

        Raises:
            ChangedMeanwhile: Somebody edits one of the files in this moment.
        """
        tree = self.tree
        rows = self.snapshot.catalog.files([tree.chunk_path(path) for path in self.before])
        known = {tree.store_path(path): row.file_hash for path, row in rows.items()}
        batch = write.change(
            self.snapshot.places,
            self.after,
            before=self.before,
            command="repair",
            last=[path for path in self.after if path.endswith(".json")],
            group=group,
            # Undo leaves what the catalog does not know to `status`.
            unknown={
                path
                for path, data in self.before.items()
                if data is not None and content_hash(data) != known.get(path)
            },
        )
        return batch or ""


def write_files(
    snapshot: "StoreSnapshot", steps: Sequence[Step], *, group: str, on_skipped: OnSkipped
) -> tuple[TreeChanges, str]:
    """Write what steps ask for; a step whose file is edited in this moment is skipped.

    Returns:
        What was written, and the batch with the originals.
    """
    while True:
        changes = TreeChanges(snapshot)
        for step in steps:
            if reason := changes.take(step):
                on_skipped(step, reason)
        if not changes.steps:
            return changes, ""
        try:
            return changes, changes.write(group)
        except ChangedMeanwhile as error:
            late = [step for step in changes.steps if set(step.seen) & set(error.paths)]
            if not late:
                raise
            for step in late:
                on_skipped(step, "it changed in this moment")
            steps = [step for step in changes.steps if step not in late]


def _restore(changes: TreeChanges, step: Step) -> Made:
    data = changes.restoring.fetch(changes.tree.chunk_path(step.path), step.hash, step.blob)
    if data is None:
        raise _MovedOnError("the copy to restore from is no longer kept")
    return {step.path: data}


def _rewrite_attributes(changes: TreeChanges, step: Step) -> Made:
    made = attributes.corrected(changes.held(step, step.path) or b"")
    if step.hash != content_hash(made).hex():
        raise _MovedOnError(f"{step.path} changed since the plan was made")
    return {step.path: made}


def _relink(changes: TreeChanges, step: Step) -> Made:
    # What another step makes of the file is what is linked again.
    data = changes.after.get(step.path) or changes.held(step, step.path) or b""
    targets = changes.recorded.moved_targets.get(step.path, {})
    return {step.path: links.relinked(data, changes.tree.chunk_path(step.path), targets)}


def _resolve(changes: TreeChanges, step: Step) -> Made:
    conflict, data = (
        changes.conflicts.get(changes.tree.chunk_path(step.path)),
        changes.held(step, step.path),
    )
    if conflict is None or data is None:
        raise _MovedOnError("nothing waits for a choice there any more")
    snapshot = changes.snapshot
    where = source_check.reachable(snapshot)
    found = originals.found_now(snapshot.catalog, where, conflict.source)
    if not ingest_conflict.still_open(conflict, chunk_file.parse(data), found):
        raise _MovedOnError(
            "the file or its source moved on since the conflict was found: add the source again"
        )
    choice: ingest_conflict.Choice = "ours" if step.kind == "resolve-ours" else "theirs"
    made = ingest_conflict.resolve(data, conflict, choice)
    if step.hash != (content_hash(made).hex() if made is not None else ""):
        raise _MovedOnError("the source was added again since the plan was made")
    return {step.path: made}


def _take_side(changes: TreeChanges, step: Step) -> Made:
    remove.refuse_unmerged(changes.snapshot.places, [changes.tree.chunk_path(step.path)])
    data = changes.held(step, step.path)
    made = conflict_markers.with_side(data or b"", choices.SIDES[step.kind])
    if data is None or step.hash != content_hash(made).hex():
        raise _MovedOnError("its conflict markers changed since the plan was made")
    return {step.path: made}


def _remove_duplicate(changes: TreeChanges, step: Step) -> Made:
    remove.refuse_unmerged(changes.snapshot.places, [changes.tree.chunk_path(step.path)])
    stays = changes.held(step, step.other)
    if stays is None or changes.after.get(step.other, stays) != stays:
        raise _MovedOnError(f"{step.other}, which has its text, does not stay as it was")
    return {step.path: None}


def _remove(changes: TreeChanges, step: Step) -> Made:
    record_path, record, document = changes.recorded.record_of(step.path) or (TOP, None, None)
    if record is None or document is None:
        raise _MovedOnError("no record names it any more")
    rows = changes.recorded.made_of(record, document)
    made: Made = {changes.tree.store_path(row.path): None for row in rows}
    path = changes.tree.store_path(record_path)
    # Two documents of one record may go in one repair.
    data = changes.after.get(path) or changes.held(step, path) or b""
    left = tuple(one for one in resource_record.parse(data).documents if one != document)
    made[path] = resource_record.serialize(replace(record, documents=left)) if left else None
    return made


EXECUTORS: Final[Mapping[str, Callable[[TreeChanges, Step], Made]]] = {
    "restore": _restore,
    "resolve-ours": _resolve,
    "resolve-theirs": _resolve,
    "take-ours": _take_side,
    "take-theirs": _take_side,
    "relink": _relink,
    "remove": _remove,
    "rewrite-attributes": _rewrite_attributes,
    "remove-duplicate": _remove_duplicate,
}
"""Kind of step to what it makes of files."""
