"""Sees that nothing of filestore opens a database but SQLite, in whatever a test does.

POSIX drops all locks of a process on a file as soon as it closes any handle of that file. SQLite in
another process then takes the database for its own, and deletes a log that is in use: what was
committed is lost.
"""

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import filestore

OPENED: Final[list[str]] = []
"""What was opened otherwise, with who did it."""
_PACKAGE: Final = str(Path(filestore.__file__).parent)
_LIBRARY: Final = (os.path.dirname(os.__file__) + os.sep, "<frozen ")
_ENDINGS: Final = (".sqlite", ".sqlite-wal", ".sqlite-shm")
_MAKES: Final = os.O_CREAT | os.O_EXCL
_ALLOWED: Final = {"_open_unwritable", "staged_folder"}
"""Open what no connection of this process can have locked: where none can be made, and in a folder
that is written out before it takes its place."""


def watch() -> None:
    """Begin, for good."""
    sys.addaudithook(_seen)


def _seen(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open":
        return
    path, _, flags = arguments
    if not isinstance(path, str | bytes) or not os.fsdecode(path).endswith(_ENDINGS):
        return
    if flags & _MAKES == _MAKES or flags & os.O_DIRECTORY:
        return
    callers = _ours(sys._getframe(1))
    if callers and not _ALLOWED & {*callers}:
        OPENED.append(f"{os.fsdecode(path)} by {' < '.join(callers)}")


def _ours(frame: FrameType | None) -> list[str]:
    """Who of filestore opened it, from the inside out; nobody where a test did, called by it."""
    found: list[str] = []
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(_PACKAGE):
        return found
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found
