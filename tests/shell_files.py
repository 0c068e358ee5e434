"""What completes in three shells, written by shtab, and the manual page, by argparse-manpage.

Both work on parsers made from what the help says, so that no command of ours runs at TAB, and no
package of theirs is needed. Their versions are pinned: `tests/reference.py --check` compares bytes.
"""

import argparse
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct

from filestore.cli._parser import functions_of
from filestore.cli._terminal import Wishes
from filestore.server.operations import COMMANDS, CommonOptions, Field, fields_of, sentences
from tests import helped

_ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = _ROOT / "filestore" / "cli" / "shells"
MANUAL: Final = _ROOT / "docs" / "reference" / "filestore.1"
SHELLS: Final = ("bash", "zsh", "fish")
_ABOUT: Final = "Knowledge as Markdown files that people edit, and an index that follows."
_NOTICE: Final = """\
# The frame of this file is of shtab {version}, https://github.com/tqdm/shtab,
# (c) 2020-2026 Casper da Costa-Luis. This Source Code Form is subject to the terms of the Mozilla
# Public License, v. 2.0. You can obtain one at https://mozilla.org/MPL/2.0/.
# `python tests/reference.py` writes it.
"""
_FOLDERS: Final = frozenset(("DIR", "FOLDER", "STORE"))
_FILES: Final = frozenset(
    (
        *("DOCUMENT", "FILE", "HIT", "NEW", "P", "PACK", "PATH", "PATH[:LINE]"),
        *("QUERIES", "SOURCE", "TARGET"),
    )
)
_SEVERAL: Final = re.compile(r'^  "\(\*\)::?', re.MULTILINE)
"""Of an argument that may be repeated, of which shtab lets zsh complete the first alone."""
_COMMAND: Final = "COMMAND|PAGE|CODE"
_WIDTH: Final = {"COLUMNS": "10000"}
"""Else argparse breaks lines, after a hyphen too, where groff then puts a space."""
_TEXT: Final = re.compile(r"^(?='|\.(?!(?:TH|SH|SS|TP|RS|RE|B|nf|fi|PP)\b))", re.MULTILINE)
"""Where a line of text begins like a macro."""


def written(known: Mapping[str, Any]) -> dict[Path, str]:
    """Each file, with its text.

    Args:
        known: What there is to say of each command.
    """
    import shtab

    found = {}
    with patch.dict("os.environ", _WIDTH):
        commands = tree(known)
        for shell in SHELLS:
            made = shtab.complete(commands, shell)
            if shell == "zsh":
                made = _SEVERAL.sub('  "*:', made)
            # The first line of zsh's tells it what is completed.
            head, _, rest = made.partition("\n") if made.startswith("#compdef") else ("", "", made)
            lines = f"{head}\n{_NOTICE.format(version=version('shtab'))}{rest}".strip().splitlines()
            found[FOLDER / f"filestore.{shell}"] = "".join(f"{line.rstrip()}\n" for line in lines)
        return found | {MANUAL: manual(known)}


def manual(known: Mapping[str, Any]) -> str:
    """The manual page."""
    from argparse_manpage.manpage import Manpage

    page = Manpage(tree(known, whole=True), format="single-commands-section")
    page.source, page.manual, page.date = "filestore", "filestore", ""
    page.description = _ABOUT.removesuffix(".")
    # A macro has a space of its own above it.
    text = _TEXT.sub(r"\\&", re.sub(r"\n\n+(?=\.)", "\n", str(page)))
    # All else groff reads in the encoding of the place.
    return "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in text)


def tree(known: Mapping[str, Any], *, whole: bool = False) -> argparse.ArgumentParser:
    """What the command line takes, as parsers with their sentences.

    Args:
        known: What there is to say of each command.
        whole: With the paragraphs and examples of each; what all take is said once.
    """
    usage = "filestore [--store DIR] [--json] [--version] COMMAND ..." if whole else None
    top = argparse.ArgumentParser("filestore", usage=usage, description=_ABOUT)
    top.add_argument("--version", "-V", action="store_true", help="print the version")
    _take(top, CommonOptions)
    _take(top, Wishes)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        run, actions = functions_of(command)
        own = _parser(commands, command, command, known, whole=whole)
        _take(own, run.__annotations__["options"], alone=whole)
        if actions:
            inner = own.add_subparsers(metavar="ACTION")
            for action, act in actions.items():
                parser = _parser(inner, action, f"{command} {action}", known, whole=whole)
                _take(parser, act.__annotations__["options"], alone=whole)
    return top


def _parser(
    place: Any, word: str, name: str, known: Mapping[str, Any], *, whole: bool
) -> argparse.ArgumentParser:
    one, more = known[name], {}
    if whole:
        examples = "\n".join([".PP", ".nf", *one["examples"], ".fi"])
        more = {
            "usage": f"filestore {name} {one['usage']}".replace("%", "%%"),
            "description": "\n.PP\n".join([*one["about"], f"Examples:\n{examples}"]),
        }
    made: argparse.ArgumentParser = place.add_parser(
        word, help=one["line"], formatter_class=argparse.RawDescriptionHelpFormatter, **more
    )
    return made


_sentences: Final = cache(sentences)


def _take(parser: argparse.ArgumentParser, kind: type[Struct], *, alone: bool = True) -> None:
    """Every option and argument that is shown, and, if not alone, what every command takes."""
    for options in (kind,) if alone else (kind, Wishes):
        for field in fields_of(options):
            taken = parser._option_string_actions.keys()
            if not field.typed.hidden and taken.isdisjoint(field.names):
                _add(parser, field, helped.text_of(field, _sentences(options)))


def _add(parser: argparse.ArgumentParser, field: Field, text: str) -> None:
    import shtab

    typed, more = field.typed, {}
    several = field.several or typed.joined
    if field.kind is bool:
        more = {"action": "store_true"}
    else:
        more = {"choices": _words(field), "metavar": helped.value_of(field)}
        if typed.argument:
            more["nargs"] = (
                ("+" if several else None) if field.required else "*" if several else "?"
            )
        elif typed.many:
            more["nargs"] = "+"
    names = field.names or (field.name,)
    made = parser.add_argument(*names, help=text.replace("%", "%%"), **more)
    parts = (typed.metavar or "").split("|")
    if not _FILES.isdisjoint(parts):
        made.complete = shtab.FILE  # type: ignore[attr-defined]
    elif not _FOLDERS.isdisjoint(parts):
        made.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif typed.argument and not made.choices:
        # Else zsh names the argument at the first TAB, and takes the one option that fits at none.
        made.complete = {"zsh": "( )"}  # type: ignore[attr-defined]


def _words(field: Field) -> list[str] | None:
    """The words that a value may be, as far as they are known."""
    metavar = field.typed.metavar or ""
    if metavar == _COMMAND:
        return [*COMMANDS]
    found = [*(field.choices or ())] or metavar.split("|")
    return found if field.choices or (len(found) > 1 and metavar.islower()) else None
