"""How many tokens a text has for a model that is not here."""

import re
from typing import Final

_BYTES_PER_TOKEN: Final = 3
_PUNCTUATION: Final = re.compile(rb"[!-/:-@\[-`{-~]")


def estimated_tokens(text: str) -> int:
    """An estimate on the high side: the same everywhere, 0 for an empty text.

    Every third byte of UTF-8 is a token, and every ASCII punctuation mark is one. Of MiniLM's word
    pieces that is 1.0 (German, Chinese) to 1.5 (Python) times as many.
    """
    data = text.encode("utf-8", "replace")
    marks = len(_PUNCTUATION.findall(data))
    others = len(data) - marks
    return marks + (others + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN
