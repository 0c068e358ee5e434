"""Which files below a folder are documents to be added.

Holds no extraction. One rule: nothing outside the folder is read and no symbolic link is followed;
whatever is left out although a person might expect it is reported with a reason. Hidden files,
editors' litter and the by-products of documentation generators are left out in silence.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from filestore.extract import for_name

_LEFT_OUT_FOLDERS: Final = frozenset(
    {
        "__pycache__",
        "node_modules",
        "_static",
        "_images",
        "_sources",
        "_downloads",
        "_modules",
    }
)
_LEFT_OUT_FILES: Final = re.compile(
    r"\..*|.*~|#.*#|.*\.sw[op]|genindex(-.*)?\.html?|search\.html?|searchindex\.js"
    r"|py-modindex\.html?|objects\.inv|Thumbs\.db|desktop\.ini",
    re.DOTALL,
)
_INDEX_PAGES: Final = frozenset({"index", "readme", "_index"})

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderListing:
    """What a folder holds."""

    paths: tuple[str, ...]
    """Documents, relative to the folder, forward slashes; index pages first in their folder, then
    by the bytes of each part, files and folders together."""
    skipped: tuple[tuple[str, str], ...]
    """Path and reason of what was left out although it might be meant; by path."""


@dataclass(slots=True, kw_only=True)
class _Walk:
    root: str
    leave_out: Callable[[str], bool]
    found: list[_Path]
    skipped: list[tuple[str, str]]

    def skip(self, path: _Path, reason: str) -> None:
        self.skipped.append(("/".join(path), reason))


def documents(folder: str, *, leave_out: Callable[[str], bool]) -> FolderListing:
    """Lists the documents below a folder.

    Args:
        folder: The folder; it may itself be reached by a symbolic link.
        leave_out: Told the absolute path of a file or folder, says whether to pass it over.

    Returns:
        The documents in reading order, and what was skipped.

    Raises:
        OSError: The folder itself cannot be listed.
    """
    root = os.path.abspath(folder)
    walk = _Walk(root=root, leave_out=leave_out, found=[], skipped=[])
    pending = _list(walk, ())
    while pending:
        path = pending.pop()
        try:
            pending += _list(walk, path)
        except OSError as error:
            walk.skip(path, f"cannot be listed: {error.strerror or error}")
    return FolderListing(
        paths=tuple("/".join(path) for path in sorted(walk.found, key=_reading_order)),
        skipped=tuple(sorted(walk.skipped, key=lambda item: os.fsencode(item[0]))),
    )


def _list(walk: _Walk, path: _Path) -> list[_Path]:
    """Takes up the files of one folder; returns the folders in it."""
    folders: list[_Path] = []
    with os.scandir(os.path.join(walk.root, *path)) as entries:
        for entry in entries:
            if not _is_wanted(walk, path, entry):
                continue
            inner = (*path, entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(inner)
            else:
                walk.found.append(inner)
    return folders


def _is_wanted(walk: _Walk, path: _Path, entry: "os.DirEntry[str]") -> bool:
    if _is_litter(entry) or walk.leave_out(entry.path):
        return False
    reason = _why_not(entry)
    if reason:
        walk.skip((*path, entry.name), reason)
        return False
    return entry.is_dir(follow_symlinks=False) or for_name(entry.name) is not None


def _is_litter(entry: "os.DirEntry[str]") -> bool:
    if entry.is_dir(follow_symlinks=False):
        return entry.name in _LEFT_OUT_FOLDERS or entry.name.startswith(".")
    return _LEFT_OUT_FILES.fullmatch(entry.name) is not None


def _why_not(entry: "os.DirEntry[str]") -> str:
    """Why something is no document whatever its suffix; empty if it may be one."""
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if entry.is_symlink():
        return "is a symbolic link, and links are not followed"
    if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
        return "is neither a file nor a folder"
    return ""


def _reading_order(path: _Path) -> tuple[tuple[bool, bytes], ...]:
    last = len(path) - 1
    return tuple(
        (position < last or not _is_index(part), os.fsencode(part))
        for position, part in enumerate(path)
    )


def _is_index(name: str) -> bool:
    return os.path.splitext(name)[0].lower() in _INDEX_PAGES
