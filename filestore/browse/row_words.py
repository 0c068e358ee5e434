"""What a row of a list calls a chunk file: the beginning of its text, in a few words. Pure.

One rule: it is read from the first bytes alone, so that a page of rows costs the same whatever its
files hold.
"""

import re
from typing import Final

OPENING_BYTES: Final = 4_096
"""Of a file that are looked at: frontmatter, and where it ends, the first lines."""
_MOST: Final = 80
"""Characters of the words."""
_FRONTMATTER: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_ITS_END: Final = re.compile(rb"^---[ \t]*\r?$\n?", re.MULTILINE)
_SIGNS: Final = re.compile(r"^(?:#{1,6}\s+|[-*+>|]\s+|\d+[.)]\s+|`{3,}\w*|~{3,}\w*|[-=*_|: ]+$)")
"""What Markdown puts before the words of a line, and lines that are nothing else."""


def first_words(opening: bytes) -> str:
    """The first words of a chunk file, its first heading if it begins with one; "" for none.

    Args:
        opening: Its first `OPENING_BYTES`, or all of it.
    """
    body = opening
    begin = _FRONTMATTER.match(opening)
    if begin is not None:
        end = _ITS_END.search(opening, begin.end())
        if end is None:
            return ""
        body = opening[end.end() :]
    # The last character may be cut in two.
    for text in body.decode("utf-8", "ignore").splitlines():
        words = " ".join(_SIGNS.sub("", text.strip()).split())
        if words:
            return _cut(words)
    return ""


def _cut(words: str) -> str:
    if len(words) <= _MOST:
        return words
    whole, _, rest = words[: _MOST + 1].rpartition(" ")
    return f"{whole or rest[:_MOST]}…"
