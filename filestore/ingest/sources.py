"""Sources: what a person names to be added, what it is called, and its bytes.

Reads originals; knows nothing of chunk files. One rule: what cannot be used is a `SourceError` that
says why.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.config.layout import MAX_SOURCE_BYTES
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.hashing import source_hash
from filestore.core.safe_text import brief
from filestore.extract.folder import children
from filestore.fs import disk
from filestore.fs.path_names import on_disk
from filestore.verify.names import why_impossible, why_no_name, why_unportable

_ANOTHER_NAME: Final = "choose a name with --into"


class SourceError(FilestoreError):
    """A source cannot be read or used."""


class SourcePath(Struct, frozen=True, kw_only=True):
    """A source as the user named it, and what it is to be called."""

    path: str
    """Absolute."""
    resource: str
    named: bool = False
    """Whether the user chose the name."""
    note: str | None = None
    """Why it is called otherwise than its file, if it is."""
    implied: bool = False
    """Whether it was found in a folder, not named: the store itself is then passed over."""
    found_in: str | None = None
    """The folder, absolute, that was named in its stead: its ignore rules hold for it too."""
    recorded: str | None = None
    """Its reference where a record names it; None for a source that a person names."""
    is_copied: bool = True
    """Whether the store keeps a copy if it lies outside the work tree."""
    was: str | None = None
    """Its reference in the record, where it was renamed since."""
    renames: Mapping[str, str] = {}
    """Documents that were edited while they were renamed, as recorded, to what they are called."""
    gone: Literal["drop", "keep", "all"] = "drop"
    """What becomes of documents that are gone: their chunks go as well, or stay; ``all`` where
    nothing of the source is there, and all of its chunks are to go."""
    drops: frozenset[str] | None = None
    """The only documents whose chunks may go, as recorded; None for all that are not found."""

    @property
    def may_drop(self) -> frozenset[str]:
        """What of `drops` is to go."""
        return self.drops or frozenset() if self.gone == "drop" else frozenset()


class Sources(Struct, frozen=True, kw_only=True):
    """What one path stands for, and what of a folder stands for nothing."""

    paths: tuple[SourcePath, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    """Path and reason of what was left out although it might be meant; the path begins with that
    of the folder, as it was given."""
    ignored: int = 0
    """How many files and folders ignore rules left out."""
    other: int = 0
    """How many files were passed over for their format."""

    def __len__(self) -> int:
        """How many sources there are."""
        return len(self.paths)

    def __iter__(self) -> Iterator[SourcePath]:
        """Its sources."""
        return iter(self.paths)


class Given(Struct, frozen=True, kw_only=True):
    """What the paths given to `add` stand for."""

    folders: tuple[tuple[str, Sources], ...]
    """Each path that can be used, as it was given."""
    unusable: tuple[tuple[str, FilestoreError], ...]

    def outside(self, root: str, *, copy: bool = True) -> list[SourcePath]:
        """The sources, without the store itself where it was found in a folder.

        Args:
            root: Of the store.
            copy: Whether those outside the work tree are copied.
        """
        store = os.path.realpath(root)
        return [
            replace(source, is_copied=copy)
            for _, found in self.folders
            for source in found
            if not (source.implied and os.path.realpath(source.path) == store)
        ]


def given(paths: Sequence[str], *, into: str | None, each: bool, patterns: Sequence[str]) -> Given:
    """What several paths stand for; see `sources_of`.

    Raises:
        UsageError: One name is given to several resources.
    """
    if into is not None and (len(paths) > 1 or each):
        raise UsageError("--into names one resource", remedy="add one path at a time with --into")
    folders: list[tuple[str, Sources]] = []
    unusable: list[tuple[str, FilestoreError]] = []
    for path in paths:
        try:
            folders.append((path, sources_of(path, into=into, each=each, patterns=patterns)))
        except FilestoreError as error:
            unusable.append((path, error))
    return Given(folders=tuple(folders), unusable=tuple(unusable))


def sources_of(path: str, *, into: str | None, each: bool, patterns: Sequence[str] = ()) -> Sources:
    """What one path given to `add` stands for: itself, or with `each` every child of the folder.

    Args:
        path: As the user gave it.
        into: The name that the user chose.
        each: Whether every child of the folder is a source.
        patterns: Ignore rules of the store, beside those that lie in the folder.

    Raises:
        SourceError: It does not exist or cannot be read.
        IgnoreRulesError: Ignore rules in or around the folder cannot be followed.
    """
    if not path:
        raise UsageError("an empty path was given", remedy="name a file or a folder")
    place = on_disk(absolute(path))
    if not os.path.lexists(place):
        raise SourceError(f"no such file or folder: {path}", remedy="check the path")
    if not each:
        name = into if into is not None else os.path.basename(place)
        source = SourcePath(path=place, resource=name, named=into is not None)
        return Sources(paths=(source,))
    if not os.path.isdir(place):
        raise SourceError(f"{path} is not a folder", remedy="leave --each out for a file")
    try:
        listing = children(place, leave_out=lambda _: False, patterns=patterns)
    except OSError as error:
        raise unreadable(path, error) from error
    found = (
        SourcePath(path=os.path.join(place, name), resource=name, implied=True, found_in=place)
        for name in listing.paths
    )
    return Sources(
        paths=tuple(found),
        skipped=tuple((os.path.join(path, name), reason) for name, reason in listing.skipped),
        ignored=listing.ignored,
        other=listing.other,
    )


def check_name(name: str, *, chosen_in: str = "", remedy: str = _ANOTHER_NAME) -> None:
    """Refuse a name that cannot be a folder of the store.

    Args:
        name: Of a resource, or of a folder that a program names.
        chosen_in: Where it is to lie, of one that somebody thought of: unless it is there already
            every system has to hold it. "" for the name of a file that is added, as that is.
        remedy: What helps.

    Raises:
        SourceError: It cannot.
    """
    reason = why_impossible(name)
    if not reason and chosen_in and not os.path.lexists(os.path.join(chosen_in, name)):
        reason = why_no_name(name) or why_unportable(name)
    if reason:
        raise SourceError(f"{brief(name)} cannot name a resource: {reason}", remedy=remedy)


def read_source(path: str) -> bytes:
    """The bytes of an original.

    Raises:
        SourceError: It is no regular file, or too large.
        OSError: It cannot be read.
    """
    try:
        return disk.read_path(path, limit=MAX_SOURCE_BYTES, follow_links=True)
    except disk.NotAFileError as error:
        raise SourceError(error.message, remedy="add a file or a folder") from error
    except disk.FileTooLargeError as error:
        raise SourceError(error.message, remedy="cut it into smaller files") from error


class Original(Struct, frozen=True, kw_only=True):
    """One document as it was read; a large folder is not held in memory but read again."""

    path: str
    """Absolute."""
    hash: str
    """As records have it."""
    held: bytes | None
    """Its bytes, as long as there is room."""
    size_bytes: int

    def data(self) -> bytes:
        """Its bytes.

        Raises:
            SourceError: It was replaced meanwhile.
            OSError: It cannot be read.
        """
        if self.held is not None:
            return self.held
        data = read_source(self.path)
        if source_hash(data) != self.hash:
            raise SourceError(f"{self.path} changed while it was added", remedy="add it again")
        return data


def read_original(path: str, *, room: int) -> Original:
    """Read an original, and hold it if it has at most so many bytes.

    Raises:
        SourceError: It is no regular file, or too large.
        OSError: It cannot be read.
    """
    data = read_source(path)
    held = data if len(data) <= room else None
    return Original(path=path, hash=source_hash(data), held=held, size_bytes=len(data))


def unreadable(path: str, error: OSError | FilestoreError) -> FilestoreError:
    """The error for an original that cannot be read."""
    if isinstance(error, FilestoreError):
        return error
    return SourceError(
        f"cannot read {path}: {error.strerror or error}",
        remedy="make it readable, then add it again",
        detail=str(error),
    )
