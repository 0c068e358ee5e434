"""Files of one commit, and of its submodules, written into a folder of ours as each is looked for.

What git stores is read. A filter is a program that a repository names, and is never run; so a file
that git stores otherwise is taken from the work tree where git says that it has not changed since.
One rule: nothing is written but below that folder, and nothing there is ever written over.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.config.layout import MAX_SOURCE_BYTES, Places
from filestore.core.paths import ChunkPath, has_plain_names
from filestore.fs import disk, part
from filestore.git.process import Blobs, NoAnswerError, work_tree
from filestore.git.revisions import Commit, FilesAt, blob_at, changed_since, files_at, is_partial

GIT: str = ".git"
"""An empty folder of this name marks the top: what looks for a work tree around the files of a view
ends there, and git finds no repository in it."""

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SUBMODULES: Final = "submodules.json"
"""In the folder of a view: they are asked again for every file that is looked at."""
_MOST_NESTED: Final = 8
NOTE: Final = (
    "some files of the commit are read as git stores them: .gitattributes names a filter, an"
    " encoding or 'ident', which only a checkout applies"
)
_ATTRIBUTES: Final = ".gitattributes"
_CONVERTED: Final = re.compile(rb"[ \t](?:filter|working-tree-encoding)=|[ \t]ident\b")


class Checkout:
    """A folder in place of the work tree at one commit, with its submodules."""

    def __init__(self, folder: str, commit: str, top: str) -> None:
        """Start nothing yet.

        Args:
            folder: Of the work tree; git is asked there.
            commit: Its full name.
            top: The folder in place of the top of the work tree; absolute.
        """
        self._folder = folder
        self._commit = commit
        self._top = top
        self._written_below = top
        self._blobs: Blobs | None = None
        self._modules: dict[str, Checkout] = {}

    def close(self) -> None:
        """End git."""
        for module in self._modules.values():
            module.close()
        if self._blobs is not None:
            self._blobs.__exit__(None, None, None)
            self._blobs = None

    def add_module(self, below: str, folder: str, commit: str) -> None:
        """Take files below a folder from a submodule.

        Args:
            below: The folder, relative to the top.
            folder: Where the submodule is checked out today.
            commit: That it had.
        """
        module = Checkout(folder, commit, os.path.join(self._top, below))
        # Any folder on the way there may have become a link.
        module._written_below = self._top
        # The innermost is asked first.
        self._modules = {below + "/": module, **self._modules}

    def fetch(self, path: str) -> None:
        """Put a file where it is looked for, if the commit has it and it is not there.

        Args:
            path: Absolute, below `top`; any other one is left alone.
        """
        below = os.path.relpath(path, self._top)
        if not has_plain_names(below):
            # The caller may have resolved what leads to the top.
            below = os.path.relpath(path, os.path.realpath(self._top))
            path = os.path.join(self._top, below)
        if os.path.lexists(path) or not has_plain_names(below):
            return
        for start, module in self._modules.items():
            if below.startswith(start):
                module.fetch(path)
                return
        name = f"{self._commit}:{below}"
        with contextlib.suppress(NoAnswerError):
            # A line is one question to git: one that spans two it is asked otherwise.
            blob = blob_at(self._folder, name) if "\n" in below else name
            if blob is not None:
                self.write(path, self.read(blob))

    def read(self, name: str) -> bytes:
        """What git has under the name of a blob, or under ``commit:path``; see `read_all`."""
        (data,) = self.read_all([name])
        return data

    def read_all(self, names: Iterable[str]) -> Iterator[bytes]:
        """What git has under the names of some blobs.

        Raises:
            NoAnswerError: One is not here, or is larger than any document that is read.
        """
        if self._blobs is None:
            self._blobs = Blobs(self._folder)
        asked, names = tee(names)
        for name, found in zip(names, self._blobs.read_all(asked, MAX_SOURCE_BYTES), strict=True):
            if found is None:
                yield self._read_in_module(name)
            elif len(found[1]) < found[0]:
                raise NoAnswerError(f"{name} has {found[0]:,} bytes: too large", remedy="git show")
            else:
                yield found[1]

    def _read_in_module(self, name: str) -> bytes:
        for module in self._modules.values():
            with contextlib.suppress(NoAnswerError):
                return module.read(name)
        if is_partial(self._folder):
            raise NoAnswerError(
                f"blob {name} is not here: this is a partial clone",
                remedy="git fetch --refetch --no-filter",
            )
        raise NoAnswerError(f"git has no blob {name} here", remedy="git fetch, or git fsck")

    def write(self, path: str, data: bytes) -> None:
        """Put bytes where a file is looked for; the first one stays."""
        folder, name = os.path.split(os.path.relpath(path, self._written_below))
        temporary = f".filestore-{os.urandom(8).hex()}"
        with (
            part.folder_of(self._written_below) as top,
            part.made_below(top, folder or os.curdir) as handle,
        ):
            descriptor = os.open(temporary, _NEW_FILE, 0o600, dir_fd=handle)
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=handle)
                raise


class Submodule(Struct, frozen=True, kw_only=True):
    """A submodule of a commit."""

    path: str
    """Relative to the store root."""
    commit: str
    """That it was to be at."""
    is_here: bool
    """Whether its files could be read."""


def with_submodules(root: str, found: FilesAt, depth: int = 0) -> Iterator[Submodule]:
    """Add the files of submodules to those of a commit, and tell of each.

    Args:
        root: Of the store, or the folder of a submodule.
        found: What the commit has below it; what submodules have is added.
        depth: How many submodules lie around it.
    """
    for path, commit in found.submodules.items():
        folder = os.path.join(root, path)
        inner: FilesAt | None = None
        nested: list[Submodule] = []
        # Where nothing is checked out, git would tell of the repository around.
        if depth < _MOST_NESTED and work_tree(os.path.realpath(folder)) == folder:
            with contextlib.suppress(NoAnswerError):
                inner = files_at(folder, commit)
        if inner is not None:
            nested = list(with_submodules(folder, inner, depth + 1))
            found.files.update({f"{path}/{one}": name for one, name in inner.files.items()})
        yield Submodule(path=path, commit=commit, is_here=inner is not None)
        for one in nested:
            yield replace(one, path=f"{path}/{one.path}")


def save_submodules(folder: str, submodules: list[Submodule]) -> None:
    """Keep them in the folder of a view."""
    if submodules:
        rows = [[os.fsencode(one.path).hex(), one.commit, one.is_here] for one in submodules]
        with open(os.path.join(folder, _SUBMODULES), "xb") as file:
            file.write(orjson.dumps(rows))


def load_submodules(folder: str) -> list[Submodule]:
    """Those of a view."""
    try:
        rows = orjson.loads(disk.read_path(os.path.join(folder, _SUBMODULES)))
    except (OSError, ValueError):
        return []
    return [
        Submodule(path=os.fsdecode(bytes.fromhex(path)), commit=commit, is_here=is_here)
        for path, commit, is_here in rows
        if has_plain_names(os.fsdecode(bytes.fromhex(path)))
    ]


def from_work_tree(
    places: Places, commit: Commit, paths: Sequence[ChunkPath]
) -> Iterator[tuple[ChunkPath, bytes]]:
    """Those of some files that git has as unchanged since a commit, with their bytes of today.

    Args:
        places: Of the store.
        commit: What they are compared with.
        paths: Files that the commit has, of which git may store other bytes.
    """
    if not paths:
        return
    names = [places.tree.store_path(path) for path in paths]
    try:
        changed = changed_since(places.root, commit.commit, names)
    except NoAnswerError:
        return
    for path, name in zip(paths, names, strict=True):
        if name not in changed:
            place = os.path.join(places.chunked, path)
            try:
                if not os.path.islink(place):
                    yield path, disk.read_path(place, limit=MAX_SOURCE_BYTES)
            except OSError as error:
                disk.pass_limits(error)


def are_converted(checkout: Checkout, commit: Commit, root: str, files: Iterable[str]) -> bool:
    """Whether a commit converts files as they are checked out.

    Args:
        checkout: Reads what the commit has.
        commit: Its name is asked for.
        root: The way from the top of the work tree to the store's tree, "" for the top itself.
        files: What the commit has there.
    """
    folders = [root]
    while folders[-1]:
        folders.append(os.path.dirname(folders[-1]))
    names = [os.path.join(folder, _ATTRIBUTES) for folder in folders]
    names += [os.path.join(root, one) for one in files if one.endswith(f"/{_ATTRIBUTES}")]
    for name in names:
        try:
            data = checkout.read(f"{commit.commit}:{name}")
        except NoAnswerError:
            continue
        if _CONVERTED.search(data):
            return True
    return False
