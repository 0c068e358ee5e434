"""Words of the command line into options; the command's own module says what it takes."""

import argparse
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from filestore.cli import COMMANDS
from filestore.cli._removed import refuse_removed
from filestore.core.caller import absolute, working_folder
from filestore.core.errors import UsageError
from filestore.core.limits import LIMITED, OPTION, USUAL, Limits
from filestore.core.spelling import did_you_mean
from filestore.fs.typed_names import on_disk

_COLUMNS = 78
_DESCRIPTION = "A knowledge store of Markdown files that people edit and an index that follows."
_EPILOG = """\
exit codes:
  0 done and clean          1 findings, or nothing found    2 wrong usage
  3 unusable as asked       4 refused for safety            5 done in part
  130 interrupted

'filestore COMMAND --help' says more, with an example."""

_PATHS: Final = ("DIR", "PATH", "FILE", "FOLDER", "PACK", "QUERIES", "SOURCE", "STORE", "TARGET")
"""What options and arguments call a path on the disk, which may be typed in other letters."""
_FRONT: Final = ("--store", "--json", "--version", "-V", "--help", "-h")
"""Options that may stand before the command."""


class _Parser(argparse.ArgumentParser):
    """Takes every option by its whole name: a short form would mean another one some day."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, remedy=f"{self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # The one place that sees a word beside those it could have been.
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        # The one place that sees every path that a person types.
        value = super()._get_value(action, arg_string)
        if action.metavar not in _PATHS or arg_string.isascii():
            return value
        place = absolute(arg_string)
        found = on_disk(place)
        if found == place:
            return value
        return found if os.path.isabs(arg_string) else os.path.relpath(found, working_folder())

    def visible_options(self) -> list[str]:
        """Every option that the help shows, also those of the actions of a command."""
        found: list[str] = []
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    found += inner.visible_options()
            elif action.help != argparse.SUPPRESS:
                found += action.option_strings
        return list(dict.fromkeys(found))


def parse(words: Sequence[str]) -> Any:
    """The options of one call, with `run`, the function of its command.

    Raises:
        UsageError: The words fit no command.
    """
    command, position = _command_in(words)
    parser = _Parser(
        prog="filestore",
        usage="filestore [--store DIR] [--json] COMMAND …",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=_formatter,
    )
    parser.add_argument("--version", "-V", action="store_true", help="print the version")
    parser.add_argument("--store", metavar="DIR", help="the store, or a folder with file_index/")
    parser.add_argument("--json", action="store_true", help="print JSON on standard output")
    if command is None:
        _list_commands(parser)
        parser.parse_args(list(words))
        parser.print_help(sys.stderr)
        raise UsageError("no command was given", remedy="filestore --help")
    options = parser.parse_args(list(words[:position]))
    refuse_removed(command, words[position + 1 :])
    own = command_parser(command, options)
    rest = list(words[position + 1 :])
    joined = _joined_with_flag(rest) if command == "search" else None
    if joined is not None:
        query = [word for word in rest if not word.startswith("-")]
        asked = argparse.Namespace(query=query)
        raise _unexpected(command, asked, [joined], rest, own.visible_options())
    chosen, unknown = own.parse_known_args(rest)
    if unknown:
        options_known = own.visible_options()
        raise _unexpected(command, chosen, unknown, words[position + 1 :], options_known)
    chosen.run = import_module(f"filestore.cli.{command}").run
    return chosen


def _joined_with_flag(words: Sequence[str]) -> str | None:
    """A word with a sign that begins like a flag of `search`: ``-lamp`` is no ``-l``."""
    own = words[: words.index("--")] if "--" in words else words
    return next((word for word in own if re.fullmatch(r"-[l0](?![l0]*$).*", word)), None)


def _unexpected(
    command: str, chosen: Any, unknown: Sequence[str], words: Sequence[str], known: Sequence[str]
) -> UsageError:
    """What no option takes; in a query it may be meant for a word with a sign."""
    remedy = f"filestore {command} --help"
    if command == "search" and not unknown[0].startswith("--"):
        is_all_query = all(word in (*chosen.query, *unknown) for word in words)
        query = shlex.join(words) if is_all_query else "QUERY"
        remedy = f"filestore search {'' if is_all_query else 'OPTIONS '}-- {query}"
    return UsageError(_not_known(unknown[0], known), remedy=remedy)


def _not_known(word: str, options: Sequence[str]) -> str:
    """What to say of a word that nothing takes; of an option, which one may be meant."""
    name = word.partition("=")[0]
    meant = did_you_mean(name, options) if word.startswith("-") else ""
    return f"unexpected argument {(name if meant else word)!r}{meant}"


def command_parser(command: str, front: Any) -> _Parser:
    """What a command takes.

    An option that takes a list adds up where it is repeated; of any other the last one holds.

    Args:
        command: Its name.
        front: The options that stood before it.
    """
    module = import_module(f"filestore.cli.{command}")
    own = _Parser(
        prog=f"filestore {command}",
        description=textwrap.fill(module.__doc__ or "", _COLUMNS),
        epilog=f"example:\n  {module.EXAMPLE}",
        formatter_class=_formatter,
    )
    own.add_argument("--store", metavar="DIR", default=front.store, help="the store to use")
    own.add_argument(
        "--json", action="store_true", default=front.json, help="print JSON on standard output"
    )
    module.configure(own)
    return own


def shared_options() -> argparse.ArgumentParser:
    """What may stand behind an action, too: for the `parents` of the parsers of actions."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--store", metavar="DIR", help="the store to use")
    shared.add_argument("--json", action="store_true", help="print JSON on standard output")
    return shared


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Let a command that reads what a stranger wrote take more of it; see `limits_of`."""
    shown = " ".join(f"{name}={getattr(USUAL, name)}" for name in LIMITED)
    parser.add_argument(
        OPTION,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=N",
        help=f"take more than {shown}",
    )


def limits_of(options: Any) -> Limits:
    """The limits, some of them others.

    Raises:
        UsageError: There is no such limit, or it is no number of things.
    """
    found: dict[str, int] = {}
    for word in options.limit:
        name, _, number = word.partition("=")
        if name not in LIMITED or not re.fullmatch(r"0*[1-9][0-9]{0,17}", number):
            raise UsageError(
                f"{OPTION} {word!r}: expected a number after {'=, '.join(LIMITED)}=",
                remedy=f"{OPTION} rows=1000000",
            )
        found[name] = int(number)
    return Limits(**found)


def _formatter(prog: str) -> argparse.HelpFormatter:
    # Asked for at every option; left to find the width by itself, it loads a good deal for that.
    return argparse.RawDescriptionHelpFormatter(prog, width=_COLUMNS)


def _command_in(words: Sequence[str]) -> tuple[str | None, int]:
    """The first word that is no option of the front, and where it stands."""
    skip = False
    for position, word in enumerate(words):
        if skip:
            skip = False
        elif word == "--store":
            skip = True
        elif not word.startswith("-"):
            if word not in COMMANDS:
                refuse_removed(word, ())
                raise UsageError(
                    f"no command {word!r}{did_you_mean(word, COMMANDS)}",
                    remedy="'filestore --help' lists the commands",
                )
            return word, position
        elif word.partition("=")[0] not in _FRONT:
            raise UsageError(_not_known(word, _FRONT), remedy="filestore --help")
    return None, len(words)


def _list_commands(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("commands")
    for name, line in COMMANDS.items():
        group.add_argument(f"_{name}", metavar=name, nargs="?", help=line)
