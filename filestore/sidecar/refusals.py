"""Why a store, or a part of it, is not opened at all: planted by somebody else, or too new.

Looks at stats only. One rule: what may be a stranger's, or mean what we do not know, is not read.
"""

import os
import stat
from typing import Final

from filestore.catalog import CatalogNewerError
from filestore.config.layout import CATALOG, EMBEDDINGS, PARTS, SETTINGS, Places
from filestore.config.settings import NewerFormatError
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.findings import Finding
from filestore.core.paths import CHUNKS, SIDECAR, StorePath, Tree, is_below
from filestore.fs import part
from filestore.fs.part import NAME_SIDECAR

_DOCUMENTS: Final = "this store indexes the folder itself"
_USELESS: Final = {
    "add": (
        "so 'add' has nothing to add",
        "'filestore sync' indexes the files that are in it",
    ),
    "import": (
        "so 'import' has no chunk files to write",
        "import into a store of its own: 'filestore init DIR', then 'filestore --store DIR import'",
    ),
    "put": (
        "so 'put' has no chunk files to write",
        "write the file there, then 'filestore sync'",
    ),
    "rm": ("so 'rm' removes nothing", "delete the files yourself, then 'filestore sync'"),
    "update": ("so 'update' has no copies to renew", "'filestore sync' indexes your edits"),
    "repair": ("so 'repair' writes only links", "edit the file, then 'filestore sync'"),
    "reconstruct": ("so there is nothing to rebuild", "open the file itself"),
}
"""Command to why it does nothing where the files are documents, and what to do instead."""


class NotWrittenError(FilestoreError):
    """A command writes truth files, and the store's are documents that it never writes."""


class UnreadableSidecarError(FilestoreError, PermissionError):
    """The sidecar is there, and this user may not look into it."""


class UnsafeSidecarError(RefusedError):
    """The sidecar could have been planted by somebody else."""

    path: StorePath = SIDECAR
    """As findings name it."""


def check_sidecar(places: Places) -> None:
    """Refuse a sidecar that somebody else could have planted, or a folder of it.

    Raises:
        UnsafeSidecarError: It is a link, another's, or open to everybody's writing; or a folder in
            it is another's, or lies on another file system.
        UnreadableSidecarError: What is in it cannot be seen.
    """
    path = places.sidecar
    try:
        seen = os.lstat(path)
    except FileNotFoundError:
        return
    reason = ""
    if not stat.S_ISDIR(seen.st_mode):
        reason = "it is not a folder" if not stat.S_ISLNK(seen.st_mode) else "it is a symbolic link"
    elif seen.st_uid not in (os.geteuid(), 0):
        reason = f"it belongs to user {seen.st_uid}"
    elif seen.st_mode & stat.S_IWOTH:
        reason = "everyone may write to it"
    elif not os.access(path, os.R_OK | os.X_OK):
        raise UnreadableSidecarError(
            f"the sidecar {path} cannot be read: it belongs to user {seen.st_uid},"
            f" with mode {stat.S_IMODE(seen.st_mode):03o}",
            remedy=f"run it as that user, or {NAME_SIDECAR}",
        )
    if reason:
        error = UnsafeSidecarError(
            f"the sidecar {path} is not safe to open: {reason}",
            remedy=f"'rm -r {path} && filestore sync' rebuilds it; or fix its owner and mode",
        )
        error.path = places.sidecar_name
        raise error
    try:
        part.check_mounts(path)
    except part.UnsafePartError as problem:
        raise UnsafeSidecarError(problem.message, remedy=problem.remedy) from problem
    for name in (one.name for one in PARTS if one.kind == "folder" and "/" not in one.name):
        try:
            part.check(os.path.join(path, name), "folder")
        except part.UnsafePartError as problem:
            error = UnsafeSidecarError(problem.message, remedy=problem.remedy)
            error.path = places.part(name)
            raise error from problem
        except OSError:
            # A command that writes to it puts a folder in its place, or reports what lies there.
            continue


def refuse_useless(places: Places, command: str) -> None:
    """Refuse a command that the layout of a store has no use for.

    Raises:
        NotWrittenError: Documents are indexed in place. No force changes that, so it is not refused
            for safety.
    """
    if not places.tree.is_written:
        raise useless_error(command)


def useless_error(command: str) -> NotWrittenError:
    """Why a layout has no use for a command, and what to do instead."""
    reason, remedy = _USELESS[command]
    return NotWrittenError(f"{_DOCUMENTS}, {reason}", remedy=remedy)


def own_folder_of(places: Places, path: str) -> str:
    """The folder with files of the store that a path lies in, wherever links lead; "" for none."""
    place = absolute(path)
    for folder in (places.chunked, places.sidecar, places.undo, places.source):
        if is_below(place, os.path.realpath(folder)):
            return folder
    return ""


def refusal(error: FilestoreError, tree: Tree = CHUNKS) -> Finding | None:
    """The finding that a refusal is, in a store with this tree; None for an error that is none."""
    from filestore.embed.cache import EmbeddingsNewer

    if isinstance(error, UnsafeSidecarError):
        return Finding(code="unsafe-sidecar", path=error.path, detail=error.message)
    newer: tuple[tuple[type[FilestoreError], StorePath], ...] = (
        (NewerFormatError, SETTINGS),
        (CatalogNewerError, tree.part(CATALOG)),
        (EmbeddingsNewer, tree.part(EMBEDDINGS)),
    )
    for kind, path in newer:
        if isinstance(error, kind):
            return Finding(code="format-newer", path=path, detail=error.message)
    return None
