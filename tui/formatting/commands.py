"""Command lines: names quoted for a shell and safe for a terminal.

Pure. One rule: what is shown is what can be pasted, or says how many names it leaves out.
"""

import re
import shlex
from collections.abc import Iterable
from itertools import groupby
from typing import Final

# The function, not the module of the same name that the package also has.
from filestore.browse import shown_path

MOST_NAMED: Final = 10
"""Names behind one option of a command line that is shown, not copied."""
_WORD: Final = re.compile(r"(?:\$'(?:\\.|[^'\\])*'|'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\])+")
"""A word as `quoted` writes it, or as a person typed it."""


def quoted(word: str) -> str:
    r"""A word for a shell; one that would steer a terminal is written as ``$'\xNN'``."""
    if shown_path(word) == word:
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def all_quoted(words: Iterable[str]) -> str:
    """Words for a shell, one after the other."""
    return " ".join(map(quoted, words))


def shortened(command: str) -> str:
    """A command line to be looked at: of very many names, the first ones and how many more."""
    words = [found.group() for found in _WORD.finditer(command)]
    shown: list[str] = []
    for is_name, group in groupby(words, key=lambda word: not word.startswith(("-", "&&"))):
        run = list(group)
        more = len(run) - MOST_NAMED
        shown += run
        if is_name and more > 1:
            shown[-more:] = [f"… and {more:,} more"]
    return " ".join(shown) if len(shown) < len(words) else command


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if shown_path(character) == character:
        return character
    is_undecoded = "\udc80" <= character <= "\udcff"
    data = character.encode("utf-8", "surrogateescape" if is_undecoded else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)
