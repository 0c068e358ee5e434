"""The user's editor as the words of a command. Pure."""

import os
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

VARIABLES: Final = ("VISUAL", "EDITOR")
OTHERWISE: Final = ("vi", "nano")
"""Where none is named, the first of these that is there."""
_WAIT: Final = {
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "zed"), ("--wait", "-w")),
    "subl": ("--wait", "-w"),
    "gvim": ("-f", "--nofork"),
    "mate": ("--wait", "-w"),
    "kate": ("--block", "-b"),
}
"""Editors that come back before the person is done, and what makes them wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """An editor, or why there is none."""

    words: tuple[str, ...] = ()
    """What the path of the file is put behind."""
    problem: str = ""
    """Why there is none, and what to do."""
    warning: str = ""
    """Why it may not do what is expected, and what to do."""


def command(
    environment: Mapping[str, str], which: Callable[[str], str | None] = shutil.which
) -> Command:
    """The editor of ``$VISUAL``, of ``$EDITOR``, or one that is there.

    Args:
        environment: The variables.
        which: Finds a program.
    """
    for variable in VARIABLES:
        if environment.get(variable, "").strip():
            return _named(variable, environment[variable], which)
    for name in OTHERWISE:
        if which(name):
            return Command(words=(name,))
    return Command(problem="no editor found: set $EDITOR, or install vi or nano")


def _named(variable: str, value: str, which: Callable[[str], str | None]) -> Command:
    try:
        words = tuple(shlex.split(value))
    except ValueError as error:
        return Command(problem=f"${variable} cannot be read, {error}: {value}")
    if not words:
        return Command(problem=f"${variable} names no program: {value}")
    if not which(words[0]):
        return Command(problem=f"${variable} names {words[0]}, which is not installed: change it")
    name = os.path.basename(words[0])
    waiting = _WAIT.get(name, ())
    if not waiting or any(word in waiting for word in words[1:]):
        return Command(words=words)
    warning = f'{name} does not wait: set {variable}="{shlex.join(words)} {waiting[0]}"'
    return Command(words=words, warning=warning)
