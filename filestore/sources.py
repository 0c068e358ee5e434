"""Sources: what a person names to be added, what it is called, and its bytes.

Reads originals; knows nothing of chunk files. One rule: what cannot be used is a `SourceError` that
says why.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from filestore.errors import FilestoreError, UsageError
from filestore.extract.folder import children

MAX_SOURCE_BYTES: Final = 256 * 1024 * 1024
MAX_NAME_BYTES: Final = 255


class SourceError(FilestoreError):
    """A source cannot be read or used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePath:
    """A source as the user named it, and what it is to be called."""

    path: str
    """Absolute."""
    resource: str
    named: bool = False
    """Whether the user chose the name."""
    implied: bool = False
    """Whether it was found in a folder, not named: the store itself is then passed over."""


def sources_of(
    path: str, *, into: str | None, each: bool, patterns: Sequence[str] = ()
) -> list[SourcePath]:
    """What one path given to `add` stands for: itself, or with `each` every child of the folder.

    Args:
        path: As the user gave it.
        into: The name that the user chose.
        each: Whether every child of the folder is a source.
        patterns: Ignore rules of the store, beside those that lie in the folder.

    Raises:
        SourceError: It does not exist or cannot be read.
    """
    if not path:
        raise UsageError("an empty path was given", remedy="name a file or a folder")
    absolute = os.path.abspath(path)
    if not os.path.lexists(absolute):
        raise SourceError(f"no such file or folder: {path}", remedy="check the path")
    if not each:
        name = into if into is not None else os.path.basename(absolute)
        return [SourcePath(path=absolute, resource=name, named=into is not None)]
    if not os.path.isdir(absolute):
        raise SourceError(f"{path} is not a folder", remedy="leave --each out for a file")
    try:
        listing = children(absolute, leave_out=lambda _: False, patterns=patterns)
    except OSError as error:
        raise unreadable(path, error) from error
    return [
        SourcePath(path=os.path.join(absolute, name), resource=name, implied=True)
        for name in listing.paths
    ]


def check_name(name: str) -> None:
    """Refuse a resource name that cannot be a folder of the store.

    Raises:
        SourceError: It cannot.
    """
    reason = ""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        reason = "a resource name is one folder name"
    elif name.startswith("."):
        reason = "a name that starts with a dot is hidden from the walk"
    elif len(os.fsencode(name)) > MAX_NAME_BYTES:
        reason = f"a name has at most {MAX_NAME_BYTES} bytes"
    else:
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            reason = "it is not valid UTF-8"
    if reason:
        raise SourceError(
            f"{name!r} cannot name a resource: {reason}", remedy="choose a name with --into"
        )


def read_source(path: str) -> bytes:
    """The bytes of an original.

    Raises:
        SourceError: It is no regular file, or too large.
        OSError: It cannot be read.
    """
    if not os.path.isfile(path):
        raise SourceError(f"{path} is not a regular file", remedy="add a file or a folder")
    size = os.path.getsize(path)
    if size > MAX_SOURCE_BYTES:
        raise SourceError(
            f"{path} has {size} bytes, the limit is {MAX_SOURCE_BYTES}",
            remedy="cut it into smaller files",
        )
    with open(path, "rb") as file:
        return file.read()


def inside(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def unreadable(path: str, error: OSError) -> FilestoreError:
    """The error for an original that cannot be read."""
    if isinstance(error, FilestoreError):
        return error
    return SourceError(
        f"cannot read {path}: {error.strerror or error}",
        remedy="make it readable, then add it again",
        detail=str(error),
    )
