"""A path for a library that is not written in Python, and takes only text."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def is_utf8(path: str) -> bool:
    """Whether a path is text."""
    return path.encode("utf-8", "ignore").decode() == path


@contextmanager
def in_utf8(path: str) -> Iterator[str]:
    """A path to open something by, and only for that: a link where its own name is no text."""
    if is_utf8(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="filestore-") as folder:
        link = os.path.join(folder, "link")
        os.symlink(os.path.abspath(path), link)
        yield link
