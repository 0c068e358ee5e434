"""What of a tree of documents belongs to it: the rules of `folder.documents`, asked by a walk.

Holds no walk of its own (`fs/scan`) and no rules of its own: `ignore_files` and the names of this
package say what is left out. Where it differs from a listing: a folder with settings of a store
is left out whatever is in it; links, special files and names that are not UTF-8 stay, because the
walk's entries are what findings are made of; and scripts and styles next to pages stay, because no
file may come and go with what others are.

One rule: a folder is asked about as a whole. A name is looked at by itself only if its beginning,
its end or the rules give a reason to.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.config.layout import DEFAULT_FOLDER, SETTINGS, Places
from filestore.core.paths import SUMMARIES, TOP, ChunkPath, folder_of, inside
from filestore.extract import (
    LITTER_ENDS,
    LITTER_STARTS,
    is_litter,
    is_read,
    suffix_is_read,
    unread_document,
)
from filestore.extract.ignore import IgnoreRulesError
from filestore.extract.ignore_files import (
    RULE_FILES,
    TOOL_MARKS,
    Applied,
    FolderAt,
    Suffixes,
    entered,
    exclude_files,
    files_around,
    is_made_by_tools,
    places,
    start,
    starting,
)
from filestore.fs import disk
from filestore.fs.scan import (
    MAX_DEPTH,
    FolderRules,
    RulesChoice,
    TopRules,
    TreeRules,
    TreeRulesError,
)

STORE: Final = "is another filestore store, or what is left of one"

_MARKS: Final = (*RULE_FILES, *TOOL_MARKS, SETTINGS)
"""What in a folder says something about it."""
_FEW: Final = 5
"""Up to this many names cost less one by one."""


def tree_rules(
    root: str, patterns: Sequence[str] = (), *, leave_out: Collection[ChunkPath] = ()
) -> TopRules:
    """The rules of a tree of documents, read anew in each walk.

    Args:
        root: The folder that is walked.
        patterns: Ignore rules of the store, as lines of a `.gitignore` in the folder.
        leave_out: Files and folders that are ours, such as a sidecar that is no dot folder.
    """
    own: dict[ChunkPath, set[str]] = {TOP: {SETTINGS}}
    for path in leave_out:
        own.setdefault(folder_of(path), set()).add(path.rpartition("/")[2])
    return _Top(root=os.path.abspath(root), patterns=tuple(patterns), own=own)


class _Top(Struct, frozen=True, kw_only=True):
    root: str
    patterns: tuple[str, ...]
    own: dict[ChunkPath, set[str]]

    @property
    def marks(self) -> Collection[str]:
        """See `TopRules`."""
        return _MARKS

    def at(self, root: str) -> "TopRules":
        """See `TopRules`."""
        return replace(self, root=root)

    def outside(self, marked: Iterable[ChunkPath]) -> Iterator[str]:
        """See `TopRules`."""
        yield from files_around(self.root)
        for path in marked:
            yield from exclude_files(os.path.join(self.root, path))

    def enter(self, handle: int, path: ChunkPath, names: Sequence[str]) -> FolderRules | str:
        notes: dict[str, str] = {}

        def note(where: str, reason: str) -> None:
            notes[""] = f"{where}: {reason}"

        try:
            prefix, applied = start(self.root, named=self.root, patterns=self.patterns, note=note)
        except IgnoreRulesError as error:
            raise TreeRulesError(error.message, remedy=error.remedy) from error
        around = _Folder(top=self, base=prefix, applied=applied, notes=notes)
        return around.enter(handle, path, names)


class _Folder(Struct, kw_only=True):
    """The rules inside a folder, or those around the top."""

    top: _Top
    base: bytes
    applied: Applied
    own: set[str] = field(default_factory=set)
    notes: dict[str, str] = field(default_factory=dict)
    """Rules that do not hold, by the name of their file."""
    is_top: bool = False

    def enter(self, handle: int, path: ChunkPath, names: Sequence[str]) -> "FolderRules | str":
        """See `TreeRules`."""
        if path == ChunkPath(SUMMARIES):
            return _Made()
        marks = [names[place] for place in places(names, _MARKS)]
        base, notes = self.base, self.notes
        if path:
            base, notes = base + os.fsencode(path.rpartition("/")[2]) + b"/", {}
            if SETTINGS in marks or path.rpartition("/")[2] == DEFAULT_FOLDER:
                return STORE
            if is_made_by_tools(handle, marks):
                return ""
        applied = self.applied
        if marks:
            notes = dict(notes)

            def note(where: str, reason: str) -> None:
                notes[os.path.basename(where)] = reason

            place = FolderAt(handle=handle, path=os.path.join(self.top.root, path), base=base)
            try:
                applied = entered(applied, place, marks, note)
            except IgnoreRulesError as error:
                raise TreeRulesError(error.message, remedy=error.remedy) from error
        own = self.top.own.get(path) or set()
        return _Folder(
            top=self.top, base=base, applied=applied, own=own, notes=notes, is_top=not path
        )

    def choose(self, names: Sequence[str], folders: Sequence[int]) -> RulesChoice:
        """See `FolderRules`."""
        if len(names) < _FEW:
            return self._judged(names, range(len(names)), set(folders))
        suffixes = Suffixes(names)
        odd = {
            end for end in suffixes.all if suffix_is_read(end) is None or end.endswith(LITTER_ENDS)
        }
        never = {end for end in suffixes.all if not suffix_is_read(end)} - odd
        asked = {*suffixes.places(odd), *starting(names, LITTER_STARTS), *folders}
        if self.applied.lists:
            asked |= self.applied.hints.find(self.base, names, suffixes)
        if self.own:
            asked.update(places(names, self.own))
        # Of what no rule may speak, the suffix alone says that it is not read.
        passed = [place for place in suffixes.places(never) if place not in asked]
        if not asked and not passed:
            return RulesChoice(skipped=self.notes)
        choice = self._judged(names, sorted(asked), set(folders))
        named = {
            names[place]: _no_extractor(unread)
            for place in passed
            if (unread := unread_document(names[place]))
        }
        return RulesChoice(
            left_out=sorted([*choice.left_out, *passed]),
            skipped={**choice.skipped, **named},
            ignored=choice.ignored,
            other=choice.other + len(passed) - len(named),
        )

    def _judged(self, names: Sequence[str], asked: Sequence[int], folders: set[int]) -> RulesChoice:
        left_out: list[int] = []
        skipped = dict(self.notes)
        ignored = other = 0
        for place in asked:
            name, is_folder = names[place], place in folders
            if self.is_top and is_folder and name == SUMMARIES:
                continue
            if is_litter(name, is_folder=is_folder) or name in self.own:
                pass
            elif self.applied.leaves_out(self.base + os.fsencode(name), is_folder=is_folder):
                ignored += 1
            elif is_folder or is_read(name):
                continue
            elif unread := unread_document(name):
                skipped[name] = _no_extractor(unread)
            else:
                other += 1
            left_out.append(place)
        return RulesChoice(left_out=left_out, skipped=skipped, ignored=ignored, other=other)


class _Made:
    """The rules of the folder of what was made of documents: it is ours, so all of it counts."""

    def enter(self, handle: int, path: ChunkPath, names: Sequence[str]) -> FolderRules | str:
        """See `TreeRules`."""
        del handle, path, names
        return self

    def choose(self, names: Sequence[str], folders: Sequence[int]) -> RulesChoice:
        """See `FolderRules`."""
        del names, folders
        return RulesChoice()


def _no_extractor(suffix: str) -> str:
    return f"no extractor reads {suffix} files"


MARKS: Final = frozenset((*RULE_FILES, *TOOL_MARKS, SETTINGS))
"""Names of files that say what of the tree belongs to it."""


def left_out(places: Places, paths: Iterable[ChunkPath]) -> set[ChunkPath]:
    """Which of some files, be they there or not yet, the rules of their folders leave out."""
    top, known = places.rules, dict[ChunkPath, FolderRules | str]()
    if top is None:
        return set()

    def inside_of(folder: ChunkPath, around: TreeRules) -> FolderRules | str:
        try:
            with disk.folder(root, folder) as handle:
                return around.enter(handle, folder, sorted(os.listdir(handle)))
        except FileNotFoundError:
            return around.enter(root, folder, [])

    def rules_of(folder: ChunkPath) -> FolderRules | str:
        if folder not in known:
            around = rules_of(folder_of(folder)) if folder else top
            if isinstance(around, str) or (folder and is_left_out(folder, [0])):
                known[folder] = ""
            else:
                known[folder] = inside_of(folder, around)
        return known[folder]

    def is_left_out(path: ChunkPath, folders: Sequence[int] = ()) -> bool:
        rules = rules_of(folder_of(path))
        return isinstance(rules, str) or bool(
            rules.choose([path.rpartition("/")[2]], folders).left_out
        )

    with disk.folder_at(places.root) as root:
        return set(filter(is_left_out, paths))


class _Listed(Struct):
    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, "_Listed"] = field(default_factory=dict)


def documents_of(places: Places, files: Mapping[str, str]) -> dict[ChunkPath, str]:
    """The documents of a store in place, each with the name of its blob.

    Args:
        places: Of the view; its files of ignore rules are fetched.
        files: What git has below the root: path to the name of its blob.

    Raises:
        FilestoreError: Ignore rules cannot be followed.
    """
    top = _Listed()
    for path, name in files.items():
        *folders, last = path.split("/")
        into = top
        for folder in folders:
            into = into.folders.setdefault(folder, _Listed())
        into.files[last] = name
    with disk.folder_at(places.root) as handle:
        return _Walk(places, handle).of(top)


class _Walk:
    """One walk through folders that are only listed."""

    def __init__(self, places: Places, root: int) -> None:
        self._places = places
        self._root = root
        self._found: dict[ChunkPath, str] = {}

    def of(self, top: _Listed) -> dict[ChunkPath, str]:
        """What belongs to the tree."""
        assert self._places.rules is not None
        self._enter(TOP, top, self._places.rules, 0)
        return self._found

    def _enter(self, path: ChunkPath, folder: _Listed, around: TreeRules, depth: int) -> None:
        names = sorted([*folder.files, *folder.folders])
        marks = MARKS.intersection(folder.files)
        if not marks or self._places.fetch is None:
            inner = around.enter(self._root, path, names)
        else:
            place = os.path.join(self._places.root, path)
            for name in sorted(marks):
                self._places.fetch(os.path.join(place, name))
            with disk.folder_at(place) as handle:
                inner = around.enter(handle, path, names)
        if isinstance(inner, str):
            return
        entered = [at for at, name in enumerate(names) if name in folder.folders]
        left_out = set(inner.choose(names, entered).left_out)
        for at, name in enumerate(names):
            if at in left_out:
                continue
            if name in folder.files:
                self._found[inside(path, name)] = folder.files[name]
            elif depth < MAX_DEPTH:
                self._enter(inside(path, name), folder.folders[name], inner, depth + 1)
