"""The help of a command, a page of the manual, or a code."""

import os
import sys
from typing import Annotated, Final

from filestore.cli import _output, _parser
from filestore.cli._overview import SYNONYMS, overview
from filestore.core.errors import UsageError
from filestore.core.spelling import did_you_mean
from filestore.server.operations import COMMANDS, CommonOptions, argument

_HELP: Final = "filestore help"


class Help(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    about: Annotated[tuple[str, ...], argument("COMMAND|PAGE|CODE")] = ()
    """a command and one of its actions, a page of the manual, or the code of a finding"""


def pages() -> dict[str, str]:
    """The pages of the manual: the path of each by its name."""
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "docs")
    found = {}
    for part in (folder, os.path.join(folder, "reference")):
        for name in os.listdir(part):
            if name.endswith(".md"):
                found[name.removesuffix(".md").lower()] = os.path.join(part, name)
    return found


def run_help(options: Help) -> int:
    """Print the commands, the help of one, a page of the manual, or what a finding means.

    Example: filestore help repair
    """
    if not options.about:
        sys.stdout.write(overview())
        return 0
    name, *action = options.about
    found = pages()
    name = name if name in found else SYNONYMS.get(name, name)
    if name in COMMANDS:
        sys.stdout.write(_parser.command_parser(name).of_action(action).format_help())
        return 0
    from filestore.core.codes import CODES

    if action:
        raise UsageError(f"no command {name!r}{did_you_mean(name, COMMANDS)}", remedy=_HELP)
    if name in CODES:
        _output.line(f"{name}: {CODES[name].repair}")
        return 0
    if name not in found:
        known = (*COMMANDS, *found, *CODES)
        raise UsageError(f"no help on {name!r}{did_you_mean(name, known)}", remedy=_HELP)
    with open(found[name], encoding="utf-8") as page:
        sys.stdout.write(page.read())
    return 0
