"""What changes a store and can be undone as one: files moved, and undo itself, with its list.

One rule: a method here hands over to the room that does the work.
"""

import os
from typing import TYPE_CHECKING

from filestore.core.progress import OnProgress, ignore
from filestore.fs.lock import DEFAULT_WAIT_S
from filestore.sidecar.refusals import refuse_useless
from filestore.store.answering import AnsweringStore, StrPath

if TYPE_CHECKING:
    from filestore.history.batch import Group, State
    from filestore.history.changes import Changes
    from filestore.ingest.moved_files import Move, Wanted
    from filestore.ingest.put import RemovedChunks
    from filestore.repair.undo import UndoResult
    from filestore.sync.apply import Embedded, R


class ChangingStore(AnsweringStore):
    """A store whose files are moved, and whose changes are undone."""

    def embed_for(self, seconds: float | None) -> None:
        """Have each call embed many texts only for so long; what still waits, the next one embeds.

        Args:
            seconds: None, as it is at first, until none waits.
        """
        self._parts.embed_for_s = seconds

    def embed(self, *, on_progress: OnProgress = ignore) -> "Embedded":
        """Embed the texts that wait for their vector; see `embed_waiting`."""
        from filestore.sync.apply import embed_waiting

        self.close()
        return embed_waiting(self._parts, on_progress=on_progress)

    def _with_vectors(self, report: "R", on_progress: OnProgress = ignore) -> "R":
        """A report of what was written, once the texts of it have their vectors."""
        return self.embed(on_progress=on_progress).added_to(report)

    def remove_chunks(
        self, *paths: StrPath, missing_ok: bool = False, wait_s: float = DEFAULT_WAIT_S
    ) -> "RemovedChunks":
        """Remove single chunk files from the tree and from the sidecar: all of them, or none.

        Args:
            paths: Relative to the root or to `chunked/`.
            missing_ok: Whether what is not there is passed over.
            wait_s: How long to wait for another writer.

        Raises:
            UnknownPathError: There is none of a path.
            LockedError: Another writer holds the store.
        """
        from filestore.browse import named
        from filestore.ingest import put as changes

        refuse_useless(self.places, "rm")
        with self._parts.writing("rm", wait_s=wait_s) as (catalog, embeddings, _):
            given = list(map(os.fsdecode, paths))
            chunks = named.chunk_paths(self.places, given, missing_ok=missing_ok)
            removed = changes.remove_chunks(self.places, chunks)
            with self._parts.commit(catalog, embeddings, embed=False) as commit:
                commit.forget(chunks, by_hand=True)
                commit.finish()
        return removed

    def move(
        self,
        path: StrPath,
        to: StrPath,
        *,
        revision: str | None = None,
        shown: "Move | None" = None,
        on_progress: OnProgress = ignore,
    ) -> "Move":
        """Move a file or a folder, and rewrite the links to it; see `moving.move`.

        Args:
            path: Relative to the root or to the working folder.
            to: Its new path, or a folder that is there.
            revision: Of the file as it was read; with another one nothing is done.
            shown: A plan of `plan_move`; if another one holds now, nothing is done.
            on_progress: Called with the progress.
        """
        from filestore.ingest import moving

        wanted = self._move_of(path, to, revision)
        self.model.ask()
        with self._parts.writing("mv") as (catalog, embeddings, _):
            store = self._parts.held(catalog, embeddings)
            done = moving.move(store, wanted, shown, on_progress)
        return self._with_vectors(done, on_progress)

    def plan_move(self, path: StrPath, to: StrPath, *, revision: str | None = None) -> "Move":
        """What `move` would do; changes nothing."""
        from filestore.ingest import moving

        wanted = self._move_of(path, to, revision)
        with self._parts.reading() as catalog:
            return moving.plan(self._parts.snapshot(catalog, None), wanted).plan

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys of a chunk file that are the store's own, which metadata cannot have."""
        from filestore.chunks.chunk_file import OUR_KEYS

        return OUR_KEYS

    def batches(self) -> "list[Group]":
        """The changes of truth files that can be undone or redone, oldest first."""
        from filestore.history import backup_store

        return backup_store.list_groups(self.places.undo)

    def changes(
        self,
        identifier: str | None = None,
        *,
        by: str | None = None,
        since: str | None = None,
        limit: int | None = None,
        diff: bool = False,
    ) -> "Changes":
        """What was changed in files, by whom, newest first.

        Args:
            identifier: One change; None for all that are kept.
            by: Only those of the program of this name; ``you`` for those of people.
            since: Only those of this day or later, as `2026-05-03`.
            limit: At most N of them.
            diff: Whether each has its diff.

        Raises:
            BatchMissingError: There is none of this name.
            UsageError: The day is none.
        """
        from filestore.history.changes import Wanted, list_changes

        wanted = Wanted(id=identifier, by=by, since=since, limit=limit, diff=diff)
        is_near = self._parts.reachable().may_hold
        return self._open_changes(list_changes(self.places, wanted, is_near=is_near))

    def undo(
        self, identifier: str | None = None, *, on_progress: OnProgress = ignore
    ) -> "UndoResult | None":
        """Put back what files held before a change; None where there is nothing to undo.

        Args:
            identifier: Which change, as `RepairReport.undo` names it; None for the newest that is
                not undone, "" for none.
            on_progress: Called with the progress.

        Raises:
            EditedSinceError: Files were edited since; none was touched.
            AlreadyThereError: They hold what is wanted already.
            BatchMissingError: There is none of this name.
            BatchInvalidError: What was kept is damaged.
            GitBusyError: A merge, rebase or the like is under way.
            WriteFailedError: The disk refused; all is as it was, unless it says otherwise.
        """
        if identifier == "":
            return None
        self._require_open_batch(identifier)
        return self._undo_or_redo("before", identifier, on_progress)

    def redo(
        self, identifier: str | None = None, *, on_progress: OnProgress = ignore
    ) -> "UndoResult | None":
        """Make a change again that was undone; raises what `undo` does."""
        return self._undo_or_redo("after", identifier, on_progress)

    def _undo_or_redo(
        self, wanted: "State", identifier: str | None, on_progress: OnProgress
    ) -> "UndoResult | None":
        from filestore.repair.undo import undo_or_redo

        self.model.ask()
        command = "undo" if wanted == "before" else "redo"
        with self._parts.writing(command) as (catalog, embeddings, _):
            store = self._parts.held(catalog, embeddings)
            done = undo_or_redo(store, identifier, wanted, on_progress)
        return done and self._with_vectors(done, on_progress)

    def _move_of(self, path: StrPath, to: StrPath, revision: str | None) -> "Wanted":
        from filestore.browse.named import unknown
        from filestore.browse.spans import readings
        from filestore.ingest import moving

        name = os.fsdecode(path)
        for one, place in readings(name):
            wanted = moving.wanted_of(self.places, one, os.fsdecode(to), revision)
            # Behind a file may be a place in it.
            if wanted and (
                not place or os.path.isfile(os.path.join(self.places.root, wanted.path))
            ):
                break
        else:
            raise unknown(self._parts, name)
        if self.places.tree.holds(wanted.path):
            self._require_seen(self.places.tree.chunk_path(wanted.path), name)
        return wanted
