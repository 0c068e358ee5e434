"""Why a store, or a part of it, is not opened at all: planted by somebody else, or too new.

Looks at stats only. One rule: what may be a stranger's, or mean what we do not know, is not read.
"""

import os
import stat

from filestore.catalog import CatalogNewerError
from filestore.errors import FilestoreError, RefusedError
from filestore.findings import Finding
from filestore.settings import NewerFormatError


class UnsafeSidecarError(RefusedError):
    """The sidecar could have been planted by somebody else."""


def check_sidecar(path: str) -> None:
    """Refuse a sidecar that somebody else could have planted.

    Raises:
        UnsafeSidecarError: It is a link, another's, or open to everybody's writing.
    """
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
    if reason:
        raise UnsafeSidecarError(
            f"the sidecar {path} is not safe to open: {reason}",
            remedy=f"mend its owner and mode, or 'rm -r {path}' and then 'filestore sync'",
        )


def refusal(error: FilestoreError) -> Finding | None:
    """The finding that a refusal is; None for an error that is none."""
    from filestore.embed.cache import EmbeddingsNewer

    if isinstance(error, UnsafeSidecarError):
        return Finding(code="unsafe-sidecar", path=".sidecar", detail=error.message)
    newer: tuple[tuple[type[FilestoreError], str], ...] = (
        (NewerFormatError, "filestore.toml"),
        (CatalogNewerError, ".sidecar/catalog.sqlite"),
        (EmbeddingsNewer, ".sidecar/embeddings.sqlite"),
    )
    for kind, path in newer:
        if isinstance(error, kind):
            return Finding(code="format-newer", path=path, detail=error.message)
    return None
