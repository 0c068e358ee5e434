"""Removal of resources, or of single chunk files: they go after a copy of each was kept.

One rule: all that are named at once, or none of them.
"""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from filestore.catalog import Catalog, UnknownResourceError
from filestore.chunks.observation import INDEXED, RECORD
from filestore.config.layout import Places
from filestore.core.errors import RefusedError
from filestore.core.paths import CHUNKS, ChunkPath, StorePath
from filestore.core.safe_text import listed, shown_path
from filestore.core.schema import JsonObject
from filestore.fs import disk
from filestore.git.repository import GitBusyError, refuse_during_operation, unmerged
from filestore.history import write

_NAMED: Final = 3
"""So many are named in the list of changes; the rest is counted."""


class NotKeptError(RefusedError):
    """A file that is to go cannot be read, so that undo could not bring it back."""


class Removed(JsonObject, Struct, frozen=True, kw_only=True):
    """What was removed."""

    KEYS = "resource files undo"

    resource: str
    """Its name."""
    paths: tuple[ChunkPath, ...]
    """Below `chunked/`."""
    undo: str | None
    """The name that `undo` takes."""

    @property
    def files(self) -> list[StorePath]:
        """The files that were removed."""
        return list(map(CHUNKS.store_path, self.paths))


class RemovedResources(JsonObject, Struct, frozen=True):
    """What `rm` prints."""

    removed: tuple[Removed, ...]
    """Each resource."""


class RemovedChunks(JsonObject, Struct, frozen=True, kw_only=True):
    """Which chunk files were removed."""

    paths: tuple[StorePath, ...]
    """The chunk files that were removed."""
    undo: str | None
    """The name that `undo` takes."""


def remove(places: Places, catalog: Catalog, resources: Sequence[str]) -> tuple[Removed, ...]:
    """Take resources out of the tree, as one change that is undone as one.

    Args:
        places: Where the store lies.
        catalog: In step with the tree, as after `sync`.
        resources: Their exact names, each once.

    Raises:
        UnknownResourceError: The catalog has no file of one of them.
        GitBusyError: A merge, rebase or the like is under way, or a file of one is unmerged.
        ChangedMeanwhile: A file was edited at this moment; none was removed.
        NotKeptError: A file cannot be read; none was removed.
    """
    refuse_during_operation(places.root)
    write.collect_leftovers(places)
    its_paths = {resource: _paths_of(catalog, resource) for resource in resources}
    paths = [path for one in its_paths.values() for path in one]
    records = [path for resource in resources for path in catalog.record_paths(resource)]
    _, undo = _taken_out(places, paths, resources, last=records)
    return tuple(
        Removed(resource=resource, paths=tuple(one), undo=undo)
        for resource, one in its_paths.items()
    )


def remove_chunks(places: Places, paths: Sequence[ChunkPath]) -> RemovedChunks:
    """Take single chunk files out of the tree, as one change that is undone as one.

    Args:
        places: Where the store lies.
        paths: Of chunk files; what is not there is passed over.

    Raises:
        RefusedError: One is no chunk file.
        GitBusyError: A merge, rebase or the like is under way, or a file is unmerged.
        ChangedMeanwhile: A file was edited at this moment; none was removed.
        NotKeptError: A file cannot be read; none was removed.
    """
    refuse_during_operation(places.root)
    write.collect_leftovers(places)
    for path in paths:
        if not path.endswith(".md"):
            raise RefusedError(
                f"{shown_path(CHUNKS.store_path(path))} is no chunk file",
                remedy="'filestore rm RESOURCE' removes a resource with its record",
            )
    gone, undo = _taken_out(places, paths)
    return RemovedChunks(paths=gone, undo=undo)


def _taken_out(
    places: Places,
    paths: Sequence[ChunkPath],
    named: Sequence[str] = (),
    last: Sequence[ChunkPath] = (),
) -> tuple[tuple[StorePath, ...], str | None]:
    """The files that went, and the name that `undo` takes; without names it has theirs."""
    refuse_unmerged(places, paths)
    before = {CHUNKS.store_path(path): data for path, data in _read(places, paths).items()}
    undo = write.change(
        places,
        dict.fromkeys(before),
        before=before,
        command=f"rm {listed(named or list(before), _NAMED, separator=' ')}",
        last=[CHUNKS.store_path(path) for path in last],
    )
    return tuple(before), undo


def _paths_of(catalog: Catalog, resource: str) -> list[ChunkPath]:
    """The files of a resource, its records last."""
    rows = catalog.files_of(resource)
    paths = sorted(row.path for row in rows if row.state in (INDEXED, RECORD) or row.file_hash)
    paths += [path for path in catalog.record_paths(resource) if path not in paths]
    if not paths:
        raise UnknownResourceError(
            f"no resource {resource!r}", remedy="'filestore ls' lists what is there"
        )
    return paths


def refuse_unmerged(places: Places, paths: Collection[ChunkPath]) -> None:
    """Let no file be written that git holds unmerged, which outlives its operation.

    Such a file comes of ``git stash pop``, say: nothing is under way, and one side of it may be
    nowhere else.

    Args:
        places: Where the store lies.
        paths: The files.

    Raises:
        GitBusyError: One of them is unmerged.
    """
    held = sorted(unmerged(places.chunked).intersection(paths))
    if held:
        names = listed((shown_path(CHUNKS.store_path(path)) for path in held), 1)
        raise GitBusyError(
            f"git has {names} as unmerged: it is not touched until that is resolved",
            remedy="resolve the conflict, 'git add' the file, and run the command again",
        )


def _read(places: Places, paths: Sequence[ChunkPath]) -> dict[ChunkPath, bytes]:
    """What the files hold that are still there.

    Raises:
        NotKeptError: One cannot be read.
    """
    found = {}
    with disk.folder_at(places.chunked) as handle:
        for path in paths:
            try:
                found[path] = disk.read_below(handle, path)[0]
            except FileNotFoundError:
                continue
            except OSError as error:
                shown = shown_path(CHUNKS.store_path(path))
                raise NotKeptError(
                    f"{shown} cannot be kept, so nothing was removed: {error.strerror or error}",
                    remedy=f"make {shown} an ordinary, readable file again, or remove it by hand",
                ) from error
    return found
