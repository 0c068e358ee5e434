"""Which characters belong to scripts that put no spaces between words."""

from typing import Final

# Thai, Lao, Tibetan, Burmese, Khmer, kana, ideographs.
UNSPACED: Final = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ranges, as a class of characters of a regular expression has them."""
