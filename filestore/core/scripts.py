"""Characters: which scripts put no spaces between words, and the normal forms of a text.

`unicodedata` sorts marks that follow each other in the square of their number: for a megabyte of
nothing else that is minutes, in which not even Ctrl-C is heard.
"""

import re
import unicodedata
from typing import Final, Literal

# Thai, Lao, Tibetan, Burmese, Khmer, kana, ideographs.
UNSPACED: Final = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ranges, as a class of characters of a regular expression has them."""
_MOST: Final = 1_000
"""Marks that are sorted together; no letter has so many."""
_MANY: Final = rf"(?<![^\w\s])[^\w\s]{{{_MOST}}}"
_PARTS: Final = rf"[\w\s]*[^\w\s]{{0,{_MOST}}}"


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """A text in a normal form; of more than 1,000 marks on end, 1,000 at a time are sorted."""
    if len(text) < _MOST or not re.search(_MANY, text):
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, part) for part in re.findall(_PARTS, text))
