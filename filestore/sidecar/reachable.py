"""Where the originals lie that records name, as far as the store may look.

Opens nothing. One rule: records come from strangers, so what they name outside the work tree is not
even statted but where this user added documents or allowed it, and what does not look like a
document is not opened unless this user added that very file.
"""

import os
from collections.abc import Iterable
from typing import Final

from filestore.config.layout import Places
from filestore.config.user_config import Originals, read_machine, stored_path
from filestore.core.paths import around, is_below
from filestore.extract import names_document
from filestore.git.repository import git_work_tree, work_tree

_MOST_LINKS: Final = 40


class Reachable:
    """Which recorded sources may be looked at, and where they are."""

    def __init__(self, places: Places, originals: Originals) -> None:
        """Prepare.

        Args:
            places: Where the store lies.
            originals: What this user allowed beside the work tree.
        """
        self._root = os.path.realpath(places.root)
        self._tree = os.path.realpath(git_work_tree(places.root) or places.root)
        self._around = os.path.realpath(work_tree(places.root))
        self._whole = originals.given | originals.trusted
        self._tops = {stored_path(self._tree), *self._whole, *originals.beside, *originals.files}
        self._above = {folder for top in self._tops for folder in around(top)}
        self._originals = originals
        self._real: dict[str, str | None] = {}
        self._entered: dict[str, bool] = {}
        self._led_to: dict[str, str] = {}
        self._links_left = _MOST_LINKS
        self._fetch = places.fetch

    def path(self, source: str) -> str | None:
        """Where an original is, its folder without links; None where the store may not look.

        Args:
            source: As recorded, relative to the store root.
        """
        folder, _, name = source.rpartition("/")
        if folder not in self._real:
            self._real[folder] = self.folder(folder) if folder else None
        real = self._real[folder]
        is_plain = names_document(name) and "\0" not in source
        found = f"{real}/{name}" if real and is_plain else self._exactly(source)
        if found is not None and self._fetch is not None:
            self._fetch(found)
        return found

    def _exactly(self, source: str) -> str | None:
        """The same for what is not simply a document in a folder."""
        folder, name = os.path.split(self.named(source))
        if not self._opens(folder, name):
            return None
        real = self._led(folder)
        return os.path.join(real, name) if self._opens(real, name) else None

    def followed(self, source: str) -> str | None:
        """Where an original is, all links followed; None where the store may not look."""
        if not self._opens(*os.path.split(self.named(source))):
            return None
        found = self.leads(source)
        return found if self._opens(*os.path.split(found)) else None

    def folder(self, source: str) -> str | None:
        """Where a folder is whose files may be listed, all links followed; None for any other."""
        if not self._enters(self.named(source)):
            return None
        found = self.leads(source)
        return found if self._enters(found) else None

    def tree(self, source: str) -> str | None:
        """Where a folder is, all below which may be listed, as `folder`."""
        found = self.folder(source)
        return found if found is not None and self._enters(os.path.join(found, "_")) else None

    def lists(self, path: str, top: str) -> bool:
        """Whether a document that a folder holds belongs to it without having been named.

        Args:
            path: Absolute, below the folder.
            top: The folder, without links, as `tree` gives it.
        """
        folder, name = os.path.split(path)
        is_added = stored_path(top) in self._originals.given and not name.startswith(".")
        return self._opens(folder, name) or (is_added and _is_seen(folder, top))

    def given_to_add(self, paths: Iterable[str]) -> Originals:
        """What to remember of paths given to `add`: a file allows what lies beside it."""
        real = [os.path.realpath(path) for path in paths]
        folders = {path for path in real if os.path.isdir(path)}
        beside = {os.path.dirname(path) for path in real if path not in folders}
        return Originals(
            given=frozenset(map(stored_path, folders)),
            beside=frozenset(stored_path(one) for one in beside if not self._enters(one)),
        )

    def is_outside(self, source: str) -> bool:
        """Whether an original lies outside the work tree, or a link leads there."""
        named = self.named(source)
        return not (is_below(named, self._tree) and is_below(self._led(named), self._tree))

    def is_document(self, source: str) -> bool:
        """Whether an original may be opened wherever the store may look."""
        return self.path(source) is not None or all(
            names_document(words[-1])
            and not any(part.startswith(".") and part != ".." for part in words)
            for path in (self.named(source), self.leads(source))
            for words in [os.path.relpath(path or os.sep, self._root).split(os.sep)]
        )

    def is_near(self, source: str) -> bool:
        """Whether an original, or a folder of them, lies in the work tree and may be looked at.

        Without git it is the folder that the store lies in.
        """
        if os.path.isabs(source) or not is_below(self.named(source), self._around):
            return False
        found = self.followed(source) or self.folder(source)
        return found is not None and is_below(found, self._around)

    def named(self, source: str) -> str:
        """The path that a record names, absolute, by its words alone."""
        # No file has a NUL in its name, and asking for one is an error.
        return "" if "\0" in source else os.path.normpath(os.path.join(self._root, source))

    def leads(self, source: str) -> str:
        """Where the path that a record names leads, absolute, as far as links may be read."""
        return self._led(self.named(source))

    def _led(self, path: str) -> str:
        """A path with all links followed; from where the store may not look on, by its words."""
        folder, name = os.path.split(path)
        if not name:
            return path
        if folder not in self._led_to:
            self._led_to[folder] = self._led(folder)
        self._links_left = _MOST_LINKS
        return self._step(self._led_to[folder], name)

    def _step(self, folder: str, name: str) -> str:
        """Where a name in a folder without links leads."""
        place = os.path.normpath(os.path.join(folder, name))
        if not self._may_ask(place) or not self._links_left:
            return place
        try:
            target = os.readlink(place)
        except OSError:
            return place
        self._links_left -= 1
        found = os.sep if target.startswith(os.sep) else folder
        for part in filter(None, target.split(os.sep)):
            found = self._step(found, part)
        return found

    def _may_ask(self, path: str) -> bool:
        """Whether it may be asked if a path is a link."""
        known = stored_path(path)
        return known in self._above or not self._tops.isdisjoint(around(known))

    def _opens(self, folder: str, name: str) -> bool:
        """Whether a file may be opened, by its folder and its name."""
        is_added = stored_path(os.path.join(folder, name)) in self._originals.files
        return is_added or (names_document(name) and self._enters(folder))

    def _enters(self, folder: str) -> bool:
        """Whether files that lie directly in a folder may be looked at."""
        if folder not in self._entered:
            known = stored_path(folder)
            tops = [top for top in around(known) if top in self._whole]
            if is_below(folder, self._tree):
                tops.append(stored_path(os.path.commonpath((folder, self._root))))
            is_beside = known in self._originals.beside
            self._entered[folder] = is_beside or any(_is_seen(known, top) for top in tops)
        return self._entered[folder]


def of_places(places: Places) -> Reachable:
    """Where a store may look, by the user's own file.

    Raises:
        MachineError: That file cannot be read.
    """
    machine = read_machine(places.configuration, os.environ)
    return Reachable(places, machine.originals_of(places.root))


def _is_seen(folder: str, top: str) -> bool:
    """Whether a folder lies below another, and no part of the way is hidden."""
    return is_below(folder, top) and not any(
        part.startswith(".") for part in folder[len(top) :].split(os.sep)
    )
