"""The truth files of one resource on disk: looked at, written whole or not at all, taken away.

Knows nothing of what they say. One rule: before a file that is there changes, its bytes are kept
under `.undo/`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from filestore import fileio
from filestore.drift import look_at
from filestore.hashing import source_hash
from filestore.observation import Observation
from filestore.originals import keep_originals
from filestore.places import Places
from filestore.settings import Layout


class FolderOfStore:
    """A folder below a root, made where missing and taken away again if it stays empty."""

    def __init__(self, root: str, path: str) -> None:
        self._root = root
        self._path = path

    def __enter__(self) -> int:
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._handle = fileio.make_folders(root, self._path)
        finally:
            os.close(root)
        return self._handle

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._handle)
        if kind is not None and self._path:
            fileio.remove_empty_folders(self._root, self._path)


def chunk_files(folder: str) -> Iterator[str]:
    """Markdown files below a folder, at any depth, relative to it."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(".md") and not name.startswith("."):
                yield os.path.relpath(os.path.join(path, name), folder)


def look_at_existing(places: Places, paths: Sequence[str], layout: Layout) -> list[Observation]:
    """Observations of the files that are there.

    Raises:
        OSError: One is there and cannot be read.
    """
    if not os.path.isdir(places.chunked):
        return []
    found = []
    for look in look_at(places, paths, layout):
        if isinstance(look, Observation):
            found.append(look)
        elif not isinstance(look[1], FileNotFoundError):
            raise look[1]
    return found


def remove_copy(root: str, reference: str, digest: str) -> None:
    """Remove the copy of an original that is no longer part of its source, if it is unchanged.

    Args:
        root: The store's.
        reference: Where the copy lies, relative to the root.
        digest: What it was when it was copied; another file is somebody's own.
    """
    path = os.path.join(root, reference)
    try:
        with open(path, "rb") as file:
            if source_hash(file.read()) != digest:
                return
        os.unlink(path)
    except OSError:
        return
    fileio.remove_empty_folders(root, os.path.dirname(reference))


def change(
    places: Places,
    prefix: str,
    writes: Mapping[str, bytes],
    deletions: Sequence[str],
    *,
    before: Mapping[str, bytes],
    command: str,
) -> str | None:
    """Keep the originals, write all files whole or none, then remove what is no longer made.

    Args:
        places: Where the store lies.
        prefix: The folder below `chunked/`, "" for itself.
        writes: Name to bytes.
        deletions: Names.
        before: The bytes of those that are there.
        command: What is being done, for the list of what can be undone.

    Returns:
        Under which name the originals are kept; None where nothing that was there changed.
    """
    start = f"{prefix}/" if prefix else ""
    fresh = {name: data for name, data in writes.items() if before.get(name) != data}
    changes: dict[str, tuple[bytes | None, bytes | None]] = {
        f"{start}{name}": (before.get(name), data) for name, data in fresh.items()
    }
    changes |= {f"{start}{name}": (before[name], None) for name in deletions}
    kept = keep_originals(places.undo, command, changes)
    with FolderOfStore(places.chunked, prefix) as handle:
        fileio.write_all_at(handle, fresh)
        for name in deletions:
            os.unlink(name, dir_fd=handle)
        os.fsync(handle)
    return kept
