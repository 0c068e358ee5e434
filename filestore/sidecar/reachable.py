"""Where the originals lie that records name, as far as the store may look.

Opens nothing. One rule: records come from strangers, so nothing that they name outside the work
tree is opened or statted unless the user allowed it for this store.
"""

import os

from filestore.config.layout import Places
from filestore.core.paths import is_below
from filestore.git.repository import work_tree


class Reachable:
    """Which recorded sources may be looked at, and where they are."""

    def __init__(self, places: Places, *, everywhere: bool) -> None:
        """Prepare.

        Args:
            places: Where the store lies.
            everywhere: Whether the user allowed sources outside the work tree.
        """
        self._root = os.path.realpath(places.root)
        self._tree = os.path.realpath(work_tree(places.root))
        self._everywhere = everywhere
        self._folders: dict[str, str | None] = {}
        self._fetch = places.fetch

    def path(self, source: str) -> str | None:
        """Where an original is, its folder without links; None where the store may not look.

        Args:
            source: As recorded, relative to the store root.
        """
        found = self._place(source)
        if found is not None and self._fetch is not None:
            self._fetch(found)
        return found

    def _place(self, source: str) -> str | None:
        if "\0" in source:
            # No file has such a name, and asking for it is an error.
            return None
        folder, _, name = source.rpartition("/")
        if source.startswith("/") or name in ("", ".", ".."):
            return self.followed(source)
        if folder not in self._folders:
            self._folders[folder] = self.followed(folder)
        parent = self._folders[folder]
        return None if parent is None else f"{parent}/{name}"

    def is_outside(self, source: str) -> bool:
        """Whether an original lies where the store may not look, a link in its place followed."""
        path = self.path(source)
        return path is None or (os.path.islink(path) and self.followed(source) is None)

    def is_in_tree(self, source: str) -> bool:
        """Whether an original lies in the work tree, no link leading out of it."""
        named = os.path.normpath(os.path.join(self._root, source.replace("\0", "")))
        if os.path.isabs(source) or not is_below(named, self._tree):
            return False
        return is_below(os.path.realpath(named), self._tree)

    def followed(self, source: str) -> str | None:
        """Where a path leads, all links followed; None outside.

        The words alone must not lead out either: they are judged before anything is asked.
        """
        named = os.path.normpath(os.path.join(self._root, source))
        if not (self._everywhere or is_below(named, self._tree)):
            return None
        found = os.path.realpath(named)
        return found if self._everywhere or is_below(found, self._tree) else None
