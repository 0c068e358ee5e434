"""Files of one commit, written into a folder of ours as each is looked for.

One rule: nothing is written but below that folder, and nothing there is ever written over.
"""

import contextlib
import os
import tempfile

from filestore.config.layout import MAX_SOURCE_BYTES
from filestore.core.paths import has_plain_names
from filestore.git.process import Blobs, NoAnswerError

GIT: str = ".git"
"""An empty folder of this name marks the top: what looks for a work tree around the files of a view
ends there, and git finds no repository in it."""


class Checkout:
    """A folder that stands for the work tree at one commit."""

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
        self._blobs: Blobs | None = None

    def close(self) -> None:
        """End git."""
        if self._blobs is not None:
            self._blobs.__exit__(None, None, None)
            self._blobs = None

    def fetch(self, path: str) -> None:
        """Put a file where it is looked for, if the commit has it and it is not there.

        Args:
            path: Absolute, below `top`; any other one is left alone.
        """
        below = os.path.relpath(path, self._top)
        if os.path.lexists(path) or not has_plain_names(below) or "\n" in below:
            return
        with contextlib.suppress(NoAnswerError):
            self.write(path, self.read(f"{self._commit}:{below}"))

    def read(self, name: str) -> bytes:
        """What git has under the name of a blob, or under ``commit:path``.

        Raises:
            NoAnswerError: There is nothing, or it is larger than any document that is read.
        """
        if self._blobs is None:
            self._blobs = Blobs(self._folder)
        size, data = self._blobs.read(name, MAX_SOURCE_BYTES)
        if len(data) != size:
            raise NoAnswerError(f"{name} has {size:,} bytes: too large", remedy="git show")
        return data

    def write(self, path: str, data: bytes) -> None:
        """Put bytes where a file is looked for; whoever was first is believed."""
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".filestore-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
