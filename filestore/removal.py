"""Removal of a resource: its chunk files and record go, after a copy of each was kept."""

import os
from dataclasses import dataclass

from filestore import fileio
from filestore.catalog import Catalog, UnknownResourceError
from filestore.observation import INDEXED, RECORD
from filestore.originals import keep_originals
from filestore.places import Places


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
        OSError: A file cannot be read, so it is not removed either.
    """
    rows = catalog.files_of(resource)
    paths = sorted(row.path for row in rows if row.state in (INDEXED, RECORD) or row.file_hash)
    paths += [path for path in catalog.record_paths(resource) if path not in paths]
    if not paths:
        raise UnknownResourceError(
            f"no resource {resource!r}", remedy="'filestore ls' lists what is there"
        )
    handle = os.open(places.chunked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        before = {}
        for path in paths:
            try:
                before[path] = fileio.read_below(handle, path)[0]
            except FileNotFoundError:
                continue
        undo = keep_originals(
            places.undo, f"rm {resource}", {path: (data, None) for path, data in before.items()}
        )
        for path in before:
            parent, _, name = path.rpartition("/")
            with fileio.folder(handle, parent) as folder:
                os.unlink(name, dir_fd=folder)
        fileio.sync_folders(handle, {path.rpartition("/")[0] for path in before})
    finally:
        os.close(handle)
    for parent in {path.rpartition("/")[0] for path in paths}:
        fileio.remove_empty_folders(places.chunked, parent)
    return Removed(resource=resource, paths=tuple(paths), undo=undo)
