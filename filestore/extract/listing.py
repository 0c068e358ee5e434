"""Which files of a commit, or of git's index, belong to a tree, as a walk of a checkout would tell.

Pure but for the files of ignore rules, which are put where the rules look for them.
"""

import os
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from filestore.config.layout import SETTINGS, Places
from filestore.core.paths import TOP, ChunkPath, inside
from filestore.extract.by_products import TOOL_MARKS
from filestore.extract.ignore_files import RULE_FILES
from filestore.fs import disk
from filestore.fs.scan import MAX_DEPTH, FolderRules, TreeRules

MARKS: Final = frozenset((*RULE_FILES, *TOOL_MARKS, SETTINGS))
"""Names of files that say what of the tree belongs to it."""


class _Folder(Struct):
    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, "_Folder"] = field(default_factory=dict)


def documents_of(places: Places, files: Mapping[str, str]) -> dict[ChunkPath, str]:
    """The documents of a store in place, each with the name of its blob.

    Args:
        places: Of the view; its files of ignore rules are fetched.
        files: What git has below the root: path to the name of its blob.

    Raises:
        FilestoreError: Ignore rules cannot be followed.
    """
    top = _Folder()
    for path, name in files.items():
        *folders, last = path.split("/")
        into = top
        for folder in folders:
            into = into.folders.setdefault(folder, _Folder())
        into.files[last] = name
    with disk.folder_at(places.root) as handle:
        return _Walk(places, handle).of(top)


class _Walk:
    """One walk through folders that are only listed."""

    def __init__(self, places: Places, root: int) -> None:
        self._places = places
        self._root = root
        self._found: dict[ChunkPath, str] = {}

    def of(self, top: _Folder) -> dict[ChunkPath, str]:
        """What belongs to the tree."""
        assert self._places.rules is not None
        self._enter(TOP, top, self._places.rules, 0)
        return self._found

    def _enter(self, path: ChunkPath, folder: _Folder, around: TreeRules, depth: int) -> None:
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
        if not isinstance(inner, str):
            self._choose(path, folder, names, inner, depth)

    def _choose(
        self,
        path: ChunkPath,
        folder: _Folder,
        names: list[str],
        rules: FolderRules,
        depth: int,
    ) -> None:
        entered = [place for place, name in enumerate(names) if name in folder.folders]
        left_out = set(rules.choose(names, entered).left_out)
        for place, name in enumerate(names):
            if place in left_out:
                continue
            if name in folder.files:
                self._found[inside(path, name)] = folder.files[name]
            elif depth < MAX_DEPTH:
                self._enter(inside(path, name), folder.folders[name], rules, depth + 1)
