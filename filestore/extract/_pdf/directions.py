"""Lines in which one script runs to the left and another to the right, in the order of reading.

Pure. One rule: the library's order of right-to-left letters is kept; what is between them and runs
to the right is read as it lies on the page.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

_Placed = tuple[float, str]

_LETTERS: Final = "\u0590-\u065f\u066e-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_RIGHT_TO_LEFT: Final = re.compile(f"[{_LETTERS}]+")
_LATIN: Final = re.compile(r"[^\W\d_\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_AFTER_LATIN: Final = re.compile("(?<=[A-Za-z])(?=[\u05d0-\u05ea\u0620-\u064a])")
"""Where a word ends though no space is there: none goes on in another script so."""
_CORE: Final = re.compile(r"[$€£#@~+\-\u2212]?\w(?:.*\w)?[%‰°]?")
_BETWEEN: Final = re.compile("( +)")
_BETWEEN_ARABIC: Final = re.compile("( +|(?<=.)-)")
"""What parts numbers, with the Unicode bidirectional algorithm; a minus does not."""
_TURNED: Final = str.maketrans("()[]{}«»", ")(][}{»«")
_OUTWARD: Final = re.compile(r"(?:(?<=\s)|^)[)\]}»](?=\w)|(?<=\w)[(\[{«](?=[\s.,;:!?]|$)")
"""Brackets with their hollow side to the outside of a word, as no one types them."""


def runs_left(text: str) -> bool:
    """Whether a line with letters of both directions is one of a text that runs to the left."""
    return len("".join(_RIGHT_TO_LEFT.findall(text))) * 2 >= len(_LATIN.findall(text))


def logical(placed: Iterable[_Placed], *, is_left: bool) -> str:
    """The text of a line.

    Args:
        placed: Its characters, each with where it begins, as the library orders them. Where one
            glyph is several characters it turns these round.
        is_left: Whether the line as a whole runs to the left.
    """
    glyphs = [
        (x, _RIGHT_TO_LEFT.sub(lambda run: run[0][::-1], "".join(one[1] for one in run)))
        for x, run in groupby(placed, lambda one: one[0])
    ]
    if is_left:
        text = _OUTWARD.sub(lambda one: one[0].translate(_TURNED), "".join(_stretches(glyphs)))
    else:
        text = "".join(glyph for _, glyph in glyphs)
    return _AFTER_LATIN.sub(" ", text)


def _stretches(glyphs: Sequence[_Placed]) -> Iterator[str]:
    is_arabic = any("\u0600" <= glyph < "\u08ff" for _, glyph in glyphs)
    for is_left, run in groupby(glyphs, lambda one: _RIGHT_TO_LEFT.search(one[1]) is not None):
        stretch = list(run)
        yield (
            "".join(glyph for _, glyph in stretch)
            if is_left
            else _as_lying(stretch, is_arabic=is_arabic)
        )


def _as_lying(stretch: Sequence[_Placed], *, is_arabic: bool) -> str:
    """What runs to the right as it lies there, and what is around it from its right to its left."""
    lying = "".join(glyph for _, glyph in sorted(stretch, key=lambda one: one[0]))
    core = _CORE.search(lying)
    if core is None:
        return "".join(glyph for _, glyph in stretch)
    words = core[0]
    if not _LATIN.search(words):
        # Each number is for itself, the first one on the right.
        words = "".join(reversed((_BETWEEN_ARABIC if is_arabic else _BETWEEN).split(words)))
    return lying[core.end() :][::-1] + words + lying[: core.start()][::-1]
