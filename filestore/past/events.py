"""What a log tells: the commits after which a file, a section or an answer was another. Values."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject
from filestore.git.revisions import Commit

What = Literal["added", "edited", "metadata", "renamed", "removed"]
"""What was done to a file: its text is new, another, or the same; or it is gone."""
About = Literal["file", "section", "query"]


class FileChange(JsonObject, Struct, frozen=True, kw_only=True):
    """What a commit did to one file."""

    path: StorePath
    """As it is called after it."""
    what: What
    was: StorePath | None = None
    """What it was called before, where that is something else."""


class AnswerChange(JsonObject, Struct, frozen=True, kw_only=True):
    """What a commit did to one answer."""

    path: StorePath
    rank: int
    """Its place after the commit; of a lost one before it."""
    was: StorePath | None = None


class LogEntry(JsonObject, Struct, frozen=True, kw_only=True):
    """One commit, or what is not committed yet, and what it changed."""

    commit: Commit | None
    """None for what is not committed."""
    files: tuple[FileChange, ...] = ()
    gained: tuple[AnswerChange, ...] = ()
    lost: tuple[AnswerChange, ...] = ()
    edited: tuple[AnswerChange, ...] = ()
    """Answers that stayed, with another text."""
    first: StorePath | None = None
    """The best answer after it, where that is another one."""
    begins: bool = False
    """Whether the store begins there."""


class Log(JsonObject, Struct, frozen=True, kw_only=True):
    """When something changed, and by which commit."""

    asked: str
    about: About
    entries: tuple[LogEntry, ...]
    """Newest first."""
    notes: tuple[str, ...]


OnEntry = Callable[[LogEntry], None]


def pass_over(_: LogEntry) -> None:
    """Wait for the whole log."""
