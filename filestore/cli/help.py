"""The help of a command, a page of the manual, or a code."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Struct

from filestore.cli import _output, _parser
from filestore.cli._overview import SYNONYMS, overview
from filestore.core.errors import UsageError
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean
from filestore.server.operations import COMMANDS, CommonOptions, argument

_HELP: Final = "filestore help"


class HelpText(JsonObject, Struct, frozen=True):
    """What `help` prints."""

    text: str
    """The help, as it is printed without `--json`."""


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
    text = _text_on(options.about)
    if options.json:
        _output.write_json(HelpText(text).to_dict())
    else:
        sys.stdout.write(text)
    return 0


def _text_on(about: Sequence[str]) -> str:
    if not about:
        return overview()
    name, *action = about
    found = pages()
    name = name if name in found else SYNONYMS.get(name, name)
    if name in COMMANDS:
        return _parser.command_parser(name).of_action(action).format_help()
    from filestore.core.codes import CODES

    if action:
        raise UsageError(f"no command {name!r}{did_you_mean(name, COMMANDS)}", remedy=_HELP)
    if name in CODES:
        return f"{name}: {CODES[name].repair}\n"
    if name not in found:
        known = (*COMMANDS, *found, *CODES)
        raise UsageError(f"no help on {name!r}{did_you_mean(name, known)}", remedy=_HELP)
    with open(found[name], encoding="utf-8") as page:
        return page.read()
