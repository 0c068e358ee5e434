"""Why a store, or a part of it, is not opened at all: planted by somebody else, or too new.

Looks at stats only. One rule: what may be a stranger's, or mean what we do not know, is not read.
"""

import os
import stat

from filestore.catalog import CatalogNewerError
from filestore.config.layout import CATALOG, EMBEDDINGS, SETTINGS, Places
from filestore.config.settings import NewerFormatError
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.findings import Finding
from filestore.core.paths import CHUNKS, SIDECAR, StorePath, Tree


class UnreadableSidecarError(FilestoreError, PermissionError):
    """The sidecar is there, and this user may not look into it."""


class UnsafeSidecarError(RefusedError):
    """The sidecar could have been planted by somebody else."""

    path: StorePath = SIDECAR
    """As findings name it."""


def check_sidecar(places: Places) -> None:
    """Refuse a sidecar that somebody else could have planted.

    Raises:
        UnsafeSidecarError: It is a link, another's, or open to everybody's writing.
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
        reason = "everybody may write to it"
    elif not os.access(path, os.R_OK | os.X_OK):
        raise UnreadableSidecarError(
            f"the sidecar {path} cannot be read: it belongs to user {seen.st_uid},"
            f" with mode {stat.S_IMODE(seen.st_mode):03o}",
            remedy="run it as that user, or name a sidecar of your own for this store under"
            " [sidecar] in filestore/settings.toml of your configuration folder",
        )
    if reason:
        error = UnsafeSidecarError(
            f"the sidecar {path} is not safe to open: {reason}",
            remedy=f"fix its owner and mode, or 'rm -r {path}' and then 'filestore sync'",
        )
        error.path = places.sidecar_name
        raise error


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
