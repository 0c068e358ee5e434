"""Files of one commit, written into a folder of ours as each is looked for.

One rule: nothing is written but below that folder, and nothing there is ever written over.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from itertools import tee
from typing import Final

from filestore.config.layout import MAX_SOURCE_BYTES
from filestore.core.paths import has_plain_names
from filestore.fs import part
from filestore.git.process import Blobs, NoAnswerError
from filestore.git.revisions import blob_at, is_partial

GIT: str = ".git"
"""An empty folder of this name marks the top: what looks for a work tree around the files of a view
ends there, and git finds no repository in it."""

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Checkout:
    """A folder that stands for the work tree at one commit, and for submodules in it."""

    def __init__(self, folder: str, commit: str, top: str) -> None:
        """Start nothing yet.

        Args:
            folder: Of the work tree; git is asked there.
            commit: Its full name.
            top: The folder that stands for the top of the work tree; absolute.
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
            # Whoever asks may have resolved what leads to the top.
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
        """Put bytes where a file is looked for; whoever was first is believed."""
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
