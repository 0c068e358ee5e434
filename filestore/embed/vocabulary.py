"""Which words are spelt as they should be: the ones that the bundled model has as one piece.

Only its vocabulary is read, which is a hundredth of the file. One rule: it is asked before a word
is taken for a mistake, never to decide what a vector is, so that a damaged file changes none.
"""

import os
from functools import cache
from typing import Final

import orjson

from filestore.core.spelling import normalized

_FILE: Final = os.path.join(os.path.dirname(__file__), "minilm", "model.safetensors")
_MOST_HEADER: Final = 1 << 20


def holds(word: str) -> bool:
    """Whether a word, in any case and with its accents or without, is one piece."""
    plain = word.lower()
    if not plain.isascii():
        plain = "".join(filter(str.isalpha, normalized("NFD", plain)))
    return plain.isalpha() and f"\n{plain}\n".encode() in _words()


@cache
def _words() -> bytes:
    """One word a line; nothing where the file cannot be read."""
    try:
        with open(_FILE, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = orjson.loads(file.read(min(length, _MOST_HEADER)))
            first, last = header["vocabulary"]["data_offsets"]
            file.seek(8 + length + first)
            return b"\n" + file.read(last - first) + b"\n"
    except (OSError, ValueError, LookupError, TypeError):
        return b""


def words() -> list[str]:
    """The words that are one piece, the most frequent first."""
    found = _words().decode("utf-8", "replace").split("\n")
    return found[found.index("the") :] if "the" in found else []
