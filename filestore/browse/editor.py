"""The editor that opens a file at a line."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from filestore.core.safe_text import shown_path
from filestore.fs.programs import find_program

VARIABLES: Final = ("VISUAL", "EDITOR")
OTHERWISE: Final = ("vi", "nano")
"""Where none is named, the first of these that is there."""
_DESKTOP: Final = {"darwin": "open"}
"""What opens a file as the desktop does, by system; elsewhere ``xdg-open``."""
_WAIT: Final = {
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "zed"), ("--wait", "-w")),
    "subl": ("--wait", "-w"),
    "gvim": ("-f", "--nofork"),
    "mate": ("--wait", "-w"),
    "kate": ("--block", "-b"),
}
"""Editors that come back before the person is done, and what makes them wait."""
_PLUS: Final = (
    "vi vim nvim view gvim mvim vimx nano pico emacs emacsclient micro kak joe jed mg gedit"
)
_GOTO: Final = "code code-insiders codium vscodium cursor windsurf"
_AT_LINE: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_PLUS.split(), ("+{line}", "{path}")),
    **dict.fromkeys(_GOTO.split(), ("--goto", "{path}:{line}")),
    **dict.fromkeys(("subl", "hx", "helix", "zed", "zeditor"), ("{path}:{line}",)),
    **dict.fromkeys(("kate", "mate"), ("-l", "{line}", "{path}")),
}
"""The option of each editor for the line to begin at."""


class EditorCommand(Struct, frozen=True, kw_only=True):
    """An editor, or why there is none."""

    words: tuple[str, ...] = ()
    """What the path of the file is put behind."""
    problem: str = ""
    """Why there is none, and what to do."""
    warning: str = ""
    """Why it may not do what is expected, and what to do."""


def editor_command(
    environment: Mapping[str, str], which: Callable[[str], str | None] = find_program
) -> EditorCommand:
    """The editor of ``$VISUAL``, of ``$EDITOR``, or one that is there.

    Args:
        environment: The variables.
        which: Finds a program.
    """
    for variable in VARIABLES:
        value = environment.get(variable, "")
        if value.strip():
            break
    else:
        for name in OTHERWISE:
            if which(name):
                return EditorCommand(words=(name,))
        return EditorCommand(problem="no editor found: set $EDITOR, or install vi or nano")
    try:
        words = tuple(shlex.split(value))
    except ValueError as error:
        return EditorCommand(problem=f"${variable} cannot be read, {error}: {value}")
    if not words:
        return EditorCommand(problem=f"${variable} names no program: {value}")
    if not which(words[0]):
        return EditorCommand(
            problem=f"${variable} names {words[0]}, which is not installed: change it"
        )
    name = os.path.basename(words[0])
    waiting = _WAIT.get(name, ())
    if not waiting or any(word in waiting for word in words[1:]):
        return EditorCommand(words=words)
    warning = f'{name} does not wait: set {variable}="{shlex.join(words)} {waiting[0]}"'
    return EditorCommand(words=words, warning=warning)


def program_for(path: str, environment: Mapping[str, str]) -> EditorCommand:
    """What opens a file: an editor, or for what is no text the desktop."""
    from filestore.extract import is_text

    if is_text(path):
        return editor_command(environment)
    name = _DESKTOP.get(sys.platform, "xdg-open")
    if find_program(name) is None:
        problem = f"{shown_path(path)} is not text, and there is no {name} to open it"
        return EditorCommand(problem=problem)
    return EditorCommand(words=(name,))


def opened_at(words: Sequence[str], path: str, line: int | None) -> tuple[str, ...] | None:
    """The command that opens a file at a line; None where it is not known how to say the line.

    Args:
        words: Of an editor, as `editor_command` gave them.
        path: Absolute, so that no editor takes it for an option.
        line: From 1; None for none.
    """
    if line is None:
        return *words, path
    name = os.path.basename(words[0])
    # Distributions have several builds of one: vim.basic, emacs-nox, nvim-0.10.
    known = _AT_LINE.get(name) or _AT_LINE.get(re.split(r"[-.\d]", name)[0])
    if known is None:
        return None
    return *words, *(word.replace("{line}", str(line)).replace("{path}", path) for word in known)
