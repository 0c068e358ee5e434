"""What a writer that died left outside of `chunked/` and the sidecar: found, and collected.

Temporary files in the root, below `source/` and below `.undo/`, originals that were never recorded,
and among documents, where no other folder is ours, those of a note that was broken off. `drift`
tells what lies in `chunked/`. One rule: only what bears a name of ours is removed, and only by
whoever holds the writer's lock.
"""

import contextlib
import os
import stat
from collections.abc import Iterator

from filestore.config.layout import Places
from filestore.core.findings import Finding
from filestore.core.paths import StorePath, is_made
from filestore.fs import disk, part
from filestore.history.backup_store import Originals, broken_off, is_temporary

_DEEPEST = 64
"""Folders below this are not looked into, as in the tree of chunk files."""


def findings(places: Places) -> list[Finding]:
    """What is there; none where the root cannot be read."""
    return [
        Finding(
            code="leftovers",
            path=StorePath(path),
            detail="left by a filestore process that was killed",
        )
        for path in [*_temporary(places), *_of_originals(places)]
    ]


def collect(places: Places) -> list[Finding]:
    """Remove what is there, and say what that was. The lock is held."""
    found = findings(places)
    with disk.folder_at(places.root) as root:
        for finding in found:
            folder, _, name = finding.path.rpartition("/")
            with contextlib.suppress(OSError), _opened(places, root, folder) as handle:
                if is_temporary(name):
                    os.unlink(name, dir_fd=handle)
                else:
                    Originals(handle).discard(name)
    return found


@contextlib.contextmanager
def _opened(places: Places, root: int, folder: str) -> Iterator[int]:
    """A folder as findings name it; that of the originals may lie outside of the root."""
    kept = places.undo_name
    if folder != kept and not folder.startswith(f"{kept}/"):
        with disk.folder(root, folder) as handle:
            yield handle
        return
    with (
        part.own_folder(places.undo) as undo,
        disk.folder(undo, folder[len(kept) + 1 :]) as handle,
    ):
        yield handle


def _temporary(places: Places) -> Iterator[str]:
    """Temporary files, relative to the root; no link is followed."""
    try:
        root = os.open(places.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        yield from _names_in(root, "")[0]
        if places.is_in_place:
            for folder in sorted(_under_way(places)):
                yield from _names_in(root, folder)[0]
            return
        waiting = ["source"]
        while waiting:
            found, folders = _names_in(root, waiting.pop())
            yield from found
            waiting += folders
    finally:
        os.close(root)


def _under_way(places: Places) -> set[str]:
    """The folders of documents in which a writer that died was about to write."""
    folders = {os.path.dirname(path) for group in broken_off(places.undo) for path in group.links()}
    # `drift` tells what lies among what was made of documents.
    return {one for one in folders if one and not is_made(f"{one}/")}


def _names_in(root: int, folder: str) -> tuple[list[str], list[str]]:
    """The temporary files and the folders of a folder; nothing where it cannot be read."""
    start = f"{folder}/" if folder else ""
    found, folders = [], []
    with (
        contextlib.suppress(OSError),
        disk.folder(root, folder) as handle,
        os.scandir(handle) as entries,
    ):
        for entry in entries:
            if is_temporary(entry.name):
                status = entry.stat(follow_symlinks=False)
                found += [start + entry.name] if stat.S_ISREG(status.st_mode) else []
            elif folder.count("/") < _DEEPEST and entry.is_dir(follow_symlinks=False):
                folders.append(start + entry.name)
    return sorted(found), sorted(folders)


def _of_originals(places: Places) -> Iterator[str]:
    """What was begun under `.undo/`: nothing was changed after it."""
    if not disk.is_folder(places.undo):
        return
    # A writer may begin, and remove what is there, while it is looked at.
    with contextlib.suppress(OSError), Originals.open(places.undo) as originals:
        for name in originals.leftovers():
            mode = os.lstat(os.path.join(places.undo, name)).st_mode
            if stat.S_ISREG(mode) == is_temporary(os.path.basename(name)):
                yield f"{places.undo_name}/{name}"
