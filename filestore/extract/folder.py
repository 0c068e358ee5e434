"""Which files below a folder are documents to be added.

Holds no extraction. One rule: no symbolic link is followed and nothing outside the folder is read,
but for the ignore rules of the work tree it lies in; whatever is left out although a person might
expect it is reported with a reason, or counted where ignore rules name it or its format holds no
text. Hidden files, editors' litter and the folders that tools make are left out in silence.

A store in the folder is left out: its chunk files were made from documents.

`ignore_files` says which ignore rules hold where. A folder that is left out is not entered,
whatever rules speak of what is in it.
"""

import os
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from filestore.config.layout import Places
from filestore.extract import (
    DRESSING_SUFFIXES,
    is_litter,
    is_read,
    unread_document,
)
from filestore.extract.ignore_files import (
    Applied,
    FolderAt,
    entered,
    is_made_by_tools,
    path_bytes,
    start,
)
from filestore.fs import disk

_INDEX_PAGES: Final = frozenset({"index", "readme", "_index"})
_PAGE_SUFFIXES: Final = frozenset({".html", ".htm", ".xhtml"})
STORE: Final = "holds the chunk files of a filestore store, not documents"
_PROJECT_FILES: Final = """
    bower.json build.gradle cargo.toml cmakelists.txt composer.json deno.json gemfile go.mod
    makefile package.json pom.xml pyproject.toml setup.py tsconfig.json
"""
"""What is at the top of a code tree and of no site, in lower case."""

_Path = tuple[str, ...]


class FolderListing(Struct, frozen=True, kw_only=True):
    """What a folder holds."""

    paths: tuple[str, ...]
    """Documents, relative to the folder, forward slashes; index pages first in their folder, then
    by the bytes of each part, files and folders together."""
    skipped: tuple[tuple[str, str], ...]
    """Path and reason of what was left out although it might be wanted; by path."""
    ignored: int = 0
    """How many files and folders ignore rules left out; a folder counts as one."""
    other: int = 0
    """How many files were passed over for their format: pictures, archives, programs, data, what
    tools generate, and scripts and styles of a site."""
    entered: tuple[str, ...] = ()
    """Every folder that was listed, relative to the folder; "" for itself."""


class _Folder(Struct, frozen=True):
    path: _Path
    applied: Applied


class _Walk(Struct, kw_only=True):
    root: str
    leave_out: Callable[[str], bool]
    any_name: bool = False
    prefix: bytes = b""
    """From the top of the work tree to the root, with a slash at the end; empty without one."""
    found: list[_Path] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    ignored: int = 0
    other: int = 0
    entered: list[str] = field(default_factory=list)

    def skip(self, path: _Path, reason: str) -> None:
        self.skipped.append(("/".join(path), reason))

    def note(self, path: str, reason: str) -> None:
        """Rules that do not hold."""
        self.skip((os.path.relpath(path, self.root),), reason)


def documents(
    folder: str,
    *,
    leave_out: Callable[[str], bool],
    patterns: Sequence[str] = (),
    found_in: str | None = None,
    any_name: bool = False,
) -> FolderListing:
    """Lists the documents below a folder.

    Args:
        folder: The folder; it may itself be reached by a symbolic link.
        leave_out: Whether to skip the file or folder at an absolute path.
        patterns: Ignore rules of the store, as lines of a `.gitignore` in the folder.
        found_in: A folder around it that was named in its stead: the rules that would hold for the
            folder in a listing of this one hold, and the patterns are relative to here.
        any_name: Whether names count that are not UTF-8, as in a store in place.

    Returns:
        The documents in reading order, and what was skipped.

    Raises:
        OSError: The folder itself cannot be listed.
        IgnoreRulesError: Ignore rules are there that cannot be read, or are beyond the limits.
    """
    walk, top = _start(folder, leave_out, patterns, found_in or folder)
    walk.any_name = any_name
    pending = _list(walk, top)
    while pending:
        inner = pending.pop()
        try:
            pending += _list(walk, inner)
        except OSError as error:
            walk.skip(inner.path, f"cannot be listed: {error.strerror or error}")
    return _listing(walk)


def children(
    folder: str, *, leave_out: Callable[[str], bool], patterns: Sequence[str] = ()
) -> FolderListing:
    """Lists the folders and documents that are directly in a folder; see `documents`."""
    walk, top = _start(folder, leave_out, patterns, folder)
    return _listing(walk, [inner.path for inner in _list(walk, top)])


def _listing(walk: _Walk, folders: Sequence[_Path] = ()) -> FolderListing:
    wanted = walk.found
    suffixes = [os.path.splitext(path[-1])[1].lower() for path in wanted]
    dressing = sum(suffix in DRESSING_SUFFIXES for suffix in suffixes)
    pages = sum(suffix in _PAGE_SUFFIXES for suffix in suffixes)
    projects = set(_PROJECT_FILES.split())
    is_project = any(len(path) == 1 and path[0].lower() in projects for path in wanted)
    # A site has more pages of HTML than other documents, scripts and styles left aside, and no file
    # at its top that only projects of code have.
    if not is_project and pages > len(wanted) - dressing - pages:
        pairs = zip(wanted, suffixes, strict=True)
        wanted = [path for path, suffix in pairs if suffix not in DRESSING_SUFFIXES]
    found = [*wanted, *folders]
    return FolderListing(
        paths=tuple("/".join(path) for path in sorted(found, key=_reading_order)),
        skipped=tuple(sorted(walk.skipped, key=lambda item: os.fsencode(item[0]))),
        ignored=walk.ignored,
        other=walk.other + len(walk.found) - len(wanted),
        entered=tuple(walk.entered),
    )


def _start(
    folder: str, leave_out: Callable[[str], bool], patterns: Sequence[str], named: str
) -> tuple[_Walk, _Folder]:
    """The walk, and its first folder with the rules that hold when it is entered."""
    walk = _Walk(root=os.path.abspath(folder), leave_out=leave_out)
    walk.prefix, applied = start(folder, named=named, patterns=patterns, note=walk.note)
    return walk, _Folder((), applied)


def _list(walk: _Walk, folder: _Folder) -> list[_Folder]:
    """Takes up the files of one folder; returns the folders in it."""
    path = os.path.join(walk.root, *folder.path)
    walk.entered.append("/".join(folder.path))
    folders: list[_Folder] = []
    with disk.folder_at(path) as handle:
        with os.scandir(path) as listed:
            entries = list(listed)
        names = {entry.name for entry in entries}
        if folder.path and is_made_by_tools(handle, names):
            return []
        place = FolderAt(handle=handle, path=path, base=walk.prefix + path_bytes(folder.path))
        applied = entered(folder.applied, place, names, walk.note)
    for entry in entries:
        if not _is_wanted(walk, folder.path, entry, applied, place.base):
            continue
        inner = (*folder.path, entry.name)
        if entry.is_dir(follow_symlinks=False):
            folders.append(_Folder(inner, applied))
        else:
            walk.found.append(inner)
    return folders


def _is_wanted(
    walk: _Walk, path: _Path, entry: "os.DirEntry[str]", applied: Applied, base: bytes
) -> bool:
    is_folder = entry.is_dir(follow_symlinks=False)
    if is_litter(entry.name, is_folder=is_folder):
        return False
    if applied.leaves_out(base + os.fsencode(entry.name), is_folder=is_folder):
        walk.ignored += 1
        return False
    if walk.leave_out(entry.path):
        return False
    reason = _why_not(entry, any_name=walk.any_name)
    if is_folder and not reason:
        around = os.path.dirname(entry.path)
        is_part = entry.path == Places(root=around, sidecar="").chunked
        reason = STORE if is_store(entry.path) or (is_part and is_store(around)) else ""
    if reason:
        walk.skip((*path, entry.name), reason)
        return False
    if is_folder or is_read(entry.name):
        return True
    walk.other += 1
    return False


def is_store(folder: str) -> bool:
    """Whether a folder is a store that has chunk files: these were made from documents."""
    places = Places(root=folder, sidecar="")
    return os.path.lexists(places.settings) and os.path.isdir(places.chunked)


def _why_not(entry: "os.DirEntry[str]", *, any_name: bool) -> str:
    """Why a file that may be a document is left out; empty where it is not, or is none."""
    if not any_name:
        try:
            entry.name.encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8"
    if entry.is_symlink():
        return "is a symbolic link, and links are not followed"
    if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
        return "is neither a file nor a folder"
    unread = "" if entry.is_dir(follow_symlinks=False) else unread_document(entry.name)
    return f"no extractor reads {unread} files" if unread else ""


def _reading_order(path: _Path) -> tuple[tuple[bool, bytes], ...]:
    last = len(path) - 1
    return tuple(
        (
            position < last or os.path.splitext(part)[0].lower() not in _INDEX_PAGES,
            os.fsencode(part),
        )
        for position, part in enumerate(path)
    )
