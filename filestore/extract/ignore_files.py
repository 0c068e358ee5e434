"""Ignore rules as they lie on the disk: which files of rules hold in a folder, read and combined.

To ask each rule about each name costs more than to stat the files: `hints` finds which names the
rules may leave out. No name that a rule leaves out is missed; one too many is only asked about for
nothing. An entry matches a pattern only if its name matches the pattern's last part, so that alone
is looked at: of most patterns it is a name, or begins or ends with what is no wildcard.

What the rules say of a path is `ignore`; who walks is `folder` and `tree_rules`.

The rules of a path, the first that says anything wins: `.filestoreignore` in its folder and those
above; patterns from the store's settings; `.gitignore` in its folder and those above;
`.git/info/exclude`. One rule: what is there and cannot be followed is an error, never passed over:
what it keeps out must not get in. Links are taken as git takes them: a `.gitignore` that is one
does not hold, and is reported; a `.git/info/exclude` is followed. A `.filestoreignore` that is one
is an error.
"""

import contextlib
import errno
import os
import re
import stat
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.extract.ignore import MAX_BYTES, MAX_RULES, IgnoreRulesError, Rule, Rules, parse
from filestore.fs import disk
from filestore.git.repository import work_tree

_WILDCARD: Final = re.compile(rb"[*?\[\\]")
_STARS: Final = re.compile(rb"\*+")
_APART: Final = re.compile(rb"[*?]|\[.*\]|\\.?|\[.*", re.DOTALL)
"""What is between the texts that a pattern has in all that it matches, or more than that."""


class _Names(Struct):
    """What names look like that some rules may leave out."""

    whole: set[str] = field(default_factory=set)
    starts: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)
    expressions: dict[bytes, str] = field(default_factory=dict)
    """Of names with a slash at their end, to a text that is in every name that matches."""
    everything: bool = False

    def take(self, last: bytes, rule: Rule) -> None:
        """Take up a rule by the last part of its pattern."""
        last = _STARS.sub(b"*", last)
        wildcard = _WILDCARD.search(last)
        if wildcard is None:
            self.whole.add(os.fsdecode(last))
        elif last == b"*":
            self.everything = True
        elif wildcard.start() and _is_text(last[: wildcard.start()]):
            self.starts.add(os.fsdecode(last[: wildcard.start()]))
        elif last.startswith(b"*") and not _WILDCARD.search(last, 1) and _is_text(last[1:]):
            self.ends.add(os.fsdecode(last[1:]))
        elif b"/" in rule.pattern:
            self.everything = True
        else:
            parts = filter(_is_text, _APART.split(last))
            self.expressions[rule.expression] = max(map(os.fsdecode, parts), key=len, default="")

    def find(self, names: Sequence[str], suffixes: "Suffixes") -> set[int]:
        """The places of names that look so."""
        if self.everything:
            return set(range(len(names)))
        found = set(starting(names, self.starts))
        whole = self.whole
        if 16 * len(whole) > len(names):
            whole = whole.intersection(names)
        found.update(places(names, whole))
        if self.ends:
            found.update(suffixes.ending(tuple(self.ends)))
        if self.expressions:
            matches: set[bytes] = set()
            possible = [
                expression for expression, part in self.expressions.items() if part in suffixes.text
            ]
            encoded = os.fsencode(suffixes.text) if possible else b""
            for expression in possible:
                matches.update(_whole(expression).findall(encoded))
            named = {os.fsdecode(name[:-1]) for name in matches}
            found.update(
                [place for place, name in enumerate(names) if name in named] if named else []
            )
        return found


@lru_cache(maxsize=MAX_RULES)
def _whole(expression: bytes) -> re.Pattern[bytes]:
    """For names between slashes, of which an expression may take the second itself."""
    return re.compile(b"(?<=/)(?:%s)(?<=/)" % expression, re.DOTALL)


def _is_text(part: bytes) -> bool:
    """Whether it decodes to the same characters wherever it is."""
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True


class Suffixes:
    """The ends of some names, from their last dot on; of one without a dot its last character."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.text = f"/{'/'.join(names)}/"
        """All names, each between slashes."""
        # Where a few names tell the suffixes of all, counting is much faster than cutting.
        some = {_suffix(names[place]) for place in (0, len(names) // 2, -1)} if names else set()
        dotted = [suffix for suffix in some if suffix.startswith(".")]
        counted = sum(self.text.count(f"{suffix}/") for suffix in dotted)
        self.all = some if counted == len(names) else set(map(_suffix, names))

    def places(self, suffixes: set[str]) -> list[int]:
        """The places of names that end with one of some of these."""
        if not suffixes:
            return []
        return [place for place, name in enumerate(self._names) if _suffix(name) in suffixes]

    def ending(self, ends: tuple[str, ...]) -> list[int]:
        """The places of names that end with any of some texts."""
        possible = {
            suffix
            for suffix in self.all
            if suffix.endswith(ends) or any(end.endswith(suffix) for end in ends)
        }
        return [place for place in self.places(possible) if self._names[place].endswith(ends)]


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


def places(names: Sequence[str], wanted: Iterable[str]) -> list[int]:
    """The places of those of some wanted names that are among sorted ones."""
    found: list[int] = []
    if names:
        low, high = names[0], names[-1]
        for name in wanted:
            if low <= name <= high and names[place := bisect_left(names, name)] == name:
                found.append(place)
    return found


def starting(names: Sequence[str], starts: Sequence[str] | set[str]) -> list[int]:
    """The places of sorted names that begin with any of some texts, none of which is empty."""
    found: list[int] = []
    if not names:
        return found
    low, high = names[0][0], names[-1][0]
    for start in starts:
        if not low <= start[0] <= high:
            continue
        place = bisect_left(names, start)
        while place < len(names) and names[place].startswith(start):
            found.append(place)
            place += 1
    return found


class Hints(Struct):
    """What names look like that lists of rules may leave out, by folder."""

    anywhere: _Names = field(default_factory=_Names)
    in_folder: dict[bytes, _Names] = field(default_factory=dict)
    """Of rules that speak of what is directly in one folder."""
    below: dict[bytes, _Names] = field(default_factory=dict)
    """Of rules that speak of what is somewhere below a folder."""

    def find(self, base: bytes, names: Sequence[str], suffixes: Suffixes) -> set[int]:
        """The places of names that the rules may leave out.

        Args:
            base: Their folder, from the top, with a slash at the end.
            names: Sorted.
            suffixes: Theirs.
        """
        found = self.anywhere.find(names, suffixes)
        direct = self.in_folder.get(base)
        if direct is not None:
            found |= direct.find(names, suffixes)
        for folder, inside in self.below.items():
            if base.startswith(folder):
                found |= inside.find(names, suffixes)
        return found


def hints(lists: Sequence[tuple[bytes, Rules]]) -> Hints:
    """What to look for: each list of rules with its folder, from the top, a slash at the end."""
    made = Hints()
    for base, rules in lists:
        for rule in rules.by_name:
            if rule.leaves_out:
                made.anywhere.take(rule.pattern, rule)
        for rule in rules.by_path:
            if rule.leaves_out:
                pattern = rule.pattern.removeprefix(b"/")
                wildcard = _WILDCARD.search(pattern)
                plain = pattern if wildcard is None else pattern[: wildcard.start()]
                cut = plain.rfind(b"/") + 1
                folder, rest = base + pattern[:cut], pattern[cut:]
                has_folders = b"/" in rest or b"**" in rest
                if has_folders and (b"\\" in rest or b"[" in rest):
                    # A slash in brackets or after a backslash is none that parts folders.
                    made.below.setdefault(folder, _Names()).everything = True
                elif has_folders:
                    made.below.setdefault(folder, _Names()).take(rest.rpartition(b"/")[2], rule)
                else:
                    made.in_folder.setdefault(folder, _Names()).take(rest, rule)
    return made


OWN_RULES: Final = ".filestoreignore"
GIT_RULES: Final = ".gitignore"
GIT: Final = ".git"
RULE_FILES: Final = (OWN_RULES, GIT_RULES, GIT)
"""What in a folder may bring rules."""
MAX_ACTIVE_RULES: Final = 4_000
"""How many rules are asked about one path."""

_GIT_EXCLUDE: Final = "info/exclude"
_MAX_PATH_LINE: Final = 8_192

Note = Callable[[str, str], None]
"""Called with the path of a file of rules that does not hold, and the reason."""


class FolderAt(Struct, frozen=True, kw_only=True):
    """A folder whose rules are read."""

    handle: int
    """Its directory handle."""
    path: str
    """As messages name it."""
    base: bytes
    """From the top of the work tree, with a slash at the end; empty for the top."""


class Scope(Struct, frozen=True):
    """A list of rules, and where it applies."""

    base: bytes
    """Its folder, with a slash at the end; relative to the top, which is the empty path."""
    rules: Rules


class Applied(Struct, frozen=True, kw_only=True, dict=True):
    """The rules of one folder; in each kind the list that is asked first comes first."""

    own: tuple[Scope, ...] = ()
    given: tuple[Scope, ...] = ()
    git: tuple[Scope, ...] = ()
    git_exclude: tuple[Scope, ...] = ()

    @cached_property
    def lists(self) -> tuple[Scope, ...]:
        """All of them, in the order in which they are asked."""
        return (*self.own, *self.given, *self.git, *self.git_exclude)

    @cached_property
    def hints(self) -> Hints:
        """Which names any of them may leave out."""
        return hints([(scope.base, scope.rules) for scope in self.lists])

    def leaves_out(self, path: bytes, *, is_folder: bool) -> bool:
        """What the rules say of a path from the top, whose folders are not left out."""
        for scope in self.lists:
            verdict = scope.rules.leaves_out(path[len(scope.base) :], is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False


def start(folder: str, *, named: str, patterns: Sequence[str], note: Note) -> tuple[bytes, Applied]:
    """The rules that hold when a folder is entered: its own are not among them.

    Args:
        folder: The folder.
        named: The folder itself, or one around it that was named in its stead: the patterns are
            relative to here.
        patterns: Ignore rules of the store, as lines of a `.gitignore`.
        note: Called with what does not hold.

    Returns:
        The way from the top of the work tree to the folder, with a slash at the end, and the rules.

    Raises:
        IgnoreRulesError: Rules are there that cannot be read, or are beyond the limits.
    """
    top = os.path.realpath(named)
    tree = work_tree(top)
    if not os.path.lexists(os.path.join(tree, GIT)):
        tree = top
    parts = _parts(os.path.realpath(folder), tree)
    given: tuple[Scope, ...] = ()
    if patterns:
        try:
            rules = parse("\n".join(patterns).encode("utf-8", "surrogateescape"))
        except IgnoreRulesError as error:
            where = "'ignore' in the store's settings"
            raise _unusable(where, error.message, error.remedy) from error
        given = (Scope(path_bytes(_parts(top, tree)), rules),)
    applied = Applied()
    path, base = tree, b""
    for part in parts:
        names = [name for name in RULE_FILES if os.path.lexists(os.path.join(path, name))]
        if names:
            try:
                with disk.folder_at(path) as handle:
                    place = FolderAt(handle=handle, path=path, base=base)
                    applied = entered(applied, place, names, note)
            except OSError as error:
                raise _unreadable(os.path.join(path, names[0]), error) from error
        if applied.leaves_out(base + os.fsencode(part), is_folder=True):
            # Who names what is ignored means it: the rules that say so do not hold.
            applied = Applied()
        path, base = os.path.join(path, part), base + os.fsencode(part) + b"/"
    return path_bytes(parts), replace(applied, given=given)


def files_around(folder: str) -> Iterator[str]:
    """What is or may be there around a folder and says which rules `start` finds.

    Which work tree the folder lies in follows from what of it is not there, too.
    """
    place = os.path.realpath(folder)
    while place != os.path.dirname(place):
        place = os.path.dirname(place)
        yield from (os.path.join(place, name) for name in RULE_FILES)
        yield from exclude_files(place)
        if os.path.exists(os.path.join(place, GIT)):
            return


def exclude_files(place: str) -> Iterator[str]:
    """Where the excludes of a work tree are, if a folder is one, and what leads there."""
    git = os.path.join(place, GIT)
    if os.path.lexists(git):
        yield git
        # Where it is not known, a walk reports that its rules cannot be followed.
        with contextlib.suppress(OSError):
            yield _exclude_file(place)


def _parts(folder: str, tree: str) -> tuple[str, ...]:
    below = os.path.relpath(folder, tree)
    return () if below == os.curdir else tuple(below.split(os.sep))


def path_bytes(parts: Sequence[str]) -> bytes:
    """A folder as rules see it: with a slash at the end, empty for the top."""
    return os.fsencode("".join(f"{part}/" for part in parts))


def entered(applied: Applied, place: FolderAt, names: Collection[str], note: Note) -> Applied:
    """The rules inside a folder: those around it, and its own before them.

    Args:
        applied: Those around it.
        place: The folder.
        names: What is in it; others than `RULE_FILES` do not matter.
        note: Called with what does not hold.

    Raises:
        IgnoreRulesError: Rules are there that cannot be read, or are beyond the limits.
    """
    if GIT in names:
        # Another work tree: what git ignores around it says nothing about it.
        exclude = _scope(applied, place, _GIT_EXCLUDE)
        applied = replace(applied, git=(), git_exclude=exclude)
    if GIT_RULES in names:
        if _is_link(place, GIT_RULES):
            reason = "it is a symbolic link, so its rules do not apply, as in git"
            note(os.path.join(place.path, GIT_RULES), reason)
        else:
            found = _scope(applied, place, GIT_RULES)
            applied = replace(applied, git=(*found, *applied.git))
    if OWN_RULES in names:
        found = _scope(applied, place, OWN_RULES)
        applied = replace(applied, own=(*found, *applied.own))
    return applied


def _is_link(place: FolderAt, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=place.handle).st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unreadable(os.path.join(place.path, name), error) from error


def _scope(applied: Applied, place: FolderAt, name: str) -> tuple[Scope, ...]:
    """The rules of one file; none where there is none."""
    path = os.path.join(place.path, name)
    try:
        if name == _GIT_EXCLUDE:
            path = _exclude_file(place.path)
            data = _read(os.path.dirname(path), os.path.basename(path), MAX_BYTES + 1)
        else:
            data = disk.read_at(place.handle, name, limit=MAX_BYTES + 1)[0]
        rules = parse(data)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except IgnoreRulesError as error:
        raise _unusable(path, error.message, error.remedy) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    active = rules.count + sum(scope.rules.count for scope in applied.lists)
    if active > MAX_ACTIVE_RULES:
        reason = f"with it {active:,} rules would apply here; the limit is {MAX_ACTIVE_RULES:,}"
        raise _unusable(path, reason, "shorten it, or those in the folders above")
    return (Scope(place.base, rules),) if rules.count else ()


def _unreadable(path: str, error: OSError) -> IgnoreRulesError:
    disk.pass_limits(error)
    if error.errno == errno.ELOOP:
        return _unusable(path, "it is a symbolic link", "replace it with the file itself")
    if isinstance(error, disk.NotAFileError):
        return _unusable(path, "it is not a regular file", "remove it, or make it a file")
    reason = f"it cannot be read: {error.strerror or error}"
    return _unusable(path, reason, "make it readable, or remove it")


def _unusable(where: str, reason: str, remedy: str) -> IgnoreRulesError:
    return IgnoreRulesError(f"cannot apply the ignore rules of {where}: {reason}", remedy=remedy)


def _exclude_file(place: str) -> str:
    """Where a work tree has its excludes: linked ones and submodules have them elsewhere."""
    folder = os.path.join(place, GIT)
    if not os.path.isdir(folder):
        pointed_at = _pointed_at(place, GIT).removeprefix("gitdir:").strip()
        folder = os.path.join(place, pointed_at or GIT)
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


TOOL_MARKS: Final = ("pyvenv.cfg", "CACHEDIR.TAG")
"""Files by which a folder may say that tools made it."""
_PYTHON_ENVIRONMENT, _CACHE_TAG = TOOL_MARKS
_CACHE_SIGNATURE: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How the file begins that marks a folder as somebody's cache."""


def is_made_by_tools(handle: int, names: Collection[str]) -> bool:
    """Whether a folder is a cache that says so, or a Python environment.

    Args:
        handle: Its directory handle.
        names: What is in it; others than `TOOL_MARKS` do not matter.
    """
    if _PYTHON_ENVIRONMENT in names:
        return True
    if _CACHE_TAG not in names:
        return False
    try:
        data, _ = disk.read_at(handle, _CACHE_TAG, limit=len(_CACHE_SIGNATURE))
    except OSError as error:
        disk.pass_limits(error)
        return False
    return data == _CACHE_SIGNATURE
