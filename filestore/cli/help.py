"""The help of a command, a page of the manual, or a code."""

import sys
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Struct

from filestore.cli import _help, _output
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


def run_help(options: Help) -> int:
    """Print the commands, the help of one, a page of the manual, or what a finding means.

    Example: filestore help repair
    """
    text = _text_on(options.about)
    if options.json:
        _output.write_json(HelpText(text).to_dict())
    else:
        with _output.paged():
            sys.stdout.write(text)
    return 0


def _text_on(about: Sequence[str]) -> str:
    known = _help.records()
    if (text := _help.text_on(about, known)) is not None:
        return text
    name, *action = about
    if action:
        word, names = (action[0], known[name]["actions"]) if name in known else (name, COMMANDS)
    else:
        word, names = name, (*COMMANDS, *_help.pages(), *_help.codes())
    nearest = did_you_mean(word, names)
    raise UsageError(f"no help on {' '.join(about)!r}{nearest}", remedy=_HELP)
