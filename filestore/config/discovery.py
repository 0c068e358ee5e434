"""Which store is meant: the root that a folder lies in or holds."""

import os
import shlex
import stat
from collections.abc import Iterator
from typing import Final

from filestore.config.layout import CATALOG, SETTINGS
from filestore.core.caller import leads
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import DOCUMENTS_SIDECAR

DEFAULT_FOLDER: Final = "file_index"


class NoStoreError(FilestoreError, FileNotFoundError):
    """There is no store where one was expected."""


class UnreadableStoreError(FilestoreError, PermissionError):
    """Whether there is a store cannot be seen."""


def configuration_folder() -> str:
    """The folder of the user's settings."""
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def find_root(start: str, explicit: str | None = None) -> str:
    """The root of the store that is meant, without links: however it is named, it is one store.

    Args:
        start: A folder in or around which to look.
        explicit: A folder named by the user, which is then the only one looked at.

    Raises:
        NoStoreError: There is none.
        UnreadableStoreError: The folder that was named cannot be looked into.
        UsageError: The name is empty, as that of a variable which is not set.
    """
    if explicit is not None:
        require_named(explicit)
    folders = [explicit] if explicit is not None else list(ancestors(leads(start)))
    for folder in folders:
        for root in (folder, os.path.join(folder, DEFAULT_FOLDER)):
            if _is_store(root, named=explicit is not None):
                return leads(root)
    for folder in folders:
        if os.path.isfile(os.path.join(folder, DOCUMENTS_SIDECAR, CATALOG)):
            # The commands are pasted where the person is, which may be another folder.
            place = shlex.quote(folder)
            raise NoStoreError(
                f"{folder} has an index and no {SETTINGS}: no store without it",
                remedy=f"where git has it, 'git -C {place} checkout BRANCH -- {SETTINGS}', else"
                f" 'filestore init --in-place {place}'; what is indexed is not embedded again",
            )
    where = f"in {start} or above"
    if explicit is not None:
        reason = why_no_folder(explicit)
        where = f"in {explicit}{reason and f': it {reason}'}"
    raise NoStoreError(
        f"no store {where}", remedy="make one with 'filestore init', or name one with --store"
    )


def require_named(path: str) -> None:
    """Refuse what a variable that is not set leaves in the place of a folder.

    Raises:
        UsageError: The text is empty.
    """
    if not path:
        raise UsageError(
            "an empty text names no store", remedy="name its folder; '.' is the working folder"
        )


def why_no_folder(path: str) -> str:
    """What is wrong with what stands in the place of a folder; "" where that is one, or nothing."""
    if os.path.isdir(path) or not os.path.lexists(path):
        return ""
    return "is no folder" if os.path.exists(path) else "is a link to nothing"


def _is_store(root: str, *, named: bool) -> bool:
    path = os.path.join(root, SETTINGS)
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except PermissionError as error:
        if not named:
            return False
        raise UnreadableStoreError(
            f"cannot look into {root}: {error.strerror}",
            remedy=f"make {root} readable, or run it as its owner",
        ) from error
    except (OSError, ValueError):
        return False


def ancestors(folder: str) -> Iterator[str]:
    """A folder and every folder around it, from the inside out."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent
