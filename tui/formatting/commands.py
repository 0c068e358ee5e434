"""Command lines: names quoted for a shell and safe for a terminal.

Pure. One rule: what is shown is what can be pasted.
"""

import shlex
from collections.abc import Iterable

# The function, not the module of the same name that the package also has.
from filestore.browse import safe_text


def quoted(word: str) -> str:
    r"""A word for a shell; one that would steer a terminal is written as ``$'\xNN'``."""
    if safe_text(word, keep_newlines=False) == word:
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def all_quoted(words: Iterable[str]) -> str:
    """Words for a shell, one after the other."""
    return " ".join(map(quoted, words))


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if safe_text(character, keep_newlines=False) == character:
        return character
    is_undecoded = "\udc80" <= character <= "\udcff"
    data = character.encode("utf-8", "surrogateescape" if is_undecoded else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)
