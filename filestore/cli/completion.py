"""What completes a command line in a shell: a file that is made with the package."""

import sys
from importlib.resources import files
from typing import Annotated, Literal

from msgspec import Struct

from filestore.cli import _context
from filestore.core.schema import JsonObject
from filestore.server.operations import CommonOptions, argument


class ShellFile(JsonObject, Struct, frozen=True):
    """What `completion` prints."""

    shell: str
    """bash, zsh or fish."""
    text: str
    """What the shell is to read, as it is printed without `--json`."""


class Completion(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    shell: Annotated[Literal["bash", "zsh", "fish"], argument("bash|zsh|fish")]
    """the shell that is to read it"""


def run_completion(options: Completion) -> int:
    """Print the file that completes commands, actions, options and paths in a shell at TAB.

    Write it where your shell looks: for bash
    ~/.local/share/bash-completion/completions/filestore, for zsh _filestore in a folder of its
    fpath, for fish ~/.config/fish/completions/filestore.fish. At TAB nothing of filestore runs.

    Examples:
        filestore completion bash
        filestore completion fish
    """
    place = files(__package__) / "shells" / f"filestore.{options.shell}"
    text = place.read_text(encoding="utf-8")
    if not _context.printed_json(options, ShellFile(options.shell, text)):
        sys.stdout.write(text)
    return 0
