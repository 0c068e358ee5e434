"""Files of the tree written and indexed, some at a time, all of a run undone together.

One rule: a file is written only while it holds what was indexed; what a person changed since is
left, and said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from filestore.core.paths import ChunkPath
from filestore.core.progress import OnProgress
from filestore.core.safe_text import shown_path
from filestore.fs import disk
from filestore.git import repository
from filestore.history import write as truth
from filestore.history.batch import is_truth
from filestore.sync.apply import put_settled

if TYPE_CHECKING:
    from filestore.core.errors import FilestoreError
    from filestore.sidecar.session import Parts

COMMAND: Final = "enrich"
_AT_ONCE: Final = 1_000
_CHANGED: Final = "it was changed meanwhile; run the command again"


class Writer:
    """Writes what one run makes."""

    def __init__(self, parts: Parts, *, on_progress: OnProgress) -> None:
        self._parts = parts
        self._clock = parts.clock()
        self._on_progress = on_progress
        self._changes: dict[ChunkPath, bytes | None] = {}
        self._before: dict[ChunkPath, bytes | None] = {}
        self.group = ""
        """Under which name all originals are kept; "" while nothing was written."""
        self.left: list[tuple[ChunkPath, str]] = []
        """Files that could not be written, and why."""
        self.done: set[ChunkPath] = set()
        """Files that were written."""
        self.embedded = 0
        self.reused = 0
        self.problem: FilestoreError | None = None

    def leave(self, path: ChunkPath, reason: str) -> None:
        """Note a file that is not written."""
        self.left.append((path, reason))

    def put(self, path: ChunkPath, data: bytes | None, before: bytes | None) -> None:
        """Take a file to be written, together with others.

        Args:
            path: Below the folder of the tree.
            data: Its bytes; None removes the file.
            before: What was indexed; None where there was no file.

        Raises:
            As `flush`.
        """
        self._before.setdefault(path, before)
        self._changes[path] = data
        if len(self._changes) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write and index what waits.

        Raises:
            GitBusyError: A merge, rebase or the like is under way.
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused; what was written before stays.
        """
        changes, before = self._changes, self._before
        self._changes, self._before = {}, {}
        if changes:
            self._write(changes, before)

    def _write(
        self,
        changes: Mapping[ChunkPath, bytes | None],
        before: Mapping[ChunkPath, bytes | None],
    ) -> None:
        places = self._parts.places
        repository.refuse_during_operation(places.root)
        with self._parts.writing(COMMAND) as (catalog, embeddings, _):
            chosen = self._unchanged(changes, before)
            if not chosen:
                return
            truth.collect_leftovers(places)
            tree = places.tree
            batch = truth.change(
                places,
                {tree.store_path(path): changes[path] for path in chosen},
                before={tree.store_path(path): before.get(path) for path in chosen},
                command=COMMAND,
                group=self.group,
                collects=not self.group,
            )
            self.group = self.group or batch or ""
            snapshot = self._parts.snapshot(catalog, embeddings)
            with self._parts.commit(catalog, embeddings, embed=True) as commit:
                commit.forget([path for path in chosen if changes[path] is None])
                there = [path for path in chosen if changes[path] is not None]
                put_settled(snapshot, commit, there, self._clock, self._on_progress)
                done = commit.finish()
            self.embedded += done.embedded
            self.reused += done.reused
            self.problem = self.problem or done.problem
            self.done.update(chosen)

    def _unchanged(
        self,
        changes: Mapping[ChunkPath, bytes | None],
        before: Mapping[ChunkPath, bytes | None],
    ) -> list[ChunkPath]:
        """The files that hold what was indexed, and that git has no two sides of."""
        held = repository.unmerged(self._parts.places.chunked)
        chosen: list[ChunkPath] = []
        with disk.folder_at(self._parts.places.chunked) as handle:
            for path in changes:
                if path in held:
                    self.leave(path, "git has it as unmerged: resolve the conflict first")
                elif not is_truth(self._parts.places.tree.store_path(path)):
                    self.leave(path, "of a name with signs that some systems do not see")
                elif _read(handle, path) == before.get(path):
                    chosen.append(path)
                else:
                    self.leave(path, _CHANGED)
        return chosen


def _read(handle: int, path: ChunkPath) -> bytes | None:
    try:
        return disk.read_below(handle, path)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        disk.pass_limits(error)
        return f"unreadable: {shown_path(path)}".encode()
