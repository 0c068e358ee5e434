"""Which store is meant: the root that a folder lies in or holds."""

import os
from collections.abc import Iterator
from typing import Final

from filestore.errors import FilestoreError
from filestore.settings import SETTINGS_NAME

DEFAULT_FOLDER: Final = "file_index"


class NoStoreError(FilestoreError, FileNotFoundError):
    """There is no store where one was expected."""


def find_root(start: str, explicit: str | None = None) -> str:
    """The root of the store that is meant.

    Args:
        start: A folder in or around which to look.
        explicit: A folder named by the user, which is then the only one looked at.

    Raises:
        NoStoreError: There is none.
    """
    for folder in [explicit] if explicit is not None else ancestors(os.path.abspath(start)):
        for root in (folder, os.path.join(folder, DEFAULT_FOLDER)):
            if os.path.isfile(os.path.join(root, SETTINGS_NAME)):
                return os.path.abspath(root)
    where = f"in {explicit}" if explicit is not None else f"in {start} or above"
    raise NoStoreError(
        f"no store {where}", remedy="make one with 'filestore init', or name one with --store"
    )


def ancestors(folder: str) -> Iterator[str]:
    """A folder and every folder around it, from the inside out."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent
