"""Which files below a folder are documents to be added.

Holds no extraction. One rule: no symbolic link is followed and nothing outside the folder is read,
but for the ignore rules of the work tree it lies in; whatever is left out although a person might
expect it is reported with a reason, or counted where ignore rules name it or its format holds no
text. Hidden files, editors' litter and the folders that tools make are left out in silence.

A store in the folder is left out: its chunk files were made from documents.

The rules of a path, the first that says anything wins: `.filestoreignore` in its folder and those
above; patterns from the store's settings; `.gitignore` in its folder and those above;
`.git/info/exclude`. A folder that is left out is not entered, whatever is said about what is in it.
Rules that are there and cannot be followed are an error, never passed over: what they keep out must
not get in. Links are taken as git takes them: a `.gitignore` that is one does not hold, and is
reported; a `.git/info/exclude` is followed. A `.filestoreignore` that is one is an error.
"""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from filestore.config.layout import Places
from filestore.extract import DRESSING_SUFFIXES, for_name, unread_document
from filestore.extract.ignore import MAX_BYTES, IgnoreRulesError, Rules, parse
from filestore.fs import disk
from filestore.git.repository import work_tree

OWN_RULES: Final = ".filestoreignore"
GIT_RULES: Final = ".gitignore"
MAX_ACTIVE_RULES: Final = 4_000
"""How many rules are asked about one path."""

_GIT: Final = ".git"
_GIT_EXCLUDE: Final = "info/exclude"
_MAX_PATH_LINE: Final = 8_192
_LEFT_OUT_FOLDERS: Final = frozenset(
    {"__pycache__", "node_modules", "_static", "_images", "_sources", "_downloads", "_modules"}
)
_LEFT_OUT_FILES: Final = re.compile(
    r"\..*|.*~|~\$.*|#.*#|.*\.sw[op]|genindex(-.*)?\.html?|search\.html?|searchindex\.js"
    r"|py-modindex\.html?|objects\.inv|Thumbs\.db|desktop\.ini",
    re.DOTALL,
)
_PYTHON_ENVIRONMENT: Final = "pyvenv.cfg"
_CACHE_TAG: Final = "CACHEDIR.TAG"
_CACHE_SIGNATURE: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How the file begins that marks a folder as somebody's cache."""
_INDEX_PAGES: Final = frozenset({"index", "readme", "_index"})
_PAGE_SUFFIXES: Final = frozenset({".html", ".htm", ".xhtml"})
_STORE: Final = "holds the chunk files of a filestore store, not documents"
_PROJECT_FILES: Final = """
    bower.json build.gradle cargo.toml cmakelists.txt composer.json deno.json gemfile go.mod
    makefile package.json pom.xml pyproject.toml setup.py tsconfig.json
"""
"""What stands at the top of a code tree and of no site, in lower case."""

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderListing:
    """What a folder holds."""

    paths: tuple[str, ...]
    """Documents, relative to the folder, forward slashes; index pages first in their folder, then
    by the bytes of each part, files and folders together."""
    skipped: tuple[tuple[str, str], ...]
    """Path and reason of what was left out although it might be meant; by path."""
    ignored: int = 0
    """How many files and folders ignore rules left out; a folder counts as one."""
    other: int = 0
    """How many files were passed over for their format: pictures, archives, programs, data, what
    tools generate, and scripts and styles of a site."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """A list of rules, and where it applies."""

    base: bytes
    """Its folder, with a slash at the end; relative to the top, which is the empty path."""
    rules: Rules


@dataclass(frozen=True, kw_only=True)
class _Applied:
    """The rules of one folder; in each kind the list that is asked first stands first."""

    own: tuple[_Scope, ...] = ()
    given: tuple[_Scope, ...] = ()
    git: tuple[_Scope, ...] = ()
    git_exclude: tuple[_Scope, ...] = ()

    @cached_property
    def lists(self) -> tuple[_Scope, ...]:
        return (*self.own, *self.given, *self.git, *self.git_exclude)


@dataclass(frozen=True, slots=True)
class _Folder:
    path: _Path
    applied: _Applied


@dataclass(slots=True, kw_only=True)
class _Walk:
    root: str
    prefix: bytes
    """From the top of the work tree to the root, with a slash at the end; empty without one."""
    leave_out: Callable[[str], bool]
    found: list[_Path] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    ignored: int = 0
    other: int = 0

    def skip(self, path: _Path, reason: str) -> None:
        self.skipped.append(("/".join(path), reason))


def documents(
    folder: str,
    *,
    leave_out: Callable[[str], bool],
    patterns: Sequence[str] = (),
    found_in: str | None = None,
) -> FolderListing:
    """Lists the documents below a folder.

    Args:
        folder: The folder; it may itself be reached by a symbolic link.
        leave_out: Whether to skip the file or folder at an absolute path.
        patterns: Ignore rules of the store, as lines of a `.gitignore` in the folder.
        found_in: A folder around it that was named in its stead: the rules that would hold for the
            folder in a listing of this one hold, and the patterns are meant from here.

    Returns:
        The documents in reading order, and what was skipped.

    Raises:
        OSError: The folder itself cannot be listed.
        IgnoreRulesError: Ignore rules are there that cannot be read, or are beyond the limits.
    """
    walk, top = _start(folder, leave_out, patterns, found_in or folder)
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
    """Lists the folders and documents that stand directly in a folder; see `documents`."""
    walk, top = _start(folder, leave_out, patterns, folder)
    return _listing(walk, [inner.path for inner in _list(walk, top)])


def _listing(walk: _Walk, folders: Sequence[_Path] = ()) -> FolderListing:
    wanted = _without_dressing(walk.found)
    found = [*wanted, *folders]
    return FolderListing(
        paths=tuple("/".join(path) for path in sorted(found, key=_reading_order)),
        skipped=tuple(sorted(walk.skipped, key=lambda item: os.fsencode(item[0]))),
        ignored=walk.ignored,
        other=walk.other + len(walk.found) - len(wanted),
    )


def _start(
    folder: str, leave_out: Callable[[str], bool], patterns: Sequence[str], named: str
) -> tuple[_Walk, _Folder]:
    """The walk, and its first folder with the rules that hold when it is entered."""
    top = os.path.realpath(named)
    tree = work_tree(top)
    if not os.path.lexists(os.path.join(tree, _GIT)):
        tree = top
    parts = _parts(os.path.realpath(folder), tree)
    walk = _Walk(root=os.path.abspath(folder), prefix=_prefix(parts), leave_out=leave_out)
    given = _given(patterns, _prefix(_parts(top, tree)))
    applied = _rules_above(walk, tree, parts)
    return walk, _Folder((), replace(applied, given=given))


def _parts(folder: str, tree: str) -> _Path:
    below = os.path.relpath(folder, tree)
    return () if below == os.curdir else tuple(below.split(os.sep))


def _prefix(parts: _Path) -> bytes:
    return os.fsencode("".join(f"{part}/" for part in parts))


def _given(patterns: Sequence[str], base: bytes) -> tuple[_Scope, ...]:
    if not patterns:
        return ()
    try:
        rules = parse("\n".join(patterns).encode("utf-8", "surrogateescape"))
    except IgnoreRulesError as error:
        raise _unusable("'ignore' in the store's settings", error.message, error.remedy) from error
    return (_Scope(base, rules),)


def _rules_above(walk: _Walk, tree: str, parts: _Path) -> _Applied:
    """What the work tree says about a folder in it."""
    applied = _Applied()
    place, base = tree, b""
    for part in parts:
        names = [
            name
            for name in (_GIT, GIT_RULES, OWN_RULES)
            if os.path.lexists(os.path.join(place, name))
        ]
        applied = _entered(walk, applied, place, base, names)
        if _leaves_out(applied, base + os.fsencode(part), is_folder=True):
            # Whoever names what is ignored means it: the rules that say so do not hold.
            applied = _Applied()
        place, base = os.path.join(place, part), base + os.fsencode(part) + b"/"
    return applied


def _list(walk: _Walk, folder: _Folder) -> list[_Folder]:
    """Takes up the files of one folder; returns the folders in it."""
    place = os.path.join(walk.root, *folder.path)
    with os.scandir(place) as listed:
        entries = list(listed)
    names = {entry.name for entry in entries}
    if folder.path and _is_made_by_tools(place, names):
        return []
    base = walk.prefix + _prefix(folder.path)
    applied = _entered(walk, folder.applied, place, base, names)
    folders: list[_Folder] = []
    for entry in entries:
        if not _is_wanted(walk, folder.path, entry, applied, base):
            continue
        inner = (*folder.path, entry.name)
        if entry.is_dir(follow_symlinks=False):
            folders.append(_Folder(inner, applied))
        else:
            walk.found.append(inner)
    return folders


def _is_wanted(
    walk: _Walk, path: _Path, entry: "os.DirEntry[str]", applied: _Applied, base: bytes
) -> bool:
    if _is_litter(entry):
        return False
    is_folder = entry.is_dir(follow_symlinks=False)
    if _leaves_out(applied, base + os.fsencode(entry.name), is_folder=is_folder):
        walk.ignored += 1
        return False
    if walk.leave_out(entry.path):
        return False
    reason = _why_not(entry) or (_STORE if is_folder and _is_of_store(entry) else "")
    if reason:
        walk.skip((*path, entry.name), reason)
        return False
    if is_folder or for_name(entry.name) is not None:
        return True
    walk.other += 1
    return False


def _is_of_store(entry: "os.DirEntry[str]") -> bool:
    """Whether a folder is a store, or the chunk files of one that was named itself."""
    around = os.path.dirname(entry.path)
    is_part = entry.path == Places(root=around, sidecar="").chunked
    return is_store(entry.path) or (is_part and is_store(around))


def is_store(folder: str) -> bool:
    """Whether a folder is a store that has chunk files: these were made from documents."""
    places = Places(root=folder, sidecar="")
    return os.path.lexists(places.settings) and os.path.isdir(places.chunked)


def _is_litter(entry: "os.DirEntry[str]") -> bool:
    if entry.is_dir(follow_symlinks=False):
        name = entry.name
        return name in _LEFT_OUT_FOLDERS or name.startswith(".") or name.endswith(".egg-info")
    return _LEFT_OUT_FILES.fullmatch(entry.name) is not None


def _is_made_by_tools(place: str, names: Iterable[str]) -> bool:
    """Whether a folder is a cache that says so, or a Python environment."""
    if _PYTHON_ENVIRONMENT in names:
        return True
    if _CACHE_TAG not in names:
        return False
    with contextlib.suppress(OSError):
        return _read(place, _CACHE_TAG, len(_CACHE_SIGNATURE)) == _CACHE_SIGNATURE
    return False


def _why_not(entry: "os.DirEntry[str]") -> str:
    """Why a file that may be a document is left out; empty where it is not, or is none."""
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


# What dresses a site


def _without_dressing(found: list[_Path]) -> list[_Path]:
    """The files of a folder, without scripts and styles if it is a site.

    It is one if it has more pages of HTML than other documents, scripts and styles left aside, and
    no file at its top that only projects of code have.
    """
    suffixes = [os.path.splitext(path[-1])[1].lower() for path in found]
    dressing = sum(suffix in DRESSING_SUFFIXES for suffix in suffixes)
    pages = sum(suffix in _PAGE_SUFFIXES for suffix in suffixes)
    projects = set(_PROJECT_FILES.split())
    is_project = any(len(path) == 1 and path[0].lower() in projects for path in found)
    if is_project or pages <= len(found) - dressing - pages:
        return found
    pairs = zip(found, suffixes, strict=True)
    return [path for path, suffix in pairs if suffix not in DRESSING_SUFFIXES]


# Ignore rules


def _leaves_out(applied: _Applied, path: bytes, *, is_folder: bool) -> bool:
    """What the rules say of a path from the top, whose folders are not left out."""
    for scope in applied.lists:
        verdict = scope.rules.leaves_out(path[len(scope.base) :], is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _entered(
    walk: _Walk, applied: _Applied, place: str, base: bytes, names: Iterable[str]
) -> _Applied:
    """The rules inside a folder: those around it, and its own before them."""
    if _GIT in names:
        # Another work tree: what git ignores around it says nothing about it.
        exclude = _scope(walk, applied, place, base, _GIT_EXCLUDE)
        applied = replace(applied, git=(), git_exclude=exclude)
    if GIT_RULES in names:
        found = _scope(walk, applied, place, base, GIT_RULES)
        applied = replace(applied, git=(*found, *applied.git))
    if OWN_RULES in names:
        found = _scope(walk, applied, place, base, OWN_RULES)
        applied = replace(applied, own=(*found, *applied.own))
    return applied


def _scope(
    walk: _Walk, applied: _Applied, place: str, base: bytes, name: str
) -> tuple[_Scope, ...]:
    """The rules of one file; none where there is none."""
    path = _exclude_file(place) if name == _GIT_EXCLUDE else os.path.join(place, name)
    if name == GIT_RULES and os.path.islink(path):
        reason = "it is a symbolic link, so its rules do not hold, as in git"
        walk.skip((os.path.relpath(path, walk.root),), reason)
        return ()
    try:
        rules = parse(_read(os.path.dirname(path), os.path.basename(path), MAX_BYTES + 1))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except IgnoreRulesError as error:
        raise _unusable(path, error.message, error.remedy) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    active = rules.count + sum(scope.rules.count for scope in applied.lists)
    if active > MAX_ACTIVE_RULES:
        reason = f"with it {active:,} rules would hold here, the limit is {MAX_ACTIVE_RULES:,}"
        raise _unusable(path, reason, "shorten it, or those in the folders above")
    return (_Scope(base, rules),) if rules.count else ()


def _unreadable(path: str, error: OSError) -> IgnoreRulesError:
    if error.errno == errno.ELOOP:
        return _unusable(path, "it is a symbolic link", "put the file itself in its place")
    if isinstance(error, disk.NotAFileError):
        return _unusable(path, "it is no regular file", "remove it, or make it a file")
    reason = f"it cannot be read: {error.strerror or error}"
    return _unusable(path, reason, "make it readable, or remove it")


def _unusable(where: str, reason: str, remedy: str) -> IgnoreRulesError:
    return IgnoreRulesError(f"cannot follow the ignore rules of {where}: {reason}", remedy=remedy)


def _exclude_file(place: str) -> str:
    """Where a work tree has its excludes: linked ones and submodules have them elsewhere."""
    folder = os.path.join(place, _GIT)
    if not os.path.isdir(folder):
        pointed_at = _pointed_at(place, _GIT).removeprefix("gitdir:").strip()
        folder = os.path.join(place, pointed_at or _GIT)
    folder = os.path.join(folder, _pointed_at(folder, "commondir"))
    return os.path.realpath(os.path.join(folder, _GIT_EXCLUDE))


def _pointed_at(folder: str, name: str) -> str:
    """The path in a file of git's; empty where there is no such file."""
    try:
        line = _read(folder, name, _MAX_PATH_LINE).partition(b"\n")[0]
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return os.fsdecode(line.partition(b"\0")[0].strip())


def _read(folder: str, name: str, limit: int) -> bytes:
    """The beginning of a file that is no link."""
    with disk.folder_at(folder) as handle:
        return disk.read_at(handle, name, limit=limit)[0]
