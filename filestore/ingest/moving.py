"""Files given another path, with the links to them: planned, then made as one change.

In place files are documents. In a tree of chunk files they are originals in the work tree around
the store, which are re-ingested, or chunk files that a person wrote. One rule: a link that led to a
file leads to it afterwards; what cannot be written so stays and is reported, or nothing is moved.
"""

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from filestore.config.layout import Places
from filestore.core.caller import absolute, working_folder
from filestore.core.errors import UsageError
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, ignore
from filestore.fs.path_names import typed_paths
from filestore.fs.transaction import ChangedMeanwhile
from filestore.git.repository import refuse_during_operation
from filestore.history import write
from filestore.ingest import put
from filestore.ingest.moved_files import Documents, Move, MoveWork, Wanted
from filestore.ingest.moved_originals import Chunks, Sources

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
        raise UsageError("the new path is empty", remedy="filestore mv PATH NEW")
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
    tree = snapshot.places.tree
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
    refuse_during_operation(places.root)
    write.collect_leftovers(places)
    planner = _planner(store.snapshot, wanted)
    work = planner.work()
    if shown is not None and not work.plan.is_as(shown):
        raise ChangedMeanwhile(
            "files were edited since the plan was shown: nothing was moved",
            remedy="look at the plan again",
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
