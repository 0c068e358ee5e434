"""Files given another path, with the links to them: planned, then made as one change.

In place files are documents. In a tree of chunk files they are originals in the work tree around
the store, which are re-ingested, or chunk files that a person wrote; what was generated has the
name and the place that its document gives it. One rule: a link that led to a file leads to it
afterwards; what cannot be written so stays and is reported, or nothing is moved.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from filestore.catalog import decode_path, encode_path, queries
from filestore.chunks import chunk_file, links
from filestore.chunks.relinking import Moves
from filestore.config.layout import RECORD_NAME, Places
from filestore.core.caller import absolute, working_folder
from filestore.core.errors import RefusedError, UsageError
from filestore.core.paths import ChunkPath, StorePath, folder_of, is_below
from filestore.core.progress import OnProgress, ignore
from filestore.core.safe_text import brief, shown_path
from filestore.extract.markdown_read import destinations
from filestore.fs.path_names import typed_paths
from filestore.fs.transaction import ChangedMeanwhile
from filestore.git import repository
from filestore.history import write
from filestore.history.permission import require_name
from filestore.ingest import put, update
from filestore.ingest.moved_files import (
    ANOTHER,
    Documents,
    LeftFile,
    Move,
    MoveWork,
    Relinking,
    Wanted,
)
from filestore.sidecar.originals import Reachable

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot, Writing


def wanted_of(places: Places, path: str, to: str, revision: str | None) -> Wanted | None:
    """What a person or a program means, who names a new path from where the old one is found.

    Args:
        places: Where the store lies.
        path: Of a file or a folder, relative to the store root or to the working folder.
        to: Its new path; of a folder that is there, or with a slash at its end, one in it.
        revision: Of the file.

    Returns:
        None where there is no such file.

    Raises:
        UsageError: The new path is empty.
    """
    if not to or "\0" in to:
        raise UsageError("the new path is empty: filestore mv PATH NEW")
    for start in (places.root, working_folder(), places.chunked):
        for place in typed_paths(path, (start,)):
            if path and os.path.lexists(found := absolute(place)):
                target = absolute(os.path.join(start, to))
                if to.endswith("/") or os.path.isdir(target):
                    target = os.path.join(target, os.path.basename(found))
                old, new = (os.path.relpath(one, places.root) for one in (found, target))
                return Wanted(path=StorePath(old), to=StorePath(new), revision=revision)
    return None


def plan(snapshot: "StoreSnapshot", wanted: Wanted) -> MoveWork:
    """What a move would do; changes nothing.

    Args:
        snapshot: The store, its catalog inside a snapshot or a transaction.
        wanted: What is to be moved.

    Raises:
        UsageError: It cannot lie there.
        RefusedError: Something is there, or it may not be moved.
        ChangedMeanwhile: It has another revision.
    """
    return _planner(snapshot, wanted).work()


def _planner(snapshot: "StoreSnapshot", wanted: Wanted) -> Documents:
    places, tree = snapshot.places, snapshot.places.tree
    if places.door is not None:
        for path in (wanted.path, wanted.to):
            require_name(places, places.door, path)
    if not tree.is_written:
        return Documents(snapshot, wanted)
    return (Chunks if tree.holds(wanted.path) else Sources)(snapshot, wanted)


def move(
    store: "Writing", wanted: Wanted, shown: Move | None, on_progress: OnProgress = ignore
) -> Move:
    """Move files, and update the index.

    Args:
        store: Written to.
        wanted: What is to be moved.
        shown: The plan that was agreed to; None where none was.
        on_progress: Called with the progress.

    Raises:
        GitBusyError: A merge, rebase or the like is under way, or a file is unmerged.
        ChangedMeanwhile: The plan is another one now, or a file was edited at this moment; nothing
            was done.
        WriteFailedError: The disk refused; all is as it was.
    """
    places = store.snapshot.places
    repository.refuse_during_operation(places.root)
    write.collect_leftovers(places)
    planner = _planner(store.snapshot, wanted)
    work = planner.work()
    if shown is not None and not work.plan.is_as(shown):
        raise ChangedMeanwhile(
            "files were edited since the plan was shown: nothing was moved; look at the plan again",
        )
    put.refuse_unmerged(places, places.tree.chunk_paths(work.before))
    undo = write.change(
        places,
        work.after,
        before=work.before,
        command=f"mv {wanted.path} {wanted.to}",
        above=planner.above,
    )
    done = replace(work.plan, done=True, undo=undo)
    return planner.indexed(store, done, on_progress)


class Chunks(Documents):
    """What moving chunk files takes that people wrote."""

    def check(self) -> None:
        """Refuse what was made from a source, and a folder that is made from one."""
        layout = self.snapshot.layout
        folder = folder_of(next(iter(self.files.values())))
        if not layout.has_folders and folder:
            raise UsageError(
                "the flat layout has no folders: leave the folder out",
            )
        for path, new in self.files.items():
            if not path.endswith(".md"):
                raise RefusedError(f"{shown_path(path)} is not a chunk file")
            made, target = (
                os.path.lexists(os.path.join(self.top, folder_of(one), RECORD_NAME))
                for one in (path, new)
            )
            chunk = chunk_file.parse(self.read(path))
            if (chunk.origin is not None and (made or chunk.source)) or chunk.kind == "summary":
                source = f" from {shown_path(chunk.source)}" if chunk.source else ""
                raise RefusedError(
                    f"{shown_path(self.store_path(path))} is generated{source}: move its document,"
                    " which gives it name and place"
                )
            if target and folder_of(new) != folder_of(path):
                raise RefusedError(
                    f"the chunk files in {shown_path(folder_of(new))} are made from its source",
                    remedy=ANOTHER,
                )

    def relinked(self) -> Iterator[Relinking]:
        """Own links, from chunk file to chunk file, as they are written otherwise."""
        catalog = self.snapshot.catalog
        linking = {
            decode_path(path)
            for old in self.files
            for path, _ in queries.links_to(catalog, encode_path(old))
        }
        known = set(map(decode_path, queries.all_paths(catalog)))
        for path in sorted({*linking, *self.files}):
            data, now = self.read(path), self.files.get(path, path)
            targets = {one: one for one in known} if path in self.files else {}
            made = links.relinked(data, path, {**targets, **self.files}, now)
            if made != data:
                ends = zip(_destinations_of(data), _destinations_of(made), strict=True)
                yield path, data, made, sum(one != other for one, other in ends)


class Sources(Documents):
    """What moving originals takes that lie in the work tree around the store."""

    def __init__(self, snapshot: "StoreSnapshot", wanted: Wanted) -> None:
        super().__init__(snapshot, wanted)
        self.top = os.path.realpath(repository.work_tree(self.places.root))
        self.reachable = Reachable(self.places, snapshot.originals)
        self.above = os.path.relpath(self.places.root, self.top).count("/") + 1
        documents = snapshot.catalog.documents()
        self.resources = {source: resource for _, resource, source, _ in documents}
        self.roots = {resource: root for _, resource, root, _ in snapshot.catalog.all_records()}

    def own(self, path: StorePath) -> ChunkPath:
        """A path below the top; see `Documents.own`."""
        found = self._path(path)
        if found == self.top or not is_below(found, self.top) or is_below(found, self.places.root):
            raise UsageError(
                f"{brief(shown_path(path))} is not a document of the work tree: name one,"
                " or a chunk file, and a place in the same tree"
            )
        return ChunkPath(os.path.relpath(found, self.top))

    def _path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.places.root, path))

    def store_path(self, path: ChunkPath) -> StorePath:
        """The inverse."""
        return StorePath(os.path.relpath(os.path.join(self.top, path), self.places.root))

    def check(self) -> None:
        """Refuse what was never added, and what would leave its resource."""
        moved = {self.store_path(old): self.store_path(new) for old, new in self.files.items()}
        known = [source for source in moved if source in self.resources]
        if not known:
            raise RefusedError(
                f"{shown_path(self.wanted.path)} is not a document of the store",
                remedy="'filestore ls' lists what is there; move anything else as usual",
            )
        for source in known:
            if self.reachable.path(source) is None or not self.reachable.may_hold(moved[source]):
                raise RefusedError(
                    f"the store may not look at {shown_path(source)}, or where it is to lie",
                    remedy="filestore trust",
                )
            root = self.roots[self.resources[source]]
            moved_root = self.folders.get(ChunkPath(os.path.relpath(self._path(root), self.top)))
            around = root if moved_root is None else self.store_path(moved_root)
            if root != source and not is_below(moved[source], around):
                raise RefusedError(
                    f"{shown_path(source)} belongs to {shown_path(self.resources[source])}, which"
                    f" is made of {shown_path(root)}: it can only be moved in there",
                    remedy="move it as usual, then 'filestore update --remove-gone' and"
                    " 'filestore add'",
                )

    def relinked(self) -> Iterator[Relinking]:
        """The originals in which links are written otherwise; see `Documents.relinked`."""
        near = [one for one in self.resources if self.reachable.is_near(one)]
        known = [self.own(StorePath(source)) for source in near]
        there = [path for path in known if os.path.lexists(os.path.join(self.top, path))]
        moves = Moves(
            self.files,
            documents=there,
            folders=self.folders,
            others=set(self.files).difference(there),
            exists=lambda path: os.path.lexists(os.path.join(self.top, path)),
        )
        yield from self._of_notes(sorted({*there, *self.files}), moves)

    def _broken(self, path: ChunkPath, moves: Moves) -> int:
        return 0

    def indexed(self, store: "Writing", done: Move, on_progress: OnProgress) -> Move:
        """What was done, with the originals re-ingested as `update` does."""
        moved = {str(one.path): one.to for one in done.moved if one.path in self.resources}
        folders = {
            str(self.store_path(old)): self.store_path(new) for old, new in self.folders.items()
        }
        touched = {*moved, *(one.path for one in done.relinked)} & self.resources.keys()
        request = update.UpdateRequest(
            resources=tuple(sorted({self.resources[source] for source in touched})),
            moved={**folders, **moved},
        )
        found = update.look(store.snapshot, request)
        report = update.apply(store, found, on_progress, group=done.undo or "")
        failed = [
            LeftFile(path=StorePath(one.source), reason=f"not re-ingested: {one.error.message}")
            for one in report.failed
            if one.error is not None
        ]
        return replace(
            done,
            left=(*done.left, *failed),
            embedded=report.embedded,
            reused=report.reused,
            problem=report.problem,
        )


def _destinations_of(data: bytes) -> list[str]:
    """Where the links of a chunk file lead, as they are written."""
    body = chunk_file.parse(data).body
    return [body[start:stop] for start, stop in destinations(body)]
