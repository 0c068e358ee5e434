"""Titles that formats give, and what programs fill in where there is none."""

import re
from typing import Final

_LONGEST_TITLE: Final = 300
_FILE_NAME: Final = re.compile(
    r".*\.(?:docx?|dotx?|rtf|odt|pages|tex|dvi|e?ps|pdf|indd|qxd|fm|p65|pub|pptx?|odp|key|xlsx?|ods"
    r"|txt|text|md|html?|xml|sgml|texi|png|jpe?g|tiff?)",
    re.IGNORECASE,
)
NO_TITLE: Final = re.compile(
    r"\W*(?:untitled(?: (?:document|page))?|unbenannt|sans titre|anonymous"
    r"|unspecified|unknown|none|null|no title|title"
    r"|(?:new )?document|(?:powerpoint )?presentation|slide|book|scan"
    r"|microsoft (?:word|powerpoint|excel)\b.*)"
    r"\W*\d*\W*",
    re.IGNORECASE,
)
_LETTER: Final = re.compile(r"[^\W\d_]")


def checked_title(title: str, *, name: str) -> str:
    """The title, unless it is what a program fills in, or a file name."""
    words = " ".join(title.split())
    stem = name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    senseless = (
        len(words) > _LONGEST_TITLE
        or not _LETTER.search(words)
        or NO_TITLE.fullmatch(words)
        or _FILE_NAME.fullmatch(words)
        or (" " not in words and words.casefold() == stem.casefold())
    )
    return "" if senseless else words
