"""For whom this process works: for the user who started it, or for a command that it answers.

A command that a server answers runs in a thread of the server. What it would ask its own process
for, such as the working folder, is asked here.
"""

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar

from msgspec import Struct


class Caller(Struct, frozen=True, kw_only=True):
    """The surroundings of a command that another process runs."""

    folder: str
    """Its working folder, absolute."""
    columns: int = 0
    """The width of its terminal; 0 where standard output is none."""
    store: str = ""
    """What its variable FILESTORE says."""
    colors: str = "auto"
    """Whether its variables want colors: as `colors.wanted_colors` has it."""


_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextlib.contextmanager
def answering(caller: Caller) -> Iterator[None]:
    """Work for another process, in this thread, until the block ends."""
    before = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(before)


def other_caller() -> Caller | None:
    """The other process that this thread works for; None for its own."""
    return _CALLER.get()


_PROGRAM: ContextVar[str | None] = ContextVar("program", default=None)


@contextlib.contextmanager
def writing_for(program: str | None) -> Iterator[None]:
    """Keep with each change of files, in this thread, which program made it.

    Args:
        program: Its name; None for a person.
    """
    before = _PROGRAM.set(program)
    try:
        yield
    finally:
        _PROGRAM.reset(before)


def writing_program() -> str | None:
    """The program for which this thread changes files; None for a person."""
    return _PROGRAM.get()


def named_store() -> str:
    """The store that the variable FILESTORE names, or ""."""
    caller = _CALLER.get()
    return os.environ.get("FILESTORE", "") if caller is None else caller.store


def working_folder() -> str:
    """The folder that relative paths start from.

    Raises:
        FileNotFoundError: It was removed.
    """
    caller = _CALLER.get()
    return os.getcwd() if caller is None else caller.folder


def absolute(path: str) -> str:
    """A path from there, made absolute, with the folders on its way as they are called.

    What `os.path.abspath` is for the own process, but by what the system finds: `..` behind a link
    is the folder around the one that it leads to. A link at the end stays what it is.

    Raises:
        FileNotFoundError: It is relative, and the folder was removed.
    """
    folder, name = os.path.split(path.rstrip("/") or path)
    if name in ("", os.curdir, os.pardir):
        return leads(path)
    return os.path.join(leads(folder), name)


def leads(path: str) -> str:
    """Where a path from there leads in the end; a text that is no path stays so.

    Raises:
        FileNotFoundError: It is relative, and the folder was removed.
    """
    whole = path if os.path.isabs(path) else os.path.join(working_folder(), path)
    try:
        return os.path.realpath(whole)
    except ValueError:
        return os.path.normpath(whole)
