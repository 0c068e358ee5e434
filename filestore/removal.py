"""Removal of a resource: its chunk files and record go, after a copy of each was kept."""

import os
from collections.abc import Collection
from dataclasses import dataclass

from filestore import fileio, truth
from filestore.catalog import Catalog, UnknownResourceError
from filestore.drift import root_path
from filestore.observation import INDEXED, RECORD
from filestore.places import Places
from filestore.safe_text import shown_path
from filestore.worktree import GitBusyError, refuse_during_operation, unmerged


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was removed."""

    resource: str
    paths: tuple[str, ...]
    """Below `chunked/`."""
    undo: str | None
    """The batch with the originals."""


def remove(places: Places, catalog: Catalog, resource: str) -> Removed:
    """Take a resource out of the tree.

    Args:
        places: Where the store lies.
        catalog: In step with the tree, as after `sync`.
        resource: Its exact name.

    Raises:
        UnknownResourceError: The catalog has no file of it.
        GitBusyError: A merge, rebase or the like is under way, or a file of it is unmerged.
        ChangedMeanwhile: A file was edited at this moment; none was removed.
        OSError: A file cannot be read, so none is removed.
    """
    refuse_during_operation(places.root)
    truth.collect_leftovers(places)
    rows = catalog.files_of(resource)
    paths = sorted(row.path for row in rows if row.state in (INDEXED, RECORD) or row.file_hash)
    its_records = catalog.record_paths(resource)
    paths += [path for path in its_records if path not in paths]
    if not paths:
        raise UnknownResourceError(
            f"no resource {resource!r}", remedy="'filestore ls' lists what is there"
        )
    refuse_unmerged(places, paths)
    before = {root_path(path): data for path, data in _read(places, paths).items()}
    undo = truth.change(
        places,
        dict.fromkeys(before),
        before=before,
        command=f"rm {resource}",
        last=[root_path(path) for path in its_records],
    )
    return Removed(resource=resource, paths=tuple(paths), undo=undo)


def refuse_unmerged(places: Places, paths: Collection[str]) -> None:
    """Let no file be written that git holds unmerged, which outlives its operation.

    Such a file comes of ``git stash pop``, say: nothing is under way, and one side of it may be
    nowhere else.

    Args:
        places: Where the store lies.
        paths: Below `chunked/`.

    Raises:
        GitBusyError: One of them is unmerged.
    """
    held = sorted(unmerged(places.chunked).intersection(paths))
    if held:
        others = f" and {len(held) - 1} more" if len(held) > 1 else ""
        first = shown_path(root_path(held[0]))
        raise GitBusyError(
            f"git has {first}{others} as unmerged: it is not touched until that is resolved",
            remedy="resolve the conflict, 'git add' the file, and run the command again",
        )


def _read(places: Places, paths: list[str]) -> dict[str, bytes]:
    """What the files hold that are still there."""
    found = {}
    handle = os.open(places.chunked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path in paths:
            try:
                found[path] = fileio.read_below(handle, path)[0]
            except FileNotFoundError:
                continue
    finally:
        os.close(handle)
    return found
