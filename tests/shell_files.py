"""The completion of three shells, written by shtab, and the manual page, by argparse-manpage.

Both work on parsers made from what the help says, so that no command of ours runs at TAB, and no
package of theirs is needed. Their versions are pinned: `tests/reference.py --check` compares bytes.
"""

import argparse
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct

import filestore
from filestore.cli import _help
from filestore.cli._parser import functions_of
from filestore.cli._terminal import Wishes
from filestore.server.operations import COMMANDS, CommonOptions, Field, fields_of, sentences
from tests import helped

FOLDER: Final = Path(_help.FILE).parent / "completion"
MANUAL: Final = Path(filestore.__file__).parents[1] / "docs" / "filestore.1"
SHELLS: Final = ("bash", "zsh", "fish")
_NOTICE: Final = """\
# The frame of this file is of shtab {version}, https://github.com/tqdm/shtab,
# (c) 2020-2026 Casper da Costa-Luis. It is subject to the terms of the Mozilla Public License,
# v. 2.0: https://mozilla.org/MPL/2.0/. `python tests/reference.py` writes it.
"""
_FOLDERS: Final = ("DIR", "FOLDER", "STORE")
_FILES: Final = ("PATH", "PATH[:LINE]", "FILE", "PACK", "QUERIES", "SOURCE", "TARGET", "NEW")


def written(known: Mapping[str, Any]) -> dict[Path, str]:
    """Each file, with its text."""
    import shtab

    found = {}
    for shell in SHELLS:
        made = shtab.complete(tree(known), shell)
        # The first line of zsh's tells it what is completed.
        head, _, rest = made.partition("\n") if made.startswith("#compdef") else ("", "", made)
        notice = _NOTICE.format(version=version("shtab"))
        found[FOLDER / f"filestore.{shell}"] = "\n".join(
            line.rstrip() for line in f"{head}\n{notice}{rest}".strip().splitlines()
        ) + "\n"
    return found | {MANUAL: manual(known)}


def manual(known: Mapping[str, Any]) -> str:
    """The manual page."""
    from argparse_manpage.manpage import Manpage

    with patch.dict("os.environ", {"SOURCE_DATE_EPOCH": "0", "COLUMNS": "80"}):
        page = Manpage(tree(known, whole=True), format="single-commands-section")
    page.source, page.manual, page.date = "filestore", "filestore", ""
    return str(page)


def tree(known: Mapping[str, Any], *, whole: bool = False) -> argparse.ArgumentParser:
    """What the command line takes, as parsers with their sentences.

    Args:
        known: What there is to say of each command.
        whole: With the paragraphs and examples of each.
    """
    top = argparse.ArgumentParser(
        "filestore",
        description="Knowledge as Markdown files that people edit, and an index that follows.",
    )
    top.add_argument("--version", "-V", action="store_true", help="print the version")
    _take(top, CommonOptions)
    commands = top.add_subparsers(metavar="COMMAND")
    for command in COMMANDS:
        run, actions = functions_of(command)
        own = _parser(commands, command, command, known, whole=whole)
        _take(own, run.__annotations__["options"])
        if actions:
            inner = own.add_subparsers(metavar="ACTION")
            for action, act in actions.items():
                parser = _parser(inner, action, f"{command} {action}", known, whole=whole)
                _take(parser, act.__annotations__["options"])
    return top


def _parser(
    place: Any, word: str, name: str, known: Mapping[str, Any], *, whole: bool
) -> argparse.ArgumentParser:
    one = known[name]
    more = {}
    if whole:
        text = "\n\n".join(one["about"]).replace("%", "%%")
        more = {"description": text, "epilog": "\n".join(["examples:", *one["examples"]])}
    made: argparse.ArgumentParser = place.add_parser(
        word,
        help=one["line"].replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )
    return made


def _take(parser: argparse.ArgumentParser, kind: type[Struct]) -> None:
    """Every option and argument that is shown, then what every command takes."""
    for options in (kind, Wishes):
        texts = sentences(options)
        for field in fields_of(options):
            taken = parser._option_string_actions.keys()
            if not field.typed.hidden and taken.isdisjoint(field.names):
                _add(parser, field, helped.text_of(field, texts))


def _add(parser: argparse.ArgumentParser, field: Field, text: str) -> None:
    typed, more = field.typed, {}
    several = field.several or typed.joined
    if field.kind is bool:
        more = {"action": "store_true"}
    else:
        words = [*(field.choices or ())] or _words(typed.metavar)
        more = {"choices": words or None, "metavar": helped.value_of(field)}
        if typed.argument:
            more["nargs"] = ("+" if several else None) if field.required else "*" if several else "?"
        elif typed.many:
            more["nargs"] = "+"
    made = parser.add_argument(*(field.names or (field.name,)), help=text.replace("%", "%%"), **more)
    import shtab

    if typed.metavar in _FOLDERS:
        made.complete = shtab.DIRECTORY
    elif typed.metavar in _FILES:
        made.complete = shtab.FILE


def _words(metavar: str | None) -> list[str]:
    """Words of an argument such as `install|remove|status`."""
    found = (metavar or "").split("|")
    return found if len(found) > 1 and all(one.islower() for one in found) else []
